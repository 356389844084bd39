package ast

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/triremedb/trireme/engine/types"
)

// TestNormalize runs testdata/normalize: `key` shows keys and literals.
func TestNormalize(t *testing.T) {
	datadriven.Walk(t, "testdata/normalize", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			var mode Mode
			for _, a := range d.CmdArgs {
				mode |= modes[a.Key]
			}
			var b Buffers
			for _, text := range strings.Split(strings.TrimSuffix(d.Input, "\n"), "\n--\n") {
				ok := false
				if d.Cmd == "prepared" {
					ok = NormalizePrepared(text, mode, &b)
				} else {
					ok = Normalize(text, mode, &b)
				}
				if !ok {
					fmt.Fprintln(&out, "not cached")
					continue
				}
				body, codes, _ := bytes.Cut(b.Key[1:], []byte{0})
				fmt.Fprintf(&out, "%s", body)
				for i := range b.Literals {
					fmt.Fprintf(&out, " | %s", Format(&b.Literals[i]))
				}
				fmt.Fprintf(&out, " | %q\n", codes)
				if d.Cmd == "key" {
					if err := checkNormalized(text, mode, true); err != nil {
						t.Errorf("%s\n%v", text, err)
					}
				}
			}
			return out.String()
		})
	})
}

// formatWith formats a statement with literals in place of its Params.
func formatWith(s Statement, params []Literal) string {
	f := &formatter{params: params}
	f.statement(s)
	return string(f.b)
}

// checkNormalized checks a text for which Normalize may be ok:
//   - the statement with its literals put back is what Parse gives;
//   - the statement follows from the key alone, so texts with the same key have the
//     same statement;
//   - with strict, the grammar takes Params where the literals were;
//   - the same text with other literals of the same types has the same key.
func checkNormalized(sql string, mode Mode, strict bool) error {
	var b Buffers
	if !Normalize(sql, mode, &b) {
		return nil
	}
	key := string(b.Key)
	want, err := Parse(sql, mode)
	if err != nil {
		return nil // not SQL: it has a key, but no plan will
	}
	if len(want) != 1 {
		return fmt.Errorf("%d statements", len(want))
	}
	got, err := ParseParameterized(sql, mode)
	if err != nil {
		if strict {
			return fmt.Errorf("parameterised: %v", err)
		}
		return nil
	}
	if got.Params() != len(b.Literals) {
		return fmt.Errorf("%d parameters, %d literals", got.Params(), len(b.Literals))
	}
	if w, g := Format(want[0]), formatWith(got, b.Literals); w != g {
		return fmt.Errorf("parameterised statement differs:\n%s\n%s", w, g)
	}
	body, _, _ := strings.Cut(key[1:], "\x00")
	fromKey, err := Parse(body, mode)
	if err != nil {
		return fmt.Errorf("key does not parse: %v\n%s", err, body)
	}
	if len(fromKey) != 1 || Format(fromKey[0]) != Format(got) {
		return fmt.Errorf("the key means something else:\n%s\n%s", Format(got), body)
	}
	other := []byte(sql)
	for _, s := range b.spans {
		for i := s.start; i < s.end; i++ {
			if c := other[i]; c >= '1' && c <= '8' {
				other[i] = c + 1 // neither digits nor quotes change
			}
		}
	}
	var b2 Buffers
	if !Normalize(string(other), mode, &b2) || string(b2.Key) != key {
		return fmt.Errorf("other literals give another key: %s", other)
	}
	return nil
}

// TestNormalizeScripts checks all statements of the scripts.
func TestNormalizeScripts(t *testing.T) {
	n := 0
	for _, sql := range corpus(t) {
		for _, mode := range []Mode{0, ModeANSIQuotes, ModeNoBackslashEscapes, ModePipesAsConcat} {
			if err := checkNormalized(sql, mode, true); err != nil {
				t.Errorf("mode %d: %s\n%v", mode, sql, err)
			}
		}
		n++
	}
	if n < 500 {
		t.Errorf("only %d statements", n)
	}
}

// corpus returns the statements of the scripts.
func corpus(t testing.TB) []string {
	var list []string
	files, _ := filepath.Glob("testdata/*/*")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(b), "\n----\n") {
			// The output of one block and the command of the next stand before it.
			_, input, _ := strings.Cut(block[strings.LastIndex(block, "\n\n")+1:], "\n")
			if i := strings.LastIndex(block, "\n\n"); i >= 0 {
				_, input, _ = strings.Cut(block[i+2:], "\n")
			}
			list = append(list, strings.Split(input, "\n--\n")...)
		}
	}
	return list
}

func TestNormalizeAllocates(t *testing.T) {
	texts := []string{
		"SELECT c FROM sbtest1 WHERE id=12345",
		"UPDATE sbtest1 SET c='abc''def\\n', k = 1.25 WHERE id IN (1, 2, -3) /* trace */",
		"INSERT INTO t (a, b, c) VALUES (1, 'x', 2.5e3), (2, 'y\\'z', 0.001)",
	}
	var b Buffers
	for _, sql := range texts {
		if n := testing.AllocsPerRun(100, func() {
			if !Normalize(sql, 0, &b) {
				t.Fatal("not ok")
			}
		}); n != 0 {
			t.Errorf("%v allocations: %s", n, sql)
		}
	}
}

func TestTypeCodes(t *testing.T) {
	var b Buffers
	if !Normalize("select a from t where b in (1, 1.5, 1e5, 'x')", 0, &b) {
		t.Fatal("not ok")
	}
	i := bytes.IndexByte(b.Key, 0)
	if b.Key[0] == 0 {
		i = bytes.IndexByte(b.Key[1:], 0) + 1
	}
	var want []byte
	for _, l := range b.Literals {
		want = AppendTypeCode(want, l.Type)
	}
	if !bytes.Equal(b.Key[i+1:], want) {
		t.Errorf("types %q in the key, %q of the literals", b.Key[i+1:], want)
	}
	var p Buffers
	if !NormalizePrepared("select a from  t where b in (?, ?, ?, ?)", 0, &p) {
		t.Fatal("not ok")
	}
	key := p.Key
	for _, l := range b.Literals {
		key = AppendTypeCode(key, l.Type)
	}
	if !bytes.Equal(key, b.Key) {
		t.Errorf("prepared: %q, text: %q", key, b.Key)
	}
	if b.Literals[1].Type.Kind != types.KindDecimal || b.Literals[1].Type.Scale != 1 {
		t.Errorf("type of 1.5 is %v", b.Literals[1].Type)
	}
}

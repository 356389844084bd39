package expr

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
)

// TestLongCallsEnd: one call that would take minutes ends when its statement is interrupted.
func TestLongCallsEnd(t *testing.T) {
	r := newRig(t)
	r.x.MaxAllowedPacket = 64 << 20
	const long = "REPEAT('abcdefghij ', 1000000)" // 11 MB
	for i, text := range []string{
		"REGEXP_LIKE(" + long + ", '([a-z]+ )*[0-9]')",
		"REGEXP_INSTR(" + long + ", '(a|b|c|d|e| )+[0-9]')",
		"REGEXP_SUBSTR(" + long + ", '(?:[a-j]{1,10} ){1,50}x')",
		"REGEXP_REPLACE(" + long + ", '([a-z]+ )*[0-9]', 'x')",
		"REGEXP_REPLACE(" + long + ", '\\\\b[a-z]', 'x')",
		"REGEXP_REPLACE(REPEAT('a', 1000000), 'a(.*z)?', 'x')",
		"REGEXP_LIKE(REPEAT('a', 1000000), '(?=a)(a*+)+b')",
		"REGEXP_REPLACE(REPEAT('a', 1000000), '(?<!b)a(?=a{1,1000}b)', 'x')",
		"REPEAT('ab', 4000000) RLIKE '^(a|b)*c$'",
		"LOCATE(CONCAT(REPEAT('a', 100000), 'b'), REPEAT('a', 10000000))",
		"LOCATE(CONCAT(REPEAT('a', 100000), 'b'), REPEAT('a', 10000000) COLLATE utf8mb4_general_ci)",
		"INSTR(REPEAT('é', 10000000), CONCAT(REPEAT('é', 100000), 'b'))",
		"REPEAT('a', 10000000) LIKE CONCAT('%', REPEAT('a', 100000), 'b%')",
		"JSON_VALID(CONCAT('[', REPEAT('1,', 10000000), '1]'))",
		"JSON_EXTRACT(CONCAT('[', REPEAT('{\"a\": \"xxxxxxxxxxx\"},', 1000000), '1]'), '$[7]')",
		"CAST(CONCAT(REPEAT('[', 50), '\"', REPEAT('a', 10000000), '\"', REPEAT(']', 50)) AS JSON)",
		"JSON_SEARCH(CONCAT('[\"', REPEAT('a', 10000000), '\"]'), 'one', CONCAT('%', REPEAT('a', 100000), 'b%'))",
	} {
		if race.Enabled && i%3 != 0 {
			continue
		}
		if err := r.endsAfter(text, 1); !errors.Is(err, errStop) {
			t.Errorf("%s ends with %v", text, err)
		}
	}
}

// TestLongArgumentsAreWork: functions that take long for each row, since their arguments are long, end within a few rows, whichever they are.
func TestLongArgumentsAreWork(t *testing.T) {
	r := newRig(t)
	r.x.MaxAllowedPacket = 64 << 20
	const long, list = "REPEAT(IF(RAND() < 2, 'x', ''), 300000)", "REPEAT(IF(RAND() < 2, 'a,', ''), 150000)"
	for _, text := range []string{"SHA2(" + long + ", 512) = 'a'", "MD5(" + long + ")", "REVERSE(" + long + ")", "LENGTH(REPLACE(" + long + ", 'x', 'y'))",
		"FIND_IN_SET('b', " + list + ")", "LENGTH(SUBSTRING_INDEX(" + list + ", ',', 200000))", "STRCMP(" + long + ", " + long + ")"} {
		if rows, err := r.rowsUntilStop(text); !errors.Is(err, errStop) || rows > 10 {
			t.Errorf("%s ends after %d rows with %v", text, rows, err)
		}
	}
}

// rowsUntilStop evaluates an expression row by row until it asks whether to go on, 50 times at most.
func (r *rig) rowsUntilStop(text string) (rows int, err error) {
	r.x.Interrupted = nil
	n, err := r.bind(text)
	if err != nil {
		r.t.Fatalf("%.60s: %v", text, err)
	}
	r.x.Interrupted = func() error { return errStop }
	for err == nil && rows < 50 {
		_, err = n.Value(r.x, r.rows, 0)
		rows++
	}
	r.x.ResetStatement()
	return rows, err
}

// TestLongTextsMatchAlike: what is found in a text that is read piece by piece is what is found in
// one that is looked at as a whole.
func TestLongTextsMatchAlike(t *testing.T) {
	patterns := []string{"a", "a*", "^a", "(?m:^)b", `\bb`, `\Bb?`, `(a)(b)?`, "a+?b|b", `b\b`, `\Aab|b`, "é", "(?i)É|x*", `(?:^|a)b`, "b$",
		"(a|ab)(b|)*?", "(a*)*b", "((a)|b)+", "(?i)(A|(b))*é", "(|a)+b", "(a|(b|))?(é)?"}
	rapid.Check(t, func(t *rapid.T) {
		re := regexp.MustCompile(rapid.SampledFrom(patterns).Draw(t, "pattern"))
		text := []byte(rapid.StringOfN(rapid.SampledFrom([]rune("aab é\nB")), 0, 12, -1).Draw(t, "text"))
		m, err := compilePattern(new(Context), re.String(), patternFlags{plain: true, captures: true})
		if err != nil {
			t.Fatal(err)
		}
		m.most = maxSteps
		find := func(steps int) (all [][]int) {
			m.steps = steps
			if err := m.find(new(Context), text, 0, func(loc []int) bool {
				all = append(all, slices.Clone(loc))
				return true
			}); err != nil {
				t.Fatal(err)
			}
			return all
		}
		whole, pieces := find(1), find(maxSteps+1)
		if !slices.EqualFunc(whole, pieces, slices.Equal) {
			t.Fatalf("%s in %q: %v, by pieces %v", re, text, whole, pieces)
		}
		if first := re.FindSubmatchIndex(text); len(whole) > 0 && !slices.Equal(first, whole[0]) || len(whole) == 0 && first != nil {
			t.Fatalf("%s in %q: %v, %v", re, text, first, whole)
		}
		// Without its groups the pattern matches at the same places.
		plain, err := compilePattern(new(Context), re.String(), patternFlags{plain: true})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := plain.find(new(Context), text, 0, func(loc []int) bool {
			if n >= len(whole) || !slices.Equal(loc, whole[n][:2]) {
				t.Fatalf("%s in %q: %v, without groups match %d is %v", re, text, whole, n, loc)
			}
			n++
			return true
		}); err != nil || n < len(whole) {
			t.Fatalf("%s in %q: %v, without groups %d matches, %v", re, text, whole, n, err)
		}
		is, err := m.matches(new(Context), text)
		if err != nil || is != re.Match(text) {
			t.Fatalf("%s in %q: %v, %v", re, text, is, err)
		}
	})
}

// TestManyArguments: a call over rows needs no memory for each pair of argument and row.
func TestManyArguments(t *testing.T) {
	r := newRig(t)
	r.table("a INT", slices.Repeat([][]string{{"1"}}, types.BatchRows))
	count := race.Fewer(2000, 500)
	for _, text := range []string{
		"CONCAT('a'" + strings.Repeat(", a + 1", count) + ")",
		"GREATEST(1" + strings.Repeat(", a + 1", count) + ")",
		"CASE a" + strings.Repeat(" WHEN a + 1 THEN a + 2", count) + " END",
		"COALESCE(NULL" + strings.Repeat(", NULLIF(a, 1)", count) + ")",
	} {
		n, err := r.bind(text)
		if err != nil {
			t.Fatalf("%.60s: %v", text, err)
		}
		out := types.NewVector(n.Type(), types.BatchRows)
		if err := n.Vector(r.x, r.rows, nil, out); err != nil || out.Len() != types.BatchRows {
			t.Fatal(err)
		}
		kept := int64(0)
		for _, list := range r.x.vectors {
			for _, v := range list {
				kept += v.MemoryBytes()
			}
		}
		if kept > 2<<20 {
			t.Errorf("%.40s: %d bytes in vectors", text, kept)
		}
	}
}

// TestEqualConstants: the constants of a list that are equal take one place in its set, or
// to make the set of a list of one constant, many times, would take the square of its length.
func TestEqualConstants(t *testing.T) {
	r := newRig(t)
	r.table("a INT, s VARCHAR(9)", [][]string{{"7", "b"}})
	for _, text := range []string{"a IN (7" + strings.Repeat(", 7", 999) + ")", "s IN ('b'" + strings.Repeat(", 'b'", 999) + ")"} {
		n, err := r.bind(text)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := n.Value(r.x, r.rows, 0); err != nil || v.Int() != 1 {
			t.Errorf("%.20s gives %v, %v", text, v, err)
		}
		for _, s := range n.(*In).sets {
			taken := 0
			for _, at := range s.table {
				if at != 0 {
					taken++
				}
			}
			if taken != 1 {
				t.Errorf("%.20s: %d places of the set are taken", text, taken)
			}
		}
	}
}

// TestManyTermsEnd: conditions of very many terms that are quick by themselves end between them when their statement is interrupted, for
// all rows at once and row by row.
func TestManyTermsEnd(t *testing.T) {
	r := newRig(t)
	rows := make([][]string, 1000)
	for i := range rows {
		rows[i] = []string{strconv.Itoa(i)}
	}
	r.table("i INT NOT NULL", rows)
	stop := errors.New("interrupted")
	for _, c := range []struct{ join, term string }{{" OR ", "i > %d"}, {" AND ", "i < %d"}} {
		list := make([]string, 3000)
		for k := range list {
			list[k] = fmt.Sprintf(c.term, 10_000+k)
		}
		r.x.Interrupted = nil
		n, err := r.bind(strings.Join(list, c.join))
		if err != nil {
			t.Fatal(err)
		}
		if l, ok := n.(*Logic); !ok || len(l.args) != len(list) {
			t.Fatalf("%T", n)
		}
		for name, run := range map[string]func() error{
			"a filter": func() error { _, err := Filter(r.x, n, r.rows, nil, nil); return err },
			"values": func() error {
				var out types.Vector
				out.Init(n.Type())
				return n.Vector(r.x, r.rows, nil, &out)
			},
			"rows": func() (err error) {
				for row := 0; row < r.rows.Len() && err == nil; row++ {
					_, err = n.Value(r.x, r.rows, row)
				}
				return err
			},
		} {
			asked := 0
			r.x.Interrupted = func() error {
				if asked++; asked > 2 {
					return stop
				}
				return nil
			}
			if err := run(); !errors.Is(err, stop) {
				t.Errorf("%sas %s: %v", c.join, name, err)
			}
			r.x.ResetStatement()
		}
	}
}

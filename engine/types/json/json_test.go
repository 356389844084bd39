package json

import (
	"bytes"
	"encoding/hex"
	stdjson "encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{`null`, `null`}, {` [ ] `, `[]`}, {"{\t}\r\n", `{}`}, {`[1,2 , 3]`, `[1, 2, 3]`},
		{`{"bb":1,"a":{"c":true},"d":false}`, `{"a": {"c": true}, "d": false, "bb": 1}`},
		{`{"a":1,"b":2,"a":3}`, `{"a": 3, "b": 2}`},
		{`"\u00e9\ud83d\ude00\/\n\u0001\u007f"`, "\"é😀/\\n\\u0001\x7f\""},
		{`[-0, 0, -9223372036854775808, 9223372036854775807, 18446744073709551615]`,
			`[0, 0, -9223372036854775808, 9223372036854775807, 18446744073709551615]`},
		{`[18446744073709551616, -9223372036854775809]`, `[1.8446744073709552e19, -9.223372036854776e18]`},
		{`[1.0, 1e2, 1E+2, -0.0, 0.5, 100000000000000.0, 1e15, 123456789012345.6, 1e-15, 1e-16, 1.5e300]`,
			`[1.0, 100.0, 100.0, -0.0, 0.5, 100000000000000.0, 1e15, 123456789012345.6, 0.000000000000001, 1e-16, 1.5e300]`},
		{`[1234567890123456.0, 1234567890123456.5, 0.1, 3.14e-5]`, `[1.234567890123456e15, 1234567890123456.5, 0.1, 0.0000314]`},
	} {
		doc := mustParse(t, c.in)
		if got := textOf(doc); got != c.out {
			t.Errorf("%s prints as %s, expected %s", c.in, got, c.out)
		}
		if err := Validate(doc); err != nil {
			t.Errorf("%s: %v", c.in, err)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct {
		text   string
		offset int
		reason string
	}{
		{``, 0, "empty"}, {`  `, 2, "empty"}, {`[1,]`, 3, "Invalid value"}, {`[1 2]`, 3, "comma or ]"}, {`{"a" 1}`, 5, "colon"},
		{`{a:1}`, 1, "name"}, {`{"a":1,}`, 7, "name"}, {`{"a":1 "b"}`, 7, "comma or }"}, {`nul`, 0, "Invalid value"},
		{`1 2`, 2, "followed"}, {`01`, 1, "followed"}, {`1.`, 2, "fraction"}, {`1e`, 2, "exponent"}, {`-`, 1, "Invalid value"},
		{`+1`, 0, "Invalid value"}, {`.5`, 0, "Invalid value"}, {`1e400`, 0, "too big"}, {`"abc`, 0, "closing quotation"},
		{`"\x"`, 1, "escape"}, {`"\u12g4"`, 1, "hex"}, {`"\ud800"`, 1, "surrogate"}, {`"\ude00"`, 1, "surrogate"},
		{`"\ud800\u0041"`, 1, "surrogate"}, {"\"a\nb\"", 2, "encoding"}, {"\"a\xff\"", 2, "encoding"}, {`"\`, 1, "escape"},
		{`NaN`, 0, "Invalid value"}, {`[`, 1, "Invalid value"}, {`{`, 1, "name"}, {`'a'`, 0, "Invalid value"},
	} {
		_, err := Parse(nil, []byte(c.text))
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Offset != c.offset || !strings.Contains(syntax.Reason, c.reason) {
			t.Errorf("%q: error %v, expected %q at %d", c.text, err, c.reason, c.offset)
		}
		var sql *sqlerr.Error
		if !errors.As(err, &sql) || sql.Number != 3140 || sql.State != "22032" {
			t.Errorf("%q: no SQL error in %v", c.text, err)
		}
	}
}

func TestLimits(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	doc, err := Parse(nil, nested(MaxDepth))
	if err != nil || Validate(doc) != nil || Open(doc).Depth() != MaxDepth {
		t.Errorf("depth %d: %v", MaxDepth, err)
	}
	if _, err := Parse(nil, nested(MaxDepth+1)); err != ErrTooDeep {
		t.Errorf("depth %d: %v", MaxDepth+1, err)
	}
	if _, err := Parse(nil, []byte(`{"`+strings.Repeat("k", MaxKeyLength)+`":1}`)); err != nil {
		t.Error(err)
	}
	if _, err := Parse(nil, []byte(`{"`+strings.Repeat("k", MaxKeyLength+1)+`":1}`)); err != ErrKeyTooBig {
		t.Errorf("long key: %v", err)
	}
	if _, err := Set(doc, MustPath("$"+strings.Repeat("[0]", MaxDepth-1)+"[1]"), mustParse(t, "[]")); err != ErrTooDeep {
		t.Errorf("edit too deep: %v", err)
	}
}

// TestBinaryForm pins bytes worked out from the published description of the format.
func TestBinaryForm(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`null`, "04 00"}, {`true`, "04 01"}, {`false`, "04 02"}, {`1`, "05 0100"}, {`-1`, "05 ffff"}, {`32768`, "07 00800000"},
		{`2147483648`, "09 0000008000000000"}, {`18446744073709551615`, "0a ffffffffffffffff"}, {`1.0`, "0b 000000000000f03f"},
		{`"abc"`, "0c 03 616263"}, {`[]`, "02 0000 0400"}, {`{}`, "00 0000 0400"},
		{`[1,null,"a"]`, "02 0300 0f00  05 0100  04 0000  0c 0d00  01 61"},
		{`[100000]`, "02 0100 0b00  07 0700  a0860100"},
		{`{"bb":[],"a":2}`, "00 0200 1900  1200 0100  1300 0200  05 0200  02 1500  61 6262  0000 0400"},
	} {
		if got, want := hex.EncodeToString(mustParse(t, c.text)), strings.ReplaceAll(c.want, " ", ""); got != want {
			t.Errorf("%s encodes as %s, expected %s", c.text, got, want)
		}
	}
}

func TestLargeContainers(t *testing.T) {
	for _, n := range []int{10, 2000, 70000} {
		doc := bigObject(n)
		if err := Validate(doc); err != nil {
			t.Fatal(err)
		}
		if want := byte(tagLargeObject); n > 2000 && doc[0] != want {
			t.Errorf("%d members: tag %d", n, doc[0])
		}
		v, ok := MustPath("$.k7[1]").Get(Open(doc))
		if !ok || v.Int() != 7<<20 {
			t.Errorf("%d members: $.k7[1] is %v", n, v)
		}
		again := mustParse(t, textOf(doc))
		if !bytes.Equal(doc, again) {
			t.Errorf("%d members: text does not give the document back", n)
		}
	}
	// The largest small array and the least large one: the strings bring the size to the limit.
	for _, n := range []int{65535 - 4 - 3 - 3, 65535 - 4 - 3 - 3 + 1} {
		doc := mustParse(t, `["`+strings.Repeat("x", n)+`"]`)
		if small := doc[0] == tagSmallArray; small != (n == 65535-4-3-3) || Validate(doc) != nil {
			t.Errorf("string of %d: tag %d, %v", n, doc[0], Validate(doc))
		}
	}
}

// TestAgainstStandardLibrary compares text and structure with encoding/json.
func TestAgainstStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := drawDocument(t)
		text := Open(doc).AppendText(nil)
		var mine, theirs any
		if err := stdjson.Unmarshal(text, &mine); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		b, err := stdjson.Marshal(mine)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(nil, b)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if err := stdjson.Unmarshal(Open(again).AppendText(nil), &theirs); err != nil || !reflect.DeepEqual(mine, theirs) {
			t.Fatalf("%s came back as %s: %v", b, Open(again).AppendText(nil), err)
		}
	})
}

func TestCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := drawDocument(t)
		compact, err := Compact(nil, doc)
		if err != nil || !bytes.Equal(doc, compact) {
			t.Fatalf("%s: % x compacts to % x, %v", textOf(doc), doc, compact, err)
		}
		if got := Open(doc).AppendDocument(nil); !bytes.Equal(doc, got) {
			t.Fatalf("%s: copied as % x", textOf(doc), got)
		}
		if free := Open(doc).Free(); free != 0 {
			t.Fatalf("%s: %d bytes free", textOf(doc), free)
		}
	})
}

func TestOrder(t *testing.T) {
	// Each line is greater than those above it; values on one line are equal.
	var lines [][]string
	for _, l := range []string{
		`null`, `-1e300`, `-18446744073709551616`, `-9223372036854775808`, `-1.5`, `-1 | -1.0`, `0 | 0.0 | -0.0`, `5e-324`, `0.1`, `1 | 1.0`, `1.5`,
		`9007199254740992 | 9007199254740992.0`, `9007199254740993`, `1152921504606846975`, `1152921504606846976 | 1152921504606846976.0`,
		`18446744073709551615`, `18446744073709551616`, `1e300`, `"" `, `"A"`, `"a"`, `"a\u0000"`, `"aa"`, `"é"`, `{}`, `{"a":1}`, `{"a":2}`, `{"b":0}`,
		`{"aa":0}`, `{"a":0,"b":0}`, `[]`, `[1]`, `[1,2]`, `[2]`, `["a"]`, `["a","b"]`, `["a\u0000"]`, `[[]]`, `false`, `true`,
	} {
		lines = append(lines, strings.Split(l, "|"))
	}
	for i, x := range lines {
		for j, y := range lines {
			want := 0
			if i != j {
				want = 1
				if i < j {
					want = -1
				}
			}
			for _, a := range x {
				for _, b := range y {
					checkOrder(t, mustParse(t, a), mustParse(t, b))
					if got := Compare(Open(mustParse(t, a)), Open(mustParse(t, b))); got != want {
						t.Errorf("%s and %s compare %d, expected %d", a, b, got, want)
					}
				}
			}
		}
	}
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func checkOrder(t failer, a, b []byte) int {
	t.Helper()
	v, w := Open(a), Open(b)
	r := Compare(v, w)
	k, l := v.AppendSortKey(nil), w.AppendSortKey(nil)
	if want := bytes.Compare(k, l); r != want {
		t.Fatalf("%s and %s compare %d, their sort keys %x and %x %d", textOf(a), textOf(b), r, k, l, want)
	}
	if r == 0 != (v.Hash(1) == w.Hash(1)) {
		t.Fatalf("%s and %s compare %d, hashes %x, %x", textOf(a), textOf(b), r, v.Hash(1), w.Hash(1))
	}
	if r != 0 && (bytes.HasPrefix(k, l) || bytes.HasPrefix(l, k)) {
		t.Fatalf("sort key of %s or %s is a prefix: %x, %x", textOf(a), textOf(b), k, l)
	}
	if back := Compare(w, v); back != -r {
		t.Fatalf("%s and %s compare %d, reversed %d", textOf(a), textOf(b), r, back)
	}
	return r
}

func TestOrderProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawDocument(t), drawDocument(t), drawDocument(t)
		if checkOrder(t, a, b) <= 0 && checkOrder(t, b, c) <= 0 && Compare(Open(a), Open(c)) > 0 {
			t.Fatalf("not transitive: %s, %s, %s", textOf(a), textOf(b), textOf(c))
		}
	})
}

func TestOpaque(t *testing.T) {
	var b Builder
	b.BeginArray()
	b.DateTime(FieldDate, types.MakeDateTime(2015, 1, 15, 0, 0, 0, 0))
	b.DateTime(FieldDateTime, types.MakeDateTime(2015, 1, 15, 23, 24, 25, 120000))
	b.DateTime(FieldTimestamp, types.MakeDateTime(2015, 1, 15, 23, 24, 25, 120000))
	b.Time(types.MakeDuration(true, 123, 4, 5, 6))
	b.Opaque(FieldVarchar, []byte("abc"))
	b.Opaque(FieldBit, []byte{5})
	b.Opaque(255, []byte{5})
	b.EndArray()
	doc, err := b.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `["2015-01-15", "2015-01-15 23:24:25.120000", "2015-01-15 23:24:25.120000", "-123:04:05.000006", ` +
		`"base64:type15:YWJj", "base64:type16:BQ==", "base64:type255:BQ=="]`
	if got := textOf(doc); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for i, name := range []string{"DATE", "DATETIME", "DATETIME", "TIME", "BLOB", "BIT", "OPAQUE"} {
		if v, _ := Open(doc).Index(i); v.Type().String() != name {
			t.Errorf("element %d is %s, expected %s", i, v.Type(), name)
		}
	}
	v, _ := Open(doc).Index(0)
	if got := string(v.AppendUnquoted(nil)); got != "2015-01-15" {
		t.Errorf("unquoted %s", got)
	}
	if err := Validate(doc); err != nil {
		t.Error(err)
	}
}

func TestScalars(t *testing.T) {
	for text, want := range map[string]string{"null": "NULL", "1": "INTEGER", "9223372036854775808": "UNSIGNED INTEGER",
		"1.0": "DOUBLE", `""`: "STRING", "[]": "ARRAY", "{}": "OBJECT", "true": "BOOLEAN"} {
		if got := Open(mustParse(t, text)).Type().String(); got != want {
			t.Errorf("%s is %s, expected %s", text, got, want)
		}
	}
	for text, want := range map[string]int{"1": 1, "[]": 1, "[[]]": 2, `{"a":[1]}`: 3, `[1,[2,[3]]]`: 4} {
		if got := Open(mustParse(t, text)).Depth(); got != want {
			t.Errorf("depth of %s is %d, expected %d", text, got, want)
		}
	}
	if v := Open(nil); !v.IsNull() {
		t.Errorf("empty document is %s", v.Type())
	}
	if f := Open(mustParse(t, "1e308")).Double(); f != 1e308 {
		t.Errorf("1e308 is %v", f)
	}
}

func TestNoAllocations(t *testing.T) {
	doc := bigObject(1000)
	path, key := MustPath("$.k500[2]"), []byte("k77")
	n := testing.AllocsPerRun(100, func() {
		v := Open(doc)
		path.Get(v)
		v.Member(key)
		Compare(v, v)
		v.Hash(1)
	})
	if n != 0 {
		t.Errorf("reading allocates %v times", n)
	}
}

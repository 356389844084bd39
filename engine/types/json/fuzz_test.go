package json

import (
	"bytes"
	stdjson "encoding/json"
	"testing"
	"unicode/utf8"
)

var seeds = []string{`null`, `[1,2.5,"x",{"a":[true,null]}]`, `{"a":{"b":[1,2,3]},"key":"value","n":18446744073709551615}`, `"\ud83d\ude00"`, `[[[]]]`}

func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, err := Parse(nil, text)
		if err != nil {
			var v any
			if stdjson.Unmarshal(text, &v) == nil && utf8.Valid(text) && err != ErrTooDeep && !bytes.Contains(text, []byte(`\u`)) {
				t.Fatalf("%q is JSON: %v", text, err) // encoding/json takes lone surrogates
			}
			return
		}
		if err := Validate(doc); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if !stdjson.Valid(text) {
			t.Fatalf("%q is not JSON, but was parsed as %s", text, textOf(doc))
		}
		again, err := Parse(nil, []byte(textOf(doc)))
		if err != nil || !bytes.Equal(doc, again) {
			t.Fatalf("%q: its text %s does not give it back: %v", text, textOf(doc), err)
		}
	})
}

// FuzzBinary walks any bytes; on valid documents everything must hold, on others nothing may panic.
func FuzzBinary(f *testing.F) {
	for _, s := range seeds {
		f.Add(mustParse(f, s), mustParse(f, `{"a":1}`))
	}
	paths := []*Path{MustPath("$"), MustPath("$.a.b[1]"), MustPath("$[0]"), MustPath("$[last].a"), MustPath("$**.a"), MustPath("$**[0 to last]"), MustPath("$.*.*")}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		v, w := Open(a), Open(b)
		for _, x := range []Value{v, w} {
			x.AppendText(nil)
			x.AppendUnquoted(nil)
			x.AppendSortKey(nil)
			x.Hash(1)
			x.Depth()
			x.Free()
		}
		Compare(v, w)
		if _, err := Compact(nil, a); err == nil && Validate(a) == nil {
			checkOrder(t, a, a)
		}
		valid := Validate(a) == nil && Validate(b) == nil
		if valid {
			checkOrder(t, a, b)
		}
		for _, p := range paths {
			_ = p.Each(v, nil, func(Value) bool { return true })
			for _, f := range []func([]byte, *Path, []byte) (Edit, error){Set, ArrayAppend, ArrayInsert,
				func(doc []byte, p *Path, _ []byte) (Edit, error) { return Remove(doc, p) }} {
				if e, err := f(bytes.Clone(a), p, b); err == nil && valid && len(a) > 0 && len(b) > 0 {
					checkEdit(t, a, e)
				}
			}
		}
	})
}

func FuzzDiff(f *testing.F) {
	doc := mustParse(f, seeds[2])
	f.Add(doc, AppendDiff(nil, Diff{OpReplace, MustPath("$.a.b[1]"), mustParse(f, "7")}))
	f.Add(doc, AppendDiff(nil, Diff{OpInsert, MustPath("$.x"), mustParse(f, "[]")}))
	f.Add(doc, AppendDiff(nil, Diff{OpRemove, MustPath("$.key"), nil}))
	f.Fuzz(func(t *testing.T, doc, diffs []byte) {
		valid := Validate(doc) == nil
		for len(diffs) > 0 {
			d, rest, err := DecodeDiff(diffs)
			if err != nil {
				return
			}
			diffs = rest
			e, err := Apply(bytes.Clone(doc), d)
			if err != nil {
				return
			}
			if valid {
				if err := Validate(e.Doc); err != nil {
					t.Fatalf("%s %s: %v", d.Op, d.Path, err)
				}
			}
			doc = e.Doc
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"$.a[0]", "$**.b[last-1 to last]", `$."x y".*`, "$[*]"} {
		f.Add([]byte(s))
	}
	doc := mustParse(f, seeds[2])
	f.Fuzz(func(t *testing.T, s []byte) {
		p, err := ParsePath(s)
		if err != nil {
			return
		}
		again, err := ParsePath([]byte(p.String()))
		if err != nil || again.String() != p.String() || matches(again, doc) != matches(p, doc) {
			t.Fatalf("%q became %s: %v", s, p, err)
		}
	})
}

package json

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEdits(t *testing.T) {
	type edit func(doc []byte, p *Path, value []byte) (Edit, error)
	remove := func(doc []byte, p *Path, _ []byte) (Edit, error) { return Remove(doc, p) }
	for _, c := range []struct {
		name            string
		f               edit
		doc, path, v    string
		want            string
		diff            string // operation and path; empty: unchanged
		inPlace, always bool
	}{
		{"replace", Replace, `{"a":1}`, `$.a`, `2`, `{"a": 2}`, "REPLACE $.a", true, true},
		{"replace", Replace, `{"a":1}`, `$.b`, `2`, `{"a": 1}`, "", false, true},
		{"replace", Replace, `{"a":"long"}`, `$.a`, `"abc"`, `{"a": "abc"}`, "REPLACE $.a", true, true},
		{"replace", Replace, `{"a":"abc"}`, `$.a`, `"longer"`, `{"a": "longer"}`, "REPLACE $.a", false, true},
		{"replace", Replace, `{"a":"abc","b":1}`, `$.b`, `"x"`, `{"a": "abc", "b": "x"}`, "REPLACE $.b", false, true},
		{"replace", Replace, `[1,[2,"three"]]`, `$[last][1]`, `null`, `[1, [2, null]]`, "REPLACE $[1][1]", true, true},
		{"replace", Replace, `{"a":1}`, `$.a[0]`, `2`, `{"a": 2}`, "REPLACE $.a", true, true},
		{"replace", Replace, `{"a":1}`, `$`, `[]`, `[]`, "REPLACE $", false, true},
		{"set", Set, `{"a":1}`, `$.b`, `[2]`, `{"a": 1, "b": [2]}`, "INSERT $.b", false, true},
		{"set", Set, `[1]`, `$[5]`, `2`, `[1, 2]`, "INSERT $[1]", false, true},
		{"set", Set, `[1]`, `$[last-5]`, `2`, `[2, 1]`, "INSERT $[0]", false, true},
		{"set", Set, `{"a":1}`, `$.a[3]`, `2`, `{"a": [1, 2]}`, "REPLACE $.a", false, true},
		{"set", Set, `{"a":1}`, `$.a[last-3]`, `2`, `{"a": [2, 1]}`, "REPLACE $.a", false, true},
		{"set", Set, `{"a":1}`, `$.b.c`, `2`, `{"a": 1}`, "", false, true},
		{"set", Set, `1`, `$.b`, `2`, `1`, "", false, true},
		{"insert", Insert, `{"a":1}`, `$.a`, `2`, `{"a": 1}`, "", false, true},
		{"insert", Insert, `{"a":1}`, `$."b c"`, `2`, `{"a": 1, "b c": 2}`, `INSERT $."b c"`, false, true},
		{"remove", remove, `{"a":1,"bb":"x","c":[1]}`, `$.a`, ``, `{"c": [1], "bb": "x"}`, "REMOVE $.a", true, true},
		{"remove", remove, `[1,"x",3]`, `$[1]`, ``, `[1, 3]`, "REMOVE $[1]", true, true},
		{"remove", remove, `[1,"x",3]`, `$[3]`, ``, `[1, "x", 3]`, "", false, true},
		{"remove", remove, `{"a":1}`, `$.a[0]`, ``, `{"a": 1}`, "", false, true},
		{"append", ArrayAppend, `{"a":[1]}`, `$.a`, `2`, `{"a": [1, 2]}`, "INSERT $.a[1]", false, true},
		{"append", ArrayAppend, `{"a":1}`, `$.a`, `2`, `{"a": [1, 2]}`, "REPLACE $.a", false, true},
		{"array insert", ArrayInsert, `[1,2]`, `$[1]`, `9`, `[1, 9, 2]`, "INSERT $[1]", false, true},
		{"array insert", ArrayInsert, `[1,2]`, `$[7]`, `9`, `[1, 2, 9]`, "INSERT $[2]", false, true},
		{"array insert", ArrayInsert, `[1,2]`, `$[last]`, `9`, `[1, 9, 2]`, "INSERT $[1]", false, true},
		{"array insert", ArrayInsert, `{"a":1}`, `$.a[0]`, `9`, `{"a": 1}`, "", false, true},
	} {
		var value []byte
		if c.v != "" {
			value = mustParse(t, c.v)
		}
		old := mustParse(t, c.doc)
		e, err := c.f(bytes.Clone(old), MustPath(c.path), value)
		if err != nil {
			t.Errorf("%s %s in %s: %v", c.name, c.path, c.doc, err)
			continue
		}
		diff := ""
		if e.Changed {
			diff = e.Diff.Op.String() + " " + e.Diff.Path.String()
		}
		if got := textOf(e.Doc); got != c.want || diff != c.diff || e.InPlace != c.inPlace {
			t.Errorf("%s %s in %s: %s, %q, in place %v", c.name, c.path, c.doc, got, diff, e.InPlace)
		}
		checkEdit(t, old, e)
	}
}

// checkEdit verifies what every edit promises, given the document before.
func checkEdit(t failer, old []byte, e Edit) {
	t.Helper()
	if err := Validate(e.Doc); err != nil {
		t.Fatalf("%s after the edit: %v", textOf(e.Doc), err)
	}
	if !e.Changed {
		if !bytes.Equal(old, e.Doc) {
			t.Fatalf("unchanged, but %s became %s", textOf(old), textOf(e.Doc))
		}
		return
	}
	if e.InPlace {
		patched := bytes.Clone(old)
		for _, r := range e.Ranges {
			copy(patched[r.Offset:r.Offset+r.Length], e.Doc[r.Offset:])
		}
		if !bytes.Equal(patched, e.Doc) {
			t.Fatalf("%s became %s, but the ranges %v give %s", textOf(old), textOf(e.Doc), e.Ranges, textOf(patched))
		}
	}
	d, rest, err := DecodeDiff(AppendDiff(nil, e.Diff))
	if err != nil || len(rest) > 0 {
		t.Fatalf("diff %v does not come back: %v", e.Diff, err)
	}
	again, err := Apply(bytes.Clone(old), d)
	if err != nil || !bytes.Equal(again.Doc, e.Doc) {
		t.Fatalf("%s %s applied to %s gives %s, expected %s: %v", d.Op, d.Path, textOf(old), textOf(again.Doc), textOf(e.Doc), err)
	}
	compact, err := Compact(nil, e.Doc)
	if err != nil || textOf(compact) != textOf(e.Doc) {
		t.Fatalf("%s compacts to %s: %v", textOf(e.Doc), textOf(compact), err)
	}
	if free := Open(e.Doc).Free(); e.InPlace && free != len(e.Doc)-len(compact) && bytes.Equal(compact[:1], e.Doc[:1]) {
		t.Fatalf("%s: %d bytes free, but compacting saves %d", textOf(e.Doc), free, len(e.Doc)-len(compact))
	}
}

func TestEditProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := drawDocument(t)
		for range rapid.IntRange(1, 6).Draw(t, "edits") {
			p, value := drawPath(t, false), drawDocument(t)
			old := bytes.Clone(doc)
			var e Edit
			var err error
			switch rapid.IntRange(0, 5).Draw(t, "function") {
			case 0:
				e, err = Replace(doc, p, value)
			case 1:
				e, err = Insert(doc, p, value)
			case 2:
				e, err = Set(doc, p, value)
			case 3:
				if e, err = Remove(doc, p); err == ErrVacuousPath {
					err = nil
				}
			case 4:
				e, err = ArrayAppend(doc, p, value)
			case 5:
				if e, err = ArrayInsert(doc, p, value); err == ErrNotCell {
					err = nil
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			checkEdit(t, old, e)
			if v, ok := p.Get(Open(e.Doc)); e.Changed && e.Diff.Op == OpReplace && p.String() == e.Diff.Path.String() &&
				(!ok || Compare(v, Open(e.Diff.Value)) != 0) {
				t.Fatalf("%s is %s after it was set to %s", p, v.AppendText(nil), textOf(e.Diff.Value))
			}
			doc = e.Doc
		}
	})
}

func TestFree(t *testing.T) {
	doc := mustParse(t, `{"a":"`+strings.Repeat("x", 300)+`","b":["y"]}`)
	e, err := Replace(doc, MustPath("$.a"), mustParse(t, `"`+strings.Repeat("x", 100)+`"`))
	if err != nil || !e.InPlace || Open(e.Doc).Free() != 201 { // the length takes a byte less, too
		t.Errorf("in place %v, %d bytes free, %v", e.InPlace, Open(e.Doc).Free(), err)
	}
	e, err = Replace(e.Doc, MustPath("$.a"), mustParse(t, `"`+strings.Repeat("z", 300)+`"`))
	if err != nil || !e.InPlace || Open(e.Doc).Free() != 0 {
		t.Errorf("in place %v, %d bytes free, %v", e.InPlace, Open(e.Doc).Free(), err)
	}
}

func TestApplyMismatch(t *testing.T) {
	for _, d := range []Diff{
		{OpReplace, MustPath("$.x"), mustParse(t, "1")}, {OpRemove, MustPath("$.x"), nil}, {OpInsert, MustPath("$.a"), mustParse(t, "1")},
		{OpInsert, MustPath("$.a[0]"), mustParse(t, "1")}, {OpRemove, MustPath("$"), nil}, {OpInsert, MustPath("$"), mustParse(t, "1")},
	} {
		if e, err := Apply(mustParse(t, `{"a": 1}`), d); err == nil {
			t.Errorf("%s %s was applied: %s", d.Op, d.Path, textOf(e.Doc))
		}
	}
}

package schema

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/types/json"
)

func parse(t *testing.T, text string) json.Value {
	t.Helper()
	doc, err := json.Parse(nil, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return json.Open(doc)
}

func match(pattern, text []byte) (bool, error) {
	re, err := regexp.Compile(string(pattern))
	return err != nil || re.Match(text), nil
}

// TestValidate has one failure for each keyword, and what is no failure. Statements that ask for reports are scripts of package session.
func TestValidate(t *testing.T) {
	for _, c := range []struct{ schema, doc, want string }{
		{`{"type":"object"}`, `{}`, ""},
		{`{"type":"integer"}`, `3.0`, "type # #"},
		{`{"properties":{"a/b":{"properties":{"~ x":{"type":"string"}}}}}`, `{"a/b":{"~ x":5}}`, "type #/a~1b/~0%20x #/properties/a~1b/properties/~0%20x"},
		{`{"minimum":5,"exclusiveMinimum":true}`, `5`, "minimum # #"},
		{`{"multipleOf":0.1}`, `0.3`, ""},
		{`{"pattern":"("}`, `"a"`, ""},
		{`{"items":[{}],"additionalItems":false}`, `[1,2]`, "additionalItems #/1 #"},
		{`{"uniqueItems":true}`, `[1,2,1.0]`, "uniqueItems #/2 #"},
		{`{"uniqueItems":true}`, `[[3],4,{"a":4},3,[3],4]`, "uniqueItems #/4 #"},
		{`{"uniqueItems":true,"items":{"type":"integer"}}`, `[1,2,"a",1]`, "type #/2 #/items"},
		{`{"uniqueItems":true,"items":{"type":"integer"}}`, `[1,1,"a"]`, "uniqueItems #/1 #"},
		{`{"uniqueItems":true}`, `[1,"1",[],{},null,false,0]`, ""},
		{`{"required":["b"],"properties":{"a":{"type":"string"}}}`, `{"a":5}`, "type #/a #/properties/a"},
		{`{"dependencies":{"a":{"required":["b"]}}}`, `{"a":3}`, "dependencies # #"},
		{`{"oneOf":[{"type":"number"},{"minimum":1}]}`, `3`, "oneOf # #"},
		{`{"$ref":"#"}`, `1`, ""},
		{`{"$ref":"#/definitions/n","definitions":{"n":{"type":"string"}}}`, `1`, "type # #/definitions/n"},
	} {
		v, err := New(parse(t, c.schema), Options{Match: match})
		if err != nil {
			t.Fatal(err)
		}
		f, err := v.Validate(parse(t, c.doc))
		got := ""
		if f != nil {
			got = f.Keyword + " " + f.Document + " " + f.Schema
		}
		if got != c.want || err != nil {
			t.Errorf("%s of %s: %q %v, not %q", c.schema, c.doc, got, err, c.want)
		}
	}
}

// TestReferences: those within the schema may go in circles, others are refused.
func TestReferences(t *testing.T) {
	v, err := New(parse(t, `{"allOf":[{"$ref":"#"},{"$ref":"#"}],"properties":{"a":{"$ref":"#"}}}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if f, err := v.Validate(parse(t, `{"a":{"a":1}}`)); f != nil || err != nil {
		t.Errorf("%v %v", f, err)
	}
	if _, err := New(parse(t, `{"properties":{"a":{"$ref":"http://x/y.json"}}}`), Options{}); err != ErrReference {
		t.Error(err)
	}
}

// TestStopped: a validation ends with the error that its options give, wherever it is.
func TestStopped(t *testing.T) {
	stop := errors.New("stopped")
	for _, text := range []string{`{"uniqueItems":true,"items":{"pattern":"a"}}`, `{"anyOf":[{"type":"string"},{"items":{"not":{}}}]}`} {
		for after := range 30 {
			asked := 0
			v, err := New(parse(t, text), Options{Match: match, Stop: func() error {
				if asked++; asked > after {
					return stop
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := v.Validate(parse(t, `["a","b","c","a"]`)); asked > after && err != stop || asked <= after && err != nil {
				t.Errorf("%s after %d of %d: %v", text, after, asked, err)
			}
		}
	}
}

// TestLongListsStop: lists of a schema that are looked through for one value end with the error as well.
func TestLongListsStop(t *testing.T) {
	stop := errors.New("stopped")
	list := func(element string) string { return "[" + strings.Repeat(element+",", 9999) + element + "]" }
	for _, text := range []string{
		`{"enum":` + list("1") + `}`, `{"type":` + list(`"string"`) + `}`, `{"required":` + list(`"a"`) + `}`,
		`{"dependencies":{"a":` + list(`"a"`) + `}}`,
	} {
		asked := 0
		v, err := New(parse(t, text), Options{Match: match, Stop: func() error {
			if asked++; asked > 20 {
				return stop
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Validate(parse(t, `{"a":2}`)); err != stop {
			t.Errorf("%.30s: %v", text, err)
		}
	}
	// A reference is read token by token.
	v, err := New(parse(t, `{"$ref":"#`+strings.Repeat("/", 1<<20)+`"}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(5, func() { _, _ = v.Validate(parse(t, "1")) }); n > 20 {
		t.Errorf("%v allocations", n)
	}
}

package trace

import (
	"strings"
	"testing"
)

const some = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text        string
		ok, sampled bool
	}{
		{some, true, true},
		{" " + some + "\t", true, true},
		{some[:54] + "0", true, false},
		{some[:53] + "03", true, true},                  // flags to come
		{"01" + some[2:] + "-what-follows", true, true}, // versions to come
		{some + "-more", false, false},                  // of this version there is no more
		{"01" + some[2:] + "more", false, false},        // nor is this a further part
		{"ff" + some[2:], false, false},                 // is no version
		{strings.ToUpper(some), false, false},           // digits are small
		{some[:54], false, false},                       // too short
		{"", false, false},                              //
		{"0x" + some[2:], false, false},                 // no digits
		{some[:3] + strings.Repeat("0", 32) + some[35:], false, false},
		{some[:36] + strings.Repeat("0", 16) + some[52:], false, false},
		{strings.ReplaceAll(some, "-", "_"), false, false},
	} {
		got, sampled, ok := Parse(c.text)
		if ok != c.ok || sampled != c.sampled || ok != got.Valid() {
			t.Errorf("%q: %v %v %v", c.text, got, sampled, ok)
		}
		if c.text == some && got.String() != some {
			t.Errorf("%q is written %q", some, got.String())
		}
	}
	if s := (Context{}).String(); s != "" {
		t.Errorf("none is written %q", s)
	}
}

func TestInComment(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT 1 /*traceparent='" + some + "'*/":                              true,
		"SELECT 1 /*traceparent='" + some + "'*/ ; \n":                         true,
		"SELECT 1 /* traceparent='" + some + "' */":                            true,
		"SELECT 1 /*db_driver='x',traceparent='" + some + "',tracestate='a'*/": true,
		"SELECT 1 /*traceparent=" + some + "*/":                                false,
		"SELECT 1 /*traceparent='" + some + "*/":                               false,
		"SELECT 1 /*atraceparent='" + some + "'*/":                             false,
		"SELECT 1 */": false,
		"/*traceparent='" + some + "'*/ SELECT 1 /*nothing*/": false,
		"":    false,
		"*/":  false,
		"/*/": false,
		"SELECT '/*traceparent=''" + some + "''*/'": false,
	} {
		if _, _, ok := InComment(text); ok != want {
			t.Errorf("%q: %v", text, ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(some)
	f.Fuzz(func(t *testing.T, s string) {
		InComment(s)
		c, sampled, ok := Parse(s)
		if again, _, _ := Parse(c.String()); ok && again != c || !ok && (c.Valid() || sampled) {
			t.Fatalf("%q: %v %v %v", s, c, sampled, ok)
		}
	})
}

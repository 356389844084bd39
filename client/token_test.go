package client

import (
	"strings"
	"testing"
)

func TestFirstWord(t *testing.T) {
	for text, want := range map[string]string{
		"select 1":                        "SELECT",
		"  /* a */ -- b\n# c\n(SELECT 1)": "SELECT",
		"--1":                             "",
		"":                                "",
		"/* open":                         "",
		";insert into t":                  "INSERT",
		strings.Repeat("x", 32):           strings.Repeat("X", 32),
		strings.Repeat("x", 33):           "",
	} {
		if got := firstWord(text); got != want {
			t.Errorf("%q begins with %q", text, got)
		}
	}
}

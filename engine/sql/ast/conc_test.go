package ast

import (
	"sync"
	"testing"
)

// TestConcurrent: parsers are shared by sessions.
func TestConcurrent(t *testing.T) {
	texts := corpus(t)
	want := make([]string, len(texts))
	for i, sql := range texts {
		for _, s := range must(Parse(sql, 0)) {
			want[i] += Format(s) + ";"
		}
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range texts {
				i = (i + g*37) % len(texts)
				got := ""
				for _, s := range must(Parse(texts[i], 0)) {
					got += Format(s) + ";"
				}
				if got != want[i] {
					t.Errorf("%s: %s", texts[i], got)
				}
			}
		})
	}
	wg.Wait()
}

// must returns what was parsed before an error.
func must(list []Statement, _ error) []Statement { return list }

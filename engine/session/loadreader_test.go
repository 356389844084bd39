package session

import (
	"fmt"
	"testing"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

// TestLoadReaderMultiByte reads a file of a character set in which a backslash may be the second byte of a character, in pieces of all
// sizes.
func TestLoadReaderMultiByte(t *testing.T) {
	const text = "1\t\x95\x5c\x83\x5c\x94\x5c\\t\x93\xfa\t\\\x83\x5c\n2\tb\\N\t\\N\n"
	const want = `["1" "\x95\\\x83\\\x94\\\t\x93\xfa" "\x83\\"]["2" "bN" NULL]`
	sjis, _ := types.CharsetByName("sjis")
	for size := 1; size <= len(text); size++ {
		got := ""
		r := loadReader{fields: ast.LoadFields{Terminated: "\t", Escaped: "\\"}, lines: ast.LoadLines{Terminated: "\n"}, set: sjis, keep: 9,
			hold: func(int64) error { return nil }}
		r.emit = func(fields []loadField) error {
			got += "["
			for i, f := range fields {
				if i > 0 {
					got += " "
				}
				if f.null {
					got += "NULL"
				} else {
					got += fmt.Sprintf("%q", r.arena[f.from:f.to])
				}
			}
			got += "]"
			return nil
		}
		for at := 0; at < len(text); at += size {
			if err := r.feed([]byte(text[at:min(at+size, len(text))])); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.finish(); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Fatalf("in pieces of %d bytes: %s, expected %s", size, got, want)
		}
	}
}

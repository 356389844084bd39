package plan

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
)

var updateDocs = flag.Bool("update-docs", false, "write the list of window functions into docs/sql.md")

const (
	docsFile  = "../../../docs/sql.md"
	docsBegin = "<!-- windows: begin -->\n"
	docsEnd   = "<!-- windows: end -->\n"
)

// TestWindowDocs compares the list in docs/sql.md with the window functions that there are.
func TestWindowDocs(t *testing.T) {
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := bytes.Index(text, []byte(docsBegin)), bytes.Index(text, []byte(docsEnd))
	if begin < 0 || end < begin {
		t.Fatalf("%s lacks the marks %q and %q", docsFile, docsBegin, docsEnd)
	}
	begin += len(docsBegin)
	want := []byte("| Function | Reads |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(windowFunctions)) {
		f := windowFunctions[name]
		want = fmt.Appendf(want, "| `%s` | %s |\n", f.usage, f.reads)
	}
	if bytes.Equal(text[begin:end], want) {
		return
	}
	if !*updateDocs {
		t.Fatalf("%s does not list the window functions that there are; run go test ./engine/sql/plan -run TestWindowDocs -update-docs", docsFile)
	}
	text = slices.Concat(text[:begin], want, text[end:])
	if err := os.WriteFile(docsFile, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

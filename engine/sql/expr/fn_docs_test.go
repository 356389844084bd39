package expr

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var updateDocs = flag.Bool("update-docs", false, "write the list of functions into docs/sql.md")

const (
	docsFile  = "../../../docs/sql.md"
	docsBegin = "<!-- functions: begin -->\n"
	docsEnd   = "<!-- functions: end -->\n"
)

// functionDocs is the list of functions as docs/sql.md has it.
func functionDocs() []byte {
	var out bytes.Buffer
	category := ""
	for _, f := range Functions() {
		if f.Category != category {
			category = f.Category
			fmt.Fprintf(&out, "\n### %s\n\n| Function | Also | Notes |\n|---|---|---|\n", category)
		}
		usage := make([]string, len(f.Usage))
		for i, u := range f.Usage {
			if f.Name == "MEMBER OF" {
				u = "x " + u
			}
			usage[i] = "`" + strings.ReplaceAll(u, "|", `\|`) + "`"
		}
		also := make([]string, len(f.Aliases))
		for i, a := range f.Aliases {
			also[i] = "`" + a + "`"
		}
		fmt.Fprintf(&out, "| %s | %s | %s |\n", strings.Join(usage, ", "), strings.Join(also, ", "), f.Note)
	}
	return out.Bytes()
}

// TestFunctionDocs compares the list in docs/sql.md with the functions that there are.
func TestFunctionDocs(t *testing.T) {
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := bytes.Index(text, []byte(docsBegin)), bytes.Index(text, []byte(docsEnd))
	if begin < 0 || end < begin {
		t.Fatalf("%s lacks the marks %q and %q", docsFile, docsBegin, docsEnd)
	}
	begin += len(docsBegin)
	want := functionDocs()
	if bytes.Equal(text[begin:end], want) {
		return
	}
	if !*updateDocs {
		t.Fatalf("%s does not list the functions that there are; run go test ./engine/sql/expr -run TestFunctionDocs -update-docs", docsFile)
	}
	text = append(text[:begin:begin], append(want, text[end:]...)...)
	if err := os.WriteFile(docsFile, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestFunctionInfo: every function says how it is called, and its name is not taken twice.
func TestFunctionInfo(t *testing.T) {
	names := map[string]bool{}
	for _, f := range Functions() {
		for _, name := range append([]string{f.Name}, f.Aliases...) {
			if names[name] {
				t.Errorf("%s is listed twice", name)
			}
			names[name] = true
		}
		if len(f.Usage) == 0 {
			t.Errorf("%s has no usage", f.Name)
		}
		if f.MaxArgs >= 0 && f.MaxArgs < f.MinArgs {
			t.Errorf("%s takes %d to %d arguments", f.Name, f.MinArgs, f.MaxArgs)
		}
	}
	for _, name := range FuncNames() {
		if isWord(name) && !names[strings.ToUpper(name)] {
			t.Errorf("%s is not listed", name)
		}
	}
	if len(names) < 220 {
		t.Errorf("only %d functions", len(names))
	}
}

package sqlerr_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/sqlerr"
)

var update = flag.Bool("update", false, "write docs/errors.md anew")

const docsFile = "../../docs/errors.md"

// TestDocumentation: docs/errors.md says what the table says.
func TestDocumentation(t *testing.T) {
	var text strings.Builder
	text.WriteString(docsHead)
	for c := range sqlerr.All() {
		escaped := strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`, "`", "\\`").Replace(c.Text())
		fmt.Fprintf(&text, "| %d | `%s` | `%s` | %s |\n", c, c.Symbol(), c.State(), escaped)
	}
	if *update {
		if err := os.WriteFile(docsFile, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(docsFile); err != nil || string(got) != text.String() {
		t.Errorf("%s is not what the table says: go test ./engine/sqlerr -run TestDocumentation -update (%v)", docsFile, err)
	}
}

const docsHead = `# Errors

Generated from ` + "`engine/sqlerr`" + `: the numbers of errors, notes and warnings with MySQL's names, the SQLSTATEs that
clients get with them, and MySQL's texts, in which ` + "`%s`" + ` and ` + "`%d`" + ` stand for what the error is about. Where there is
something else to say, the message is another one: above all with the numbers that tell of the group and its members
(1053, 1180, 1205, 1290, 3101), of limits of this server (1105, 1114, 1436, 3170), and of what is taken and does nothing
(1235). Numbers without a text never occur here, but from the grammar's library.

| Number | Name | SQLSTATE | Text |
|---|---|---|---|
`

// TestTable: numbers rise and are there once; each has a name and a state of five characters.
func TestTable(t *testing.T) {
	last, symbols := sqlerr.Code(0), map[string]bool{}
	for c := range sqlerr.All() {
		if c <= last {
			t.Errorf("%d comes after %d", c, last)
		}
		prefix, _, _ := strings.Cut(c.Symbol(), "_")
		if prefix != "ER" && prefix != "WARN" && prefix != "EE" || symbols[c.Symbol()] { // EE: of files
			t.Errorf("%d is called %q", c, c.Symbol())
		}
		if len(c.State()) != 5 {
			t.Errorf("%d: %q, %q", c, c.State(), c.Text())
		}
		last, symbols[c.Symbol()] = c, true
	}
}

// TestNames: a constant is named as MySQL names the number, and each stands in the table.
func TestNames(t *testing.T) {
	names := constants(t)
	for c := range sqlerr.All() {
		if c.Text() == "" { // only its state counts
			continue
		}
		want := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(c.Symbol(), "ER_"), "_", ""))
		if got := names[fmt.Sprint(uint16(c))]; strings.ToLower(got) != want {
			t.Errorf("%d, %s, is called %q", c, c.Symbol(), got)
		}
		delete(names, fmt.Sprint(uint16(c)))
	}
	for number, name := range names {
		t.Errorf("%s (%s) is not in the table", name, number)
	}
}

// constants are the names of the package's numbers.
func constants(t *testing.T) map[string]string {
	files, err := filepath.Glob("codes*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	names := map[string]string{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				for _, s := range g.Specs {
					v := s.(*ast.ValueSpec)
					names[v.Values[0].(*ast.BasicLit).Value] = v.Names[0].Name
				}
			}
		}
	}
	return names
}

func TestNew(t *testing.T) {
	for _, c := range []struct {
		err  *sqlerr.Error
		want string
	}{
		{sqlerr.New(sqlerr.NoSuchTable, "d", "t"), "ERROR 1146 (42S02): Table 'd.t' doesn't exist"},
		{sqlerr.New(sqlerr.EmptyQuery), "ERROR 1065 (42000): Query was empty"},
		{sqlerr.Newf(sqlerr.ErrorDuringCommit, "nobody knows %d", 1), "ERROR 1180 (08007): nobody knows 1"},
		{sqlerr.Newf(1, "not in the table"), "ERROR 1 (HY000): not in the table"},
		{sqlerr.Syntax(strings.Repeat("x", 100), 2), "ERROR 1064 (42000): You have an error in your SQL syntax; check the " +
			"manual that corresponds to your MySQL server version for the right syntax to use near '" +
			strings.Repeat("x", 80) + "' at line 2"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

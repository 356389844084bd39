package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
	_ "github.com/triremedb/trireme/engine/types/json"
)

// typer gives every expression the same type.
type typer struct{}

func (typer) TypeOf(ast.Expr, *record.Table) (*types.Type, error) {
	return &types.Type{Kind: types.KindBigInt}, nil
}

func (typer) Check(ast.Expr, *record.Table) error { return nil }

func (typer) Constant(ast.Expr, *types.Type) (types.Value, error) { return types.Null, nil }

// TestDefinitions runs scripts: create makes a table from its text and shows it; alter
// changes it, and says how. Errors and warnings are shown as clients see them.
func TestDefinitions(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		tables := map[string]*record.Table{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			env := &catalog.Env{Collation: types.CollationUTF8MB40900AI, Strict: !d.HasArg("loose"), NoEngineSubstitution: !d.HasArg("loose"),
				ForeignKeyChecks: !d.HasArg("nofk"), Typer: typer{},
				Table: func(_, name string) (*record.Table, error) { return tables[name], nil },
				Warn:  func(level string, e *sqlerr.Error) { fmt.Fprintf(&out, "%s %d: %s\n", level, e.Number, e.Message) }}
			fail := func(err error) string {
				var e *sqlerr.Error
				if errors.As(err, &e) {
					return out.String() + e.Error() + "\n"
				}
				return out.String() + "internal: " + err.Error() + "\n"
			}
			sts, err := ast.Parse(d.Input, 0)
			if err != nil {
				return fail(err)
			}
			switch st := sts[0].(type) {
			case *ast.CreateTable:
				def, err := catalog.Define(env, "test", st, nil)
				if err != nil {
					return fail(err)
				}
				number(def)
				tables[def.Name] = def
				out.WriteString(catalog.ShowCreateTable(def, 0) + "\n")
			case *ast.AlterTable:
				ch, err := catalog.Alter(env, tables[st.Table.Name], st.Specs)
				if err != nil {
					return fail(err)
				}
				describe(&out, ch)
				next := ch.Table
				next.Indexes = append(next.Indexes, ch.Add...)
				number(next)
				delete(tables, st.Table.Name)
				tables[next.Name] = next
				out.WriteString(catalog.ShowCreateTable(next, 0) + "\n")
			}
			return out.String()
		})
	})
}

// number gives indexes numbers, and a table without a primary key the hidden one, as the
// storage does.
func number(t *record.Table) {
	if len(t.Indexes) == 0 || t.Indexes[0].Name != "PRIMARY" && t.Indexes[0].Name != "GEN_CLUST_INDEX" {
		t.Columns = append(t.Columns, record.Column{ID: t.NextColumn, Name: "!row_id", Hidden: true, AddedIn: 1,
			Type: types.Type{Kind: types.KindBigInt, Unsigned: true, NotNull: true}})
		t.Indexes = append([]record.Index{{Name: "GEN_CLUST_INDEX", Unique: true, Parts: []record.Part{{Column: t.NextColumn}}}}, t.Indexes...)
		t.NextColumn++
	}
	next := uint64(1)
	for i := range t.Indexes {
		next = max(next, t.Indexes[i].ID+1)
	}
	for i := range t.Indexes {
		if t.Indexes[i].ID == 0 {
			t.Indexes[i].ID = next
			next++
		}
	}
}

func describe(out *strings.Builder, ch *catalog.Change) {
	switch {
	case ch.Rebuild:
		fmt.Fprintf(out, "rebuild: %s\n", ch.Reason)
	case ch.Same && len(ch.Add) == 0:
		out.WriteString("nothing\n")
	case !ch.Same:
		out.WriteString("in place\n")
	}
	for _, ix := range ch.Add {
		fmt.Fprintf(out, "build: %s\n", ix.Name)
	}
	for _, c := range ch.Checks {
		fmt.Fprintf(out, "check: %s\n", c.Name)
	}
	for _, name := range ch.ForeignKeys {
		fmt.Fprintf(out, "foreign key: %s\n", name)
	}
}

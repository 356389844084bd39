package plan

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
	_ "github.com/triremedb/trireme/engine/types/json"
)

// rig is a catalogue of tables without rows, and the environment of statements.
type rig struct {
	tables map[string]*record.Schema
	stats  map[string]*fakeStats
	views  map[string]*ViewSource
	vars   map[string]*types.Type
	nextID uint64
}

func newRig() *rig {
	return &rig{tables: map[string]*record.Schema{}, stats: map[string]*fakeStats{}, views: map[string]*ViewSource{}, nextID: 1000}
}

// fakeStats are estimates as a script gives them.
type fakeStats struct {
	rows     float64
	distinct map[[2]int]float64
	def      *record.Table
}

func (s *fakeStats) Rows() float64                            { return s.rows }
func (s *fakeStats) Distinct(index, parts int) float64        { return s.distinct[[2]int{index, parts}] }
func (s *fakeStats) RangeRows(int, ByteRange) (float64, bool) { return 0, false }
func (r *rig) SystemVariable(v *ast.Variable) (expr.Node, error) {
	return expr.NewConst(types.NewInt(1), bigint), nil
}
func (r *rig) UserVariable(name string) *types.Type { return r.vars[name] }

func (r *rig) LookupShared(schema, name string) (Source, error) { return r.Lookup(schema, name) }

func (r *rig) Lookup(schema, name string) (Source, error) {
	key := schema + "." + name
	if v := r.views[key]; v != nil {
		return Source{View: v}, nil
	}
	if schema == "information_schema" && name == "TABLES" {
		text := types.Type{Kind: types.KindVarChar, Length: 64, Collation: types.CollationUTF8MB40900AI}
		return Source{Virtual: &catalog.Virtual{Def: &record.Table{Schema: schema, Name: name, Columns: []record.Column{
			{ID: 1, Name: "TABLE_SCHEMA", Type: text}, {ID: 2, Name: "TABLE_NAME", Type: text},
		}}}}, nil
	}
	t := r.tables[key]
	if t == nil {
		return Source{}, sqlerr.Newf(sqlerr.NoSuchTable, "Table '%s' doesn't exist", key)
	}
	src := &TableSource{Keys: t}
	if s := r.stats[key]; s != nil {
		src.Stats = s
	}
	return Source{Table: src}, nil
}

// textTyper takes functional key parts for text.
type textTyper struct{}

func (textTyper) Check(ast.Expr, *record.Table) error { return nil }

func (textTyper) TypeOf(ast.Expr, *record.Table) (*types.Type, error) {
	return &types.Type{Kind: types.KindVarChar, Length: 20, Collation: types.CollationUTF8MB40900AI}, nil
}

func (textTyper) Constant(ast.Expr, *types.Type) (types.Value, error) {
	return types.Null, errors.New("no constants")
}

// define makes tables and views of CREATE statements.
func (r *rig) define(text string) error {
	list, err := ast.Parse(text, 0)
	if err != nil {
		return err
	}
	for _, st := range list {
		switch st := st.(type) {
		case *ast.CreateTable:
			def, err := catalog.Define(&catalog.Env{Collation: types.CollationUTF8MB40900AI, Strict: true, Typer: textTyper{}}, "test", st, nil)
			if err != nil {
				return err
			}
			if err := r.add(def); err != nil {
				return err
			}
		case *ast.CreateView:
			r.views["test."+st.View.Name] = &ViewSource{Schema: "test", Name: st.View.Name, Columns: st.Columns, Query: st.Query, QuerySchema: "test"}
		default:
			return fmt.Errorf("define: %T", st)
		}
	}
	return nil
}

// add completes a definition as the catalogue of the storage does.
func (r *rig) add(def *record.Table) error {
	r.nextID++
	def.ID, def.Version, def.RowVersion = r.nextID, 1, record.FirstRowVersion
	for i := range def.Columns {
		c := &def.Columns[i]
		if c.ID == 0 {
			c.ID = uint32(i + 1)
		}
		c.AddedIn = record.FirstRowVersion
		def.NextColumn = max(def.NextColumn, c.ID+1)
	}
	if i := slices.IndexFunc(def.Indexes, func(ix record.Index) bool { return ix.Name == "PRIMARY" }); i > 0 {
		ix := def.Indexes[i]
		def.Indexes = slices.Insert(slices.Delete(def.Indexes, i, i+1), 0, ix)
	} else if i < 0 {
		id := def.NextColumn
		def.Columns = append(def.Columns, record.Column{ID: id, Name: dict.HiddenColumn, Hidden: true, AddedIn: record.FirstRowVersion,
			Type: types.Type{Kind: types.KindBigInt, Unsigned: true, NotNull: true}})
		def.NextColumn++
		def.Indexes = slices.Insert(def.Indexes, 0, record.Index{Name: dict.HiddenIndex, Unique: true, Parts: []record.Part{{Column: id}}})
	}
	for i := range def.Indexes {
		r.nextID++
		def.Indexes[i].ID = r.nextID
	}
	s, err := record.Prepare(def)
	if err != nil {
		return err
	}
	r.tables["test."+def.Name] = s
	return nil
}

// setStats reads lines "table rows index:distinct,distinct ..".
func (r *rig) setStats(text string) error {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		t := r.tables["test."+f[0]]
		if t == nil {
			return fmt.Errorf("no table %s", f[0])
		}
		s := &fakeStats{distinct: map[[2]int]float64{}, def: t.Table}
		s.rows, _ = strconv.ParseFloat(f[1], 64)
		for _, d := range f[2:] {
			name, counts, _ := strings.Cut(d, ":")
			for i, c := range strings.Split(counts, ",") {
				n, _ := strconv.ParseFloat(c, 64)
				s.distinct[[2]int{indexNamed(t.Table, name), i + 1}] = n
			}
		}
		r.stats["test."+f[0]] = s
	}
	return nil
}

// env is the environment of a statement; args are a script's.
func (r *rig) env(d *datadriven.TestData) *Env {
	e := &Env{Catalog: r, Schema: "test", Mode: ModeOnlyFullGroupBy, Switches: DefaultSwitches, Variables: r}
	e.Options.Collation = types.CollationUTF8MB40900AI
	if d == nil {
		return e
	}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "off":
			for _, name := range a.Vals {
				e.Switches &^= SwitchNamed(name)
			}
		case "params":
			for _, v := range a.Vals {
				t := &types.Type{Kind: types.KindBigInt}
				if v == "text" {
					t = &types.Type{Kind: types.KindVarChar, Length: 10, Collation: types.CollationUTF8MB40900AI}
				}
				e.Options.ParamTypes = append(e.Options.ParamTypes, t)
			}
		case "partial-groups":
			e.Mode = 0
		case "noschema":
			e.Schema = ""
		}
	}
	return e
}

// plan plans the statement of a script and writes what came out.
func (r *rig) plan(d *datadriven.TestData) string {
	list, err := ast.Parse(d.Input, 0)
	if err != nil {
		return fmt.Sprintf("parse: %v\n", err)
	}
	var out strings.Builder
	switch st := list[0].(type) {
	case ast.Query:
		q, err := Select(r.env(d), st)
		if err != nil {
			return errorText(err)
		}
		if d.HasArg("columns") {
			for _, c := range q.Columns {
				fmt.Fprintf(&out, "%s: %s %s null=%v %s.%s.%s flags=%d\n", c.Name, c.Table, catalog.TypeText(c.Type), !c.Type.NotNull, c.Schema, c.OrgTable, c.OrgName, c.Flags)
			}
			return out.String()
		}
		if d.HasArg("uses") {
			for _, u := range q.Uses {
				fmt.Fprintf(&out, "%s.%s (%s) view=%q\n", u.Schema, u.Table, strings.Join(u.Columns, ","), u.View)
			}
			return out.String()
		}
		if d.HasArg("table") {
			return explainTable(q)
		}
		if d.HasArg("json") {
			return JSONTree(q.Root, Explained{Kind: "select"}) + "\n" + JSONBlock(q.Root, Explained{Kind: "select"}) + "\n"
		}
		if q.Point != nil {
			out.WriteString("point\n")
		}
		out.WriteString(Tree(q.Root, nil))
	default:
		c, err := ModifyRows(r.env(d), st)
		if err != nil {
			return errorText(err)
		}
		for _, t := range c.Targets {
			fmt.Fprintf(&out, "target %s: row key %d, columns %v from %d\n", t.Table.Alias, t.RowKey, t.Positions, t.First)
		}
		for _, s := range c.Sets {
			value := "DEFAULT"
			if s.Value != nil {
				value = expr.Text(s.Value)
			}
			fmt.Fprintf(&out, "set %d.%d = %s\n", s.Target, s.Column, value)
		}
		if c.Buffer {
			out.WriteString("buffer\n")
		}
		out.WriteString(Tree(c.Root, nil))
	}
	return out.String()
}

func errorText(err error) string {
	var e *sqlerr.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("error %d (%s): %s\n", e.Number, e.State, e.Message)
	}
	return fmt.Sprintf("error without a number: %v\n", err)
}

func TestPlans(t *testing.T) {
	datadriven.Walk(t, "testdata/plans", func(t *testing.T, path string) {
		r := newRig()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var err error
			switch d.Cmd {
			case "define":
				err = r.define(d.Input)
			case "stats":
				err = r.setStats(d.Input)
			case "plan":
				return r.plan(d)
			default:
				t.Fatalf("unknown command %s", d.Cmd)
			}
			if err != nil {
				return errorText(err)
			}
			return ""
		})
	})
}

var fixedSeed = flag.Int64("seed", 0, "seed of random tests; 0: another one each time")

// explainTable writes the traditional EXPLAIN as text, a line for each row.
func explainTable(q *Query) string {
	var b strings.Builder
	b.WriteString("id|select_type|table|type|possible_keys|key|key_len|ref|rows|filtered|Extra\n")
	for _, r := range Rows(q) {
		rows := "NULL"
		if r.Rows >= 0 {
			rows = strconv.FormatInt(r.Rows, 10)
		}
		fmt.Fprintf(&b, "%d|%s|%s|%s|%s|%s|%s|%s|%s|%.2f|%s\n", r.ID, r.SelectType, r.Table, r.Type, r.PossibleKeys, r.Key,
			r.KeyLen, r.Ref, rows, r.Filtered, r.Extra)
	}
	return b.String()
}

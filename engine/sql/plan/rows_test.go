package plan_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/exec"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/txn/txntest"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
)

// database runs plans on a storage engine.
type database struct {
	t     testing.TB
	s     *txn.Session
	keys  map[string]*record.Schema
	rows  map[string]float64
	x     *expr.Context
	files file.FS
}

func openDatabase(t testing.TB) *database {
	d := &database{t: t, keys: map[string]*record.Schema{}, rows: map[string]float64{}}
	d.files = file.OS(t.TempDir())
	eng, err := storage.Open(storage.Options{FS: d.files, Env: env.Real(), BufferPoolSize: 32 << 20, RedoCapacity: 64 << 20, LogBufferSize: 4 << 20})
	d.must(err)
	m, err := txn.NewManager(txn.Options{Env: env.Real(), Engine: eng, Log: txntest.NewLog(env.Real(), eng), FS: d.files})
	d.must(err)
	d.s = m.NewSession()
	t.Cleanup(func() {
		d.must(d.s.Close())
		d.must(m.Close())
		d.must(eng.Close())
	})
	d.x = &expr.Context{Now: time.Unix(1_700_000_000, 0), Env: env.Real(), DivPrecisionIncrement: 4, GroupConcatMaxLen: 1024, MaxAllowedPacket: 1 << 20}
	d.x.Mode = types.ModeDefault
	d.transaction(func() error {
		_, err := d.s.CreateSchema(dict.Schema{Name: "test", Collation: types.CollationUTF8MB40900AI}, nil)
		return err
	})
	return d
}

func (d *database) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *database) transaction(f func() error) {
	d.t.Helper()
	d.must(d.s.Begin(txn.BeginOptions{}))
	d.must(f())
	_, err := d.s.Commit(context.Background())
	d.must(err)
}

// table makes a table with n rows; value gives a column's text.
func (d *database) table(create string, n int, value func(column string, row int) string) {
	st, err := ast.Parse(create, 0)
	d.must(err)
	def, err := catalog.Define(&catalog.Env{Collation: types.CollationUTF8MB40900AI, Strict: true}, "test", st[0].(*ast.CreateTable), nil)
	d.must(err)
	d.transaction(func() error {
		def, err = d.s.CreateTable(def, nil)
		return err
	})
	d.transaction(func() error {
		o, err := d.s.Open("test", def.Name)
		if err != nil {
			return err
		}
		d.keys[def.Name] = o.Handle().Table().Schema
		d.rows[def.Name] = float64(n)
		for i := range n {
			row := make([]types.Value, len(def.Columns))
			for c := range def.Columns {
				if def.Columns[c].Hidden {
					continue
				}
				list, err := ast.Parse("SELECT "+value(def.Columns[c].Name, i), 0)
				d.must(err)
				e, err := expr.Bind(&expr.NoScope{}, list[0].(*ast.Select).Items[0].Expr)
				d.must(err)
				v, err := e.Value(d.x, nil, 0)
				d.must(err)
				v, err = d.x.Store(v, e.Type(), &def.Columns[c].Type)
				d.must(err)
				row[c] = v.Clone()
			}
			if err := d.s.Insert(o, row, true); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *database) LookupShared(schema, name string) (plan.Source, error) {
	return d.Lookup(schema, name)
}

func (d *database) Lookup(schema, name string) (plan.Source, error) {
	keys := d.keys[name]
	if keys == nil {
		return plan.Source{}, sqlerr.New(sqlerr.NoSuchTable, schema, name)
	}
	return plan.Source{Table: &plan.TableSource{Keys: keys, Stats: size(d.rows[name])}}, nil
}

// size is the statistics of a table of which only the number of rows is known.
type size float64

func (s size) Rows() float64                                 { return float64(s) }
func (s size) Distinct(int, int) float64                     { return 0 }
func (s size) RangeRows(int, plan.ByteRange) (float64, bool) { return 0, false }
func (d *database) env(switches plan.Switches, mode plan.Mode) *plan.Env {
	return &plan.Env{Catalog: d, Schema: "test", Options: expr.Options{Mode: types.ModeDefault}, Switches: switches, Mode: mode, Context: d.x}
}

// errTooLong says that a plan would take long.
var errTooLong = errors.New("too long")

// query runs a query and returns its rows as text, in the order given.
func (d *database) query(text string, switches plan.Switches) (rows []string, tree string, err error) {
	list, err := ast.Parse(text, 0)
	if err != nil {
		return nil, "", err
	}
	q, err := plan.Select(d.env(switches, 0), list[0].(ast.Query))
	if err != nil {
		return nil, "", err
	}
	tree = plan.Tree(q.Root, nil)
	if q.Root.Estimate().Cost > 50_000 {
		return nil, tree, errTooLong
	}
	t, err := exec.Build(q, exec.Options{})
	if err != nil {
		return nil, tree, err
	}
	d.must(d.s.Begin(txn.BeginOptions{}))
	defer func() { d.must(d.s.Rollback()) }()
	st := &exec.Transaction{Session: d.s}
	for _, pt := range q.Tables {
		o, err := d.s.Open("test", pt.Def.Name)
		d.must(err)
		st.Tables = append(st.Tables, o)
	}
	d.x.ResetStatement()
	x := &exec.Context{Expr: d.x, Storage: st, Env: env.Real(), FS: d.files, MaxRecursion: 1000}
	if err := t.Open(x); err != nil {
		return nil, tree, err
	}
	defer t.Close()
	b := types.NewBatch(plan.Types(q.Columns))
	for more := true; more; {
		if more, err = t.Next(b); err != nil {
			return nil, tree, err
		}
		for i := range b.Len() {
			var line []string
			for c := range b.Vecs {
				v := b.Vecs[c].Value(i)
				s := "NULL"
				if !v.IsNull() {
					s = string(types.AppendText(nil, v, b.Vecs[c].Type(), nil))
				}
				line = append(line, s)
			}
			rows = append(rows, strings.Join(line, "|"))
		}
	}
	return rows, tree, nil
}

// fill makes the tables of random queries: few values, many NULLs.
func (d *database) fill(rnd *rand.Rand) {
	number := func(n int) string {
		if rnd.Intn(6) == 0 {
			return "NULL"
		}
		return fmt.Sprint(rnd.Intn(n))
	}
	for i, n := range []int{15, 25, 8, 50} {
		name := string(rune('p' + i))
		keys := []string{"KEY a (a), KEY bc (b, c)", "KEY ab (a, b), UNIQUE KEY uid (u)", "KEY c (c)", "KEY a (a DESC, b), KEY s (s(2))"}[i]
		d.table(fmt.Sprintf("CREATE TABLE %s (id INT PRIMARY KEY, a INT, b INT, c INT NOT NULL, s VARCHAR(10), u BIGINT UNSIGNED, %s)", name, keys), n,
			func(column string, row int) string {
				switch column {
				case "id":
					return fmt.Sprint(row)
				case "u":
					return fmt.Sprint(row * 2)
				case "c":
					return fmt.Sprint(rnd.Intn(8))
				case "s":
					return []string{"NULL", "'a'", "'A'", "'ab'", "'b'", "'1'", "'02'"}[rnd.Intn(7)]
				}
				return number(10)
			})
	}
}

var rowsSeed = flag.Int64("rows.seed", 0, "seed of TestSwitches; 0: another one each time")

// TestSwitches: random queries give the same rows whatever rewrites and methods are
// used.
func TestSwitches(t *testing.T) {
	seed := time.Now().UnixNano()
	if *rowsSeed != 0 {
		seed = *rowsSeed
	}
	t.Logf("repeat with: go test -run TestSwitches -rows.seed %d", seed)
	rnd := rand.New(rand.NewSource(seed))
	d := openDatabase(t)
	d.fill(rnd)
	g := &generator{rnd: rnd}
	for end := time.Now().Add(race.Fewer(4*time.Second, time.Second)); time.Now().Before(end); {
		text, ordered := g.query()
		want, base, err := d.query(text, 0)
		if err == errTooLong {
			continue
		}
		for _, s := range switchings(rnd) {
			got, tree, err2 := d.query(text, s)
			if err2 == errTooLong {
				continue
			}
			if (err == nil) != (err2 == nil) {
				t.Fatalf("%s\nerror %v and with %v\n%v\nplans\n%s\n%s", text, err, s, err2, base, tree)
			}
			if err != nil {
				continue
			}
			l, r := append([]string(nil), want...), append([]string(nil), got...)
			if !ordered {
				sort.Strings(l)
				sort.Strings(r)
			}
			if strings.Join(l, "\n") != strings.Join(r, "\n") {
				t.Fatalf("%s\nwithout switches %d rows\n%s\n%s\nwith %v %d rows\n%s\n%s", text, len(l), strings.Join(l, "\n"), base, s, len(r), strings.Join(r, "\n"), tree)
			}
		}
	}
	t.Logf("%d queries", g.made)
}

// switchings are sets of switches: all, all but one, and any.
func switchings(rnd *rand.Rand) []plan.Switches {
	return []plan.Switches{
		plan.DefaultSwitches, plan.DefaultSwitches &^ (1 << rnd.Intn(16)), plan.Switches(rnd.Uint32()) & plan.DefaultSwitches,
	}
}

// generator writes queries.
type generator struct {
	rnd   *rand.Rand
	made  int
	alias int
}

func (g *generator) pick(list ...string) string { return list[g.rnd.Intn(len(list))] }
func (g *generator) chance(n int) bool          { return g.rnd.Intn(n) == 0 }

// source is a table of FROM with its columns, by qualified name.
type source struct{ text, alias string }

func (g *generator) source(depth int) source {
	g.alias++
	alias := fmt.Sprintf("t%d", g.alias)
	if depth > 0 && g.chance(4) {
		in := g.source(depth - 1)
		q := ""
		switch g.rnd.Intn(4) {
		case 0:
			q = fmt.Sprintf("SELECT %[2]s.id, %[2]s.a, %[2]s.b, %[2]s.c, %[2]s.s, %[2]s.u FROM %[1]s WHERE %[3]s", in.text, in.alias, g.cond(depth-1, in.alias))
		case 1:
			q = fmt.Sprintf("SELECT a AS id, a, MAX(b) AS b, COUNT(*) AS c, MIN(s) AS s, SUM(c) AS u FROM %s GROUP BY a", in.text)
		case 2:
			q = fmt.Sprintf("SELECT DISTINCT b AS id, a, b, c, s, c AS u FROM %s", in.text)
		default:
			o := g.source(0)
			q = fmt.Sprintf("SELECT id, a, b, c, s, u FROM %s UNION %s SELECT id, b, a, c, s, u FROM %s", in.text, g.pick("", "ALL"), o.text)
		}
		return source{fmt.Sprintf("(%s) %s", q, alias), alias}
	}
	return source{g.pick("p", "q", "r", "s") + " " + alias, alias}
}

func (g *generator) column(tables ...string) string {
	return g.pick(tables...) + "." + g.pick("id", "a", "b", "c", "a", "b", "u")
}

// cond writes a condition over the tables.
func (g *generator) cond(depth int, tables ...string) string {
	col := func() string { return g.column(tables...) }
	num := func() string { return fmt.Sprint(g.rnd.Intn(10)) }
	switch k := g.rnd.Intn(16); {
	case k < 3:
		return col() + g.pick(" = ", " = ", " < ", " >= ", " <=> ", " <> ") + num()
	case k < 6:
		return col() + g.pick(" = ", " = ", " < ", " <=> ") + col()
	case k == 6:
		return col() + g.pick(" IS NULL", " IS NOT NULL")
	case k == 7:
		return col() + " IN (" + num() + ", " + num() + ", NULL)"
	case k == 8:
		return col() + " BETWEEN " + num() + " AND " + num()
	case k == 9:
		return g.pick(tables...) + ".s " + g.pick("= 'a'", "LIKE 'a%'", "> 'A'", "= 1", "IN ('b', 'ab')")
	case k < 13 && depth > 0:
		return g.subquery(depth-1, tables...)
	case k == 13 && depth > 0:
		return "(" + g.cond(depth-1, tables...) + " OR " + g.cond(depth-1, tables...) + ")"
	case k == 14:
		return "COALESCE(" + col() + ", " + num() + ") = " + col()
	}
	return col() + " + 1 > " + num()
}

// subquery writes a condition with a query.
func (g *generator) subquery(depth int, tables ...string) string {
	in := g.source(depth)
	where := ""
	if !g.chance(3) {
		where = " WHERE " + g.cond(depth, in.alias)
		if g.chance(2) {
			where = " WHERE " + in.alias + "." + g.pick("a", "b", "id") + " = " + g.column(tables...) + " AND " + g.cond(depth, in.alias)
		}
	}
	col := in.alias + "." + g.pick("id", "a", "c")
	not := g.pick("", "", "NOT ")
	switch g.rnd.Intn(5) {
	case 0:
		return not + "EXISTS (SELECT 1 FROM " + in.text + where + ")"
	case 1:
		return g.column(tables...) + " " + not + "IN (SELECT " + col + " FROM " + in.text + where + ")"
	case 2:
		return g.column(tables...) + g.pick(" = ", " < ") + "(SELECT " + g.pick("MAX", "MIN", "COUNT") + "(" + col + ") FROM " + in.text + where + ")"
	case 3:
		return g.column(tables...) + g.pick(" > ANY ", " < ALL ", " = ANY ") + "(SELECT " + col + " FROM " + in.text + where + ")"
	}
	return g.column(tables...) + " " + not + "IN (SELECT " + col + " FROM " + in.text + where + " GROUP BY " + col + ")"
}

// query writes a query; ordered says that its rows come in one order only.
func (g *generator) query() (text string, ordered bool) {
	g.made++
	first := g.source(2)
	from, tables := first.text, []string{first.alias}
	for range g.rnd.Intn(4) {
		s := g.source(1)
		kind := g.pick(" JOIN ", " JOIN ", " LEFT JOIN ", " LEFT JOIN ", " RIGHT JOIN ", ", ")
		on := append(append([]string(nil), tables...), s.alias)
		tables = append(tables, s.alias)
		if kind == ", " {
			from = "(" + from + ") JOIN " + s.text + " ON TRUE"
			if g.chance(2) {
				continue
			}
			return g.finish(from, tables)
		}
		cond := s.alias + "." + g.pick("id", "a", "b") + " = " + g.column(on[:len(on)-1]...)
		if g.chance(3) {
			cond += " AND " + g.cond(0, on...)
		}
		from += kind + s.text + " ON " + cond
	}
	return g.finish(from, tables)
}

func (g *generator) finish(from string, tables []string) (text string, ordered bool) {
	text = " FROM " + from
	if !g.chance(4) {
		text += " WHERE " + g.cond(2, tables...)
		for g.chance(2) {
			text += " AND " + g.cond(1, tables...)
		}
	}
	switch g.rnd.Intn(6) {
	case 0:
		key := g.column(tables...)
		return "SELECT " + key + ", COUNT(*), SUM(" + g.column(tables...) + "), MAX(" + g.column(tables...) + ")" + text + " GROUP BY " + key +
			g.pick("", " HAVING COUNT(*) > 1") + " ORDER BY 1" + g.pick("", " DESC"), true
	case 1:
		return "SELECT " + g.pick("MIN", "MAX", "COUNT", "SUM") + "(" + g.column(tables...) + ")" + text, true
	case 2:
		return "SELECT DISTINCT " + g.column(tables...) + ", " + g.column(tables...) + text, false
	}
	cols := g.column(tables...)
	for _, t := range tables {
		cols += ", " + t + ".id"
	}
	if g.chance(2) {
		list := strings.Split(cols, ", ")
		text += " ORDER BY " + list[0] + g.pick("", " DESC")
		for i := range list[1:] {
			text += ", " + fmt.Sprint(i+2)
		}
		// What is selected is all that is ordered by: rows that tie are alike.
		return "SELECT " + cols + text + g.pick("", " LIMIT 5", " LIMIT 3 OFFSET 2"), true
	}
	if g.chance(6) {
		cols += ", (SELECT MAX(z.b) FROM q z WHERE z.a = " + g.column(tables...) + ")"
	}
	return "SELECT " + cols + text, false
}

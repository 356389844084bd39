package exec

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
	_ "github.com/triremedb/trireme/engine/types/json"
)

// rig runs plans that are written as text on a fake storage.
type rig struct {
	t     testing.TB
	store *memStorage
	x     *Context
	opt   Options
	subs  map[string]string // text of subqueries, by name

	tables []*plan.Table
	slots  map[int]*types.Type
	nSub   int

	spilled   int64
	interrupt bool // queries are run with interrupts before
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, store: &memStorage{tables: map[string]*memTable{}}, subs: map[string]string{}, slots: map[int]*types.Type{}}
	x := &expr.Context{
		Now: time.Date(2024, 2, 29, 12, 30, 45, 0, time.UTC), Env: env.Real(), DivPrecisionIncrement: 4,
		GroupConcatMaxLen: 1024, MaxAllowedPacket: 1 << 20, Collation: types.CollationUTF8MB40900AI,
	}
	x.Mode = types.ModeDefault
	r.x = &Context{Expr: x, Storage: r.store, Env: env.Real(), FS: file.OS(t.TempDir())}
	return r
}

// create makes a table from CREATE TABLE.
func (r *rig) create(sql string) error {
	st, err := ast.Parse(sql, 0)
	if err != nil {
		return err
	}
	def, err := catalog.Define(&catalog.Env{Collation: types.CollationUTF8MB40900AI}, "test", st[0].(*ast.CreateTable), nil)
	if err != nil {
		return err
	}
	def.ID = uint64(len(r.store.tables) + 1)
	for i := range def.Indexes {
		def.Indexes[i].ID = uint64(10*len(r.store.tables) + i + 1)
	}
	keys, err := record.Prepare(def)
	if err != nil {
		return err
	}
	r.store.tables[def.Name] = &memTable{def: def, keys: keys}
	return nil
}

// insert adds rows from INSERT.
func (r *rig) insert(sql string) error {
	st, err := ast.Parse(sql, 0)
	if err != nil {
		return err
	}
	in := st[0].(*ast.Insert)
	m := r.store.tables[in.Table.Name]
	for _, items := range in.Rows {
		var row []types.Value
		for i, e := range items {
			n, err := expr.Bind(&expr.NoScope{}, e)
			if err != nil {
				return err
			}
			v, err := n.Value(r.x.Expr, nil, 0)
			if err == nil {
				v, err = r.x.Expr.Store(v, n.Type(), &m.def.Columns[i].Type)
			}
			if err != nil {
				return err
			}
			row = append(row, v.Clone())
		}
		m.rows = append(m.rows, row)
	}
	return nil
}

// run builds and runs a plan, and gives its rows as text.
func (r *rig) run(text string) (string, error) {
	q, err := r.query(text)
	if err != nil {
		return "", err
	}
	t, err := Build(q, r.opt)
	if err != nil {
		return "", err
	}
	var first string
	for round := range 2 { // a tree may be used again
		r.x.Expr.ResetStatement()
		out, err := r.rows(t)
		if err != nil {
			return out, err
		}
		if round > 0 && out != first {
			return "", fmt.Errorf("the second run gives other rows:\n%s", out)
		}
		first = out
	}
	if r.opt.Analyze {
		first += r.meters(t, q.Root, 0)
	}
	return first, nil
}

func (r *rig) rows(t *Tree) (string, error) {
	defer t.Close()
	if err := t.Open(r.x); err != nil {
		return "", err
	}
	var s strings.Builder
	b := types.NewBatch(t.Schema())
	for more := true; more; {
		var err error
		if more, err = t.Next(b); err != nil {
			return s.String(), err
		}
		for i := range b.Len() {
			for c, v := range b.Row(nil, i) {
				if c > 0 {
					s.WriteString(" ")
				}
				s.WriteString(show(v, b.Vecs[c].Type()))
			}
			s.WriteString("\n")
		}
	}
	if err := t.Close(); err != nil {
		return "", err
	}
	if used := t.run.memory.Used(); used != 0 {
		return "", fmt.Errorf("%d bytes are still counted", used)
	}
	return s.String(), nil
}

func show(v types.Value, t *types.Type) string {
	if v.IsNull() {
		return "NULL"
	}
	if t.IsBlob() {
		return fmt.Sprintf("%x", v.Bytes())
	}
	return string(types.AppendText(nil, v, t, nil))
}

func (r *rig) meters(t *Tree, n plan.Node, depth int) string {
	m, ok := t.Meter(n)
	if !ok {
		return ""
	}
	s := fmt.Sprintf("%s%T rows=%d loops=%d\n", strings.Repeat("  ", depth), n, m.Rows, m.Loops)
	for _, c := range n.Children() {
		s += r.meters(t, c, depth+1)
	}
	return s
}

// query reads a plan: one node a line, inputs below it further to the right.
func (r *rig) query(text string) (q *plan.Query, err error) {
	defer func() {
		if e, ok := recover().(error); ok {
			err = e
		} else if e := recover(); e != nil {
			panic(e)
		}
	}()
	r.tables, r.nSub = nil, 0
	clear(r.slots)
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	p := &planText{r: r, lines: lines}
	root := p.node(0)
	if len(p.lines) > 0 {
		return nil, fmt.Errorf("what is %q", p.lines[0])
	}
	return &plan.Query{Root: root, Columns: root.Columns(), Tables: r.tables, Slots: 10, Subqueries: r.nSub}, nil
}

// scope resolves the columns of an input, outer.N as a slot and sub.NAME as a
// subquery.
type scope struct {
	expr.NoScope
	p    *planText
	cols []plan.Column
}

func (s *scope) Column(ref *ast.ColumnRef) (expr.Node, error) {
	switch ref.Table {
	case "outer":
		n, err := strconv.Atoi(strings.TrimPrefix(ref.Name, "s"))
		if err != nil || s.p.r.slots[n] == nil {
			return nil, fmt.Errorf("no slot %s", ref.Name)
		}
		return &plan.Outer{Slot: n, T: *s.p.r.slots[n], Name: ref.Name}, nil
	case "sub":
		return s.p.subquery(ref.Name, s.cols), nil
	}
	for i, c := range s.cols {
		if c.Name == ref.Name && (ref.Table == "" || ref.Table == c.Table) {
			return expr.NewColumn(i, c.Type, c.Name), nil
		}
	}
	return nil, fmt.Errorf("no column %s.%s", ref.Table, ref.Name)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (p *planText) expr(text string, cols []plan.Column) expr.Node {
	e, err := catalog.ParseExpr(strings.TrimSpace(text))
	must(err)
	return p.bind(e, cols)
}

func (p *planText) bind(e ast.Expr, cols []plan.Column) expr.Node {
	n, err := expr.Bind(&scope{p: p, cols: cols}, e)
	must(err)
	return n
}

func (p *planText) exprs(text string, cols []plan.Column) []expr.Node {
	var list []expr.Node
	for _, t := range splitList(text) {
		list = append(list, p.expr(t, cols))
	}
	return list
}

// splitList splits at commas outside of parentheses.
func splitList(text string) []string {
	var list []string
	depth, from := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			list = append(list, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
	}
	if s := strings.TrimSpace(text[from:]); s != "" {
		list = append(list, s)
	}
	return list
}

func errorText(err error) string {
	var e *sqlerr.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("ERROR %d (%s): %s\n", e.Number, e.State, e.Message)
	}
	return "error: " + err.Error() + "\n"
}

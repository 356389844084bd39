package exec

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/types"
)

// planText reads a plan. A line is
//
//	kind arguments; clause arguments; …
type planText struct {
	r     *rig
	lines []string
	works map[int][]plan.Column
}

func indent(s string) int { return len(s) - len(strings.TrimLeft(s, " ")) }

// line is a node's line, taken apart.
type line struct {
	kind, args string
	clauses    map[string]string
}

func (p *planText) node(depth int) plan.Node {
	if len(p.lines) == 0 {
		panic(fmt.Errorf("a node is missing"))
	}
	text := p.lines[0]
	if indent(text) < depth {
		panic(fmt.Errorf("an input is missing before %q", text))
	}
	depth = indent(text)
	p.lines = p.lines[1:]
	parts := strings.Split(strings.TrimSpace(text), ";")
	l := line{clauses: map[string]string{}}
	l.kind, l.args, _ = strings.Cut(parts[0], " ")
	for _, c := range parts[1:] {
		word, rest, _ := strings.Cut(strings.TrimSpace(c), " ")
		l.clauses[word] = rest
		if rest == "" {
			l.clauses[word] = " "
		}
	}
	switch l.kind {
	case "scan", "get":
		return p.scan(l)
	case "values":
		return p.values(l)
	case "worktable":
		id, _ := strconv.Atoi(l.args)
		return &plan.WorkTable{Output: plan.Output{Cols: p.works[id]}, ID: id}
	case "union", "except", "intersect":
		return p.setOperation(l, depth)
	case "recursive":
		return p.recursive(l, depth)
	case "hashjoin", "loop":
		return p.join(l, depth)
	}
	in := p.node(depth + 1)
	return p.unary(l, in)
}

func (p *planText) output(cols []plan.Column) plan.Output { return plan.Output{Cols: cols} }

// tableOf is "name" or "name alias".
func (p *planText) tableOf(args string) (*plan.Table, *memTable) {
	name, alias, _ := strings.Cut(args, " ")
	m := p.r.store.tables[name]
	if m == nil {
		panic(fmt.Errorf("no table %q", name))
	}
	if alias == "" {
		alias = name
	}
	t := &plan.Table{Number: len(p.r.tables), Def: m.def, Keys: m.keys, Alias: alias}
	p.r.tables = append(p.r.tables, t)
	return t, m
}

func tableColumns(t *plan.Table, rowKey bool) (cols []plan.Column, fetch []int) {
	for i := range t.Def.Columns {
		c := &t.Def.Columns[i]
		if c.Hidden {
			continue
		}
		cols = append(cols, plan.Column{Name: c.Name, Table: t.Alias, Type: &c.Type})
		fetch = append(fetch, i)
	}
	if rowKey {
		cols = append(cols, plan.Column{Name: "rowkey", Table: t.Alias, Type: rowKeyType})
	}
	return cols, fetch
}

func indexOf(t *plan.Table, name string) int {
	for i := range t.Def.Indexes {
		if strings.EqualFold(t.Def.Indexes[i].Name, name) {
			return i
		}
	}
	panic(fmt.Errorf("no index %q", name))
}

func (p *planText) keyValues(text string, cols []plan.Column) []plan.KeyValue {
	var keys []plan.KeyValue
	for _, t := range splitList(text) {
		t, safe := strings.CutPrefix(t, "<=> ")
		keys = append(keys, plan.KeyValue{Expr: p.expr(t, cols), NullSafe: safe})
	}
	return keys
}

func (p *planText) scan(l line) plan.Node {
	t, _ := p.tableOf(l.args)
	_, rowKey := l.clauses["rowkey"]
	cols, fetch := tableColumns(t, rowKey)
	var filter expr.Node
	if w := l.clauses["where"]; w != "" {
		filter = p.expr(w, cols)
	}
	var lk *plan.Lock
	if _, ok := l.clauses["lock"]; ok {
		lk = &plan.Lock{Mode: lock.RecordX}
	}
	index := 0
	if name := l.clauses["index"]; name != "" {
		index = indexOf(t, name)
	}
	if l.kind == "get" {
		return &plan.PointGet{Output: p.output(cols), Table: t, Index: index, Key: p.keyValues(l.clauses["key"], nil),
			Fetch: fetch, RowKey: rowKey, Filter: filter, Lock: lk}
	}
	a := &plan.Access{Keys: t.Keys, Index: index}
	if key := l.clauses["key"]; key != "" {
		var s plan.Span
		for _, k := range p.keyValues(key, nil) {
			s.Points = append(s.Points, []plan.KeyValue{k})
		}
		a.Spans = []plan.Span{s}
	}
	if key := l.clauses["in"]; key != "" {
		a.Spans = []plan.Span{{Points: [][]plan.KeyValue{p.keyValues(key, nil)}}}
	}
	if bounds := l.clauses["between"]; bounds != "" {
		k := p.keyValues(bounds, nil)
		if a.Spans == nil {
			a.Spans = []plan.Span{{}}
		}
		a.Spans[0].Interval = &plan.Interval{Low: k[0], High: k[1]}
	}
	_, back := l.clauses["backward"]
	return &plan.TableScan{Output: p.output(cols), Table: t, Access: a, Backward: back, Fetch: fetch,
		RowKey: rowKey, Filter: filter, Lock: lk}
}

// values is "a, b; rows (1, 2), (3, 4)".
func (p *planText) values(l line) plan.Node {
	n := &plan.Values{}
	for _, row := range splitList(l.clauses["rows"]) {
		n.Rows = append(n.Rows, p.exprs(strings.Trim(row, "()"), nil))
	}
	for i, name := range splitList(l.args) {
		n.Cols = append(n.Cols, plan.Column{Name: name, Type: wideType(n.Rows, i)})
	}
	return n
}

// wideType is the type of a column of rows, NULL allowed.
func wideType(rows [][]expr.Node, i int) *types.Type {
	t := types.Type{Kind: types.KindBigInt}
	for _, row := range rows {
		if r := row[i].Type(); r.Kind != types.KindNull {
			t = *r
			t.NotNull = false
			if t.Length < 100 {
				t.Length = 100
			}
			break
		}
	}
	return &t
}

func (p *planText) setOperation(l line, depth int) plan.Node {
	n := &plan.SetOperation{Kind: map[string]plan.SetKind{"union": plan.Union, "except": plan.Except, "intersect": plan.Intersect}[l.kind]}
	n.All = l.args == "all"
	for len(p.lines) > 0 && indent(p.lines[0]) > depth {
		n.Inputs = append(n.Inputs, p.node(depth+1))
	}
	n.Cols = n.Inputs[0].Columns()
	return n
}

func (p *planText) recursive(l line, depth int) plan.Node {
	id, _ := strconv.Atoi(l.args)
	n := &plan.RecursiveCTE{ID: id}
	_, n.Distinct = l.clauses["distinct"]
	if c := l.clauses["limit"]; c != "" {
		n.Limit = p.expr(c, nil)
	}
	n.Seed = p.node(depth + 1)
	n.Cols = n.Seed.Columns()
	if p.works == nil {
		p.works = map[int][]plan.Column{}
	}
	p.works[id] = n.Cols
	n.Recursive = p.node(depth + 1)
	return n
}

var kinds = map[string]plan.JoinKind{
	"inner": plan.InnerJoin, "left": plan.LeftJoin, "semi": plan.SemiJoin, "anti": plan.AntiJoin, "nullanti": plan.NullAwareAntiJoin,
}

// joinColumns are the columns of a join's output and of its condition.
func joinColumns(kind plan.JoinKind, left, right []plan.Column) (out, both []plan.Column) {
	both = append(both, left...)
	for _, c := range right {
		if kind == plan.LeftJoin {
			t := *c.Type
			t.NotNull = false
			c.Type = &t
		}
		both = append(both, c)
	}
	if kind == plan.InnerJoin || kind == plan.LeftJoin {
		return both, both
	}
	return left, both
}

func (p *planText) join(l line, depth int) plan.Node {
	kind := kinds[l.args]
	left := p.node(depth + 1)
	var bindings []plan.Binding
	if b := l.clauses["bind"]; b != "" {
		bindings = p.bindings(b, left.Columns())
	}
	right := p.node(depth + 1)
	out, both := joinColumns(kind, left.Columns(), right.Columns())
	var cond expr.Node
	if w := l.clauses["where"]; w != "" {
		cond = p.expr(w, both)
	}
	if l.kind == "loop" {
		return &plan.NestedLoopJoin{Output: p.output(out), Kind: kind, Left: left, Right: right, Condition: cond, Bindings: bindings}
	}
	n := &plan.HashJoin{Output: p.output(out), Kind: kind, Left: left, Right: right, Condition: cond}
	_, n.BuildLeft = l.clauses["buildleft"]
	for _, on := range splitList(l.clauses["on"]) {
		e, err := catalog.ParseExpr(on)
		must(err)
		b := e.(*ast.Binary)
		n.LeftKeys = append(n.LeftKeys, p.bind(b.Left, left.Columns()))
		n.RightKeys = append(n.RightKeys, p.bind(b.Right, right.Columns()))
		n.NullSafe = append(n.NullSafe, b.Op == ast.OpNullEq)
	}
	return n
}

// bindings is "slot = expression, …".
func (p *planText) bindings(text string, cols []plan.Column) []plan.Binding {
	var list []plan.Binding
	for _, b := range splitList(text) {
		slot, e, _ := strings.Cut(b, "=")
		n, err := strconv.Atoi(strings.TrimSpace(slot))
		must(err)
		x := p.expr(e, cols)
		list = append(list, plan.Binding{Slot: n, Expr: x})
		p.r.slots[n] = x.Type()
	}
	return list
}

func (p *planText) sortKeys(text string, cols []plan.Column) []plan.SortKey {
	var keys []plan.SortKey
	for _, k := range splitList(text) {
		k, desc := strings.CutSuffix(k, " desc")
		keys = append(keys, plan.SortKey{Expr: p.expr(k, cols), Desc: desc})
	}
	return keys
}

func (p *planText) unary(l line, in plan.Node) plan.Node {
	cols := in.Columns()
	count := func(s string) expr.Node {
		if s == "" {
			return nil
		}
		return p.expr(s, nil)
	}
	out := p.output(cols)
	switch l.kind {
	case "filter":
		return &plan.Filter{Output: out, Input: in, Predicate: p.expr(l.args, cols)}
	case "project":
		n := &plan.Project{Input: in}
		for _, item := range splitList(l.args) {
			e, name, _ := strings.Cut(item, " as ")
			x := p.expr(e, cols)
			n.Exprs = append(n.Exprs, x)
			if name == "" {
				name = e
			}
			n.Cols = append(n.Cols, plan.Column{Name: name, Type: x.Type()})
		}
		return n
	case "limit":
		_, all := l.clauses["all"]
		return &plan.Limit{Output: out, Input: in, Count: count(l.args), Offset: count(l.clauses["offset"]), CountAll: all}
	case "sort":
		return &plan.Sort{Output: out, Input: in, Keys: p.sortKeys(l.args, cols)}
	case "topn":
		return &plan.TopN{Output: out, Input: in, Count: count(l.args), Offset: count(l.clauses["offset"]), Keys: p.sortKeys(l.clauses["by"], cols)}
	case "distinct":
		return &plan.Distinct{Output: out, Input: in}
	case "materialize":
		id, _ := strconv.Atoi(l.args)
		n := &plan.Materialize{Output: out, ID: id, Input: in}
		for _, s := range splitList(l.clauses["slots"]) {
			slot, err := strconv.Atoi(s)
			must(err)
			n.Slots = append(n.Slots, slot)
		}
		return n
	case "hashagg", "streamagg":
		return p.aggregate(l, in)
	case "lookup":
		return p.lookup(l, in)
	}
	panic(fmt.Errorf("what is %q", l.kind))
}

// aggregate is "hashagg groups; of functions".
func (p *planText) aggregate(l line, in plan.Node) plan.Node {
	groups := p.exprs(l.args, in.Columns())
	var cols []plan.Column
	for i, g := range groups {
		t := *g.Type()
		t.NotNull = false
		cols = append(cols, plan.Column{Name: splitList(l.args)[i], Type: &t})
	}
	var aggs []plan.Aggregate
	for _, text := range splitList(l.clauses["of"]) {
		e, err := catalog.ParseExpr(text)
		must(err)
		a := e.(*ast.Aggregate)
		var args []expr.Node
		for _, arg := range a.Args {
			if _, star := arg.(*ast.Star); !star {
				args = append(args, p.bind(arg, in.Columns()))
			}
		}
		var order []expr.AggregateOrder
		for _, o := range a.OrderBy {
			order = append(order, expr.AggregateOrder{Key: p.bind(o.Expr, in.Columns()), Desc: o.Desc})
		}
		call, err := expr.NewBinder(&expr.NoScope{}).NewAggregate(a.Name, args, order, nil, a.Distinct)
		must(err)
		aggs = append(aggs, plan.Aggregate{Call: call})
		cols = append(cols, plan.Column{Name: text, Type: call.Type()})
	}
	_, rollup := l.clauses["rollup"]
	if l.kind == "streamagg" {
		return &plan.StreamAggregate{Output: p.output(cols), Input: in, Groups: groups, Aggregates: aggs}
	}
	return &plan.HashAggregate{Output: p.output(cols), Input: in, Groups: groups, Aggregates: aggs, Rollup: rollup}
}

// lookup is "lookup kind; in table alias; index name; key values; where …; on …".
func (p *planText) lookup(l line, left plan.Node) plan.Node {
	t, _ := p.tableOf(l.clauses["in"])
	right, fetch := tableColumns(t, false)
	n := &plan.IndexLookupJoin{Kind: kinds[l.args], Left: left, Table: t, Fetch: fetch}
	out, both := joinColumns(n.Kind, left.Columns(), right)
	n.Cols = out
	n.Index = indexOf(t, l.clauses["index"])
	n.Key = p.keyValues(l.clauses["key"], left.Columns())
	ix := t.Keys.Keys[n.Index]
	n.Unique = ix.Unique && len(n.Key) == len(ix.Parts)
	if w := l.clauses["where"]; w != "" {
		n.Filter = p.expr(w, right)
	}
	if w := l.clauses["on"]; w != "" {
		n.Condition = p.expr(w, both)
	}
	return n
}

// subquery makes the node of a subquery that a script has defined:
//
//	kind; bind slot = expression; operands list; op =
//	  plan
func (p *planText) subquery(name string, cols []plan.Column) expr.Node {
	text, ok := p.r.subs[name]
	if !ok {
		panic(fmt.Errorf("no subquery %q", name))
	}
	head, body, _ := strings.Cut(text, "\n")
	clauses := map[string]string{}
	parts := strings.Split(head, ";")
	for _, c := range parts[1:] {
		word, rest, _ := strings.Cut(strings.TrimSpace(c), " ")
		clauses[word] = rest
	}
	s := &plan.Subquery{Number: p.r.nSub, T: types.Type{Kind: types.KindBigInt}}
	p.r.nSub++
	s.Kind = map[string]plan.SubqueryKind{"scalar": plan.ScalarSubquery, "exists": plan.ExistsSubquery, "any": plan.AnySubquery,
		"all": plan.AllSubquery, "row": plan.RowSubquery}[parts[0]]
	if b := clauses["bind"]; b != "" {
		s.Bindings = p.bindings(b, cols)
		for _, b := range s.Bindings {
			s.Slots = append(s.Slots, b.Slot)
		}
	}
	inner := &planText{r: p.r, lines: strings.Split(strings.TrimRight(body, "\n"), "\n")}
	s.Root = inner.node(0)
	if s.Kind == plan.ScalarSubquery {
		s.T = *s.Root.Columns()[0].Type
		s.T.NotNull = false
	}
	if ops := clauses["operands"]; ops != "" {
		s.Operands = p.exprs(ops, cols)
		p.compare(s, clauses["op"])
	}
	return s
}

// compare makes a subquery's comparison of its operands with its columns.
func (p *planText) compare(s *plan.Subquery, op string) {
	var both []plan.Column
	var conds, left []string
	for i, o := range s.Operands {
		both = append(both, plan.Column{Name: fmt.Sprintf("l%d", i), Type: o.Type()})
		left = append(left, both[i].Name)
	}
	for i, c := range s.Root.Columns() {
		both = append(both, plan.Column{Name: fmt.Sprintf("r%d", i), Type: c.Type})
		conds = append(conds, fmt.Sprintf("l%d %s r%d", i, op, i))
	}
	s.Compare = p.expr(strings.Join(conds, " and "), both)
	s.Equal = op == "="
	s.OperandKeys = p.exprs(strings.Join(left, ","), both)
	s.RowKeys = p.exprs(strings.Join(left, ","), renamed(both[len(s.Operands):]))
}

// renamed gives the columns the names l0, l1, …
func renamed(cols []plan.Column) []plan.Column {
	list := append([]plan.Column(nil), cols...)
	for i := range list {
		list[i].Name = fmt.Sprintf("l%d", i)
	}
	return list
}

package plan

import (
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/types"
)

// windowPass is what is computed in one go over rows in one order: functions with the
// same partition and order, whose frames may differ. A pass whose order is the beginning
// of the one before needs no sort.
type windowPass struct {
	over  *window
	calls []windowCall
	// keys are the order of its rows.
	keys []windowKey
	sort bool
}

// windowKey is a sort key over the statement's columns.
type windowKey struct {
	expr ast.Expr
	desc bool
}

// windowPasses sorts window functions into passes: those with the longest orders first,
// each followed by those that its order serves, and the one that is the order of ORDER
// BY last.
func (p *planner) windowPasses(b *block, calls []windowCall) []windowPass {
	var passes []windowPass
	for _, c := range calls {
		i := slices.IndexFunc(passes, func(o windowPass) bool { return p.sameRows(o.over, c.over) })
		if i < 0 {
			i = len(passes)
			passes = append(passes, windowPass{over: c.over})
		}
		passes[i].calls = append(passes[i].calls, c)
	}
	slices.SortStableFunc(passes, func(a, b windowPass) int {
		return len(b.over.partition) + len(b.over.order) - len(a.over.partition) - len(a.over.order)
	})
	var groups [][]windowPass
next:
	for _, w := range passes {
		for i := range groups {
			if k := p.servedBy(w.over, groups[i][0].keys); k != nil {
				w.keys = k
				groups[i] = append(groups[i], w)
				continue next
			}
		}
		w.keys, w.sort = p.passKeys(w.over), true
		groups = append(groups, []windowPass{w})
	}
	if len(b.order) > 0 {
		slices.SortStableFunc(groups, func(a, c []windowPass) int {
			return b2i(p.ordersBlock(b, a[0].keys)) - b2i(p.ordersBlock(b, c[0].keys))
		})
	}
	return slices.Concat(groups...)
}

// sameRows reports whether two windows have the same partitions in the same order.
func (p *planner) sameRows(a, b *window) bool {
	return a == b || slices.EqualFunc(a.partition, b.partition, p.same) && slices.EqualFunc(a.order, b.order, p.sameOrder)
}

// passKeys are the keys by which the rows of a window are sorted. What is partitioned by
// need not be ordered by.
func (p *planner) passKeys(w *window) []windowKey {
	keys := make([]windowKey, 0, len(w.partition)+len(w.order))
	for _, e := range w.partition {
		if !p.keyOf(keys, e) {
			keys = append(keys, windowKey{e, false})
		}
	}
	for _, o := range w.order {
		if !p.keyOf(keys, o.Expr) {
			keys = append(keys, windowKey{o.Expr, o.Desc})
		}
	}
	return keys
}

func (p *planner) keyOf(keys []windowKey, e ast.Expr) bool {
	return slices.ContainsFunc(keys, func(k windowKey) bool { return p.same(k.expr, e) })
}

// servedBy returns the keys of a window if rows in the order of keys are in its order
// too: the partition's keys come first, in whatever order, and then those of ORDER BY.
func (p *planner) servedBy(w *window, keys []windowKey) []windowKey {
	want := p.passKeys(w)
	if len(want) > len(keys) {
		return nil
	}
	parts := 0
	for parts < len(want) && slices.ContainsFunc(w.partition, func(e ast.Expr) bool { return p.same(e, want[parts].expr) }) {
		parts++
	}
	for i, k := range keys[:len(want)] {
		switch {
		case i < parts && !p.keyOf(want[:parts], k.expr),
			i >= parts && (k.desc != want[i].desc || !p.same(k.expr, want[i].expr)):
			return nil
		}
	}
	return keys[:len(want):len(want)]
}

// ordersBlock reports whether rows in the order of keys are in the order of ORDER BY.
func (p *planner) ordersBlock(b *block, keys []windowKey) bool {
	if b.distinct || len(b.order) > len(keys) {
		return false
	}
	for i, k := range b.order {
		if k.desc != keys[i].desc || !p.same(k.expr, keys[i].expr) {
			return false
		}
	}
	return true
}

// orderServes reports whether rows in the order of ORDER BY are in the order of keys.
func (p *planner) orderServes(b *block, keys []windowKey) bool {
	if len(keys) > len(b.order) {
		return false
	}
	for i, k := range keys {
		if k.desc != b.order[i].desc || !p.same(k.expr, b.order[i].expr) {
			return false
		}
	}
	return true
}

// passOrder is the order of the first pass, if it is by columns alone, as the tables
// below may have it; any says that equal rows have only to be together.
func (f *blockPlan) passOrder() (list []orderColumn, any bool) {
	if f.b.grouped {
		return nil, false
	}
	w := &f.passes[0]
	for _, k := range w.keys {
		id, ok := f.p.isColumn(k.expr)
		if !ok {
			return nil, false
		}
		list = append(list, orderColumn{id, k.desc})
	}
	return list, len(f.passes) == 1 && len(w.over.order) == 0
}

// windows builds the passes of window functions.
func (f *blockPlan) windows(s *sub) (*sub, error) {
	if len(f.passes) == 0 {
		return s, nil
	}
	// The tables gave the first pass's order, or a grouping that of ORDER BY.
	ready := s.ordered && (!f.b.grouped || f.p.orderServes(f.b, f.passes[0].keys))
	var err error
	for i := range f.passes {
		w := &f.passes[i]
		n := &windowBuilder{f: f, w: w, in: s}
		if s, err = n.build(w.sort && !(i == 0 && ready)); err != nil {
			return nil, err
		}
	}
	// The last group of passes began with the longest order.
	first := len(f.passes) - 1
	for first > 0 && !f.passes[first].sort {
		first--
	}
	_, together := f.passOrder()
	s.ordered = f.p.ordersBlock(f.b, f.passes[first].keys) && !(ready && together)
	return s, nil
}

// windowBuilder builds one pass. What its functions read that is no column yet is
// computed below the sort, once for each row.
type windowBuilder struct {
	f     *blockPlan
	w     *windowPass
	in    *sub
	exprs []expr.Node // columns beside those of in
	cols  []Column
	of    []ast.Expr // what they are made of
}

// column returns the column of the pass's input that has the value of b, which was made
// of e.
func (n *windowBuilder) column(b expr.Node, e ast.Expr) int {
	if c, ok := b.(*expr.Column); ok {
		return c.Position()
	}
	first := len(n.in.node.Columns())
	for i, o := range n.of {
		if n.exprs[i].Type().Equal(b.Type()) && n.f.p.same(o, e) {
			return first + i
		}
	}
	n.exprs, n.of = append(n.exprs, b), append(n.of, e)
	n.cols = append(n.cols, Column{Name: n.f.p.text(e), Type: b.Type()})
	return first + len(n.exprs) - 1
}

// key is column for keys; -1 for one that is the same for all rows.
func (n *windowBuilder) key(e ast.Expr) (int, error) {
	b, err := n.f.p.bind(n.in, e)
	if err != nil || expr.IsConst(b) {
		return -1, err
	}
	return n.column(b, e), nil
}

func (n *windowBuilder) build(sort bool) (*sub, error) {
	p, w := n.f.p, n.w
	node := &Window{}
	keys := make([]int, len(w.keys))
	var err error
	for i, k := range w.keys {
		if keys[i], err = n.key(k.expr); err != nil {
			return nil, err
		}
	}
	at := func(e ast.Expr) int {
		return keys[slices.IndexFunc(w.keys, func(k windowKey) bool { return p.same(k.expr, e) })]
	}
	for _, e := range w.over.partition {
		if c := at(e); c >= 0 {
			node.Partition = append(node.Partition, c)
		}
	}
	for _, o := range w.over.order {
		if c := at(o.Expr); c >= 0 {
			node.Order = append(node.Order, c)
		}
	}
	for i := range w.calls {
		c, err := n.call(&w.calls[i])
		if err != nil {
			return nil, err
		}
		node.Calls = append(node.Calls, c)
	}
	s := n.project()
	if sort {
		var sortKeys []SortKey
		cols := s.node.Columns()
		for i, k := range w.keys {
			if c := keys[i]; c >= 0 {
				sortKeys = append(sortKeys, SortKey{expr.NewColumn(c, cols[c].Type, columnText(&cols[c])), k.desc})
			}
		}
		if s, err = p.sorted(s, sortKeys, nil, nil, -1, false); err != nil {
			return nil, err
		}
	}
	ids := slices.Clone(s.layout.ids)
	for len(ids) < len(s.node.Columns()) {
		ids = append(ids, -1)
	}
	node.Input, node.Cols = s.node, slices.Clone(s.node.Columns())
	for i := range w.calls {
		m := p.cols[w.calls[i].id].meta
		m.Type = n.f.callType(&node.Calls[i], node.Cols, p.cols[w.calls[i].id])
		node.Cols = append(node.Cols, m)
		ids = append(ids, w.calls[i].id)
	}
	node.Est = s.node.Estimate()
	node.Est.Cost += node.Est.Rows * costOut * float64(1+len(w.calls))
	return &sub{node: node, layout: newLayout(ids)}, nil
}

// project adds the columns that functions and keys need.
func (n *windowBuilder) project() *sub {
	if len(n.exprs) == 0 {
		return n.in
	}
	cols := slices.Clone(n.in.node.Columns())
	exprs := make([]expr.Node, 0, len(cols)+len(n.exprs))
	for i := range cols {
		exprs = append(exprs, expr.NewColumn(i, cols[i].Type, columnText(&cols[i])))
	}
	ids := slices.Clone(n.in.layout.ids)
	for range len(cols) - len(ids) + len(n.exprs) {
		ids = append(ids, -1)
	}
	est := n.in.node.Estimate()
	est.Cost += est.Rows * costOut
	node := &Project{Output: Output{append(cols, n.cols...), est}, Input: n.in.node, Exprs: append(exprs, n.exprs...)}
	return &sub{node: node, layout: newLayout(ids), ordered: n.in.ordered}
}

// call builds a function.
func (n *windowBuilder) call(w *windowCall) (WindowCall, error) {
	p := n.f.p
	c := WindowCall{Name: w.call.Name, Value: -1, Default: -1, Window: w.over.title(), Text: w.text}
	c.Frame.End.Following = true
	args := w.call.Args
	if _, ok := windowFunctions[c.Name]; !ok {
		return c, n.aggregate(w, &c)
	}
	var err error
	if i := countArg(w.call); i >= 0 {
		if c.Count, err = p.bind(n.in, args[i]); err != nil {
			return c, err
		}
	}
	switch c.Name {
	case "lag", "lead":
		values := []expr.Node{nil}
		if values[0], err = p.bind(n.in, args[0]); err != nil {
			return c, err
		}
		if len(args) == 3 {
			d, err := p.bind(n.in, args[2])
			if err != nil {
				return c, err
			}
			t := *p.cols[w.id].typ
			values = []expr.Node{castTo(values[0], &t), castTo(d, &t)}
			c.Default = n.column(values[1], args[2])
		}
		c.Value = n.column(values[0], args[0])
	case "first_value", "last_value", "nth_value":
		v, err := p.bind(n.in, args[0])
		if err != nil {
			return c, err
		}
		c.Value = n.column(v, args[0])
		c.Frame, err = n.frame(w.over)
		return c, err
	}
	return c, nil
}

// aggregate builds an aggregate over a frame.
func (n *windowBuilder) aggregate(w *windowCall, c *WindowCall) error {
	call, err := expr.NewBinder(n.f.p.rowScope(n.in)).BindAggregate(&ast.Aggregate{Name: c.Name, Args: w.call.Args})
	if err != nil {
		return err
	}
	inputs := call.Inputs()
	columns := make([]expr.Node, len(inputs))
	for i, e := range inputs {
		columns[i] = expr.NewColumn(n.column(e, w.call.Args[i]), e.Type(), expr.Text(e))
	}
	c.Aggregate = call.WithInputs(columns)
	c.Frame, err = n.frame(w.over)
	return err
}

// callType is the type of a function's results over the pass's input.
func (f *blockPlan) callType(c *WindowCall, cols []Column, known column) *types.Type {
	switch {
	case c.Aggregate != nil:
		return c.Aggregate.Type()
	case c.Value >= 0:
		t := *cols[c.Value].Type
		t.NotNull, t.ZeroFill = false, false
		return &t
	}
	return known.typ
}

// frame builds the frame of a window. Without one it is the partition, and with ORDER BY
// the partition up to the row and its peers.
func (n *windowBuilder) frame(w *window) (WindowFrame, error) {
	r := WindowFrame{End: WindowBound{Following: true}}
	if w.frame == nil {
		if len(w.order) > 0 {
			r.End.Kind = BoundCurrent
		}
		return r, nil
	}
	r.Rows = w.frame.rows
	var err error
	if r.Start, err = n.bound(w, &w.frame.start); err == nil {
		r.End, err = n.bound(w, &w.frame.end)
	}
	return r, err
}

func (n *windowBuilder) bound(w *window, b *bound) (WindowBound, error) {
	p := n.f.p
	r := WindowBound{Kind: b.kind, Following: b.following}
	if b.kind != BoundOffset {
		return r, nil
	}
	var err error
	if r.Offset, err = p.bind(n.in, b.value); err != nil || w.frame.rows {
		return r, err
	}
	// The value that the distance leads to is computed for every row. Integers are
	// compared as decimals, which do not overflow.
	r.Interval, r.Desc = b.unit != "", w.order[0].Desc
	key := w.order[0].Expr
	add := b.following != r.Desc
	var limit ast.Expr
	switch {
	case r.Interval && add:
		limit = &ast.Func{Name: "date_add", Args: []ast.Expr{key, &ast.Interval{Value: b.value, Unit: b.unit}}}
	case r.Interval:
		limit = &ast.Func{Name: "date_sub", Args: []ast.Expr{key, &ast.Interval{Value: b.value, Unit: b.unit}}}
	default:
		t, err := p.bind(n.in, key)
		if err != nil {
			return r, err
		}
		if isInteger(t.Type().Class()) {
			key = &ast.Cast{Operand: key, Type: ast.ColumnType{Kind: types.KindDecimal, Length: 20}}
		}
		op := ast.OpSub
		if add {
			op = ast.OpAdd
		}
		limit = &ast.Binary{Op: op, Left: key, Right: b.value}
	}
	l, err := p.bind(n.in, limit)
	if err != nil {
		return r, err
	}
	k, err := p.bind(n.in, w.order[0].Expr)
	if err != nil {
		return r, err
	}
	r.Key, r.Limit = n.column(castTo(k, l.Type()), w.order[0].Expr), n.column(l, limit)
	return r, nil
}

// buffers reports whether a function reads rows behind the one it is computed for, other
// than its peers.
func (n *Window) buffers() bool {
	for i := range n.Calls {
		c := &n.Calls[i]
		switch c.Name {
		case "row_number", "rank", "dense_rank", "lag":
		case "percent_rank", "cume_dist", "ntile", "lead":
			return true
		default:
			if e := &c.Frame.End; e.Following && e.Kind != BoundCurrent {
				return true
			}
		}
	}
	return false
}

func describeWindow(n *Window) string {
	list := make([]string, len(n.Calls))
	for i := range n.Calls {
		list[i] = n.Calls[i].Text
	}
	s := "Window aggregate: "
	if n.buffers() {
		s = "Window aggregate with buffering: "
	}
	return s + strings.Join(list, ", ")
}

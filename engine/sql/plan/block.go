package plan

import (
	"math"
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
)

// planNested plans a query within an expression. exists says that only whether there
// are rows matters.
func (p *planner) planNested(q *query, exists bool) (Node, error) {
	var s *sub
	err := p.within(q.outer, func() (err error) {
		need := []bool(nil)
		if exists && q.block != nil && !q.block.distinct {
			need = make([]bool, len(q.out))
		}
		s, err = p.planQuery(q, need, -1)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !exists {
		return s.node, nil
	}
	one := expr.NewConst(intValue(1), bigint)
	return &Limit{Output: Output{s.node.Columns(), Estimate{1, s.node.Estimate().Cost}}, Input: s.node, Count: one}, nil
}

// planQuery plans a query. need says which columns are read, nil: all; of those that
// are not the plan may leave out the computation but not the column. limit is how many
// rows are wanted, negative: all. The output's columns are the query's.
func (p *planner) planQuery(q *query, need []bool, limit float64) (*sub, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if q.set != nil {
		return p.planSet(q, limit)
	}
	return p.planBlock(q.block, need, limit)
}

// blockPlan is the planning of one block.
type blockPlan struct {
	p     *planner
	b     *block
	need  []bool
	limit float64 // of rows wanted, negative: all
	// passes are the window functions that are needed, in the order in which they are
	// computed.
	passes []windowPass
}

func (p *planner) planBlock(b *block, need []bool, limit float64) (*sub, error) {
	b = p.distinctAsGroups(b)
	f := &blockPlan{p: p, b: b, need: need, limit: limit}
	if len(b.calls) > 0 {
		f.passes = p.windowPasses(b, p.usedCalls(b, need))
	}
	if n := p.limitRows(b.limit); n >= 0 && (limit < 0 || n < limit) {
		f.limit = n
	}
	if s, err := f.minMax(); s != nil || err != nil {
		return s, err
	}
	s, err := f.input()
	if err != nil {
		return nil, err
	}
	if b.grouped {
		if s, err = f.group(s); err != nil {
			return nil, err
		}
	}
	having, none := p.fold(b.having)
	if none {
		s = p.empty(s)
	}
	if s, err = p.filter(s, having); err != nil {
		return nil, err
	}
	if s, err = f.windows(s); err != nil {
		return nil, err
	}
	return f.finish(s)
}

// distinctAsGroups is SELECT DISTINCT of columns as GROUP BY of them: an index may keep
// equal rows together.
func (p *planner) distinctAsGroups(b *block) *block {
	if !b.distinct || b.grouped || len(b.calls) > 0 || b.from == nil || b.values != nil || len(b.having) > 0 || len(b.items) == 0 {
		return b
	}
	for _, k := range b.order {
		if k.item < 0 {
			return b
		}
	}
	c := *b
	c.distinct, c.grouped = false, true
	seen := colSet{}
	for i := range b.items {
		id, ok := p.isColumn(b.items[i].expr)
		if !ok || p.outerNow().has(id) {
			return b
		}
		if !seen.has(id) {
			seen.add(id)
			c.groups = append(c.groups, group{expr: b.items[i].expr, id: id})
		}
	}
	return &c
}

// empty has the columns of s and no rows.
func (p *planner) empty(s *sub) *sub {
	return &sub{node: &Values{Output: Output{Cols: s.node.Columns()}}, layout: s.layout}
}

// input plans FROM and WHERE.
func (f *blockPlan) input() (*sub, error) {
	b, p := f.b, f.p
	if b.from == nil {
		one := &Values{Output: Output{Est: Estimate{Rows: 1}}, Rows: [][]expr.Node{{}}}
		s := &sub{node: one, layout: newLayout(nil)}
		where, none := p.fold(b.where)
		if none {
			return p.empty(s), nil
		}
		return p.filter(s, where)
	}
	r := joinRequest{from: b.from, where: b.where, wanted: f.wanted(), limit: -1}
	if b.straight {
		r.from = straightened(b.from)
	}
	switch {
	case b.grouped:
		if !b.rollup && p.on(StreamAggregation) {
			r.order, r.grouping = f.groupOrder()
		}
	case len(f.passes) > 0:
		r.order, r.grouping = f.passOrder()
	default:
		if !b.distinct {
			r.order = f.orderColumns()
			if !b.calcRows {
				r.limit = f.limit
			}
		}
	}
	return p.planJoin(r)
}

// straightened is a tree whose joins keep their order.
func straightened(t *joinTree) *joinTree {
	if t.leaf != nil {
		return t
	}
	c := *t
	c.straight = true
	c.left, c.right = straightened(t.left), straightened(t.right)
	return &c
}

// wanted are the columns that are read above FROM.
func (f *blockPlan) wanted() colSet {
	set := colSet{}
	p, b := f.p, f.b
	if b.grouped {
		for _, g := range b.groups {
			p.columnsOf(g.expr, set)
		}
		for _, a := range b.aggs {
			p.columnsOf(a.call, set)
		}
		return set
	}
	for i := range b.items {
		if f.need == nil || f.need[i] {
			p.columnsOf(b.items[i].expr, set)
		}
	}
	for _, e := range b.having {
		p.columnsOf(e, set)
	}
	for i := range f.passes {
		p.windowColumns(f.passes[i].calls, set)
	}
	for _, k := range b.order {
		p.columnsOf(k.expr, set)
	}
	return set
}

// orderColumns is ORDER BY if it is by columns alone, else nil.
func (f *blockPlan) orderColumns() []orderColumn {
	list := []orderColumn(nil)
	for _, k := range f.b.order {
		id, ok := f.p.isColumn(k.expr)
		if !ok {
			return nil
		}
		list = append(list, orderColumn{id, k.desc})
	}
	return list
}

// groupOrder is what would let groups be aggregated without a hash table: the order of
// ORDER BY if that is by grouping columns alone, else any that keeps groups together.
func (f *blockPlan) groupOrder() (list []orderColumn, any bool) {
	groups := colSet{}
	for _, g := range f.b.groups {
		if _, ok := f.p.isColumn(g.expr); !ok {
			return nil, false
		}
		groups.add(g.id)
		list = append(list, orderColumn{id: g.id})
	}
	if len(list) == 0 {
		return nil, false
	}
	order := f.orderColumns()
	ordered := colSet{}
	for _, o := range order {
		if !groups.has(o.id) {
			return list, true
		}
		ordered.add(o.id)
	}
	if len(order) == 0 {
		return list, true
	}
	for _, g := range list {
		if !ordered.has(g.id) {
			order = append(order, orderColumn{g.id, order[len(order)-1].desc})
		}
	}
	return order, false
}

// group builds the grouping.
func (f *blockPlan) group(in *sub) (*sub, error) {
	p, b := f.p, f.b
	var groups []expr.Node
	var ids []colID
	var cols []Column
	for _, g := range b.groups {
		n, err := p.bind(in, g.expr)
		if err != nil {
			return nil, err
		}
		groups = append(groups, n)
		ids = append(ids, g.id)
		m := p.cols[g.id].meta
		m.Type = n.Type()
		if b.rollup {
			t := *n.Type()
			t.NotNull = false
			m.Type = &t
		}
		cols = append(cols, m)
	}
	var aggs []Aggregate
	binder := expr.NewBinder(p.rowScope(in))
	for _, a := range b.aggs {
		call, err := binder.BindAggregate(a.call)
		if err != nil {
			return nil, err
		}
		aggs = append(aggs, p.aggregateOf(call, a.call))
		ids = append(ids, a.id)
		m := p.cols[a.id].meta
		m.Type = call.Type()
		cols = append(cols, m)
	}
	var levels [][]int
	if b.rollup {
		for _, l := range b.levels {
			levels = append(levels, l.of)
			ids = append(ids, l.id)
			cols = append(cols, p.cols[l.id].meta)
		}
	}
	est := in.node.Estimate()
	est.Cost += est.Rows * costGroup
	if est.Rows = p.groupRows(b, est.Rows); len(groups) == 0 {
		est.Rows = 1
	}
	out := Output{cols, est}
	s := &sub{layout: newLayout(ids)}
	switch {
	case len(groups) > 0 && in.ordered && !b.rollup || len(groups) == 0:
		s.node = &StreamAggregate{Output: out, Input: in.node, Groups: groups, Aggregates: aggs}
		_, any := f.groupOrder()
		s.ordered = !any && len(b.order) > 0 && in.ordered
	default:
		s.node = &HashAggregate{Output: out, Input: in.node, Groups: groups, Aggregates: aggs, Rollup: b.rollup, Levels: levels}
	}
	return s, nil
}

func (p *planner) aggregateOf(call *expr.Aggregate, a *ast.Aggregate) Aggregate {
	r := Aggregate{
		Call: call, Name: call.Name(), Distinct: call.Distinct(), Args: call.Args(), Separator: ",", Text: p.text(a),
	}
	if a.Separator != nil {
		r.Separator = *a.Separator
	}
	for i, key := range call.Inputs()[len(call.Args()):] {
		r.OrderBy = append(r.OrderBy, SortKey{key, a.OrderBy[i].Desc})
	}
	return r
}

// groupRows estimates the number of groups.
func (p *planner) groupRows(b *block, rows float64) float64 {
	n := 1.0
	for _, g := range b.groups {
		share := math.Pow(math.Max(rows, 1), -0.75)
		if id, ok := p.isColumn(g.expr); ok && p.cols[id].rel != nil && p.cols[id].rel.table != nil {
			if known, ok := p.indexShare(p.cols[id].rel, g.expr); ok {
				share = known
			}
		}
		n *= math.Max(1, 1/share)
	}
	return math.Max(1, math.Min(n, rows))
}

// finish builds the select list, DISTINCT, ORDER BY and LIMIT.
func (f *blockPlan) finish(s *sub) (*sub, error) {
	b := f.b
	sorted := len(b.order) == 0 || s.ordered
	early := !sorted && !b.distinct && f.lateItems()
	if early {
		// Items that are expensive are computed for the rows that are left.
		keys, err := f.sortKeys(s)
		if err != nil {
			return nil, err
		}
		if s, err = f.sort(s, keys); err != nil {
			return nil, err
		}
		sorted = true
	}
	hidden := 0
	s, hidden, err := f.project(s, !sorted)
	if err != nil {
		return nil, err
	}
	if b.distinct {
		est := s.node.Estimate()
		est.Cost += est.Rows * costGroup
		s = &sub{node: &Distinct{Output: Output{s.node.Columns(), est}, Input: s.node, Rest: hidden}, layout: s.layout, ordered: s.ordered}
	}
	if !sorted {
		keys := f.itemKeys(s, hidden)
		if s, err = f.sort(s, keys); err != nil {
			return nil, err
		}
	} else if s, err = f.limited(s, early); err != nil {
		return nil, err
	}
	if hidden == 0 {
		return s, nil
	}
	n := len(b.items)
	cols := s.node.Columns()[:n:n]
	exprs := make([]expr.Node, n)
	for i := range exprs {
		exprs[i] = expr.NewColumn(i, cols[i].Type, cols[i].Name)
	}
	return &sub{node: &Project{Output: Output{cols, s.node.Estimate()}, Input: s.node, Exprs: exprs}, layout: newLayout(nil)}, nil
}

// lateItems reports whether the select list is better computed after sorting: for the rows that are
// left, or because it sets variables, which people expect to follow the order.
func (f *blockPlan) lateItems() bool {
	late := false
	for i := range f.b.items {
		e := f.b.items[i].expr
		if f.b.limit != nil && f.p.hasSubquery(e) || assigns(e) {
			if f.sortsByItem(i) {
				return false
			}
			late = true
		}
	}
	return late
}

// assigns reports whether an expression sets a variable.
func assigns(e ast.Expr) (found bool) {
	walkExpr(e, func(e ast.Expr) bool {
		_, is := e.(*ast.Assign)
		found = found || is
		return !found
	})
	return found
}

func (f *blockPlan) sortsByItem(i int) bool {
	for _, k := range f.b.order {
		if k.item == i {
			return true
		}
	}
	return false
}

// sortKeys binds ORDER BY over the rows below the select list.
func (f *blockPlan) sortKeys(s *sub) ([]SortKey, error) {
	keys := make([]SortKey, len(f.b.order))
	for i, k := range f.b.order {
		n, err := f.p.bind(s, k.expr)
		if err != nil {
			return nil, err
		}
		keys[i] = SortKey{n, k.desc}
	}
	return keys, nil
}

// project computes the select list and, for a sort above, after it the keys that are no
// items of it.
func (f *blockPlan) project(s *sub, forSort bool) (out *sub, hidden int, err error) {
	p, b := f.p, f.b
	n := len(b.items)
	exprs := make([]expr.Node, 0, n)
	cols := make([]Column, 0, n)
	for i := range b.items {
		it := &b.items[i]
		m := it.meta
		var e expr.Node = expr.NewNull()
		if f.need == nil || f.need[i] || forSort && f.sortsByItem(i) {
			if e, err = p.bind(s, it.expr); err != nil {
				return nil, 0, err
			}
		}
		m.Type, m.Narrow = e.Type(), m.Narrow || expr.IsNarrow(e)
		exprs, cols = append(exprs, e), append(cols, m)
	}
	if forSort {
		for _, k := range b.order {
			if k.item >= 0 {
				continue
			}
			e, err := p.bind(s, k.expr)
			if err != nil {
				return nil, 0, err
			}
			exprs, cols = append(exprs, e), append(cols, Column{Name: p.text(k.expr), Type: e.Type()})
			hidden++
		}
	}
	est := s.node.Estimate()
	est.Cost += est.Rows * costOut
	if identity(exprs, s.node.Columns()) {
		node := renamed(s.node, cols)
		if node != nil {
			return &sub{node: node, layout: newLayout(nil), ordered: s.ordered}, hidden, nil
		}
	}
	node := &Project{Output: Output{cols, est}, Input: s.node, Exprs: exprs}
	return &sub{node: node, layout: newLayout(nil), ordered: s.ordered}, hidden, nil
}

// identity reports whether expressions are the input's columns as they are.
func identity(exprs []expr.Node, cols []Column) bool {
	if len(exprs) != len(cols) {
		return false
	}
	for i, e := range exprs {
		c, ok := e.(*expr.Column)
		if !ok || c.Position() != i {
			return false
		}
	}
	return true
}

// itemKeys are the sort keys over the projected rows.
func (f *blockPlan) itemKeys(s *sub, hidden int) []SortKey {
	cols := s.node.Columns()
	next := len(cols) - hidden
	keys := make([]SortKey, len(f.b.order))
	for i, k := range f.b.order {
		pos := k.item
		if pos < 0 {
			pos = next
			next++
		}
		keys[i] = SortKey{expr.NewColumn(pos, cols[pos].Type, cols[pos].Name), k.desc}
	}
	return keys
}

// sort builds ORDER BY with LIMIT.
func (f *blockPlan) sort(s *sub, keys []SortKey) (*sub, error) {
	keys = slices.DeleteFunc(keys, func(k SortKey) bool { return expr.IsConst(k.Expr) })
	count, offset, err := f.p.bindLimit(f.b.limit)
	if err != nil {
		return nil, err
	}
	return f.p.sorted(s, keys, count, offset, f.limit, f.b.calcRows)
}

// sorted builds a sort and a limit.
func (p *planner) sorted(s *sub, keys []SortKey, count, offset expr.Node, rows float64, all bool) (*sub, error) {
	est := s.node.Estimate()
	cols := s.node.Columns()
	if len(keys) == 0 {
		return p.limitTo(s, count, offset, rows, all), nil
	}
	n := math.Max(2, est.Rows)
	if count != nil && !all && p.on(TopNSort) {
		k := est.Rows
		if rows >= 0 {
			k = math.Min(rows, k)
		}
		est.Cost += n * math.Log2(math.Max(2, k)) * costCompare
		est.Rows = k
		node := &TopN{Output: Output{cols, est}, Input: s.node, Keys: keys, Offset: offset, Count: count}
		return &sub{node: node, layout: s.layout, ordered: true}, nil
	}
	est.Cost += n * math.Log2(n) * costCompare
	node := &Sort{Output: Output{cols, est}, Input: s.node, Keys: keys}
	return p.limitTo(&sub{node: node, layout: s.layout, ordered: true}, count, offset, rows, all), nil
}

// limited builds LIMIT of rows that are in order.
func (f *blockPlan) limited(s *sub, done bool) (*sub, error) {
	if done {
		return s, nil
	}
	count, offset, err := f.p.bindLimit(f.b.limit)
	if err != nil {
		return nil, err
	}
	return f.p.limitTo(s, count, offset, f.limit, f.b.calcRows), nil
}

func (p *planner) limitTo(s *sub, count, offset expr.Node, rows float64, all bool) *sub {
	if count == nil && offset == nil {
		return s
	}
	est := s.node.Estimate()
	if rows >= 0 && rows < est.Rows {
		est.Cost *= math.Max(rows, 1) / est.Rows
		est.Rows = rows
	}
	n := &Limit{Output: Output{s.node.Columns(), est}, Input: s.node, Offset: offset, Count: count, CountAll: all}
	return &sub{node: n, layout: s.layout, ordered: s.ordered}
}

// bindLimit binds LIMIT's numbers.
func (p *planner) bindLimit(l *limit) (count, offset expr.Node, err error) {
	if l == nil {
		return nil, nil, nil
	}
	none := &sub{layout: newLayout(nil)}
	for _, e := range []struct {
		from ast.Expr
		to   *expr.Node
	}{{l.count, &count}, {l.offset, &offset}} {
		if e.from == nil {
			continue
		}
		if *e.to, err = p.bind(none, e.from); err != nil {
			return nil, nil, err
		}
	}
	return count, offset, nil
}

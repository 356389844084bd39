package plan

import (
	"fmt"
	"math"
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/types"
)

// sub is a physical plan under way: a node and what its columns are.
type sub struct {
	node   Node
	layout *layout
	// ordered says that the rows come in the order that was asked for.
	ordered bool
}

// outerNow are the columns of enclosing queries that what is being planned may read.
func (p *planner) outerNow() colSet {
	if len(p.outer) == 0 {
		return nil
	}
	return p.outer[len(p.outer)-1]
}

// within plans something that reads the given columns from slots.
func (p *planner) within(outer colSet, f func() error) error {
	p.outer = append(p.outer, outer)
	err := f()
	p.outer = p.outer[:len(p.outer)-1]
	return err
}

// joinRequest says what a join is planned for.
type joinRequest struct {
	from     *joinTree
	where    []ast.Expr
	wanted   colSet
	order    []orderColumn
	grouping bool
	limit    float64
}

// planJoin plans a FROM with its conditions.
func (p *planner) planJoin(r joinRequest) (*sub, error) {
	g, best, err := p.searchJoin(r, false)
	if err != nil {
		return nil, err
	}
	if g.never {
		return p.noRows(r.wanted), nil
	}
	if g.loosable > 0 {
		l, other, err := p.searchJoin(r, true)
		if err != nil {
			return nil, err
		}
		if !l.never && l.score(other) < g.score(best) {
			g, best = l, other
		}
	}
	var steps []*state
	for s := best; s != nil; s = s.prev {
		steps = append(steps, s)
	}
	slices.Reverse(steps)
	g.keepOrder = best.ordered && g.order != nil
	s, err := g.begin(steps[0])
	for _, next := range steps[1:] {
		if err != nil {
			return nil, err
		}
		s, err = g.join(s, next)
	}
	if err != nil {
		return nil, err
	}
	s.ordered = g.keepOrder
	return s, nil
}

// searchJoin makes the graph of a join and finds an order. loose says that IN
// subqueries are joined as distinct rows instead of by semi joins, which can then come
// first.
func (p *planner) searchJoin(r joinRequest, loose bool) (*joinGraph, *state, error) {
	g, err := p.buildGraph(r.from, r.where, r.wanted, loose)
	if err != nil || g.never {
		return g, nil, err
	}
	g.order, g.grouping, g.limit = r.order, r.grouping, r.limit
	reads := g.reads()
	for _, u := range g.units {
		if err := g.prepare(u, reads); err != nil {
			return nil, nil, err
		}
	}
	return g, g.search(), nil
}

// noRows is the plan of what can never be true.
func (p *planner) noRows(wanted colSet) *sub {
	ids := wanted.sorted()
	v := &Values{}
	for _, id := range ids {
		v.Cols = append(v.Cols, p.cols[id].meta)
	}
	return &sub{node: v, layout: newLayout(ids)}
}

// prepare finds out how a unit can be computed by itself.
func (g *joinGraph) prepare(u *unit, reads colSet) error {
	p := g.p
	u.need = colSet{}
	for id := range u.cols {
		if reads.has(id) {
			u.need.add(id)
		}
	}
	if u.rel != nil && u.rel.table != nil {
		u.reading = colSet{}
		u.reading.addAll(u.need)
		for _, e := range u.local {
			p.columnsOf(e, u.reading)
		}
		p.tablePaths(u, u.reading)
		return nil
	}
	var err error
	if u.rel != nil {
		u.sub, err = p.planRelation(u.rel, u.local, u.need)
	} else if u.dependent {
		err = g.planDependent(u)
		u.sub = u.anew
	} else {
		u.sub, err = p.planJoin(joinRequest{from: u.tree, where: u.local, wanted: u.need, limit: -1})
		if err == nil && g.dependable(u) {
			err = g.planDependent(u)
		}
	}
	if err == nil {
		u.rows = math.Max(1, u.sub.node.Estimate().Rows)
	}
	return err
}

// dependable reports whether it may be worth computing a unit of several tables anew
// for each row, by the row's values.
func (g *joinGraph) dependable(u *unit) bool {
	return g.p.on(LookupJoins) && u.kind != NullAwareAntiJoin && u.kind != InnerJoin && len(u.on) > 0 && u.needs != 0
}

// planDependent plans a unit with the columns of what it needs in slots, so that they
// can be keys of its indexes.
func (g *joinGraph) planDependent(u *unit) error {
	p := g.p
	outer := colSet{}
	outer.addAll(p.outerNow())
	u.reads = colSet{}
	u.reads.addAll(u.lateral)
	for _, e := range u.on {
		for id := range p.columnSet(e) {
			if !u.cols.has(id) && !outer.has(id) {
				u.reads.add(id)
			}
		}
	}
	outer.addAll(u.reads)
	return p.within(outer, func() (err error) {
		where := append(u.local[:len(u.local):len(u.local)], u.on...)
		u.anew, err = p.planJoin(joinRequest{from: u.tree, where: where, wanted: u.need, limit: -1})
		return err
	})
}

// begin builds the first unit.
func (g *joinGraph) begin(st *state) (*sub, error) {
	u := st.step.unit
	s, err := g.read(u, st.step.access, g.keepOrder)
	if err != nil {
		return nil, err
	}
	var conds []ast.Expr
	for _, c := range g.conds {
		// What reads no unit is checked here, before anything else is read.
		if c.units == 0 && !c.implied {
			conds = append(conds, c.e)
		}
	}
	for _, i := range st.step.conds {
		conds = append(conds, g.conds[i].e)
	}
	return g.p.filter(s, conds)
}

// read builds the reading of a unit by itself.
func (g *joinGraph) read(u *unit, a *access, ordered bool) (*sub, error) {
	if a == nil {
		return u.sub, nil
	}
	backward := false
	if ordered {
		backward, _ = g.direction(u.rel, a)
	}
	return g.p.readTable(u, a, ordered, backward)
}

// filter puts conditions above a plan.
func (p *planner) filter(s *sub, conds []ast.Expr) (*sub, error) {
	if len(conds) == 0 {
		return s, nil
	}
	pred, err := p.bindAll(s, conds)
	if err != nil {
		return nil, err
	}
	est := s.node.Estimate()
	share := 1.0
	for _, e := range conds {
		share *= p.selectivity(nil, e)
	}
	est.Cost += est.Rows * costOut
	est.Rows = math.Max(1, est.Rows*share)
	n := &Filter{Output: Output{s.node.Columns(), est}, Input: s.node, Predicate: pred}
	return &sub{node: n, layout: s.layout, ordered: s.ordered}, nil
}

// tableColumns lists the columns that are fetched of a base table, and describes them.
func (p *planner) tableColumns(rel *relation, need colSet) (ids []colID, fetch []int, cols []Column, rowKey bool) {
	for _, id := range need.sorted() {
		if id >= rel.first && id < rel.first+colID(rel.n) {
			ids = append(ids, id)
			pos := int(id - rel.first)
			fetch = append(fetch, pos)
			m := p.cols[id].meta
			m.Type = &rel.def().Columns[pos].Type
			cols = append(cols, m)
		}
	}
	if rel.rowKey >= 0 && need.has(rel.rowKey) {
		ids, rowKey = append(ids, rel.rowKey), true
		cols = append(cols, p.cols[rel.rowKey].meta)
	}
	return ids, fetch, cols, rowKey
}

// readTable builds the scan of a base table.
func (p *planner) readTable(u *unit, a *access, ordered, backward bool) (*sub, error) {
	rel := u.rel
	conds := without(u.local, a.exact)
	need := colSet{}
	need.addAll(u.need)
	for _, e := range conds {
		p.columnsOf(e, need)
	}
	ids, fetch, cols, rowKey := p.tableColumns(rel, need)
	out := Output{Cols: cols, Est: Estimate{Rows: math.Max(u.rows, b2f(!a.single)), Cost: a.cost}}
	s := &sub{layout: newLayout(ids), ordered: ordered}
	s.node = &Values{Output: out} // for binding
	pred, err := p.bindAll(s, conds)
	if err != nil {
		return nil, err
	}
	bound, err := p.bindAccess(rel, a, p.rowScope(&sub{layout: newLayout(nil)}))
	if err != nil {
		return nil, err
	}
	if a.single && p.on(PointGets) {
		out.Est = Estimate{Rows: 1, Cost: costLookup}
		key := make([]KeyValue, len(bound.Spans[0].Points))
		for i, list := range bound.Spans[0].Points {
			key[i] = list[0]
		}
		s.node = &PointGet{Output: out, Table: rel.table, Index: a.index, Key: key, Fetch: fetch, RowKey: rowKey, Filter: pred, Lock: rel.lock,
			PossibleKeys: u.possibleKeys()}
		return s, nil
	}
	s.node = &TableScan{
		Output: out, Table: rel.table, Access: bound, Backward: backward, Ordered: ordered,
		Fetch: fetch, RowKey: rowKey, Filter: pred, Lock: rel.lock, PossibleKeys: u.possibleKeys(), Reads: a.read,
	}
	return s, nil
}

// without is list without the members of drop.
func without(list, drop []ast.Expr) []ast.Expr {
	if len(drop) == 0 {
		return list
	}
	var kept []ast.Expr
	for _, e := range list {
		if !slices.Contains(drop, e) {
			kept = append(kept, e)
		}
	}
	return kept
}

// bindAccess binds the bounds of ranges.
func (p *planner) bindAccess(rel *relation, a *access, scope *rowScope) (*Access, error) {
	b := &Access{Keys: rel.table.Keys, Index: a.index, Covering: a.covering && a.index != 0}
	for i := range a.spans {
		s, err := p.bindSpan(rel, a.index, &a.spans[i], scope)
		if err != nil {
			return nil, err
		}
		b.Spans = append(b.Spans, s)
	}
	return b, nil
}

func (p *planner) bindSpan(rel *relation, index int, s *span, scope *rowScope) (Span, error) {
	var b Span
	for n, list := range s.points {
		values := make([]KeyValue, len(list))
		for i, pt := range list {
			v, err := p.keyValue(rel, s.columns[n], pt, scope)
			if err != nil {
				return b, err
			}
			values[i] = v
		}
		b.Points = append(b.Points, values)
	}
	if !s.bounded {
		return b, nil
	}
	pos := s.columns[len(s.points)]
	b.Interval = &Interval{LowOpen: s.lowOpen && !s.clipped, HighOpen: s.highOpen && !s.clipped, Escape: s.escape}
	var err error
	if s.low != nil {
		if b.Interval.Low, err = p.boundValue(rel, pos, ast.OpGe, s.part, s.low, scope); err != nil {
			return b, err
		}
		b.Interval.Low.Clipped = s.clipped
	}
	if s.high != nil {
		if b.Interval.High, err = p.boundValue(rel, pos, ast.OpLe, s.part, s.high, scope); err != nil {
			return b, err
		}
		b.Interval.High.Clipped = s.clipped
	}
	if s.like != nil {
		like, err := p.boundValue(rel, pos, ast.OpEq, ast.Whole, s.like, scope)
		b.Interval.Like = like.Expr
		return b, err
	}
	return b, nil
}

// keyValue binds a point.
func (p *planner) keyValue(rel *relation, pos int, pt point, scope *rowScope) (KeyValue, error) {
	if pt.value == nullLiteral {
		return KeyValue{Expr: expr.NewNull(), NullSafe: true, Exact: true, Certain: true}, nil
	}
	v, err := p.boundValue(rel, pos, ast.OpEq, pt.part, pt.value, scope)
	v.NullSafe, v.Clipped = pt.nullSafe, pt.clipped
	return v, err
}

// boundValue binds a value that a column is compared to, converted as the comparison
// converts it.
func (p *planner) boundValue(rel *relation, pos int, op ast.BinaryOp, part ast.ComparisonPart, value ast.Expr, scope *rowScope) (KeyValue, error) {
	t := &rel.def().Columns[pos].Type
	scope.probe, scope.probeType = rel.column(pos), t
	n, err := expr.Bind(scope, &ast.Binary{Op: op, Part: part, Left: p.ref(rel.column(pos)), Right: value})
	if err != nil {
		return KeyValue{}, err
	}
	c, ok := n.(*expr.Compare)
	if !ok {
		return KeyValue{Expr: expr.NewNull(), Certain: true}, nil
	}
	v := c.Children()[1]
	_, raw := c.Children()[0].(*expr.Column)
	if ok, _ := indexServes(t, v.Type(), raw, op, c.Collation()); !ok && v.Type().Class() != types.ClassNull {
		// No filter may be left that would find what the index does not.
		return KeyValue{}, fmt.Errorf("plan: the index on %s was chosen for another comparison than with a %s", rel.def().Columns[pos].Name, v.Type().Kind)
	}
	return KeyValue{Expr: v, Exact: sameValues(v.Type(), t), Certain: certain(v.Type(), t)}, nil
}

// sameValues reports whether every value of one type is one of the other.
func sameValues(from, to *types.Type) bool {
	if from.Class() != to.Class() || len(to.Members) > 0 {
		return false
	}
	switch to.Class() {
	case types.ClassBytes:
		return to.Kind != types.KindBinary
	case types.ClassInt, types.ClassUint:
		return from.Kind == to.Kind && to.Kind != types.KindBit || to.Kind == types.KindBigInt
	case types.ClassDouble:
		return true
	}
	return false
}

// possibleKeys names the indexes that conditions serve.
func (u *unit) possibleKeys() []string {
	var list []string
	for _, a := range u.paths {
		if a.spans != nil {
			list = append(list, u.rel.def().Indexes[a.index].Name)
		}
	}
	return list
}

package plan

import (
	"math"
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/types"
)

var bigint = types.Type{Kind: types.KindBigInt}

func intValue(n int64) types.Value { return types.NewInt(n) }

// planRelation plans a relation that is no base table, with conditions on it.
func (p *planner) planRelation(rel *relation, conds []ast.Expr, need colSet) (*sub, error) {
	switch {
	case rel.virtual != nil:
		return p.planVirtual(rel, conds, need)
	case rel.values != nil:
		s, err := p.planValues(rel)
		if err != nil {
			return nil, err
		}
		return p.filter(s, conds)
	case rel.json != nil:
		s, err := p.planJSONTable(rel)
		if err != nil {
			return nil, err
		}
		return p.filter(s, conds)
	case rel.cte != nil:
		return p.planCommon(rel, conds, need)
	case rel.work != nil:
		cols := make([]Column, rel.n)
		for i := range cols {
			cols[i] = p.cols[rel.column(i)].meta
		}
		n := &WorkTable{Output: Output{cols, Estimate{Rows: defaultRows / 10, Cost: defaultRows / 10}}, ID: rel.work.id}
		return p.filter(&sub{node: n, layout: p.relationLayout(rel)}, conds)
	}
	return p.planDerived(rel, rel.query, conds, need)
}

func (p *planner) relationLayout(rel *relation) *layout {
	ids := make([]colID, rel.n)
	for i := range ids {
		ids[i] = rel.column(i)
	}
	return newLayout(ids)
}

// planDerived plans a derived table. Conditions go into its query where they may.
func (p *planner) planDerived(rel *relation, q *query, conds []ast.Expr, need colSet) (*sub, error) {
	var rest []ast.Expr
	if p.on(ConditionPushdown) && !q.volatile {
		q, rest = p.pushInto(rel, q, conds)
	} else {
		rest = conds
	}
	used := make([]bool, rel.n)
	for i := range used {
		used[i] = need.has(rel.column(i))
	}
	for id := range p.columnSet(rest...) {
		if id >= rel.first && id < rel.first+colID(rel.n) {
			used[id-rel.first] = true
		}
	}
	if q.block == nil || q.block.distinct || q.block.assigns() {
		used = nil
	}
	var s *sub
	outer := colSet{}
	outer.addAll(p.outerNow())
	outer.addAll(q.outer)
	err := p.within(outer, func() (err error) {
		s, err = p.planQuery(q, used, -1)
		return err
	})
	if err != nil {
		return nil, err
	}
	s = &sub{node: p.aliased(s.node, rel), layout: p.relationLayout(rel)}
	return p.filter(s, rest)
}

// aliased names the columns of a plan by the relation that it is.
func (p *planner) aliased(n Node, rel *relation) Node {
	cols := make([]Column, rel.n)
	for i := range cols {
		cols[i] = p.cols[rel.column(i)].meta
		cols[i].Type = n.Columns()[i].Type
	}
	if r := renamed(n, cols); r != nil {
		return r
	}
	exprs := make([]expr.Node, rel.n)
	for i := range exprs {
		exprs[i] = expr.NewColumn(i, cols[i].Type, cols[i].Name)
	}
	return &Project{Output: Output{cols, n.Estimate()}, Input: n, Exprs: exprs}
}

// renamed copies a node with its columns described otherwise; nil for one that cannot
// be.
func renamed(n Node, cols []Column) Node {
	switch n := n.(type) {
	case *Project:
		return rename(*n, cols)
	case *PointGet:
		return rename(*n, cols)
	case *TableScan:
		return rename(*n, cols)
	case *VirtualScan:
		return rename(*n, cols)
	case *HashAggregate:
		return rename(*n, cols)
	case *StreamAggregate:
		return rename(*n, cols)
	case *Window:
		return rename(*n, cols)
	case *Filter:
		return rename(*n, cols)
	case *Limit:
		return rename(*n, cols)
	case *Sort:
		return rename(*n, cols)
	case *TopN:
		return rename(*n, cols)
	case *Distinct:
		return rename(*n, cols)
	case *SetOperation:
		return rename(*n, cols)
	case *Values:
		return rename(*n, cols)
	case *JSONTableScan:
		return rename(*n, cols)
	}
	return nil
}

// describable is a node whose columns can be described otherwise.
type describable[T any] interface {
	*T
	Node
	describeAs([]Column)
}

func (o *Output) describeAs(cols []Column) { o.Cols = cols }

func rename[T any, P describable[T]](n T, cols []Column) Node {
	P(&n).describeAs(cols)
	return P(&n)
}

// pushInto puts conditions on a derived table into its query; rest are those that do
// not fit.
func (p *planner) pushInto(rel *relation, q *query, conds []ast.Expr) (changed *query, rest []ast.Expr) {
	for _, e := range conds {
		if p.hasSubquery(e) || p.isVolatileExpr(e) {
			rest = append(rest, e)
			continue
		}
		next, ok := p.pushOne(rel, q, e)
		if !ok {
			rest = append(rest, e)
			continue
		}
		q = next
	}
	return q, rest
}

// pushOne returns the query with one more condition on its result.
func (p *planner) pushOne(rel *relation, q *query, e ast.Expr) (*query, bool) {
	c := *q
	if s := q.set; s != nil {
		if s.limit != nil || s.op == ast.SetNone && s.left.set != nil {
			return nil, false
		}
		if s.op != ast.SetNone && (s.op != ast.SetUnion || !s.all) && !p.alike(rel, e) {
			return nil, false
		}
		set := *s
		var ok bool
		if set.left, ok = p.pushSide(rel, q, s.left, e); !ok {
			return nil, false
		}
		if s.right != nil {
			if set.right, ok = p.pushSide(rel, q, s.right, e); !ok {
				return nil, false
			}
		}
		c.set = &set
		return &c, true
	}
	b := *q.block
	if b.limit != nil || b.values != nil || b.rollup || b.calcRows || b.distinct && !p.alike(rel, e) {
		return nil, false
	}
	inner, err := mapExpr(e, func(e ast.Expr) (ast.Expr, error) {
		if pos, ok := p.ownColumn(rel, e); ok {
			return b.items[pos].expr, nil
		}
		return nil, nil
	})
	if err != nil || p.hasSubquery(inner) || countNodes(inner, maxMerged) > maxMerged {
		return nil, false
	}
	if len(b.calls) > 0 && (!p.alike(rel, e) || !p.readsPartitionsOnly(&b, inner)) {
		return nil, false
	}
	switch {
	case !b.grouped:
		b.where = append(slices.Clone(b.where), inner)
	case p.alike(rel, e) && p.readsGroupsOnly(&b, inner):
		inner, _ = mapExpr(inner, func(e ast.Expr) (ast.Expr, error) {
			for _, g := range b.groups {
				if id, ok := p.isColumn(e); ok && id == g.id {
					return g.expr, nil
				}
			}
			return nil, nil
		})
		b.where = append(slices.Clone(b.where), inner)
	default:
		b.having = append(slices.Clone(b.having), inner)
	}
	c.block = &b
	return &c, true
}

// pushSide pushes a condition into one side of a set operation, if its columns have the
// types of the whole there, so that the condition means the same.
func (p *planner) pushSide(rel *relation, q, side *query, e ast.Expr) (*query, bool) {
	for id := range p.columnSet(e) {
		if id < rel.first || id >= rel.first+colID(rel.n) {
			continue
		}
		i := int(id - rel.first)
		if !sameType(q.out[i].typ, side.out[i].typ) {
			return nil, false
		}
	}
	return p.pushOne(rel, side, e)
}

// readsGroupsOnly reports whether a condition reads nothing but grouping columns. A
// grouping without columns has one row whatever WHERE lets through.
func (p *planner) readsGroupsOnly(b *block, e ast.Expr) bool {
	if len(b.groups) == 0 {
		return false
	}
	groups := colSet{}
	for _, g := range b.groups {
		groups.add(g.id)
	}
	for id := range p.columnSet(e) {
		if !groups.has(id) && !p.outerNow().has(id) {
			return false
		}
	}
	return true
}

// planVirtual plans the reading of a virtual table.
func (p *planner) planVirtual(rel *relation, conds []ast.Expr, need colSet) (*sub, error) {
	all := colSet{}
	all.addAll(need)
	for _, e := range conds {
		p.columnsOf(e, all)
	}
	n := &VirtualScan{Source: rel.virtual, Alias: rel.alias}
	var ids []colID
	for _, id := range all.sorted() {
		if id < rel.first || id >= rel.first+colID(rel.n) {
			continue
		}
		ids = append(ids, id)
		n.Fetch = append(n.Fetch, int(id-rel.first))
		m := p.cols[id].meta
		m.Type = &rel.virtual.Def.Columns[id-rel.first].Type
		n.Cols = append(n.Cols, m)
	}
	n.Est = Estimate{Rows: math.Max(1, 100*math.Pow(shareEqual, float64(len(conds)))), Cost: 200}
	s := &sub{node: n, layout: newLayout(ids)}
	var err error
	if n.Filter, err = p.bindAll(s, conds); err != nil {
		return nil, err
	}
	none := &sub{layout: newLayout(nil)}
	for _, e := range conds {
		eq, ok := e.(*ast.Binary)
		if !ok || eq.Op != ast.OpEq || p.hasSubquery(e) {
			continue
		}
		for _, side := range [][2]ast.Expr{{eq.Left, eq.Right}, {eq.Right, eq.Left}} {
			pos, ok := p.ownColumn(rel, side[0])
			if !ok || len(p.columnSet(side[1])) > 0 {
				continue
			}
			v, err := p.bind(none, side[1])
			if err != nil {
				return nil, err
			}
			n.Equal = append(n.Equal, VirtualEqual{Column: pos, Value: v})
			break
		}
	}
	return s, nil
}

// planValues plans the rows of VALUES.
func (p *planner) planValues(rel *relation) (*sub, error) {
	n := &Values{}
	none := &sub{layout: newLayout(nil)}
	for i := range rel.n {
		m := p.cols[rel.column(i)].meta
		t := *m.Type
		t.NotNull = false
		m.Type = &t
		n.Cols = append(n.Cols, m)
	}
	for _, row := range rel.values {
		list := make([]expr.Node, len(row))
		for i, e := range row {
			v, err := p.bind(none, e)
			if err != nil {
				return nil, err
			}
			list[i] = castTo(v, n.Cols[i].Type)
		}
		n.Rows = append(n.Rows, list)
	}
	n.Est = Estimate{Rows: float64(len(n.Rows)), Cost: float64(len(n.Rows))}
	return &sub{node: n, layout: p.relationLayout(rel)}, nil
}

// planCommon plans a reference to a WITH table. One that is named once is planned in
// its place.
func (p *planner) planCommon(rel *relation, conds []ast.Expr, need colSet) (*sub, error) {
	t := rel.cte
	if t.refs == 1 && t.recursive == nil {
		return p.planDerived(rel, t.query, conds, need)
	}
	if t.root == nil {
		outer := colSet{}
		outer.addAll(t.query.outer)
		if t.recursive != nil {
			outer.addAll(t.recursive.outer)
		}
		err := p.within(outer, func() (err error) {
			t.root, err = p.planCommonRoot(t)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, id := range outer.sorted() {
			t.slots = append(t.slots, p.slot(id))
		}
	}
	cols := make([]Column, rel.n)
	for i := range cols {
		cols[i] = p.cols[rel.column(i)].meta
		cols[i].Type = t.root.Columns()[i].Type
	}
	est := t.root.Estimate()
	est.Cost = est.Cost/float64(max(1, t.refs)) + est.Rows
	n := &Materialize{Output: Output{cols, est}, ID: t.id, Name: t.name, Input: t.root, Slots: t.slots}
	return p.filter(&sub{node: n, layout: p.relationLayout(rel)}, conds)
}

func (p *planner) planCommonRoot(t *commonTable) (Node, error) {
	seed, err := p.planQuery(t.query, nil, -1)
	if err != nil || t.recursive == nil {
		return nodeOf(seed), err
	}
	rec, err := p.planQuery(t.recursive, nil, -1)
	if err != nil {
		return nil, err
	}
	cols := make([]Column, len(t.out))
	for i := range cols {
		cols[i] = t.out[i].meta
		cols[i].Type = t.out[i].typ
	}
	count, offset, err := p.bindLimit(t.limit)
	if err != nil {
		return nil, err
	}
	est := seed.node.Estimate()
	r := rec.node.Estimate()
	est = Estimate{Rows: est.Rows + 10*r.Rows, Cost: est.Cost + 10*r.Cost}
	n := &RecursiveCTE{
		Output: Output{cols, est}, ID: t.id, Seed: p.cast(seed.node, cols), Recursive: p.cast(rec.node, cols), Distinct: t.distinct,
	}
	if t.limit != nil && offset == nil {
		n.Limit = count
	}
	if t.limit != nil {
		return &Limit{Output: Output{cols, est}, Input: n, Offset: offset, Count: count}, nil
	}
	return n, nil
}

func nodeOf(s *sub) Node {
	if s == nil {
		return nil
	}
	return s.node
}

// cast gives a plan's columns the types of cols.
func (p *planner) cast(n Node, cols []Column) Node {
	same := true
	exprs := make([]expr.Node, len(cols))
	for i, c := range n.Columns() {
		col := expr.NewColumn(i, c.Type, c.Name)
		exprs[i] = castTo(col, cols[i].Type)
		same = same && exprs[i] == expr.Node(col)
	}
	if same {
		return n
	}
	return &Project{Output: Output{cols, n.Estimate()}, Input: n, Exprs: exprs}
}

// planSet plans a set operation.
func (p *planner) planSet(q *query, want float64) (*sub, error) {
	set := q.set
	own := p.limitRows(set.limit)
	if own < 0 || want >= 0 && want < own {
		own = want
	}
	below := float64(-1)
	if len(set.order) == 0 && !set.calcRows && (set.op == ast.SetNone || set.op == ast.SetUnion && set.all) {
		below = own
	}
	left, err := p.planQuery(set.left, nil, below)
	if err != nil {
		return nil, err
	}
	s := left
	if set.op != ast.SetNone {
		right, err := p.planQuery(set.right, nil, below)
		if err != nil {
			return nil, err
		}
		s = p.combine(q, left.node, right.node)
	}
	s = &sub{node: s.node, layout: p.relationLayout(set.rel)}
	keys := make([]SortKey, 0, len(set.order))
	for _, k := range set.order {
		n, err := p.bind(s, k.expr)
		if err != nil {
			return nil, err
		}
		keys = append(keys, SortKey{n, k.desc})
	}
	count, offset, err := p.bindLimit(set.limit)
	if err != nil {
		return nil, err
	}
	return p.sorted(s, keys, count, offset, own, set.calcRows)
}

// combine builds a set operation of two plans. Unions of unions are one.
func (p *planner) combine(q *query, l, r Node) *sub {
	cols := make([]Column, len(q.out))
	for i := range cols {
		cols[i] = q.out[i].meta
		t := *q.out[i].typ
		t.NotNull = l.Columns()[i].Type.NotNull && (r.Columns()[i].Type.NotNull || q.set.op != ast.SetUnion)
		cols[i].Type = &t
	}
	l, r = p.cast(l, cols), p.cast(r, cols)
	le, re := l.Estimate(), r.Estimate()
	n := &SetOperation{All: q.set.all, Inputs: []Node{l, r}}
	n.Est = Estimate{Rows: le.Rows + re.Rows, Cost: le.Cost + re.Cost}
	n.Cols = cols
	switch q.set.op {
	case ast.SetExcept:
		n.Kind, n.Est.Rows = Except, le.Rows
		return &sub{node: n}
	case ast.SetIntersect:
		n.Kind, n.Est.Rows = Intersect, math.Min(le.Rows, re.Rows)
		return &sub{node: n}
	}
	n.All = true
	if d, ok := l.(*Distinct); ok && !q.set.all {
		// What is made distinct in the end need not be before.
		l = d.Input
	}
	if u, ok := l.(*SetOperation); ok && u.Kind == Union {
		n.Inputs = append(u.Inputs, r) // u is nobody else's, and gone with this
	}
	if q.set.all {
		return &sub{node: n}
	}
	est := n.Est
	est.Cost += est.Rows * costGroup
	return &sub{node: &Distinct{Output: Output{cols, est}, Input: n}}
}

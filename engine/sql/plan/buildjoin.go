package plan

import (
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/types"
)

// join builds one step on top of what is before it.
func (g *joinGraph) join(left *sub, st *state) (*sub, error) {
	u := st.step.unit
	on, above := u.on, []ast.Expr(nil)
	for _, i := range st.step.conds {
		c := &g.conds[i]
		if u.kind == InnerJoin && !c.volatil {
			on = append(on[:len(on):len(on)], c.e)
		} else {
			above = append(above, c.e)
		}
	}
	est := Estimate{Rows: st.rows, Cost: st.cost}
	var s *sub
	var err error
	switch st.step.method {
	case methodLookup:
		s, err = g.lookupJoin(left, st, on, est)
	case methodHash:
		s, err = g.hashJoin(left, st, on, est)
	case methodApply:
		s, err = g.applyJoin(left, st, on, est)
	default:
		s, err = g.nestedJoin(left, st, on, est)
	}
	if err != nil {
		return nil, err
	}
	return g.p.filter(s, above)
}

// joined describes the output of a join.
func joined(kind JoinKind, left, right *sub, est Estimate) (Output, *layout) {
	l := left.node.Columns()
	if kind != InnerJoin && kind != LeftJoin {
		return Output{l, est}, left.layout
	}
	cols := append(l[:len(l):len(l)], right.node.Columns()...)
	if kind == LeftJoin {
		for i := len(l); i < len(cols); i++ {
			if cols[i].Type.NotNull {
				t := *cols[i].Type
				t.NotNull = false
				cols[i].Type = &t
			}
		}
	}
	ids := append(left.layout.ids[:len(left.layout.ids):len(left.layout.ids)], right.layout.ids...)
	return Output{cols, est}, newLayout(ids)
}

// pair is what a join's condition reads: left and right, without the NULLs of an outer
// join.
func pair(left, right *sub) *sub {
	out, l := joined(InnerJoin, left, right, Estimate{})
	return &sub{node: &Values{Output: out}, layout: l}
}

func (g *joinGraph) nestedJoin(left *sub, st *state, on []ast.Expr, est Estimate) (*sub, error) {
	u := st.step.unit
	right, err := g.read(u, st.step.access, false)
	if err != nil {
		return nil, err
	}
	cond, err := g.p.bindAll(pair(left, right), on)
	if err != nil {
		return nil, err
	}
	out, l := joined(u.kind, left, right, est)
	n := &NestedLoopJoin{Output: out, Kind: u.kind, Left: left.node, Right: right.node, Condition: cond}
	return &sub{node: n, layout: l}, nil
}

// applyJoin computes the right side anew for each left row, by way of slots.
func (g *joinGraph) applyJoin(left *sub, st *state, on []ast.Expr, est Estimate) (*sub, error) {
	p, u := g.p, st.step.unit
	right, reads := u.sub, u.reads
	if u.dependent && u.rel != nil {
		reads = u.rel.query.outer
	} else {
		right, on = u.anew, nil
	}
	cond, err := p.bindAll(pair(left, right), on)
	if err != nil {
		return nil, err
	}
	out, l := joined(u.kind, left, right, est)
	n := &NestedLoopJoin{Output: out, Kind: u.kind, Left: left.node, Right: right.node, Condition: cond}
	scope := p.rowScope(left)
	for _, id := range reads.sorted() {
		if _, ok := left.layout.pos[id]; !ok {
			continue // of a query further out
		}
		c, err := scope.column(id)
		if err != nil {
			return nil, err
		}
		n.Bindings = append(n.Bindings, Binding{Slot: p.slot(id), Expr: c})
	}
	n.Unread = g.unread(left, u)
	return &sub{node: n, layout: l}, nil
}

// unread finds the long columns of the left side that have no other use than to be bound for a unit: a document need not be copied into
// each of its rows.
func (g *joinGraph) unread(left *sub, u *unit) (list []bool) {
	read := colSet{}
	read.addAll(g.wanted)
	for i := range g.conds {
		g.p.columnsOf(g.conds[i].e, read)
	}
	for _, o := range g.units {
		for _, e := range append(o.on[:len(o.on):len(o.on)], o.local...) {
			g.p.columnsOf(e, read)
		}
		if o == u {
			continue
		}
		read.addAll(o.reads)
		if o.dependent {
			read.addAll(o.outside())
		}
	}
	cols := left.node.Columns()
	for i, id := range left.layout.ids {
		if i < len(cols) && !read.has(id) && expr.IsLong(cols[i].Type) {
			if list == nil {
				list = make([]bool, len(cols))
			}
			list[i] = true
		}
	}
	return list
}

func (g *joinGraph) hashJoin(left *sub, st *state, on []ast.Expr, est Estimate) (*sub, error) {
	p, u := g.p, st.step.unit
	right, err := g.read(u, st.step.access, false)
	if err != nil {
		return nil, err
	}
	n := &HashJoin{Kind: u.kind, Left: left.node, Right: right.node, BuildLeft: st.step.build}
	var rest []ast.Expr
	for _, e := range on {
		l, r, ok := g.hashSides(e, u)
		if !ok {
			rest = append(rest, e)
			continue
		}
		ln, err := p.bind(left, l)
		if err != nil {
			return nil, err
		}
		rn, err := p.bind(right, r)
		if err != nil {
			return nil, err
		}
		lk, rk, ok, err := hashKeys(expr.NewBinder(p.rowScope(left)), ln, rn)
		if err != nil {
			return nil, err
		}
		if !ok {
			rest = append(rest, e)
			continue
		}
		n.LeftKeys, n.RightKeys = append(n.LeftKeys, lk), append(n.RightKeys, rk)
		safe := e.(*ast.Binary).Op == ast.OpNullEq
		n.NullSafe = append(n.NullSafe, safe)
	}
	if !slices.Contains(n.NullSafe, true) {
		n.NullSafe = nil
	}
	if len(n.LeftKeys) == 0 && u.kind != NullAwareAntiJoin {
		return g.nestedJoin(left, st, on, est)
	}
	if u.kind == NullAwareAntiJoin {
		if len(n.LeftKeys) != 1 || len(rest) > 0 {
			n.LeftKeys, n.RightKeys, rest = nil, nil, on
		}
		if n.LeftKeys == nil {
			return g.nullAwareLoop(left, right, st, on, est)
		}
	}
	if n.Condition, err = p.bindAll(pair(left, right), rest); err != nil {
		return nil, err
	}
	var l *layout
	n.Output, l = joined(u.kind, left, right, est)
	return &sub{node: n, layout: l}, nil
}

// nullAwareLoop is NOT IN without hash keys.
func (g *joinGraph) nullAwareLoop(left, right *sub, st *state, on []ast.Expr, est Estimate) (*sub, error) {
	cond, err := g.p.bindAll(pair(left, right), on)
	if err != nil {
		return nil, err
	}
	out, l := joined(NullAwareAntiJoin, left, right, est)
	n := &NestedLoopJoin{Output: out, Kind: NullAwareAntiJoin, Left: left.node, Right: right.node, Condition: cond}
	return &sub{node: n, layout: l}, nil
}

func (g *joinGraph) lookupJoin(left *sub, st *state, on []ast.Expr, est Estimate) (*sub, error) {
	p, u := g.p, st.step.unit
	rel, a := u.rel, st.step.access
	n := &IndexLookupJoin{
		Kind: u.kind, Left: left.node, Table: rel.table, Index: a.index, Unique: a.single,
		Covering: a.covering && a.index != 0, Lock: rel.lock, Reads: a.read, KeepOrder: g.keepOrder,
		PossibleKeys: []string{rel.def().Indexes[a.index].Name},
	}
	scope := p.rowScope(left)
	var exact []ast.Expr
	classes := map[int]bool{}
	for i, s := range st.step.key {
		v, err := p.keyValue(rel, s.pos, s.points[0], scope)
		if err != nil {
			return nil, err
		}
		n.Key = append(n.Key, v)
		if s.exact && rel.table.Keys.Keys[a.index].Parts[i].Prefix == 0 {
			exact = append(exact, s.cond)
			g.markClass(s.cond, classes)
		}
	}
	local := without(u.local, exact)
	need := colSet{}
	need.addAll(u.need)
	for _, e := range local {
		p.columnsOf(e, need)
	}
	ids, fetch, cols, rowKey := p.tableColumns(rel, need)
	n.Fetch, n.RowKey = fetch, rowKey
	right := &sub{node: &Values{Output: Output{Cols: cols}}, layout: newLayout(ids)}
	var err error
	if n.Filter, err = p.bindAll(right, local); err != nil {
		return nil, err
	}
	var rest []ast.Expr
	for _, e := range without(on, exact) {
		if !g.impliedByClass(e, classes) {
			rest = append(rest, e)
		}
	}
	if n.Condition, err = p.bindAll(pair(left, right), rest); err != nil {
		return nil, err
	}
	var l *layout
	n.Output, l = joined(u.kind, left, right, est)
	return &sub{node: n, layout: l, ordered: left.ordered}, nil
}

// markClass notes the class of a condition that a key checks.
func (g *joinGraph) markClass(e ast.Expr, classes map[int]bool) {
	for i := range g.conds {
		if g.conds[i].e == e && g.conds[i].class >= 0 {
			classes[g.conds[i].class] = true
		}
	}
}

// impliedByClass reports whether a condition follows from one of its class.
func (g *joinGraph) impliedByClass(e ast.Expr, classes map[int]bool) bool {
	for i := range g.conds {
		if g.conds[i].e == e {
			return g.conds[i].class >= 0 && classes[g.conds[i].class]
		}
	}
	return false
}

// rowKeyType is the type of the column that has a row's clustered key.
var rowKeyType = types.Type{Kind: types.KindVarBinary, Length: 3900, Collation: types.CollationBinary, NotNull: true}

package plan

import (
	"math/bits"
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
)

// joinGraph is the join of a block: units that may come in any order in which a unit
// comes after those that it needs, and conditions. Who looks for an order sees nothing
// else of the query, so that another search can take the place of this one.
type joinGraph struct {
	p     *planner
	units []*unit
	conds []cond
	// wanted are the columns that are read above the join.
	wanted colSet
	// order is an order of rows that would save a sort above, nil for none; grouping
	// says that any order and direction of its columns will do.
	order    []orderColumn
	grouping bool
	// limit is the number of rows wanted, negative for all; sortCost says whether they
	// have to be sorted if they do not come in order.
	limit float64
	never bool // a condition is never true
	loose bool // IN subqueries are joined as distinct rows
	// keepOrder says that the rows come in the wanted order and have to.
	keepOrder bool
	// loosable counts the semi joins that could be.
	loosable int
	equal    *unionFind
	fixed    colSet // columns that equal a constant
	// equals and shares keep what is found out about conditions.
	equals map[ast.Expr]*equality
	shares map[ast.Expr]float64
}

// orderColumn is a column to order by.
type orderColumn struct {
	id   colID
	desc bool
}

// unit is a relation to be joined, or a tree of them that is joined by itself first.
type unit struct {
	index int
	// kind is InnerJoin, or how the unit is joined to what it needs.
	kind JoinKind
	rel  *relation // nil: tree
	tree *joinTree
	on   []ast.Expr // conditions of an outer, semi or anti join beyond local
	// local are conditions on the unit's columns alone (and constants), that hold
	// before it is joined.
	local []ast.Expr
	needs uint64
	cols  colSet
	// dependent says that the unit reads columns of what it needs while it is
	// computed (a lateral derived table); lateral are those columns if it is in a tree.
	dependent bool
	lateral   colSet

	sargs map[ast.Expr]*sarg // what is known of conditions
	need  colSet             // columns that are read of it above
	// reading are the columns of a base table that are read at all.
	reading colSet

	// indexes are the positions of those that may be used.
	indexes []int
	best    *access // of a base table: the best way to read it by constants alone
	paths   []*access
	sub     *sub // of others: how it is computed
	// anew is the unit computed for one row of what it needs, whose columns reads it
	// finds in slots; nil: it is not.
	anew  *sub
	reads colSet
	rows  float64
}

// buildGraph makes the graph of a block's FROM and conditions.
func (p *planner) buildGraph(from *joinTree, where []ast.Expr, wanted colSet, loose bool) (*joinGraph, error) {
	g := &joinGraph{p: p, wanted: wanted, loose: loose, limit: -1, equal: &unionFind{parent: map[colID]colID{}}, fixed: colSet{}, equals: map[ast.Expr]*equality{}, shares: map[ast.Expr]float64{}}
	where = p.zeroDates(where)
	if p.on(OuterToInner) {
		from = p.outerToInner(from, where)
	}
	if err := g.flatten(from); err != nil {
		return nil, err
	}
	where = g.leftToAnti(where)
	where, err := g.semijoins(where)
	if err != nil {
		return nil, err
	}
	for _, e := range where {
		for _, c := range p.factorOr(e) {
			g.conds = append(g.conds, cond{e: c, class: -1})
		}
	}
	if g.never = g.foldConds(); g.never {
		return g, nil
	}
	g.conds = p.equalities(g.conds)
	for i := range g.conds {
		c := &g.conds[i]
		c.units = g.unitsOf(c.e)
		if c.volatil = p.isVolatileExpr(c.e); c.volatil {
			c.units = g.all()
		}
		g.noteEqual(c.e)
	}
	g.pushLocal()
	return g, nil
}

func (g *joinGraph) all() uint64 { return 1<<len(g.units) - 1 }

// foldConds decides conditions without columns.
func (g *joinGraph) foldConds() (never bool) {
	if !g.p.on(ConstantFolding) {
		return false
	}
	kept := g.conds[:0]
	for _, c := range g.conds {
		switch g.p.constantTruth(c.e) {
		case neverTrue:
			return true
		case truthUnknown:
			kept = append(kept, c)
		}
	}
	g.conds = kept
	return false
}

// noteEqual remembers what an equality says of orders.
func (g *joinGraph) noteEqual(e ast.Expr) {
	if a, b, ok := g.p.columnEquality(e); ok {
		g.equal.union(a, b)
	} else if id, _, ok := g.p.constantEquality(e); ok {
		g.fixed.add(id)
	}
}

// flatten adds the units of a tree, and the conditions of its inner joins.
func (g *joinGraph) flatten(t *joinTree) error {
	switch {
	case t.leaf != nil:
		u := g.add(&unit{kind: InnerJoin, rel: t.leaf})
		if t.leaf.lateral {
			u.dependent = true
			u.needs = g.unitsOfSet(t.leaf.query.outer)
		}
		for _, e := range t.on {
			g.conds = append(g.conds, cond{e: e, class: -1})
		}
		return nil
	case t.kind != InnerJoin:
		if err := g.flatten(t.left); err != nil {
			return err
		}
		g.attach(t.kind, t.right, t.on)
		return nil
	}
	if err := g.flatten(t.left); err != nil {
		return err
	}
	before := g.all()
	n := len(g.units)
	if err := g.flatten(t.right); err != nil {
		return err
	}
	if t.straight || !g.p.on(JoinReorder) {
		for _, u := range g.units[n:] {
			u.needs |= before
		}
	}
	for _, e := range t.on {
		g.conds = append(g.conds, cond{e: e, class: -1})
	}
	return nil
}

// attach adds the right side of an outer, semi or anti join as one unit.
func (g *joinGraph) attach(kind JoinKind, right *joinTree, on []ast.Expr) *unit {
	u := g.add(&unit{kind: kind})
	on = on[:len(on):len(on)]
	if right.leaf != nil {
		u.rel = right.leaf
		on = append(on, right.on...)
		u.dependent = u.rel.lateral
		if u.dependent {
			u.needs = g.unitsOfSet(u.rel.query.outer)
		}
	} else {
		u.tree = right
	}
	own := g.p.treeColumns(right)
	if u.tree != nil {
		g.noteLaterals(u, own)
	}
	for id := range own {
		u.cols.add(id)
	}
	for _, e := range on {
		set := g.p.columnSet(e)
		inside, outside := false, false
		for id := range set {
			if own.has(id) {
				inside = true
			} else if g.unitsOfSet(colSet{id: {}}) != 0 {
				outside = true
			}
		}
		if inside && !outside && kind != NullAwareAntiJoin {
			u.local = append(u.local, e)
			continue
		}
		u.on = append(u.on, e)
		u.needs |= g.unitsOf(e) &^ (1 << u.index)
	}
	if u.needs == 0 || !g.p.on(JoinReorder) {
		u.needs = 1<<u.index - 1
	}
	return u
}

// noteLaterals notes the columns outside of a unit's tree that lateral derived tables in
// it read, those that became part of the tree included.
func (g *joinGraph) noteLaterals(u *unit, own colSet) {
	u.lateral = colSet{}
	for id := range g.p.lateralColumns(u.tree, colSet{}) {
		if !own.has(id) && g.unitsOfSet(colSet{id: {}}) != 0 {
			u.lateral.add(id)
		}
	}
	u.dependent = len(u.lateral) > 0
	u.needs |= g.unitsOfSet(u.lateral)
}

// lateralColumns adds the columns that the conditions and lateral derived tables of a tree
// read.
func (p *planner) lateralColumns(t *joinTree, set colSet) colSet {
	for _, e := range t.on {
		p.columnsOf(e, set)
	}
	switch {
	case t.leaf == nil:
		p.lateralColumns(t.left, set)
		p.lateralColumns(t.right, set)
	case t.leaf.lateral:
		set.addAll(t.leaf.query.outer)
	}
	return set
}

// outside are the columns that a dependent unit reads of what it needs.
func (u *unit) outside() colSet {
	if u.rel != nil {
		return u.rel.query.outer
	}
	return u.lateral
}

func (g *joinGraph) add(u *unit) *unit {
	u.index = len(g.units)
	u.cols = colSet{}
	if u.rel != nil {
		u.rel.addColumns(u.cols)
	}
	g.units = append(g.units, u)
	return u
}

// leftToAnti makes anti joins of left joins whose matches WHERE rejects: those with a
// condition that a column that is never NULL in its table be NULL. Nothing else may
// read the unit's columns.
func (g *joinGraph) leftToAnti(where []ast.Expr) []ast.Expr {
	if !g.p.on(OuterToInner) {
		return where
	}
	for _, u := range g.units {
		if u.kind != LeftJoin || u.rel == nil || u.rel.table == nil || u.dependent {
			continue
		}
		at := -1
		for i, e := range where {
			n, ok := e.(*ast.IsNull)
			if !ok || n.Not {
				continue
			}
			if pos, ok := g.p.ownColumn(u.rel, n.Operand); ok && u.rel.def().Columns[pos].Type.NotNull {
				at = i
			}
		}
		if at < 0 {
			continue
		}
		rest := slices.Delete(slices.Clone(where), at, at+1)
		if !g.readElsewhere(u, rest) {
			u.kind, where = AntiJoin, rest
		}
	}
	return where
}

// readElsewhere reports whether columns of an outer joined unit are read other than by
// its own condition.
func (g *joinGraph) readElsewhere(u *unit, where []ast.Expr) bool {
	set := g.p.columnSet(where...)
	set.addAll(g.wanted)
	for _, c := range g.conds {
		g.p.columnsOf(c.e, set)
	}
	for _, o := range g.units {
		if o == u {
			continue
		}
		for _, e := range o.on {
			g.p.columnsOf(e, set)
		}
		if o.dependent {
			set.addAll(o.outside())
		}
	}
	for id := range set {
		if u.cols.has(id) {
			return true
		}
	}
	return false
}

// unitsOf returns the units that an expression reads.
func (g *joinGraph) unitsOf(e ast.Expr) uint64 { return g.unitsOfSet(g.p.columnSet(e)) }

func (g *joinGraph) unitsOfSet(set colSet) uint64 {
	var m uint64
	for id := range set {
		for _, u := range g.units {
			if u.cols.has(id) {
				m |= 1 << u.index
			}
		}
	}
	return m
}

// pushLocal moves conditions on one inner unit to it. Those on none are left: they are
// checked before anything is read.
func (g *joinGraph) pushLocal() {
	kept := g.conds[:0]
	for _, c := range g.conds {
		if bits.OnesCount64(c.units) == 1 && !c.volatil {
			u := g.units[bits.TrailingZeros64(c.units)]
			if u.kind == InnerJoin {
				u.local = append(u.local, c.e)
				continue
			}
		}
		kept = append(kept, c)
	}
	g.conds = kept
}

// reads adds every column that is read of a unit after it has been joined.
func (g *joinGraph) reads() colSet {
	set := colSet{}
	set.addAll(g.wanted)
	for i := range g.conds {
		g.p.columnsOf(g.conds[i].e, set)
	}
	for _, u := range g.units {
		for _, e := range u.on {
			g.p.columnsOf(e, set)
		}
		if u.dependent {
			set.addAll(u.outside())
		}
	}
	return set
}

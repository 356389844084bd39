package plan

import (
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
)

// semijoins makes semi and anti joins of the conditions that are [NOT] EXISTS or [NOT]
// IN of a query, where the rows stay the same, and returns the other conditions.
func (g *joinGraph) semijoins(where []ast.Expr) ([]ast.Expr, error) {
	if !g.p.on(Semijoin) {
		return where, nil
	}
	var rest []ast.Expr
	for _, e := range where {
		ok, err := g.semijoin(e, false)
		if err != nil {
			return nil, err
		}
		if !ok {
			rest = append(rest, e)
		}
	}
	return rest, nil
}

// semijoin converts one condition; not says that its negation is meant.
func (g *joinGraph) semijoin(e ast.Expr, not bool) (bool, error) {
	switch e := e.(type) {
	case *ast.Unary:
		if e.Op == ast.OpNot {
			return g.semijoin(e.Operand, !not)
		}
	case *ast.Exists:
		return g.exists(g.p.subs[e], not)
	case *ast.In:
		if e.Query != nil {
			return g.inQuery(e, g.p.subs[e], e.Not != not)
		}
	case *ast.Binary:
		// x = ANY (query) is IN.
		if q, ok := e.Right.(*ast.Subquery); ok && e.Op == ast.OpEq && q.Quantifier == ast.QuantifierAny {
			in := &ast.In{Operand: e.Left, Query: q.Query}
			return g.inQuery(in, g.p.subs[q], not)
		}
	}
	return false, nil
}

// flat reports whether a query's tables may be joined in the query around it.
func flat(q *query, exists bool) bool {
	b := q.block
	if b == nil || b.from == nil || b.values != nil || b.grouped || len(b.calls) > 0 || len(b.having) > 0 || q.volatile {
		return false
	}
	if b.limit == nil {
		return true
	}
	// EXISTS (.. LIMIT n) is EXISTS, unless n is 0.
	l, ok := b.limit.count.(*ast.Literal)
	return exists && b.limit.offset == nil && ok && l.Value.Uint() > 0
}

func (g *joinGraph) exists(s *subquery, not bool) (bool, error) {
	if len(g.units)+1 > maxRelations || !flat(s.query, true) {
		return false, nil
	}
	b := s.query.block
	kind := SemiJoin
	if not {
		kind = AntiJoin
	}
	if g.unitsOfSet(s.query.outer) == 0 {
		return false, nil // not correlated: evaluated once
	}
	return g.attachQuery(kind, b, nil)
}

// attachQuery adds a flat query as the right side of a semi or anti join.
func (g *joinGraph) attachQuery(kind JoinKind, b *block, on []ast.Expr) (bool, error) {
	from := b.from
	if g.p.on(OuterToInner) {
		from = g.p.outerToInner(from, b.where)
	}
	on = append(on, b.where...)
	for _, e := range on {
		if g.p.isVolatileExpr(e) {
			return false, nil
		}
	}
	for _, rel := range from.rels(nil) {
		// A derived table that reads the query around is a lateral one now.
		rel.lateral = rel.lateral || rel.query != nil && g.unitsOfSet(rel.query.outer) != 0
	}
	g.attach(kind, from, on)
	return true, nil
}

func (g *joinGraph) inQuery(in *ast.In, s *subquery, not bool) (bool, error) {
	p := g.p
	left := []ast.Expr{in.Operand}
	if row, ok := in.Operand.(*ast.Row); ok {
		left = row.Items
	}
	if len(left) != len(s.query.out) || p.isVolatileExpr(in.Operand) || p.hasSubquery(in.Operand) ||
		len(g.units)+1 > maxRelations {
		return false, nil
	}
	if g.unitsOf(in.Operand) == 0 {
		return false, nil
	}
	kind := SemiJoin
	correlated := len(s.query.outer) > 0
	if not {
		kind = AntiJoin
		if g.mayBeNull(left, s.query) {
			if correlated || len(left) > 1 {
				return false, nil
			}
			kind = NullAwareAntiJoin
		}
	}
	if kind == SemiJoin && !correlated && distinctable(s.query) && g.distinctMeansOnce(left, s.query) {
		g.loosable++
		if g.loose {
			return g.joinDistinct(left, s.query, s.number)
		}
	}
	if flat(s.query, false) && kind != NullAwareAntiJoin {
		b := s.query.block
		on := make([]ast.Expr, len(left))
		for i := range left {
			if p.hasSubquery(b.items[i].expr) {
				return false, nil
			}
			on[i] = &ast.Binary{Op: ast.OpEq, Left: left[i], Right: b.items[i].expr}
		}
		return g.attachQuery(kind, b, on)
	}
	if correlated || s.query.volatile {
		return false, nil
	}
	rel := p.derivedRelation(s.query, "<subquery"+itoa(s.number+2)+">", nil)
	on := make([]ast.Expr, len(left))
	for i := range left {
		on[i] = &ast.Binary{Op: ast.OpEq, Left: left[i], Right: p.ref(rel.column(i))}
	}
	g.attach(kind, &joinTree{leaf: rel}, on)
	return true, nil
}

// distinctable reports whether a query's distinct rows are another query.
func distinctable(q *query) bool {
	return !q.volatile && (q.block != nil && q.block.values == nil && q.block.limit == nil && !q.block.rollup ||
		q.set != nil && q.set.op == ast.SetUnion && !q.set.all && q.set.limit == nil)
}

// distinctMeansOnce reports whether no two distinct rows of the query match one left row:
// equal means the same thing on both sides.
func (g *joinGraph) distinctMeansOnce(left []ast.Expr, q *query) bool {
	for i, e := range left {
		n, err := g.p.bindTyping(e)
		if err != nil {
			return false
		}
		a, b := n.Type(), q.out[i].typ
		if !sameType(a, b) && !(a.IsInteger() && b.IsInteger()) {
			return false
		}
	}
	return true
}

// joinDistinct joins the distinct rows of an IN subquery.
func (g *joinGraph) joinDistinct(left []ast.Expr, q *query, number int) (bool, error) {
	c := *q
	if q.block != nil {
		b := *q.block
		b.distinct, b.order = true, nil
		c.block = &b
	}
	rel := g.p.derivedRelation(&c, "<subquery"+itoa(number+2)+">", nil)
	g.add(&unit{kind: InnerJoin, rel: rel})
	for i := range left {
		g.conds = append(g.conds, cond{e: &ast.Binary{Op: ast.OpEq, Left: left[i], Right: g.p.ref(rel.column(i))}, class: -1})
	}
	return true, nil
}

// mayBeNull reports whether either side of an IN may be NULL.
func (g *joinGraph) mayBeNull(left []ast.Expr, q *query) bool {
	for i, e := range left {
		n, err := g.p.bindTyping(e)
		if err != nil || !n.Type().NotNull || !q.out[i].typ.NotNull {
			return true
		}
		// What an outer join has no row of is NULL, whatever its type says.
		for id := range g.p.columnSet(e) {
			if !slices.ContainsFunc(g.units, func(u *unit) bool { return u.kind == InnerJoin && u.cols.has(id) }) {
				return true
			}
		}
		if q.block == nil {
			continue
		}
		for id := range g.p.columnSet(q.block.items[i].expr) {
			if q.block.from != nil && !g.innerColumn(q.block.from, id) {
				return true
			}
		}
	}
	return false
}

// innerColumn reports whether a column is of a relation that no outer join of the tree
// fills with NULLs.
func (g *joinGraph) innerColumn(t *joinTree, id colID) bool {
	if t.leaf != nil {
		return g.p.treeColumns(t).has(id)
	}
	return g.innerColumn(t.left, id) || t.kind == InnerJoin && g.innerColumn(t.right, id)
}

package plan

import "github.com/triremedb/trireme/engine/sql/expr"

// pointOf recognises a query that reads at most one row by a unique key; nil for
// others.
func pointOf(root Node) *Point {
	if l, ok := root.(*Limit); ok && !l.CountAll && l.Offset == nil {
		c, ok := l.Count.(*expr.Const)
		if !ok || c.Literal().Uint() == 0 {
			return nil
		}
		root = l.Input
	}
	pt := &Point{}
	if p, ok := root.(*Project); ok {
		pt.Exprs, root = p.Exprs, p.Input
	}
	g, ok := root.(*PointGet)
	if !ok || !plain(g.Filter) {
		return nil
	}
	for _, e := range pt.Exprs {
		if !plain(e) {
			return nil
		}
	}
	for i := range g.Key {
		if !plain(g.Key[i].Expr) {
			return nil
		}
	}
	pt.Get = g
	return pt
}

// plain reports whether an expression runs without operators.
func plain(n expr.Node) bool {
	return n == nil || expr.Walk(n, func(n expr.Node) bool {
		switch n.(type) {
		case *Subquery, *Outer:
			return false
		}
		return true
	})
}

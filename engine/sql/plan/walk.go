package plan

import "github.com/triremedb/trireme/engine/sql/ast"

// mapExpr copies e with f applied to it and, where f leaves a node alone (nil), to the
// nodes below. Nodes without operands that f leaves alone are shared with the original:
// trees are immutable. Queries within e are not entered.
func mapExpr(e ast.Expr, f func(ast.Expr) (ast.Expr, error)) (ast.Expr, error) {
	if e == nil {
		return nil, nil
	}
	if r, err := f(e); r != nil || err != nil {
		return r, err
	}
	m := mapper{f: f}
	r := m.operands(e)
	return r, m.err
}

// mapper applies f to the operands of nodes and keeps the first error.
type mapper struct {
	f   func(ast.Expr) (ast.Expr, error)
	err error
}

func (m *mapper) one(e ast.Expr) ast.Expr {
	if e == nil || m.err != nil {
		return e
	}
	r, err := mapExpr(e, m.f)
	if err != nil {
		m.err = err
		return e
	}
	return r
}

func (m *mapper) list(l []ast.Expr) []ast.Expr {
	if l == nil {
		return nil
	}
	r := make([]ast.Expr, len(l))
	for i, e := range l {
		r[i] = m.one(e)
	}
	return r
}

func (m *mapper) order(l []ast.OrderItem) []ast.OrderItem {
	if l == nil {
		return nil
	}
	r := make([]ast.OrderItem, len(l))
	for i, o := range l {
		r[i] = ast.OrderItem{Expr: m.one(o.Expr), Desc: o.Desc}
	}
	return r
}

// operands returns a copy of e with mapped operands.
func (m *mapper) operands(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.Binary:
		return &ast.Binary{Op: e.Op, Left: m.one(e.Left), Right: m.one(e.Right)}
	case *ast.Unary:
		return &ast.Unary{Op: e.Op, Operand: m.one(e.Operand)}
	case *ast.Func:
		c := *e
		c.Args = m.list(e.Args)
		return &c
	case *ast.Aggregate:
		c := *e
		c.Args, c.OrderBy = m.list(e.Args), m.order(e.OrderBy)
		return &c
	case *ast.Case:
		c := ast.Case{Operand: m.one(e.Operand), When: make([]ast.When, len(e.When)), Else: m.one(e.Else)}
		for i, w := range e.When {
			c.When[i] = ast.When{Cond: m.one(w.Cond), Result: m.one(w.Result)}
		}
		return &c
	case *ast.Cast:
		c := *e
		c.Operand = m.one(e.Operand)
		return &c
	case *ast.In:
		c := *e
		c.Operand, c.List = m.one(e.Operand), m.list(e.List)
		return &c
	case *ast.Between:
		return &ast.Between{Operand: m.one(e.Operand), Low: m.one(e.Low), High: m.one(e.High), Not: e.Not}
	case *ast.Like:
		return &ast.Like{Operand: m.one(e.Operand), Pattern: m.one(e.Pattern), Not: e.Not, Escape: m.one(e.Escape)}
	case *ast.Regexp:
		return &ast.Regexp{Operand: m.one(e.Operand), Pattern: m.one(e.Pattern), Not: e.Not}
	case *ast.IsNull:
		return &ast.IsNull{Operand: m.one(e.Operand), Not: e.Not}
	case *ast.IsTruth:
		return &ast.IsTruth{Operand: m.one(e.Operand), Not: e.Not, True: e.True}
	case *ast.JSONValue:
		c := *e
		c.Doc = m.one(e.Doc)
		return &c
	case *ast.MemberOf:
		return &ast.MemberOf{Operand: m.one(e.Operand), Array: m.one(e.Array)}
	case *ast.Row:
		return &ast.Row{Items: m.list(e.Items)}
	case *ast.Assign:
		return &ast.Assign{Name: e.Name, Value: m.one(e.Value)}
	case *ast.Interval:
		return &ast.Interval{Value: m.one(e.Value), Unit: e.Unit}
	case *ast.Collate:
		return &ast.Collate{Operand: m.one(e.Operand), Collation: e.Collation}
	case *ast.Match:
		c := *e
		c.Against = m.one(e.Against)
		return &c
	case *ast.WindowFunc:
		c := *e
		c.Args = m.list(e.Args)
		return &c
	}
	return e
}

// walkExpr calls f for e and, while f returns true, for the nodes below it. Queries
// within e are not entered.
func walkExpr(e ast.Expr, f func(ast.Expr) bool) {
	if e == nil || !f(e) {
		return
	}
	for _, c := range ast.Operands(e) {
		walkExpr(c, f)
	}
}

// conjuncts appends the operands of AND in e, in order.
func conjuncts(list []ast.Expr, e ast.Expr) []ast.Expr {
	if b, ok := e.(*ast.Binary); ok && b.Op == ast.OpAnd {
		return conjuncts(conjuncts(list, b.Left), b.Right)
	}
	if e == nil {
		return list
	}
	return append(list, e)
}

// disjuncts appends the operands of OR in e, in order.
func disjuncts(list []ast.Expr, e ast.Expr) []ast.Expr {
	if b, ok := e.(*ast.Binary); ok && b.Op == ast.OpOr {
		return disjuncts(disjuncts(list, b.Left), b.Right)
	}
	return append(list, e)
}

// conjunction is the AND of a list as a balanced tree; nil for an empty one.
func conjunction(list []ast.Expr) ast.Expr {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	n := len(list) / 2
	return &ast.Binary{Op: ast.OpAnd, Left: conjunction(list[:n]), Right: conjunction(list[n:])}
}

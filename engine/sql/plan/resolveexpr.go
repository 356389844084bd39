package plan

import (
	"maps"
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// resolve copies an expression with every name replaced by what it means.
func (p *planner) resolve(s *scope, e ast.Expr) (ast.Expr, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	merged := 0
	return mapExpr(e, func(e ast.Expr) (ast.Expr, error) {
		switch e := e.(type) {
		case *ast.ColumnRef:
			if _, ok := p.refs[e]; ok {
				return e, nil
			}
			r, err := p.lookup(s, e)
			if err != nil {
				return nil, err
			}
			if _, ok := r.(*ast.ColumnRef); !ok {
				if merged += countNodes(r, maxMerged); merged > maxMerged {
					return nil, sqlerr.Newf(sqlerr.StackOverrunNeedMore, "Thread stack overrun: the expression grows "+
						"beyond %d operators", maxMerged)
				}
			}
			return r, nil
		case *ast.Aggregate:
			return p.resolveAggregate(s, e)
		case *ast.Default:
			if _, ok := p.defaults[e]; ok {
				return e, nil
			}
			return p.resolveDefault(s, e)
		case *ast.Func:
			if isGrouping(e) {
				return p.resolveLevel(s, e)
			}
		case *ast.Subquery, *ast.Exists:
			return p.resolveSubquery(s, e)
		case *ast.In:
			if e.Query == nil {
				return nil, nil
			}
			return p.resolveSubquery(s, e)
		case *ast.WindowFunc:
			return p.resolveWindowFunc(s, e)
		}
		return nil, nil
	})
}

// countNodes counts the nodes of e, up to a limit.
func countNodes(e ast.Expr, limit int) int {
	n := 0
	walkExpr(e, func(ast.Expr) bool {
		n++
		return n <= limit
	})
	return n
}

// resolveSubquery resolves a query within an expression.
func (p *planner) resolveSubquery(s *scope, e ast.Expr) (ast.Expr, error) {
	sub := &subquery{}
	var err error
	var copied ast.Expr
	var q ast.Query
	switch e := e.(type) {
	case *ast.Subquery:
		copied, q = &ast.Subquery{Query: e.Query, Quantifier: e.Quantifier}, e.Query
	case *ast.Exists:
		copied, q = &ast.Exists{Query: e.Query}, e.Query
	case *ast.In:
		operand, err := p.resolve(s, e.Operand)
		if err != nil {
			return nil, err
		}
		copied, q = &ast.In{Operand: operand, Not: e.Not, Query: e.Query}, e.Query
	}
	if sub.query, err = p.resolveQuery(q, subScope(s)); err != nil {
		return nil, err
	}
	if len(sub.query.out) == 1 {
		sub.typ = *sub.query.out[0].typ
		sub.typ.NotNull, sub.typ.ZeroFill = false, false
		sub.co = sub.query.insistence()[0]
	}
	sub.number = p.subCount
	p.subCount++
	p.subs[copied] = sub
	return copied, nil
}

// resolveAggregate makes an aggregate a column of its block: that of the query around it whose columns it is of. One that is
// written twice is computed once.
func (p *planner) resolveAggregate(s *scope, a *ast.Aggregate) (ast.Expr, error) {
	if s.aggs == nil && s.parent == nil {
		return nil, sqlerr.New(sqlerr.InvalidGroupFuncUse)
	}
	args := *s
	args.aggs, args.aliases, args.having, args.windows, args.list = nil, nil, false, nil, nil
	var before []colSet // what the queries from s on read of others, without the arguments
	for in := s; in != nil; in = in.parent {
		before = append(before, maps.Clone(in.q.outer))
	}
	c := *a
	c.Args, c.OrderBy = nil, nil
	for _, e := range a.Args {
		if _, ok := e.(*ast.Star); ok {
			c.Args = append(c.Args, e)
			continue
		}
		r, err := p.resolve(&args, e)
		if err != nil {
			return nil, err
		}
		c.Args = append(c.Args, r)
	}
	for _, o := range a.OrderBy {
		r, err := p.resolve(&args, o.Expr)
		if err != nil {
			return nil, err
		}
		c.OrderBy = append(c.OrderBy, ast.OrderItem{Expr: r, Desc: o.Desc})
	}
	of := p.aggregatedBy(s, &c)
	if of == nil {
		return nil, sqlerr.New(sqlerr.InvalidGroupFuncUse)
	}
	if of.q != s.q {
		// The arguments are read by that query: those within read the result.
		for in := s; in != of; in, before = in.parent, before[1:] {
			if in.q != of.q {
				in.q.outer = before[0]
			}
		}
	}
	e, err := p.aggregateColumn(of.aggs, &c)
	if err == nil {
		p.readsOuter(s, of, e)
	}
	return e, err
}

// aggregatedBy finds the scope whose query computes an aggregate: the innermost one that has a column of it or, where that one may
// have no aggregates, as in WHERE, the next one within that may. nil: there is none.
func (p *planner) aggregatedBy(s *scope, a *ast.Aggregate) *scope {
	set := p.columnSet(append(slices.Clone(a.Args), orderExprs(a.OrderBy)...)...)
	of, may := s, s
	if len(set) > 0 {
		for ; of != nil && !p.ownsAny(of, set); of = of.parent {
			if of.aggs != nil {
				may = of
			}
		}
	}
	if of != nil && of.aggs != nil {
		may = of
	}
	if may.aggs == nil {
		return nil
	}
	return may
}

func orderExprs(list []ast.OrderItem) []ast.Expr {
	out := make([]ast.Expr, len(list))
	for i, o := range list {
		out[i] = o.Expr
	}
	return out
}

// ownsAny reports whether one of some columns is of the scope's own query.
func (p *planner) ownsAny(s *scope, set colSet) bool {
	for id := range set {
		if p.isOwn(s, id) {
			return true
		}
	}
	return false
}

// isOwn reports whether a column is one of the scope's own.
func (p *planner) isOwn(s *scope, id colID) bool {
	for i := range s.cols {
		if p.columnSet(s.cols[i].expr).has(id) {
			return true
		}
	}
	return false
}

// aggregateColumn returns the column of an aggregate's result in the block.
func (p *planner) aggregateColumn(b *block, a *ast.Aggregate) (ast.Expr, error) {
	for i := range b.aggs {
		if p.same(b.aggs[i].call, a) {
			return p.ref(b.aggs[i].id), nil
		}
	}
	t, co, err := p.aggregateType(a)
	if err != nil {
		return nil, err
	}
	id := p.newColumnOf(column{typ: t, meta: Column{Name: p.text(a), Type: t}}, co)
	b.aggs = append(b.aggs, aggregate{call: a, id: id})
	return p.ref(id), nil
}

// isVolatile reports whether a node gives another value whenever it is evaluated.
func isVolatile(n expr.Node) bool { return expr.VolatilityOf(n) == expr.Volatile }

package plan

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

func errSetColumns() error {
	return sqlerr.New(sqlerr.WrongNumberOfColumnsInSelect)
}

// resolveSetOp resolves UNION, EXCEPT, INTERSECT, and a query in parentheses.
func (p *planner) resolveSetOp(u *ast.SetOp, around *scope) (*query, error) {
	left, err := p.resolveOperand(u.Left, around)
	if err != nil {
		return nil, err
	}
	set := &setOperation{op: u.Op, all: u.All, left: left}
	set.calcRows = left.takeCalcRows()
	q := &query{set: set, outer: colSet{}, volatile: left.volatile}
	q.outer.addAll(left.outer)
	q.out = append([]outColumn(nil), left.out...)
	if u.Op != ast.SetNone {
		if set.right, err = p.resolveOperand(u.Right, around); err != nil {
			return nil, err
		}
		q.outer.addAll(set.right.outer)
		q.volatile = q.volatile || set.right.volatile
		if err := p.setTypes(q, around.chained); err != nil {
			return nil, err
		}
	} else {
		p.endChain(left)
	}
	set.rel = p.newRelation("", q.out, nil)
	s := queryScope(around, q)
	s.cols = p.columnsVisible(set.rel)
	b := &block{}
	for i := range set.rel.n {
		id := set.rel.column(i)
		b.items = append(b.items, item{expr: p.ref(id), meta: p.cols[id].meta})
	}
	for _, o := range u.OrderBy {
		if ref, ok := o.Expr.(*ast.ColumnRef); ok && ref.Table != "" {
			return nil, sqlerr.New(sqlerr.TableNameNotAllowedHere, ref.Table, "global ORDER clause")
		}
		k, err := p.resolveOrder(o, b, s, nil)
		if err != nil {
			return nil, err
		}
		if len(b.aggs) > 0 {
			return nil, sqlerr.Newf(sqlerr.AggregateOrderForUnion, "Expression #%d of ORDER BY contains aggregate "+
				"function and applies to the result of a non-aggregated query", len(set.order)+1)
		}
		set.order = append(set.order, k)
	}
	set.limit, err = p.resolveLimit(s, u.Limit)
	return q, err
}

// takeCalcRows reports whether a query has SQL_CALC_FOUND_ROWS, which counts the rows of the operation that it begins.
func (q *query) takeCalcRows() bool {
	var at *bool
	if q.set != nil {
		at = &q.set.calcRows
	} else {
		at = &q.block.calcRows
	}
	had := *at
	*at = false
	return had
}

func (p *planner) resolveOperand(q ast.Query, around *scope) (*query, error) {
	inner := *around
	inner.depth = around.depth // operands nest by their own queries only
	u, ok := q.(*ast.SetOp)
	inner.chained = ok && u.With == nil && len(u.OrderBy) == 0 && u.Limit == nil
	return p.resolveQuery(q, &inner)
}

// setTypes gives a set operation the types that hold both sides' values. Texts without a
// collation in common are an error (1271) unless the operation is chained to another, which may
// have one that decides.
func (p *planner) setTypes(q *query, chained bool) error {
	l, r := q.set.left.out, q.set.right.out
	if len(l) != len(r) {
		return errSetColumns()
	}
	b := expr.NewBinder(&typing{p: p, NoScope: expr.NoScope{Opt: p.env.Options}})
	for i := range q.out {
		t, co, err := b.UnifyResults("UNION", l[i].node, r[i].node)
		if err == nil && co == expr.NoCollation && !chained {
			err = sqlerr.New(sqlerr.CantAggregateNCollations, "UNION")
		}
		if err != nil {
			return err
		}
		t.ZeroFill = false
		q.out[i] = outColumn{meta: Column{Name: l[i].meta.Name, Type: &t}, typ: &t, node: resultNode{expr.NewColumn(i, &t, ""), co}}
	}
	// Once for a chain of operations: from its end, which is not chained to another.
	for _, in := range []*query{q.set.left, q.set.right} {
		if !in.partOf(q.set) {
			p.endChain(in)
		}
	}
	if q.set.chained = chained; !chained {
		p.passTypes(q)
	}
	return nil
}

// endChain says that a query that could have been chained to another operation is not.
func (p *planner) endChain(q *query) {
	if q.set != nil && q.set.chained {
		p.passTypes(q)
	}
}

// passTypes gives operands that are one with a set operation its types: a UNION b UNION c is one
// operation on three queries, each of whose values are converted once, from the type they have.
func (p *planner) passTypes(q *query) {
	for _, in := range []*query{q.set.left, q.set.right} {
		if !in.partOf(q.set) {
			continue
		}
		for i := range in.out {
			t := *q.out[i].typ
			in.out[i].typ, in.out[i].meta.Type = &t, &t
			c := &p.cols[in.set.rel.column(i)]
			c.typ, c.meta.Type = &t, &t
		}
		p.passTypes(in)
	}
}

// partOf reports whether a query is an operand that could as well be several of the operation's:
// a distinct union takes what its operands have twice for one anyway.
func (q *query) partOf(o *setOperation) bool {
	s := q.set
	if s == nil || s.op != o.op || s.op == ast.SetNone || s.limit != nil || len(s.order) > 0 || o.all && !s.all {
		return false
	}
	return q == o.left || o.op == ast.SetUnion
}

// resultNode stands for a column that several queries or rows give: it insists on its collation
// as much as the one of them does that insists most.
type resultNode struct {
	*expr.Column
	co expr.Coercibility
}

func (n resultNode) Coercibility() expr.Coercibility { return n.co }

// commonNode returns a node of the type that holds values of all expressions.
func (p *planner) commonNode(list []ast.Expr) (expr.Node, error) {
	if len(list) == 1 {
		return p.bindTyping(list[0])
	}
	c := &ast.Case{Else: list[len(list)-1]}
	for _, e := range list[:len(list)-1] {
		c.When = append(c.When, ast.When{Cond: &ast.Func{Name: "rand"}, Result: e})
	}
	return p.bindTyping(c)
}

// castTo converts a column's values to a type unless they have it.
func castTo(n expr.Node, t *types.Type) expr.Node {
	a, b := *n.Type(), *t
	a.NotNull, b.NotNull = false, false
	if a.Equal(&b) {
		return n
	}
	return expr.NewResult(n, *t)
}

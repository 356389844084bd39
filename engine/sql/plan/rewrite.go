package plan

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/types"
)

// outerToInner makes inner joins of outer ones whose NULL rows no condition above lets
// through. conds are the conditions above the tree; the returned tree's inner joins'
// conditions stay where they are.
func (p *planner) outerToInner(t *joinTree, conds []ast.Expr) *joinTree {
	if t == nil || t.leaf != nil {
		return t
	}
	c := *t
	if c.kind == LeftJoin {
		cols := p.treeColumns(t.right)
		for _, e := range conds {
			if p.rejectsNull(e, cols) {
				c.kind = InnerJoin
				break
			}
		}
	}
	if c.kind == InnerJoin {
		conds = append(conds[:len(conds):len(conds)], c.on...)
		c.left, c.right = p.outerToInner(t.left, conds), p.outerToInner(t.right, conds)
		return &c
	}
	c.left = p.outerToInner(t.left, conds)
	c.right = p.outerToInner(t.right, c.on)
	return &c
}

// treeColumns are the columns of all relations of a tree.
func (p *planner) treeColumns(t *joinTree) colSet {
	set := colSet{}
	for _, r := range t.rels(nil) {
		r.addColumns(set)
	}
	return set
}

func (r *relation) addColumns(set colSet) {
	for i := range r.n {
		set.add(r.column(i))
	}
	if r.rowKey >= 0 {
		set.add(r.rowKey)
	}
}

// rejectsNull reports whether a condition is not true for any row whose columns of the
// set are all NULL.
func (p *planner) rejectsNull(e ast.Expr, set colSet) bool {
	switch e := e.(type) {
	case *ast.Binary:
		switch {
		case e.Op == ast.OpAnd:
			return p.rejectsNull(e.Left, set) || p.rejectsNull(e.Right, set)
		case e.Op == ast.OpOr:
			return p.rejectsNull(e.Left, set) && p.rejectsNull(e.Right, set)
		case e.Op == ast.OpNullEq:
			return false
		}
		if q, ok := e.Right.(*ast.Subquery); ok && q.Quantifier != ast.QuantifierNone {
			// Without rows ANY is false and ALL is true, whatever is on the left.
			return q.Quantifier == ast.QuantifierAny && p.strict(e.Left, set)
		}
	case *ast.Unary:
		if e.Op == ast.OpNot {
			return p.strict(e.Operand, set)
		}
	case *ast.IsNull:
		return e.Not && p.strict(e.Operand, set)
	case *ast.IsTruth:
		return !e.Not && p.strict(e.Operand, set)
	case *ast.In:
		if e.Query != nil {
			return !e.Not && p.strict(e.Operand, set)
		}
	}
	return p.strict(e, set)
}

// strictFunctions are NULL if an argument is.
var strictFunctions = map[string]bool{
	"lower": true, "upper": true, "lcase": true, "ucase": true, "abs": true, "date": true, "year": true, "month": true,
	"day": true, "dayofmonth": true, "hour": true, "minute": true, "second": true, "length": true, "char_length": true,
	"substring": true, "substr": true, "left": true, "right": true, "trim": true, "ltrim": true, "rtrim": true,
	"round": true, "floor": true, "ceil": true, "ceiling": true, "truncate": true, "concat": true, "mod": true,
	"date_add": true, "date_sub": true, "datediff": true, "locate": true, "replace": true, "reverse": true, "hex": true,
}

// strict reports whether an expression is NULL for any row whose columns of the set are
// all NULL.
func (p *planner) strict(e ast.Expr, set colSet) bool {
	switch e := e.(type) {
	case *ast.ColumnRef:
		return set.has(p.refs[e])
	case *ast.Binary:
		switch e.Op {
		case ast.OpAnd, ast.OpOr:
			return p.strict(e.Left, set) && p.strict(e.Right, set)
		case ast.OpNullEq:
			return false
		}
		if q, ok := e.Right.(*ast.Subquery); ok && q.Quantifier != ast.QuantifierNone {
			return false
		}
		return p.strict(e.Left, set) || p.strict(e.Right, set)
	case *ast.Unary:
		return p.strict(e.Operand, set)
	case *ast.Cast:
		return p.strict(e.Operand, set)
	case *ast.Collate:
		return p.strict(e.Operand, set)
	case *ast.Between:
		return p.strict(e.Operand, set)
	case *ast.Like:
		return p.strict(e.Operand, set) || p.strict(e.Pattern, set)
	case *ast.Regexp:
		return p.strict(e.Operand, set) || p.strict(e.Pattern, set)
	case *ast.In:
		return e.Query == nil && p.strict(e.Operand, set)
	case *ast.Func:
		if e.Schema == "" && strictFunctions[e.Name] {
			for _, a := range e.Args {
				if p.strict(a, set) {
					return true
				}
			}
		}
	}
	return false
}

// truth is what is known of a condition when planning.
type truth uint8

const (
	truthUnknown truth = iota
	alwaysTrue
	neverTrue
)

// constantTruth folds a condition without columns.
func (p *planner) constantTruth(e ast.Expr) truth {
	if p.hasSubquery(e) || len(p.columnSet(e)) > 0 {
		return truthUnknown
	}
	n, err := p.bindTyping(e)
	if err != nil {
		return truthUnknown
	}
	c, ok := n.(*expr.Const)
	if !ok {
		return truthUnknown
	}
	v := c.Literal()
	switch v.Class() {
	case types.ClassNull:
		return neverTrue
	case types.ClassInt, types.ClassUint:
		if v.Uint() == 0 {
			return neverTrue
		}
		return alwaysTrue
	}
	return truthUnknown
}

// fold drops conditions that are always true; none says that one never is.
func (p *planner) fold(conds []ast.Expr) (list []ast.Expr, none bool) {
	if !p.on(ConstantFolding) {
		return conds, false
	}
	for _, e := range conds {
		switch p.constantTruth(e) {
		case neverTrue:
			return nil, true
		case truthUnknown:
			list = append(list, e)
		}
	}
	return list, false
}

// factorOr takes out of an OR what all its branches have in common: (a AND b) OR (a AND
// c) is a AND (b OR c).
func (p *planner) factorOr(e ast.Expr) []ast.Expr {
	or, ok := e.(*ast.Binary)
	if ok && or.Op == ast.OpEq {
		// (a, b) = (1, 2) is a = 1 AND b = 2.
		if each := rowComparison(or); each != nil {
			return conjuncts(nil, each)
		}
	}
	if !ok || or.Op != ast.OpOr || p.hasSubquery(e) {
		return []ast.Expr{e}
	}
	branches := disjuncts(nil, e)
	if len(branches) > 16 {
		return []ast.Expr{e}
	}
	var common []ast.Expr
	for _, c := range conjuncts(nil, branches[0]) {
		everywhere := true
		for _, b := range branches[1:] {
			everywhere = everywhere && p.containsSame(conjuncts(nil, b), c)
		}
		if everywhere {
			common = append(common, c)
		}
	}
	if len(common) == 0 {
		return []ast.Expr{e}
	}
	rest := make([]ast.Expr, 0, len(branches))
	for _, b := range branches {
		var left []ast.Expr
		for _, c := range conjuncts(nil, b) {
			if !p.containsSame(common, c) {
				left = append(left, c)
			}
		}
		if len(left) == 0 {
			return common
		}
		rest = append(rest, conjunction(left))
	}
	return append(common, disjunction(rest))
}

func (p *planner) containsSame(list []ast.Expr, e ast.Expr) bool {
	for _, o := range list {
		if p.same(o, e) {
			return true
		}
	}
	return false
}

func disjunction(list []ast.Expr) ast.Expr {
	if len(list) == 1 {
		return list[0]
	}
	n := len(list) / 2
	return &ast.Binary{Op: ast.OpOr, Left: disjunction(list[:n]), Right: disjunction(list[n:])}
}

// isVolatileExpr reports whether a condition must be evaluated for exactly the rows it
// is written for.
func (p *planner) isVolatileExpr(e ast.Expr) bool {
	n, err := p.bindTyping(e)
	return err != nil || isVolatile(n)
}

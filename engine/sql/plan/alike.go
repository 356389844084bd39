package plan

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

// alike reports whether a condition on a relation is the same for all rows that a grouping
// of the relation's columns takes for one: 'a' and 'A' are not told apart by a comparison
// in the column's collation, and they are by one of bytes or by a function.
func (p *planner) alike(rel *relation, e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ColumnRef:
		return !p.coarse(rel, e)
	case *ast.IsNull:
		if _, ok := p.isColumn(e.Operand); ok {
			return true
		}
	case *ast.In:
		if e.Query == nil {
			for _, v := range e.List {
				if !p.comparesAlike(rel, ast.OpEq, e.Operand, v) {
					return false
				}
			}
			return true
		}
	case *ast.Between:
		return p.comparesAlike(rel, ast.OpGe, e.Operand, e.Low) && p.comparesAlike(rel, ast.OpLe, e.Operand, e.High)
	case *ast.Binary:
		if e.Op.IsComparison() {
			return p.comparesAlike(rel, e.Op, e.Left, e.Right)
		}
	}
	for _, o := range ast.Operands(e) {
		if !p.alike(rel, o) {
			return false
		}
	}
	return true
}

// comparesAlike is alike for a comparison.
func (p *planner) comparesAlike(rel *relation, op ast.BinaryOp, l, r ast.Expr) bool {
	if !p.coarse(rel, l) && !p.coarse(rel, r) {
		return p.alike(rel, l) && p.alike(rel, r)
	}
	c, ok := p.comparison(op, ast.Whole, l, r)
	if !ok {
		return false
	}
	for i, side := range []ast.Expr{l, r} {
		if !p.coarse(rel, side) {
			if !p.alike(rel, side) {
				return false
			}
			continue
		}
		id, _ := p.isColumn(side)
		switch t := p.cols[id].typ; t.Class() {
		case types.ClassBytes:
			if c.Collation() != t.Collation {
				return false
			}
		case types.ClassFloat, types.ClassDouble:
			if to := c.Children()[i].Type().Class(); to != types.ClassFloat && to != types.ClassDouble {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// coarse reports whether an expression is a column of the relation of whose values some
// are equal and yet not the same: text in most collations, 0 and -0, JSON.
func (p *planner) coarse(rel *relation, e ast.Expr) bool {
	id, ok := p.isColumn(e)
	if !ok || id < rel.first || id >= rel.first+colID(rel.n) {
		return false
	}
	t := p.cols[id].typ
	switch t.Class() {
	case types.ClassBytes:
		c := types.CollationByID(t.Collation)
		return t.IsText() && (c == nil || !c.Lossless())
	case types.ClassFloat, types.ClassDouble, types.ClassJSON:
		return true
	}
	return false
}

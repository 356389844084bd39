package plan

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

// zeroDates rewrites conditions of WHERE: of a DATE or DATETIME that is NOT NULL the zero date is NULL to IS NULL, as in MySQL,
// for clients that have no such date. It holds for conditions that are joined by AND, not below OR and NOT, nor for values.
func (p *planner) zeroDates(where []ast.Expr) []ast.Expr {
	var out []ast.Expr
	for i, e := range where {
		r := p.zeroDate(e)
		if r == e {
			continue
		}
		if out == nil {
			out = append(out, where...)
		}
		out[i] = r
	}
	if out == nil {
		return where
	}
	return out
}

func (p *planner) zeroDate(e ast.Expr) ast.Expr {
	var operand ast.Expr
	switch e := e.(type) {
	case *ast.IsNull:
		if e.Not {
			return e
		}
		operand = e.Operand
	case *ast.Func:
		if e.Name != "isnull" || len(e.Args) != 1 {
			return e
		}
		operand = e.Args[0]
	default:
		return e
	}
	id, ok := p.isColumn(operand)
	if !ok || p.cols[id].rel == nil || p.cols[id].rel.table == nil {
		return e
	}
	rel := p.cols[id].rel
	if t := &rel.def().Columns[p.cols[id].pos].Type; !t.NotNull || t.Kind != types.KindDate && t.Kind != types.KindDateTime {
		return e
	}
	zero := &ast.Literal{Kind: ast.LiteralInt, Value: types.NewInt(0), Type: &types.Type{Kind: types.KindBigInt, NotNull: true}}
	return &ast.Binary{Op: ast.OpOr, Left: e, Right: &ast.Binary{Op: ast.OpEq, Left: operand, Right: zero}}
}

package ast

import (
	past "github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/triremedb/trireme/engine/types"
)

// temporal converts DATE'..', TIME'..', TIMESTAMP'..' and {d '..'}. Zero dates pass
// here: whether sql_mode lets them is for who evaluates them.
func (c *converter) temporal(n *past.FuncCallExpr, k LiteralKind) Expr {
	v, ok := n.Args[0].(*valueNode)
	if !ok {
		return c.expr(n.Args[0])
	}
	text, ok := v.value.(string)
	if !ok {
		return c.expr(n.Args[0])
	}
	l, ok := temporalLiteral(text, k)
	if !ok {
		name := [...]string{LiteralDate: "DATE", LiteralTime: "TIME", LiteralTimestamp: "DATETIME"}[k]
		c.fail(errorf(1525, "HY000", "Incorrect %s value: '%.128s'", name, text))
	}
	return l
}

// temporalLiteral reads the text of a literal.
func temporalLiteral(text string, k LiteralKind) (l *Literal, ok bool) {
	l = &Literal{Kind: k}
	if k == LiteralTime {
		d, info, ok := types.ParseTime([]byte(text))
		l.Value = types.NewTime(d)
		l.Type = &types.Type{Kind: types.KindTime, FSP: uint8(min(info.Digits, types.MaxFSP)), NotNull: true}
		return l, ok && !info.Truncated && !info.OutOfRange
	}
	d, info, ok := types.ParseDateTime([]byte(text), 0)
	if !ok || info.Truncated || info.OutOfRange || info.HasOffset {
		l.Type = typeNull
		return l, false
	}
	if k == LiteralDate {
		l.Value = types.NewDate(d)
		l.Type = &types.Type{Kind: types.KindDate, NotNull: true}
		return l, info.DateOnly
	}
	l.Value = types.NewDateTime(d)
	l.Type = &types.Type{Kind: types.KindDateTime, FSP: uint8(min(info.Digits, types.MaxFSP)), NotNull: true}
	return l, !info.DateOnly
}

package ast

import (
	past "github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// temporal converts DATE'..', TIME'..', TIMESTAMP'..' and {d '..'}.
func (c *converter) temporal(n *past.FuncCallExpr, k LiteralKind) Expr {
	v, ok := n.Args[0].(*valueNode)
	if !ok {
		return c.expr(n.Args[0])
	}
	text, ok := v.value.(string)
	if !ok {
		return c.expr(n.Args[0])
	}
	l, ok := temporalLiteral(text, k, c.mode)
	if !ok {
		name := [...]string{LiteralDate: "DATE", LiteralTime: "TIME", LiteralTimestamp: "DATETIME"}[k]
		c.fail(sqlerr.Newf(sqlerr.WrongValue, "Incorrect %s value: '%.128s'", name, text))
	}
	return l
}

// temporalLiteral reads the text of a literal.
func temporalLiteral(text string, k LiteralKind, mode Mode) (l *Literal, ok bool) {
	l = &Literal{Kind: k}
	if k == LiteralTime {
		d, info, ok := types.ParseTime([]byte(text))
		if ok {
			d, ok = d.RoundFraction(info.Nanos, types.MaxFSP)
		}
		l.Value = types.NewTime(d)
		l.Type = &types.Type{Kind: types.KindTime, FSP: uint8(min(info.Digits, types.MaxFSP)), NotNull: true}
		return l, ok && !info.Truncated && !info.OutOfRange && !info.DateLost
	}
	d, info, ok := types.ParseDateTime([]byte(text), dateMode(mode))
	if ok {
		d, ok = d.RoundFraction(info.Nanos, types.MaxFSP)
	}
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

// dateMode is what sql_mode says of dates.
func dateMode(mode Mode) (m types.Mode) {
	if mode&ModeNoZeroDate != 0 {
		m |= types.ModeNoZeroDate
	}
	if mode&ModeNoZeroInDate != 0 {
		m |= types.ModeNoZeroInDate
	}
	if mode&ModeAllowInvalidDates != 0 {
		m |= types.ModeAllowInvalidDates
	}
	return m
}

package plan

import (
	"fmt"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

// same reports whether two resolved expressions are the same: equal trees over the same
// columns. Expressions with subqueries are the same only if they are one.
func (p *planner) same(a, b ast.Expr) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if a == b {
		return true
	}
	if x, ok := p.isColumn(a); ok {
		y, ok := p.isColumn(b)
		return ok && x == y
	}
	if p.subs[a] != nil || p.subs[b] != nil || !p.sameNode(a, b) {
		return false
	}
	l, r := ast.Operands(a), ast.Operands(b)
	if len(l) != len(r) {
		return false
	}
	for i := range l {
		if !p.same(l[i], r[i]) {
			return false
		}
	}
	return true
}

// sketch is one number for all expressions that are the same, and for few others.
func (p *planner) sketch(e ast.Expr) uint64 {
	if e == nil {
		return 0
	}
	if id, ok := p.isColumn(e); ok {
		return types.HashUint64(1, uint64(id))
	}
	h := uint64(2)
	switch e := e.(type) {
	case *ast.Literal:
		switch e.Value.Class() {
		case types.ClassInt, types.ClassUint:
			h = types.HashUint64(h, uint64(e.Value.Int()))
		case types.ClassBytes:
			h = types.HashBytes(h, e.Value.Bytes())
		}
	case *ast.Func:
		h = types.HashBytes(h, []byte(e.Name))
	}
	for _, o := range ast.Operands(e) {
		h = types.HashUint64(h, p.sketch(o))
	}
	return h
}

// sameNode compares two nodes without their operands.
func (p *planner) sameNode(a, b ast.Expr) bool {
	switch a := a.(type) {
	case *ast.Literal:
		b, ok := b.(*ast.Literal)
		return ok && sameLiteral(a, b)
	case *ast.Param:
		b, ok := b.(*ast.Param)
		return ok && a.Index == b.Index
	case *ast.Binary:
		b, ok := b.(*ast.Binary)
		return ok && a.Op == b.Op
	case *ast.Unary:
		b, ok := b.(*ast.Unary)
		return ok && a.Op == b.Op
	case *ast.Func:
		b, ok := b.(*ast.Func)
		return ok && a.Name == b.Name && a.Schema == b.Schema && !volatileFunctions[a.Name]
	case *ast.Aggregate:
		b, ok := b.(*ast.Aggregate)
		return ok && sameAggregate(a, b)
	case *ast.Case:
		b, ok := b.(*ast.Case)
		return ok && len(a.When) == len(b.When)
	case *ast.Cast:
		b, ok := b.(*ast.Cast)
		return ok && fmt.Sprint(a.Type, a.Using, a.Array) == fmt.Sprint(b.Type, b.Using, b.Array)
	case *ast.In:
		b, ok := b.(*ast.In)
		return ok && a.Not == b.Not && a.Query == nil && b.Query == nil
	case *ast.Between:
		b, ok := b.(*ast.Between)
		return ok && a.Not == b.Not
	case *ast.Like:
		b, ok := b.(*ast.Like)
		return ok && a.Not == b.Not && p.same(a.Escape, b.Escape)
	case *ast.Regexp:
		b, ok := b.(*ast.Regexp)
		return ok && a.Not == b.Not
	case *ast.IsNull:
		b, ok := b.(*ast.IsNull)
		return ok && a.Not == b.Not
	}
	return p.sameRare(a, b)
}

func (p *planner) sameRare(a, b ast.Expr) bool {
	switch a := a.(type) {
	case *ast.IsTruth:
		b, ok := b.(*ast.IsTruth)
		return ok && a.Not == b.Not && a.True == b.True
	case *ast.JSONValue:
		b, ok := b.(*ast.JSONValue)
		return ok && sameJSONValue(a, b)
	case *ast.MemberOf:
		_, ok := b.(*ast.MemberOf)
		return ok
	case *ast.Row:
		_, ok := b.(*ast.Row)
		return ok
	case *ast.Star:
		_, ok := b.(*ast.Star)
		return ok
	case *ast.Interval:
		b, ok := b.(*ast.Interval)
		return ok && a.Unit == b.Unit
	case *ast.Keyword:
		b, ok := b.(*ast.Keyword)
		return ok && a.Word == b.Word
	case *ast.Collate:
		b, ok := b.(*ast.Collate)
		return ok && strings.EqualFold(a.Collation, b.Collation)
	case *ast.Default:
		b, ok := b.(*ast.Default)
		return ok && p.defaults[a].same(p.defaults[b])
	case *ast.Variable:
		b, ok := b.(*ast.Variable)
		return ok && *a == *b
	}
	return false
}

// sameJSONValue compares all but the documents.
func sameJSONValue(a, b *ast.JSONValue) bool {
	x, y := *a, *b
	x.Doc, y.Doc = &ast.Star{}, &ast.Star{}
	return ast.Format(&x) == ast.Format(&y)
}

func sameLiteral(a, b *ast.Literal) bool {
	if a.Kind != b.Kind || a.Charset != b.Charset || a.Value.Class() != b.Value.Class() {
		return false
	}
	switch a.Value.Class() {
	case types.ClassNull:
		return true
	case types.ClassBytes:
		return string(a.Value.Bytes()) == string(b.Value.Bytes())
	case types.ClassDecimal:
		return a.Type != nil && b.Type != nil && a.Type.Scale == b.Type.Scale && types.Compare(a.Value, b.Value, a.Type) == 0
	}
	return a.Value.Uint() == b.Value.Uint()
}

func sameAggregate(a, b *ast.Aggregate) bool {
	if a.Name != b.Name || a.Distinct != b.Distinct || len(a.Args) != len(b.Args) || len(a.OrderBy) != len(b.OrderBy) {
		return false
	}
	for i := range a.OrderBy {
		if a.OrderBy[i].Desc != b.OrderBy[i].Desc {
			return false
		}
	}
	if a.Separator == nil || b.Separator == nil {
		return a.Separator == b.Separator
	}
	return *a.Separator == *b.Separator
}

// volatileFunctions give another value whenever they are called.
var volatileFunctions = map[string]bool{
	"rand": true, "uuid": true, "uuid_short": true, "sleep": true, "sysdate": true, "random_bytes": true,
	"benchmark": true, "get_lock": true, "release_lock": true, "release_all_locks": true, "last_insert_id": true,
	"wait_for_executed_gtid_set": true,
}

// text writes an expression for people.
func (p *planner) text(e ast.Expr) string { return strings.ReplaceAll(ast.Format(e), "`", "") }

package plan

import (
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// GROUPING(x, ..) tells of a row of GROUP BY .. WITH ROLLUP which of some groups it sums up. Resolving makes each call a column of
// its block, as it makes of an aggregate; which groups the arguments are is known only when all of GROUP BY is. The grouping gives
// the column with its rows. Without ROLLUP no row sums up others, and it is 0.

func isGrouping(f *ast.Func) bool { return f.Schema == "" && f.Name == "grouping" && len(f.Args) > 0 }
func isAnyValue(f *ast.Func) bool { return f.Schema == "" && f.Name == "any_value" && len(f.Args) == 1 }

func errGroupOnLevel() error {
	return sqlerr.New(sqlerr.WrongGroupField, "GROUPING function")
}

// levelType is the type of GROUPING().
var levelType = types.Type{Kind: types.KindBigInt}

// resolveLevel makes a call of GROUPING() a column of its block. One that is written twice is one.
func (p *planner) resolveLevel(s *scope, f *ast.Func) (ast.Expr, error) {
	b := s.aggs
	if b == nil || !b.groupBy {
		return nil, sqlerr.New(sqlerr.InvalidGroupFuncUse)
	}
	l := level{args: make([]ast.Expr, len(f.Args))}
	for i, e := range f.Args {
		r, err := p.resolve(s, e)
		if err != nil {
			return nil, err
		}
		if _, ok := r.(*ast.Literal); ok {
			return nil, sqlerr.New(sqlerr.WrongArguments, "GROUPING function")
		}
		l.args[i] = r
	}
	for _, o := range b.levels {
		if slices.EqualFunc(o.args, l.args, p.same) {
			return p.ref(o.id), nil
		}
	}
	l.id = p.newColumn(column{typ: &levelType, meta: Column{Name: p.text(f), Type: &levelType}})
	b.levels = append(b.levels, l)
	return p.ref(l.id), nil
}

// levelGroups finds the groups that the arguments of GROUPING() are.
func (p *planner) levelGroups(b *block) error {
	for i := range b.levels {
		l := &b.levels[i]
		for k, e := range l.args {
			of := slices.IndexFunc(b.groups, func(g group) bool { return p.same(g.expr, e) })
			if of < 0 {
				return sqlerr.New(sqlerr.FieldInGroupingNotGroupBy, k+1)
			}
			l.of = append(l.of, of)
		}
	}
	return nil
}

// hasLevel reports whether e contains the result of one of the block's calls of GROUPING().
func (p *planner) hasLevel(b *block, e ast.Expr) (found bool) {
	if len(b.levels) == 0 {
		return false
	}
	walkExpr(e, func(e ast.Expr) bool {
		if id, ok := p.isColumn(e); ok {
			found = found || slices.ContainsFunc(b.levels, func(l level) bool { return l.id == id })
		}
		return !found
	})
	return found
}

// level is the value of a call of GROUPING() above the grouping.
func (f *grouper) level(e ast.Expr) ast.Expr {
	if f.b.rollup {
		return e
	}
	zero := &ast.Literal{Kind: ast.LiteralInt, Value: types.NewInt(0), Type: &types.Type{Kind: types.KindBigInt, NotNull: true}}
	return &ast.Cast{Operand: zero, Type: ast.ColumnType{Kind: types.KindBigInt, Length: ast.Unspecified, Decimals: ast.Unspecified}}
}

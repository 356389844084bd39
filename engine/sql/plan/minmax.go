package plan

import (
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/expr"
)

// minMax plans SELECT MIN(c) or MAX(c) of one table as the first entry of an index in
// that order; nil if it is something else or no index fits.
func (f *blockPlan) minMax() (*sub, error) {
	p, b := f.p, f.b
	if !p.on(MinMaxByIndex) || !b.grouped || len(b.groups) > 0 || len(b.aggs) != 1 || len(b.calls) > 0 || b.from == nil || b.from.leaf == nil || b.from.leaf.table == nil {
		return nil, nil
	}
	a := &b.aggs[0]
	if a.call.Name != "min" && a.call.Name != "max" || len(a.call.Args) != 1 {
		return nil, nil
	}
	id, ok := p.isColumn(a.call.Args[0])
	if !ok || p.cols[id].rel != b.from.leaf {
		return nil, nil
	}
	if t := &b.from.leaf.def().Columns[p.cols[id].pos].Type; len(t.Members) > 0 {
		return nil, nil // their order is that of names
	}
	where := slices.Clone(b.where)
	if !b.from.leaf.def().Columns[p.cols[id].pos].Type.NotNull {
		where = append(where, &ast.IsNull{Operand: p.ref(id), Not: true})
	}
	in, err := p.planJoin(joinRequest{
		from: b.from, where: where, wanted: colSet{id: {}},
		order: []orderColumn{{id, a.call.Name == "max"}}, limit: 1,
	})
	if err != nil || !in.ordered {
		return nil, err
	}
	one := expr.NewConst(intValue(1), bigint)
	in = p.limitTo(in, one, nil, 1, false)
	s, err := f.group(in)
	if err != nil {
		return nil, err
	}
	if s, err = p.filter(s, b.having); err != nil {
		return nil, err
	}
	return f.finish(s)
}

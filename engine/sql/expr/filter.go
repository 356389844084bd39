package expr

import (
	"slices"

	"github.com/triremedb/trireme/engine/types"
)

// Filter appends to out, in order, the rows of sel (nil: all of in) for which pred is
// true. The operands of AND see only the rows that those before left. out must not
// share memory with sel.
func Filter(x *Context, pred Node, in *types.Batch, sel, out []uint32) ([]uint32, error) {
	switch n := pred.(type) {
	case *Logic:
		if n.and {
			return n.filterAnd(x, in, sel, out)
		}
		return n.filterOr(x, in, sel, out)
	case *Compare:
		return n.filter(x, in, sel, out)
	case *Like:
		return n.filter(x, in, sel, out)
	case *Const:
		return filterConst(x, n, in, sel, out)
	}
	return filterTruths(x, pred, in, sel, out)
}

func filterConst(x *Context, n *Const, in *types.Batch, sel, out []uint32) ([]uint32, error) {
	if n.v.IsNull() {
		return out, nil
	}
	ok, err := x.truth(n.v)
	if !ok || err != nil {
		return out, err
	}
	for i := range rowCount(in, sel) {
		out = append(out, uint32(rowAt(sel, i)))
	}
	return out, nil
}

// filterTruths evaluates the predicate and looks at its truth values.
func filterTruths(x *Context, pred Node, in *types.Batch, sel, out []uint32) ([]uint32, error) {
	v, lent, err := x.operand(pred, in, sel)
	if err != nil {
		return out, err
	}
	defer x.giveBack(v, lent)
	if v.Class() == types.ClassInt {
		for i, t := range v.Int64s() {
			if t != 0 && !v.IsNull(i) {
				out = append(out, uint32(rowAt(sel, i)))
			}
		}
		return out, nil
	}
	for i := range v.Len() {
		if v.IsNull(i) {
			continue
		}
		ok, err := x.truth(v.Value(i))
		if err != nil {
			return out, err
		}
		if ok {
			out = append(out, uint32(rowAt(sel, i)))
		}
	}
	return out, nil
}

func (n *Logic) filterAnd(x *Context, in *types.Batch, sel, out []uint32) ([]uint32, error) {
	rows, next := x.selection(), x.selection()
	var err error
	for i, a := range n.args {
		if i == 0 {
			rows, err = Filter(x, a, in, sel, rows)
		} else {
			next, err = Filter(x, a, in, rows, next[:0])
			rows, next = next, rows
		}
		if err == nil {
			err = x.Worked(len(rows) * workOfTerm)
		}
		if err != nil || len(rows) == 0 {
			break
		}
	}
	if err == nil {
		out = append(out, rows...)
	}
	x.putSelection(rows)
	x.putSelection(next)
	return out, err
}

func (n *Logic) filterOr(x *Context, in *types.Batch, sel, out []uint32) ([]uint32, error) {
	rest, hits, all := x.selection(), x.selection(), x.selection()
	for i := range rowCount(in, sel) {
		rest = append(rest, uint32(rowAt(sel, i)))
	}
	var err error
	for _, a := range n.args {
		if hits, err = Filter(x, a, in, rest, hits[:0]); err != nil || len(rest) == 0 {
			break
		}
		all = append(all, hits...)
		rest = without(rest, hits)
		if err = x.Worked(len(rest) * workOfTerm); err != nil {
			break
		}
	}
	if err == nil {
		slices.Sort(all)
		out = append(out, all...)
	}
	x.putSelection(rest)
	x.putSelection(hits)
	x.putSelection(all)
	return out, err
}

// without removes hits, which are some of rows in order, from rows.
func without(rows, hits []uint32) []uint32 {
	keep := rows[:0]
	for _, r := range rows {
		if len(hits) > 0 && hits[0] == r {
			hits = hits[1:]
			continue
		}
		keep = append(keep, r)
	}
	return keep
}

// True evaluates a condition for one row: NULL is not true.
func True(x *Context, pred Node, in *types.Batch, row int) (bool, error) {
	v, err := pred.Value(x, in, row)
	if err != nil || v.IsNull() {
		return false, err
	}
	if v.Class() == types.ClassInt {
		return v.Int() != 0, nil
	}
	return x.truth(v)
}

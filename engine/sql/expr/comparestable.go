package expr

import (
	"bytes"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// Statements come with their literals taken out: what a column is compared with is
// mostly a parameter. Its value is looked at once for a batch, and then the comparison
// is often simpler than what could be known when it was bound.

// isStable reports whether a node has one value for all rows, as far as that can be
// told at a glance.
func isStable(n Node) bool {
	if _, ok := n.(*Const); ok {
		return true
	}
	return stableOperand(n)
}

// filterStable is filter for a right side that has one value. It reports false if it
// has no short cut.
func (n *Compare) filterStable(x *Context, in *types.Batch, sel, out []uint32) ([]uint32, bool, error) {
	if n.op == ast.OpNullEq || n.c.by == byNull || n.c.by == byJSON || !isStable(n.b) {
		return out, false, nil
	}
	if rowCount(in, sel) == 0 {
		return out, true, nil
	}
	m := x.Mark()
	defer x.Release(m)
	v, err := n.b.Value(x, nil, 0)
	if err != nil || v.IsNull() {
		// The other side's conditions come all the same.
		return out, false, nil
	}
	switch n.c.by {
	case byText, byBytes:
		out, err = n.filterText(x, in, sel, out, v.Bytes())
		return out, true, err
	case byInt, byTemporal:
		out, err = filterWord(x, n.op, n.a, in, sel, out, v.Int())
		return out, true, err
	case byDecimal:
		return n.filterDecimal(x, in, sel, out, v.Decimal())
	}
	return out, false, nil
}

// filterWord compares 64-bit words with one of them.
func filterWord(x *Context, op ast.BinaryOp, a Node, in *types.Batch, sel, out []uint32, w int64) ([]uint32, error) {
	v, lent, err := x.operand(a, in, sel)
	if err != nil {
		return out, err
	}
	from := len(out)
	out = selectWord(op, grow(out, v.Len()), v.Int64s(), w, from)
	out = dropNulls(out, from, op, v, v)
	x.giveBack(v, lent)
	toRows(out[from:], sel)
	return out, nil
}

// selectWord is selectLoop with a constant.
func selectWord(op ast.BinaryOp, out []uint32, a []int64, w int64, from int) []uint32 {
	n := from
	out = out[:from+len(a)]
	switch op {
	case ast.OpEq:
		for i, v := range a {
			out[n] = uint32(i)
			n += int(truthOf(v == w))
		}
	case ast.OpNe:
		for i, v := range a {
			out[n] = uint32(i)
			n += int(truthOf(v != w))
		}
	case ast.OpLt:
		for i, v := range a {
			out[n] = uint32(i)
			n += int(truthOf(v < w))
		}
	case ast.OpLe:
		for i, v := range a {
			out[n] = uint32(i)
			n += int(truthOf(v <= w))
		}
	case ast.OpGt:
		for i, v := range a {
			out[n] = uint32(i)
			n += int(truthOf(v > w))
		}
	default:
		for i, v := range a {
			out[n] = uint32(i)
			n += int(truthOf(v >= w))
		}
	}
	return out[:n]
}

// filterDecimal compares integers and short decimals with a number of no more digits
// than they have as words.
func (n *Compare) filterDecimal(x *Context, in *types.Batch, sel, out []uint32, d decimal.Decimal) ([]uint32, bool, error) {
	a, scale := n.a, 0
	if c, ok := a.(*Cast); ok && !c.explicit && c.arg.Type().Class() == types.ClassInt {
		a = c.arg
	} else if a.Type().ShortDecimal() {
		scale = int(a.Type().Scale)
	} else {
		return out, false, nil
	}
	r, err := d.Truncate(scale)
	if err != nil || decimal.Compare(r, d) != 0 {
		return out, false, nil
	}
	w, ok := r.Unscaled()
	if !ok {
		return out, false, nil
	}
	out, err = filterWord(x, n.op, a, in, sel, out, w)
	return out, true, err
}

// filterText is filter for the comparison of text with a constant.
func (n *Compare) filterText(x *Context, in *types.Batch, sel, out []uint32, c []byte) ([]uint32, error) {
	v, lent, err := x.operand(n.a, in, sel)
	if err != nil {
		return out, err
	}
	want := n.op != ast.OpNe
	for i := range v.Len() {
		if v.IsNull(i) {
			continue
		}
		s, hit := v.BytesAt(i), false
		switch {
		case n.equality() && n.c.by == byText:
			hit = n.c.text.equal(s, c) == want
		case n.equality():
			hit = bytes.Equal(s, c) == want
		case n.c.by == byText:
			hit = orderTruth(n.op, n.c.coll.Compare(s, c))
		default:
			hit = orderTruth(n.op, bytes.Compare(s, c))
		}
		if hit {
			out = append(out, uint32(rowAt(sel, i)))
		}
	}
	x.giveBack(v, lent)
	return out, nil
}

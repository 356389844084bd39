package expr

import (
	"bytes"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

type number interface{ ~int64 | ~uint64 | ~float64 }

func (n *Compare) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	o, err := x.operands(n.a, n.b, in, sel)
	if err != nil {
		return err
	}
	dst := x.dense(out)
	dst.Resize(o.a.Len())
	n.truths(dst.Int64s(), o.a, o.b)
	if n.op == ast.OpNullEq {
		equalNulls(dst.Int64s(), o.a, o.b)
	} else {
		orNulls(dst, o.a, o.b)
	}
	x.settle(out, dst)
	x.giveBackBoth(o)
	return nil
}

// truths writes the truth value of each row, whatever is NULL.
func (n *Compare) truths(dst []int64, a, b *types.Vector) {
	switch {
	case n.c.by == byNull:
		clear(dst)
	case bothInt64(n.c.by, a, b):
		compareLoop(n.op, dst, a.Int64s(), b.Int64s())
	case n.c.by == byDouble:
		compareLoop(n.op, dst, a.Float64s(), b.Float64s())
	case n.c.by == byIntegers && a.Class() == types.ClassUint && b.Class() == types.ClassUint:
		compareLoop(n.op, dst, a.Uint64s(), b.Uint64s())
	case n.equality() && (n.c.by == byText || n.c.by == byBytes):
		want := n.op != ast.OpNe
		for i := range dst {
			dst[i] = truthOf(!a.IsNull(i) && !b.IsNull(i) && n.c.equalAt(a, b, i) == want)
		}
	default:
		for i := range dst {
			dst[i] = 0
			if !a.IsNull(i) && !b.IsNull(i) && orderTruth(n.op, n.orderAt(a, b, i)) {
				dst[i] = 1
			}
		}
	}
}

func (n *Compare) equality() bool {
	return n.op == ast.OpEq || n.op == ast.OpNe || n.op == ast.OpNullEq
}

// bothInt64 reports whether two vectors compare as their 64-bit words.
func bothInt64(by comparing, a, b *types.Vector) bool {
	switch by {
	case byInt, byTemporal:
		return true
	case byDecimal:
		return a.IsShortDecimal() && b.IsShortDecimal() && a.Type().Scale == b.Type().Scale
	}
	return false
}

// orderAt compares row i of two vectors.
func (n *Compare) orderAt(a, b *types.Vector, i int) int {
	switch n.c.by {
	case byText:
		return n.c.coll.Compare(a.BytesAt(i), b.BytesAt(i))
	case byBytes:
		return bytes.Compare(a.BytesAt(i), b.BytesAt(i))
	}
	return n.c.compare(a.Value(i), b.Value(i))
}

// equalNulls corrects <=> where a NULL takes part.
func equalNulls(dst []int64, a, b *types.Vector) {
	if !a.HasNulls() && !b.HasNulls() {
		return
	}
	for i := range dst {
		na, nb := a.IsNull(i), b.IsNull(i)
		if na || nb {
			dst[i] = 0
			if na && nb {
				dst[i] = 1
			}
		}
	}
}

func truthOf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func compareLoop[T number](op ast.BinaryOp, dst []int64, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	switch op {
	case ast.OpEq, ast.OpNullEq:
		for i := range dst {
			dst[i] = truthOf(a[i] == b[i])
		}
	case ast.OpNe:
		for i := range dst {
			dst[i] = truthOf(a[i] != b[i])
		}
	case ast.OpLt:
		for i := range dst {
			dst[i] = truthOf(a[i] < b[i])
		}
	case ast.OpLe:
		for i := range dst {
			dst[i] = truthOf(a[i] <= b[i])
		}
	case ast.OpGt:
		for i := range dst {
			dst[i] = truthOf(a[i] > b[i])
		}
	default:
		for i := range dst {
			dst[i] = truthOf(a[i] >= b[i])
		}
	}
}

// filter appends to out the selected rows for which the comparison is true.
func (n *Compare) filter(x *Context, in *types.Batch, sel, out []uint32) ([]uint32, error) {
	if hits, done, err := n.filterStable(x, in, sel, out); done || err != nil {
		return hits, err
	}
	o, err := x.operands(n.a, n.b, in, sel)
	if err != nil {
		return out, err
	}
	from := len(out)
	count := o.a.Len()
	switch {
	case n.op == ast.OpNullEq || n.c.by == byNull:
		out = n.filterRows(o, out)
	case bothInt64(n.c.by, o.a, o.b):
		out = selectLoop(n.op, grow(out, count), o.a.Int64s(), o.b.Int64s(), from)
	case n.c.by == byDouble:
		out = selectLoop(n.op, grow(out, count), o.a.Float64s(), o.b.Float64s(), from)
	default:
		out = n.filterRows(o, out)
	}
	out = dropNulls(out, from, n.op, o.a, o.b)
	x.giveBackBoth(o)
	toRows(out[from:], sel)
	return out, nil
}

func (n *Compare) filterRows(o operands, out []uint32) []uint32 {
	if (n.c.by == byText || n.c.by == byBytes) && (n.op == ast.OpEq || n.op == ast.OpNe) {
		want := n.op == ast.OpEq
		for i := range o.a.Len() {
			if !o.a.IsNull(i) && !o.b.IsNull(i) && n.c.equalAt(o.a, o.b, i) == want {
				out = append(out, uint32(i))
			}
		}
		return out
	}
	for i := range o.a.Len() {
		na, nb := o.a.IsNull(i), o.b.IsNull(i)
		switch {
		case na || nb:
			if n.op == ast.OpNullEq && na && nb {
				out = append(out, uint32(i))
			}
		case n.c.by != byNull && orderTruth(n.op, n.orderAt(o.a, o.b, i)):
			out = append(out, uint32(i))
		}
	}
	return out
}

// toRows replaces positions in sel by the rows there.
func toRows(list, sel []uint32) {
	if sel == nil {
		return
	}
	for k, i := range list {
		list[k] = sel[i]
	}
}

// dropNulls removes from out[from:] the positions at which a or b is NULL.
func dropNulls(out []uint32, from int, op ast.BinaryOp, a, b *types.Vector) []uint32 {
	if op == ast.OpNullEq || !a.HasNulls() && !b.HasNulls() {
		return out
	}
	n := from
	for _, i := range out[from:] {
		if !a.IsNull(int(i)) && !b.IsNull(int(i)) {
			out[n] = i
			n++
		}
	}
	return out[:n]
}

// grow makes room for n more elements.
func grow(s []uint32, n int) []uint32 {
	if cap(s)-len(s) < n {
		s = append(make([]uint32, 0, len(s)+max(n, types.BatchRows)), s...)
	}
	return s
}

// selectLoop appends the positions at which the comparison holds, without branches.
// REQUIRES: out has room for all.
func selectLoop[T number](op ast.BinaryOp, out []uint32, a, b []T, from int) []uint32 {
	b = b[:len(a)]
	n := from
	out = out[:from+len(a)]
	switch op {
	case ast.OpEq:
		for i, v := range a {
			out[n] = uint32(i)
			n += int(truthOf(v == b[i]))
		}
	case ast.OpNe:
		for i, v := range a {
			out[n] = uint32(i)
			n += int(truthOf(v != b[i]))
		}
	case ast.OpLt:
		for i, v := range a {
			out[n] = uint32(i)
			n += int(truthOf(v < b[i]))
		}
	case ast.OpLe:
		for i, v := range a {
			out[n] = uint32(i)
			n += int(truthOf(v <= b[i]))
		}
	case ast.OpGt:
		for i, v := range a {
			out[n] = uint32(i)
			n += int(truthOf(v > b[i]))
		}
	default:
		for i, v := range a {
			out[n] = uint32(i)
			n += int(truthOf(v >= b[i]))
		}
	}
	return out[:n]
}

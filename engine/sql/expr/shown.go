package expr

import (
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
)

// FLOAT(M,D) and DOUBLE(M,D) are shown with D digits behind the point, and so is, as long as no number of as many digits as there
// are takes part in it, what is computed from them: a DOUBLE of that scale.

const (
	// shownPrecision is how many digits a DOUBLE with a scale has that is computed.
	shownPrecision = 22
	// sumPrecision is how many digits SUM gives its result before the point.
	sumPrecision = 17
)

// shownScale is the number of digits with which a number is shown behind the point; ok says that there is one.
func shownScale(t *types.Type) (scale int, ok bool) {
	switch {
	case t.Kind == types.KindFloat || t.Kind == types.KindDouble:
		return int(t.Scale), t.Precision > 0
	case t.Kind == types.KindDecimal:
		return int(t.Scale), true
	}
	return 0, t.IsInteger() || t.Kind == types.KindYear || t.Kind == types.KindBit
}

// shownDouble is a DOUBLE with a scale.
func shownDouble(scale int) types.Type {
	scale = min(scale, types.MaxDecimalScale)
	return types.Type{Kind: types.KindDouble, Precision: uint8(max(shownPrecision, scale)), Scale: uint8(scale)}
}

// showArith gives the result of an operation on doubles its scale.
func (n *Arith) showArith(l, r *types.Type) {
	a, ok := shownScale(l)
	b, too := shownScale(r)
	if !ok || !too {
		return
	}
	scale := max(a, b)
	if n.op == ast.OpDiv {
		scale += n.incr
	}
	n.t = shownDouble(scale)
}

// meetShown is meetNumbers where one is a FLOAT or DOUBLE.
func meetShown(a, b *types.Type) types.Type {
	t := types.Type{Kind: types.KindDouble}
	if a.Kind == b.Kind {
		t.Kind = a.Kind
	}
	s1, ok := shownScale(a)
	s2, too := shownScale(b)
	if !ok || !too {
		return t
	}
	scale := max(s1, s2)
	if a.Kind == b.Kind {
		whole := max(int(a.Precision)-s1, int(b.Precision)-s2)
		t.Precision, t.Scale = uint8(whole+scale), uint8(scale)
		return t
	}
	return shownDouble(scale)
}

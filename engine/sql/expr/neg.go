package expr

import (
	"math"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// Neg is the unary minus on an integer, DECIMAL or DOUBLE.
type Neg struct {
	arg Node
	t   types.Type
}

func (n *Neg) Type() *types.Type          { return &n.t }
func (n *Neg) Children() []Node           { return []Node{n.arg} }
func (n *Neg) Volatility() Volatility     { return Pure }
func (n *Neg) Coercibility() Coercibility { return Numeric }

// WithChildren returns a copy with another operand of the same type.
func (n *Neg) WithChildren(c []Node) Node { return &Neg{arg: c[0], t: n.t} }

func (b *Binder) newNeg(arg Node) (Node, error) {
	if isRow(arg) {
		return nil, errOperandColumns(1)
	}
	given := arg.Type()
	arg = toNumber(arg)
	if c, ok := arg.(*Const); ok && c.v.Class() == types.ClassUint {
		return negUint(c.v.Uint()), nil
	}
	n := &Neg{arg: arg, t: *arg.Type()}
	n.t.Length = 0
	if scale, ok := shownScale(given); ok && n.t.Kind == types.KindDouble {
		n.t.Precision, n.t.Scale = shownPrecision, uint8(scale)
	}
	switch arg.Type().Class() {
	case types.ClassInt, types.ClassUint:
		n.t = types.Type{Kind: types.KindBigInt, NotNull: arg.Type().NotNull}
	default:
		n.t.Unsigned = false
	}
	return b.fold(n), nil
}

// negUint is the minus before a number beyond BIGINT: the least BIGINT, or a DECIMAL.
func negUint(u uint64) Node {
	if u <= 1<<63 {
		return NewConst(types.NewInt(-int64(u)), types.Type{Kind: types.KindBigInt})
	}
	d := decimal.FromUint64(u).Neg()
	return NewConst(types.NewDecimal(d), types.Type{Kind: types.KindDecimal, Precision: uint8(d.Digits())})
}

func (n *Neg) Value(x *Context, in *types.Batch, row int) (types.Value, error) {
	v, err := n.arg.Value(x, in, row)
	if err != nil || v.IsNull() {
		return types.Null, err
	}
	return n.negate(v)
}

func (n *Neg) negate(v types.Value) (types.Value, error) {
	switch v.Class() {
	case types.ClassInt:
		if v.Int() == math.MinInt64 {
			return types.Null, errOutOfRange("BIGINT", Text(n))
		}
		return types.NewInt(-v.Int()), nil
	case types.ClassUint:
		if v.Uint() > 1<<63 {
			return types.Null, errOutOfRange("BIGINT", Text(n))
		}
		return types.NewInt(-v.Int()), nil
	case types.ClassDecimal:
		return types.NewDecimal(v.Decimal().Neg()), nil
	}
	return types.NewDouble(-v.Double()), nil
}

func (n *Neg) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	v, lent, err := x.operand(n.arg, in, sel)
	if err != nil {
		return err
	}
	defer x.giveBack(v, lent)
	for i := range v.Len() {
		if v.IsNull(i) {
			out.AppendNull()
			continue
		}
		r, err := n.negate(v.Value(i))
		if err != nil {
			return err
		}
		out.Append(r)
	}
	return nil
}

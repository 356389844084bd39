package expr

import (
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// operand evaluates n for a kernel. A column of a whole batch is lent as it is;
// lent tells whether the vector goes back by giveBack.
func (x *Context) operand(n Node, in *types.Batch, sel []uint32) (v *types.Vector, lent bool, err error) {
	switch n := n.(type) {
	case *Column:
		if sel == nil {
			return &in.Vecs[n.pos], false, nil
		}
	case *Call, *Cast:
		if stableOperand(n) {
			v, err = x.repeated(n, rowCount(in, sel))
			return v, true, err
		}
	}
	v = x.vector(n.Type())
	if err := n.Vector(x, in, sel, v); err != nil {
		x.putVector(v)
		return nil, false, err
	}
	return v, true, nil
}

// stableOperand is a quick IsConst for calls and casts; it may miss some.
func stableOperand(n Node) bool {
	switch n := n.(type) {
	case *Cast:
		return stableOperand(n.arg)
	case *Call:
		if n.Func.Volatility > Stable {
			return false
		}
		for _, a := range n.Args {
			if !stableOperand(a) {
				return false
			}
		}
		return true
	case Rebuilder:
		return false
	}
	v, ok := n.(volatile)
	return ok && v.Volatility() <= Stable && len(n.Children()) == 0
}

// repeated evaluates what is the same for all rows once, if there are rows.
func (x *Context) repeated(n Node, count int) (*types.Vector, error) {
	v := x.vector(n.Type())
	if count == 0 {
		return v, nil
	}
	m := x.Mark()
	value, err := n.Value(x, nil, 0)
	if err != nil {
		x.putVector(v)
		return nil, err
	}
	repeatValue(v, value, count)
	x.Release(m)
	return v, nil
}

func (x *Context) giveBack(v *types.Vector, lent bool) {
	if lent {
		x.putVector(v)
	}
}

// operands evaluates two operands.
type operands struct {
	a, b         *types.Vector
	lentA, lentB bool
}

func (x *Context) operands(a, b Node, in *types.Batch, sel []uint32) (o operands, err error) {
	if o.a, o.lentA, err = x.operand(a, in, sel); err != nil {
		return o, err
	}
	if o.b, o.lentB, err = x.operand(b, in, sel); err != nil {
		x.giveBack(o.a, o.lentA)
	}
	return o, err
}

func (x *Context) giveBackBoth(o operands) {
	x.giveBack(o.a, o.lentA)
	x.giveBack(o.b, o.lentB)
}

// dense returns a vector for a kernel that writes all values at once: out itself if
// it is empty. Its partner settle moves the values to out.
func (x *Context) dense(out *types.Vector) *types.Vector {
	if out.Len() == 0 {
		return out
	}
	return x.vector(out.Type())
}

func (x *Context) settle(out, dst *types.Vector) {
	if out == dst {
		return
	}
	for i := range dst.Len() {
		out.AppendFrom(dst, i)
	}
	x.putVector(dst)
}

// drop is settle after an error.
func (x *Context) drop(out, dst *types.Vector) {
	if out != dst {
		x.putVector(dst)
	}
}

// orNulls makes NULL in out what is NULL in a or b.
func orNulls(out, a, b *types.Vector) {
	copyNulls(out, a)
	copyNulls(out, b)
}

// decimalAt returns value i of a vector of decimals.
func decimalAt(v *types.Vector, i int) decimal.Decimal {
	if v.IsShortDecimal() {
		return decimal.FromUnscaled(v.Int64s()[i], int(v.Type().Scale))
	}
	return v.Decimals()[i]
}

var pow10 = [19]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}

package expr

import (
	"math"
	"math/bits"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

func (n *Arith) Vector(x *Context, in *types.Batch, sel []uint32, out *types.Vector) error {
	o, err := x.operands(n.a, n.b, in, sel)
	if err != nil {
		return err
	}
	dst := x.dense(out)
	if !n.kernel(dst, o.a, o.b) {
		err = n.rows(x, dst, o.a, o.b)
	}
	if err == nil {
		x.settle(out, dst)
	} else {
		x.drop(out, dst)
	}
	x.giveBackBoth(o)
	return err
}

// kernel computes all values in plain loops. It reports false if there is no loop
// for the operation, or if a value may be out of range: then rows finds out.
func (n *Arith) kernel(dst, a, b *types.Vector) bool {
	switch n.over {
	case types.ClassInt:
		if a.Class() != types.ClassInt || b.Class() != types.ClassInt || n.t.Unsigned {
			return false
		}
		dst.Resize(a.Len())
		if !arithInts(n.op, dst.Int64s(), a.Int64s(), b.Int64s()) {
			return false
		}
	case types.ClassDouble:
		dst.Resize(a.Len())
		if !arithDoubles(n.op, dst.Float64s(), a.Float64s(), b.Float64s()) {
			return false
		}
	case types.ClassDecimal:
		if !a.IsShortDecimal() || !b.IsShortDecimal() {
			return false
		}
		if !dst.IsShortDecimal() {
			scale := a.Type().Scale + b.Type().Scale
			if n.op != ast.OpMul || scale != n.t.Scale {
				return false
			}
			dst.Resize(a.Len())
			if !multiplyWide(dst.Decimals(), a.Int64s(), b.Int64s(), int(scale)) {
				return false
			}
			break
		}
		dst.Resize(a.Len())
		if n.op == ast.OpDiv {
			if !divideShort(dst, a, b, n.incr) {
				return false
			}
		} else if !arithShort(n.op, dst.Int64s(), a.Int64s(), b.Int64s(), a.Type().Scale, b.Type().Scale) {
			return false
		}
	}
	orNulls(dst, a, b)
	return true
}

// arithInts reports false if some result, perhaps one of a NULL, overflowed.
func arithInts(op ast.BinaryOp, dst, a, b []int64) bool {
	if len(a) != len(b) || len(dst) < len(a) {
		return false
	}
	dst, b = dst[:len(a)], b[:len(a)]
	var over int64
	switch op {
	case ast.OpAdd:
		for i, v := range a {
			w := b[i]
			r := v + w
			over |= (v ^ r) & (w ^ r)
			dst[i] = r
		}
	case ast.OpSub:
		for i, v := range a {
			w := b[i]
			r := v - w
			over |= (v ^ w) & (v ^ r)
			dst[i] = r
		}
	case ast.OpMul:
		var wide uint64
		for i, v := range a {
			w := b[i]
			wide |= uint64(v+1<<31) | uint64(w+1<<31)
			dst[i] = v * w
		}
		return wide < 1<<32
	default:
		return false
	}
	return over >= 0
}

func arithDoubles(op ast.BinaryOp, dst, a, b []float64) bool {
	if len(a) != len(b) || len(dst) < len(a) {
		return false
	}
	dst, b = dst[:len(a)], b[:len(a)]
	var sum float64 // is not finite if some result is not
	switch op {
	case ast.OpAdd:
		for i, v := range a {
			r := v + b[i]
			sum += r * 0
			dst[i] = r
		}
	case ast.OpSub:
		for i, v := range a {
			r := v - b[i]
			sum += r * 0
			dst[i] = r
		}
	case ast.OpMul:
		for i, v := range a {
			r := v * b[i]
			sum += r * 0
			dst[i] = r
		}
	default:
		return false
	}
	return !math.IsNaN(sum)
}

// arithShort computes on unscaled decimals; the precision of the result's type
// leaves room.
func arithShort(op ast.BinaryOp, dst, a, b []int64, sa, sb uint8) bool {
	if len(a) != len(b) || len(dst) < len(a) {
		return false
	}
	scale := max(sa, sb)
	fa, fb := pow10[scale-sa], pow10[scale-sb]
	dst, b = dst[:len(a)], b[:len(a)]
	switch op {
	case ast.OpAdd:
		for i, v := range a {
			dst[i] = v*fa + b[i]*fb
		}
	case ast.OpSub:
		for i, v := range a {
			dst[i] = v*fa - b[i]*fb
		}
	case ast.OpMul:
		for i, v := range a {
			dst[i] = v * b[i]
		}
	default:
		return false
	}
	return true
}

// multiplyWide multiplies unscaled decimals whose product may be a wide one. It reports
// false if one does not fit 64 bits.
func multiplyWide(dst []decimal.Decimal, a, b []int64, scale int) bool {
	dst, b = dst[:len(a)], b[:len(a)]
	for i, v := range a {
		w := b[i]
		if hi, lo := bits.Mul64(magnitude(v), magnitude(w)); hi != 0 || lo > math.MaxInt64 {
			return false
		}
		dst[i] = decimal.FromUnscaled(v*w, scale)
	}
	return true
}

// divideShort divides unscaled decimals. Like decimal.Div and a rounding after it, it
// rounds half away from zero unless Div gives no more digits than the result has. It
// reports false if a divisor is zero or a dividend too large.
func divideShort(dst, a, b *types.Vector, incr int) bool {
	one, err := decimal.Div(decimal.FromUnscaled(1, int(a.Type().Scale)), decimal.FromUnscaled(1, int(b.Type().Scale)), incr)
	if err != nil {
		return false
	}
	rounds := one.Scale() > int(dst.Type().Scale)
	shift := int(dst.Type().Scale) + int(b.Type().Scale) - int(a.Type().Scale)
	if shift < 0 || shift >= len(pow10) {
		return false
	}
	factor := pow10[shift]
	limit := math.MaxInt64 / factor
	out, divisors := dst.Int64s(), b.Int64s()
	for i, v := range a.Int64s() {
		d := divisors[i]
		if d == 0 || v > limit || v < -limit {
			return false
		}
		v *= factor
		q, r := v/d, v%d
		if rounds && r != 0 && magnitude(r) >= magnitude(d)-magnitude(r) {
			if (v < 0) == (d < 0) {
				q++
			} else {
				q--
			}
		}
		out[i] = q
	}
	return true
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

// rows computes value by value.
func (n *Arith) rows(x *Context, dst, a, b *types.Vector) error {
	dst.Reset()
	for i := range a.Len() {
		if a.IsNull(i) || b.IsNull(i) {
			dst.AppendNull()
			continue
		}
		if err := n.appendRow(x, dst, a, b, i); err != nil {
			return err
		}
	}
	return nil
}

func (n *Arith) appendRow(x *Context, dst, a, b *types.Vector, i int) error {
	switch {
	case n.over == types.ClassDouble:
		f, ok, err := n.doubles(x, a.Float64s()[i], b.Float64s()[i])
		if !ok {
			dst.AppendNull()
			return err
		}
		dst.AppendFloat64(f)
	case n.over == types.ClassDecimal && n.op != ast.OpIntDiv:
		d, ok, err := n.decimal(x, decimalAt(a, i), decimalAt(b, i))
		if !ok || err != nil {
			dst.AppendNull()
			return err
		}
		dst.AppendDecimal(d)
	case n.over == types.ClassDecimal:
		v, err := n.decimals(x, decimalAt(a, i), decimalAt(b, i))
		dst.Append(v)
		return err
	default:
		r, ok, err := n.integers(x, integerAt(a, i), integerAt(b, i))
		switch {
		case !ok:
			dst.AppendNull()
			return err
		case n.t.Unsigned:
			dst.AppendUint64(uint64(r))
		default:
			dst.AppendInt64(r)
		}
	}
	return nil
}

// integerAt returns value i of a vector of integers as its bits.
func integerAt(v *types.Vector, i int) int64 {
	if v.Class() == types.ClassUint {
		return int64(v.Uint64s()[i])
	}
	return v.Int64s()[i]
}

package expr

import (
	"math"
	"math/bits"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// Arith is + - * / DIV MOD. Its operands are both integers, both decimals or both
// doubles; DIV takes integers or decimals and gives an integer.
type Arith struct {
	op   ast.BinaryOp
	a, b Node
	t    types.Type
	over types.Class // the class in which it computes; ClassInt for all integers
	incr int         // of division: div_precision_increment

	// inexact: a division is at the bottom, whose digits beyond those of its type
	// count for operators above. raw: they are not rounded off, and t is as wide as
	// a DECIMAL can be; shape is the type for all other purposes.
	inexact, raw bool
	shape        types.Type
}

// rawDigits gives the operand of a numeric operator with all the digits that a
// division gave: (1/3)*3 is 1.0000.
func rawDigits(n Node) Node {
	switch n := n.(type) {
	case *Const:
		if n.raw != nil {
			return n.raw
		}
	case *Arith:
		if n.inexact && !n.raw {
			return n.unrounded()
		}
	}
	return n
}

func (n *Arith) unrounded() *Arith {
	m := *n
	m.raw, m.shape = true, n.t
	m.t.Precision, m.t.Scale = types.MaxDecimalPrecision, types.MaxDecimalScale
	return &m
}

func isInexact(n Node) bool {
	a, ok := n.(*Arith)
	if c, isConst := n.(*Const); isConst {
		return c.raw != nil
	}
	return ok && a.inexact
}

func (n *Arith) Op() ast.BinaryOp           { return n.op }
func (n *Arith) Type() *types.Type          { return &n.t }
func (n *Arith) Children() []Node           { return []Node{n.a, n.b} }
func (n *Arith) Volatility() Volatility     { return Pure }
func (n *Arith) Coercibility() Coercibility { return Numeric }

// WithChildren returns a copy with other operands of the same types.
func (n *Arith) WithChildren(c []Node) Node {
	m := *n
	m.a, m.b = c[0], c[1]
	return &m
}

// newArith infers the type of the result and converts the operands.
func (b *Binder) newArith(op ast.BinaryOp, l, r Node) (Node, error) {
	if isRow(l) || isRow(r) {
		return nil, errOperandColumns(1)
	}
	given, other := l.Type(), r.Type()
	l, r = toNumber(l), toNumber(r)
	n := &Arith{op: op, incr: b.divIncrement()}
	lt, rt := l.Type(), r.Type()
	unsigned := lt.Unsigned || rt.Unsigned
	switch {
	case op == ast.OpIntDiv:
		n.integerDivision(l, r)
	case lt.Class() == types.ClassDouble || rt.Class() == types.ClassDouble:
		n.over, n.t = types.ClassDouble, types.Type{Kind: types.KindDouble}
		n.a, n.b = NewCast(l, n.t), NewCast(r, n.t)
		n.showArith(given, other)
	case op == ast.OpDiv || lt.Class() == types.ClassDecimal || rt.Class() == types.ClassDecimal:
		n.over, n.t = types.ClassDecimal, decimalResult(op, l, r, n.incr)
		n.a, n.b = asDecimal(rawDigits(l)), asDecimal(rawDigits(r))
		n.inexact = op == ast.OpDiv || isInexact(l) || isInexact(r)
	default:
		if op == ast.OpMod {
			unsigned = lt.Unsigned
		}
		if op == ast.OpSub && b.opt.SQLMode&ModeNoUnsignedSubtraction != 0 {
			unsigned = false
		}
		n.over, n.t = types.ClassInt, types.Type{Kind: types.KindBigInt, Unsigned: unsigned}
		n.a, n.b = l, r
	}
	n.a, n.b = b.fold(n.a), b.fold(n.b)
	divides := op == ast.OpDiv || op == ast.OpIntDiv || op == ast.OpMod
	n.t.NotNull = !divides && n.a.Type().NotNull && n.b.Type().NotNull
	return b.fold(n), nil
}

func (n *Arith) integerDivision(l, r Node) {
	lt, rt := l.Type(), r.Type()
	n.t = types.Type{Kind: types.KindBigInt, Unsigned: lt.Unsigned || rt.Unsigned}
	n.over, n.a, n.b = types.ClassInt, l, r
	if !lt.IsInteger() || !rt.IsInteger() {
		n.over = types.ClassDecimal
		n.a, n.b = asDecimal(rawDigits(l)), asDecimal(rawDigits(r))
	}
}

// decimalResult is MySQL's rule for the DECIMAL that an operation gives.
func decimalResult(op ast.BinaryOp, l, r Node, incr int) types.Type {
	p1, s1 := decimalShape(l)
	p2, s2 := decimalShape(r)
	precision, scale := 0, 0
	switch op {
	case ast.OpAdd, ast.OpSub:
		scale = int(max(s1, s2))
		precision = int(max(p1-s1, p2-s2)) + 1 + scale
	case ast.OpMul:
		scale = int(s1) + int(s2)
		precision = int(p1) + int(p2)
	case ast.OpDiv:
		scale = int(s1) + incr
		precision = int(p1) + int(s2) + incr
	case ast.OpMod:
		scale = int(max(s1, s2))
		precision = int(max(p1-s1, p2-s2)) + scale
	}
	scale = min(scale, types.MaxDecimalScale)
	precision = max(min(precision, types.MaxDecimalPrecision), scale, 1)
	if op == ast.OpDiv && isInexact(r) {
		// The divisor may be smaller than its type tells, 1 / (1 / 3000000), and the quotient larger.
		precision = types.MaxDecimalPrecision
	}
	return types.Type{Kind: types.KindDecimal, Precision: uint8(precision), Scale: uint8(scale),
		Unsigned: l.Type().Unsigned && r.Type().Unsigned && op != ast.OpSub}
}

func (n *Arith) Value(x *Context, in *types.Batch, row int) (types.Value, error) {
	a, err := n.a.Value(x, in, row)
	if err != nil {
		return types.Null, err
	}
	b, err := n.b.Value(x, in, row)
	if err != nil || a.IsNull() || b.IsNull() {
		return types.Null, err
	}
	switch n.over {
	case types.ClassDouble:
		f, ok, err := n.doubles(x, a.Double(), b.Double())
		if !ok {
			return types.Null, err
		}
		return types.NewDouble(f), nil
	case types.ClassDecimal:
		return n.decimals(x, a.Decimal(), b.Decimal())
	}
	v, ok, err := n.integers(x, a.Int(), b.Int())
	switch {
	case !ok:
		return types.Null, err
	case n.t.Unsigned:
		return types.NewUint(uint64(v)), nil
	}
	return types.NewInt(v), nil
}

// divisionByZero gives NULL: ok is false.
func (x *Context) divisionByZero() error {
	if x.SQLMode&ModeErrorForDivisionByZero == 0 {
		return nil
	}
	return x.Fault(errDivisionByZero())
}

func (n *Arith) outOfRange() error {
	what := "BIGINT"
	switch {
	case n.over == types.ClassDouble:
		what = "DOUBLE"
	case n.over == types.ClassDecimal && n.op != ast.OpIntDiv:
		what = "DECIMAL"
	case n.t.Unsigned:
		what = "BIGINT UNSIGNED"
	}
	return errOutOfRange(what, Text(n))
}

func (n *Arith) doubles(x *Context, a, b float64) (f float64, ok bool, err error) {
	switch n.op {
	case ast.OpAdd:
		f = a + b
	case ast.OpSub:
		f = a - b
	case ast.OpMul:
		f = a * b
	case ast.OpDiv:
		if b == 0 {
			return 0, false, x.divisionByZero()
		}
		f = a / b
	case ast.OpMod:
		if b == 0 {
			return 0, false, x.divisionByZero()
		}
		return math.Mod(a, b), true, nil
	}
	if math.IsInf(f, 0) || f != f {
		return 0, false, n.outOfRange()
	}
	return f, true, nil
}

func (n *Arith) decimals(x *Context, a, b decimal.Decimal) (types.Value, error) {
	d, ok, err := n.decimal(x, a, b)
	if !ok || err != nil {
		return types.Null, err
	}
	if n.op == ast.OpIntDiv {
		return n.quotient(d)
	}
	return types.NewDecimal(d), nil
}

// quotient makes DIV's integer of a whole decimal.
func (n *Arith) quotient(d decimal.Decimal) (types.Value, error) {
	if n.t.Unsigned {
		u, ok := d.Uint64()
		if !ok {
			return types.Null, n.outOfRange()
		}
		return types.NewUint(u), nil
	}
	v, ok := d.Int64()
	if !ok {
		return types.Null, n.outOfRange()
	}
	return types.NewInt(v), nil
}

func (n *Arith) decimal(x *Context, a, b decimal.Decimal) (d decimal.Decimal, ok bool, err error) {
	switch n.op {
	case ast.OpAdd:
		d, err = decimal.Add(a, b)
	case ast.OpSub:
		d, err = decimal.Sub(a, b)
	case ast.OpMul:
		d, err = decimal.Mul(a, b)
	default:
		if b.IsZero() {
			return d, false, x.divisionByZero()
		}
		switch n.op {
		case ast.OpDiv:
			d, err = decimal.Div(a, b, n.incr)
		case ast.OpMod:
			d, err = decimal.Mod(a, b)
		case ast.OpIntDiv:
			d, err = decimal.Quo(a, b, 0)
			return d, true, n.rangeError(err)
		}
	}
	if err == nil && d.Scale() > int(n.t.Scale) && !n.raw {
		d, err = d.Round(int(n.t.Scale))
	}
	return d, true, n.rangeError(err)
}

func (n *Arith) rangeError(err error) error {
	if err == nil {
		return nil
	}
	return n.outOfRange()
}

// integers computes on 64-bit integers held as their bits.
func (n *Arith) integers(x *Context, a, b int64) (r int64, ok bool, err error) {
	ua, ub := n.a.Type().Unsigned, n.b.Type().Unsigned
	if b == 0 && (n.op == ast.OpIntDiv || n.op == ast.OpMod) {
		return 0, false, x.divisionByZero()
	}
	r, fits := integerOp(n.op, a, b, ua, ub, n.t.Unsigned)
	if !fits {
		return 0, false, n.outOfRange()
	}
	return r, true, nil
}

// integerOp computes with operands and a result of either signedness; fits tells
// whether the result is in range. A divisor is not zero.
func integerOp(op ast.BinaryOp, a, b int64, ua, ub, ur bool) (r int64, fits bool) {
	if !ua && !ub && !ur {
		return signedOp(op, a, b)
	}
	an, am := split(a, ua)
	bn, bm := split(b, ub)
	var neg bool
	var mag, carry uint64
	switch op {
	case ast.OpSub, ast.OpAdd:
		if op == ast.OpSub {
			bn = !bn
		}
		switch {
		case an == bn:
			neg = an
			mag, carry = bits.Add64(am, bm, 0)
		case am >= bm:
			neg, mag = an, am-bm
		default:
			neg, mag = bn, bm-am
		}
	case ast.OpMul:
		carry, mag = bits.Mul64(am, bm)
		neg = an != bn
	case ast.OpIntDiv:
		neg, mag = an != bn, am/bm
	case ast.OpMod:
		neg, mag = an, am%bm
	}
	switch {
	case carry != 0:
		return 0, false
	case !neg || mag == 0:
		return int64(mag), ur || mag <= math.MaxInt64
	}
	return -int64(mag), !ur && mag <= 1<<63
}

// split returns the sign and the magnitude of an integer held as bits.
func split(v int64, unsigned bool) (neg bool, mag uint64) {
	if v < 0 && !unsigned {
		return true, -uint64(v)
	}
	return false, uint64(v)
}

func signedOp(op ast.BinaryOp, a, b int64) (r int64, fits bool) {
	switch op {
	case ast.OpAdd:
		r = a + b
		return r, (a^r)&(b^r) >= 0
	case ast.OpSub:
		r = a - b
		return r, (a^b)&(a^r) >= 0
	case ast.OpMul:
		hi, lo := bits.Mul64(uint64(a), uint64(b))
		h := int64(hi)
		if a < 0 {
			h -= b
		}
		if b < 0 {
			h -= a
		}
		return int64(lo), h == int64(lo)>>63
	case ast.OpIntDiv:
		if b == -1 {
			return -a, a != math.MinInt64
		}
		return a / b, true
	}
	if b == -1 {
		return 0, true
	}
	return a % b, true
}

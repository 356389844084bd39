package decimal

import (
	"errors"
	"math/bits"
)

// ErrOverflow is returned when the integer part of a result has more than 65
// digits.
var ErrOverflow = errors.New("decimal: overflow")

// ErrDivisionByZero is returned by [Div], [Quo] and [Mod].
var ErrDivisionByZero = errors.New("decimal: division by zero")

// Limits of DECIMAL types.
const (
	MaxPrecision = 65
	MaxScale     = 30
)

// Decimal is a number: magnitude * 10^-scale, with a sign. The zero Decimal is 0.
type Decimal struct {
	w     [4]uint64 // magnitude, little-endian
	scale uint8
	neg   bool
}

// FromInt64 returns v with scale 0.
func FromInt64(v int64) Decimal { return FromUnscaled(v, 0) }

// FromUnscaled returns v * 10^-scale.
func FromUnscaled(v int64, scale int) Decimal {
	if v < 0 {
		return Decimal{w: [4]uint64{uint64(-v)}, neg: true, scale: uint8(scale)}
	}
	return Decimal{w: [4]uint64{uint64(v)}, scale: uint8(scale)}
}

// FromUint64 returns v with scale 0.
func FromUint64(v uint64) Decimal { return Decimal{w: [4]uint64{v}} }

// FromUint128 returns (hi:lo) * 10^-scale, negated if neg.
func FromUint128(hi, lo uint64, scale int, neg bool) Decimal {
	return Decimal{w: [4]uint64{lo, hi}, scale: uint8(scale), neg: neg && hi|lo != 0}
}

// Uint128 returns the magnitude if it fits 128 bits.
func (d Decimal) Uint128() (hi, lo uint64, ok bool) {
	return d.w[1], d.w[0], d.w[2]|d.w[3] == 0
}

// Unscaled returns the signed magnitude if it fits an int64.
func (d Decimal) Unscaled() (v int64, ok bool) {
	if !d.short() || d.w[0] > 1<<63-1 {
		return 0, false
	}
	v = int64(d.w[0])
	if d.neg {
		v = -v
	}
	return v, true
}

// Scale returns the number of digits after the point.
func (d Decimal) Scale() int { return int(d.scale) }

// Negative reports whether d is below zero.
func (d Decimal) Negative() bool { return d.neg }

// IsZero reports whether d is zero.
func (d Decimal) IsZero() bool { return d.w == [4]uint64{} }

// Sign returns -1, 0 or +1.
func (d Decimal) Sign() int {
	switch {
	case d.neg:
		return -1
	case d.IsZero():
		return 0
	}
	return 1
}

// Digits returns the number of significant digits, leading zeros not counted;
// zero has none.
func (d Decimal) Digits() int { return digits(d.w[:]) }

// IntegerDigits returns the number of digits before the point.
func (d Decimal) IntegerDigits() int { return max(0, d.Digits()-int(d.scale)) }

// Neg returns -d.
func (d Decimal) Neg() Decimal {
	d.neg = !d.neg && !d.IsZero()
	return d
}

// Abs returns the absolute value.
func (d Decimal) Abs() Decimal {
	d.neg = false
	return d
}

// short reports whether the magnitude is a single limb.
func (d *Decimal) short() bool { return d.w[1]|d.w[2]|d.w[3] == 0 }

// Compare returns -1, 0 or +1; numbers of different scales may be equal.
func Compare(a, b Decimal) int {
	sa, sb := a.Sign(), b.Sign()
	if sa != sb || sa == 0 {
		switch {
		case sa < sb:
			return -1
		case sa > sb:
			return 1
		}
		return 0
	}
	c := compareMagnitude(&a, &b)
	if a.neg {
		return -c
	}
	return c
}

func compareMagnitude(a, b *Decimal) int {
	switch {
	case a.scale == b.scale:
		return cmp(a.w[:], b.w[:])
	case a.scale < b.scale:
		w := a.w
		if !mulPow10(w[:], int(b.scale-a.scale)) {
			return 1
		}
		return cmp(w[:], b.w[:])
	}
	return -compareMagnitude(b, a)
}

// Add returns a+b with the larger of the scales.
func Add(a, b Decimal) (Decimal, error) {
	if a.scale == b.scale && a.short() && b.short() {
		return addShort(&a, &b), nil
	}
	if a.scale < b.scale {
		a, b = b, a
	}
	x, y := a.w, b.w
	if !mulPow10(y[:], int(a.scale-b.scale)) {
		return addWide(&a, &b)
	}
	r := Decimal{scale: a.scale}
	if a.neg == b.neg {
		r.neg = a.neg
		if add(x[:], y[:]) != 0 {
			return addWide(&a, &b)
		}
		r.w = x
		return r.fit()
	}
	r.subtract(&x, &y, a.neg)
	return r.fit()
}

// subtract sets r to x-y, negated if neg.
func (r *Decimal) subtract(x, y *[4]uint64, neg bool) {
	switch cmp(x[:], y[:]) {
	case 1:
		r.w, r.neg = *x, neg
		sub(r.w[:], y[:])
	case -1:
		r.w, r.neg = *y, !neg
		sub(r.w[:], x[:])
	}
}

// addShort adds single limbs of one scale.
func addShort(a, b *Decimal) Decimal {
	r := Decimal{scale: a.scale, neg: a.neg}
	x, y := a.w[0], b.w[0]
	switch {
	case a.neg == b.neg:
		r.w[0], r.w[1] = bits.Add64(x, y, 0)
	case x > y:
		r.w[0] = x - y
	default:
		r.w[0], r.neg = y-x, b.neg && x != y
	}
	return r
}

// addWide adds when aligning b to a's scale outgrows 256 bits.
// REQUIRES: a.scale >= b.scale.
func addWide(a, b *Decimal) (Decimal, error) {
	var x, y wide
	copy(x[:], a.w[:])
	copy(y[:], b.w[:])
	mulPow10(y[:], int(a.scale-b.scale))
	neg := a.neg
	switch {
	case a.neg == b.neg:
		add(x[:], y[:])
	case cmp(x[:], y[:]) >= 0:
		sub(x[:], y[:])
	default:
		sub(y[:], x[:])
		x, neg = y, b.neg
	}
	return fromWide(&x, int(a.scale), neg)
}

// Sub returns a-b with the larger of the scales.
func Sub(a, b Decimal) (Decimal, error) { return Add(a, b.Neg()) }

// Mul returns a*b with the sum of the scales.
func Mul(a, b Decimal) (Decimal, error) {
	neg := a.neg != b.neg
	if a.short() && b.short() && int(a.scale)+int(b.scale) <= maxDigits {
		hi, lo := bits.Mul64(a.w[0], b.w[0])
		return FromUint128(hi, lo, int(a.scale)+int(b.scale), neg), nil
	}
	var z wide
	mulInto(z[:], a.w[:], b.w[:])
	return fromWide(&z, int(a.scale)+int(b.scale), neg)
}

// divScale is the scale to which MySQL computes a quotient: the fractions of
// both operands rounded up to whole words of nine digits, plus the increment
// less what rounding up already gave.
func divScale(scaleA, scaleB, increment int) int {
	up := func(n int) int { return (n + 8) / 9 * 9 }
	fracA, fracB := up(scaleA), up(scaleB)
	increment = max(0, increment-(fracA-scaleA)-(fracB-scaleB))
	return min(up(fracA+fracB+increment), 72)
}

// Div returns a/b as MySQL computes it for div_precision_increment = increment:
// cut off after some more digits than the scale of the result's type, which is
// min(a's scale + increment, 30), and to which the caller rounds.
func Div(a, b Decimal, increment int) (Decimal, error) {
	return Quo(a, b, divScale(int(a.scale), int(b.scale), increment))
}

// Quo returns a/b cut off after scale digits. REQUIRES: scale <= 72.
func Quo(a, b Decimal, scale int) (Decimal, error) {
	if b.IsZero() {
		return Decimal{}, ErrDivisionByZero
	}
	var x wide
	copy(x[:], a.w[:])
	if shift := scale - int(a.scale) + int(b.scale); shift >= 0 {
		mulPow10(x[:], shift)
	} else {
		divPow10(x[:], -shift)
	}
	divmod(&x, &b.w)
	return fromWide(&x, scale, a.neg != b.neg)
}

// Mod returns the remainder of a/b cut off to an integer; it has a's sign and
// the larger of the scales.
func Mod(a, b Decimal) (Decimal, error) {
	if b.IsZero() {
		return Decimal{}, ErrDivisionByZero
	}
	scale := max(a.scale, b.scale)
	divisor := b.w
	if !mulPow10(divisor[:], int(scale-b.scale)) {
		return a, nil // |b| needs more than 256 bits at a's scale, so |a| < |b|
	}
	var x wide
	copy(x[:], a.w[:])
	mulPow10(x[:], int(scale-a.scale))
	rem := divmod(&x, &divisor)
	r := Decimal{w: rem, scale: scale, neg: a.neg}
	r.neg = r.neg && !r.IsZero()
	return r.fit()
}

// fit brings r back within the invariants.
func (r Decimal) fit() (Decimal, error) {
	if r.w[3]>>56 == 0 { // below 2^248, hence below 10^75
		if r.w[3]|r.w[2] == 0 {
			return r, nil
		}
		if digits(r.w[:])-int(r.scale) > maxIntegerDigits {
			return Decimal{}, ErrOverflow
		}
		return r, nil
	}
	var x wide
	copy(x[:], r.w[:])
	return fromWide(&x, int(r.scale), r.neg)
}

// fromWide cuts x*10^-scale down to a Decimal.
func fromWide(x *wide, scale int, neg bool) (Decimal, error) {
	n := digits(x[:])
	if n-scale > maxIntegerDigits {
		return Decimal{}, ErrOverflow
	}
	if excess := max(n, scale) - maxDigits; excess > 0 {
		divPow10(x[:], excess)
		scale -= excess
	}
	r := Decimal{scale: uint8(scale), neg: neg}
	copy(r.w[:], x[:4])
	r.neg = r.neg && !r.IsZero()
	return r, nil
}

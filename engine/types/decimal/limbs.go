package decimal

import "math/bits"

// Magnitudes are little-endian slices of 64-bit limbs.

// maxDigits is the number of digits every magnitude keeps within: 10^76 is the
// largest power of ten with a spare digit below 2^256.
const maxDigits = 76

// maxIntegerDigits bounds the integer part of any result.
const maxIntegerDigits = 65

// wideLimbs is enough for a dividend: 76 digits scaled up by 10^148.
const wideLimbs = 12

type wide [wideLimbs]uint64

// pow10w holds 10^0 .. 10^19, all that fit one limb.
var pow10w = func() (t [20]uint64) {
	t[0] = 1
	for i := 1; i < len(t); i++ {
		t[i] = t[i-1] * 10
	}
	return t
}()

// pow10 holds 10^0 .. 10^76.
var pow10 = func() (t [maxDigits + 1][4]uint64) {
	t[0][0] = 1
	for i := 1; i < len(t); i++ {
		t[i] = t[i-1]
		mulSmall(t[i][:], 10)
	}
	return t
}()

// mulSmall multiplies x by m in place and returns what did not fit.
func mulSmall(x []uint64, m uint64) (carry uint64) {
	for i, v := range x {
		hi, lo := bits.Mul64(v, m)
		var c uint64
		x[i], c = bits.Add64(lo, carry, 0)
		carry = hi + c
	}
	return carry
}

// addSmall adds v to x in place and returns the carry.
func addSmall(x []uint64, v uint64) (carry uint64) {
	carry = v
	for i := 0; i < len(x) && carry != 0; i++ {
		x[i], carry = bits.Add64(x[i], carry, 0)
	}
	return carry
}

// divSmall divides x by d in place and returns the remainder.
func divSmall(x []uint64, d uint64) (rem uint64) {
	if len(x) == 1 {
		rem = x[0] % d
		x[0] /= d
		return rem
	}
	for i := len(x) - 1; i >= 0; i-- {
		if x[i]|rem != 0 {
			x[i], rem = bits.Div64(rem, x[i], d)
		}
	}
	return rem
}

// mulPow10 multiplies x by 10^n in place; ok is false when it did not fit, and
// x is then garbage.
func mulPow10(x []uint64, n int) (ok bool) {
	for n > 0 {
		step := min(n, 19)
		if mulSmall(x, pow10w[step]) != 0 {
			return false
		}
		n -= step
	}
	return true
}

// divPow10 divides x by 10^n in place, cutting off; lost reports a remainder.
func divPow10(x []uint64, n int) (lost bool) {
	for n > 0 {
		step := min(n, 19)
		if divSmall(x, pow10w[step]) != 0 {
			lost = true
		}
		n -= step
	}
	return lost
}

// add adds y to x in place and returns the carry. REQUIRES: len(x) == len(y).
func add(x, y []uint64) (carry uint64) {
	for i := range x {
		x[i], carry = bits.Add64(x[i], y[i], carry)
	}
	return carry
}

// sub subtracts y from x in place. REQUIRES: x >= y, len(x) == len(y).
func sub(x, y []uint64) {
	var borrow uint64
	for i := range x {
		x[i], borrow = bits.Sub64(x[i], y[i], borrow)
	}
}

// cmp compares two magnitudes of the same length.
func cmp(x, y []uint64) int {
	for i := len(x) - 1; i >= 0; i-- {
		if x[i] != y[i] {
			if x[i] < y[i] {
				return -1
			}
			return 1
		}
	}
	return 0
}

// used returns the number of limbs up to the highest that is not zero.
func used(x []uint64) int {
	n := len(x)
	for n > 0 && x[n-1] == 0 {
		n--
	}
	return n
}

// digits returns the number of decimal digits of x; 0 has none.
func digits(x []uint64) int {
	n := used(x)
	if n == 0 {
		return 0
	}
	bitLen := (n-1)*64 + bits.Len64(x[n-1])
	guess := bitLen * 1233 >> 12 // floor(bitLen * log10(2)), or one more
	if guess > maxDigits {
		return wideDigits(x)
	}
	p := &pow10[guess]
	for i := max(n, 4) - 1; i >= 0; i-- {
		var a, b uint64
		if i < n {
			a = x[i]
		}
		if i < 4 {
			b = p[i]
		}
		if a != b {
			if a > b {
				return guess + 1
			}
			return guess
		}
	}
	return guess + 1
}

// wideDigits counts the digits of a magnitude beyond the table.
func wideDigits(x []uint64) int {
	var t wide
	copy(t[:], x)
	divPow10(t[:], 38)
	return 38 + digits(t[:])
}

// mulInto sets z to x*y. REQUIRES: len(z) >= used limbs of both together.
func mulInto(z, x, y []uint64) {
	x, y = x[:used(x)], y[:used(y)]
	for i, v := range x {
		var carry uint64
		for j, w := range y {
			hi, lo := bits.Mul64(v, w)
			var c uint64
			lo, c = bits.Add64(lo, carry, 0)
			hi += c
			z[i+j], c = bits.Add64(z[i+j], lo, 0)
			carry = hi + c
		}
		if carry != 0 {
			z[i+len(y)] = carry
		}
	}
}

// divmod divides x by y: the quotient replaces x, the remainder is returned.
// REQUIRES: y is not zero. It is Knuth's algorithm D (TAOCP 4.3.1).
func divmod(x *wide, y *[4]uint64) (rem [4]uint64) {
	n := used(y[:])
	if n == 1 {
		rem[0] = divSmall(x[:], y[0])
		return rem
	}
	shift := uint(bits.LeadingZeros64(y[n-1]))
	var v [4]uint64
	shiftLeft(v[:n], y[:n], shift)
	var u [wideLimbs + 1]uint64
	u[wideLimbs] = shiftLeft(u[:wideLimbs], x[:], shift)
	*x = wide{}
	for j := wideLimbs - n; j >= 0; j-- {
		q := guessQuotient(u[j+n], u[j+n-1], u[j+n-2], v[n-1], v[n-2])
		if q != 0 && mulSub(u[j:j+n+1], v[:n], q) {
			q--
			u[j+n] += add(u[j:j+n], v[:n])
		}
		x[j] = q
	}
	for i := 0; i < n; i++ {
		rem[i] = u[i]>>shift | u[i+1]<<1<<(63-shift)
	}
	return rem
}

// shiftLeft sets z to x<<s, s below 64, and returns the bits shifted out.
func shiftLeft(z, x []uint64, s uint) (out uint64) {
	for i, v := range x {
		z[i] = v<<s | out
		out = v >> 1 >> (63 - s)
	}
	return out
}

// guessQuotient estimates a quotient limb from the top limbs of the running
// dividend (u2 u1 u0) and the normalised divisor (v1 v0): right or one too big.
func guessQuotient(u2, u1, u0, v1, v0 uint64) uint64 {
	if u2 >= v1 {
		return ^uint64(0)
	}
	q, r := bits.Div64(u2, u1, v1)
	hi, lo := bits.Mul64(q, v0)
	for hi > r || hi == r && lo > u0 {
		q--
		var c uint64
		r, c = bits.Add64(r, v1, 0)
		if c != 0 {
			break
		}
		var b uint64
		lo, b = bits.Sub64(lo, v0, 0)
		hi -= b
	}
	return q
}

// mulSub subtracts v*q from u in place and reports a borrow out of the top.
func mulSub(u, v []uint64, q uint64) bool {
	var carry, borrow uint64
	for i, w := range v {
		hi, lo := bits.Mul64(w, q)
		var c uint64
		lo, c = bits.Add64(lo, carry, 0)
		carry = hi + c
		u[i], borrow = bits.Sub64(u[i], lo, borrow)
	}
	u[len(v)], borrow = bits.Sub64(u[len(v)], carry, borrow)
	return borrow != 0
}

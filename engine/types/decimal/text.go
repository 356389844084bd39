package decimal

import (
	"math/bits"
	"strconv"
	"unsafe"
)

func mul64add(a, b, c uint64) (hi, lo uint64) {
	hi, lo = bits.Mul64(a, b)
	lo, carry := bits.Add64(lo, c, 0)
	return hi + carry, lo
}

// Parse reads a number from the start of s: an optional sign, digits with an
// optional point, an optional exponent. n is the length of what it read, 0 if
// there is no number. Fraction digits beyond what a Decimal holds are cut off;
// exact is false if they were not all zeros. ErrOverflow comes with n.
func Parse(s []byte) (d Decimal, n int, exact bool, err error) {
	i := 0
	neg := false
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		neg = s[i] == '-'
		i++
	}
	p := parser{exact: true}
	start := i
	i = p.digits(s, i, false)
	count := i - start
	if i < len(s) && s[i] == '.' {
		end := p.digits(s, i+1, true)
		count += end - i - 1
		i = end
	}
	if count == 0 {
		return Decimal{}, 0, true, nil
	}
	exp, i := parseExponent(s, i)
	d, err = p.finish(neg, exp)
	return d, i, p.exact, err
}

// parser collects digits: the number is w * 10^drop * 10^-scale.
type parser struct {
	w     [4]uint64
	kept  int // significant digits in w
	scale int
	drop  int // integer digits that found no room
	exact bool
}

// digits takes the digits of s from i on and returns where they end.
func (p *parser) digits(s []byte, i int, fraction bool) int {
	for ; i < len(s) && s[i]-'0' <= 9; i++ {
		c := s[i] - '0'
		switch {
		case p.kept < 19:
			p.w[0] = p.w[0]*10 + uint64(c)
		case p.kept < maxDigits:
			mulSmall(p.w[:], 10)
			addSmall(p.w[:], uint64(c))
		default:
			p.exact = p.exact && c == 0
			if !fraction {
				p.drop++
			}
			continue
		}
		if p.kept > 0 || c != 0 {
			p.kept++
		}
		if fraction {
			p.scale++
		}
	}
	return i
}

// parseExponent reads e, an optional sign and digits at s[i:], if all there.
// Values are clamped: what they mean is the same.
func parseExponent(s []byte, i int) (exp, next int) {
	if i >= len(s) || s[i]|0x20 != 'e' {
		return 0, i
	}
	j := i + 1
	neg := false
	if j < len(s) && (s[j] == '-' || s[j] == '+') {
		neg = s[j] == '-'
		j++
	}
	start := j
	for ; j < len(s) && s[j]-'0' <= 9; j++ {
		exp = min(exp*10+int(s[j]-'0'), 1<<30)
	}
	if j == start {
		return 0, i
	}
	if neg {
		exp = -exp
	}
	return exp, j
}

func (p *parser) finish(neg bool, exp int) (Decimal, error) {
	scale := p.scale - exp - p.drop
	if p.kept == 0 {
		return Decimal{scale: uint8(min(max(scale, 0), maxDigits))}, nil
	}
	if p.kept-scale > maxIntegerDigits {
		return Decimal{neg: neg}, ErrOverflow
	}
	d := Decimal{w: p.w, neg: neg}
	switch {
	case scale < 0:
		mulPow10(d.w[:], -scale)
		scale = 0
	case scale > maxDigits:
		if divPow10(d.w[:], min(scale-maxDigits, maxDigits+1)) {
			p.exact = false
		}
		scale = maxDigits
	}
	d.scale = uint8(scale)
	d.neg = neg && !d.IsZero()
	return d, nil
}

// AppendText appends d with all digits of its scale, e.g. -0.50.
func (d Decimal) AppendText(dst []byte) []byte {
	if d.neg {
		dst = append(dst, '-')
	}
	var buf [maxDigits + 4]byte
	at := len(buf)
	w := d.w
	for n := used(w[:]); n > 0; n = used(w[:n]) {
		group := divSmall(w[:n], pow10w[19])
		for i := 0; i < 19 && (group != 0 || used(w[:n]) > 0); i++ {
			at--
			buf[at] = byte('0' + group%10)
			group /= 10
		}
	}
	for len(buf)-at <= int(d.scale) {
		at--
		buf[at] = '0'
	}
	point := len(buf) - int(d.scale)
	dst = append(dst, buf[at:point]...)
	if d.scale > 0 {
		dst = append(dst, '.')
		dst = append(dst, buf[point:]...)
	}
	return dst
}

// String returns the text of d.
func (d Decimal) String() string { return string(d.AppendText(nil)) }

// Int64 returns d rounded half away from zero; on overflow ok is false and the
// result is the nearest int64.
func (d Decimal) Int64() (v int64, ok bool) {
	u, fits := d.Abs().Uint64()
	switch {
	case d.neg && (!fits || u > 1<<63):
		return -1 << 63, false
	case d.neg:
		return -int64(u), true
	case !fits || u > 1<<63-1:
		return 1<<63 - 1, false
	}
	return int64(u), true
}

// Uint64 is [Decimal.Int64] for unsigned integers: negative numbers that do not
// round to zero overflow to 0.
func (d Decimal) Uint64() (v uint64, ok bool) {
	r, err := d.Round(0)
	switch {
	case r.neg:
		return 0, false
	case err != nil || !r.short():
		return 1<<64 - 1, false
	}
	return r.w[0], true
}

// exactPow10 holds the powers of ten that a float64 represents exactly.
var exactPow10 = [23]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// Float64 returns the nearest float64.
func (d Decimal) Float64() float64 {
	if d.short() && d.w[0] < 1<<53 && int(d.scale) < len(exactPow10) {
		f := float64(d.w[0]) / exactPow10[d.scale] // one rounding: both are exact
		if d.neg {
			return -f
		}
		return f
	}
	var buf [maxDigits + 8]byte
	text := d.AppendText(buf[:0])
	f, _ := strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), 64)
	return f
}

// FromFloat64 returns the number that f's shortest text stands for. NaN and
// infinities give ErrOverflow, as do magnitudes from 10^65 on.
func FromFloat64(f float64) (Decimal, error) {
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], f, 'e', -1, 64)
	d, n, _, err := Parse(text)
	if n == 0 {
		err = ErrOverflow
	}
	return d, err
}

// Hash mixes d into seed; equal numbers hash alike whatever their scale.
func (d Decimal) Hash(seed uint64, mix func(seed, v uint64) uint64) uint64 {
	for d.scale > 0 {
		w := d.w
		if divSmall(w[:], 10) != 0 {
			break
		}
		d.w = w
		d.scale--
	}
	if d.neg {
		seed = ^seed
	}
	for _, limb := range d.w[:used(d.w[:])] {
		seed = mix(seed, limb)
	}
	return mix(seed, uint64(d.scale))
}

package decimal

import "errors"

// ErrCorrupt is returned for packed bytes that are no number.
var ErrCorrupt = errors.New("decimal: corrupt packed form")

// The packed form is MySQL's: the digits of the integer part, then those of the
// fraction, in big-endian groups of nine digits to four bytes. Where a part's
// length is not a multiple of nine, its outermost group (the first of the
// integer part, the last of the fraction) is shorter. The top bit is inverted,
// and all bits of negative numbers, so that bytes compare as numbers:
//
//	DECIMAL(7,2)  12345.67   80 30 39 | 43      12345 | 67
//	             -12345.67   7f cf c6 | bc

const wordDigits = 9

// groupBytes is the number of bytes that a group of so many digits takes.
var groupBytes = [wordDigits + 1]int{0, 1, 1, 2, 2, 3, 3, 4, 4, 4}

// PackedSize returns the length of the packed form of DECIMAL(precision, scale).
func PackedSize(precision, scale int) int {
	whole := precision - scale
	return whole/wordDigits*4 + groupBytes[whole%wordDigits] + scale/wordDigits*4 + groupBytes[scale%wordDigits]
}

// AppendPacked appends the packed form of d as DECIMAL(precision, scale).
// REQUIRES: d fits the type, as after [Decimal.Fit]; it may have another scale.
func (d Decimal) AppendPacked(dst []byte, precision, scale int) []byte {
	v := d
	if int(v.scale) != scale {
		v, _, _ = v.Fit(precision, scale)
	}
	size := PackedSize(precision, scale)
	start := len(dst)
	for i := 0; i < size; i++ {
		dst = append(dst, 0)
	}
	out := dst[start:]
	w := v.w[:used(v.w[:])]
	whole := precision - scale
	end := putGroup(out, size, w, scale%wordDigits)
	for i := 0; i < scale/wordDigits+whole/wordDigits; i++ {
		end = putGroup(out, end, w, wordDigits)
	}
	putGroup(out, end, w, whole%wordDigits)
	if v.neg {
		for i := range out {
			out[i] = ^out[i]
		}
	}
	out[0] ^= 0x80
	return dst
}

// putGroup moves the last n digits of w to the bytes of out before end, and
// returns where they begin.
func putGroup(out []byte, end int, w []uint64, n int) int {
	if n == 0 {
		return end
	}
	group := divSmall(w, pow10w[n])
	begin := end - groupBytes[n]
	for i := end - 1; i >= begin; i-- {
		out[i] = byte(group)
		group >>= 8
	}
	return begin
}

// DecodePacked reads a DECIMAL(precision, scale) from the first PackedSize
// bytes of b.
func DecodePacked(b []byte, precision, scale int) (Decimal, error) {
	size := PackedSize(precision, scale)
	if len(b) < size || size == 0 {
		return Decimal{}, ErrCorrupt
	}
	b = b[:size]
	d := Decimal{scale: uint8(scale)}
	mask := byte(0)
	if b[0]&0x80 == 0 {
		mask, d.neg = 0xff, true
	}
	whole := precision - scale
	first := b[0] ^ 0x80 ^ mask
	at, ok := d.getGroup(b, first, mask, 0, whole%wordDigits)
	for i := 0; ok && i < whole/wordDigits+scale/wordDigits; i++ {
		at, ok = d.getGroup(b, first, mask, at, wordDigits)
	}
	if ok {
		_, ok = d.getGroup(b, first, mask, at, scale%wordDigits)
	}
	if !ok || d.neg && d.IsZero() {
		return Decimal{}, ErrCorrupt
	}
	return d, nil
}

// getGroup appends the n digits at b[at:] to d; first stands for b[0].
func (d *Decimal) getGroup(b []byte, first, mask byte, at, n int) (next int, ok bool) {
	if n == 0 {
		return at, true
	}
	var group uint64
	for i := 0; i < groupBytes[n]; i++ {
		c := b[at+i] ^ mask
		if at+i == 0 {
			c = first
		}
		group = group<<8 | uint64(c)
	}
	if group >= pow10w[n] {
		return 0, false
	}
	if d.short() {
		hi, lo := mul64add(d.w[0], pow10w[n], group)
		d.w[0], d.w[1] = lo, hi
	} else {
		mulSmall(d.w[:], pow10w[n])
		addSmall(d.w[:], group)
	}
	return at + groupBytes[n], true
}

// ShortPacking reads the packed form of DECIMAL(precision, scale) of at most 18 digits
// as an unscaled number, many times faster than [DecodePacked].
type ShortPacking struct {
	groups [4]shortGroup
	n      int
	size   int
}

type shortGroup struct {
	bytes int
	limit uint64 // a power of ten
}

// NewShortPacking returns the packing of a type. REQUIRES: precision <= 18.
func NewShortPacking(precision, scale int) (p ShortPacking) {
	add := func(digits int) {
		if digits > 0 {
			p.groups[p.n] = shortGroup{groupBytes[digits], pow10w[digits]}
			p.n++
		}
	}
	whole := precision - scale
	add(whole % wordDigits)
	for range whole/wordDigits + scale/wordDigits {
		add(wordDigits)
	}
	add(scale % wordDigits)
	p.size = PackedSize(precision, scale)
	return p
}

// Size is the length of the packed form.
func (p *ShortPacking) Size() int { return p.size }

// Unscaled reads a number; ok is false if it is none. REQUIRES: len(b) is Size.
func (p *ShortPacking) Unscaled(b []byte) (x int64, ok bool) {
	flip := uint32(0)
	if b[0]&0x80 == 0 {
		flip = ^flip
	}
	var sum uint64
	top := uint32(0x80)
	ok = true
	for i := range p.groups[:p.n] {
		g := &p.groups[i]
		var v uint32
		switch g.bytes {
		case 1:
			v = uint32(b[0]) ^ top ^ flip&0xff
		case 2:
			v = uint32(b[0])<<8 | uint32(b[1])
			v ^= top<<8 ^ flip&0xffff
		case 3:
			v = uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
			v ^= top<<16 ^ flip&0xffffff
		default:
			v = uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
			v ^= top<<24 ^ flip
		}
		ok = ok && uint64(v) < g.limit
		sum = sum*g.limit + uint64(v)
		b, top = b[g.bytes:], 0
	}
	if flip != 0 {
		return -int64(sum), ok && sum != 0
	}
	return int64(sum), ok
}

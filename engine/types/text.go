package types

import (
	"math"
	"math/bits"
	"strconv"
	"time"
	"unicode/utf8"
)

// CutUTF8 is the beginning of a text of at most n bytes, which ends between characters. Of a text that is no UTF-8 it may be n bytes less utf8.UTFMax.
func CutUTF8(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for least := max(n-utf8.UTFMax, 0); n > least && !utf8.RuneStart(text[n]); {
		n--
	}
	return text[:n]
}

// LongestText is how many bytes AppendText appends at most for a value of the type, also in a character set that takes more for
// each character. The type is neither a string, whose length its values tell, nor JSON.
func (t *Type) LongestText() int {
	const number = 350 // of DOUBLE(255,30)
	n := 0
	switch t.Kind {
	case KindEnum:
		for _, m := range t.Members {
			n = max(n, len(m))
		}
	case KindSet:
		for _, m := range t.Members {
			n += len(m) + 1
		}
	}
	return max(number, utf8.UTFMax*n)
}

// AppendText appends the text of v as clients see it; nothing for NULL. t gives
// what the value does not know: fractional digits, ENUM and SET members, BIT
// length, fill. loc is the session's time zone, in which a TIMESTAMP is shown;
// nil is UTC. The text is ASCII, but for strings and members, which are in t's
// character set, JSON, which is utf8mb4, and BIT, which is bytes.
func AppendText(dst []byte, v Value, t *Type, loc *time.Location) []byte {
	switch v.class {
	case ClassInt:
		return appendZeroFill(strconv.AppendInt(dst, v.Int(), 10), len(dst), t)
	case ClassUint:
		return appendUintText(dst, v.a, t)
	case ClassFloat, ClassDouble:
		return appendFloatText(dst, v, t)
	case ClassDecimal:
		d := v.Decimal()
		return d.AppendText(dst)
	case ClassBytes:
		return append(dst, v.Bytes()...)
	case ClassDate:
		return v.DateTime().AppendDate(dst)
	case ClassDateTime:
		return v.DateTime().AppendText(dst, int(t.FSP))
	case ClassTimestamp:
		if loc == nil {
			loc = time.UTC
		}
		return v.Timestamp().In(loc).AppendText(dst, int(t.FSP))
	case ClassTime:
		return v.Time().AppendText(dst, int(t.FSP))
	case ClassJSON:
		if jsonCodec == nil {
			return append(dst, v.Bytes()...)
		}
		text, err := jsonCodec.AppendText(dst, v.Bytes())
		if err != nil {
			return dst
		}
		return text
	}
	return dst
}

// appendUintText writes what a ClassUint value of type t means.
func appendUintText(dst []byte, u uint64, t *Type) []byte {
	switch t.Kind {
	case KindYear:
		return appendPadded(dst, u, 4)
	case KindBit:
		return appendUint(dst, u, int(t.Length+7)/8)
	case KindEnum:
		if u >= 1 && u <= uint64(len(t.Members)) {
			dst = append(dst, t.Members[u-1]...)
		}
		return dst
	case KindSet:
		start := len(dst)
		for ; u != 0; u &= u - 1 {
			if i := bits.TrailingZeros64(u); i < len(t.Members) {
				if len(dst) > start {
					dst = append(dst, t.Charset().Comma()...)
				}
				dst = append(dst, t.Members[i]...)
			}
		}
		return dst
	}
	return appendZeroFill(strconv.AppendUint(dst, u, 10), len(dst), t)
}

// appendZeroFill pads the digits dst[start:] of a ZEROFILL integer.
func appendZeroFill(dst []byte, start int, t *Type) []byte {
	if !t.ZeroFill {
		return dst
	}
	missing := min(int(t.Length), 255) - (len(dst) - start)
	for range max(missing, 0) {
		dst = append(dst, '0')
	}
	if missing > 0 {
		copy(dst[start+missing:], dst[start:len(dst)-missing])
		for i := range missing {
			dst[start+i] = '0'
		}
	}
	return dst
}

// appendPadded appends u with at least width digits.
func appendPadded(dst []byte, u uint64, width int) []byte {
	var buf [20]byte
	i := len(buf)
	for ; u > 0 || width > 0; width-- {
		i--
		buf[i] = byte('0' + u%10)
		u /= 10
	}
	return append(dst, buf[i:]...)
}

// maxFloatPoint is how far the point may be from the first digit before MySQL
// writes an exponent.
const maxFloatPoint = 15

// appendFloatText writes a floating-point number as MySQL does: the shortest
// digits that read back the same for DOUBLE, six significant ones for FLOAT,
// exactly Scale digits after the point if any were declared.
func appendFloatText(dst []byte, v Value, t *Type) []byte {
	f, bitSize := 0.0, 64
	if v.class == ClassFloat {
		f, bitSize = float64(v.Float()), 32
	} else {
		f = v.Double()
	}
	if t.Precision > 0 && (t.Kind == KindFloat || t.Kind == KindDouble) {
		return strconv.AppendFloat(dst, f, 'f', int(t.Scale), 64)
	}
	if bitSize == 32 {
		return appendShortest(dst, f, 5)
	}
	return appendShortest(dst, f, -1)
}

// AppendDouble appends the text of a DOUBLE without declared digits.
func AppendDouble(dst []byte, f float64) []byte { return appendShortest(dst, f, -1) }

// appendShortest writes f with the given digits after the first, -1 for as many
// as it takes, in plain notation where the point is near.
func appendShortest(dst []byte, f float64, precision int) []byte {
	if f == 0 {
		if math.Signbit(f) {
			dst = append(dst, '-')
		}
		return append(dst, '0')
	}
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], f, 'e', precision, 64)
	if text[0] == '-' {
		dst = append(dst, '-')
		text = text[1:]
	}
	e := len(text) - 1
	for e > 0 && text[e] != 'e' {
		e--
	}
	if e == 0 {
		return append(dst, text...) // Inf, NaN: no column holds them
	}
	exp, _ := strconv.Atoi(string(text[e+1:]))
	digits := append(text[:1], text[min(2, e):e]...)
	for len(digits) > 1 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	if point := exp + 1; point < 1-maxFloatPoint || point > maxFloatPoint {
		return appendExponent(dst, digits, exp)
	} else {
		return appendPlain(dst, digits, point)
	}
}

func appendExponent(dst, digits []byte, exp int) []byte {
	dst = append(dst, digits[0])
	if len(digits) > 1 {
		dst = append(dst, '.')
		dst = append(dst, digits[1:]...)
	}
	dst = append(dst, 'e')
	return strconv.AppendInt(dst, int64(exp), 10)
}

// appendPlain writes 0.digits * 10^point.
func appendPlain(dst, digits []byte, point int) []byte {
	if point <= 0 {
		dst = append(dst, '0', '.')
		for ; point < 0; point++ {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	for i, c := range digits {
		if i == point {
			dst = append(dst, '.')
		}
		dst = append(dst, c)
	}
	for i := len(digits); i < point; i++ {
		dst = append(dst, '0')
	}
	return dst
}

// AppendDate appends the date part, e.g. 2024-02-29.
func (d DateTime) AppendDate(dst []byte) []byte {
	year, month, day := d.Date()
	dst = append(appendPadded(dst, uint64(year), 4), '-')
	dst = append(appendPadded(dst, uint64(month), 2), '-')
	return appendPadded(dst, uint64(day), 2)
}

// AppendText appends date and time with fsp fractional digits.
func (d DateTime) AppendText(dst []byte, fsp int) []byte {
	hour, minute, second, micro := d.Clock()
	return appendClock(append(d.AppendDate(dst), ' '), hour, minute, second, micro, fsp)
}

// AppendText appends the time with fsp fractional digits, e.g. -838:59:59.5.
func (d Duration) AppendText(dst []byte, fsp int) []byte {
	neg, hour, minute, second, micro := d.Clock()
	if neg {
		dst = append(dst, '-')
	}
	return appendClock(dst, hour, minute, second, micro, fsp)
}

func appendClock(dst []byte, hour, minute, second, micro, fsp int) []byte {
	dst = append(appendPadded(dst, uint64(hour), 2), ':')
	dst = append(appendPadded(dst, uint64(minute), 2), ':')
	dst = appendPadded(dst, uint64(second), 2)
	if fsp > 0 {
		dst = append(dst, '.')
		dst = appendPadded(dst, uint64(micro), 6)
		dst = dst[:len(dst)-(MaxFSP-fsp)]
	}
	return dst
}

func (d DateTime) String() string  { return string(d.AppendText(nil, MaxFSP)) }
func (d Duration) String() string  { return string(d.AppendText(nil, MaxFSP)) }
func (t Timestamp) String() string { return t.In(time.UTC).String() }

package json

import (
	"encoding/binary"
	"math"
	"strconv"
)

var be = binary.BigEndian

// The sort key of a number is that of its decimal digits, so that numbers of different types compare by value:
//
//	sign      01 negative, 02 zero, 03 positive; nothing follows a zero
//	exponent  2 bytes, biased: the position of the decimal point
//	digits    two a byte, 1 + 0..99, without trailing zeros
//	end       00
//
// All bytes after the sign are complemented in negative numbers. A double stands for the shortest decimal that gives it back,
// as where MySQL compares it with a DECIMAL; doubles from 2^53 to 2^64 for their exact value, as where MySQL compares
// them with integers. The two choices make one order since both mappings are monotone and meet only below 2^53.
const (
	signNegative = 0x01
	signZero     = 0x02
	signPositive = 0x03

	exponentBias  = 1 << 14
	numberKeySize = 64 // sign, exponent, 65 to 76 digits, end
)

func appendNumberKey(dst []byte, v Value, t Type) []byte {
	var buf [96]byte
	switch t {
	case TypeInteger:
		n := v.Int()
		if n < 0 {
			return appendWholeKey(dst, true, -uint64(n))
		}
		return appendWholeKey(dst, false, uint64(n))
	case TypeUnsigned:
		return appendWholeKey(dst, false, v.Uint())
	case TypeDouble:
		f := v.Double()
		magnitude := math.Abs(f)
		if magnitude >= 1<<53 && magnitude < 1<<64 {
			return appendWholeKey(dst, f < 0, uint64(magnitude))
		}
		digits, exponent := splitExponent(strconv.AppendFloat(buf[:0], magnitude, 'e', -1, 64))
		return appendDigitsKey(dst, f < 0, digits, exponent+1)
	}
	d, _ := v.Decimal()
	text := d.AppendText(buf[:0])
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	digits, point := text[:0], -1
	for i, c := range text {
		if c == '.' {
			point = i
		} else {
			digits = append(digits, c)
		}
	}
	if point < 0 {
		point = len(digits)
	}
	return appendDigitsKey(dst, negative, digits, point)
}

func appendWholeKey(dst []byte, negative bool, n uint64) []byte {
	var buf [20]byte
	digits := strconv.AppendUint(buf[:0], n, 10)
	return appendDigitsKey(dst, negative, digits, len(digits))
}

// appendDigitsKey appends the key of 0.DIGITS * 10^point.
func appendDigitsKey(dst []byte, negative bool, digits []byte, point int) []byte {
	for len(digits) > 0 && digits[0] == '0' {
		digits, point = digits[1:], point-1
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	if len(digits) == 0 {
		return append(dst, signZero)
	}
	sign, flip := byte(signPositive), byte(0)
	if negative {
		sign, flip = signNegative, 0xFF
	}
	dst = append(dst, sign)
	start := len(dst)
	dst = be.AppendUint16(dst, uint16(point+exponentBias))
	for i := 0; i < len(digits); i += 2 {
		pair := (digits[i] - '0') * 10
		if i+1 < len(digits) {
			pair += digits[i+1] - '0'
		}
		dst = append(dst, pair+1)
	}
	dst = append(dst, 0)
	for i := start; i < len(dst); i++ {
		dst[i] ^= flip
	}
	return dst
}

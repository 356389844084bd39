package json

import (
	"encoding/base64"
	"math"
	"strconv"

	"github.com/triremedb/trireme/engine/types"
)

// AppendText appends the document as MySQL prints it: ", " between elements, ": " after names, names in key order. Values of
// column types that JSON lacks appear as numbers or strings.
func (v Value) AppendText(dst []byte) []byte { return v.appendText(dst, 0) }

// AppendUnquoted appends what JSON_UNQUOTE gives: a string's characters, the text of anything else without its quotes.
func (v Value) AppendUnquoted(dst []byte) []byte {
	if v.tag == tagString {
		return append(dst, v.data...)
	}
	start := len(dst)
	dst = v.appendText(dst, 0)
	if v.tag == tagOpaque && dst[start] == '"' {
		n := copy(dst[start:], dst[start+1:len(dst)-1])
		dst = dst[:start+n]
	}
	return dst
}

func (v Value) appendText(dst []byte, level int) []byte {
	switch v.Type() {
	case TypeNull, TypeMissing:
		return append(dst, "null"...)
	case TypeBoolean:
		return strconv.AppendBool(dst, v.Bool())
	case TypeInteger:
		return strconv.AppendInt(dst, v.Int(), 10)
	case TypeUnsigned:
		return strconv.AppendUint(dst, v.Uint(), 10)
	case TypeDouble:
		return appendDouble(dst, v.Double())
	case TypeDecimal:
		d, _ := v.Decimal()
		return d.AppendText(dst)
	case TypeString:
		return appendQuoted(dst, v.data)
	case TypeArray, TypeObject:
		return v.appendContainer(dst, level)
	case TypeDate, TypeDateTime, TypeTime:
		return append(v.appendTemporal(append(dst, '"')), '"')
	}
	dst = append(dst, `"base64:type`...)
	dst = strconv.AppendUint(dst, uint64(v.field), 10)
	dst = base64.StdEncoding.AppendEncode(append(dst, ':'), v.data)
	return append(dst, '"')
}

func (v Value) appendContainer(dst []byte, level int) []byte {
	c := v.open()
	opening, closing := byte('['), byte(']')
	if c.object {
		opening, closing = '{', '}'
	}
	dst = append(dst, opening)
	if level > MaxDepth { // only damaged documents go that deep
		return append(dst, closing)
	}
	for i := range c.count {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if c.object {
			key, _ := c.key(i)
			dst = append(appendQuoted(dst, key), ": "...)
		}
		e, _ := c.value(i)
		dst = e.appendText(dst, level+1)
	}
	return append(dst, closing)
}

const hexDigits = "0123456789abcdef"

// escapes holds the letter after the backslash of bytes that have a short escape.
var escapes = [256]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// appendQuoted appends s as a JSON string.
func appendQuoted(dst, s []byte) []byte {
	dst = append(dst, '"')
	done := 0
	for i, c := range s {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[done:i]...)
		done = i + 1
		if e := escapes[c]; e != 0 {
			dst = append(dst, '\\', e)
		} else {
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	dst = append(dst, s[done:]...)
	return append(dst, '"')
}

// AppendQuoted appends s, which is UTF-8, as a JSON string: JSON_QUOTE.
func AppendQuoted(dst, s []byte) []byte { return appendQuoted(dst, s) }

// Numbers from 10^-15 up to below 10^15, and those with a fraction, are printed without an exponent, as MySQL does.
const (
	minPlainPoint = -14
	maxPlainPoint = 15
)

// appendDouble prints the shortest digits that give f back. Whole numbers get ".0", which tells them from integers.
func appendDouble(dst []byte, f float64) []byte {
	var buf [32]byte
	s := strconv.AppendFloat(buf[:0], math.Abs(f), 'e', -1, 64)
	digits, exponent := splitExponent(s)
	point := exponent + 1 // digits before the decimal point
	if math.Signbit(f) {
		dst = append(dst, '-')
	}
	if f == 0 {
		return append(dst, "0.0"...)
	}
	switch n := len(digits); {
	case point < minPlainPoint || point > maxPlainPoint && point >= n:
		dst = append(dst, digits[0])
		if n > 1 {
			dst = append(append(dst, '.'), digits[1:]...)
		}
		return strconv.AppendInt(append(dst, 'e'), int64(exponent), 10)
	case point <= 0:
		dst = append(dst, "0."...)
		dst = appendZeros(dst, -point)
		return append(dst, digits...)
	case point >= n:
		dst = appendZeros(append(dst, digits...), point-n)
		return append(dst, ".0"...)
	default:
		dst = append(append(dst, digits[:point]...), '.')
		return append(dst, digits[point:]...)
	}
}

func appendZeros(dst []byte, n int) []byte {
	for ; n > 0; n-- {
		dst = append(dst, '0')
	}
	return dst
}

// splitExponent takes "1.25e+07" apart: the digits 125, moved together within s, and the exponent 7.
func splitExponent(s []byte) (digits []byte, exponent int) {
	at := len(s) - 1
	for s[at] != 'e' {
		at--
	}
	for _, c := range s[at+2:] {
		exponent = exponent*10 + int(c-'0')
	}
	if s[at+1] == '-' {
		exponent = -exponent
	}
	digits = s[:1]
	if at > 1 {
		digits = append(digits, s[2:at]...)
	}
	return digits, exponent
}

// appendTemporal prints a date, time or both; times always with six decimals.
func (v Value) appendTemporal(dst []byte) []byte {
	packed := le.Uint64(v.data)
	if v.field == FieldTime {
		neg, hour, minute, second, micro := types.Duration(packed).Clock()
		if neg {
			dst = append(dst, '-')
		}
		return appendClock(dst, hour, minute, second, micro)
	}
	d := types.DateTime(packed)
	year, month, day := d.Date()
	dst = appendPadded(dst, year, 4)
	dst = appendPadded(append(dst, '-'), month, 2)
	dst = appendPadded(append(dst, '-'), day, 2)
	if v.field == FieldDate {
		return dst
	}
	hour, minute, second, micro := d.Clock()
	return appendClock(append(dst, ' '), hour, minute, second, micro)
}

func appendClock(dst []byte, hour, minute, second, micro int) []byte {
	dst = appendPadded(dst, hour, 2)
	dst = appendPadded(append(dst, ':'), minute, 2)
	dst = appendPadded(append(dst, ':'), second, 2)
	return appendPadded(append(dst, '.'), micro, 6)
}

// appendPadded appends n with at least width digits.
func appendPadded(dst []byte, n, width int) []byte {
	if n < 0 {
		dst, n = append(dst, '-'), -n
	}
	for limit := 10; width > 1; width-- {
		if n < limit {
			dst = append(dst, '0')
		}
		limit *= 10
	}
	return strconv.AppendInt(dst, int64(n), 10)
}

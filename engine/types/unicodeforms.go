package types

import "encoding/binary"

// The forms of Unicode that are not UTF-8. Like MySQL, ucs2 takes every pair of bytes for a character.

const (
	surrogateMin  = 0xd800
	surrogateLow  = 0xdc00
	surrogateMax  = 0xdfff
	supplementary = 0x10000
	maxCodePoint  = 0x10ffff
)

func lengthUCS2(s []byte) int {
	if len(s) < 2 {
		return 0
	}
	return 2
}

func decodeUCS2(c []byte) rune {
	u := rune(binary.BigEndian.Uint16(c))
	if u >= surrogateMin && u <= surrogateMax {
		return -1
	}
	return u
}

func encodeUCS2(dst []byte, r rune) ([]byte, bool) {
	if r >= supplementary {
		return dst, false
	}
	return binary.BigEndian.AppendUint16(dst, uint16(r)), true
}

func lengthUTF16(s []byte) int   { return utf16Length(s, binary.BigEndian) }
func lengthUTF16LE(s []byte) int { return utf16Length(s, binary.LittleEndian) }

func utf16Length(s []byte, order binary.ByteOrder) int {
	if len(s) < 2 {
		return 0
	}
	switch u := order.Uint16(s); {
	case u < surrogateMin || u > surrogateMax:
		return 2
	case u >= surrogateLow || len(s) < 4:
		return 0
	}
	if u := order.Uint16(s[2:]); u < surrogateLow || u > surrogateMax {
		return 0
	}
	return 4
}

func decodeUTF16(c []byte) rune   { return utf16Rune(c, binary.BigEndian) }
func decodeUTF16LE(c []byte) rune { return utf16Rune(c, binary.LittleEndian) }

func utf16Rune(c []byte, order binary.ByteOrder) rune {
	if len(c) == 2 {
		return rune(order.Uint16(c))
	}
	return (rune(order.Uint16(c))-surrogateMin)<<10 + rune(order.Uint16(c[2:])) - surrogateLow + supplementary
}

func encodeUTF16(dst []byte, r rune) ([]byte, bool) {
	return appendUTF16(dst, r, binary.BigEndian)
}

func encodeUTF16LE(dst []byte, r rune) ([]byte, bool) {
	return appendUTF16(dst, r, binary.LittleEndian)
}

func appendUTF16(dst []byte, r rune, order binary.AppendByteOrder) ([]byte, bool) {
	switch {
	case r > maxCodePoint || r >= surrogateMin && r <= surrogateMax:
		return dst, false
	case r < supplementary:
		return order.AppendUint16(dst, uint16(r)), true
	}
	r -= supplementary
	return order.AppendUint16(order.AppendUint16(dst, uint16(surrogateMin+r>>10)), uint16(surrogateLow+r&0x3ff)), true
}

func lengthUTF32(s []byte) int {
	if len(s) < 4 {
		return 0
	}
	if u := binary.BigEndian.Uint32(s); u > maxCodePoint || u >= surrogateMin && u <= surrogateMax {
		return 0
	}
	return 4
}

func decodeUTF32(c []byte) rune { return rune(binary.BigEndian.Uint32(c)) }

func encodeUTF32(dst []byte, r rune) ([]byte, bool) {
	if r > maxCodePoint || r >= surrogateMin && r <= surrogateMax {
		return dst, false
	}
	return binary.BigEndian.AppendUint32(dst, uint32(r)), true
}

package event

import "encoding/binary"

// appendPacked appends MySQL's length-encoded integer: a byte below 251, or 252, 253
// or 254 and 2, 3 or 8 bytes.
func appendPacked(dst []byte, n uint64) []byte {
	switch {
	case n < 251:
		return append(dst, byte(n))
	case n < 1<<16:
		return append(dst, 252, byte(n), byte(n>>8))
	case n < 1<<24:
		return append(dst, 253, byte(n), byte(n>>8), byte(n>>16))
	}
	return binary.LittleEndian.AppendUint64(append(dst, 254), n)
}

func appendPackedString(dst []byte, s string) []byte {
	return append(appendPacked(dst, uint64(len(s))), s...)
}

// cutPacked reads a length-encoded integer.
func cutPacked(b []byte) (n uint64, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	width := 0
	switch b[0] {
	case 251, 255:
		return 0, nil, false
	case 252:
		width = 2
	case 253:
		width = 3
	case 254:
		width = 8
	default:
		return uint64(b[0]), b[1:], true
	}
	if len(b) < 1+width {
		return 0, nil, false
	}
	return readLE(b[1 : 1+width]), b[1+width:], true
}

// appendLE appends the low size bytes of v, least first.
func appendLE(dst []byte, v uint64, size int) []byte {
	switch size {
	case 1:
		return append(dst, byte(v))
	case 2:
		return append(dst, byte(v), byte(v>>8))
	case 4:
		return binary.LittleEndian.AppendUint32(dst, uint32(v))
	case 8:
		return binary.LittleEndian.AppendUint64(dst, v)
	}
	for range size {
		dst = append(dst, byte(v))
		v >>= 8
	}
	return dst
}

// readLE reads an integer of 1 to 8 bytes.
func readLE(b []byte) uint64 {
	switch len(b) {
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	case 8:
		return binary.LittleEndian.Uint64(b)
	}
	var v uint64
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v
}

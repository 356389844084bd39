package expr

import (
	"encoding/hex"
	"time"
)

type uuid [16]byte

// parseUUID reads the text of a UUID: with dashes, without, or with dashes in braces.
func parseUUID(s []byte) (u uuid, ok bool) {
	if len(s) == 38 && s[0] == '{' && s[37] == '}' {
		s = s[1:37]
	}
	var digits [32]byte
	switch len(s) {
	case 32:
		copy(digits[:], s)
	case 36:
		if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
			return u, false
		}
		joined := append(digits[:0], s[:8]...)
		joined = append(append(joined, s[9:13]...), s[14:18]...)
		_ = append(append(joined, s[19:23]...), s[24:]...)
	default:
		return u, false
	}
	_, err := hex.Decode(u[:], digits[:])
	return u, err == nil
}

func (u uuid) appendText(dst []byte) []byte {
	for i, part := range [][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return dst
}

// swapped puts the high part of the time first, so that UUIDs of version 1 sort by it.
func (u uuid) swapped() (s uuid) {
	copy(s[:2], u[6:8])
	copy(s[2:4], u[4:6])
	copy(s[4:8], u[:4])
	copy(s[8:], u[8:])
	return s
}

// unswapped is the inverse of swapped.
func (u uuid) unswapped() (s uuid) {
	copy(s[:4], u[4:8])
	copy(s[4:6], u[2:4])
	copy(s[6:8], u[:2])
	copy(s[8:], u[8:])
	return s
}

// gregorianOffset is the time from 1582-10-15 to 1970-01-01 in units of 100 ns.
const gregorianOffset = 122_192_928_000_000_000

// newUUID makes a UUID of version 1. The clock sequence and the node are random, with the bit set that marks a node that
// is no network card's, so that no two tasks or servers meet.
func newUUID(now time.Time, random1, random2 uint64) (u uuid) {
	t := uint64(now.UnixNano()/100) + gregorianOffset
	for i := range 4 {
		u[3-i] = byte(t >> (8 * i))
	}
	u[4], u[5] = byte(t>>40), byte(t>>32)
	u[6], u[7] = byte(t>>56)&0x0f|0x10, byte(t>>48)
	u[8], u[9] = byte(random1>>8)&0x3f|0x80, byte(random1)
	for i := range 6 {
		u[10+i] = byte(random2 >> (8 * i))
	}
	u[10] |= 1
	return u
}

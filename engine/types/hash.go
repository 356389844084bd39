package types

import (
	"encoding/binary"
	"math/bits"
)

// Odd constants without structure (digits of the golden ratio, pi and e).
const (
	hashK0 = 0x9e3779b97f4a7c15
	hashK1 = 0x243f6a8885a308d3
	hashK2 = 0xb7e151628aed2a6b
)

// HashUint64 mixes one word into a hash. The function is fixed: results are
// the same in every process and version.
func HashUint64(seed, v uint64) uint64 {
	hi, lo := bits.Mul64(v^hashK0, seed^hashK1)
	return hi ^ lo ^ hashK2
}

// HashBytes hashes s. The function is fixed: results are the same in every
// process and version. It is not meant to withstand chosen input; hash tables
// that hold client data pick a random seed.
func HashBytes(seed uint64, s []byte) uint64 {
	h := seed ^ uint64(len(s))*hashK2
	for len(s) >= 16 {
		hi, lo := bits.Mul64(binary.LittleEndian.Uint64(s)^hashK0, binary.LittleEndian.Uint64(s[8:])^h^hashK1)
		h = hi ^ lo
		s = s[16:]
	}
	if len(s) >= 8 {
		h = HashUint64(h, binary.LittleEndian.Uint64(s))
		s = s[8:]
	}
	if len(s) > 0 {
		var tail [8]byte
		copy(tail[:], s)
		h = HashUint64(h, binary.LittleEndian.Uint64(tail[:]))
	}
	return HashUint64(h, hashK1)
}

package collation

import "github.com/triremedb/trireme/engine/types"

// tis620 is tis620_thai_ci. A vowel that is written before its consonant changes places with it; tone marks and the like stand at
// the end of the text, in their order, each with a weight that is the less the more letters stand before it. Then bytes compare,
// small letters for capitals, with spaces after the shorter one.
type tis620 struct{ meta }

func (c tis620) Lossless() bool      { return false }
func (c tis620) PadSpace() bool      { return true }
func (c tis620) MaxKeyLen(n int) int { return n + n/2 + 8 }

// thaiMark gives the tone marks and other signs above letters their weights on the second level, from 1 on; 0 is none.
func thaiMark(b byte) uint8 {
	switch {
	case b == 0xEC:
		return 1
	case b >= 0xE7 && b <= 0xEB:
		return b - 0xE7 + 2
	}
	return 0
}

func isThaiConsonant(b byte) bool { return b >= 0xA1 && b <= 0xCE }
func isThaiLeading(b byte) bool   { return b >= 0xE0 && b <= 0xE4 }

// appendOrdered appends a text in the order of its weights.
func (c tis620) appendOrdered(dst, s []byte) []byte {
	marks := 0
	for i := 0; i < len(s); i++ {
		b := s[i]
		switch {
		case b >= 'A' && b <= 'Z':
			b += 'a' - 'A'
		case thaiMark(b) != 0:
			marks++
			continue
		case isThaiLeading(b) && i+1 < len(s) && isThaiConsonant(s[i+1]):
			dst = append(dst, s[i+1])
			i++
		}
		dst = append(dst, b)
	}
	if marks == 0 {
		return dst
	}
	const first, step = 0xF8, 8
	bias := uint8(first)
	for i := 0; i < len(s); i++ {
		b := s[i]
		switch m := thaiMark(b); {
		case m != 0:
			dst = append(dst, bias+m)
		case isThaiLeading(b) && i+1 < len(s) && isThaiConsonant(s[i+1]):
			i++ // the pair does not count
		case b < 0x80 || isThaiConsonant(b):
			bias -= step
		}
	}
	return dst
}

// thaiStack is how long a text is that is compared without memory from the heap.
const thaiStack = 256

// bytewise compares what is in order.
func (c tis620) bytewise() padBytes { return padBytes{c.meta, nil} }

func (c tis620) Compare(a, b []byte) int {
	var p, q [thaiStack]byte
	return c.bytewise().Compare(c.appendOrdered(p[:0], a), c.appendOrdered(q[:0], b))
}

func (c tis620) AppendSortKey(dst, s []byte) []byte {
	var p [thaiStack]byte
	return c.bytewise().AppendSortKey(dst, c.appendOrdered(p[:0], s))
}

func (c tis620) Hash(seed uint64, s []byte) uint64 {
	var p [thaiStack]byte
	return c.bytewise().Hash(seed, c.appendOrdered(p[:0], s))
}

var _ types.Collation = tis620{}

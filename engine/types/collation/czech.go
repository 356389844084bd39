package collation

import (
	"bytes"

	"github.com/triremedb/trireme/engine/types"
)

// Two collations of Czech that are older than the UCA. In both "ch" is a letter after h, with a weight of its own, if it is not
// written "cH".

// czechDouble reports whether s begins with the letter ch: 0 is no, 1, 2 and 3 are ch, Ch and CH.
func czechDouble(s []byte) int {
	if len(s) < 2 {
		return 0
	}
	switch string(s[:2]) {
	case "ch":
		return 1
	case "Ch":
		return 2
	case "CH":
		return 3
	}
	return 0
}

// czech4 is latin2_czech_cs: four levels. Sort keys are MySQL's: of each word its first and its second level, which spaces end and
// after the last word 01; then the third level of the whole text, 01, and the fourth. A run of spaces is one but on the fourth
// level, on which no character is ignored.
type czech4 struct {
	meta
	levels       [4]*[256]uint8 // 0: ignored
	upper, lower *[256]uint8
}

const (
	czechSpace = 2 // the weight of spaces on all levels
	czechNext  = 1 // ends a level
)

// czechDoubles are the weights of ch by level and case.
var czechDoubles = [4][4]uint8{{0, 0x0C, 0x0C, 0x0C}, {0, 0x19, 0x19, 0x19}, {0, 0x2F, 0x30, 0x31}, {0, 0x2F, 0x30, 0x31}}

func (c czech4) Lossless() bool { return false }
func (c czech4) PadSpace() bool { return true }

// Cases implements [types.Caser].
func (c czech4) Cases() (upper, lower *[256]uint8) { return c.upper, c.lower }

// Contracts implements [types.Contractor].
func (c czech4) Contracts() bool { return true }

// MaxKeyLen: each character has a weight on four levels at most, which three marks and an end join.
func (c czech4) MaxKeyLen(n int) int { return 4*n + 4 }

func (c czech4) isSpace(b byte) bool { return c.levels[0][b] == czechSpace }

// trim cuts off what pads: spaces.
func (c czech4) trim(s []byte) []byte {
	for len(s) > 0 && c.isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// appendLevel appends the weights of a text.
func (c czech4) appendLevel(dst, s []byte, level int) []byte {
	for i := 0; i < len(s); i++ {
		if d := czechDouble(s[i:]); d > 0 {
			dst = append(dst, czechDoubles[level][d])
			i++
			continue
		}
		w := c.levels[level][s[i]]
		switch {
		case w == 0:
			continue
		case w == czechSpace && level < 3:
			for i+1 < len(s) && c.isSpace(s[i+1]) {
				i++
			}
		}
		dst = append(dst, w)
	}
	return dst
}

func (c czech4) AppendSortKey(dst, s []byte) []byte {
	s = c.trim(s)
	for words := s; ; {
		end := 0
		for end < len(words) && !c.isSpace(words[end]) {
			end++
		}
		sign := uint8(czechSpace)
		if end == len(words) {
			sign = czechNext
		}
		dst = append(c.appendLevel(dst, words[:end], 0), sign)
		dst = append(c.appendLevel(dst, words[:end], 1), sign)
		if sign == czechNext {
			break
		}
		for words = words[end:]; c.isSpace(words[0]); {
			words = words[1:]
		}
	}
	dst = append(c.appendLevel(dst, s, 2), czechNext)
	return append(c.appendLevel(dst, s, 3), 0)
}

// czechStack is how long the key of a text is that is compared without memory from the heap.
const czechStack = 512

func (c czech4) Compare(a, b []byte) int {
	var p, q [czechStack]byte
	return bytes.Compare(c.AppendSortKey(p[:0], a), c.AppendSortKey(q[:0], b))
}

func (c czech4) Hash(seed uint64, s []byte) uint64 {
	var p [czechStack]byte
	return types.HashBytes(seed, c.AppendSortKey(p[:0], s))
}

// czech2 is cp1250_czech_cs: two levels, of which no character is ignored.
type czech2 struct {
	meta
	levels       [2]*[256]uint8
	upper, lower *[256]uint8
}

func (c czech2) Lossless() bool { return false }
func (c czech2) PadSpace() bool { return true }

// Cases implements [types.Caser].
func (c czech2) Cases() (upper, lower *[256]uint8) { return c.upper, c.lower }

// Contracts implements [types.Contractor].
func (c czech2) Contracts() bool { return true }

func (c czech2) MaxKeyLen(n int) int { return 2*n + 1 }

var czech2Doubles = [2][4]uint8{{0, 0xAD, 0xAD, 0xAD}, {0, 3, 2, 1}}

// AppendSortKey appends a zero between the levels.
func (c czech2) AppendSortKey(dst, s []byte) []byte {
	s = trimSpaces(s)
	for level, weights := range c.levels {
		if level > 0 {
			dst = append(dst, 0)
		}
		for i := 0; i < len(s); i++ {
			if d := czechDouble(s[i:]); d > 0 {
				dst = append(dst, czech2Doubles[level][d])
				i++
				continue
			}
			dst = append(dst, weights[s[i]])
		}
	}
	return dst
}

func (c czech2) Compare(a, b []byte) int {
	var p, q [czechStack]byte
	return bytes.Compare(c.AppendSortKey(p[:0], a), c.AppendSortKey(q[:0], b))
}

func (c czech2) Hash(seed uint64, s []byte) uint64 {
	var p [czechStack]byte
	return types.HashBytes(seed, c.AppendSortKey(p[:0], s))
}

package collation

import (
	"cmp"
	"encoding/binary"
)

// Sort keys under PAD SPACE.
//
// A string compares as if spaces without end followed it. The key stands for that endless string: it replaces each run of
// spaces by one space and a mark that says how the run compares with an endless one, and ends with a space and the mark of
// the endless run. A run that a smaller character ends is less than endless, and the shorter the less; a run that a larger
// character ends is greater, and the shorter the greater.
//
//	mark 01..7D        run of 1..125 spaces, then a character below space
//	mark 7E and u32    longer run, then a character below space
//	mark 80            end of the string
//	mark 81 and ^u32   longer run, then a character above space
//	mark 82..FE        run of 125..1 spaces, then a character above space
const (
	markLongest = 0x7D
	markLong    = 0x7E
	markEnd     = 0x80
)

// appendSpaces appends the mark of a run of n spaces that a character below (or above) space ends. The space itself is
// already there.
func appendSpaces(dst []byte, n int, below bool) []byte {
	var flip uint8
	if !below {
		flip = 0xFF
	}
	if n <= markLongest {
		return append(dst, uint8(n)^flip)
	}
	dst = append(dst, markLong^flip)
	count := uint32(n)
	if !below {
		count = ^count
	}
	return binary.BigEndian.AppendUint32(dst, count)
}

// trimSpaces cuts trailing spaces off.
func trimSpaces(s []byte) []byte {
	for len(s) > 0 && s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	return s
}

// padBytes is a PAD SPACE collation that gives each byte a weight of one byte. The space, and it alone, weighs 0x20.
type padBytes struct {
	meta
	weights *[256]uint8 // nil: each byte is its own weight
}

func (c padBytes) Lossless() bool { return false }
func (c padBytes) PadSpace() bool { return true }

// Every character costs a byte, every run of spaces a mark more, and the end two.
func (c padBytes) MaxKeyLen(n int) int { return n + n/2 + 8 }

// OneLevel implements [types.OneLevel].
func (c padBytes) OneLevel() bool { return true }

func (c padBytes) weight(b byte) uint8 {
	if c.weights == nil {
		return b
	}
	return c.weights[b]
}

func (c padBytes) Compare(a, b []byte) int {
	n := min(len(a), len(b))
	for i := commonPrefix(a, b); i < n; i++ {
		if p, q := c.weight(a[i]), c.weight(b[i]); p != q {
			return cmp.Compare(p, q)
		}
	}
	if len(a) > n {
		return c.compareSpaces(a[n:])
	}
	return -c.compareSpaces(b[n:])
}

// compareSpaces compares s with spaces.
func (c padBytes) compareSpaces(s []byte) int {
	for _, b := range s {
		if b != ' ' {
			return cmp.Compare(c.weight(b), ' ')
		}
	}
	return 0
}

func (c padBytes) AppendSortKey(dst, s []byte) []byte {
	s = trimSpaces(s)
	for i := 0; i < len(s); i++ {
		dst = append(dst, c.weight(s[i]))
		if s[i] != ' ' {
			continue
		}
		start := i
		for s[i+1] == ' ' { // ends before the end: the last byte is no space
			i++
		}
		dst = appendSpaces(dst, i+1-start, c.weight(s[i+1]) < ' ')
	}
	return append(dst, ' ', markEnd)
}

func (c padBytes) Hash(seed uint64, s []byte) uint64 {
	h := hasher{h: seed}
	for _, b := range trimSpaces(s) {
		h.add(uint16(c.weight(b)))
	}
	return h.sum()
}

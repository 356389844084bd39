package collation

import (
	"cmp"
	"encoding/binary"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/types"
)

// ucaAI is utf8mb4_0900_ai_ci: the primary weights alone.
type ucaAI struct{ meta }

func (c ucaAI) Lossless() bool      { return false }
func (c ucaAI) PadSpace() bool      { return false }
func (c ucaAI) MaxKeyLen(n int) int { return maxElements(n) * 2 }

// maxElements bounds the collation elements of n bytes. The longest expansions belong to characters of three bytes; a byte
// that is no character has two elements and ASCII at most one.
func maxElements(n int) int {
	return max(2*n, (n+2)/3*uca.maxElements)
}

func (c ucaAI) Compare(a, b []byte) int {
	at := commonRunes(a, b)
	return comparePrimary(a[at:], b[at:])
}

// comparePrimary stays with a plain loop as long as both strings are ASCII.
func comparePrimary(a, b []byte) int {
	i, j := 0, 0
	for i < len(a) && j < len(b) && a[i] < utf8.RuneSelf && b[j] < utf8.RuneSelf {
		p, q := uca.ascii[a[i]].primary(), uca.ascii[b[j]].primary()
		switch {
		case p == q:
			i, j = i+1, j+1
		case p == 0:
			i++
		case q == 0:
			j++
		default:
			return cmp.Compare(p, q)
		}
	}
	x, y := scanner{s: a, at: i}, scanner{s: b, at: j}
	for {
		p, q := x.nextPrimary(), y.nextPrimary()
		if p != q {
			return cmp.Compare(p, q)
		}
		if p == 0 {
			return 0
		}
	}
}

// BeginsWith implements [types.Beginner].
func (c ucaAI) BeginsWith(s, head []byte) (begins bool, read int) {
	x, y := scanner{s: s}, scanner{s: head}
	for {
		q := y.nextPrimary()
		if q == 0 {
			return true, x.at
		}
		if x.nextPrimary() != q {
			return false, x.at
		}
	}
}

// nextPrimary returns the next primary weight, or 0 at the end.
func (sc *scanner) nextPrimary() uint16 {
	for {
		c, ok := sc.next()
		if p := c.primary(); p != 0 || !ok {
			return p
		}
	}
}

func (c ucaAI) AppendSortKey(dst, s []byte) []byte {
	return appendPrimary(dst, s)
}

func appendPrimary(dst, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return appendPrimaryAny(dst, s[i:])
		}
		if p := uca.ascii[s[i]].primary(); p != 0 {
			dst = append(dst, byte(p>>8), byte(p))
		}
	}
	return dst
}

func appendPrimaryAny(dst, s []byte) []byte {
	sc := scanner{s: s}
	for p := sc.nextPrimary(); p != 0; p = sc.nextPrimary() {
		dst = binary.BigEndian.AppendUint16(dst, p)
	}
	return dst
}

// AppendSortKeyHead appends the first n bytes of the sort key, or one more.
func (c ucaAI) AppendSortKeyHead(dst, s []byte, n int) []byte {
	end := len(dst) + n
	for i := 0; i < len(s) && len(dst) < end; i++ {
		if s[i] >= utf8.RuneSelf {
			sc := scanner{s: s, at: i}
			for p := sc.nextPrimary(); p != 0 && len(dst) < end; p = sc.nextPrimary() {
				dst = binary.BigEndian.AppendUint16(dst, p)
			}
			return dst
		}
		if p := uca.ascii[s[i]].primary(); p != 0 {
			dst = append(dst, byte(p>>8), byte(p))
		}
	}
	return dst
}

func (c ucaAI) Hash(seed uint64, s []byte) uint64 {
	h := hasher{h: seed}
	from := 0
	for ; from+4 <= len(s) && binary.LittleEndian.Uint32(s[from:])&0x80808080 == 0; from += 4 {
		a, b := uca.ascii[s[from]].primary(), uca.ascii[s[from+1]].primary()
		c, d := uca.ascii[s[from+2]].primary(), uca.ascii[s[from+3]].primary()
		if a == 0 || b == 0 || c == 0 || d == 0 { // which adds nothing
			break
		}
		h.addFour(uint64(a)<<48 | uint64(b)<<32 | uint64(c)<<16 | uint64(d))
	}
	for i := from; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			sc := scanner{s: s, at: i}
			for p := sc.nextPrimary(); p != 0; p = sc.nextPrimary() {
				h.add(p)
			}
			break
		}
		if p := uca.ascii[s[i]].primary(); p != 0 {
			h.add(p)
		}
	}
	return h.sum()
}

// A hasher hashes a sequence of 16-bit weights, four at a time.
type hasher struct {
	h, word uint64
	n       uint64
}

func (h *hasher) add(w uint16) {
	h.word = h.word<<16 | uint64(w)
	if h.n++; h.n%4 == 0 {
		h.h = types.HashUint64(h.h, h.word)
		h.word = 0
	}
}

// addFour adds four weights, the first one uppermost. REQUIRES: only such were added before.
func (h *hasher) addFour(word uint64) {
	h.h = types.HashUint64(h.h, word)
	h.n += 4
}

func (h *hasher) sum() uint64 {
	return types.HashUint64(types.HashUint64(h.h, h.word), h.n)
}

// ucaCS is utf8mb4_0900_as_cs: primary, then secondary, then tertiary weights.
//
// Its sort key is the primary weights (two bytes each), 00 00, the ranks of the secondary weights (one byte each), 00, the
// tertiary weights (one byte each). Common weights at the end of the second and third level are left out, and separators
// after which nothing follows: the key of plain small letters is that of ucaAI. Leaving them out keeps the order because
// the common weight is the least of its level, and because strings that agree on the levels before have equally many
// weights there, apart from accents, which are above the common weight.
type ucaCS struct{ meta }

func (c ucaCS) Lossless() bool      { return false }
func (c ucaCS) PadSpace() bool      { return false }
func (c ucaCS) MaxKeyLen(n int) int { return maxElements(n)*4 + 3 }

func (c ucaCS) Compare(a, b []byte) int {
	at := commonRunes(a, b)
	a, b = a[at:], b[at:]
	if r := comparePrimary(a, b); r != 0 || len(a) == 0 && len(b) == 0 {
		return r
	}
	if r := compareLower(a, b, levelSecondary); r != 0 {
		return r
	}
	return compareLower(a, b, levelTertiary)
}

// A lowerLevel is the second or third level, as the position of its weight in an element.
type lowerLevel uint8

const (
	levelSecondary lowerLevel = 8
	levelTertiary  lowerLevel = 0
)

// compareLower compares the weights of one of the lower levels.
func compareLower(a, b []byte, level lowerLevel) int {
	x, y := scanner{s: a}, scanner{s: b}
	for {
		p, q := x.nextLower(level), y.nextLower(level)
		if p != q {
			return cmp.Compare(p, q)
		}
		if p == 0 {
			return 0
		}
	}
}

// nextLower returns the next weight of the level, or 0 at the end.
func (sc *scanner) nextLower(level lowerLevel) uint8 {
	for {
		c, ok := sc.next()
		if w := uint8(c >> level); w != 0 || !ok {
			return w
		}
	}
}

func (c ucaCS) AppendSortKey(dst, s []byte) []byte {
	dst = appendPrimary(dst, s)
	end := len(dst)
	dst = append(dst, 0, 0)
	dst, accents := appendLower(dst, s, uca.commonSecondary, levelSecondary)
	dst = append(dst, 0)
	last := len(dst)
	dst, cases := appendLower(dst, s, commonTertiary, levelTertiary)
	switch {
	case cases:
		return dst
	case accents:
		return dst[:last-1]
	}
	return dst[:end]
}

// AppendSortKeyHead appends primary weights only, at most n bytes of them or one more.
func (c ucaCS) AppendSortKeyHead(dst, s []byte, n int) []byte {
	return ucaAI{}.AppendSortKeyHead(dst, s, n)
}

// appendLower appends the weights of a lower level up to the last that is not common; some reports whether there are any.
func appendLower(dst, s []byte, common uint8, level lowerLevel) (out []byte, some bool) {
	sc := scanner{s: s}
	keep := len(dst)
	for w := sc.nextLower(level); w != 0; w = sc.nextLower(level) {
		dst = append(dst, w)
		if w != common {
			keep, some = len(dst), true
		}
	}
	return dst[:keep], some
}

func (c ucaCS) Hash(seed uint64, s []byte) uint64 {
	first, lower := hasher{h: seed}, hasher{h: seed + 1}
	sc := scanner{s: s}
	for e, ok := sc.next(); ok; e, ok = sc.next() {
		if p := e.primary(); p != 0 {
			first.add(p)
		}
		if e.secondary() != 0 {
			lower.add(uint16(e)) // secondary and tertiary weights come in pairs
		}
	}
	return types.HashUint64(first.sum(), lower.sum())
}

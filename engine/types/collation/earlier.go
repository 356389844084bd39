package collation

import (
	"cmp"
	"encoding/binary"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/types"
)

// earlier is a collation of an earlier version of the UCA, as MySQL has them: utf8mb4_unicode_ci and those of languages (4.0.0), and
// utf8mb4_unicode_520_ci (5.2.0). It has one level of weights, characters without any are ignored, and strings end as PAD SPACE has
// it. There are several characters that weigh as much as a space, such as the one that does not break.
type earlier struct {
	meta
	source *earlierSource
}

func (c earlier) Lossless() bool { return false }
func (c earlier) PadSpace() bool { return true }

// MaxKeyLen: three bytes have eight weights at most, and a byte alone two.
func (c earlier) MaxKeyLen(n int) int { return (n+2)/3*2*earlierMost + 8 }

// earlierMost is how many weights a character has at most.
const earlierMost = 8

// OneLevel implements [types.OneLevel].
func (c earlier) OneLevel() bool { return !c.source.joins }

// Contracts implements [types.Contractor].
func (c earlier) Contracts() bool { return c.source.joins }

// common is the length of a common prefix of a and b behind which both can be weighed afresh.
func (c earlier) common(a, b []byte) int {
	if c.source.joins {
		return 0
	}
	return commonRunes(a, b)
}

func (c earlier) Compare(a, b []byte) int {
	t := c.source.load()
	at := c.common(a, b)
	for !c.source.joins && at < len(a) && at < len(b) && a[at]|b[at] < utf8.RuneSelf {
		p, q := t.ascii[a[at]], t.ascii[b[at]]
		if p == 0 || q == 0 {
			break
		}
		if p != q {
			return cmp.Compare(p, q)
		}
		at++
	}
	x, y := earlierScanner{s: a, at: at, t: t}, earlierScanner{s: b, at: at, t: t}
	for {
		p, q := x.next(), y.next()
		if p == 0 && q == 0 {
			return 0
		}
		if p == 0 {
			p = t.space
		}
		if q == 0 {
			q = t.space
		}
		if p != q {
			return cmp.Compare(p, q)
		}
	}
}

func (c earlier) AppendSortKey(dst, s []byte) []byte {
	t := c.source.load()
	sc := earlierScanner{s: s, t: t}
	run := 0
	for w := sc.next(); w != 0; w = sc.next() {
		if w == t.space {
			run++
			continue
		}
		if run > 0 {
			dst = appendSpaces(binary.BigEndian.AppendUint16(dst, t.space), run, w < t.space)
			run = 0
		}
		dst = binary.BigEndian.AppendUint16(dst, w)
	}
	return append(binary.BigEndian.AppendUint16(dst, t.space), markEnd)
}

func (c earlier) Hash(seed uint64, s []byte) uint64 {
	t := c.source.load()
	h, run := hasher{h: seed}, 0
	sc := earlierScanner{s: s, t: t}
	for w := sc.next(); w != 0; w = sc.next() {
		if w == t.space {
			run++
			continue
		}
		for ; run > 0; run-- {
			h.add(t.space)
		}
		h.add(w)
	}
	return h.sum()
}

// BeginsWith implements [types.Beginner].
func (c earlier) BeginsWith(s, head []byte) (begins bool, read int) {
	t := c.source.load()
	x, y := earlierScanner{s: s, t: t}, earlierScanner{s: head, t: t}
	for {
		q := y.next()
		if q == 0 {
			return true, x.at
		}
		if x.next() != q {
			return false, x.at
		}
	}
}

// An earlierScanner yields the weights of a string.
type earlierScanner struct {
	s    []byte
	at   int
	t    *earlierTable
	list int // pending weights: t.weights[list : list+left], or second if list < 0
	left int
	// second is the pending weight of a computed pair.
	second uint16
}

// next returns the next weight, or 0 at the end.
func (sc *earlierScanner) next() uint16 {
	for {
		if sc.left > 0 {
			sc.left--
			if sc.list < 0 {
				return sc.second
			}
			sc.list++
			return sc.t.weights[sc.list-1]
		}
		if sc.at >= len(sc.s) {
			return 0
		}
		if w := sc.take(); w != 0 {
			return w
		}
	}
}

// take takes one character, or several that weigh as one: it returns the first weight and leaves the others pending.
func (sc *earlierScanner) take() uint16 {
	b := sc.s[sc.at]
	if b < utf8.RuneSelf {
		if sc.t.heads != nil && sc.t.heads[b] {
			if j := sc.t.join(sc.s[sc.at:]); j != nil {
				sc.at += len(j.text)
				return sc.listed(j.entry)
			}
		}
		sc.at++
		return sc.t.ascii[b]
	}
	r, size := utf8.DecodeRune(sc.s[sc.at:])
	if r == utf8.RuneError && size == 1 {
		sc.at++
		return sc.pair(weightInvalid, 0x100|uint16(b))
	}
	sc.at += size
	if r >= sc.t.limit {
		return weightSupplementary
	}
	if e := sc.t.entry(r); e != entryUnassigned {
		return sc.listed(e)
	}
	base := uint16(baseOther)
	switch {
	case r >= 0x4E00 && r <= 0x9FA5:
		base = baseHanCore
	case r >= 0x3400 && r <= 0x4DB5:
		base = baseHanMore
	}
	return sc.pair(base+uint16(r>>15), uint16(r&0x7FFF|0x8000))
}

func (sc *earlierScanner) pair(first, second uint16) uint16 {
	sc.list, sc.left, sc.second = -1, 1, second
	return first
}

func (sc *earlierScanner) listed(entry uint32) uint16 {
	n, at := int(entry>>earlierCountShift), int(entry&(1<<earlierCountShift-1))
	if n == 0 {
		return 0
	}
	sc.list, sc.left = at+1, n-1
	return sc.t.weights[at]
}

var _ types.Beginner = earlier{}

package collation

import (
	"encoding/binary"
	"unicode/utf8"
)

// A scanner yields the collation elements of a string one by one. It lives on the stack and refers to pending elements by
// position, never by pointer into itself.
type scanner struct {
	s    []byte
	at   int // the next byte to decode
	list int // pending elements: uca.expansions[list : list+left], or the last left of own when list < 0
	left int
	own  [3]ce
}

// next returns the next element that is not wholly ignorable; ok is false at the end.
func (sc *scanner) next() (c ce, ok bool) {
	for {
		if sc.left > 0 {
			return sc.pending(), true
		}
		if sc.at >= len(sc.s) {
			return 0, false
		}
		if b := sc.s[sc.at]; b < utf8.RuneSelf {
			sc.at++
			c = uca.ascii[b]
		} else {
			c = sc.decode()
		}
		if c != 0 {
			return c, true
		}
	}
}

func (sc *scanner) pending() ce {
	sc.left--
	if sc.list < 0 {
		return sc.own[len(sc.own)-1-sc.left]
	}
	c := uca.expansions[sc.list]
	sc.list++
	return c
}

// decode takes one character beyond ASCII: it returns its first element and leaves the others pending.
func (sc *scanner) decode() ce {
	r, size := utf8.DecodeRune(sc.s[sc.at:])
	if r == utf8.RuneError && size == 1 {
		first, second := uca.invalid(sc.s[sc.at])
		sc.at++
		return sc.keep(first, second)
	}
	sc.at += size
	e := uca.entry(r)
	switch {
	case e == entryUnassigned && isHangul(r):
		n, jamo := uca.jamo(r)
		if n == 2 {
			return sc.keep(jamo[0], jamo[1])
		}
		sc.list, sc.left, sc.own = -1, 2, jamo
		return jamo[0]
	case e == entryUnassigned:
		return sc.keep(uca.implicit(r))
	case e&entryExpansion != 0:
		sc.list, sc.left = int(e>>8)+1, int(e&entryCountMask)-1
		return uca.expansions[sc.list-1]
	}
	return ce(e)
}

// keep returns the first of two elements and leaves the second pending.
func (sc *scanner) keep(first, second ce) ce {
	sc.list, sc.left = -1, 1
	sc.own[2] = second
	return first
}

// commonPrefix returns the length of the longest common prefix of a and b.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for i+8 <= n && binary.LittleEndian.Uint64(a[i:]) == binary.LittleEndian.Uint64(b[i:]) {
		i += 8
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// commonRunes returns the length of a common prefix of a and b after which both can be decoded afresh with the result of
// decoding them whole. A byte that does not continue a character always starts a decoding step, whatever precedes it.
func commonRunes(a, b []byte) int {
	i := commonPrefix(a, b)
	if i == len(a) && i == len(b) {
		return i
	}
	for i > 0 && (i < len(a) && !utf8.RuneStart(a[i]) || i < len(b) && !utf8.RuneStart(b[i])) {
		i--
	}
	return i
}

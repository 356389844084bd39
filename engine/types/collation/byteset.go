package collation

import (
	"cmp"
	_ "embed"
	"encoding/binary"
	"strings"

	"github.com/triremedb/trireme/engine/types"
)

//go:embed byteweights.bin
var byteWeightsFile string

// byteTables are what the embedded file has of a collation: the weights of bytes by level, and for two collations that have cases
// of their own two more tables.
type byteTables struct {
	meta
	levels []*[256]uint8
}

// loadByteTables reads the file: of each level only the weights are there that are not the byte's own number.
func loadByteTables(b []byte) (all []byteTables) {
	n := b[0]
	b = b[1:]
	for range n {
		t := byteTables{meta: meta{id: types.CollationID(binary.LittleEndian.Uint16(b))}}
		size := int(b[2])
		t.name = string(b[3 : 3+size])
		set, _, _ := strings.Cut(t.name, "_")
		t.charset, _ = types.CharsetByName(set)
		levels := b[3+size]
		b = b[4+size:]
		for range levels {
			l := new([256]uint8)
			for i := range l {
				l[i] = uint8(i)
			}
			runs := b[0]
			b = b[1:]
			for range runs {
				first, length := int(b[0]), int(b[1])+1
				copy(l[first:], b[2:2+length])
				b = b[2+length:]
			}
			t.levels = append(t.levels, l)
		}
		all = append(all, t)
	}
	return all
}

// byteCollations are the collations of character sets of one byte a character, but for those of ASCII and the default one of
// latin1.
var byteCollations = makeByteCollations()

func makeByteCollations() (all []types.Collation) {
	for _, t := range loadByteTables([]byte(byteWeightsFile)) {
		switch {
		case t.name == "latin1_german2_ci":
			all = append(all, german2{t.meta, t.levels[0], t.levels[1]})
		case t.name == "latin2_czech_cs":
			all = append(all, czech4{t.meta, [4]*[256]uint8(t.levels), t.levels[4], t.levels[5]})
		case t.name == "cp1250_czech_cs":
			all = append(all, czech2{t.meta, [2]*[256]uint8(t.levels), t.levels[2], t.levels[3]})
		case onlySpaceIsSpace(t.levels[0]):
			all = append(all, padBytes{t.meta, t.levels[0]})
		default:
			all = append(all, padWeights{t.meta, t.levels[0], t.levels[0][' ']})
		}
	}
	for _, cs := range types.Charsets() {
		if id := cs.BinaryCollation(); cs.MaxLen() == 1 && cs > types.CharsetUTF8MB4 {
			all = append(all, padBytes{meta{id, cs.String() + "_bin", cs}, nil})
		}
	}
	thai, _ := types.CharsetByName("tis620")
	return append(all, tis620{meta{thai.DefaultCollation(), "tis620_thai_ci", thai}})
}

// onlySpaceIsSpace reports whether the space, and it alone, weighs 20, as padBytes wants it.
func onlySpaceIsSpace(weights *[256]uint8) bool {
	for b, w := range weights {
		if (b == ' ') != (w == ' ') {
			return false
		}
	}
	return true
}

// padWeights is padBytes of weights of which that of the space is another, or is that of other bytes as well: these pad too.
type padWeights struct {
	meta
	weights *[256]uint8
	space   uint8
}

func (c padWeights) Lossless() bool      { return false }
func (c padWeights) PadSpace() bool      { return true }
func (c padWeights) MaxKeyLen(n int) int { return n + n/2 + 8 }

// OneLevel implements [types.OneLevel].
func (c padWeights) OneLevel() bool { return true }

func (c padWeights) trim(s []byte) []byte {
	for len(s) > 0 && c.weights[s[len(s)-1]] == c.space {
		s = s[:len(s)-1]
	}
	return s
}

func (c padWeights) Compare(a, b []byte) int {
	n := min(len(a), len(b))
	for i := commonPrefix(a, b); i < n; i++ {
		if p, q := c.weights[a[i]], c.weights[b[i]]; p != q {
			return cmp.Compare(p, q)
		}
	}
	if len(a) > n {
		return c.compareSpaces(a[n:])
	}
	return -c.compareSpaces(b[n:])
}

func (c padWeights) compareSpaces(s []byte) int {
	for _, b := range s {
		if w := c.weights[b]; w != c.space {
			return cmp.Compare(w, c.space)
		}
	}
	return 0
}

func (c padWeights) AppendSortKey(dst, s []byte) []byte {
	s = c.trim(s)
	for i := 0; i < len(s); i++ {
		w := c.weights[s[i]]
		dst = append(dst, w)
		if w != c.space {
			continue
		}
		start := i
		for c.weights[s[i+1]] == c.space { // ends before the end: the last byte is no space
			i++
		}
		dst = appendSpaces(dst, i+1-start, c.weights[s[i+1]] < c.space)
	}
	return append(dst, c.space, markEnd)
}

func (c padWeights) Hash(seed uint64, s []byte) uint64 {
	h := hasher{h: seed}
	for _, b := range c.trim(s) {
		h.add(uint16(c.weights[b]))
	}
	return h.sum()
}

// german2 is latin1_german2_ci, the order of telephone books: ä, ö, ü and ß weigh as ae, oe, ue and ss. The space alone weighs 20.
type german2 struct {
	meta
	first  *[256]uint8
	second *[256]uint8 // 0: none
}

func (c german2) Lossless() bool      { return false }
func (c german2) PadSpace() bool      { return true }
func (c german2) MaxKeyLen(n int) int { return 2*n + n/2 + 8 }

// german2Scanner yields the weights of a string, and then spaces.
type german2Scanner struct {
	s    []byte
	at   int
	half bool // the second weight of s[at-1] comes next
}

func (c german2) next(sc *german2Scanner) uint8 {
	if sc.half {
		sc.half = false
		return c.second[sc.s[sc.at-1]]
	}
	if sc.at >= len(sc.s) {
		return ' '
	}
	b := sc.s[sc.at]
	sc.at++
	sc.half = c.second[b] != 0
	return c.first[b]
}

func (sc *german2Scanner) atEnd() bool { return sc.at >= len(sc.s) && !sc.half }

func (c german2) Compare(a, b []byte) int {
	n := commonPrefix(a, b)
	x, y := german2Scanner{s: a, at: n}, german2Scanner{s: b, at: n}
	for !x.atEnd() || !y.atEnd() {
		if p, q := c.next(&x), c.next(&y); p != q {
			return cmp.Compare(p, q)
		}
	}
	return 0
}

func (c german2) AppendSortKey(dst, s []byte) []byte {
	sc := german2Scanner{s: trimSpaces(s)}
	for run := 0; !sc.atEnd(); {
		w := c.next(&sc)
		if w == ' ' {
			run++
			continue
		}
		if run > 0 {
			dst = appendSpaces(append(dst, ' '), run, w < ' ')
			run = 0
		}
		dst = append(dst, w)
	}
	return append(dst, ' ', markEnd)
}

func (c german2) Hash(seed uint64, s []byte) uint64 {
	h := hasher{h: seed}
	for sc := (german2Scanner{s: trimSpaces(s)}); !sc.atEnd(); {
		h.add(uint16(c.next(&sc)))
	}
	return h.sum()
}

// BeginsWith implements [types.Beginner].
func (c german2) BeginsWith(s, head []byte) (begins bool, read int) {
	x, y := german2Scanner{s: s}, german2Scanner{s: head}
	for !y.atEnd() {
		if x.atEnd() || c.next(&x) != c.next(&y) {
			return false, x.at
		}
	}
	return true, x.at
}

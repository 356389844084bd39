package collation

import (
	"cmp"
	_ "embed"
	"encoding/binary"
	"sync"
	"unicode/utf8"
)

//go:embed general_ci.bin
var generalFile string

//go:embed tolower_ci.bin
var toLowerFile string

// A generalTable holds the weights of the pages of 256 code points in which some weight is not the code point itself. It is made at
// the first use.
type generalTable struct {
	file  string
	sharp bool // ß is no s
	once  sync.Once
	pages [256]*[256]uint16
}

var (
	generalWeights  = &generalTable{file: generalFile}
	mysql500Weights = &generalTable{file: generalFile, sharp: true}
	toLowerWeights  = &generalTable{file: toLowerFile}
)

func (t *generalTable) load() *[256]*[256]uint16 {
	t.once.Do(t.unpack)
	return &t.pages
}

func (t *generalTable) unpack() {
	const record = 1 + 2*256
	for b := []byte(t.file); len(b) >= record; b = b[record:] {
		page := new([256]uint16)
		for i := range page {
			page[i] = binary.LittleEndian.Uint16(b[1+2*i:])
		}
		t.pages[b[0]] = page
	}
	if t.sharp {
		t.pages[0]['ß'] = 'ß'
	}
}

// general is utf8mb4_general_ci: one weight of two bytes per character, PAD SPACE. All characters beyond the basic plane
// weigh the same. The space, and it alone, weighs 0x20. With other tables it is utf8mb3_general_mysql500_ci and utf8mb3_tolower_ci.
type general struct {
	meta
	table *generalTable
}

func (c general) Lossless() bool { return false }
func (c general) PadSpace() bool { return true }

// MaxKeyLen: a byte that is no character counts as two weights, a space as a weight and a mark.
func (c general) MaxKeyLen(n int) int { return 4*n + 8 }

const (
	weightSupplementary = 0xFFFD
	weightInvalid       = 0xFFFF // ours: followed by the byte as a second weight
)

// generalWeight returns the weight of the character at the start of s and its length. Of a byte that is no character the
// weight is weightInvalid and the length 0: the second weight is the byte.
func generalWeight(pages *[256]*[256]uint16, s []byte) (weight uint16, size int) {
	if s[0] < utf8.RuneSelf {
		return pages[0][s[0]], 1
	}
	r, size := utf8.DecodeRune(s)
	switch {
	case r == utf8.RuneError && size == 1:
		return weightInvalid, 0
	case r > 0xFFFF:
		return weightSupplementary, size
	}
	if page := pages[r>>8]; page != nil {
		return page[r&0xFF], size
	}
	return uint16(r), size
}

// BeginsWith implements [types.Beginner].
func (c general) BeginsWith(s, head []byte) (begins bool, read int) {
	pages := c.table.load()
	x, y := generalScanner{s: s, pages: pages}, generalScanner{s: head, pages: pages}
	for {
		q, ok := y.next()
		if !ok {
			return true, x.at
		}
		if p, ok := x.next(); !ok || p != q {
			return false, x.at
		}
	}
}

// A generalScanner yields the weights of a string, spaces included.
type generalScanner struct {
	s     []byte
	at    int
	half  bool // the second weight of an invalid byte comes next
	pages *[256]*[256]uint16
}

func (sc *generalScanner) next() (weight uint16, ok bool) {
	if sc.at >= len(sc.s) {
		return 0, false
	}
	if sc.half {
		sc.half = false
		sc.at++
		return uint16(sc.s[sc.at-1]), true
	}
	weight, size := generalWeight(sc.pages, sc.s[sc.at:])
	sc.at += size
	sc.half = size == 0
	return weight, true
}

func (c general) Compare(a, b []byte) int {
	pages := c.table.load()
	at := commonRunes(a, b)
	for ascii := pages[0]; at < len(a) && at < len(b) && a[at]|b[at] < utf8.RuneSelf; at++ {
		if p, q := ascii[a[at]], ascii[b[at]]; p != q {
			return cmp.Compare(p, q)
		}
	}
	x, y := generalScanner{s: a, at: at, pages: pages}, generalScanner{s: b, at: at, pages: pages}
	for {
		p, more := x.next()
		q, moreB := y.next()
		if !more && !moreB {
			return 0
		}
		if !more {
			p = ' '
		}
		if !moreB {
			q = ' '
		}
		if p != q {
			return cmp.Compare(p, q)
		}
	}
}

func (c general) AppendSortKey(dst, s []byte) []byte {
	s = trimSpaces(s)
	pages := c.table.load()
	at, ascii := 0, pages[0]
	for at < len(s) && s[at] < utf8.RuneSelf && s[at] != ' ' {
		w := ascii[s[at]]
		dst = append(dst, byte(w>>8), byte(w))
		at++
	}
	sc := generalScanner{s: s, at: at, pages: pages}
	run := 0
	for w, ok := sc.next(); ok; w, ok = sc.next() {
		if w == ' ' {
			if run++; run == 1 {
				dst = append(dst, 0, ' ')
			}
			continue
		}
		if run > 0 {
			dst = appendSpaces(dst, run, w < ' ')
			run = 0
		}
		dst = binary.BigEndian.AppendUint16(dst, w)
	}
	return append(dst, 0, ' ', markEnd)
}

func (c general) Hash(seed uint64, s []byte) uint64 {
	h := hasher{h: seed}
	s = trimSpaces(s)
	pages := c.table.load()
	at, ascii := 0, pages[0]
	for at+4 <= len(s) && binary.LittleEndian.Uint32(s[at:])&0x80808080 == 0 {
		h.addFour(uint64(ascii[s[at]])<<48 | uint64(ascii[s[at+1]])<<32 | uint64(ascii[s[at+2]])<<16 | uint64(ascii[s[at+3]]))
		at += 4
	}
	sc := generalScanner{s: s, at: at, pages: pages}
	for w, ok := sc.next(); ok; w, ok = sc.next() {
		h.add(w)
	}
	return h.sum()
}

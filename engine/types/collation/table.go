package collation

import (
	_ "embed"
	"encoding/binary"
)

// A ce is one collation element: primary weight in bits 16-31, rank of the secondary weight in bits 8-15, tertiary weight in
// bits 0-4. A zero weight is ignored at its level. Apart from the second element of a computed weight, which has only a
// primary, an element has a secondary weight if and only if it has a tertiary one.
type ce uint32

func (c ce) primary() uint16  { return uint16(c >> 16) }
func (c ce) secondary() uint8 { return uint8(c >> 8) }

const (
	entryUnassigned = 0xFFFFFFFF // no weights listed: they are computed
	entryExpansion  = 1 << 7     // several elements: count in bits 0-6, offset in bits 8-31
	entryCountMask  = entryExpansion - 1

	commonTertiary = 2 // the tertiary weight of an ordinary small letter, the least there is
)

//go:embed uca900.bin
var ucaFile string

// ucaTable is the default table of the Unicode Collation Algorithm, in two stages: block number by page of 256 code points,
// then entry by code point.
type ucaTable struct {
	index           [0x110000 >> 8]uint16
	entries         []uint32
	expansions      []ce
	ascii           [128]ce // every ASCII character has at most one element
	commonSecondary uint8   // rank of the secondary weight of an unaccented letter, the least there is
	maxElements     int     // of one code point, computed weights included
}

var uca = loadUCA([]byte(ucaFile))

func loadUCA(b []byte) *ucaTable {
	le := binary.LittleEndian
	t := &ucaTable{commonSecondary: uint8(le.Uint32(b[8:])), maxElements: 3}
	blocks, expansions := int(le.Uint32(b)), int(le.Uint32(b[4:]))
	b = b[12:]
	for i := range t.index {
		t.index[i] = le.Uint16(b)
		b = b[2:]
	}
	t.entries = make([]uint32, blocks*256)
	for i := range t.entries {
		t.entries[i] = le.Uint32(b)
		b = b[4:]
		if e := t.entries[i]; e != entryUnassigned && e&entryExpansion != 0 {
			t.maxElements = max(t.maxElements, int(e&entryCountMask))
		}
	}
	t.expansions = make([]ce, expansions)
	for i := range t.expansions {
		t.expansions[i] = ce(le.Uint32(b))
		b = b[4:]
	}
	for i := range t.ascii {
		t.ascii[i] = ce(t.entries[int(t.index[0])*256+i])
	}
	return t
}

// entry returns the table's word for a code point.
func (t *ucaTable) entry(r rune) uint32 {
	return t.entries[uint32(t.index[r>>8])*256+uint32(r&0xFF)]
}

// Bases of computed primary weights, as in the algorithm's section on implicit weights.
const (
	baseTangut  = 0xFB00
	baseHanCore = 0xFB40
	baseHanMore = 0xFB80
	baseOther   = 0xFBC0
	baseInvalid = 0xFFFE // ours: bytes that are not UTF-8 sort after every character
)

// implicit returns the two elements of a code point that the table does not list. The ranges are those of MySQL's
// utf8mb4_0900 collations.
func (t *ucaTable) implicit(r rune) (first, second ce) {
	low := ce(r&0x7FFF|0x8000) << 16
	base := baseOther + uint32(r>>15)
	switch {
	case r >= 0x17000 && r <= 0x18AFF:
		base, low = baseTangut, ce(r-0x17000|0x8000)<<16
	case r >= 0x4E00 && r <= 0x9FD5, r >= 0xFA0E && r <= 0xFA29:
		base = baseHanCore + uint32(r>>15)
	case r >= 0x3400 && r <= 0x4DB5, r >= 0x20000 && r <= 0x2A6D6, r >= 0x2A700 && r <= 0x2B734,
		r >= 0x2B740 && r <= 0x2B81D, r >= 0x2B820 && r <= 0x2CEA1:
		base = baseHanMore + uint32(r>>15)
	}
	return t.common(base), low
}

// invalid returns the elements of a byte that is not part of a character.
func (t *ucaTable) invalid(b byte) (first, second ce) {
	return t.common(baseInvalid), ce(0x0100|uint32(b)) << 16
}

// common returns an element of the given primary weight and common lower weights.
func (t *ucaTable) common(primary uint32) ce {
	return ce(primary<<16 | uint32(t.commonSecondary)<<8 | commonTertiary)
}

// The arithmetic of Hangul syllables, from the Unicode standard, section 3.12.
const (
	hangulBase  = 0xAC00
	hangulCount = 11172
	jamoL       = 0x1100
	jamoV       = 0x1161
	jamoT       = 0x11A7
	jamoVCount  = 21
	jamoTCount  = 28
)

func isHangul(r rune) bool { return r >= hangulBase && r < hangulBase+hangulCount }

// jamo returns the elements of a Hangul syllable: those of its two or three letters.
func (t *ucaTable) jamo(r rune) (n int, elements [3]ce) {
	r -= hangulBase
	elements[0] = ce(t.entry(jamoL + r/(jamoVCount*jamoTCount)))
	elements[1] = ce(t.entry(jamoV + r/jamoTCount%jamoVCount))
	if r%jamoTCount == 0 {
		return 2, elements
	}
	elements[2] = ce(t.entry(jamoT + r%jamoTCount))
	return 3, elements
}

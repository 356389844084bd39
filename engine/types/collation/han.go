package collation

import (
	_ "embed"
	"encoding/binary"
	"sync"
	"unicode/utf16"
)

//go:embed han.bin
var hanFile string

// hanOrder is a language's order of ideographs. It is unpacked at the first use.
type hanOrder struct {
	first    uint16 // the primary weight of the first one
	language int    // its number in the file
	once     sync.Once
	pages    map[rune]*[256]uint16 // weights by the upper bits of code points; 0: none
}

// weight returns an ideograph's primary weight, 0 if the language has none for it.
func (h *hanOrder) weight(r rune) uint16 {
	h.once.Do(h.unpack)
	if page := h.pages[r>>8]; page != nil {
		return page[r&0xff]
	}
	return 0
}

func (h *hanOrder) unpack() {
	b := unpackBlock(hanFile, h.language)
	h.pages = map[rune]*[256]uint16{}
	for w := h.first; len(b) > 0; w++ {
		r := rune(binary.BigEndian.Uint16(b))
		b = b[2:]
		if utf16.IsSurrogate(r) {
			r = utf16.DecodeRune(r, rune(binary.BigEndian.Uint16(b)))
			b = b[2:]
		}
		if r == 0xffff {
			continue
		}
		page := h.pages[r>>8]
		if page == nil {
			page = new([256]uint16)
			h.pages[r>>8] = page
		}
		page[r&0xff] = w
	}
}

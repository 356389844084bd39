package types

import (
	_ "embed"
	"encoding/binary"
	"strings"
	"sync"
)

//go:generate go run ./internal/genbytes -from testdata/bytesets.txt -sets bytesets.bin -weights collation/byteweights.bin

// charsetInfo is what is known of a character set beside its code points.
type charsetInfo struct {
	name     string
	standard CollationID // its default collation
	binary   CollationID // its _bin collation
	foreign  bool        // the bytes below 80 are not ASCII
}

// charsetInfos are the character sets by number.
var charsetInfos = append(append([]charsetInfo{
	CharsetBinary:  {"binary", CollationBinary, CollationBinary, false},
	CharsetASCII:   {"ascii", CollationASCIIGeneral, CollationASCIIBin, false},
	CharsetLatin1:  {"latin1", CollationLatin1Swedish, CollationLatin1Bin, false},
	CharsetUTF8MB3: {"utf8mb3", CollationUTF8MB3Gen, CollationUTF8MB3Bin, false},
	CharsetUTF8MB4: {"utf8mb4", CollationUTF8MB40900AI, CollationUTF8MB4Bin, false},
}, byteSetInfos...), multiSetInfos()...)

var charsetsByName = func() map[string]Charset {
	m := make(map[string]Charset, len(charsetInfos)+1)
	for i, c := range charsetInfos {
		m[c.name] = Charset(i)
	}
	m["utf8"] = CharsetUTF8MB3
	return m
}()

// CharsetByName returns the character set of a name, in whatever case; utf8 is utf8mb3.
func CharsetByName(name string) (cs Charset, ok bool) {
	if cs, ok = charsetsByName[name]; !ok {
		cs, ok = charsetsByName[strings.ToLower(name)]
	}
	return cs, ok
}

// Charsets returns the character sets.
func Charsets() []Charset {
	all := make([]Charset, len(charsetInfos))
	for i := range all {
		all[i] = Charset(i)
	}
	return all
}

// DefaultCollation is the collation that a text of the character set has unless another one is named.
func (cs Charset) DefaultCollation() CollationID { return charsetInfos[cs].standard }

// BinaryCollation is the _bin collation of the character set.
func (cs Charset) BinaryCollation() CollationID { return charsetInfos[cs].binary }

// byteSet is a character set of one byte a character.
type byteSet struct {
	runes        [256]uint16 // noRune: none
	upper, lower [256]byte
	once         sync.Once       // makes pages
	pages        [256]*[256]byte // from code points to bytes, made at the first use; 0 is only U+0000
}

const noRune = 0xffff

//go:embed bytesets.bin
var byteSetFile string

// byteSets are the sets of the embedded file. Each is a name and the two collations, then for the bytes from 80 on their code
// points, capitals and small letters, then what of the other bytes is not as in ASCII.
var byteSets, byteSetInfos = loadByteSets([]byte(byteSetFile))

func loadByteSets(b []byte) (sets []byteSet, infos []charsetInfo) {
	n := int(b[0])
	b = b[1:]
	sets = make([]byteSet, n)
	for i := range sets {
		s := &sets[i]
		info := charsetInfo{name: string(b[1 : 1+b[0]])}
		b = b[1+b[0]:]
		info.standard, info.binary = CollationID(binary.LittleEndian.Uint16(b)), CollationID(binary.LittleEndian.Uint16(b[2:]))
		b = b[4:]
		for c := range 0x80 {
			s.runes[c], s.upper[c], s.lower[c] = uint16(c), asciiUpper(byte(c)), asciiLower(byte(c))
			s.runes[0x80+c] = binary.LittleEndian.Uint16(b[2*c:])
		}
		copy(s.upper[0x80:], b[256:384])
		copy(s.lower[0x80:], b[384:512])
		b = b[512:]
		const exception = 5
		for n := b[0]; n > 0; n-- {
			c := b[1]
			s.runes[c], s.upper[c], s.lower[c] = binary.LittleEndian.Uint16(b[2:]), b[4], b[5]
			info.foreign = info.foreign || s.runes[c] != uint16(c)
			b = b[exception:]
		}
		b = b[1:]
		infos = append(infos, info)
	}
	return sets, infos
}

func asciiUpper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

func asciiLower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c - 'A' + 'a'
	}
	return c
}

func (s *byteSet) decode(c byte) rune {
	if r := s.runes[c]; r != noRune {
		return rune(r)
	}
	return -1
}

// encode returns the byte of a code point. Of bytes with the same code point it is the one of ASCII, otherwise the last.
func (s *byteSet) encode(r rune) (byte, bool) {
	if r == 0 || r > 0xffff {
		return 0, r == 0
	}
	s.once.Do(s.reverse)
	page := s.pages[r>>8]
	if page == nil {
		return 0, false
	}
	b := page[r&0xff]
	return b, b != 0
}

func (s *byteSet) reverse() {
	for c, r := range s.runes {
		if r == noRune {
			continue
		}
		page := s.pages[r>>8]
		if page == nil {
			page = new([256]byte)
			s.pages[r>>8] = page
		}
		if first := page[r&0xff]; first == 0 || first >= 0x80 {
			page[r&0xff] = byte(c)
		}
	}
}

// latin1Upper and latin1Lower map the letters of latin1 as MySQL does: those of code page 1252 between 80 and 9F have no case.
var latin1Upper, latin1Lower = latin1Cases()

func latin1Cases() (upper, lower [256]byte) {
	for i := range upper {
		upper[i], lower[i] = asciiUpper(byte(i)), asciiLower(byte(i))
	}
	for c := 0xe0; c <= 0xfe; c++ {
		if c != 0xf7 {
			upper[c], lower[c-0x20] = byte(c-0x20), byte(c)
		}
	}
	return upper, lower
}

// asciiCases are the letters of ASCII alone.
var asciiUppers, asciiLowers = asciiCases()

func asciiCases() (upper, lower [256]byte) {
	for i := range upper {
		upper[i], lower[i] = asciiUpper(byte(i)), asciiLower(byte(i))
	}
	return upper, lower
}

// Cases gives each byte's capital and small letter in a set of one byte a character; of the others, those of ASCII
// characters.
func (cs Charset) Cases() (upper, lower *[256]byte) {
	switch {
	case cs == CharsetLatin1:
		return &latin1Upper, &latin1Lower
	case cs >= charsetFirstByteSet && cs < firstMultiSet:
		s := &byteSets[cs-charsetFirstByteSet]
		return &s.upper, &s.lower
	}
	return &asciiUppers, &asciiLowers
}

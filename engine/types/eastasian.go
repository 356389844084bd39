package types

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// eastAsianList says where MySQL's character sets differ from the encodings of golang.org/x/text, and which code a code point gets
// that several stand for.
//
//go:embed eastasian.txt
var eastAsianList string

// eastTable converts a character set of East Asia. It is made at the first use.
type eastTable struct {
	once   sync.Once
	runes  map[uint32]*[256]uint16 // from codes without their last byte; 0: none
	four   []uint16                // of gb18030's codes of four bytes in the basic plane, by their linear number
	codes  [256]*[256]uint32       // from code points; 0: none
	length func([]byte) int
}

var big5Table, cp932Table, eucjpmsTable, euckrTable, gb18030Table, gb2312Table, gbkTable, sjisTable, ujisTable eastTable

// eastAsian makes a set of the name and the numbers of its default and _bin collations.
func eastAsian(name string, standard, binary CollationID, maxLen int, length func([]byte) int, t *eastTable) multiSet {
	t.length = length
	four := maxLen == 4
	// In sjis the byte 5C is a backslash, but a backslash has another code.
	info := charsetInfo{name, standard, binary, name == "sjis"}
	return multiSet{info, maxLen, 1, length,
		func(c []byte) rune { return t.load(name).decode(c) },
		func(dst []byte, r rune) ([]byte, bool) { return t.load(name).encode(dst, r, four) }}
}

func between(b, first, last byte) bool { return b >= first && b <= last }

// twoBytes is the length of a character of ASCII or of two bytes.
func twoBytes(s []byte, isLead, isTrail func(byte) bool) int {
	switch {
	case s[0] < utf8.RuneSelf:
		return 1
	case len(s) > 1 && isLead(s[0]) && isTrail(s[1]):
		return 2
	}
	return 0
}

func lengthBig5(s []byte) int {
	return twoBytes(s, func(b byte) bool { return between(b, 0xa1, 0xf9) },
		func(b byte) bool { return between(b, 0x40, 0x7e) || between(b, 0xa1, 0xfe) })
}

func lengthGBK(s []byte) int {
	return twoBytes(s, func(b byte) bool { return between(b, 0x81, 0xfe) },
		func(b byte) bool { return between(b, 0x40, 0x7e) || between(b, 0x80, 0xfe) })
}

func lengthGB2312(s []byte) int {
	return twoBytes(s, func(b byte) bool { return between(b, 0xa1, 0xf7) }, func(b byte) bool { return between(b, 0xa1, 0xfe) })
}

func lengthEUCKR(s []byte) int {
	return twoBytes(s, func(b byte) bool { return between(b, 0x81, 0xfe) },
		func(b byte) bool { return between(b, 0x41, 0x5a) || between(b, 0x61, 0x7a) || between(b, 0x81, 0xfe) })
}

func lengthSJIS(s []byte) int {
	if between(s[0], halfKana, halfKanaLast) {
		return 1
	}
	return twoBytes(s, func(b byte) bool { return between(b, 0x81, 0x9f) || between(b, 0xe0, 0xfc) },
		func(b byte) bool { return between(b, 0x40, 0x7e) || between(b, 0x80, 0xfc) })
}

// Half-width Katakana are bytes of one in sjis, and stand behind a byte of their own in ujis.
const (
	halfKana     = 0xa1
	halfKanaLast = 0xdf
	halfKanaRune = 0xff61
)

func lengthEUCJP(s []byte) int {
	const kanaLead, threeLead = 0x8e, 0x8f
	high := func(b byte) bool { return between(b, 0xa1, 0xfe) }
	switch {
	case s[0] == kanaLead && len(s) > 1 && between(s[1], halfKana, halfKanaLast):
		return 2
	case s[0] == threeLead && len(s) > 2 && high(s[1]) && high(s[2]):
		return 3
	}
	return twoBytes(s, high, high)
}

func lengthGB18030(s []byte) int {
	digit := func(b byte) bool { return between(b, 0x30, 0x39) }
	if len(s) > 3 && between(s[0], 0x81, 0xfe) && digit(s[1]) && between(s[2], 0x81, 0xfe) && digit(s[3]) {
		return 4
	}
	return lengthGBK(s)
}

// fourLinear is the number of a code of four bytes of gb18030, in the order of these, and fourCode the way back.
func fourLinear(c []byte) int {
	return ((int(c[0])-0x81)*10+int(c[1])-0x30)*1260 + (int(c[2])-0x81)*10 + int(c[3]) - 0x30
}

func appendFour(dst []byte, n int) []byte {
	return append(dst, byte(0x81+n/12600), byte(0x30+n/1260%10), byte(0x81+n/10%126), byte(0x30+n%10))
}

// fourSupplementary is the number of the code of U+10000, from which on numbers and code points go side by side.
const (
	fourSupplementary = 189000
	fourBasic         = 50400 // codes of the basic plane are before
)

func (t *eastTable) decode(c []byte) rune {
	var r uint16
	switch n := fourLinear4(c); {
	case len(c) == 1 && c[0] >= halfKana:
		return halfKanaRune + rune(c[0]) - halfKana
	case len(c) == 1:
		return rune(c[0])
	case n >= fourSupplementary && n < fourSupplementary+maxCodePoint+1-supplementary:
		return rune(n - fourSupplementary + supplementary)
	case n >= fourBasic:
		return -1
	case n >= 0:
		r = t.four[n]
	default:
		if page := t.runes[codeOf(c[:len(c)-1])]; page != nil {
			r = page[c[len(c)-1]]
		}
	}
	if r == 0 {
		return -1
	}
	return rune(r)
}

// fourLinear4 is fourLinear, or -1 for a shorter code.
func fourLinear4(c []byte) int {
	if len(c) < 4 {
		return -1
	}
	return fourLinear(c)
}

func codeOf(c []byte) (code uint32) {
	for _, b := range c {
		code = code<<8 | uint32(b)
	}
	return code
}

func appendCode(dst []byte, code uint32) []byte {
	for shift := 24; shift >= 0; shift -= 8 {
		if code>>shift != 0 {
			dst = append(dst, byte(code>>shift))
		}
	}
	return dst
}

func (t *eastTable) encode(dst []byte, r rune, four bool) ([]byte, bool) {
	if r >= supplementary {
		if !four {
			return dst, false
		}
		return appendFour(dst, int(r)-supplementary+fourSupplementary), true
	}
	if r == 0 {
		return append(dst, 0), true
	}
	page := t.codes[r>>8]
	if page == nil || page[r&0xff] == 0 {
		return dst, false
	}
	return appendCode(dst, page[r&0xff]), true
}

func (t *eastTable) load(name string) *eastTable {
	t.once.Do(func() { t.fill(name) })
	return t
}

var eastEncodings = map[string]encoding.Encoding{
	"gbk": simplifiedchinese.GBK, "gb18030": simplifiedchinese.GB18030, "big5": traditionalchinese.Big5,
	"sjis": japanese.ShiftJIS, "euc": japanese.EUCJP, "euckr": korean.EUCKR,
}

// fill takes the codes of the encoding and what the list has different, and turns the table round.
func (t *eastTable) fill(name string) {
	t.runes = map[uint32]*[256]uint16{}
	least, exceptions := t.take(name)
	for _, f := range exceptions {
		if f[0] == "decode" {
			r := parseCode(f[3])
			for code := parseCode(f[1]); code <= parseCode(f[2]); code++ {
				if c := appendCode(nil, code); t.length(c) == len(c) {
					t.set(c, uint16(r))
					r += min(r, 1) // 0, none, stays so
				}
			}
		}
	}
	t.reverse(least)
	for _, f := range exceptions {
		if f[0] == "encode" {
			*t.codeFor(rune(parseCode(f[1]))) = parseCode(f[2])
		}
	}
}

// take decodes all codes of the set as the encoding does, and returns the set's exceptions of the list.
func (t *eastTable) take(name string) (least bool, exceptions [][]string) {
	ours := false
	for line := range strings.Lines(eastAsianList) {
		switch f := strings.Fields(line); {
		case f[0] == "set":
			if ours = f[1] == name; ours {
				least = f[3] == "least"
				decoder := eastEncodings[f[2]].NewDecoder()
				t.eachCode(func(c []byte) { t.set(c, decodeOne(decoder, c)) })
			}
		case ours:
			exceptions = append(exceptions, f)
		}
	}
	return least, exceptions
}

// decodeOne returns the code point of a code, 0 if there is none.
func decodeOne(d *encoding.Decoder, c []byte) uint16 {
	var out [2 * utf8.UTFMax]byte
	d.Reset()
	n, _, err := d.Transform(out[:], c, true)
	r, size := utf8.DecodeRune(out[:n])
	if err != nil || size != n || r == utf8.RuneError || r >= supplementary {
		return 0
	}
	return uint16(r)
}

// eachCode calls f with the codes of several bytes, in their order but for those of four bytes, which come last.
func (t *eastTable) eachCode(f func(c []byte)) {
	if t.four == nil && t.length([]byte{0x81, 0x30, 0x81, 0x30}) == 4 {
		t.four = make([]uint16, fourBasic)
	}
	const leads, threeLead = 0x80, 0x8f
	for lead := leads; lead <= 0xff; lead++ {
		for second := range 0x100 {
			c := []byte{byte(lead), byte(second), 0}
			if t.length(c[:2]) == 2 {
				f(c[:2])
				continue
			}
			for third := leads; lead == threeLead && third <= 0xff; third++ {
				if c[2] = byte(third); t.length(c) == 3 {
					f(c)
				}
			}
		}
	}
	for n := range t.four {
		f(appendFour(nil, n))
	}
}

func (t *eastTable) set(c []byte, r uint16) {
	if len(c) == 4 {
		t.four[fourLinear(c)] = r
		return
	}
	head := codeOf(c[:len(c)-1])
	page := t.runes[head]
	if page == nil {
		page = new([256]uint16)
		t.runes[head] = page
	}
	page[c[len(c)-1]] = r
}

// codeFor is where the code of a code point stands.
func (t *eastTable) codeFor(r rune) *uint32 {
	page := t.codes[r>>8]
	if page == nil {
		page = new([256]uint32)
		t.codes[r>>8] = page
	}
	return &page[r&0xff]
}

// reverse gives each code point its least or its greatest code.
func (t *eastTable) reverse(least bool) {
	add := func(c []byte) {
		if r := t.decode(c); r > 0 {
			if at := t.codeFor(r); *at == 0 || !least {
				*at = codeOf(c)
			}
		}
	}
	for b := range 0x100 {
		if c := []byte{byte(b)}; t.length(c) == 1 {
			add(c)
		}
	}
	t.eachCode(add)
}

// parseCode reads a hexadecimal number; - is 0, which stands for none.
func parseCode(s string) uint32 {
	if s == "-" {
		return 0
	}
	n, err := strconv.ParseUint(s, 16, 32)
	if err != nil {
		panic("types: " + err.Error()) // the list is a part of the program
	}
	return uint32(n)
}

package types

// The character sets of several bytes a character other than UTF-8: four forms of Unicode, and those of East Asia.

// multiSet is what distinguishes one.
type multiSet struct {
	info   charsetInfo
	maxLen int
	unit   int // bytes of the shortest character
	// length gives the number of bytes of the first character; 0: s does not begin with one. s is not empty.
	length func(s []byte) int
	// decode gives the code point of a whole character, -1 if there is none.
	decode func(c []byte) rune
	encode func(dst []byte, r rune) ([]byte, bool)
}

// multiSets are numbered after those of the embedded file.
var multiSets = []multiSet{
	{charsetInfo{"ucs2", 35, 90, true}, 2, 2, lengthUCS2, decodeUCS2, encodeUCS2},
	{charsetInfo{"utf16", 54, 55, true}, 4, 2, lengthUTF16, decodeUTF16, encodeUTF16},
	{charsetInfo{"utf16le", 56, 62, true}, 4, 2, lengthUTF16LE, decodeUTF16LE, encodeUTF16LE},
	{charsetInfo{"utf32", 60, 61, true}, 4, 4, lengthUTF32, decodeUTF32, encodeUTF32},
	eastAsian("big5", 1, 84, 2, lengthBig5, &big5Table),
	eastAsian("cp932", 95, 96, 2, lengthSJIS, &cp932Table),
	eastAsian("eucjpms", 97, 98, 3, lengthEUCJP, &eucjpmsTable),
	eastAsian("euckr", 19, 85, 2, lengthEUCKR, &euckrTable),
	eastAsian("gb18030", 248, 249, 4, lengthGB18030, &gb18030Table),
	eastAsian("gb2312", 24, 86, 2, lengthGB2312, &gb2312Table),
	eastAsian("gbk", 28, 87, 2, lengthGBK, &gbkTable),
	eastAsian("sjis", 13, 88, 2, lengthSJIS, &sjisTable),
	eastAsian("ujis", 12, 91, 3, lengthEUCJP, &ujisTable),
}

// firstMultiSet is the number of the first of multiSets.
var firstMultiSet = charsetFirstByteSet + Charset(len(byteSets))

func multiSetInfos() (all []charsetInfo) {
	for i := range multiSets {
		all = append(all, multiSets[i].info)
	}
	return all
}

// multi returns what is known of a character set of several bytes that is not UTF-8; nil for others.
func (cs Charset) multi() *multiSet {
	if cs < firstMultiSet {
		return nil
	}
	return &multiSets[cs-firstMultiSet]
}

// Unit is the number of bytes of the character set's shortest characters: 1, or 2 or 4 where no text is ASCII.
func (cs Charset) Unit() int {
	if m := cs.multi(); m != nil {
		return m.unit
	}
	return 1
}

// IsWide reports whether the character set's shortest characters have several bytes.
func (cs Charset) IsWide() bool { return cs.Unit() > 1 }

// charLen is the number of bytes of the first character, or of what is none.
func (m *multiSet) charLen(s []byte) int {
	if n := m.length(s); n > 0 {
		return n
	}
	return min(m.unit, len(s))
}

// lastCharLen is charLen of the last character. Where a byte may be the second of a character and one of its own, only the way
// from the beginning tells.
func (m *multiSet) lastCharLen(s []byte) int {
	if m.unit == 4 {
		return min(4, len(s))
	}
	at := 0
	for {
		n := m.charLen(s[at:])
		if at+n >= len(s) {
			return n
		}
		at += n
	}
}

func (m *multiSet) count(s []byte) (n int) {
	for len(s) > 0 {
		s = s[m.charLen(s):]
		n++
	}
	return n
}

func (m *multiSet) prefix(s []byte, n int) []byte {
	at := 0
	for ; n > 0 && at < len(s); n-- {
		at += m.charLen(s[at:])
	}
	return s[:at]
}

func (m *multiSet) invalidAt(s []byte) int {
	for at := 0; at < len(s); {
		n := m.length(s[at:])
		if n == 0 {
			return at
		}
		at += n
	}
	return -1
}

// decodeFirst is decodeRune.
func (m *multiSet) decodeFirst(s []byte) (rune, int) {
	n := m.length(s)
	if n == 0 {
		return -1, min(m.unit, len(s))
	}
	return m.decode(s[:n]), n
}

// Space is a space in the character set.
func (cs Charset) Space() []byte {
	if cs.IsWide() {
		out, _ := appendRune(nil, ' ', cs)
		return out
	}
	return []byte{' '}
}

// Comma is a comma in the character set.
func (cs Charset) Comma() []byte {
	if cs.IsWide() {
		out, _ := appendRune(nil, ',', cs)
		return out
	}
	return []byte{','}
}

// WholeIn returns the largest length of at most n bytes of s that splits no character.
func (cs Charset) WholeIn(s []byte, n int) int {
	if n >= len(s) || cs.MaxLen() == 1 {
		return min(n, len(s))
	}
	if m := cs.multi(); m != nil {
		at := 0
		for {
			size := m.charLen(s[at:])
			if at+size > n {
				return at
			}
			at += size
		}
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return n
}

// FindsItself reports whether the bytes of one text stand in another one only where its characters do: so in UTF-8, and where a
// character is a byte.
func (cs Charset) FindsItself() bool { return cs.multi() == nil }

// TrimSpaces cuts spaces off the end of s. Nowhere is the byte of a space the end of another character, but in wide sets.
func (cs Charset) TrimSpaces(s []byte) []byte {
	unit := 1
	if m := cs.multi(); m != nil {
		unit = m.unit
	}
	if unit == 1 {
		for len(s) > 0 && s[len(s)-1] == ' ' {
			s = s[:len(s)-1]
		}
		return s
	}
	space := cs.Space()
	for len(s) >= unit && string(s[len(s)-unit:]) == string(space) {
		s = s[:len(s)-unit]
	}
	return s
}

// Whole fills a text of a wide character set up with zero bytes at the beginning, as MySQL does with literals that are too short.
func (cs Charset) Whole(s []byte) []byte {
	unit := cs.Unit()
	missing := (unit - len(s)%unit) % unit
	if missing == 0 {
		return s
	}
	return append(make([]byte, missing, missing+len(s)), s...)
}

package types

import "unicode/utf8"

// Charset is the encoding of a string's bytes.
type Charset uint8

// The character sets. Their numbers are internal and not stored. Those of one byte a character, but for the first three, are
// numbered from charsetFirstByteSet on in the order of the embedded table; those of several bytes but for UTF-8 follow.
const (
	CharsetBinary Charset = iota // bytes; a character is a byte
	CharsetASCII
	CharsetLatin1  // MySQL's latin1: Windows code page 1252
	CharsetUTF8MB3 // UTF-8 up to U+FFFF
	CharsetUTF8MB4
	charsetFirstByteSet
)

// String returns MySQL's name.
func (cs Charset) String() string {
	if int(cs) < len(charsetInfos) {
		return charsetInfos[cs].name
	}
	return "unknown"
}

// MaxLen is the largest number of bytes of a character.
func (cs Charset) MaxLen() int {
	switch cs {
	case CharsetUTF8MB3:
		return 3
	case CharsetUTF8MB4:
		return 4
	}
	if m := cs.multi(); m != nil {
		return m.maxLen
	}
	return 1
}

// IsUTF8 reports whether all texts of the character set are UTF-8.
func (cs Charset) IsUTF8() bool {
	return cs == CharsetUTF8MB4 || cs == CharsetUTF8MB3 || cs == CharsetASCII
}

// IsUnicode reports whether the character set is a form of Unicode.
func (cs Charset) IsUnicode() bool {
	return cs == CharsetUTF8MB4 || cs == CharsetUTF8MB3 || cs.IsWide()
}

// HasASCII reports whether the bytes below 80 are the characters of ASCII.
func (cs Charset) HasASCII() bool { return int(cs) >= len(charsetInfos) || !charsetInfos[cs].foreign }

// CharLen returns how many bytes the first character of s has, 1 for a malformed one. REQUIRES: s is not empty.
func (cs Charset) CharLen(s []byte) int {
	if m := cs.multi(); m != nil {
		return m.charLen(s)
	}
	if s[0] < utf8.RuneSelf || cs.MaxLen() == 1 {
		return 1
	}
	_, n := utf8.DecodeRune(s)
	return n
}

// LastCharLen is CharLen of the last character.
func (cs Charset) LastCharLen(s []byte) int {
	if m := cs.multi(); m != nil {
		return m.lastCharLen(s)
	}
	if s[len(s)-1] < utf8.RuneSelf || cs.MaxLen() == 1 {
		return 1
	}
	_, n := utf8.DecodeLastRune(s)
	return n
}

// Count returns the number of characters in s. A malformed byte counts as one.
func (cs Charset) Count(s []byte) int {
	if cs.MaxLen() == 1 {
		return len(s)
	}
	if m := cs.multi(); m != nil {
		return m.count(s)
	}
	return utf8.RuneCount(s)
}

// Prefix returns the first n characters of s.
func (cs Charset) Prefix(s []byte, n int) []byte {
	if len(s) <= n {
		return s
	}
	if cs.MaxLen() == 1 {
		return s[:n]
	}
	if m := cs.multi(); m != nil {
		return m.prefix(s, n)
	}
	at := 0
	for ; n > 0 && at < len(s); n-- {
		if s[at] < utf8.RuneSelf {
			at++
			continue
		}
		_, size := utf8.DecodeRune(s[at:])
		at += size
	}
	return s[:at]
}

// InvalidAt returns the offset of the first byte that is malformed, or -1. Bytes to which a set of one byte a character gives no
// character are not malformed: like MySQL, columns of the set keep them.
func (cs Charset) InvalidAt(s []byte) int {
	switch cs {
	case CharsetASCII:
		for i, c := range s {
			if c >= utf8.RuneSelf {
				return i
			}
		}
	case CharsetUTF8MB3, CharsetUTF8MB4:
		if cs == CharsetUTF8MB4 && utf8.Valid(s) {
			return -1
		}
		return invalidUTF8At(s, cs.MaxLen())
	}
	if m := cs.multi(); m != nil {
		return m.invalidAt(s)
	}
	return -1
}

func invalidUTF8At(s []byte, maxLen int) int {
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(s[i:])
		if r == utf8.RuneError && size == 1 || size > maxLen {
			return i
		}
		i += size
	}
	return -1
}

// cp1252 gives the code points of the bytes 0x80 to 0x9f. As in MySQL, the five
// bytes that the code page leaves undefined stand for the C1 controls.
var cp1252 = [32]rune{
	0x20ac, 0x81, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8d, 0x017d, 0x8f,
	0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d, 0x017e, 0x0178,
}

func latin1Rune(c byte) rune {
	if c >= 0x80 && c < 0xa0 {
		return cp1252[c-0x80]
	}
	return rune(c)
}

func latin1Byte(r rune) (byte, bool) {
	if r < 0x80 || r >= 0xa0 && r <= 0xff {
		return byte(r), true
	}
	for i, c := range cp1252 {
		if c == r {
			return byte(0x80 + i), true
		}
	}
	return 0, false
}

// Convert appends s, which is in from, to dst in to. Characters that to lacks
// become '?'; bad is the offset in s of the first of them or of the first
// malformed byte, or -1.
func Convert(dst, s []byte, from, to Charset) (out []byte, bad int) {
	if from == to || from == CharsetBinary || to == CharsetBinary {
		return append(dst, s...), to.InvalidAt(s)
	}
	bad = -1
	for i := 0; i < len(s); {
		r, size := decodeRune(s[i:], from)
		ok := r >= 0
		if ok {
			dst, ok = appendRune(dst, r, to)
		}
		if !ok {
			dst, _ = appendRune(dst, '?', to)
			if bad < 0 {
				bad = i
			}
		}
		i += size
	}
	return dst, bad
}

// SameBytes reports whether all texts of one character set are the same texts as bytes of the other.
func SameBytes(from, to Charset) bool {
	return from == to || to == CharsetBinary || from == CharsetASCII && to.HasASCII() || from == CharsetUTF8MB3 && to == CharsetUTF8MB4
}

// SameASCII reports whether texts of ASCII characters alone are the same bytes in both character sets.
func SameASCII(from, to Charset) bool { return from.HasASCII() && to.HasASCII() }

// DecodeRune returns the code point and the length of the first character of s, which is not empty. The code point is -1 if there is
// none or the bytes are malformed.
func (cs Charset) DecodeRune(s []byte) (r rune, size int) { return decodeRune(s, cs) }

// decodeRune returns -1 for a malformed byte.
func decodeRune(s []byte, cs Charset) (r rune, size int) {
	switch {
	case cs >= firstMultiSet:
		return multiSets[cs-firstMultiSet].decodeFirst(s)
	case cs >= charsetFirstByteSet:
		return byteSets[cs-charsetFirstByteSet].decode(s[0]), 1
	case s[0] < utf8.RuneSelf:
		return rune(s[0]), 1
	case cs == CharsetLatin1:
		return latin1Rune(s[0]), 1
	case cs == CharsetASCII:
		return -1, 1
	}
	r, size = utf8.DecodeRune(s)
	if r == utf8.RuneError && size == 1 || size > cs.MaxLen() {
		return -1, size
	}
	return r, size
}

func appendRune(dst []byte, r rune, cs Charset) ([]byte, bool) {
	switch cs {
	case CharsetASCII:
		if r >= utf8.RuneSelf {
			return dst, false
		}
		return append(dst, byte(r)), true
	case CharsetLatin1:
		b, ok := latin1Byte(r)
		if !ok {
			return dst, false
		}
		return append(dst, b), true
	case CharsetUTF8MB3, CharsetUTF8MB4:
		if cs == CharsetUTF8MB3 && r > 0xffff {
			return dst, false
		}
		return utf8.AppendRune(dst, r), true
	}
	if m := cs.multi(); m != nil {
		return m.encode(dst, r)
	}
	b, ok := byteSets[cs-charsetFirstByteSet].encode(r)
	if !ok {
		return dst, false
	}
	return append(dst, b), true
}

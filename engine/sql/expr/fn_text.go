package expr

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/types"
)

// The string algorithms work on bytes in a character set and append their result to dst or return a part of their input.
// Positions and counts are in characters, the first character is 1.

// charLen returns the length of the first character of s in bytes, 1 for a malformed one. REQUIRES: s is not empty.
func charLen(cs types.Charset, s []byte) int {
	if s[0] < utf8.RuneSelf && cs <= types.CharsetUTF8MB4 {
		return 1
	}
	return cs.CharLen(s)
}

// lastCharLen is charLen of the last character.
func lastCharLen(cs types.Charset, s []byte) int {
	return cs.LastCharLen(s)
}

// clampInt brings a position or count of SQL into the range of int32 characters, beyond which no string reaches.
func clampInt(n int64) int { return int(min(max(n, -1<<31), 1<<31)) }

// substr is SUBSTRING(s, pos, n): a negative pos counts from the end.
func substr(cs types.Charset, s []byte, pos, n int64) []byte {
	if n <= 0 || pos == 0 {
		return nil
	}
	start := clampInt(pos) - 1
	if pos < 0 {
		start = cs.Count(s) + clampInt(pos)
	}
	if start < 0 {
		return nil
	}
	s = s[len(cs.Prefix(s, start)):]
	return cs.Prefix(s, clampInt(n))
}

// rightPart is RIGHT(s, n).
func rightPart(cs types.Charset, s []byte, n int64) []byte {
	if n <= 0 {
		return nil
	}
	return s[len(cs.Prefix(s, max(cs.Count(s)-clampInt(n), 0))):]
}

// substringIndex is SUBSTRING_INDEX: what stands before the count-th delimiter, or with a negative count after it, counted from
// the end.
func substringIndex(cs types.Charset, s, delim []byte, count int64) []byte {
	f := textFinder(cs, s)
	if count == 0 || len(delim) == 0 || len(s) == 0 {
		return nil
	}
	if count > 0 {
		at := 0
		for ; count > 0; count-- {
			i := f.index(s, delim, at)
			if i < 0 {
				return s
			}
			at = i + len(delim)
		}
		return s[:at-len(delim)]
	}
	end := len(s)
	for ; count < 0; count++ {
		i := f.lastIndex(s[:end], delim)
		if i < 0 {
			return s
		}
		end = i
	}
	return s[end+len(delim):]
}

// trimSide says which ends TRIM works on.
type trimSide uint8

const (
	trimLeading trimSide = 1 << iota
	trimTrailing
	trimBoth = trimLeading | trimTrailing
)

// trimText is TRIM([side] rem FROM s).
func trimText(cs types.Charset, s, rem []byte, side trimSide) []byte {
	if len(rem) == 0 {
		return s
	}
	f := textFinder(cs, s)
	start, end := 0, len(s)
	for side&trimLeading != 0 && bytes.HasPrefix(s[start:], rem) {
		start += len(rem)
	}
	for side&trimTrailing != 0 && bytes.HasSuffix(s[start:end], rem) && f.begins(end-len(rem)) {
		end -= len(rem)
	}
	return s[start:end]
}

// replacedLen returns the length of what appendReplaced would append.
func replacedLen(cs types.Charset, s, from, to []byte) int {
	if len(from) == 0 {
		return len(s)
	}
	if cs.FindsItself() {
		return len(s) + bytes.Count(s, from)*(len(to)-len(from))
	}
	n, f := len(s), textFinder(cs, s)
	for i := f.index(s, from, 0); i >= 0; i = f.index(s, from, i+len(from)) {
		n += len(to) - len(from)
	}
	return n
}

// appendReplaced is REPLACE: bytes are compared as they are, whatever the collation.
func appendReplaced(dst []byte, cs types.Charset, s, from, to []byte) []byte {
	if len(from) == 0 {
		return append(dst, s...)
	}
	f, at := textFinder(cs, s), 0
	for {
		i := f.index(s, from, at)
		if i < 0 {
			return append(dst, s[at:]...)
		}
		dst = append(append(dst, s[at:i]...), to...)
		at = i + len(from)
	}
}

// appendInserted is INSERT(s, pos, n, by).
func appendInserted(dst []byte, cs types.Charset, s []byte, pos, n int64, by []byte) []byte {
	count := int64(cs.Count(s))
	if pos < 1 || pos > count {
		return append(dst, s...)
	}
	if n < 0 || n > count-pos+1 {
		n = count - pos + 1
	}
	head := cs.Prefix(s, int(pos-1))
	s = s[len(head):]
	dst = append(append(dst, head...), by...)
	return append(dst, s[len(cs.Prefix(s, int(n))):]...)
}

// padPlan computes how LPAD and RPAD fill: whole pads and a part of one more. cut is the result where none is needed.
func padPlan(cs types.Charset, s []byte, n int64, pad []byte) (cut []byte, whole int, part []byte, fits bool) {
	have := int64(cs.Count(s))
	if n <= have {
		return cs.Prefix(s, int(n)), 0, nil, true
	}
	size := int64(cs.Count(pad))
	if size == 0 {
		return s, 0, nil, true
	}
	missing := n - have
	return nil, int(missing / size), cs.Prefix(pad, int(missing%size)), false
}

// paddedLen is the length of LPAD's and RPAD's result, in bytes.
func paddedLen(cs types.Charset, s []byte, n int64, pad []byte) int {
	cut, whole, part, fits := padPlan(cs, s, n, pad)
	if fits {
		return len(cut)
	}
	return len(s) + whole*len(pad) + len(part)
}

// appendPad is LPAD and, with right, RPAD; ok is false if the result would be longer than limit bytes. REQUIRES: n >= 0.
func appendPad(dst []byte, cs types.Charset, s []byte, n int64, pad []byte, right bool, limit int) (out []byte, ok bool) {
	if n > int64(limit) {
		return dst, false
	}
	cut, whole, part, fits := padPlan(cs, s, n, pad)
	if fits {
		return append(dst, cut...), true
	}
	if len(s)+whole*len(pad)+len(part) > limit {
		return dst, false
	}
	if right {
		dst = append(dst, s...)
	}
	for range whole {
		dst = append(dst, pad...)
	}
	dst = append(dst, part...)
	if !right {
		dst = append(dst, s...)
	}
	return dst, true
}

// appendRepeated is REPEAT; ok is false if the result would be longer than limit bytes.
func appendRepeated(dst, s []byte, n int64, limit int) (out []byte, ok bool) {
	if n <= 0 || len(s) == 0 {
		return dst, true
	}
	if n > int64(limit/len(s)) {
		return dst, false
	}
	for range n {
		dst = append(dst, s...)
	}
	return dst, true
}

// appendReversed is REVERSE.
func appendReversed(dst []byte, cs types.Charset, s []byte) []byte {
	if !cs.FindsItself() { // the last character is found from the first only
		dst = append(dst, s...)
		for at := len(dst); len(s) > 0; {
			n := charLen(cs, s)
			at -= n
			copy(dst[at:], s[:n])
			s = s[n:]
		}
		return dst
	}
	for len(s) > 0 {
		n := lastCharLen(cs, s)
		dst = append(dst, s[len(s)-n:]...)
		s = s[:len(s)-n]
	}
	return dst
}

// asciiLower maps the letters of ASCII.
var _, asciiLower = types.CharsetASCII.Cases()

// casesOf gives each byte's capital and small letter in a collation; beyond ASCII only if a character is a byte.
func casesOf(c types.Collation) (upper, lower *[256]byte) {
	if k, ok := c.(types.Caser); ok {
		return k.Cases()
	}
	return c.Charset().Cases()
}

// appendCased is UPPER and LOWER: character by character, by Unicode's simple mappings. Bytes have no case.
func appendCased(dst []byte, c types.Collation, s []byte, upper bool) []byte {
	cs := c.Charset()
	if cs == types.CharsetBinary {
		return append(dst, s...)
	}
	table, lower := casesOf(c)
	if !upper {
		table = lower
	}
	if cs.MaxLen() == 1 {
		for _, c := range s {
			dst = append(dst, table[c])
		}
		return dst
	}
	if !cs.FindsItself() {
		return appendCasedMulti(dst, cs, s, upper)
	}
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			dst = append(dst, table[s[i]])
			i++
			continue
		}
		r, n := utf8.DecodeRune(s[i:])
		if r == utf8.RuneError {
			dst = append(dst, s[i:i+n]...)
		} else if upper {
			dst = utf8.AppendRune(dst, unicode.ToUpper(r))
		} else {
			dst = utf8.AppendRune(dst, unicode.ToLower(r))
		}
		i += n
	}
	return dst
}

// isASCII reports whether all bytes are ASCII.
func isASCII(s []byte) bool {
	for _, c := range s {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// asciiFolds reports whether ASCII strings compare equal in the collation when they are equal but for the case of letters,
// and only then, apart from what it ignores altogether.
func asciiFolds(c types.Collation) (folds, known bool) {
	switch c.ID() {
	case types.CollationUTF8MB40900AI, types.CollationUTF8MB4Gen, types.CollationLatin1Swedish, types.CollationASCIIGeneral:
		return true, true
	case types.CollationUTF8MB4Bin, types.CollationUTF8MB40900B, types.CollationLatin1Bin, types.CollationASCIIBin,
		types.CollationBinary:
		return false, true
	}
	return false, false
}

// plainASCII reports whether s is made of printable ASCII characters, which no collation ignores.
func plainASCII(s []byte) bool {
	for _, c := range s {
		if c < ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

// locateText returns the position, from 1, of the first place at or after start where needle stands in s in the eyes of the
// collation; 0 if there is none.
func locateText(x *Context, c types.Collation, s, needle []byte, start int64) (int64, error) {
	cs := c.Charset()
	if start < 1 {
		return 0, nil
	}
	count := int64(cs.Count(s))
	if start > count+1 {
		return 0, nil
	}
	if len(needle) == 0 {
		return start, nil
	}
	skip := len(cs.Prefix(s, int(start-1)))
	rest := s[skip:]
	if folds, known := asciiFolds(c); known && (!folds || plainASCII(rest) && plainASCII(needle)) {
		at, err := -1, error(nil)
		if folds {
			at, err = indexFolded(x, rest, needle)
		} else {
			at = bytes.Index(rest, needle)
		}
		if at < 0 || err != nil {
			return 0, err
		}
		return start + int64(cs.Count(rest[:at])), nil
	}
	return locateByCollation(x, c, rest, needle, start)
}

// locateByCollation looks from each character on whether the weights of needle begin there, as MySQL 9.7 does. With collations of several levels it
// compares needle with as many bytes of s: a character of another length is never found there, even if it compares equal.
func locateByCollation(x *Context, c types.Collation, s, needle []byte, pos int64) (int64, error) {
	cs := c.Charset()
	if b, ok := c.(types.Beginner); ok {
		weighs := func(char []byte) bool { return char[0] == ' ' || len(c.AppendSortKey(nil, char)) > 0 }
		for ; len(s) > 0; pos++ {
			begins, read := b.BeginsWith(s, needle)
			if begins {
				return pos, nil
			}
			if err := x.Worked(read); err != nil {
				return 0, err
			}
			n := charLen(cs, s)
			// Behind characters without weight, up to the next that has one, it is as here: of many all would be read again.
			for far := read > 8*len(needle)+64; far && len(s) > n && !weighs(s[:n]); pos++ {
				s = s[n:]
				n = charLen(cs, s)
			}
			s = s[n:]
		}
		return 0, nil
	}
	for len(s) >= len(needle) {
		if err := x.Worked(len(needle)); err != nil {
			return 0, err
		}
		whole := len(s) == len(needle) || cs.WholeIn(s, len(needle)) == len(needle)
		if whole && c.Compare(s[:len(needle)], needle) == 0 {
			return pos, nil
		}
		s = s[charLen(cs, s):]
		pos++
	}
	return 0, nil
}

// indexFolded is bytes.Index for ASCII without regard to case.
func indexFolded(x *Context, s, needle []byte) (int, error) {
	first := asciiLower[needle[0]]
	for i := 0; i+len(needle) <= len(s); i++ {
		if asciiLower[s[i]] != first {
			continue
		}
		if equalFolded(s[i:i+len(needle)], needle) {
			return i, nil
		}
		if err := x.Worked(len(needle)); err != nil {
			return 0, err
		}
	}
	return -1, nil
}

func equalFolded(a, b []byte) bool {
	for i, c := range a {
		if asciiLower[c] != asciiLower[b[i]] {
			return false
		}
	}
	return true
}

// findInSet is FIND_IN_SET: the position of item in a list between commas, 0 if it is none of them.
func findInSet(c types.Collation, item, list []byte) int64 {
	if len(list) == 0 || bytes.IndexByte(item, ',') >= 0 {
		return 0
	}
	spaces := trailingSpaces(item)
	for n := int64(1); ; n++ {
		i := bytes.IndexByte(list, ',')
		if i < 0 {
			i = len(list)
		}
		// Trailing spaces count, whatever the collation says.
		if trailingSpaces(list[:i]) == spaces && c.Compare(list[:i], item) == 0 {
			return n
		}
		if i == len(list) {
			return 0
		}
		list = list[i+1:]
	}
}

func trailingSpaces(s []byte) int { return len(s) - len(bytes.TrimRight(s, " ")) }

// appendExportSet is EXPORT_SET: on and off for the first n bits, the lowest first.
func appendExportSet(dst []byte, bits uint64, on, off, sep []byte, n int64) []byte {
	if n < 0 || n > 64 {
		n = 64
	}
	for i := range n {
		if i > 0 {
			dst = append(dst, sep...)
		}
		if bits>>uint(i)&1 != 0 {
			dst = append(dst, on...)
		} else {
			dst = append(dst, off...)
		}
	}
	return dst
}

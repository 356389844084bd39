package expr

import (
	"bytes"
	"unicode"

	"github.com/triremedb/trireme/engine/types"
)

// A finder finds texts in a text where its characters begin. In most character sets the bytes of a text stand nowhere else; in those
// of East Asia the second byte of a character may be a letter, or the first of another one.
type finder struct {
	starts []uint64 // by byte, one bit: a character begins there; nil: all places will do
}

// textFinder is for finding in s.
func textFinder(cs types.Charset, s []byte) (f finder) {
	if cs.FindsItself() {
		return f
	}
	f.starts = make([]uint64, len(s)/64+1)
	for at := 0; at < len(s); at += charLen(cs, s[at:]) {
		f.starts[at/64] |= 1 << (at % 64)
	}
	return f
}

// begins reports whether a character begins there.
func (f finder) begins(at int) bool { return f.starts == nil || f.starts[at/64]>>(at%64)&1 != 0 }

// index returns the first place from a place on where part stands in s, or -1.
func (f finder) index(s, part []byte, from int) int {
	for from <= len(s) {
		i := bytes.Index(s[from:], part)
		if i < 0 {
			return -1
		}
		if from += i; f.begins(from) {
			return from
		}
		from++
	}
	return -1
}

// lastIndex returns the last place where part stands in s, which may be a beginning of the finder's text, or -1.
func (f finder) lastIndex(s, part []byte) int {
	for {
		i := bytes.LastIndex(s, part)
		if i < 0 || f.begins(i) {
			return i
		}
		s = s[:i+len(part)-1]
	}
}

// appendCasedMulti is appendCased for the character sets of East Asia. A character whose capital or small letter the set does not
// have stays as it is.
func appendCasedMulti(dst []byte, cs types.Charset, s []byte, upper bool) []byte {
	for len(s) > 0 {
		r, n := cs.DecodeRune(s)
		other := r
		switch {
		case r < 0:
		case upper:
			other = unicode.ToUpper(r)
		default:
			other = unicode.ToLower(r)
		}
		if other == r {
			dst = append(dst, s[:n]...)
		} else {
			dst = appendOther(dst, cs, s[:n], other)
		}
		s = s[n:]
	}
	return dst
}

// appendOther appends a code point, or if the set does not have it the character that is given.
func appendOther(dst []byte, cs types.Charset, char []byte, r rune) []byte {
	out, bad := types.Convert(dst, []byte(string(r)), types.CharsetUTF8MB4, cs)
	if bad >= 0 {
		return append(dst, char...)
	}
	return out
}

package types

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

// The key form of one index part:
//
//	[marker] body
//
// The marker is there unless the type is NOT NULL: 00 alone is NULL, 01 comes
// before a body. The body of a fixed type is its fixed encoding (with -0.0
// written as 0.0). That of a string is its sort key in the column's collation,
// escaped and ended by 00:
//
//	00 -> 01 01    01 -> 01 02    end -> 00
//
// The end sorts before every byte that may follow in a longer string, the
// escapes keep their order, so the result is ordered and self-delimiting.
// Text and weights hardly ever contain 00 or 01, so a string costs one byte more
// than its sort key, and its end is found by one memchr. The usual scheme,
// 00 -> 00 FF and an end of 00 00, costs two and a loop.
//
// With desc, every byte is inverted, marker included: NULL comes last.
const (
	keyNull    = 0x00
	keyNotNull = 0x01
	keyEnd     = 0x00
	keyEscape  = 0x01
)

// ErrLossyKey is returned by [DecodeKey] for types whose key form does not
// determine the value.
var ErrLossyKey = errors.New("types: key form is lossy")

// AppendKey appends the key form of v as one part of an index on a column of
// type t. prefixLen, if positive, limits strings to their first prefixLen
// characters, or bytes for BINARY and BLOB kinds. It does not allocate beyond
// growing dst. REQUIRES: v is a valid value of t or, unless t.NotNull, NULL.
func AppendKey(dst []byte, v Value, t *Type, desc bool, prefixLen int) []byte {
	start := len(dst)
	if v.class == ClassNull {
		if t.NotNull {
			panic("types: NULL in the key of a NOT NULL column")
		}
		dst = append(dst, keyNull)
	} else {
		if !t.NotNull {
			dst = append(dst, keyNotNull)
		}
		dst = appendKeyBody(dst, v, t, prefixLen)
	}
	if desc {
		invert(dst[start:])
	}
	return dst
}

// headed is a collation that can tell the first weights of a string without the others.
type headed interface {
	// AppendSortKeyHead appends the first bytes of the sort key of s: n of them or a few more. Fewer
	// than n tell nothing of whether there are more.
	AppendSortKeyHead(dst, s []byte, n int) []byte
}

// AppendKeyHead appends what AppendKey appends without a limit of characters, or, of a long string, only
// its first bytes: more than n of them. whole says that it is all.
func AppendKeyHead(dst []byte, v Value, t *Type, desc bool, n int) (key []byte, whole bool) {
	if v.class != ClassBytes || t.Kind == KindBinary || len(v.Bytes()) <= n {
		return AppendKey(dst, v, t, desc, 0), true
	}
	start := len(dst)
	if !t.NotNull {
		dst = append(dst, keyNotNull)
	}
	body, c := len(dst), CollationByID(t.Collation)
	if !t.IsText() || c.Lossless() {
		dst = append(dst, v.Bytes()[:n+1]...)
	} else if c, ok := c.(headed); ok {
		dst = c.AppendSortKeyHead(dst, v.Bytes(), n+1)
	}
	if len(dst)-body <= n {
		return AppendKey(dst[:start], v, t, desc, 0), true
	}
	dst = escape(dst, body)
	dst = dst[:len(dst)-1] // the end is elsewhere
	if desc {
		invert(dst[start:])
	}
	return dst, false
}

func appendKeyBody(dst []byte, v Value, t *Type, prefixLen int) []byte {
	switch v.class {
	case ClassBytes:
		s := v.Bytes()
		if t.Kind == KindBinary {
			return append(dst, s[:min(len(s), keyBytes(t, prefixLen))]...)
		}
		start := len(dst)
		if t.IsText() {
			c := CollationByID(t.Collation)
			if prefixLen > 0 {
				s = c.Charset().Prefix(s, prefixLen)
			}
			dst = c.AppendSortKey(dst, s)
		} else {
			if prefixLen > 0 && len(s) > prefixLen {
				s = s[:prefixLen]
			}
			dst = append(dst, s...)
		}
		return escape(dst, start)
	case ClassJSON:
		start := len(dst)
		if jsonCodec != nil {
			return escape(jsonCodec.AppendSortKey(dst, v.Bytes()), start)
		}
		return escape(append(dst, v.Bytes()...), start)
	case ClassDouble:
		if v.Double() == 0 {
			v.a = 0
		}
	case ClassFloat:
		if v.Float() == 0 {
			v.a = 0
		}
	}
	return appendFixed(dst, v, t)
}

// keyBytes is the length of the key body of a BINARY column.
func keyBytes(t *Type, prefixLen int) int {
	if prefixLen > 0 {
		return min(prefixLen, int(t.Length))
	}
	return int(t.Length)
}

// escape escapes dst[start:] in place and ends it.
func escape(dst []byte, start int) []byte {
	n := countEscaped(dst[start:])
	if n == 0 {
		return append(dst, keyEnd)
	}
	from := len(dst)
	for range n + 1 {
		dst = append(dst, keyEnd)
	}
	for to := len(dst) - 1; n > 0; {
		from--
		to--
		c := dst[from]
		if c <= keyEscape {
			dst[to] = c + 1
			to--
			c = keyEscape
			n--
		}
		dst[to] = c
	}
	return dst
}

// countEscaped counts the bytes that are 00 or 01, eight at a time.
func countEscaped(s []byte) (n int) {
	const low = 0x7f7f7f7f7f7f7f7f
	for ; len(s) >= 8; s = s[8:] {
		x := binary.LittleEndian.Uint64(s) &^ 0x0101010101010101
		n += bits.OnesCount64(^((x&low + low) | x | low)) // the top bit of each byte of x that is 0
	}
	for _, c := range s {
		if c <= keyEscape {
			n++
		}
	}
	return n
}

func invert(b []byte) {
	for i := range b {
		b[i] = ^b[i]
	}
}

// KeyLossless reports whether [DecodeKey] gives back the value. It does not for
// FLOAT and DOUBLE (-0.0 equals 0.0), for text whose collation is lossy, for
// JSON, and for strings of which the part indexes only a prefix. Where it does
// not, an index that must give the column back stores its bytes as well.
func KeyLossless(t *Type, prefixLen int) bool {
	switch {
	case t.Kind == KindFloat || t.Kind == KindDouble || t.Kind == KindJSON:
		return false
	case t.IsText():
		c := CollationByID(t.Collation)
		return c != nil && c.Lossless() && (prefixLen == 0 || !t.IsLong() && prefixLen >= int(t.Length))
	case t.IsBlob():
		return prefixLen == 0 || !t.IsLong() && prefixLen >= int(t.Length)
	}
	return true
}

// MaxKeyLen bounds the length of the key form. It is math.MaxInt for JSON and
// for TEXT and BLOB kinds without prefixLen.
func MaxKeyLen(t *Type, prefixLen int) int {
	marker := 1
	if t.NotNull {
		marker = 0
	}
	if t.Kind == KindBinary {
		return marker + keyBytes(t, prefixLen)
	}
	if size, ok := FixedSize(t); ok {
		return marker + size
	}
	if t.IsLong() && (prefixLen == 0 || t.Kind == KindJSON) {
		return math.MaxInt
	}
	n := int(t.Length)
	if prefixLen > 0 && (t.IsLong() || prefixLen < n) {
		n = prefixLen
	}
	if t.IsText() {
		c := CollationByID(t.Collation)
		n = c.MaxKeyLen(n * c.Charset().MaxLen())
	}
	return marker + 2*n + 1
}

// SkipKey returns the length of the key part that key begins with. The error is
// a [CorruptError].
func SkipKey(key []byte, t *Type, desc bool, prefixLen int) (int, error) {
	mask := byte(0)
	if desc {
		mask = 0xff
	}
	at := 0
	if !t.NotNull {
		if len(key) == 0 {
			return 0, errShortKey
		}
		switch key[0] ^ mask {
		case keyNull:
			return 1, nil
		case keyNotNull:
			at = 1
		default:
			return 0, errBadMarker
		}
	}
	size, fixed := FixedSize(t)
	if fixed {
		if t.Kind == KindBinary {
			size = keyBytes(t, prefixLen)
		}
		if len(key)-at < size {
			return 0, errShortKey
		}
		return at + size, nil
	}
	end := bytes.IndexByte(key[at:], keyEnd^mask)
	if end < 0 {
		return 0, errShortKey
	}
	return at + end + 1, nil
}

var (
	errShortKey  = &CorruptError{What: "key", Reason: "too short"}
	errBadMarker = &CorruptError{What: "key", Reason: "bad NULL marker"}
	errBadEscape = &CorruptError{What: "key", Reason: "bad escape"}
)

// DecodeKey reads the part that key begins with and returns the rest. Strings
// alias key or arena, to which it appends what had to be rewritten. Errors are
// [ErrLossyKey] or a [CorruptError].
func DecodeKey(key []byte, t *Type, desc bool, prefixLen int, arena []byte) (v Value, rest, arenaOut []byte, err error) {
	if !KeyLossless(t, prefixLen) {
		return Null, key, arena, ErrLossyKey
	}
	n, err := SkipKey(key, t, desc, prefixLen)
	if err != nil {
		return Null, key, arena, err
	}
	body, rest := key[:n], key[n:]
	if !t.NotNull {
		if body = body[1:]; len(body) == 0 && n == 1 && isNullMarker(key[0], desc) {
			return Null, rest, arena, nil
		}
	}
	if _, fixed := FixedSize(t); !fixed {
		v, arena, err = unescape(body[:len(body)-1], desc, arena)
		return v, rest, arena, err
	}
	switch {
	case t.Kind == KindBinary && !desc:
		return NewBytes(body), rest, arena, nil
	case t.Kind == KindBinary:
		start := len(arena)
		arena = append(arena, body...)
		invert(arena[start:])
		return NewBytes(arena[start:]), rest, arena, nil
	case !desc:
		v, err = decodeFixed(body, t)
		return v, rest, arena, err
	}
	var buf [maxFixed]byte
	b := buf[:copy(buf[:], body)]
	invert(b)
	v, err = decodeFixed(b, t)
	return v, rest, arena, err
}

func isNullMarker(b byte, desc bool) bool { return b == keyNull && !desc || b == 0xff && desc }

// unescape undoes escape; body is without the end.
func unescape(body []byte, desc bool, arena []byte) (Value, []byte, error) {
	if !desc && bytes.IndexByte(body, keyEscape) < 0 {
		return NewBytes(body), arena, nil
	}
	mask := byte(0)
	if desc {
		mask = 0xff
	}
	start := len(arena)
	for i := 0; i < len(body); i++ {
		c := body[i] ^ mask
		if c == keyEscape {
			if i++; i == len(body) {
				return Null, arena, errBadEscape
			}
			if c = body[i] ^ mask; c != keyEscape && c != keyEscape+1 {
				return Null, arena, errBadEscape
			}
			c--
		}
		arena = append(arena, c)
	}
	return NewBytes(arena[start:]), arena, nil
}

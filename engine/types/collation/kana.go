package collation

import (
	"cmp"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/types"
)

// kanaSensitive is utf8mb4_ja_0900_as_cs_ks: on a fourth level, Hiragana is less than Katakana. Its sort key is that
// of the three levels, with all their separators, and the weights of kana.
type kanaSensitive struct{ language }

// kanaWeight is a character's weight on the fourth level: 2 for Hiragana, 8 for Katakana, 0 for others.
func kanaWeight(r rune) uint8 {
	switch {
	case r >= 0x3041 && r <= 0x3096, r == 0x309d, r == 0x309e:
		return 2
	case r >= 0x30a1 && r <= 0x30fa, r >= 0x30fc && r <= 0x30fe, r >= 0xff66 && r <= 0xff9d:
		return 8
	}
	return 0
}

func (c kanaSensitive) MaxKeyLen(n int) int { return c.language.MaxKeyLen(n) + n + 5 }

func (c kanaSensitive) AppendSortKey(dst, s []byte) []byte {
	dst = c.whole(dst, s)
	kana := kanaScanner(s)
	for w := kana.next(); w != 0; w = kana.next() {
		dst = append(dst, w)
	}
	return dst
}

// whole is the sort key of three levels with all separators and an end.
func (c kanaSensitive) whole(dst, s []byte) []byte {
	sc := c.t.scan(s)
	for p := sc.nextPrimary(); p != 0; p = sc.nextPrimary() {
		dst = append(dst, byte(p>>8), byte(p))
	}
	dst, _ = c.appendLower(append(dst, 0, 0), s, uca.commonSecondary, levelSecondary)
	dst, _ = c.appendLower(append(dst, 0), s, commonTertiary, levelTertiary)
	return append(dst, 0)
}

func (c kanaSensitive) Compare(a, b []byte) int {
	if r := c.language.Compare(a, b); r != 0 {
		return r
	}
	x, y := kanaScanner(a), kanaScanner(b)
	for {
		p, q := x.next(), y.next()
		if p != q {
			return cmp.Compare(p, q)
		}
		if p == 0 {
			return 0
		}
	}
}

// kanaScanner yields the weights of the fourth level, 0 at the end.
type kanaScanner []byte

func (s *kanaScanner) next() uint8 {
	for len(*s) > 0 {
		r, size := utf8.DecodeRune(*s)
		*s = (*s)[size:]
		if w := kanaWeight(r); w != 0 {
			return w
		}
	}
	return 0
}

func (c kanaSensitive) Hash(seed uint64, s []byte) uint64 {
	h := hasher{h: c.language.Hash(seed, s)}
	kana := kanaScanner(s)
	for w := kana.next(); w != 0; w = kana.next() {
		h.add(uint16(w))
	}
	return h.sum()
}

var _ types.Collation = kanaSensitive{}

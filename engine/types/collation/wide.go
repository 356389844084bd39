package collation

import (
	"strings"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/types"
)

// wide is a collation of ucs2, utf16, utf16le or utf32, or gb18030_unicode_520_ci: that of UTF-8 with the same order, to which texts are converted first.
type wide struct {
	meta
	of types.Collation
}

// wideStack is how long a text in UTF-8 is that is weighed without memory from the heap.
const wideStack = 256

// appendUTF8 appends s in UTF-8. A byte that is part of no character becomes three that are none in UTF-8 either, and keep their
// order.
func (c wide) appendUTF8(dst, s []byte) []byte {
	for len(s) > 0 {
		r, n := c.charset.DecodeRune(s)
		if r >= 0 {
			dst = utf8.AppendRune(dst, r)
		} else {
			for _, b := range s[:n] {
				dst = append(dst, 0xF8|b>>5, 0xF8|b>>2&7, 0xFC|b&3)
			}
		}
		s = s[n:]
	}
	return dst
}

// The methods name the kinds that there are: behind an interface, the memory of texts would not be that of the stack.

func (c wide) Compare(a, b []byte) int {
	var p, q [wideStack]byte
	x, y := c.appendUTF8(p[:0], a), c.appendUTF8(q[:0], b)
	switch of := c.of.(type) {
	case general:
		return of.Compare(x, y)
	case padBytes:
		return of.Compare(x, y)
	}
	return c.of.(earlier).Compare(x, y)
}

func (c wide) AppendSortKey(dst, s []byte) []byte {
	var p [wideStack]byte
	x := c.appendUTF8(p[:0], s)
	switch of := c.of.(type) {
	case general:
		return of.AppendSortKey(dst, x)
	case padBytes:
		return of.AppendSortKey(dst, x)
	}
	return c.of.(earlier).AppendSortKey(dst, x)
}

func (c wide) Hash(seed uint64, s []byte) uint64 {
	var p [wideStack]byte
	x := c.appendUTF8(p[:0], s)
	switch of := c.of.(type) {
	case general:
		return of.Hash(seed, x)
	case padBytes:
		return of.Hash(seed, x)
	}
	return c.of.(earlier).Hash(seed, x)
}

func (c wide) PadSpace() bool      { return c.of.PadSpace() }
func (c wide) Lossless() bool      { return false }
func (c wide) MaxKeyLen(n int) int { return c.of.MaxKeyLen(3 * n) }

// InUTF8 implements [types.Recoded].
func (c wide) InUTF8() types.Collation { return c.of }

// wideCollations are given those of UTF-8.
func wideCollations(all []types.Collation) (out []types.Collation) {
	named := map[string]types.Collation{}
	for _, c := range all {
		named[c.Name()] = c
	}
	add := func(id types.CollationID, set, rest string) {
		of := named["utf8mb4_"+rest]
		if of == nil {
			of = named["utf8mb3_"+rest]
		}
		cs, _ := types.CharsetByName(set)
		out = append(out, wide{meta{id, set + "_" + rest, cs}, of})
	}
	for _, set := range strings.Fields("ucs2 utf16 utf16le utf32") {
		cs, _ := types.CharsetByName(set)
		add(cs.DefaultCollation(), set, "general_ci")
		add(cs.BinaryCollation(), set, "bin")
	}
	add(159, "ucs2", "general_mysql500_ci")
	for i, l := range earlierLanguages {
		for set, first := range map[string]int{"utf16": 101, "ucs2": 128, "utf32": 160} {
			add(types.CollationID(first+i), set, l.name+"_ci")
		}
	}
	return out
}

var _ types.Recoded = wide{}

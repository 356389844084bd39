package collation

import (
	"cmp"
	_ "embed"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/types"
)

//go:embed languages.bin
var languagesFile string

// languageCollations are utf8mb4_*_0900_ai_ci and .._as_cs of the languages, and utf8mb4_0900_as_ci.
var languageCollations = makeLanguageCollations()

func makeLanguageCollations() []types.Collation {
	name := func(id uint16, name string) meta { return meta{types.CollationID(id), name, types.CharsetUTF8MB4} }
	all := []types.Collation{language{name(305, "utf8mb4_0900_as_ci"), noTailoring, 2}}
	for _, t := range loadTailorings([]byte(languagesFile)) {
		cs := language{name(t.ids[1], "utf8mb4_"+t.name+"_0900_as_cs"), t, 3}
		all = append(all, cs)
		if t.ids[0] != 0 {
			all = append(all, languageAI{language{name(t.ids[0], "utf8mb4_"+t.name+"_0900_ai_ci"), t, 1}})
		}
		if t.name == "ja" {
			cs.id, cs.name = 304, cs.name+"_ks"
			all = append(all, kanaSensitive{cs})
		}
	}
	return all
}

// sortEntries sorts by first characters, of which longer sequences come first.
func sortEntries(entries []tailored) {
	slices.SortFunc(entries, func(a, b tailored) int {
		x, y := []rune(a.text), []rune(b.text)
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		if len(x) != len(y) {
			return cmp.Compare(len(y), len(x))
		}
		return strings.Compare(a.text, b.text)
	})
}

// language is the collation of a language with two or three levels of weights, NO PAD. The form of its sort keys is that of ucaCS.
type language struct {
	meta
	t      *tailoring
	levels int
}

func (c language) Lossless() bool { return false }
func (c language) PadSpace() bool { return false }

// lowerLevels are the levels by their numbers.
var lowerLevels = [...]lowerLevel{1: levelSecondary, 2: levelTertiary}

// MaxKeyLen: like one of the default table, a language's character has no more than two elements for each of its bytes.
func (c language) MaxKeyLen(n int) int {
	elements := maxElements(n)
	if c.t.after[1] != 0 {
		elements *= 2
	}
	if c.levels == 1 {
		return elements * 2
	}
	return elements*4 + 3
}

// Contracts implements [types.Contractor].
func (c language) Contracts() bool { return c.t.letters }

// common is the length of a common prefix of a and b behind which both can be weighed afresh.
func (c language) common(a, b []byte) int {
	if c.t.joins {
		return 0
	}
	return commonRunes(a, b)
}

func (c language) Compare(a, b []byte) int {
	at := c.common(a, b)
	a, b = a[at:], b[at:]
	x, y := c.t.scan(a), c.t.scan(b)
	for {
		p, q := x.nextPrimary(), y.nextPrimary()
		if p != q {
			return cmp.Compare(p, q)
		}
		if p == 0 {
			break
		}
	}
	for level := 1; level < c.levels; level++ {
		x, y := c.t.scan(a), c.t.scan(b)
		for {
			p, q := x.nextLower(lowerLevels[level]), y.nextLower(lowerLevels[level])
			if p != q {
				return cmp.Compare(p, q)
			}
			if p == 0 {
				break
			}
		}
	}
	return 0
}

func (c language) AppendSortKey(dst, s []byte) []byte {
	sc := c.t.scan(s)
	for p := sc.nextPrimary(); p != 0; p = sc.nextPrimary() {
		dst = binary.BigEndian.AppendUint16(dst, p)
	}
	if c.levels == 1 {
		return dst
	}
	end := len(dst)
	common := uca.commonSecondary
	if c.t.lift != 0 {
		common = 0 // which is not the least
	}
	dst, accents := c.appendLower(append(dst, 0, 0), s, common, levelSecondary)
	if c.levels == 2 {
		if accents {
			return dst
		}
		return dst[:end]
	}
	last := len(dst)
	common = commonTertiary
	if c.t.capital != nil {
		common = 0 // which of capitals is less
	}
	dst, cases := c.appendLower(append(dst, 0), s, common, levelTertiary)
	switch {
	case cases:
		return dst
	case accents:
		return dst[:last]
	}
	return dst[:end]
}

// appendLower is the function appendLower for the language.
func (c language) appendLower(dst, s []byte, common uint8, level lowerLevel) (out []byte, some bool) {
	sc := c.t.scan(s)
	keep := len(dst)
	for w := sc.nextLower(level); w != 0; w = sc.nextLower(level) {
		dst = append(dst, w)
		if w != common {
			keep, some = len(dst), true
		}
	}
	return dst[:keep], some
}

func (c language) Hash(seed uint64, s []byte) uint64 {
	var h [3]hasher
	for i := range h {
		h[i].h = seed + uint64(i)
	}
	sc := c.t.scan(s)
	for e, ok := sc.next(); ok; e, ok = sc.next() {
		if p := e.primary(); p != 0 {
			h[0].add(p)
		}
		if w := e.secondary(); w != 0 && c.levels > 1 {
			h[1].add(uint16(w))
		}
		if w := uint8(e); w != 0 && c.levels > 2 {
			h[2].add(uint16(w))
		}
	}
	sum := h[0].sum()
	for i := range h[1:c.levels] {
		sum = types.HashUint64(sum, h[1+i].sum())
	}
	return sum
}

// languageAI is the collation of a language with primary weights alone.
type languageAI struct{ language }

// OneLevel implements [types.OneLevel].
func (c languageAI) OneLevel() bool { return !c.t.joins }

// BeginsWith implements [types.Beginner].
func (c languageAI) BeginsWith(s, head []byte) (begins bool, read int) {
	x, y := c.t.scan(s), c.t.scan(head)
	for {
		q := y.nextPrimary()
		if q == 0 {
			return true, x.at
		}
		if x.nextPrimary() != q {
			return false, x.at
		}
	}
}

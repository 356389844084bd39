package pattern

import (
	"slices"
	"sync"
	"unicode"
)

// foldRune returns the character that stands for all that differ from r only in case, one for one.
func foldRune(r rune) rune {
	if r < 0x80 {
		if r >= 'a' && r <= 'z' {
			r -= 'a' - 'A'
		}
		return r
	}
	if first, ok := sameFold[r]; ok {
		return first
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

// sameFold are characters that fold to one text of several characters, and so are alike, with what stands for both.
var sameFold = map[rune]rune{0x1fd3: 0x0390, 0x1fe3: 0x03b0, 0xfb06: 0xfb05, 0x0390: 0x0390, 0x03b0: 0x03b0, 0xfb05: 0xfb05}

// appendFold appends the full case folding of r.
func appendFold(dst []rune, r rune) []rune {
	if r >= 0x80 {
		if long, ok := longFolds[r]; ok {
			for _, c := range long {
				dst = append(dst, foldRune(c))
			}
			return dst
		}
	}
	return append(dst, foldRune(r))
}

// foldsLong reports whether r folds to more than one character.
func foldsLong(r rune) bool { return r >= 0x80 && longFolds[r] != "" }

// hasLongFold reports whether a folded text has in it what a single character folds to.
func hasLongFold(folded []rune) bool {
	for i := range folded {
		for _, long := range foldedLongs() {
			if len(folded)-i >= len(long) && slices.Equal(folded[i:i+len(long)], long) {
				return true
			}
		}
	}
	return false
}

// foldedLongs are the texts of several characters to which characters fold.
var foldedLongs = sync.OnceValue(func() [][]rune {
	var all [][]rune
	for r := range longFolds {
		all = append(all, appendFold(nil, r))
	}
	slices.SortFunc(all, slices.Compare)
	return slices.CompactFunc(all, slices.Equal)
})

// cased are the characters that have others which differ only in case, in order.
var cased = sync.OnceValue(func() []rune {
	var all []rune
	for r := rune(0); r <= maxCased; r++ {
		if unicode.SimpleFold(r) != r {
			all = append(all, r)
		} else if _, ok := sameFold[r]; ok {
			all = append(all, r)
		}
	}
	return all
})

// maxCased is beyond which character none has a case.
const maxCased = 0x1ffff

// closeOver adds to a set all that differ from its members only in case.
func (s *Set) closeOver() *Set {
	out := newSet(s.ranges...)
	all := cased()
	for i := 0; i+1 < len(s.ranges); i += 2 {
		low, high := s.ranges[i], s.ranges[i+1]
		at, _ := slices.BinarySearch(all, low)
		for ; at < len(all) && all[at] <= high; at++ {
			r := all[at]
			for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
				out.addRange(next, next)
			}
			if first, ok := sameFold[r]; ok {
				for other, f := range sameFold {
					if f == first {
						out.addRange(other, other)
					}
				}
			}
		}
	}
	return out.done()
}

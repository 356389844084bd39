package pattern

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// A Set is a set of characters: pairs of first and last, in order, that neither overlap nor touch once it is done.
type Set struct {
	ranges []rune
	ascii  [2]uint64 // of the members below 0x80
	text   string    // of a class with a name: what it is within brackets in the syntax of package regexp
}

func newSet(ranges ...rune) *Set { return &Set{ranges: slices.Clone(ranges)} }

// addRange adds characters to a set that is not done.
func (s *Set) addRange(low, high rune) { s.ranges = append(s.ranges, low, high) }

func (s *Set) addSet(o *Set) { s.ranges = append(s.ranges, o.ranges...) }

// done puts the ranges in order. Nothing is added to the set any more.
func (s *Set) done() *Set {
	type pair struct{ low, high rune }
	pairs := make([]pair, 0, len(s.ranges)/2)
	sorted := true
	for i := 0; i+1 < len(s.ranges); i += 2 {
		p := pair{s.ranges[i], s.ranges[i+1]}
		sorted = sorted && (i == 0 || p.low > pairs[i/2-1].high+1)
		pairs = append(pairs, p)
	}
	if !sorted {
		slices.SortFunc(pairs, func(a, b pair) int { return int(a.low - b.low) })
		s.ranges = s.ranges[:0]
		for _, p := range pairs {
			if n := len(s.ranges); n > 0 && p.low <= s.ranges[n-1]+1 {
				s.ranges[n-1] = max(s.ranges[n-1], p.high)
			} else {
				s.ranges = append(s.ranges, p.low, p.high)
			}
		}
	}
	s.ascii = [2]uint64{}
	for i := 0; i+1 < len(s.ranges) && s.ranges[i] < utf8.RuneSelf; i += 2 {
		for r := s.ranges[i]; r <= min(s.ranges[i+1], utf8.RuneSelf-1); r++ {
			s.ascii[r>>6] |= 1 << (r & 63)
		}
	}
	return s
}

// has reports whether a character is in a set that is done.
func (s *Set) has(r rune) bool {
	if r < utf8.RuneSelf {
		return s.ascii[r>>6]>>(r&63)&1 != 0
	}
	low, high := 0, len(s.ranges)/2
	for low < high {
		mid := (low + high) / 2
		switch {
		case r < s.ranges[2*mid]:
			high = mid
		case r > s.ranges[2*mid+1]:
			low = mid + 1
		default:
			return true
		}
	}
	return false
}

func (s *Set) negated() *Set {
	out := &Set{}
	next := rune(0)
	for i := 0; i+1 < len(s.ranges); i += 2 {
		if s.ranges[i] > next {
			out.addRange(next, s.ranges[i]-1)
		}
		next = s.ranges[i+1] + 1
	}
	if next <= unicode.MaxRune {
		out.addRange(next, unicode.MaxRune)
	}
	return out.done()
}

func (s *Set) without(o *Set) *Set { return s.intersected(o.negated()) }

func (s *Set) intersected(o *Set) *Set {
	out := &Set{}
	for i, j := 0, 0; i < len(s.ranges) && j < len(o.ranges); {
		low, high := max(s.ranges[i], o.ranges[j]), min(s.ranges[i+1], o.ranges[j+1])
		if low <= high {
			out.addRange(low, high)
		}
		if s.ranges[i+1] < o.ranges[j+1] {
			i += 2
		} else {
			j += 2
		}
	}
	return out.done()
}

// setOfTables is the set of what is in any of some tables of package unicode.
func setOfTables(tables ...*unicode.RangeTable) *Set {
	out := &Set{}
	for _, t := range tables {
		for _, r := range t.R16 {
			out.addStrided(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			out.addStrided(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return out.done()
}

func (s *Set) addStrided(low, high, stride rune) {
	if stride == 1 {
		s.addRange(low, high)
		return
	}
	for r := low; r <= high; r += stride {
		s.addRange(r, r)
	}
}

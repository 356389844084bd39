package expr

import (
	"math"

	"github.com/triremedb/trireme/engine/types"
)

// extremes is MIN and MAX: the best value of each group. Strings are kept in memory of
// their own, which is used again for values that fit.
type extremes struct {
	max   bool
	t     *types.Type
	words bool // values compare as their 64-bit words
	best  []types.Value
	own   [][]byte // of strings
	bytes int64
}

func newExtremes(a *Aggregate) States {
	s := &extremes{max: a.name == "max", t: a.args[0].Type()}
	switch s.t.Class() {
	case types.ClassInt, types.ClassDate, types.ClassDateTime, types.ClassTimestamp, types.ClassTime:
		s.words = true
	}
	return s
}

func (s *extremes) Grow(n int) {
	s.best = extendStates(s.best, n)
	if s.ownsBytes() {
		s.own = extendStates(s.own, n)
	}
}

func (s *extremes) ownsBytes() bool {
	return s.t.Class() == types.ClassBytes || s.t.Class() == types.ClassJSON
}

func (s *extremes) MemoryBytes() int64 { return int64(32*cap(s.best)+24*cap(s.own)) + s.bytes }

func (s *extremes) Reset() {
	s.best, s.bytes = s.best[:0], 0
	clear(s.own)
	s.own = s.own[:0]
}

func (s *extremes) Update(_ *Context, groups []uint32, n int, in []*types.Vector) error {
	v := in[0]
	switch {
	case n == 0:
		return nil
	case groups == nil && !v.HasNulls() && (s.words || v.IsShortDecimal()):
		s.keep(0, v.Value(bestWord(v.Int64s()[:n], s.max)))
		return nil
	case s.words && groups != nil && !v.HasNulls():
		s.updateWords(v, groups[:n])
		return nil
	}
	for i := range n {
		if !v.IsNull(i) {
			s.keep(groupAt(groups, i), v.Value(i))
		}
	}
	return nil
}

// updateWords is Update for values that compare as words.
func (s *extremes) updateWords(v *types.Vector, groups []uint32) {
	words := v.Int64s()
	for i, g := range groups {
		if old := &s.best[g]; old.IsNull() || words[i] != old.Int() && words[i] > old.Int() == s.max {
			*old = v.Value(i)
		}
	}
}

// bestWord returns the place of the least or greatest word.
func bestWord(words []int64, most bool) int {
	best := 0
	for i, w := range words {
		if most && w > words[best] || !most && w < words[best] {
			best = i
		}
	}
	return best
}

// keep takes a value if it is better than the group's.
func (s *extremes) keep(g uint32, v types.Value) {
	old := s.best[g]
	if !old.IsNull() {
		var order int
		if s.words {
			a, b := v.Int(), old.Int()
			switch {
			case a < b:
				order = -1
			case a > b:
				order = 1
			}
		} else {
			order = types.Compare(v, old, s.t)
		}
		if order == 0 || (order > 0) != s.max {
			return
		}
	}
	if !s.ownsBytes() {
		s.best[g] = v.Clone()
		return
	}
	was := cap(s.own[g])
	s.best[g], s.own[g] = v.CloneInto(s.own[g][:0])
	s.bytes += int64(cap(s.own[g]) - was)
}

func (s *extremes) Merge(_ *Context, groups []uint32, other States) error {
	for i, v := range other.(*extremes).best {
		if !v.IsNull() {
			s.keep(groups[i], v)
		}
	}
	return nil
}

func (s *extremes) Append(_ *Context, out *types.Vector, from, to int) error {
	for _, v := range s.best[from:to] {
		out.Append(v)
	}
	return nil
}

// firsts is ANY_VALUE: the first row's value.
type firsts struct {
	seen  []bool
	value []types.Value
	bytes int64
}

func newFirst(*Aggregate) States { return &firsts{} }

func (s *firsts) Grow(n int) {
	s.seen, s.value = extendStates(s.seen, n), extendStates(s.value, n)
}

func (s *firsts) MemoryBytes() int64 { return int64(cap(s.seen)+32*cap(s.value)) + s.bytes }

func (s *firsts) Reset() {
	clear(s.value)
	s.seen, s.value, s.bytes = s.seen[:0], s.value[:0], 0
}

func (s *firsts) Update(_ *Context, groups []uint32, n int, in []*types.Vector) error {
	for i := range n {
		if g := groupAt(groups, i); !s.seen[g] {
			s.take(g, in[0].Value(i))
		}
	}
	return nil
}

func (s *firsts) take(g uint32, v types.Value) {
	s.seen[g], s.value[g] = true, v.Clone()
	s.bytes += int64(len(v.Bytes()))
}

func (s *firsts) Merge(_ *Context, groups []uint32, other States) error {
	o := other.(*firsts)
	for i, v := range o.value {
		if o.seen[i] && !s.seen[groups[i]] {
			s.take(groups[i], v)
		}
	}
	return nil
}

func (s *firsts) Append(_ *Context, out *types.Vector, from, to int) error {
	for _, v := range s.value[from:to] {
		out.Append(v)
	}
	return nil
}

// bitSets is BIT_AND, BIT_OR and BIT_XOR.
type bitSets struct {
	name string
	bits []uint64 // of BIT_AND: complemented, so that all begin with zero
}

func newBits(a *Aggregate) States { return &bitSets{name: a.name} }

func (s *bitSets) Grow(n int)         { s.bits = extendStates(s.bits, n) }
func (s *bitSets) MemoryBytes() int64 { return int64(8 * cap(s.bits)) }
func (s *bitSets) Reset()             { s.bits = s.bits[:0] }

func (s *bitSets) Update(_ *Context, groups []uint32, n int, in []*types.Vector) error {
	v := in[0]
	for i := range n {
		if !v.IsNull(i) {
			s.add(groupAt(groups, i), uint64(integerAt(v, i)))
		}
	}
	return nil
}

func (s *bitSets) add(g uint32, u uint64) {
	switch s.name {
	case "bit_and":
		s.bits[g] |= ^u
	case "bit_or":
		s.bits[g] |= u
	default:
		s.bits[g] ^= u
	}
}

func (s *bitSets) Merge(_ *Context, groups []uint32, other States) error {
	for i, u := range other.(*bitSets).bits {
		if s.name == "bit_and" {
			u = ^u
		}
		s.add(groups[i], u)
	}
	return nil
}

func (s *bitSets) Append(_ *Context, out *types.Vector, from, to int) error {
	for _, u := range s.bits[from:to] {
		if s.name == "bit_and" {
			u = ^u
		}
		out.AppendUint64(u)
	}
	return nil
}

// variances is the family of STD and VARIANCE, by Welford's method, whose states can
// be merged.
type variances struct {
	a            *Aggregate
	sample, root bool
	state        []moments
}

type moments struct {
	n    int64
	mean float64
	m2   float64 // sum of squared distances from the mean
}

func newVariances(a *Aggregate) States {
	s := &variances{a: a}
	switch a.name {
	case "std", "stddev", "stddev_pop":
		s.root = true
	case "stddev_samp":
		s.root, s.sample = true, true
	case "var_samp":
		s.sample = true
	}
	return s
}

func (s *variances) Grow(n int)         { s.state = extendStates(s.state, n) }
func (s *variances) MemoryBytes() int64 { return int64(24 * cap(s.state)) }
func (s *variances) Reset()             { s.state = s.state[:0] }

func (s *variances) Update(_ *Context, groups []uint32, n int, in []*types.Vector) error {
	v := in[0]
	for i, f := range v.Float64s()[:n] {
		if !v.IsNull(i) {
			s.state[groupAt(groups, i)].add(f)
		}
	}
	return nil
}

func (e *moments) add(f float64) {
	e.n++
	delta := f - e.mean
	e.mean += delta / float64(e.n)
	e.m2 += delta * (f - e.mean)
}

// merge adds what o has seen.
func (e *moments) merge(o moments) {
	if o.n == 0 {
		return
	}
	n := e.n + o.n
	delta := o.mean - e.mean
	e.m2 += o.m2 + delta*delta*float64(e.n)*float64(o.n)/float64(n)
	e.mean += delta * float64(o.n) / float64(n)
	e.n = n
}

func (s *variances) Merge(_ *Context, groups []uint32, other States) error {
	for i, o := range other.(*variances).state {
		s.state[groups[i]].merge(o)
	}
	return nil
}

func (s *variances) Append(_ *Context, out *types.Vector, from, to int) error {
	for _, e := range s.state[from:to] {
		n := e.n
		if s.sample {
			n--
		}
		if n <= 0 {
			out.AppendNull()
			continue
		}
		r := e.m2 / float64(n)
		if notFinite(r) {
			return s.a.doubleOverflow()
		}
		if s.root {
			r = math.Sqrt(r)
		}
		out.AppendFloat64(r)
	}
	return nil
}

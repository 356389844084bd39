package expr

import (
	"math"
	"math/bits"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// extendStates returns s with n elements, new ones zero.
func extendStates[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	if n <= cap(s) {
		old := len(s)
		s = s[:n]
		clear(s[old:])
		return s
	}
	grown := make([]T, n, max(n, 2*cap(s)))
	copy(grown, s)
	return grown
}

// counts is COUNT.
type counts struct{ n []int64 }

func newCount(*Aggregate) States { return &counts{} }

func (s *counts) Grow(n int)         { s.n = extendStates(s.n, n) }
func (s *counts) MemoryBytes() int64 { return int64(8 * cap(s.n)) }
func (s *counts) Reset()             { s.n = s.n[:0] }

func (s *counts) Update(_ *Context, groups []uint32, n int, in []*types.Vector) error {
	switch {
	case groups == nil && len(in) == 0:
		s.n[0] += int64(n)
	case groups == nil && len(in) == 1:
		s.n[0] += int64(n - in[0].NullCount())
	case len(in) == 0 || len(in) == 1 && !in[0].HasNulls():
		for _, g := range groups[:n] {
			s.n[g]++
		}
	default:
		for i := range n {
			if !anyNull(in, i) {
				s.n[groupAt(groups, i)]++
			}
		}
	}
	return nil
}

func anyNull(in []*types.Vector, i int) bool {
	for _, v := range in {
		if v.IsNull(i) {
			return true
		}
	}
	return false
}

func (s *counts) Merge(_ *Context, groups []uint32, other States) error {
	for i, n := range other.(*counts).n {
		s.n[groups[i]] += n
	}
	return nil
}

func (s *counts) Append(_ *Context, out *types.Vector, from, to int) error {
	for _, n := range s.n[from:to] {
		out.AppendInt64(n)
	}
	return nil
}

// sums is SUM and AVG of integers and decimals. What fits 64 bits is summed in 128,
// in units of the argument's scale; only wide decimals are added as such.
type sums struct {
	a     *Aggregate
	scale int
	sum   []exactSum
	wide  []decimal.Decimal // of wide decimals; empty without
}

type exactSum struct {
	lo uint64
	hi int64
	n  int64
}

func newSums(a *Aggregate) States {
	_, scale := decimalShape(a.args[0])
	return &sums{a: a, scale: int(scale)}
}

func (s *sums) isWide() bool {
	t := s.a.args[0].Type()
	return t.Kind == types.KindDecimal && !t.ShortDecimal()
}

func (s *sums) Grow(n int) {
	s.sum = extendStates(s.sum, n)
	if s.isWide() {
		s.wide = extendStates(s.wide, n)
	}
}

func (s *sums) MemoryBytes() int64 { return int64(24*cap(s.sum) + 40*cap(s.wide)) }
func (s *sums) Reset()             { s.sum, s.wide = s.sum[:0], s.wide[:0] }

func (e *exactSum) add(v int64) {
	lo, carry := bits.Add64(e.lo, uint64(v), 0)
	e.lo = lo
	e.hi += v>>63 + int64(carry)
	e.n++
}

func (e *exactSum) addUint(v uint64) {
	lo, carry := bits.Add64(e.lo, v, 0)
	e.lo = lo
	e.hi += int64(carry)
	e.n++
}

func (s *sums) Update(_ *Context, groups []uint32, n int, in []*types.Vector) error {
	v := in[0]
	switch {
	case v.Class() == types.ClassUint:
		for i, u := range v.Uint64s()[:n] {
			if !v.IsNull(i) {
				s.sum[groupAt(groups, i)].addUint(u)
			}
		}
	case v.Class() == types.ClassInt || v.IsShortDecimal():
		s.updateInts(v, groups, n)
	case v.Class() == types.ClassDecimal:
		return s.updateWide(v, groups, n)
	}
	return nil
}

func (s *sums) updateInts(v *types.Vector, groups []uint32, n int) {
	values := v.Int64s()[:n]
	switch {
	case v.HasNulls():
		for i, x := range values {
			if !v.IsNull(i) {
				s.sum[groupAt(groups, i)].add(x)
			}
		}
	case groups == nil:
		e := s.sum[0]
		for _, x := range values {
			e.add(x)
		}
		s.sum[0] = e
	default:
		groups = groups[:len(values)]
		for i, x := range values {
			s.sum[groups[i]].add(x)
		}
	}
}

func (s *sums) updateWide(v *types.Vector, groups []uint32, n int) error {
	for i, d := range v.Decimals()[:n] {
		if v.IsNull(i) {
			continue
		}
		g := groupAt(groups, i)
		if err := s.addWide(g, d); err != nil {
			return err
		}
		s.sum[g].n++
	}
	return nil
}

func (s *sums) addWide(g uint32, d decimal.Decimal) error {
	if u, ok := d.Unscaled(); ok && d.Scale() == s.scale { // as most are
		s.sum[g].add(u)
		s.sum[g].n--
		return nil
	}
	sum, err := decimal.Add(s.wide[g], d)
	if err != nil {
		return errOutOfRange("DECIMAL", Text(s.a.args[0]))
	}
	s.wide[g] = sum
	return nil
}

func (s *sums) Merge(_ *Context, groups []uint32, other States) error {
	o := other.(*sums)
	for i, e := range o.sum {
		g := groups[i]
		t := &s.sum[g]
		lo, carry := bits.Add64(t.lo, e.lo, 0)
		t.lo, t.n = lo, t.n+e.n
		t.hi += e.hi + int64(carry)
		if len(o.wide) > 0 {
			if err := s.addWide(g, o.wide[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// total returns the sum of a group.
func (s *sums) total(g int) (decimal.Decimal, error) {
	e := s.sum[g]
	hi, lo, neg := uint64(e.hi), e.lo, e.hi < 0
	if neg {
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	d := decimal.FromUint128(hi, lo, s.scale, neg)
	if len(s.wide) == 0 || s.wide[g].IsZero() {
		return d, nil
	}
	return decimal.Add(d, s.wide[g])
}

func (s *sums) Append(_ *Context, out *types.Vector, from, to int) error {
	for g := from; g < to; g++ {
		if s.sum[g].n == 0 {
			out.AppendNull()
			continue
		}
		d, err := s.total(g)
		if err == nil && s.a.name == "avg" {
			d, err = decimal.Div(d, decimal.FromInt64(s.sum[g].n), s.a.incr)
			if err == nil {
				d, err = d.Round(int(s.a.t.Scale))
			}
		}
		if err == nil && d.Scale() > int(s.a.t.Scale) {
			d, err = d.Round(int(s.a.t.Scale))
		}
		if err != nil {
			return errOutOfRange("DECIMAL", s.a.name+"("+Text(s.a.args[0])+")")
		}
		out.AppendDecimal(d)
	}
	return nil
}

func notFinite(f float64) bool { return math.IsInf(f, 0) || math.IsNaN(f) }

// doubleOverflow is the error of a result that a DOUBLE does not hold. MySQL answers 0.
func (a *Aggregate) doubleOverflow() error {
	return errOutOfRange("DOUBLE", a.name+"("+Text(a.args[0])+")")
}

// doubleSums is SUM and AVG of doubles.
type doubleSums struct {
	a   *Aggregate
	avg bool
	sum []doubleSum
}

type doubleSum struct {
	sum float64
	n   int64
}

func newDoubleSums(a *Aggregate) States { return &doubleSums{a: a, avg: a.name == "avg"} }

func (s *doubleSums) Grow(n int)         { s.sum = extendStates(s.sum, n) }
func (s *doubleSums) MemoryBytes() int64 { return int64(16 * cap(s.sum)) }
func (s *doubleSums) Reset()             { s.sum = s.sum[:0] }

func (s *doubleSums) Update(_ *Context, groups []uint32, n int, in []*types.Vector) error {
	v := in[0]
	for i, f := range v.Float64s()[:n] {
		if !v.IsNull(i) {
			e := &s.sum[groupAt(groups, i)]
			e.sum += f
			e.n++
		}
	}
	return nil
}

func (s *doubleSums) Merge(_ *Context, groups []uint32, other States) error {
	for i, e := range other.(*doubleSums).sum {
		t := &s.sum[groups[i]]
		t.sum += e.sum
		t.n += e.n
	}
	return nil
}

func (s *doubleSums) Append(_ *Context, out *types.Vector, from, to int) error {
	for _, e := range s.sum[from:to] {
		switch {
		case e.n == 0:
			out.AppendNull()
		case notFinite(e.sum):
			return s.a.doubleOverflow()
		case s.avg:
			out.AppendFloat64(e.sum / float64(e.n))
		default:
			out.AppendFloat64(e.sum)
		}
	}
	return nil
}

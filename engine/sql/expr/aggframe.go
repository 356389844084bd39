package expr

import (
	"math/bits"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// FrameStates are the states of an aggregate for frames of rows that move: rows are added
// one at a time. Aggregates other than GROUP_CONCAT have them.
type FrameStates interface {
	States

	// AddRow adds row i of the inputs to group g.
	AddRow(x *Context, g int, in []*types.Vector, i int) error
}

// RemovingStates can take back exactly what was added.
type RemovingStates interface {
	FrameStates

	// RemoveRow takes back row i of the inputs, which was added to group g.
	RemoveRow(x *Context, g int, in []*types.Vector, i int) error
}

// MergingStates can add groups to each other, at the cost of a row or so.
type MergingStates interface {
	FrameStates

	// MergeGroup adds group h of other, whose rows count as later ones, to group g. Both
	// may be of the same states.
	MergeGroup(x *Context, g int, other MergingStates, h int) error
}

// Inexact reports whether the results depend on the order in which rows are added:
// sums of floating-point numbers do.
func (a *Aggregate) Inexact() bool {
	switch a.NewStates().(type) {
	case *doubleSums, *variances:
		return true
	}
	return false
}

func (s *counts) AddRow(_ *Context, g int, in []*types.Vector, i int) error {
	if !anyNull(in, i) {
		s.n[g]++
	}
	return nil
}

func (s *counts) RemoveRow(_ *Context, g int, in []*types.Vector, i int) error {
	if !anyNull(in, i) {
		s.n[g]--
	}
	return nil
}

func (s *sums) AddRow(_ *Context, g int, in []*types.Vector, i int) error {
	v := in[0]
	if v.IsNull(i) {
		return nil
	}
	switch {
	case v.Class() == types.ClassUint:
		s.sum[g].addUint(v.Uint64s()[i])
	case v.Class() == types.ClassInt || v.IsShortDecimal():
		s.sum[g].add(v.Int64s()[i])
	case v.Class() == types.ClassDecimal:
		s.sum[g].n++
		return s.addWide(uint32(g), v.Decimals()[i])
	}
	return nil
}

// subtract takes back what add or addUint added.
func (e *exactSum) subtract(lo uint64, hi int64) {
	var borrow uint64
	e.lo, borrow = bits.Sub64(e.lo, lo, 0)
	e.hi -= hi + int64(borrow)
	e.n--
}

func (s *sums) RemoveRow(_ *Context, g int, in []*types.Vector, i int) error {
	v := in[0]
	if v.IsNull(i) {
		return nil
	}
	switch {
	case v.Class() == types.ClassUint:
		s.sum[g].subtract(v.Uint64s()[i], 0)
	case v.Class() == types.ClassInt || v.IsShortDecimal():
		u := v.Int64s()[i]
		s.sum[g].subtract(uint64(u), u>>63)
	case v.Class() == types.ClassDecimal:
		return s.subtractWide(g, v.Decimals()[i])
	}
	return nil
}

// subtractWide takes back what addWide added.
func (s *sums) subtractWide(g int, d decimal.Decimal) error {
	if u, ok := d.Unscaled(); ok && d.Scale() == s.scale {
		s.sum[g].subtract(uint64(u), u>>63)
		return nil
	}
	s.sum[g].n--
	rest, err := decimal.Sub(s.wide[g], d)
	if err != nil {
		return errOutOfRange("DECIMAL", Text(s.a.args[0]))
	}
	s.wide[g] = rest
	return nil
}

func (s *doubleSums) AddRow(_ *Context, g int, in []*types.Vector, i int) error {
	if !in[0].IsNull(i) {
		e := &s.sum[g]
		e.sum += in[0].Float64s()[i]
		e.n++
	}
	return nil
}

func (s *doubleSums) MergeGroup(_ *Context, g int, other MergingStates, h int) error {
	e, o := &s.sum[g], other.(*doubleSums).sum[h]
	e.sum += o.sum
	e.n += o.n
	return nil
}

func (s *variances) AddRow(_ *Context, g int, in []*types.Vector, i int) error {
	if !in[0].IsNull(i) {
		s.state[g].add(in[0].Float64s()[i])
	}
	return nil
}

func (s *variances) MergeGroup(_ *Context, g int, other MergingStates, h int) error {
	s.state[g].merge(other.(*variances).state[h])
	return nil
}

func (s *extremes) AddRow(_ *Context, g int, in []*types.Vector, i int) error {
	if !in[0].IsNull(i) {
		s.keep(uint32(g), in[0].Value(i))
	}
	return nil
}

func (s *extremes) MergeGroup(_ *Context, g int, other MergingStates, h int) error {
	if v := other.(*extremes).best[h]; !v.IsNull() {
		s.keep(uint32(g), v)
	}
	return nil
}

func (s *bitSets) AddRow(_ *Context, g int, in []*types.Vector, i int) error {
	if !in[0].IsNull(i) {
		s.add(uint32(g), uint64(integerAt(in[0], i)))
	}
	return nil
}

func (s *bitSets) MergeGroup(_ *Context, g int, other MergingStates, h int) error {
	u := other.(*bitSets).bits[h]
	if s.name == "bit_and" {
		u = ^u
	}
	s.add(uint32(g), u)
	return nil
}

func (s *byteBits) AddRow(_ *Context, g int, in []*types.Vector, i int) error {
	if in[0].IsNull(i) {
		return nil
	}
	return s.add(uint32(g), in[0].BytesAt(i))
}

func (s *byteBits) MergeGroup(_ *Context, g int, other MergingStates, h int) error {
	b := other.(*byteBits).bits[h]
	if b == nil {
		return nil
	}
	return s.add(uint32(g), b)
}

func (s *documents) AddRow(_ *Context, g int, in []*types.Vector, i int) error {
	return s.addRow(uint32(g), in, i)
}

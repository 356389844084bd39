package window

import (
	"sort"

	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/types"
)

// halves is an aggregate that cannot take rows back but can merge states: MIN, MAX, bits,
// and sums of floating-point numbers, where taking back would leave errors behind.
//
// The frame is cut at a row, the middle. Of the rows before it, the front, there are
// states for all the ends of it that frames may still begin with; of those from the
// middle on, the back, there is one state, to which rows are added. A result is the
// merger of both. When the frame's beginning reaches the middle, the frame that there is
// becomes the front.
//
//	 block    block    block          middle
//	|--------|---from-|--------|--------|-----------to
//	          suffixes| totals          | back
//
// The front's states are kept for the blocks of the queue (totals: from the beginning of
// a block to the middle) and for the rows of the block in which frames begin at present
// (suffixes: from a row to the end of the block). So a row is added three times at most,
// and a frame of n rows needs memory for about 1024 + n/1024 states.
type halves struct {
	aggregate
	few          int64
	back, result expr.MergingStates
	suffixes     expr.MergingStates
	totals       expr.MergingStates
	middle, next int64 // the back has the rows from middle on and before next
	first, last  int64 // the suffixes are of the rows from first on and before last
	bounds       []int64
	bound        int // the totals of which begin at last
}

func newHalves(a aggregate, back expr.MergingStates) *halves {
	more := func() expr.MergingStates { return a.call.Aggregate.NewStates().(expr.MergingStates) }
	h := &halves{aggregate: a, few: fewExact, back: back, result: more(), suffixes: more(), totals: more()}
	if a.call.Aggregate.Inexact() {
		h.few = fewInexact
	}
	return h
}

func (a *halves) start() error {
	a.middle, a.next, a.first, a.last = 0, 0, 0, 0
	return a.begin()
}

func (a *halves) low() int64 { return a.from }

func (a *halves) bytes() int64 {
	return a.back.MemoryBytes() + a.result.MemoryBytes() + a.suffixes.MemoryBytes() + a.totals.MemoryBytes()
}

func (a *halves) reset() {
	a.aggregate.reset()
	a.result.Reset()
	a.suffixes.Reset()
	a.totals.Reset()
}

func (a *halves) value(out *types.Vector) error {
	empty(a.result)
	var err error
	if a.to-a.from <= a.few {
		err = a.add(a.result, a.from, a.to)
	} else {
		err = a.merge()
	}
	if err != nil {
		return err
	}
	return a.result.Append(a.r.x, out, 0, 1)
}

// merge puts the frame together.
func (a *halves) merge() error {
	if a.from >= a.middle {
		if err := a.turn(); err != nil {
			return err
		}
	} else if err := a.add(a.back, a.next, a.to); err != nil {
		return err
	}
	a.next = max(a.next, a.to)
	if a.from >= a.last {
		if err := a.cut(); err != nil {
			return err
		}
	}
	x := a.r.x
	if err := a.result.MergeGroup(x, 0, a.suffixes, int(a.from-a.first)); err != nil {
		return err
	}
	if a.bound < len(a.bounds) {
		if err := a.result.MergeGroup(x, 0, a.totals, a.bound); err != nil {
			return err
		}
	}
	return a.result.MergeGroup(x, 0, a.back, 0)
}

// turn makes the frame the front.
func (a *halves) turn() error {
	a.middle, a.next = a.to, a.to
	a.first, a.last, a.bounds = a.from, a.from, a.bounds[:0]
	empty(a.back)
	a.totals.Reset()
	i, n, err := a.rows.move(a.from)
	if err != nil {
		return err
	}
	for at := a.from + int64(n-i); at < a.middle; {
		_, n, err := a.rows.move(at)
		if err != nil {
			return err
		}
		n = int(min(int64(n), a.middle-at))
		g := len(a.bounds)
		a.bounds = append(a.bounds, at)
		a.totals.Grow(g + 1)
		for i := range n {
			if err := a.totals.AddRow(a.r.x, g, a.rows.in, i); err != nil {
				return err
			}
		}
		at += int64(n)
	}
	for g := len(a.bounds) - 2; g >= 0; g-- {
		if err := a.totals.MergeGroup(a.r.x, g, a.totals, g+1); err != nil {
			return err
		}
	}
	return nil
}

// cut makes the suffixes of the block in which the frame begins.
func (a *halves) cut() error {
	i, n, err := a.rows.move(a.from)
	if err != nil {
		return err
	}
	a.first = a.from
	a.last = min(a.from+int64(n-i), a.middle)
	a.bound = sort.Search(len(a.bounds), func(k int) bool { return a.bounds[k] >= a.last })
	rows := int(a.last - a.first)
	a.suffixes.Reset()
	a.suffixes.Grow(rows)
	for k := rows - 1; k >= 0; k-- {
		if err := a.suffixes.AddRow(a.r.x, k, a.rows.in, i+k); err != nil {
			return err
		}
		if k+1 < rows {
			if err := a.suffixes.MergeGroup(a.r.x, k, a.suffixes, k+1); err != nil {
				return err
			}
		}
	}
	return nil
}

package window

import (
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/types"
)

// Frames of at most so many rows are added up row by row, in their order: the result of
// floating-point numbers is then what the rows' sum is, and others are faster so.
const (
	fewInexact = 64
	fewExact   = 4
)

// newAggregate makes the function of an aggregate, by what its frames and its states
// allow.
func newAggregate(r *Runner, c *plan.WindowCall) function {
	a := aggregate{frame: newFrame(r, c), rows: rowReader{reader: reader{r: r}}}
	for _, in := range c.Aggregate.Inputs() {
		a.rows.cols = append(a.rows.cols, in.(*expr.Column).Position())
	}
	a.rows.in = make([]*types.Vector, len(a.rows.cols))
	a.states = c.Aggregate.NewStates().(expr.FrameStates)
	if a.fixed() {
		return &running{aggregate: a}
	}
	switch s := a.states.(type) {
	case expr.RemovingStates:
		return &sliding{aggregate: a, states: s}
	case expr.MergingStates:
		return newHalves(a, s)
	}
	return &repeated{aggregate: a}
}

// rowReader reads an aggregate's inputs.
type rowReader struct {
	reader
	cols []int
	in   []*types.Vector
	of   *types.Batch // whose columns are in
}

// move makes in the columns of the batch that has a row; i is its place there, and n the
// number of rows of the batch.
func (d *rowReader) move(row int64) (i, n int, err error) {
	b, i, err := d.at(row)
	if err != nil {
		return 0, 0, err
	}
	if d.of != b {
		d.of = b
		for k, c := range d.cols {
			d.in[k] = &b.Vecs[c]
		}
	}
	return i, b.Len(), nil
}

func (d *rowReader) clear() {
	d.c.Clear()
	clear(d.in)
	d.of = nil
}

// aggregate is what all kinds of aggregates over frames have.
type aggregate struct {
	frame
	rows   rowReader
	states expr.FrameStates
}

func (a *aggregate) start() error         { return a.begin() }
func (a *aggregate) ready() (bool, error) { return a.find() }
func (a *aggregate) bytes() int64         { return a.states.MemoryBytes() }

func (a *aggregate) reset() {
	a.clear()
	a.rows.clear()
	a.states.Reset()
}

// empty makes s one group without rows.
func empty(s expr.States) {
	s.Reset()
	s.Grow(1)
}

// add adds rows to group 0.
func (a *aggregate) add(s expr.FrameStates, from, to int64) error {
	for from < to {
		i, n, err := a.rows.move(from)
		if err != nil {
			return err
		}
		n = min(n, i+int(to-from))
		rows := n - i
		from += int64(rows)
		for ; i < n; i++ {
			if err := s.AddRow(a.r.x, 0, a.rows.in, i); err != nil {
				return err
			}
		}
		if err := a.r.grown(s, rows); err != nil {
			return err
		}
	}
	return nil
}

// running is an aggregate whose frames begin where their partitions do: rows are only
// added.
type running struct {
	aggregate
	begun   int64 // the partition whose rows the state has
	next    int64 // the row to be added next
	changed bool  // since the last result
}

func (a *running) start() error {
	a.begun, a.next = -1, 0
	return a.begin()
}

func (a *running) low() int64 { return a.next }

func (a *running) value(out *types.Vector) error {
	if a.begun != a.from {
		empty(a.states)
		a.begun, a.next, a.changed = a.from, a.from, true
	}
	if a.next < a.to {
		if err := a.add(a.states, a.next, a.to); err != nil {
			return err
		}
		a.next, a.changed = a.to, true
	}
	if n := out.Len(); !a.changed && n > 0 {
		out.AppendFrom(out, n-1)
		return nil
	}
	a.changed = false
	return a.states.Append(a.r.x, out, 0, 1)
}

// sliding is an aggregate that can take back rows: those that leave the frame are.
type sliding struct {
	aggregate
	states expr.RemovingStates
	low0   int64 // the state has the rows from low0 on
	next   int64 // and before next
}

func (a *sliding) start() error {
	empty(a.states)
	a.low0, a.next = 0, 0
	return a.begin()
}

func (a *sliding) low() int64 { return a.low0 }

func (a *sliding) value(out *types.Vector) error {
	if a.from >= a.next {
		empty(a.states)
		a.low0, a.next = a.from, a.from
	}
	for a.low0 < a.from {
		i, n, err := a.rows.move(a.low0)
		if err != nil {
			return err
		}
		n = min(n, i+int(a.from-a.low0))
		a.low0 += int64(n - i)
		for ; i < n; i++ {
			if err := a.states.RemoveRow(a.r.x, 0, a.rows.in, i); err != nil {
				return err
			}
		}
	}
	if err := a.add(a.states, a.next, a.to); err != nil {
		return err
	}
	a.next = max(a.next, a.to)
	return a.states.Append(a.r.x, out, 0, 1)
}

// repeated is an aggregate whose results are as long as their frames (JSON): each frame
// is added up anew.
type repeated struct{ aggregate }

func (a *repeated) low() int64 { return a.from }

func (a *repeated) value(out *types.Vector) error {
	empty(a.states)
	if err := a.add(a.states, a.from, a.to); err != nil {
		return err
	}
	return a.states.Append(a.r.x, out, 0, 1)
}

package window

import (
	"strconv"

	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// frame finds the frames of a function's rows. After find has said so, the frame of the
// runner's row is the rows from from on and before to.
type frame struct {
	r        *Runner
	call     *plan.WindowCall
	from, to int64

	before, after int64 // distances in rows
	// In distances of values the ends move along the rows of the partition.
	part       int64 // the partition in which they are
	start, end ranged
}

// ranged is an end that moves by values: all rows of the partition before at were passed.
type ranged struct {
	b    *plan.WindowBound
	at   int64
	read reader
}

func newFrame(r *Runner, c *plan.WindowCall) frame {
	f := frame{r: r, call: c}
	f.start = ranged{b: &c.Frame.Start, read: reader{r: r}}
	f.end = ranged{b: &c.Frame.End, read: reader{r: r}}
	return f
}

// begin starts a run. Error: 3586 for distances that are none.
func (f *frame) begin() (err error) {
	f.from, f.to, f.part = 0, 0, -1
	f.start.at, f.end.at = 0, 0
	if f.before, err = f.distance(&f.call.Frame.Start); err == nil {
		f.after, err = f.distance(&f.call.Frame.End)
	}
	return err
}

func (f *frame) clear() {
	f.start.read.c.Clear()
	f.end.read.c.Clear()
}

// fixed reports whether frames begin where their partitions do.
func (f *frame) fixed() bool { return f.call.Frame.Start.Kind == plan.BoundUnbounded }

// behind is the first row that an end which moves by values has still to pass: it may be
// far behind its row, and behind the frame's other end.
func (f *frame) behind() int64 {
	low := never
	for _, e := range []*ranged{&f.start, &f.end} {
		if e.b.Kind == plan.BoundOffset && !f.call.Frame.Rows {
			low = min(low, e.at)
		}
	}
	return low
}

// distance evaluates a bound. It is the number of rows, or 0.
func (f *frame) distance(b *plan.WindowBound) (int64, error) {
	if b.Kind != plan.BoundOffset {
		return 0, nil
	}
	v, err := b.Offset.Value(f.r.x, nil, 0)
	if err != nil {
		return 0, err
	}
	if f.call.Frame.Rows {
		if n, ok := wholeNumber(v); ok {
			return n, nil
		}
	} else if !v.IsNull() && !negative(v) {
		return 0, nil
	}
	return 0, sqlerr.New(sqlerr.WindowFrameIllegal, f.call.Window)
}

// wholeNumber returns a count; ok is false for what is none. Counts beyond all rows are
// cut.
func wholeNumber(v types.Value) (n int64, ok bool) {
	const most = never / 4
	switch v.Class() {
	case types.ClassInt:
		return min(v.Int(), most), v.Int() >= 0
	case types.ClassUint:
		return int64(min(v.Uint(), uint64(most))), true
	case types.ClassBytes: // parameters of clients that send all as text
		u, err := strconv.ParseUint(string(v.Bytes()), 10, 64)
		return int64(min(u, uint64(most))), err == nil
	}
	return 0, false
}

// negative reports whether a distance in values is below zero.
func negative(v types.Value) bool {
	switch v.Class() {
	case types.ClassInt:
		return v.Int() < 0
	case types.ClassDecimal:
		return v.Decimal().Sign() < 0
	case types.ClassDouble:
		return v.Double() < 0
	case types.ClassFloat:
		return v.Float() < 0
	case types.ClassBytes: // of an interval such as '-1:30'
		b := v.Bytes()
		return len(b) > 0 && b[0] == '-'
	}
	return false
}

// find finds the frame of the runner's row; ok is false if that needs more rows.
func (f *frame) find() (ok bool, err error) {
	r := f.r
	if f.part != r.partStart {
		f.part, f.start.at, f.end.at = r.partStart, r.partStart, r.partStart
	}
	from, ok, err := f.bound(&f.start, f.before, 0)
	if err != nil || !ok {
		return false, err
	}
	to, ok, err := f.bound(&f.end, f.after, 1)
	if err != nil || !ok {
		return false, err
	}
	f.from, f.to = from, max(from, to)
	return true, nil
}

// bound finds an end of the frame; next is 1 for the one that is behind its row.
func (f *frame) bound(e *ranged, distance, next int64) (at int64, ok bool, err error) {
	r, b := f.r, e.b
	switch b.Kind {
	case plan.BoundUnbounded:
		if !b.Following {
			return r.partStart, true, nil
		}
		at = r.partEnd()
		return at, at >= 0, nil
	case plan.BoundCurrent:
		if f.call.Frame.Rows {
			return r.row + next, true, nil
		}
		return f.peers(next)
	}
	switch {
	case !f.call.Frame.Rows:
		return f.byValue(e, next)
	case !b.Following:
		return max(r.partStart, r.row-distance+next), true, nil
	}
	at = r.row + distance + next
	if end := r.partEnd(); end >= 0 {
		return min(at, end), true, nil
	}
	return at, at <= r.queue.Len(), nil
}

// peers is the beginning or the end of the row's peers.
func (f *frame) peers(next int64) (at int64, ok bool, err error) {
	if next == 0 {
		return f.r.peerStart, true, nil
	}
	at, err = f.r.findPeerEnd()
	return at, at >= 0, err
}

// byValue finds the end of a frame by a distance in values: the first row that has it,
// or with next the first one beyond.
func (f *frame) byValue(e *ranged, next int64) (at int64, ok bool, err error) {
	r, b := f.r, e.b
	head, i := r.head.Batch, int(r.row-r.head.First)
	if head.Vecs[b.Key].IsNull(i) {
		return f.peers(next) // NULL is at no distance from anything but NULL
	}
	limit := &head.Vecs[b.Limit]
	end := r.partEnd()
	for last := r.queue.Len(); e.at < last && e.at != end; e.at++ {
		rows, k, err := e.read.at(e.at)
		if err != nil {
			return 0, false, err
		}
		order := compareLimit(b, &rows.Vecs[b.Key], k, limit, i)
		if order > 0 || order == 0 && next == 0 {
			return e.at, true, nil
		}
	}
	return e.at, e.at == end, nil
}

// compareLimit says how a key stands to the value that a distance leads to, in the order
// of the rows. A sum beyond what its type holds is NULL: it is before all or behind all.
func compareLimit(b *plan.WindowBound, key *types.Vector, k int, limit *types.Vector, i int) int {
	order := 0
	switch {
	case key.IsNull(k):
		order = -1 // before all
	case !limit.IsNull(i):
		order = key.Compare(k, limit, i)
	case b.Following:
		return -1
	default:
		return 1
	}
	if b.Desc {
		return -order
	}
	return order
}

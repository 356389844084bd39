package window

import (
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/types"
)

// neighbour is LAG and LEAD.
type neighbour struct {
	r    *Runner
	call *plan.WindowCall
	n    int64
	read reader
}

func (f *neighbour) start() (err error) {
	f.n = 1
	if f.call.Count != nil {
		f.n, err = f.r.count(f.call, 0)
	}
	if f.call.Name == "lag" {
		f.n = -f.n
	}
	return err
}

func (f *neighbour) reset()        { f.read.c.Clear() }
func (f *neighbour) bytes() int64  { return 0 }
func (f *neighbour) behind() int64 { return never }
func (f *neighbour) low() int64    { return max(0, f.r.row+min(f.n, 0)) }

func (f *neighbour) ready() (bool, error) {
	return f.r.row+f.n < f.r.queue.Len() || f.r.partEnd() >= 0, nil
}

func (f *neighbour) value(out *types.Vector) error {
	r, at := f.r, f.r.row+f.n
	if end := r.partEnd(); at < r.partStart || end >= 0 && at >= end {
		if f.call.Default < 0 {
			out.AppendNull()
		} else {
			out.AppendFrom(&r.head.Batch.Vecs[f.call.Default], int(r.row-r.head.First))
		}
		return nil
	}
	b, i, err := f.read.at(at)
	if err == nil {
		out.AppendFrom(&b.Vecs[f.call.Value], i)
	}
	return err
}

// picked is FIRST_VALUE, LAST_VALUE and NTH_VALUE.
type picked struct {
	frame
	call *plan.WindowCall
	n    int64 // row of the frame, from 1; of LAST_VALUE 0
	read reader
	// Of frames that begin where their partition does the row is the same for all: its
	// value is kept, not the row.
	kept   *types.Vector
	keptAt int64
	next   int64 // the row that will be kept
}

func (f *picked) start() (err error) {
	f.keptAt, f.next = -1, never
	switch f.call.Name {
	case "first_value":
		f.n = 1
	case "last_value":
		f.n = 0
	default:
		if f.n, err = f.r.count(f.call, 1); err != nil {
			return err
		}
	}
	return f.begin()
}

func (f *picked) reset() {
	f.clear()
	f.read.c.Clear()
	if f.kept != nil && f.kept.MemoryBytes() > largeValue {
		f.kept = nil
	}
}

// largeValue is from which size on memory for a value is not kept from run to run.
const largeValue = 64 << 10

func (f *picked) bytes() int64 {
	if f.kept == nil {
		return 0
	}
	return f.kept.MemoryBytes()
}

func (f *picked) ready() (bool, error) { return f.find() }

func (f *picked) low() int64 {
	switch {
	case f.n == 0:
		return max(0, f.to-1)
	case f.fixed():
		return f.next
	}
	return f.from
}

func (f *picked) value(out *types.Vector) error {
	at := f.from + f.n - 1
	if f.n == 0 {
		at = f.to - 1
	}
	keeps := f.n > 0 && f.fixed()
	if keeps && f.keptAt == at {
		out.AppendFrom(f.kept, 0)
		return nil
	}
	if keeps {
		f.next = at
	}
	if at < f.from || at >= f.to {
		out.AppendNull()
		return nil
	}
	b, i, err := f.read.at(at)
	if err != nil {
		return err
	}
	v := &b.Vecs[f.call.Value]
	if keeps {
		if f.kept == nil {
			f.kept = types.NewVector(v.Type(), 1)
		}
		f.kept.Reset()
		f.kept.AppendFrom(v, i)
		f.keptAt, f.next = at, never
	}
	out.AppendFrom(v, i)
	return nil
}

package window

import (
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
)

// ranks is ROW_NUMBER, RANK, DENSE_RANK, PERCENT_RANK and CUME_DIST.
type ranks struct {
	r    *Runner
	name string
	end  int64 // of what was asked for
}

func (f *ranks) start() error  { return nil }
func (f *ranks) reset()        {}
func (f *ranks) low() int64    { return never }
func (f *ranks) behind() int64 { return never }
func (f *ranks) bytes() int64  { return 0 }

func (f *ranks) ready() (bool, error) {
	switch f.name {
	case "percent_rank":
		return f.r.partEnd() >= 0, nil
	case "cume_dist":
		if f.r.partEnd() < 0 {
			return false, nil
		}
		end, err := f.r.findPeerEnd()
		f.end = end
		return end >= 0, err
	}
	return true, nil
}

func (f *ranks) value(out *types.Vector) error {
	r := f.r
	switch f.name {
	case "row_number":
		out.AppendUint64(uint64(r.row - r.partStart + 1))
	case "rank":
		out.AppendUint64(uint64(r.peerStart - r.partStart + 1))
	case "dense_rank":
		out.AppendUint64(uint64(r.dense))
	case "cume_dist":
		out.AppendFloat64(float64(f.end-r.partStart) / float64(r.partEnd()-r.partStart))
	default:
		rows := r.partEnd() - r.partStart
		if rows == 1 {
			out.AppendFloat64(0)
		} else {
			out.AppendFloat64(float64(r.peerStart-r.partStart) / float64(rows-1))
		}
	}
	return nil
}

// count evaluates the number of a function. Error: 1210 if it is below the least.
func (r *Runner) count(c *plan.WindowCall, least int64) (int64, error) {
	v, err := c.Count.Value(r.x, nil, 0)
	if err != nil {
		return 0, err
	}
	if n, ok := wholeNumber(v); ok && n >= least {
		return n, nil
	}
	return 0, sqlerr.New(sqlerr.WrongArguments, c.Name)
}

// buckets is NTILE.
type buckets struct {
	r    *Runner
	call *plan.WindowCall
	n    int64
}

func (f *buckets) start() (err error)   { f.n, err = f.r.count(f.call, 1); return err }
func (f *buckets) reset()               {}
func (f *buckets) low() int64           { return never }
func (f *buckets) behind() int64        { return never }
func (f *buckets) bytes() int64         { return 0 }
func (f *buckets) ready() (bool, error) { return f.r.partEnd() >= 0, nil }

// value: the first buckets have a row more where rows are left over.
func (f *buckets) value(out *types.Vector) error {
	k, rows := f.r.row-f.r.partStart, f.r.partEnd()-f.r.partStart
	size, over := rows/f.n, rows%f.n
	if large := over * (size + 1); k < large {
		k /= size + 1
	} else {
		k = over + (k-large)/size
	}
	out.AppendUint64(uint64(k + 1))
	return nil
}

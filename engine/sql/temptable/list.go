package temptable

import (
	"github.com/triremedb/trireme/engine/types"
)

// List is a sequence of rows that is written once and read any number of times, also
// by several readers at a time. What does not fit into the statement's memory goes to
// disk.
type List struct {
	cfg    *Config
	types  []*types.Type
	rows   *Rows
	spill  *Spill
	blocks []Extent
	n      int64
	out    *types.Batch
}

// NewList returns an empty list of rows with columns of the given types.
func NewList(cfg *Config, columns []*types.Type) *List {
	return &List{cfg: cfg, types: columns, rows: NewRows(cfg, columns)}
}

// Len is the number of rows.
func (l *List) Len() int64 { return l.n }

// Add adds the selected rows of a batch, nil meaning all. Errors: those of temporary
// files; 3170 if there are none.
func (l *List) Add(b *types.Batch, sel []uint32) error {
	l.rows.Append(b, sel)
	if sel == nil {
		l.n += int64(b.Len())
	} else {
		l.n += int64(len(sel))
	}
	if !l.cfg.Memory.Fits(0) && l.rows.Bytes() > l.cfg.minWork() {
		return l.flush()
	}
	return nil
}

// flush moves the rows in memory to disk. Rows on disk come before those in memory.
func (l *List) flush() error {
	if l.spill == nil {
		f, err := NewSpill(l.cfg, "temporary table")
		if err != nil {
			return err
		}
		l.spill = f
	}
	if l.out == nil {
		l.out = types.NewBatch(l.types)
	}
	for i := range l.rows.Segments() {
		seg := l.rows.Segment(i)
		for at := 0; at < seg.Len(); {
			l.out.Reset()
			for ; at < seg.Len() && !l.out.Full(); at++ {
				l.out.AppendFrom(seg, at)
			}
			x, err := l.spill.Write(l.out)
			if err != nil {
				return err
			}
			l.blocks = append(l.blocks, x)
		}
	}
	l.rows.Reset()
	if l.out.MemoryBytes() > pendingBytes {
		l.out = nil
	}
	return nil
}

// Reset removes all rows.
func (l *List) Reset() error {
	l.rows.Reset()
	l.blocks, l.n = l.blocks[:0], 0
	f := l.spill
	l.spill = nil
	return f.Close()
}

// Cursor is a place in a list.
type Cursor struct{ block, seg, at int }

// Next replaces the rows of a batch by the next ones behind the cursor and reports
// whether there are any.
func (l *List) Next(c *Cursor, out *types.Batch) (bool, error) {
	if c.block < len(l.blocks) {
		c.block++
		return true, l.spill.Read(l.blocks[c.block-1], out)
	}
	out.Reset()
	for c.seg < l.rows.Segments() {
		seg := l.rows.Segment(c.seg)
		if c.at >= seg.Len() {
			c.seg, c.at = c.seg+1, 0
			continue
		}
		n := min(seg.Len()-c.at, types.BatchRows)
		if l.rows.Bytes() < l.rows.Len()*1024 {
			for k := range out.Vecs {
				copyRange(&out.Vecs[k], &seg.Vecs[k], c.at, n)
			}
			out.SetLen(n)
			c.at += n
			return true, nil
		}
		for ; c.at < seg.Len() && !out.Full(); c.at++ {
			out.AppendFrom(seg, c.at)
		}
		return true, nil
	}
	return false, nil
}

// copyRange appends n values of src from one on to an empty vector.
func copyRange(dst, src *types.Vector, from, n int) {
	switch kd := kindOf(src.Type()); {
	case kd == kindInt:
		dst.Resize(n)
		copy(dst.Int64s(), src.Int64s()[from:from+n])
	case kd == kindUint:
		dst.Resize(n)
		copy(dst.Uint64s(), src.Uint64s()[from:from+n])
	case kd == kindFloat:
		dst.Resize(n)
		copy(dst.Float64s(), src.Float64s()[from:from+n])
	default:
		for i := from; i < from+n; i++ {
			dst.AppendFrom(src, i)
		}
		return
	}
	for i := 0; src.HasNulls() && i < n; i++ {
		if src.IsNull(from + i) {
			dst.SetNull(i)
		}
	}
}

package temptable

import (
	"github.com/triremedb/trireme/engine/types"
)

// Rows are kept in segments of columns, so that growing copies little. A row's number
// is the segment's and its place within; as long as no segment was closed early for
// its long strings the numbers are consecutive.
const (
	segmentBits  = 14
	segmentRows  = 1 << segmentBits
	segmentMask  = segmentRows - 1
	segmentBytes = 16 << 20 // of one segment, beyond which it is closed
)

// NoRow stands for a row of NULLs in [Rows.Gather].
const NoRow = ^uint32(0)

// identity is the selection of all rows of a batch.
var identity = func() (ids [types.BatchRows]uint32) {
	for i := range ids {
		ids[i] = uint32(i)
	}
	return ids
}()

// All is the selection of the first n rows of a batch, n <= types.BatchRows.
func All(n int) []uint32 { return identity[:n:n] }

// Rows is a growing list of rows in memory.
type Rows struct {
	types    []*types.Type
	segs     []*types.Batch
	spare    []*types.Batch // emptied segments
	n        int64
	sealed   int64 // bytes of all segments but the last
	hasNul   []bool
	widest   int // bytes of strings that a row may have
	mem      charge
	cached   [][][]int64 // see ints
	cachedAt int64       // number of rows when they were put together
	wide     []uint32    // working space for batches of more rows than usual
}

// NewRows returns an empty list of rows with columns of the given types.
func NewRows(cfg *Config, columns []*types.Type) *Rows {
	return &Rows{types: columns, hasNul: make([]bool, len(columns)), mem: charge{a: cfg.Memory}}
}

// Types are the columns' types.
func (r *Rows) Types() []*types.Type { return r.types }

// Len is the number of rows.
func (r *Rows) Len() int64 { return r.n }

// Bytes is the memory that the rows hold.
func (r *Rows) Bytes() int64 { return r.mem.n }

// Widest is how many bytes of strings a row has at most.
func (r *Rows) Widest() int { return r.widest }

// Strings is how many bytes of strings a row has.
func (r *Rows) Strings(row uint32) int {
	n, seg, i := 0, r.segs[row>>segmentBits], int(row&segmentMask)
	for c := range seg.Vecs {
		n += seg.Vecs[c].Bytes(i)
	}
	return n
}

// Segments is the number of segments, Segment one of them, which may only be read.
func (r *Rows) Segments() int { return len(r.segs) }

// Segment is segment i.
func (r *Rows) Segment(i int) *types.Batch { return r.segs[i] }

// Dense reports whether row numbers are consecutive from 0.
func (r *Rows) Dense() bool {
	return len(r.segs) == 0 || int64(len(r.segs)-1)<<segmentBits+int64(r.segs[len(r.segs)-1].Len()) == r.n
}

// Next is the number that the next row will have, unless it begins a segment.
func (r *Rows) Next() uint32 {
	if len(r.segs) == 0 {
		return 0
	}
	last := len(r.segs) - 1
	return uint32(last)<<segmentBits | uint32(r.segs[last].Len())
}

// Append appends the selected rows of a batch, nil meaning all.
func (r *Rows) Append(b *types.Batch, sel []uint32) {
	if sel == nil {
		sel = r.all(b.Len())
	}
	for len(sel) > 0 {
		seg := r.room()
		n := min(len(sel), segmentRows-seg.Len())
		seg.Gather(b, sel[:n])
		r.n += int64(n)
		sel = sel[n:]
	}
	r.account(b)
}

// AppendIDs is Append; it appends the rows' numbers to ids.
func (r *Rows) AppendIDs(b *types.Batch, sel []uint32, ids []uint32) []uint32 {
	if sel == nil {
		sel = r.all(b.Len())
	}
	for len(sel) > 0 {
		seg := r.room()
		n := min(len(sel), segmentRows-seg.Len())
		at := r.Next()
		for i := range n {
			ids = append(ids, at+uint32(i))
		}
		seg.Gather(b, sel[:n])
		r.n += int64(n)
		sel = sel[n:]
	}
	r.account(b)
	return ids
}

// all is [All] for batches of any length.
func (r *Rows) all(n int) []uint32 {
	if n <= types.BatchRows {
		return All(n)
	}
	for len(r.wide) < n {
		r.wide = append(r.wide, uint32(len(r.wide)))
	}
	return r.wide[:n]
}

// AppendRow appends a row of values and returns its number.
func (r *Rows) AppendRow(row []types.Value) uint32 {
	seg := r.room()
	id := r.Next()
	seg.AppendRow(row)
	for c := range row {
		r.hasNul[c] = r.hasNul[c] || row[c].IsNull()
	}
	r.n++
	r.widest = max(r.widest, r.Strings(id))
	r.mem.set(r.sealed + seg.MemoryBytes())
	return id
}

// room returns the segment that the next row goes to.
func (r *Rows) room() *types.Batch {
	if last := len(r.segs) - 1; last >= 0 {
		seg := r.segs[last]
		if seg.Len() < segmentRows && (seg.Len()&1023 != 0 || seg.MemoryBytes() < segmentBytes) {
			return seg
		}
		r.sealed += seg.MemoryBytes()
	}
	if n := len(r.spare); n > 0 {
		r.segs = append(r.segs, r.spare[n-1])
		r.spare = r.spare[:n-1]
	} else {
		b := &types.Batch{Vecs: make([]types.Vector, len(r.types))}
		for i, t := range r.types {
			b.Vecs[i].Init(t)
			if len(r.segs) > 0 { // a second one: there will be many rows
				b.Vecs[i].Reserve(segmentRows)
			}
		}
		r.segs = append(r.segs, b)
	}
	return r.segs[len(r.segs)-1]
}

func (r *Rows) account(b *types.Batch) {
	wide := 0
	for c := range b.Vecs {
		r.hasNul[c] = r.hasNul[c] || b.Vecs[c].HasNulls()
		wide += b.Vecs[c].Longest()
	}
	r.widest = max(r.widest, wide)
	if n := len(r.segs); n > 0 {
		r.mem.set(r.sealed + r.segs[n-1].MemoryBytes())
	}
}

// Reset removes all rows. It keeps the memory of one segment, which is no longer
// counted.
func (r *Rows) Reset() {
	for i, seg := range r.segs {
		if len(r.spare) == 0 && i == 0 && seg.MemoryBytes() < segmentBytes/4 {
			seg.Reset()
			r.spare = append(r.spare, seg)
		}
		r.segs[i] = nil
	}
	r.segs = r.segs[:0]
	clear(r.hasNul)
	r.n, r.sealed, r.widest = 0, 0, 0
	r.cached, r.cachedAt = nil, 0
	r.mem.set(0)
}

// Gather appends the rows of the given numbers to out, whose columns from the first
// one on are the rows' columns; NoRow gives NULLs. It does not count the rows in out.
func (r *Rows) Gather(out []types.Vector, ids []uint32, nulls bool) {
	for c := range r.types {
		r.GatherColumn(&out[c], c, ids, nulls)
	}
}

// GatherColumn appends one column of the rows of the given numbers to out. nulls says
// that NoRow may be among them.
func (r *Rows) GatherColumn(out *types.Vector, c int, ids []uint32, nulls bool) {
	switch {
	case len(r.segs) == 1 && !nulls:
		out.Gather(&r.segs[0].Vecs[c], ids)
	case out.Len() == 0 && !nulls && !r.hasNul[c] && fixedLayout(out):
		r.gatherFixed(out, c, ids)
	default:
		for _, id := range ids {
			if id == NoRow {
				out.AppendNull()
			} else {
				out.AppendFrom(&r.segs[id>>segmentBits].Vecs[c], int(id&segmentMask))
			}
		}
	}
}

// gatherFixed is GatherColumn of fixed-size values without NULLs.
func (r *Rows) gatherFixed(out *types.Vector, c int, ids []uint32) {
	out.Resize(len(ids))
	switch {
	case out.Class() == types.ClassUint:
		dst := out.Uint64s()
		for i, id := range ids {
			dst[i] = r.segs[id>>segmentBits].Vecs[c].Uint64s()[id&segmentMask]
		}
	case out.Class() == types.ClassFloat || out.Class() == types.ClassDouble:
		dst := out.Float64s()
		for i, id := range ids {
			dst[i] = r.segs[id>>segmentBits].Vecs[c].Float64s()[id&segmentMask]
		}
	case out.Class() == types.ClassDecimal && !out.IsShortDecimal():
		dst := out.Decimals()
		for i, id := range ids {
			dst[i] = r.segs[id>>segmentBits].Vecs[c].Decimals()[id&segmentMask]
		}
	default:
		dst, ints := out.Int64s(), r.ints(c)
		for i, id := range ids {
			dst[i] = ints[id>>segmentBits][id&segmentMask]
		}
	}
}

// ints are the values of a column by segment: a shorter way to them than through the
// batches. They are put together again after rows were added.
func (r *Rows) ints(c int) [][]int64 {
	if r.cachedAt != r.n {
		r.cachedAt = r.n
		for i := range r.cached {
			r.cached[i] = r.cached[i][:0]
		}
	}
	if r.cached == nil {
		r.cached = make([][][]int64, len(r.types))
	}
	if len(r.cached[c]) == 0 {
		for _, seg := range r.segs {
			r.cached[c] = append(r.cached[c], seg.Vecs[c].Int64s())
		}
	}
	return r.cached[c]
}

// fixedLayout reports whether the vector's values are of a fixed size.
func fixedLayout(v *types.Vector) bool {
	switch v.Class() {
	case types.ClassNull, types.ClassBytes, types.ClassJSON:
		return false
	}
	return true
}

// Number is the number of row i of a segment.
func (r *Rows) Number(segment, i int) uint32 { return uint32(segment)<<segmentBits | uint32(i) }

// At is the segment of a row and its place there.
func (r *Rows) At(id uint32) (*types.Batch, int) {
	return r.segs[id>>segmentBits], int(id & segmentMask)
}

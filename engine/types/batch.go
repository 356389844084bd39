package types

// BatchRows is the number of rows at which a batch is full: enough to spread
// the cost of a call, few enough that a handful of columns stay in cache.
const BatchRows = 1024

// BatchBytes is the amount of string data in one column at which a batch counts
// as full whatever its number of rows.
const BatchBytes = 1 << 20

// BatchAllBytes is the same of all columns together.
const BatchAllBytes = 4 * BatchBytes

// Batch is a number of rows held as columns. It is what operators pass on. A
// batch may have no columns and yet rows.
type Batch struct {
	Vecs []Vector
	n    int
	most int // rows, if fewer than BatchRows are wanted
}

// NewBatch returns an empty batch with columns of the given types.
func NewBatch(columns []*Type) *Batch {
	b := &Batch{Vecs: make([]Vector, len(columns))}
	for i, t := range columns {
		b.Vecs[i].Init(t)
		b.Vecs[i].Reserve(BatchRows)
	}
	return b
}

// NewRow returns an empty batch for a row or a few: it has no memory yet for a full one.
func NewRow(columns []*Type) *Batch {
	b := &Batch{Vecs: make([]Vector, len(columns))}
	for i, t := range columns {
		b.Vecs[i].Init(t)
	}
	return b
}

// Reset removes all rows and keeps the memory.
func (b *Batch) Reset() {
	for i := range b.Vecs {
		b.Vecs[i].Reset()
	}
	b.n = 0
}

// Len returns the number of rows.
func (b *Batch) Len() int { return b.n }

// Column returns column i.
func (b *Batch) Column(i int) *Vector { return &b.Vecs[i] }

// Truncate removes the rows from n on, and with n = Len the values of a row that
// was begun and not ended.
func (b *Batch) Truncate(n int) {
	for i := range b.Vecs {
		b.Vecs[i].Truncate(n)
	}
	b.n = min(b.n, n)
}

// EndRow counts one more row, after a value was appended to every column.
func (b *Batch) EndRow() { b.n++ }

// SetLen sets the number of rows, after the columns were filled by other means.
func (b *Batch) SetLen(n int) { b.n = n }

// SetMost lets the batch be full with fewer than BatchRows rows, or with 0 with as many again. It
// stays so over Reset.
func (b *Batch) SetMost(rows int) { b.most = rows }

// Room is how many more rows there may be before the batch is full.
func (b *Batch) Room() int {
	if b.most > 0 {
		return b.most - b.n
	}
	return BatchRows - b.n
}

// Full reports whether the batch should be passed on before the next row.
func (b *Batch) Full() bool {
	if b.Room() <= 0 {
		return true
	}
	all := 0
	for i := range b.Vecs {
		n := len(b.Vecs[i].data)
		if all += n; n >= BatchBytes {
			return true
		}
	}
	return all >= BatchAllBytes
}

// AppendRow appends one value to every column. REQUIRES: len(row) is the number
// of columns.
func (b *Batch) AppendRow(row []Value) {
	for i := range b.Vecs {
		b.Vecs[i].Append(row[i])
	}
	b.n++
}

// AppendFrom appends row i of src, which has the same columns.
func (b *Batch) AppendFrom(src *Batch, i int) {
	for c := range b.Vecs {
		b.Vecs[c].AppendFrom(&src.Vecs[c], i)
	}
	b.n++
}

// Gather appends the given rows of src, which has the same columns.
func (b *Batch) Gather(src *Batch, rows []uint32) {
	for c := range b.Vecs {
		b.Vecs[c].Gather(&src.Vecs[c], rows)
	}
	b.n += len(rows)
}

// Row sets dst to the values of row i, which alias the batch.
func (b *Batch) Row(dst []Value, i int) []Value {
	dst = dst[:0]
	for c := range b.Vecs {
		dst = append(dst, b.Vecs[c].Value(i))
	}
	return dst
}

// MemoryBytes returns the memory that the batch holds, in use or not.
func (b *Batch) MemoryBytes() int64 {
	var n int64
	for i := range b.Vecs {
		n += b.Vecs[i].MemoryBytes()
	}
	return n
}

package temptable

import (
	"fmt"

	"github.com/triremedb/trireme/engine/types"
)

// queueResident is how many whole blocks of a queue stay in memory, however little the
// statement has left.
const queueResident = 2

// Queue is a sequence of rows that are added at its end, read by any number of cursors
// and dropped from its front. Rows have consecutive numbers from 0. They lie in blocks of
// at most types.BatchRows rows; beyond the statement's memory blocks go to disk, but for
// the last ones.
type Queue struct {
	cfg   *Config
	types []*types.Type
	// blocks from head on are those that have not been dropped; the last one takes rows.
	blocks  []*queueBlock
	head    int
	flushed int   // blocks before it are on disk
	n       int64 // rows added so far
	spill   *Spill
	onDisk  int
	block   *queueBlock // to be used again
	spare   []*types.Batch
	held    int64 // bytes of whole blocks in memory
	mem     charge
}

// queueBlock is a run of rows. batch is nil if it is on disk only.
type queueBlock struct {
	first int64 // number of its first row
	rows  int
	bytes int64
	batch *types.Batch
	at    Extent
}

// QueueCursor reads a queue. Batch has the rows from number First on; it may only be
// read, and until the cursor is moved or the rows are dropped.
type QueueCursor struct {
	Batch *types.Batch
	First int64
	own   *types.Batch // for blocks on disk
}

// NewQueue returns an empty queue of rows with columns of the given types.
func NewQueue(cfg *Config, columns []*types.Type) *Queue {
	return &Queue{cfg: cfg, types: columns, mem: charge{a: cfg.Memory}}
}

// Len is the number of rows added so far, which is the next one's number.
func (q *Queue) Len() int64 { return q.n }

// Tail returns the batch that takes the next rows, which is not full. After rows were
// appended to it Added must be called.
func (q *Queue) Tail() *types.Batch {
	if q.head < len(q.blocks) {
		if b := q.blocks[len(q.blocks)-1]; b.batch != nil && !b.batch.Full() {
			return b.batch
		}
	}
	b := q.block
	if q.block = nil; b == nil {
		b = &queueBlock{}
	}
	*b = queueBlock{first: q.n}
	if k := len(q.spare) - 1; k >= 0 {
		b.batch, q.spare = q.spare[k], q.spare[:k]
		b.batch.Reset()
	} else {
		b.batch = types.NewRow(q.types)
	}
	q.blocks = append(q.blocks, b)
	return b.batch
}

// Added counts the rows appended to Tail, and moves blocks to disk if memory is used up.
// Errors: those of temporary files; 3170 if there are none.
func (q *Queue) Added() error {
	b := q.blocks[len(q.blocks)-1]
	q.n += int64(b.batch.Len() - b.rows)
	b.rows = b.batch.Len()
	q.measure(b, b.batch.MemoryBytes())
	for q.flushed < len(q.blocks)-queueResident && !q.cfg.Memory.Fits(0) && q.held > q.cfg.minWork() {
		if err := q.flush(q.blocks[q.flushed]); err != nil {
			return err
		}
		q.flushed++
	}
	return nil
}

func (q *Queue) measure(b *queueBlock, bytes int64) {
	q.held += bytes - b.bytes
	b.bytes = bytes
	q.mem.set(q.held)
}

// flush moves a block to disk. Cursors may still read its memory.
func (q *Queue) flush(b *queueBlock) error {
	if q.spill == nil {
		f, err := NewSpill(q.cfg, "window")
		if err != nil {
			return err
		}
		q.spill = f
	}
	x, err := q.spill.Write(b.batch)
	if err != nil {
		return err
	}
	b.at, b.batch = x, nil
	q.onDisk++
	q.measure(b, 0)
	return nil
}

// Seek moves a cursor to the block of a row, which was added and not dropped.
func (q *Queue) Seek(c *QueueCursor, row int64) error {
	lo, hi := q.head, len(q.blocks)-1
	for lo < hi {
		m := (lo + hi + 1) / 2
		if q.blocks[m].first <= row {
			lo = m
		} else {
			hi = m - 1
		}
	}
	b := q.blocks[lo]
	if row < b.first {
		return fmt.Errorf("temptable: row %d of a queue was dropped", row)
	}
	c.First = b.first
	if b.batch != nil {
		c.Batch = b.batch
		return nil
	}
	if c.own == nil {
		c.own = types.NewRow(q.types)
	}
	c.Batch = c.own
	return q.spill.Read(b.at, c.own)
}

// Drop removes the blocks of which no row from the given one on is part.
func (q *Queue) Drop(row int64) error {
	for q.head < len(q.blocks)-1 && q.blocks[q.head+1].first <= row {
		b := q.blocks[q.head]
		q.measure(b, 0)
		switch {
		case b.batch == nil:
			q.onDisk--
		case len(q.spare) <= queueResident:
			q.spare = append(q.spare, b.batch)
		}
		q.blocks[q.head] = nil
		q.head++
	}
	q.flushed = max(q.flushed, q.head)
	if 2*q.head > len(q.blocks) {
		k := copy(q.blocks, q.blocks[q.head:])
		clear(q.blocks[k:])
		q.blocks, q.flushed, q.head = q.blocks[:k], q.flushed-q.head, 0
	}
	if q.onDisk > 0 || q.spill == nil {
		return nil
	}
	f := q.spill
	q.spill = nil
	return f.Close()
}

// Reset removes all rows; the next one has number 0 again. Cursors have to be emptied.
func (q *Queue) Reset() error {
	// Memory of a small block is kept for the next run.
	keep := q.spare
	for _, b := range q.blocks[q.head:] {
		if b.batch != nil {
			keep = append(keep, b.batch)
		}
	}
	q.spare = nil
	for _, b := range keep {
		if b.MemoryBytes() <= q.cfg.minWork() {
			q.spare = append(keep[:0], b)
			break
		}
	}
	if q.head < len(q.blocks) {
		q.block = q.blocks[q.head]
	}
	clear(q.blocks)
	q.blocks, q.n, q.held, q.onDisk = q.blocks[:0], 0, 0, 0
	q.head, q.flushed = 0, 0
	q.mem.set(0)
	f := q.spill
	q.spill = nil
	return f.Close()
}

// Clear empties a cursor.
func (c *QueueCursor) Clear() { *c = QueueCursor{} }

package event

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// FlagStatementEnd in a rows event's own flags: the last one of its table map.
const FlagStatementEnd uint16 = 1

// RowsSize is the length in bytes at which an event of several rows is full, MySQL's
// binlog_row_event_max_size.
const RowsSize = 8192

// keptBuffer is how much memory Rows keeps for the next rows.
const keptBuffer = 64 << 10

const (
	rowsTableID = HeaderSize
	rowsFlags   = HeaderSize + 6
	// rowsExtra is the length of a rows event's extra data, which counts itself.
	rowsExtra = 2
)

// Rows makes the events of a transaction's row changes. Consecutive changes of one
// kind to one table share events. It writes whole events to its writer, normally the
// transaction's cache, and holds back the last one until the statement's end. If the writer
// is a [Framer], a table map follows the end of each frame.
//
// After an error the statement has failed: its events are to be cut off the writer,
// and [Rows.Discard] called.
type Rows struct {
	w         io.Writer
	frames    Framer // w, if it is one
	timestamp uint32

	layout *Layout // of the table map that was last written or is in buf; nil: none
	kind   Type    // of the open event; 0: there is none
	buf    []byte
	start  int // of the open event in buf

	// Bitmaps of the open event; after is for update's. wanted is memory for the next.
	before, after, wanted bitmap

	// changeOf is, by column position, the number from 1 of the column's change in the
	// update at hand; all 0 in between.
	changeOf []uint16
}

// Reset makes ready for another transaction, whose events go to w.
func (r *Rows) Reset(w io.Writer) {
	r.Discard()
	r.w = w
	r.frames, _ = w.(Framer)
}

// Begin begins a statement. REQUIRES: the one before is ended or discarded.
func (r *Rows) Begin(timestamp uint32) { r.timestamp = timestamp }

// End ends the statement: all its events are written.
func (r *Rows) End() error {
	if r.kind != 0 {
		flags := r.buf[r.start+rowsFlags:]
		binary.LittleEndian.PutUint16(flags, FlagStatementEnd)
	}
	err := r.flush()
	r.layout = nil
	return err
}

// Discard throws away what is not written yet.
func (r *Rows) Discard() {
	r.layout, r.kind = nil, 0
	r.shrink()
}

func (r *Rows) shrink() {
	if cap(r.buf) > keptBuffer {
		r.buf = nil
	}
	r.buf = r.buf[:0]
}

// Insert adds a new row, given by column position as in record.Table.Columns; values
// of dropped columns do not matter.
func (r *Rows) Insert(l *Layout, row []types.Value) error {
	if err := r.open(l, TypeWriteRows, l.all, nil); err != nil {
		return err
	}
	return r.image(l.all, row)
}

// Delete adds the deletion of a row. Of the row the columns matter that BeforeNeeds.
func (r *Rows) Delete(l *Layout, row []types.Value) error {
	if err := r.open(l, TypeDeleteRows, l.before, nil); err != nil {
		return err
	}
	return r.image(l.before, row)
}

// Update adds a change of a row. Of the row before, the columns matter that BeforeNeeds
// and AfterNeeds; the changes have their values (External is ignored), and each
// column once. Changes to identical values are the caller's to leave out; without any
// change nothing is added.
func (r *Rows) Update(l *Layout, before []types.Value, changes []record.Change) error {
	if len(changes) == 0 {
		return nil
	}
	r.wanted = append(r.wanted[:0], l.all...)
	switch l.opt.Image {
	case ImageMinimal:
		clear(r.wanted)
	case ImageNoBlob:
		copy(r.wanted, l.withoutLong)
	}
	for i := range changes {
		at := l.at[changes[i].Column]
		if at < 0 {
			return fmt.Errorf("binlog event: change of column %d, which table %s.%s has dropped", changes[i].Column, l.def.Schema, l.def.Name)
		}
		r.wanted.set(at)
	}
	if err := r.open(l, TypeUpdateRows, l.before, r.wanted); err != nil {
		return err
	}
	if err := r.image(l.before, before); err != nil {
		return err
	}
	return r.imageAfter(before, changes)
}

// open makes sure that the open event takes a row of the kind with the images. after
// is nil but for updates.
func (r *Rows) open(l *Layout, kind Type, before, after bitmap) error {
	same := l == r.layout
	if same && kind == r.kind && len(r.buf)-r.start < RowsSize && r.before.equal(before) && r.after.equal(after) {
		return nil
	}
	if !same || r.frames != nil && r.frames.Full(len(r.buf)) {
		if err := r.End(); err != nil {
			return err
		}
		r.buf = l.AppendTableMap(r.buf, r.timestamp)
		r.layout = l
	} else if err := r.flush(); err != nil {
		return err
	}
	r.start, r.kind, r.before = len(r.buf), kind, before
	r.after = append(r.after[:0], after...)
	b := appendHeader(r.buf, kind, r.timestamp, 0)
	b = appendLE(b, l.def.ID, 6)
	b = append(b, 0, 0, rowsExtra, 0)
	b = appendPacked(b, uint64(len(l.columns)))
	r.buf = append(append(b, before...), after...)
	return nil
}

// flush writes what is in buf.
func (r *Rows) flush() error {
	if r.kind != 0 {
		r.buf = endEvent(r.buf, r.start)
		r.kind = 0
	}
	if len(r.buf) == 0 {
		return nil
	}
	_, err := r.w.Write(r.buf)
	r.shrink()
	return err
}

// image appends the columns of a row that are in the bitmap.
func (r *Rows) image(present bitmap, row []types.Value) error {
	l := r.layout
	b, nulls := appendNulls(r.buf, present)
	bit := 0
	for i := range l.columns {
		if !present.has(i) {
			continue
		}
		c := &l.columns[i]
		var err error
		if b, err = c.appendOrNull(b, nulls, bit, row[c.position]); err != nil {
			return err
		}
		bit++
	}
	r.buf = b
	return nil
}

// imageAfter appends an update's image after.
func (r *Rows) imageAfter(row []types.Value, changes []record.Change) error {
	l := r.layout
	if len(r.changeOf) < len(l.at) {
		r.changeOf = make([]uint16, len(l.at))
	}
	for i := range changes {
		r.changeOf[changes[i].Column] = uint16(i + 1)
	}
	err := r.appendAfter(row, changes)
	for i := range changes {
		r.changeOf[changes[i].Column] = 0
	}
	return err
}

func (r *Rows) appendAfter(row []types.Value, changes []record.Change) error {
	l := r.layout
	b, nulls := appendNulls(r.buf, r.after)
	bit := 0
	for i := range l.columns {
		if !r.after.has(i) {
			continue
		}
		c := &l.columns[i]
		v := &row[c.position]
		if n := r.changeOf[c.position]; n > 0 {
			v = &changes[n-1].Value
		}
		var err error
		if b, err = c.appendOrNull(b, nulls, bit, *v); err != nil {
			return err
		}
		bit++
	}
	r.buf = b
	return nil
}

// appendNulls appends an image's empty bitmap of NULLs and says where it is.
func appendNulls(dst []byte, present bitmap) (out []byte, at int) {
	at = len(dst)
	for range (present.count() + 7) / 8 {
		dst = append(dst, 0)
	}
	return dst, at
}

func (c *column) appendOrNull(dst []byte, nulls, bit int, v types.Value) ([]byte, error) {
	if !v.IsNull() {
		return c.append(dst, v)
	}
	if c.t.NotNull {
		return dst, fmt.Errorf("binlog event: NULL for column %s, which is NOT NULL", c.name)
	}
	bitmap(dst[nulls:]).set(bit)
	return dst, nil
}

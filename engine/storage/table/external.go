package table

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/triremedb/trireme/engine/storage/lob"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// externalize stores the longest values of a row off-page until the rest fits a
// record. The result is nil if all of it fits.
func (w *Worker) externalize(t *Table, row []types.Value) ([]record.External, error) {
	return externalize(t.Schema, row, func(value []byte) (lob.Ref, error) { return w.storeExternal(t, value) })
}

// externalize is Worker.externalize with any way to store a value. First the longest values go, and the
// row keeps of them what its indexes need, which would have to be read for each entry else; if that is not
// enough it keeps less. So whether a row can be stored follows from its values: members whose
// rows have other layouts, and who loads it, come to the same.
func externalize(s *record.Schema, row []types.Value, store func(value []byte) (lob.Ref, error)) ([]record.External, error) {
	size := s.RowSize(row)
	if size <= record.MaxInlineRow {
		return nil, nil
	}
	shapes := make([]shape, len(row))
	for i := range row {
		if s.Stores(i) {
			shapes[i] = shapeOf(s, i, len(row[i].Bytes()))
		}
	}
	if size = keepLess(shapes, goOut(s, shapes, size)); size > record.MaxInlineRow {
		return nil, record.ErrRowTooLarge
	}
	external := make([]record.External, len(row))
	for i := range row {
		if !shapes[i].external {
			continue
		}
		var err error
		if external[i], err = storeShape(row[i].Bytes(), shapes[i], store); err != nil {
			return nil, err
		}
	}
	return external, nil
}

// shape is how a column of a row is stored.
type shape struct {
	may      bool // go off-page
	external bool
	size     int // bytes of a value that may go
	keep     int // bytes of an off-page value that the row keeps
}

func shapeOf(s *record.Schema, column, size int) shape {
	return shape{may: s.MayBeExternal[column] && size > record.MinExternal, size: size}
}

// storeShape stores a value and returns what comes into the row.
func storeShape(value []byte, c shape, store func(value []byte) (lob.Ref, error)) (record.External, error) {
	ref, err := store(value)
	if err != nil {
		return nil, err
	}
	return append(ref.Append(make([]byte, 0, lob.RefSize+c.keep)), value[:c.keep]...), nil
}

// goOut chooses what goes off-page of a row whose record would have size bytes, and returns the size then. The
// row keeps what indexes need.
func goOut(s *record.Schema, row []shape, size int) int {
	for size > record.MaxInlineRow {
		longest, n := -1, record.MinExternal
		for i := range row {
			if c := &row[i]; c.may && !c.external && c.size > max(n, record.LOBRefSize+s.LocalPrefix[i]) {
				longest, n = i, c.size
			}
		}
		if longest < 0 {
			break
		}
		c := &row[longest]
		c.external, c.keep = true, s.LocalPrefix[longest]
		size += record.LOBRefSize + c.keep - c.size
	}
	return size
}

// keepLess makes a row keep nothing of as many values as it takes, and returns the size then.
func keepLess(row []shape, size int) int {
	for size > record.MaxInlineRow {
		most, n := -1, 0
		for i := range row {
			c, gain := &row[i], 0
			switch {
			case c.external:
				gain = c.keep
			case c.may:
				gain = c.size - record.LOBRefSize
			}
			if gain > n {
				most, n = i, gain
			}
		}
		if most < 0 {
			break
		}
		row[most].external, row[most].keep = true, 0
		size -= n
	}
	return size
}

// storeExternal writes a value off-page. The undo record in the mini-transaction
// that makes the first page lets a rollback free it.
func (w *Worker) storeExternal(t *Table, value []byte) (ref lob.Ref, err error) {
	id, err := w.trx.EnsureID()
	if err != nil {
		return ref, err
	}
	use := space.Ordinary
	writer := lob.NewWriter(w.e.Pool, t.space, t.Where.LOBSegment, id, use)
	if err := w.startExternal(t, writer); err != nil {
		return ref, err
	}
	if _, err := writer.Write(value); err != nil {
		return ref, err
	}
	return writer.Close()
}

func (w *Worker) startExternal(t *Table, writer *lob.Writer) error {
	var zero [lob.RefSize]byte
	size := len(record.AppendUndoLOB(w.undo[:0], t.ID(), zero[:]))
	log, err := w.prepareUndo(size)
	if err != nil {
		return err
	}
	if err := w.begin(); err != nil {
		return err
	}
	defer w.m.Commit()
	if err := log.Fix(w.m); err != nil {
		return err
	}
	ref, err := writer.Start(w.m)
	if err != nil {
		return err
	}
	w.undo = record.AppendUndoLOB(w.undo[:0], t.ID(), ref.Append(zero[:0]))
	if _, _, err := log.Append(w.m, w.undo, false); err != nil {
		panic("table: undo page was latched: " + err.Error())
	}
	return nil
}

// longChanges reports whether a new value is long enough to go off-page.
func longChanges(s *record.Schema, changes []record.Change) bool {
	return slices.ContainsFunc(changes, func(c record.Change) bool {
		return s.MayBeExternal[c.Column] && len(c.Value.Bytes()) > record.MinExternal
	})
}

// externalizeChanges stores values off-page that would make the row too long, as externalize does: new
// ones first, then others, which become changes; and so do those of which the row keeps less.
func (w *Worker) externalizeChanges(t *Table, key []byte, changes []record.Change) ([]record.Change, error) {
	s := t.Schema
	old, err := w.own(t, key)
	if err != nil {
		return nil, err
	}
	size, err := s.UpdatedSize(old, changes)
	if err != nil || size <= record.MaxInlineRow {
		w.commit()
		return changes, err
	}
	value := bytes.Clone(old.Val)
	w.commit()
	if old, err = s.Row(key, value); err != nil {
		return nil, err
	}
	fields := make([]record.Field, len(s.Columns)) // that stay
	shapes, stay := make([]shape, len(s.Columns)), make([]shape, len(s.Columns))
	for i := range s.Columns {
		if s.Columns[i].DroppedIn != 0 || changed(changes, i) {
			continue
		}
		if fields[i], err = old.Field(i); err != nil {
			return nil, err
		}
		n := len(fields[i].Bytes)
		if stay[i] = shapeOf(s, i, n); fields[i].External {
			stay[i] = shape{external: true, keep: n - record.LOBRefSize}
		}
	}
	for i := range changes {
		c := &changes[i]
		shapes[c.Column] = shapeOf(s, c.Column, len(c.Value.Bytes()))
	}
	size = goOut(s, shapes, size)
	for i := range stay {
		if !changed(changes, i) {
			shapes[i] = stay[i]
		}
	}
	if size = keepLess(shapes, goOut(s, shapes, size)); size > record.MaxInlineRow {
		return nil, record.ErrRowTooLarge
	}
	store := func(value []byte) (lob.Ref, error) { return w.storeExternal(t, value) }
	changes = slices.Clone(changes)
	for i := range changes {
		c := &changes[i]
		if shapes[c.Column].external {
			if c.External, err = storeShape(c.Value.Bytes(), shapes[c.Column], store); err != nil {
				return nil, err
			}
			c.Value = types.Null
		}
	}
	for i := range stay {
		ext := record.External(nil)
		switch {
		case shapes[i] == stay[i] || changed(changes, i):
			continue
		case stay[i].external:
			ext = fields[i].Bytes[:record.LOBRefSize+shapes[i].keep]
		default:
			if ext, err = storeShape(fields[i].Bytes, shapes[i], store); err != nil {
				return nil, err
			}
		}
		changes = append(changes, record.Change{Column: i, External: ext, Same: true})
	}
	return changes, nil
}

func changed(changes []record.Change, column int) bool {
	for i := range changes {
		if changes[i].Column == column {
			return true
		}
	}
	return false
}

// listOldLOBs adds to the undo record the off-page values that the old row refers
// to and the new one (w.row) does not.
func (w *Worker) listOldLOBs(t *Table, key []byte, old record.Row) error {
	return old.EachExternal(func(_ int, ref []byte) error {
		if !bytes.Contains(w.row, ref) {
			w.undo = record.AppendOldLOB(w.undo, ref)
		}
		return nil
	})
}

// readPrefix reads what an index needs of an off-page value, see [record.PrefixReader]: one page.
// Latches of trees and of undo may be held.
func (w *Worker) readPrefix(dst []byte, _ int, field []byte, n int) ([]byte, error) {
	ref, err := lob.Decode(field)
	if err != nil {
		return dst, fmt.Errorf("%w: %w", record.ErrCorrupt, err)
	}
	if w.lobs == nil {
		w.lobs = lob.NewReader(w.e.Pool, ref)
	}
	w.lobs.Reset(ref)
	from := len(dst)
	dst = append(dst, make([]byte, n)...)
	if _, err = w.lobs.ReadAt(dst[from:], 0); err != nil {
		return dst[:from], err
	}
	return dst, nil
}

// lostPrefix reports whether err says that the off-page value is lost of which an index entry is made.
func lostPrefix(err error) bool {
	_, damaged := damagedPage(err)
	return damaged || isGone(err)
}

// loadExternal reads a column's off-page value.
func (w *Worker) loadExternal(t *Table, r record.Row, column int) (types.Value, error) {
	f, err := r.Field(column)
	if err != nil {
		return types.Null, err
	}
	ref, err := lob.Decode(f.Bytes)
	if err != nil {
		return types.Null, fmt.Errorf("%w: %w", record.ErrCorrupt, err)
	}
	b, err := lob.ReadAll(w.e.Pool, ref, nil)
	if err != nil {
		return types.Null, err
	}
	return types.DecodeStored(b, &t.Schema.Columns[column].Type)
}

// appendExternal adds a row with off-page columns to a batch. The caller has copied
// the version that it has found. A snapshot or a lock keeps its off-page values, but for
// READ UNCOMMITTED: if they are gone, the row is read again. found is false if there is
// none any more, or still, if given, does not want the new version.
//
// REQUIRES: no latch is held.
func (w *Worker) appendExternal(t *Table, snap *trx.Snapshot, key, value []byte, columns []int, batch *types.Batch,
	still func(version []byte) (bool, error)) (found bool, err error) {
	for again := false; ; again = true {
		r, err := t.Schema.Row(key, value)
		if err != nil {
			return false, err
		}
		ok := true
		if again && still != nil {
			ok, err = still(value) // may read off-page values too
		}
		if err == nil && ok {
			err = w.loadLong(t, r, columns)
		}
		switch {
		case err == nil && ok:
			return true, w.appendLoaded(r, columns, batch)
		case err == nil:
			return false, nil
		}
		if value, err = w.reread(t, snap, key, value, err); err != nil || value == nil {
			return false, err
		}
	}
}

// loadLong reads those of the columns that lie off-page into w.long.
func (w *Worker) loadLong(t *Table, r record.Row, columns []int) error {
	w.long = w.long[:0]
	for _, c := range columns {
		if !t.Schema.MayBeExternal[c] || !r.IsExternal(c) {
			continue
		}
		v, err := w.loadExternal(t, r, c)
		if err != nil {
			return err
		}
		w.long = append(w.long, v)
	}
	return nil
}

// appendLoaded adds a row to the batch whose off-page columns are in w.long.
func (w *Worker) appendLoaded(r record.Row, columns []int, batch *types.Batch) error {
	at := 0
	for n, c := range columns {
		err := r.AppendTo(&batch.Vecs[n], c)
		if err == record.ErrExternal {
			batch.Vecs[n].Append(w.long[at])
			at, err = at+1, nil
		}
		if err != nil {
			return err
		}
	}
	clear(w.long)
	batch.EndRow()
	return nil
}

// reread is called where reading the off-page values of a version has failed. If
// nothing has kept them and the row has changed since, that is no error: it returns a
// copy of the newest version, nil if there is none.
func (w *Worker) reread(t *Table, snap *trx.Snapshot, key, value []byte, cause error) ([]byte, error) {
	if snap == nil || snap.Protects() {
		return nil, cause
	}
	w.rm.BeginRead()
	defer w.release()
	w.look.Init(t.trees[0], w.rm)
	exact, err := w.look.SeekLeaf(key, mtr.S)
	switch {
	case err != nil:
		return nil, err
	case !exact || w.look.Flags()&record.FlagDeleted != 0:
		return nil, nil
	case bytes.Equal(w.look.Value(), value):
		return nil, cause
	}
	return bytes.Clone(w.look.Value()), nil
}

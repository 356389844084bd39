package table

import (
	"bytes"
	"fmt"

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
	size := t.Schema.RowSize(row)
	if size <= record.MaxInlineRow {
		return nil, nil
	}
	external := make([]record.External, len(row))
	for size > record.MaxInlineRow {
		longest, n := -1, record.MinExternal
		for i := range row {
			if t.Schema.MayBeExternal[i] && external[i] == nil && len(row[i].Bytes()) > max(n, record.LOBRefSize+t.Schema.LocalPrefix[i]) {
				longest, n = i, len(row[i].Bytes())
			}
		}
		if longest < 0 {
			return nil, record.ErrRowTooLarge
		}
		ext, err := w.storeExternal(t, longest, row[longest].Bytes())
		if err != nil {
			return nil, err
		}
		external[longest] = ext
		size += len(ext) - n
	}
	return external, nil
}

// storeExternal writes a value off-page. The undo record in the mini-transaction
// that makes the first page lets a rollback free it.
func (w *Worker) storeExternal(t *Table, column int, value []byte) (record.External, error) {
	id, err := w.trx.EnsureID()
	if err != nil {
		return nil, err
	}
	use := space.Ordinary
	writer := lob.NewWriter(w.e.Pool, t.space, t.Where.LOBSegment, id, use)
	if err := w.startExternal(t, writer); err != nil {
		return nil, err
	}
	if _, err := writer.Write(value); err != nil {
		return nil, err
	}
	ref, err := writer.Close()
	if err != nil {
		return nil, err
	}
	ext := ref.Append(make([]byte, 0, lob.RefSize+t.Schema.LocalPrefix[column]))
	return append(ext, value[:min(len(value), t.Schema.LocalPrefix[column])]...), nil
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

// externalizeChanges stores new values off-page that would make the row too long.
func (w *Worker) externalizeChanges(t *Table, key []byte, changes []record.Change) ([]record.Change, error) {
	long := false
	for i := range changes {
		c := &changes[i]
		long = long || t.Schema.MayBeExternal[c.Column] && len(c.Value.Bytes()) > record.MinExternal
	}
	if !long {
		return changes, nil
	}
	old, err := w.own(t, key)
	if err != nil {
		return nil, err
	}
	size, err := t.Schema.UpdatedSize(old, changes)
	w.commit()
	if err != nil || size <= record.MaxInlineRow {
		return changes, err
	}
	changes = append([]record.Change(nil), changes...)
	for size > record.MaxInlineRow {
		longest, n := -1, record.MinExternal
		for i := range changes {
			c := &changes[i]
			if t.Schema.MayBeExternal[c.Column] && c.External == nil && len(c.Value.Bytes()) > max(n, record.LOBRefSize+t.Schema.LocalPrefix[c.Column]) {
				longest, n = i, len(c.Value.Bytes())
			}
		}
		if longest < 0 {
			return w.rewriteLong(t, key, changes)
		}
		c := &changes[longest]
		if c.External, err = w.storeExternal(t, c.Column, c.Value.Bytes()); err != nil {
			return nil, err
		}
		c.Value = types.Null
		size += len(c.External) - n
	}
	return changes, nil
}

// rewriteLong handles an update that makes a row too long although the new values
// are short: columns that it does not change go off-page.
func (w *Worker) rewriteLong(t *Table, key []byte, changes []record.Change) ([]record.Change, error) {
	old, err := w.own(t, key)
	if err != nil {
		return nil, err
	}
	value := append([]byte(nil), old.Val...)
	w.commit()
	old, err = t.Schema.Row(key, value)
	if err != nil {
		return nil, err
	}
	for {
		size, err := t.Schema.UpdatedSize(old, changes)
		if err != nil || size <= record.MaxInlineRow {
			return changes, err
		}
		longest, n := -1, record.MinExternal
		for i := range t.Schema.Columns {
			if !t.Schema.MayBeExternal[i] || t.Schema.Columns[i].DroppedIn != 0 || old.IsExternal(i) || changed(changes, i) {
				continue
			}
			f, err := old.Field(i)
			if err != nil {
				return nil, err
			}
			if len(f.Bytes) > max(n, record.LOBRefSize+t.Schema.LocalPrefix[i]) {
				longest, n = i, len(f.Bytes)
			}
		}
		if longest < 0 {
			return nil, record.ErrRowTooLarge
		}
		f, err := old.Field(longest)
		if err != nil {
			return nil, err
		}
		ext, err := w.storeExternal(t, longest, f.Bytes)
		if err != nil {
			return nil, err
		}
		changes = append(changes, record.Change{Column: longest, External: ext})
	}
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

package table

import (
	"fmt"

	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/storage/undo"
	"github.com/triremedb/trireme/engine/types"
)

// Get appends the wanted columns (positions) of the row with the clustered key to
// the batch, as the snapshot sees it. found is false if it sees no such row.
func (w *Worker) Get(t *Table, key []byte, snap *trx.Snapshot, columns []int, batch *types.Batch) (found bool, err error) {
	w.rm.BeginRead()
	w.look.Init(t.trees[0], w.rm)
	exact, err := w.look.SeekLeaf(key, mtr.S)
	if err != nil || !exact {
		w.release()
		return false, err
	}
	value, deleted, err := w.visible(t, snap, w.look.Value(), w.look.Flags())
	if err != nil || deleted {
		w.release()
		return false, err
	}
	r, err := t.Schema.Row(key, value)
	if err != nil {
		w.release()
		return false, err
	}
	external, err := appendColumns(t, batch, &r, columns)
	if external {
		w.old = append(w.old[:0], value...)
		w.release()
		return w.appendExternal(t, snap, key, w.old, columns, batch, nil)
	}
	w.release()
	return err == nil, err
}

// appendColumns decodes columns of a row into the vectors of a batch. external
// says that one of them lies off-page; nothing is appended then. After an error
// the batch is of no use.
func appendColumns(t *Table, batch *types.Batch, r *record.Row, columns []int) (external bool, err error) {
	for _, c := range columns {
		if t.Schema.MayBeExternal[c] && r.IsExternal(c) {
			return true, nil
		}
	}
	for n, c := range columns {
		if err := r.AppendTo(&batch.Vecs[n], c); err != nil {
			return false, err
		}
	}
	batch.EndRow()
	return false, nil
}

// visible finds the version of a clustered record that the snapshot sees, at or
// before the one given. deleted says that it sees none. The result aliases the
// page or a buffer of the worker.
//
// REQUIRES: the leaf is latched.
func (w *Worker) visible(t *Table, snap *trx.Snapshot, value []byte, flags byte) (version []byte, deleted bool, err error) {
	for n := 0; ; n++ {
		if len(value) < record.HeaderSize {
			return nil, false, fmt.Errorf("%w: version of %d bytes in table %d", record.ErrCorrupt, len(value), t.ID())
		}
		if w.e.Trx.Visible(snap, record.TrxID(value)) {
			return value, flags&record.FlagDeleted != 0, nil
		}
		var exists bool
		value, flags, exists, err = w.older(value, n&1)
		if err != nil || !exists {
			return nil, true, err
		}
	}
}

// older builds the version before the given one in a buffer of the worker, which
// slot names so that the two versions at hand do not share one.
//
// REQUIRES: what package undo asks of who follows a roll pointer.
func (w *Worker) older(value []byte, slot int) (version []byte, flags byte, exists bool, err error) {
	ptr := undo.RollPtr(record.RollPtr(value))
	if ptr.Insert() {
		return nil, 0, false, nil
	}
	if w.undoIn, err = w.e.Undo.Read(w.reader(), ptr, w.undoIn); err != nil {
		return nil, 0, false, err
	}
	rec, err := record.DecodeUndo(w.undoIn)
	if err != nil {
		return nil, 0, false, err
	}
	if w.ver[slot], err = record.ApplyDelta(w.ver[slot][:0], value, rec.Delta); err != nil {
		return nil, 0, false, err
	}
	return w.ver[slot], rec.OldFlags, true, nil
}

// reader is the mini-transaction that is open: undo pages are read in it, after
// the leaf that it holds.
func (w *Worker) reader() *mtr.Mtr {
	if w.rm.Active() {
		return w.rm
	}
	return w.m
}

// GetRow returns the row with the clustered key as the snapshot sees it, all
// columns, with memory of its own; nil if it sees no such row.
func (w *Worker) GetRow(t *Table, key []byte, snap *trx.Snapshot) ([]types.Value, error) {
	w.rm.BeginRead()
	w.look.Init(t.trees[0], w.rm)
	exact, err := w.look.SeekLeaf(key, mtr.S)
	if err != nil || !exact {
		w.release()
		return nil, err
	}
	value, deleted, err := w.visible(t, snap, w.look.Value(), w.look.Flags())
	if err != nil || deleted {
		w.release()
		return nil, err
	}
	value = append([]byte(nil), value...)
	w.release()
	for {
		row, err := w.loadRow(t, key, value)
		if err == nil {
			return row, nil
		}
		if value, err = w.reread(t, snap, key, value, err); err != nil || value == nil {
			return nil, err
		}
	}
}

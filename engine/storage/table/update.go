package table

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// Update changes columns of the row with the clustered key. The caller has found
// the row, normally by a locking read. If a primary key column changes the row is
// deleted and inserted anew. Errors: [ErrNotFound], and those of Insert; the row
// is as it was then.
func (w *Worker) Update(t *Table, key []byte, changes []record.Change) error {
	if err := w.lockTable(t, lock.TableIX); err != nil {
		return err
	}
	for i := range changes {
		if t.touches[0][changes[i].Column] {
			return w.atomically(func() error { return w.move(t, key, changes) })
		}
	}
	return w.atomically(func() error { return w.update(t, key, changes) })
}

// Delete deletes the row with the clustered key. Error: [ErrNotFound].
func (w *Worker) Delete(t *Table, key []byte) error {
	if err := w.lockTable(t, lock.TableIX); err != nil {
		return err
	}
	return w.atomically(func() error { return w.delete(t, key) })
}

// usualUndo is the room for undo that an update makes before it knows the size of
// its record, in bytes.
const usualUndo = 256

// own goes to the row with the key, locks it and returns it. The cursor holds the
// leaf in X.
func (w *Worker) own(t *Table, key []byte) (record.Row, error) {
	index := t.Schema.Keys[0].ID
	for {
		if err := w.begin(); err != nil {
			return record.Row{}, err
		}
		w.cur.Init(t.trees[0], w.m)
		exact, err := w.cur.SeekLeaf(key, mtr.X)
		deleted := exact && err == nil && w.cur.Flags()&record.FlagDeleted != 0
		if err == nil && (!exact || deleted && w.Applying) {
			err = ErrNotFound
			if w.Applying {
				err = fmt.Errorf("%w: changed row is missing in table %d", ErrApply, t.ID())
			}
		}
		var r record.Row
		if err == nil {
			r, err = t.Schema.Row(key, w.cur.Value())
		}
		if err == nil && w.Applying {
			err = w.mayApply(t, r.TrxID())
		}
		if err != nil {
			w.commit()
			return r, err
		}
		if w.Applying {
			return r, nil
		}
		// A deleted row is locked too: who deleted it may not have committed.
		res, err := w.lockRecord(index, key, lock.RecordX, lock.Block, r.TrxID())
		switch {
		case err != nil || res == lock.MustWait:
		case deleted:
			w.commit()
			return r, ErrNotFound
		default:
			return r, nil
		}
		if err = w.letGo(res == lock.MustWait && err == nil, err); err != nil {
			return r, err
		}
	}
}

func (w *Worker) update(t *Table, key []byte, changes []record.Change) error {
	given, top := changes, w.trx.UndoTop()
	shortened := longChanges(t.Schema, changes)
	if shortened {
		var err error
		if changes, err = w.externalizeChanges(t, key, changes); err != nil {
			return err
		}
	}
	for {
		if _, err := w.prepareUndo(usualUndo); err != nil {
			return err
		}
		old, err := w.own(t, key)
		if err != nil {
			return err
		}
		flags := w.cur.Flags()
		w.old = append(w.old[:0], old.Val...)
		old.Val, old.Prefixes = w.old, w.prefixes
		if w.row, err = t.Schema.AppendUpdated(w.row[:0], old, changes); err != nil {
			w.commit()
			if shortened || !errors.Is(err, record.ErrRowTooLarge) {
				return err
			}
			shortened = true // new values are short, and others have to make room
			if changes, err = w.externalizeChanges(t, key, changes); err != nil {
				return err
			}
			continue
		}
		w.undo = record.AppendUndoUpdate(w.undo[:0], t.ID(), key, flags, old.Val, w.row)
		if err = w.listOldSecondary(t, key, old, changes); err == nil {
			w.undo = record.FinishSecondary(w.undo)
			err = w.listOldLOBs(t, key, old)
		}
		if err != nil {
			w.commit()
			return err
		}
		if len(w.undo) > record.MaxUndo {
			w.commit()
			return w.updateInSteps(t, key, given, top)
		}
		done, err := w.replaceHere(t, key, flags)
		if err != nil {
			return err
		}
		if done {
			if err := w.updateSecondaries(t, key, changes); err != nil {
				return err
			}
			w.noteChanged(t, changes) // last: what fails raises nothing
			return nil
		}
	}
}

// updateInSteps handles an update for which one undo record is too small: it would
// have to keep the old values and the old index entries. A deletion keeps only
// these, in as many records as it takes, and the insertion over it only those. What
// the update has stored off-page is taken back first.
func (w *Worker) updateInSteps(t *Table, key []byte, changes []record.Change, top uint64) error {
	if w.trx.UndoTop() > top {
		if err := w.RollbackTo(top); err != nil {
			return err
		}
	}
	return w.move(t, key, changes)
}

// noteChanged is noteCounters for an update.
func (w *Worker) noteChanged(t *Table, changes []record.Change) {
	for _, i := range t.counted {
		for _, c := range changes {
			if c.Column == i {
				row := make([]types.Value, len(t.Schema.Columns))
				row[i] = c.Value
				w.noteCounters(t, row)
			}
		}
	}
}

// listOldSecondary adds to the undo record the secondary keys that the old row
// (w.old) has and the new one (w.row) has not.
func (w *Worker) listOldSecondary(t *Table, key []byte, old record.Row, changes []record.Change) error {
	for _, k := range t.Schema.Keys[1:] {
		if affects, _ := t.columnAffects(k.Position, changes); !affects {
			continue
		}
		gone, _, err := w.secondaryPair(t, k, key, old.Val, w.row)
		if err != nil {
			return err
		}
		if gone {
			w.undo = record.AppendOldSecondary(w.undo, k.ID, w.sec2)
		}
	}
	return nil
}

// secondaryPair builds the secondary keys of two versions of a row, in w.sec2 the
// old and in w.sec the new one. gone says that the old one has an entry that the new one has
// not, made the reverse.
func (w *Worker) secondaryPair(t *Table, k *record.KeySchema, key, older, newer []byte) (gone, made bool, err error) {
	o, err := t.Schema.Row(key, older)
	if err != nil {
		return false, false, err
	}
	n, err := t.Schema.Row(key, newer)
	if err != nil {
		return false, false, err
	}
	if gone, err = w.entryOf(t, k, o); err != nil {
		return false, false, err
	}
	w.sec, w.sec2 = w.sec2, w.sec
	if made, err = w.entryOf(t, k, n); err != nil {
		return false, false, err
	}
	if gone && made && bytes.Equal(w.sec, w.sec2) {
		return false, false, nil
	}
	return gone, made, nil
}

// updateSecondaries brings the secondary indexes from w.old to w.row.
func (w *Worker) updateSecondaries(t *Table, key []byte, changes []record.Change) error {
	for _, k := range t.Schema.Keys[1:] {
		affects, kept := t.columnAffects(k.Position, changes)
		if !affects && !kept {
			continue
		}
		gone, made, err := w.secondaryPair(t, k, key, w.old, w.row)
		if err != nil {
			return err
		}
		if gone {
			if err := w.markSecondary(t, k, bytes.Clone(w.sec2)); err != nil {
				return err
			}
		}
		if !made && !kept {
			continue
		}
		r, err := t.Schema.Row(key, w.row)
		if err != nil {
			return err
		}
		if err := w.insertSecondaryOf(t, k, r); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes a row. Its undo names all its index entries: those for which one record has no
// room are in records before, of changes that leave the row as it is.
func (w *Worker) delete(t *Table, key []byte) error {
	for from := 1; from <= len(t.Schema.Keys); {
		if _, err := w.prepareUndo(usualUndo); err != nil {
			return err
		}
		old, err := w.own(t, key)
		if err != nil {
			return err
		}
		flags := w.cur.Flags()
		w.old = append(w.old[:0], old.Val...)
		old.Val = w.old
		w.row = append(w.row[:0], w.old...)
		w.undo = record.AppendUndoUpdate(w.undo[:0], t.ID(), key, flags, w.old, w.row)
		next, err := w.listForDelete(t, old, from)
		if err != nil {
			w.commit()
			return err
		}
		if next > len(t.Schema.Keys) {
			flags |= record.FlagDeleted
		}
		done, err := w.replaceHere(t, key, flags)
		if err != nil {
			return err
		}
		if done {
			from = next
		}
	}
	t.rows.Add(-1)
	old, err := t.Schema.Row(key, w.old)
	if err != nil {
		return err
	}
	for _, k := range t.Schema.Keys[1:] {
		has, err := w.entryOf(t, k, old)
		if err == nil && has {
			err = w.markSecondary(t, k, w.sec)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// listForDelete adds to the undo record what the row leaves behind when it is deleted: its entries
// in the indexes from a position on, and its off-page values. It returns the position of the first
// entry for which there is no room, or one behind the last index if the record has everything.
func (w *Worker) listForDelete(t *Table, old record.Row, from int) (next int, err error) {
	for next = from; next < len(t.Schema.Keys); next++ {
		k := t.Schema.Keys[next]
		has, err := w.entryOf(t, k, old)
		if err != nil {
			return 0, err
		}
		if !has {
			continue
		}
		n := len(w.undo)
		if w.undo = record.AppendOldSecondary(w.undo, k.ID, w.sec); len(w.undo) >= record.MaxUndo {
			w.undo = record.FinishSecondary(w.undo[:n])
			return next, nil
		}
	}
	w.undo = record.FinishSecondary(w.undo)
	n := len(w.undo)
	err = old.EachExternal(func(_ int, ref []byte) error {
		w.undo = record.AppendOldLOB(w.undo, ref)
		return nil
	})
	if err != nil {
		return 0, err
	}
	if len(w.undo) > record.MaxUndo {
		w.undo = w.undo[:n]
		return next, nil
	}
	return next + 1, nil
}

// move gives a row another primary key: the old row is deleted, the new one
// inserted.
func (w *Worker) move(t *Table, key []byte, changes []record.Change) error {
	key = append([]byte(nil), key...)
	old, err := w.own(t, key)
	if err != nil {
		return err
	}
	value := slices.Clone(old.Val)
	w.commit()
	row, err := w.loadRow(t, key, value)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if c.External != nil {
			return fmt.Errorf("table: off-page value given for column %s", t.Schema.Columns[c.Column].Name)
		}
		row[c.Column] = c.Value
	}
	if err := w.delete(t, key); err != nil {
		return err
	}
	return w.insert(t, row)
}

// loadRow decodes all columns of a record, off-page values included, with memory
// of their own.
func (w *Worker) loadRow(t *Table, key, value []byte) ([]types.Value, error) {
	r, err := t.Schema.Row(key, value)
	if err != nil {
		return nil, err
	}
	row := make([]types.Value, len(t.Schema.Columns))
	for i := range row {
		if t.Schema.Columns[i].DroppedIn != 0 {
			continue
		}
		v, _, err := r.Value(i, nil)
		if err == record.ErrExternal {
			v, err = w.loadExternal(t, r, i)
		}
		if err != nil {
			return nil, err
		}
		row[i] = v.Clone()
	}
	return row, nil
}

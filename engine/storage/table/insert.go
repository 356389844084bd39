package table

import (
	"fmt"

	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
)

// Insert adds a row, given by column position and valid for the columns' types.
// Errors: *[DuplicateError], lock errors, space.ErrNoSpace, record.ErrRowTooLarge
// and ErrKeyTooLong; the row is not there then. A row that has a key of the new one is
// locked in S.
func (w *Worker) Insert(t *Table, row []types.Value) error {
	if err := w.lockTable(t, lock.TableIX); err != nil {
		return err
	}
	return w.atomically(func() error { return w.insert(t, row) })
}

// Upsert is Insert for who will change or delete the row that has a key of the new one:
// that is locked in X. With S first, two of them would wait for each other.
func (w *Worker) Upsert(t *Table, row []types.Value) error {
	w.meets = lock.RecordX
	defer func() { w.meets = lock.RecordS }()
	return w.Insert(t, row)
}

func (w *Worker) insert(t *Table, row []types.Value) error {
	s := t.Schema
	var err error
	if w.key, err = s.AppendRowKey(w.key[:0], row); err != nil {
		return err
	}
	external, err := w.externalize(t, row)
	if err != nil {
		return err
	}
	if w.row, err = s.AppendRow(w.row[:0], row, external); err != nil {
		return err
	}
	if err := w.insertClustered(t, w.key); err != nil {
		return err
	}
	t.rows.Add(1) // a rollback takes it back with the record
	if err := w.insertEntries(t, w.key, w.row); err != nil {
		return err
	}
	w.noteCounters(t, row)
	return nil
}

// insertEntries adds a row to the secondary indexes.
func (w *Worker) insertEntries(t *Table, key, value []byte) error {
	s := t.Schema
	if len(s.Keys) == 1 {
		return nil
	}
	r, err := s.Row(key, value)
	if err != nil {
		return err
	}
	for _, k := range s.Keys[1:] {
		if err := w.insertSecondaryOf(t, k, r); err != nil {
			return err
		}
	}
	return nil
}

// noteCounters keeps AUTO_INCREMENT and the hidden row id ahead of what rows hold,
// now in memory, and on disk with the commit. It comes last in the change of a row.
func (w *Worker) noteCounters(t *Table, row []types.Value) {
	for _, i := range t.counted {
		c := &t.Schema.Columns[i]
		if row[i].IsNull() || !c.Type.Unsigned && row[i].Int() < 0 {
			continue
		}
		v := row[i].Uint()
		var counters [2]uint64
		if c.AutoIncrement {
			t.RaiseAuto(v)
			counters[wordAuto] = t.above(v)
		} else {
			t.RaiseRowID(v)
			counters[wordRow] = t.above(v)
		}
		w.trx.RaiseCounters(t.ID(), t.space, counters)
	}
}

// insertClustered inserts the value w.row under the key.
func (w *Worker) insertClustered(t *Table, key []byte) error {
	tree, index := t.trees[0], t.Schema.Keys[0].ID
	w.undo = record.AppendUndoInsert(w.undo[:0], t.ID(), key)
	for {
		log, err := w.prepareUndo(len(w.undo))
		if err != nil {
			return err
		}
		if err := w.begin(); err != nil {
			return err
		}
		w.cur.Init(tree, w.m)
		exact, err := w.cur.SeekLeaf(key, mtr.X)
		if err != nil {
			w.commit()
			return err
		}
		if exact {
			done, err := w.insertOver(t, key)
			if done || err != nil {
				return err
			}
			continue
		}
		again, must, err := w.mayInsert(index, false)
		if again || err != nil {
			if err = w.letGo(must, err); err != nil {
				return err
			}
			continue
		}
		if !w.cur.Fits(len(key), len(w.row)) {
			w.commit()
			if err := w.makeRoom(tree, key, len(w.row)); err != nil {
				return err
			}
			continue
		}
		ptr, _, err := log.Append(w.m, w.undo, true)
		if err != nil {
			w.commit()
			return err
		}
		record.SetHeader(w.row, w.trx.ID(), uint64(ptr))
		w.cur.Insert(key, 0, w.row)
		w.inherit(index, key)
		w.commit()
		return nil
	}
}

// letGo drops every latch, and waits for the lock that was refused if must.
func (w *Worker) letGo(must bool, err error) error {
	w.commit()
	if err != nil {
		return err
	}
	if must {
		return w.wait()
	}
	w.e.Env.Yield()
	return nil
}

// insertOver meets a record with the key of the row to insert. If that row is
// deleted the new one takes its place; otherwise the key is taken. done is false
// if the caller must start over.
//
// REQUIRES: w.cur stands on the record, in X, and prepareUndo was called.
func (w *Worker) insertOver(t *Table, key []byte) (done bool, err error) {
	k := t.Schema.Keys[0]
	value := w.cur.Value()
	if len(value) < record.HeaderSize {
		w.commit()
		return true, fmt.Errorf("%w: index %d", record.ErrCorrupt, k.ID)
	}
	deleted := w.cur.Flags()&record.FlagDeleted != 0
	mode := w.meets
	if deleted {
		mode = lock.RecordX
	}
	if !w.Applying {
		res, err := w.lockRecord(k.ID, key, mode, lock.Block, record.TrxID(value))
		if err != nil || res == lock.MustWait {
			err = w.letGo(res == lock.MustWait && err == nil, err)
			return err != nil, err
		}
	} else if err := w.mayApply(t, record.TrxID(value)); err != nil {
		w.commit()
		return true, err
	}
	if !deleted {
		w.commit()
		if w.Applying {
			return true, fmt.Errorf("%w: inserted row exists in table %d", ErrApply, t.ID())
		}
		return true, t.duplicate(0, key, key)
	}
	w.undo = record.AppendUndoUpdate(w.undo[:0], t.ID(), key, w.cur.Flags(), value, w.row)
	w.undo = record.FinishSecondary(w.undo)
	done, err = w.replaceHere(t, key, 0)
	if !done && err == nil {
		w.undo = record.AppendUndoInsert(w.undo[:0], t.ID(), key)
	}
	return done, err
}

func (t *Table) duplicate(position int, key, row []byte) error {
	return &DuplicateError{
		Table: t.Schema.Name, Index: t.Schema.Keys[position].Name, Position: position,
		Key: append([]byte(nil), key...), Row: append([]byte(nil), row...),
	}
}

// replaceHere makes w.row, with w.undo as its undo record, the value of the record
// under the cursor, and commits. done is false if room had to be made first: the
// latch is gone and the caller starts over.
//
// REQUIRES: the transaction has an undo log.
func (w *Worker) replaceHere(t *Table, key []byte, flags byte) (done bool, err error) {
	log := w.undoLog()
	if !log.HasRoom(len(w.undo)) {
		size := len(w.undo)
		w.commit()
		if err := log.Prepare(size); err != nil {
			return true, err
		}
		return false, nil
	}
	if !w.cur.FitsUpdate(len(w.row)) {
		w.commit()
		if err := w.makeRoom(t.trees[0], key, len(w.row)); err != nil {
			return true, err
		}
		return false, nil
	}
	ptr, _, err := log.Append(w.m, w.undo, false)
	if err != nil {
		w.commit()
		return true, err
	}
	record.SetHeader(w.row, w.trx.ID(), uint64(ptr))
	w.cur.Update(flags, w.row)
	w.wrote(t, key)
	w.commit()
	return true, nil
}

package table

import (
	"github.com/triremedb/trireme/engine/storage/lob"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/storage/undo"
)

// Purge removes what the version before a committed change has left behind:
// secondary entries that no snapshot can need, off-page values, and the record
// itself if the change deleted it. It may be called again for the same record
// after a crash.
//
// REQUIRES: oldest is open at the purge limit and the change is at or below it; u
// was decoded from the record that ptr points to; the worker has no transaction.
func (w *Worker) Purge(t *Table, u record.UndoRecord, ptr undo.RollPtr, oldest *trx.Snapshot) error {
	if u.Kind != record.UndoUpdate {
		return nil
	}
	err := u.EachSecondary(func(index uint64, entry []byte) error {
		position := t.keyAt(index)
		if position <= 0 {
			return nil // the index was dropped
		}
		return w.passOver(t, position, entry, w.purgeEntry(t, t.Schema.Keys[position], entry, oldest))
	})
	if err != nil {
		return err
	}
	err = u.EachLOB(func(b []byte) error {
		ref, err := lob.Decode(b)
		if err != nil {
			return err
		}
		err = lob.Free(w.e.Pool, t.space, ref)
		if _, ok := damagedPage(err); ok {
			return nil // what cannot be reached stays allocated
		}
		return err
	})
	if err != nil || !u.MayDelete() {
		return err
	}
	return w.passOver(t, 0, u.Key, w.purgeRow(t, u.Key, ptr))
}

// purgeRow removes the clustered record if the change that ptr describes deleted
// it and nothing came after.
func (w *Worker) purgeRow(t *Table, key []byte, ptr undo.RollPtr) error {
	w.rm.BeginRead()
	w.look.Init(t.trees[0], w.rm)
	exact, err := w.look.SeekLeaf(key, mtr.S)
	gone := err == nil && (!exact || !deletedBy(w.look.Value(), w.look.Flags(), ptr))
	w.release()
	if err != nil || gone {
		return err
	}
	return w.removeEntry(t, 0, key, nil, func() (bool, error) {
		return deletedBy(w.cur.Value(), w.cur.Flags(), ptr), nil
	})
}

func deletedBy(value []byte, flags byte, ptr undo.RollPtr) bool {
	return flags&record.FlagDeleted != 0 && len(value) >= record.HeaderSize && undo.RollPtr(record.RollPtr(value)) == ptr
}

// purgeEntry removes a secondary entry that has a delete mark, unless a version
// that some snapshot may see has its key.
func (w *Worker) purgeEntry(t *Table, k *record.KeySchema, entry []byte, oldest *trx.Snapshot) error {
	row, err := w.clusteredOf(t, k, entry)
	if err != nil {
		return err
	}
	err = w.removeEntry(t, k.Position, entry, nil, func() (bool, error) {
		if w.cur.Flags()&record.FlagDeleted == 0 {
			return false, nil
		}
		// The leaf of the secondary index is held, then that of the clustered one:
		// nobody can give the entry back to the row in between.
		w.rm.BeginRead()
		defer w.release()
		w.look.Init(t.trees[0], w.rm)
		exact, err := w.look.SeekLeaf(row, mtr.S)
		if err != nil || !exact {
			return err == nil, err
		}
		needed, err := w.neededBy(t, k, entry, row, w.look.Value(), w.look.Flags(), oldest)
		return !needed, err
	})
	return w.passOver(t, 0, row, err)
}

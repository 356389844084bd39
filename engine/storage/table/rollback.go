package table

import (
	"bytes"
	"errors"

	"github.com/triremedb/trireme/engine/storage/lob"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/storage/undo"
	"github.com/triremedb/trireme/internal/turn"
)

// RollbackTo takes back the transaction's changes since it had mark undo records.
// It can be called again after an error. Error: *[NewerChangeError], and what
// halts the engine.
func (w *Worker) RollbackTo(mark uint64) error {
	_, err := w.RollbackUnless(mark, func() bool { return false })
	return err
}

// leaveEvery is how many changes are taken back between two looks at whether to leave the rest.
const leaveEvery = 256

// RollbackUnless is RollbackTo, but leaves the rest when leave says so, which it asks now and then. What is left is for another rollback, of this
// process or of the next start.
func (w *Worker) RollbackUnless(mark uint64, leave func() bool) (left bool, err error) {
	w.undoing = true
	defer func() { w.undoing = false }()
	var own turn.Turn
	for n := 0; w.trx.UndoTop() > mark; n++ {
		if n%leaveEvery == 0 && leave() {
			return true, nil
		}
		if err := w.undoLast(); err != nil {
			return false, err
		}
		own.Pass()
	}
	w.trx.WentBack(mark)
	return false, nil
}

// Rollback takes back all changes of the transaction and ends it; the caller calls
// trx.System.End.
func (w *Worker) Rollback() error {
	if w.trx.State() != trx.RollingBack { // found again after a crash
		w.trx.StartRollback()
	}
	if err := w.RollbackTo(0); err != nil {
		return err
	}
	w.trx.FinishRollback()
	return nil
}

// undoLast takes back the transaction's last change. The secondary indexes come
// first, the clustered record last, together with the undo record: after a crash
// in between all of it is done again.
func (w *Worker) undoLast() error {
	log := w.undoLog()
	rec, ok, err := log.Last(w.undo)
	if err != nil || !ok {
		return err
	}
	w.undo = rec.Payload
	u, err := record.DecodeUndo(rec.Payload)
	if err != nil {
		return err
	}
	t, err := w.e.Lookup(u.Table)
	switch {
	case errors.Is(err, ErrNoTable) || Lost(err):
		return w.dropUndo(log)
	case err != nil:
		return err
	case u.Kind == record.UndoLOB:
		return w.undoLOB(t, log, u)
	}
	value, flags, ok, err := w.recordOf(t, u.Key, rec.Ptr)
	switch {
	case w.passOver(t, 0, u.Key, err) != nil:
		return err
	case err != nil || !ok:
		return w.dropUndo(log) // the change did not come to pass
	case u.Kind == record.UndoInsert:
		return w.undoInsert(t, log, u, rec.Ptr, value)
	}
	return w.undoUpdate(t, log, u, rec.Ptr, value, flags)
}

// dropUndo takes the last undo record away where there is nothing to revert.
func (w *Worker) dropUndo(log *undo.Log) error {
	if err := w.begin(); err != nil {
		return err
	}
	defer w.m.Commit()
	return log.DropLast(w.m)
}

func (w *Worker) undoLOB(t *Table, log *undo.Log, u record.UndoRecord) error {
	ref, err := lob.Decode(u.Key)
	if err != nil {
		return err
	}
	if err := lob.Free(w.e.Pool, t.space, ref); err != nil {
		if _, ok := damagedPage(err); !ok {
			return err
		}
	}
	return w.dropUndo(log)
}

// recordOf copies the clustered record to w.old, if it is the version that ptr
// describes.
func (w *Worker) recordOf(t *Table, key []byte, ptr undo.RollPtr) (value []byte, flags byte, ok bool, err error) {
	w.rm.BeginRead()
	defer w.release()
	w.look.Init(t.trees[0], w.rm)
	exact, err := w.look.SeekLeaf(key, mtr.S)
	if err != nil || !exact {
		return nil, 0, false, err
	}
	value = w.look.Value()
	if len(value) < record.HeaderSize {
		return nil, 0, false, record.ErrCorrupt
	}
	if undo.RollPtr(record.RollPtr(value)) != ptr {
		newer := record.TrxID(value)
		if _, active := w.e.Trx.Status(newer); active && newer != w.trx.ID() {
			return nil, 0, false, &NewerChangeError{Trx: w.trx.ID(), Newer: newer}
		}
		return nil, 0, false, nil
	}
	w.old = append(w.old[:0], value...)
	return w.old, w.look.Flags(), true, nil
}

func (w *Worker) undoInsert(t *Table, log *undo.Log, u record.UndoRecord, ptr undo.RollPtr, value []byte) error {
	r, err := t.Schema.Row(u.Key, value)
	if err != nil {
		return err
	}
	for i := len(t.Schema.Keys) - 1; i > 0; i-- {
		k := t.Schema.Keys[i]
		has, err := w.entryOf(t, k, r)
		if err != nil {
			return err
		}
		if !has {
			continue
		}
		err = w.removeEntry(t, k.Position, w.sec, w.trx.Locks(), nil)
		if err := w.passOver(t, k.Position, w.sec, err); err != nil {
			return err
		}
	}
	w.e.Env.Yield() // for simulations: the indexes are as before and the row is not
	if err := w.dropRow(t, log, u.Key, ptr, w.trx.Locks()); err != nil {
		return err
	}
	t.rows.Add(-1)
	return nil
}

// dropRow removes the clustered record whose last change ptr describes, together
// with the undo record. inserter is as of removeEntry.
func (w *Worker) dropRow(t *Table, log *undo.Log, key []byte, ptr undo.RollPtr, inserter *lock.Owner) error {
	return w.removeEntry(t, 0, key, inserter, func() (bool, error) {
		if undo.RollPtr(record.RollPtr(w.cur.Value())) != ptr {
			return false, record.ErrCorrupt
		}
		if inserter == nil {
			w.keepLock(t, key) // what a lock on the record becomes, it becomes too
		}
		return true, log.DropLast(w.m)
	})
}

// removeEntry takes an entry out of an index for good, and passes its locks on to
// the gap that it leaves; inserter, if not nil, has inserted it and takes that back.
// before, if not nil, runs with the leaf in X, and says whether to go on.
func (w *Worker) removeEntry(t *Table, position int, key []byte, inserter *lock.Owner, before func() (bool, error)) error {
	tree, index := t.trees[position], t.Schema.Keys[position].ID
	for {
		if err := w.begin(); err != nil {
			return err
		}
		w.cur.Init(tree, w.m)
		exact, err := w.cur.SeekLeaf(key, mtr.X)
		if err != nil || !exact {
			w.commit()
			return err
		}
		next, ok, err := w.nextKey()
		if err != nil || !ok {
			if err = w.letGo(false, err); err != nil {
				return err
			}
			continue
		}
		if before != nil {
			if ok, err := before(); err != nil || !ok {
				w.commit()
				return err
			}
		}
		w.e.Locks.InheritOnRemove(inserter, index, key, next)
		w.cur.Remove()
		thin := w.cur.Thin()
		w.commit()
		if thin {
			if err := tree.Shrink(key); err != nil {
				if _, ok := damagedPage(err); !ok { // else the leaf stays thin
					return err
				}
			}
		}
		return nil
	}
}

// nextKey is the key of the entry after the cursor's, lock.Supremum if there is
// none. Nothing comes between the two before the commit: the locks that are passed
// on would miss it. ok is false if the caller must let go of the leaf and start over.
func (w *Worker) nextKey() (next []byte, ok bool, err error) {
	if at := w.cur.Pos() + 1; at < w.cur.LeafLen() {
		w.next = w.cur.AppendKey(w.next[:0], at)
		return w.next, true, nil
	}
	next, ok, err = w.cur.HoldNext(w.next[:0])
	if _, damaged := damagedPage(err); damaged {
		return lock.Supremum, true, nil // nobody can go on to the next entry
	}
	if next == nil {
		return lock.Supremum, ok, err
	}
	w.next = next
	return next, ok, err
}

func (w *Worker) undoUpdate(t *Table, log *undo.Log, u record.UndoRecord, ptr undo.RollPtr, newer []byte, flags byte) error {
	var err error
	if w.row, err = record.ApplyDelta(w.row[:0], newer, u.Delta); err != nil {
		return err
	}
	var view trx.View
	w.e.Trx.OpenOldest(&view)
	defer w.e.Trx.CloseSnapshot(&view)
	isDeleted, wasDeleted := flags&record.FlagDeleted != 0, u.OldFlags&record.FlagDeleted != 0
	for i := len(t.Schema.Keys) - 1; i > 0; i-- {
		if err := w.undoEntries(t, t.Schema.Keys[i], u, newer, isDeleted, &view.Snapshot); err != nil {
			return err
		}
	}
	w.e.Env.Yield() // for simulations, as in undoInsert
	if wasDeleted && w.e.Trx.Visible(&view.Snapshot, record.TrxID(w.row)) {
		// Purge may have come by already, and left the record to this transaction.
		err = w.dropRow(t, log, u.Key, ptr, nil)
	} else {
		err = w.restoreRow(t, log, u, ptr)
	}
	if err != nil {
		return err
	}
	switch {
	case isDeleted && !wasDeleted:
		t.rows.Add(1)
	case !isDeleted && wasDeleted:
		t.rows.Add(-1)
	}
	return nil
}

// undoEntries takes back what an update has done in an index. A version that is deleted has no entry, and perhaps
// no off-page values any more. If both versions have what entries are made from, the update has not been
// there: nothing is read then.
func (w *Worker) undoEntries(t *Table, k *record.KeySchema, u record.UndoRecord, newer []byte, isDeleted bool, oldest *trx.Snapshot) error {
	wasDeleted := u.OldFlags&record.FlagDeleted != 0
	n, err := t.Schema.Row(u.Key, newer)
	if err != nil {
		return err
	}
	o, err := t.Schema.Row(u.Key, w.row)
	if err != nil {
		return err
	}
	if !isDeleted && !wasDeleted {
		if same, err := k.SameFields(o, n); err != nil || same {
			return err
		}
	}
	gone, made := isDeleted, false
	switch {
	case isDeleted:
	case wasDeleted:
		made, err = w.entryOf(t, k, n)
	default:
		gone, made, err = w.secondaryPair(t, k, u.Key, w.row, newer)
	}
	if err != nil {
		return err
	}
	if made {
		err := w.withdraw(t, k, w.sec, w.row, u.OldFlags, oldest)
		if err := w.passOver(t, k.Position, w.sec, err); err != nil {
			return err
		}
	}
	if wasDeleted || !gone && len(k.Kept) == 0 {
		return nil
	}
	return w.passOver(t, k.Position, w.sec, w.restoreEntry(t, k, u.Key))
}

// restoreEntry makes the entry of the older version (w.row) count again, if it has one.
func (w *Worker) restoreEntry(t *Table, k *record.KeySchema, key []byte) error {
	r, err := t.Schema.Row(key, w.row)
	if err != nil {
		return err
	}
	partLen, _, err := w.secondaryKey(t, k, r)
	if errors.Is(err, record.ErrKeyTooLong) {
		return nil // see entryOf
	}
	if err == nil {
		err = w.entryValue(t, k, r, partLen)
	}
	if err != nil {
		return err
	}
	return w.insertSecondary(t, k, w.sec, w.secVal, partLen, false)
}

// restoreRow puts the older version (w.row) back into the clustered record.
func (w *Worker) restoreRow(t *Table, log *undo.Log, u record.UndoRecord, ptr undo.RollPtr) error {
	for {
		if err := w.begin(); err != nil {
			return err
		}
		w.cur.Init(t.trees[0], w.m)
		exact, err := w.cur.SeekLeaf(u.Key, mtr.X)
		if err == nil && (!exact || undo.RollPtr(record.RollPtr(w.cur.Value())) != ptr) {
			err = record.ErrCorrupt
		}
		if err != nil {
			w.commit()
			return err
		}
		if !w.cur.FitsUpdate(len(w.row)) {
			w.commit()
			if err := w.makeRoom(t.trees[0], u.Key, len(w.row)); err != nil {
				return err
			}
			continue
		}
		if err := log.DropLast(w.m); err != nil {
			w.commit()
			return err
		}
		w.keepLock(t, u.Key)
		w.cur.Update(u.OldFlags, w.row)
		w.commit()
		return nil
	}
}

// withdraw takes back a secondary entry that a version no longer has: it is
// removed, or left with a delete mark while an older version that some snapshot
// may see has the same key. version is the newest of those.
func (w *Worker) withdraw(t *Table, k *record.KeySchema, entry, version []byte, flags byte, oldest *trx.Snapshot) error {
	entry = append([]byte(nil), entry...)
	row, err := w.clusteredOf(t, k, entry)
	if err != nil || row == nil {
		return err
	}
	w.rm.BeginRead()
	needed, err := w.neededBy(t, k, entry, row, version, flags, oldest)
	w.release()
	if err != nil {
		return err
	}
	if needed {
		// Not there if the index is younger than that version, and the change that is
		// taken back had not come to the index.
		_, err = w.mark(t, k, entry)
		return err
	}
	return w.removeEntry(t, k.Position, entry, w.trx.Locks(), nil)
}

// clusteredOf returns a copy of the clustered key in a secondary entry, nil if the
// entry is not there.
func (w *Worker) clusteredOf(t *Table, k *record.KeySchema, entry []byte) ([]byte, error) {
	n, err := k.PartLen(entry, len(k.Parts))
	if err != nil {
		return nil, err
	}
	return append([]byte(nil), entry[n:]...), nil
}

// neededBy reports whether a version, from the given one backwards to the newest
// that every snapshot sees, has the secondary key.
//
// REQUIRES: oldest is open at the purge limit, so that the undo of every younger
// version is there; a mini-transaction is open.
func (w *Worker) neededBy(t *Table, k *record.KeySchema, entry, row, version []byte, flags byte, oldest *trx.Snapshot) (bool, error) {
	for n := 0; ; n++ {
		r, err := t.Schema.Row(row, version)
		if err != nil {
			return false, err
		}
		if flags&record.FlagDeleted == 0 {
			w.key, _, _, err = w.appendEntry(w.key[:0], t, k, r)
			switch {
			case errors.Is(err, record.ErrKeyTooLong):
				// Older than the index, which could not have taken it.
			case lostPrefix(err):
				return true, nil // nobody can tell
			case err != nil:
				return false, err
			case bytes.Equal(w.key, entry):
				return true, nil
			}
		}
		if w.e.Trx.Visible(oldest, r.TrxID()) {
			return false, nil
		}
		var exists bool
		version, flags, exists, err = w.older(version, n&1)
		if err != nil || !exists {
			if undo.Damaged(err) {
				return true, nil // nobody can tell
			}
			return false, err
		}
	}
}

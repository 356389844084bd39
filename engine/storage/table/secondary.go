package table

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
)

// appendEntry appends the key of the row's entry in a secondary index, see
// [record.Schema.AppendSecondary]. What the row does not keep of an off-page value is read:
// the value must be there still, which it is
//
//   - of the newest version of a row that is not deleted, under the leaf's latch: whoever takes
//     the value away changes the row before;
//   - of any version that a snapshot sees, or that lies behind one which none of the open
//     snapshots sees, until the last of them is closed;
//   - of the worker's own changes, and the versions before them, until the undo record is gone.
//
// The value of a deleted row may be gone before the row. Else the error wraps lob.ErrGone.
func (w *Worker) appendEntry(dst []byte, t *Table, k *record.KeySchema, r record.Row) (key []byte, partLen int, hasNull bool, err error) {
	r.Prefixes = w.prefixes
	key, partLen, hasNull, w.arena, err = t.Schema.AppendSecondary(dst, k, r, w.arena[:0])
	return key, partLen, hasNull, err
}

// entryValue builds the value of the row's entry in w.secVal, under the same condition.
func (w *Worker) entryValue(t *Table, k *record.KeySchema, r record.Row, partLen int) (err error) {
	w.secVal, err = w.appendEntryValue(w.secVal[:0], t, k, r, partLen)
	return err
}

func (w *Worker) appendEntryValue(dst []byte, t *Table, k *record.KeySchema, r record.Row, partLen int) ([]byte, error) {
	r.Prefixes = w.prefixes
	return t.Schema.AppendSecondaryValue(dst, k, r, partLen)
}

// secondaryKey builds the key of the row's entry in w.sec.
func (w *Worker) secondaryKey(t *Table, k *record.KeySchema, r record.Row) (partLen int, hasNull bool, err error) {
	w.sec, partLen, hasNull, err = w.appendEntry(w.sec[:0], t, k, r)
	return partLen, hasNull, err
}

// entryOf is secondaryKey of a version that may be older than the index, and so too long for it: has is
// false then. It has no entry there, and the build fails if it meets the row as it is.
func (w *Worker) entryOf(t *Table, k *record.KeySchema, r record.Row) (has bool, err error) {
	if _, _, err = w.secondaryKey(t, k, r); errors.Is(err, record.ErrKeyTooLong) {
		return false, nil
	}
	return err == nil, err
}

// insertSecondaryOf inserts the row's entry into a secondary index.
func (w *Worker) insertSecondaryOf(t *Table, k *record.KeySchema, r record.Row) error {
	partLen, hasNull, err := w.secondaryKey(t, k, r)
	if err != nil {
		return err
	}
	if err = w.entryValue(t, k, r, partLen); err != nil {
		return err
	}
	unique := k.Unique && !hasNull && !w.Applying
	return w.insertSecondary(t, k, w.sec, w.secVal, partLen, unique)
}

// insertSecondary inserts an entry, or revives it if it is there as deleted.
func (w *Worker) insertSecondary(t *Table, k *record.KeySchema, key, value []byte, partLen int, unique bool) error {
	return w.putSecondary(t, k, key, partLen, unique, func(bool) ([]byte, byte, bool, error) { return value, 0, true, nil })
}

// putSecondary is insertSecondary of what entry gives under the X latch of the leaf to
// which the key belongs, told whether there is one: value and flags, or that there is nothing to
// do. An entry that is there keeps its place, and its value if it is to be deleted.
func (w *Worker) putSecondary(t *Table, k *record.KeySchema, key []byte, partLen int, unique bool, entry func(exact bool) (value []byte, flags byte, put bool, err error)) error {
	tree := t.trees[k.Position]
	id, err := w.trx.EnsureID()
	if err != nil {
		return err
	}
	defer w.giveProbed(t)
	for {
		if err := w.begin(); err != nil {
			return err
		}
		w.cur.Init(tree, w.m)
		exact, err := w.cur.SeekLeaf(key, mtr.X)
		if err != nil {
			w.commit()
			return err
		}
		if unique {
			var free bool
			if free, exact, err = w.checkUnique(t, k, key, partLen); err != nil {
				return err
			}
			if !free {
				continue
			}
		}
		value, flags, put, err := entry(exact)
		if err != nil || !put {
			w.commit()
			return err
		}
		if exact && flags&record.FlagDeleted != 0 {
			w.cur.SetFlags(w.cur.Flags() | record.FlagDeleted)
			w.cur.RaiseMaxTrx(id)
			w.commit()
			return nil
		}
		if exact {
			if !w.cur.FitsUpdate(len(value)) {
				w.commit()
				if err := w.makeRoom(tree, key, len(value)); err != nil {
					return err
				}
				continue
			}
			w.cur.Update(w.cur.Flags()&^record.FlagDeleted, value)
			w.cur.RaiseMaxTrx(id)
			w.commit()
			return nil
		}
		again, must, err := w.mayInsert(k.ID, false)
		if again || err != nil {
			if err = w.letGo(must, err); err != nil {
				return err
			}
			continue
		}
		if !w.cur.Fits(len(key), len(value)) {
			w.commit()
			if err := w.makeRoom(tree, key, len(value)); err != nil {
				return err
			}
			continue
		}
		w.cur.Insert(key, flags, value)
		w.cur.RaiseMaxTrx(id)
		w.inherit(k.ID, key)
		w.commit()
		return nil
	}
}

// checkUnique looks, under the X latch of the leaf to which key belongs, for
// other entries with the same first part. free says that there are none which
// count, and the latch is held, again or still; exact then says whether the cursor
// stands on key. Otherwise everything is let go, and the caller starts over or gets
// an error.
//
// Entries with the same part may reach over the leaf's bounds. Then a lock on the
// part itself, which is no entry's key, makes such inserts come one after the
// other; an insert that sees all of them within its leaf only asks whether
// someone holds that lock.
func (w *Worker) checkUnique(t *Table, k *record.KeySchema, key []byte, partLen int) (free, exact bool, err error) {
	part := key[:partLen]
	lo, hi := w.cur.Bounds()
	inside := withinBounds(part, lo, hi)
	mode := lock.InsertIntention
	if !inside {
		mode = lock.NextKeyX
	}
	res, err := w.e.Locks.AcquireHinted(w.trx.Locks(), lock.Request{Index: k.ID, Key: part, Mode: mode, Timeout: w.trx.LockWait()}, &lock.Hint{NoEntry: true})
	if err != nil || res == lock.MustWait {
		w.giveProbed(t)
		return false, false, w.letGo(err == nil, err)
	}
	if inside {
		return w.checkHere(t, k, key, part)
	}
	w.commit()
	if err := w.checkAcross(t, k, key, part); err != nil {
		return false, false, err
	}
	if err := w.begin(); err != nil {
		return false, false, err
	}
	w.cur.Init(t.trees[k.Position], w.m)
	if exact, err = w.cur.SeekLeaf(key, mtr.X); err != nil {
		w.commit()
	}
	return err == nil, exact, err
}

// checkHere is checkUnique where all entries with the part are in the leaf at hand.
// It stays latched while their rows are looked up: whoever would give one of them
// such an entry has to come here first.
func (w *Worker) checkHere(t *Table, k *record.KeySchema, key, part []byte) (free, exact bool, err error) {
	at, exact := w.cur.Search(key)
	pos, _ := w.cur.Search(part)
	for ; pos < w.cur.LeafLen(); pos++ {
		w.sec2 = w.cur.AppendKey(w.sec2[:0], pos)
		if !bytes.HasPrefix(w.sec2, part) {
			break
		}
		if bytes.Equal(w.sec2, key) {
			continue
		}
		_, _, value := w.cur.At(pos)
		row, err := record.ClusteredKey(w.sec2, value)
		if err != nil {
			w.commit()
			return false, false, err
		}
		must, err := w.probe(t, k, w.sec2, row, part)
		if must || err != nil {
			return false, false, w.letGo(must, err)
		}
	}
	w.cur.SetPos(at)
	return true, exact, nil
}

// checkAcross looks for entries with the part in all leaves, one after the other. It
// never has to go back: nobody else inserts such an entry, and whoever had changed the
// rows of those that it has passed has committed.
//
// REQUIRES: the lock on the part is held.
func (w *Worker) checkAcross(t *Table, k *record.KeySchema, key, part []byte) error {
	entry, after := bytes.Clone(part), false
	for {
		row, found, err := w.findOther(t, k, key, part, entry, after)
		if err != nil || !found {
			return err
		}
		entry, after = append(entry[:0], w.sec2...), true
		for must := true; must; {
			if must, err = w.probe(t, k, entry, row, part); err == nil && must {
				err = w.wait()
			}
			if err != nil {
				return err
			}
		}
	}
}

// findOther finds the first entry at from, or after it, with the part that is not
// key. Its key is in w.sec2; row is a copy of the clustered key.
func (w *Worker) findOther(t *Table, k *record.KeySchema, key, part, from []byte, after bool) (row []byte, found bool, err error) {
	w.rm.BeginRead()
	defer w.release()
	w.look.Init(t.trees[k.Position], w.rm)
	exact, err := w.look.Seek(from, mtr.S)
	if err == nil && exact && after {
		err = w.look.Next()
	}
	for err == nil && w.look.Valid() {
		w.sec2 = append(w.sec2[:0], w.look.Key()...)
		if !bytes.HasPrefix(w.sec2, part) {
			return nil, false, nil
		}
		if !bytes.Equal(w.sec2, key) {
			row, err := record.ClusteredKey(w.sec2, w.look.Value())
			return bytes.Clone(row), err == nil, err
		}
		err = w.look.Next()
	}
	return nil, false, err
}

// probe finds out whether the row that a secondary entry points to really has the
// entry's key: it locks the row and compares. If it has, the key is taken,
// which is an error. must says that the lock has to be waited for.
//
// A row that does not have the key needs no lock, only its last writer to have ended: whoever
// gives it the key later comes to the index, as this insert does. So the lock is given up
// then, and before another row is waited for: rows get and lose the key in any order, and
// those who look for it would wait for each other.
func (w *Worker) probe(t *Table, k *record.KeySchema, entry, row, part []byte) (must bool, err error) {
	w.rm.BeginRead()
	defer w.release()
	w.look.Init(t.trees[0], w.rm)
	exact, err := w.look.SeekLeaf(row, mtr.S)
	if err != nil || !exact {
		return false, err
	}
	r, err := t.Schema.Row(row, w.look.Value())
	if err != nil {
		return false, err
	}
	has := w.look.Flags()&record.FlagDeleted == 0
	if has {
		if w.next, _, _, err = w.appendEntry(w.next[:0], t, k, r); err != nil && !errors.Is(err, record.ErrKeyTooLong) {
			return false, err
		}
		has = err == nil && bytes.Equal(w.next, entry)
	}
	if !has {
		if settled, in := w.e.Trx.Settled(r.TrxID()); settled {
			if in != 0 {
				w.trx.AddDependence(in)
			}
			if bytes.Equal(w.probed, row) {
				w.giveProbed(t)
			}
			return false, nil
		}
	}
	policy := lock.Block
	if w.filling { // must leave no lock behind, see awaitWriter
		policy = lock.SkipLocked
	}
	res, err := w.lockRecord(t.Schema.Keys[0].ID, row, w.meets, policy, r.TrxID())
	if err != nil {
		return false, err
	}
	if res == lock.Skip {
		return false, &busyRow{bytes.Clone(row)}
	}
	if res != lock.Held && !bytes.Equal(w.probed, row) {
		w.giveProbed(t)
		w.probed = append(w.probed, row...)
	}
	if res == lock.MustWait {
		return true, nil
	}
	if has {
		w.probed = w.probed[:0] // the lock stays
		return false, t.duplicate(k.Position, part, row)
	}
	return false, nil // this transaction has changed the row, or who has is just done
}

// giveProbed gives up the lock on the row that was probed last, if it was new.
func (w *Worker) giveProbed(t *Table) {
	if len(w.probed) > 0 {
		w.e.Locks.Unlock(w.trx.Locks(), t.Schema.Keys[0].ID, w.probed, w.meets, lock.Area{})
		w.probed = w.probed[:0]
	}
}

// markSecondary sets the delete mark of the entry of a row's version in w.old, which
// must exist. In an index that is being built it may not have been filled in yet: it is put
// there as deleted then, so that others who want its key find the row in their way as
// long as its change may be taken back, and whoever fills the index knows that it is not the
// row's any more. He may do so just before: then it is marked after all.
func (w *Worker) markSecondary(t *Table, k *record.KeySchema, key []byte) error {
	found, err := w.mark(t, k, key)
	if err == nil && !found && k.Building {
		w.e.Env.Yield() // for simulations: who fills the index may come by
		return w.fillDeleted(t, k, key)
	}
	if err == nil && !found {
		err = fmt.Errorf("%w: index %s of table %s.%s has no entry for a row", record.ErrCorrupt, k.Name, t.Schema.Table.Schema, t.Schema.Name)
	}
	return err
}

// mark sets the delete mark of an entry, if it is there.
func (w *Worker) mark(t *Table, k *record.KeySchema, key []byte) (found bool, err error) {
	id, err := w.trx.EnsureID()
	if err != nil {
		return false, err
	}
	if err := w.begin(); err != nil {
		return false, err
	}
	defer w.commit()
	w.cur.Init(t.trees[k.Position], w.m)
	exact, err := w.cur.SeekLeaf(key, mtr.X)
	if err != nil || !exact {
		return false, err
	}
	w.cur.SetFlags(w.cur.Flags() | record.FlagDeleted)
	w.cur.RaiseMaxTrx(id)
	return true, nil
}

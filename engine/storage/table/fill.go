package table

import (
	"bytes"
	"errors"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// Filling an index that is Building, beside the changes of others.
//
// The rows are read, their entries sorted, and each is put into the tree unless it is
// there. Both are done with rows whose last writer is settled: it has ended, or is in doubt,
// and then the build depends on it; for who applies the log it is enough that the writer has done all
// its changes, since they are taken back only after the builds have ended. Otherwise that is waited for. A writer who takes a change
// back goes to the indexes first and to the row last, so that a row which it has changed
// says nothing about the index; and the older entry comes back unasked (restoreEntry),
// whoever has got its key in the index meanwhile.
//
// Between reading and putting the row may have changed. Whoever changes a row comes to the index
// after that, and what a change removes that is not there yet is put there as deleted
// (markSecondary), to keep its key until the change is committed. The build holds a snapshot from before
// it has read anything, so that purge leaves such entries where they are. Hence an entry of which
// there is nothing in the index is the row's still, or whoever has changed the row is on the way
// to mark it; and one that is there, deleted or not, was put there by someone who knows
// better. Only if the change that was read may have been taken back since (its writer was in doubt), the row is
// looked at again, under the latch of the entry's leaf.
//
// Hence at the end of FillIndex the newest version of each row has its entry, and each entry of
// a unique index has been compared with the others; older versions may lack theirs, so
// that snapshots from before cannot use the index.
//
// The build keeps no row locked, so that it is in nobody's way and in no deadlock.

// FillIndex puts what an index that is Building lacks into it, beside changes by
// others (of the worker's kind: sessions, or others that apply the log), and returns the number of entries looked at. It may be called again after an
// error or a crash, and finds out itself whether there is nothing there yet and nobody
// else at work (alone), which is faster.
//
// Errors: *[DuplicateError] if the index is unique and the worker does not apply the log,
// record.ErrKeyTooLong, lock errors, space.ErrNoSpace, and file.ErrNoSpace.
//
// REQUIRES: alone only if nobody else changes rows of the table; the worker has a
// transaction.
func (w *Worker) FillIndex(t *Table, position int, alone bool, opt LoadOptions) (entries int64, err error) {
	if alone {
		if empty, err := t.trees[position].IsEmpty(w.rm); err != nil {
			return 0, err
		} else if empty {
			return w.fillAlone(t, position, opt)
		}
	}
	// A process that ended may have left them when it was alone.
	if err := t.trees[position].Discard(); err != nil {
		return 0, err
	}
	var view trx.View
	w.e.Trx.OpenSnapshot(&view)
	defer w.e.Trx.CloseSnapshot(&view)
	opt.setDefaults()
	x := newIndexSort(w, t, opt)
	defer func() {
		if cerr := x.sorter.Close(); err == nil {
			err = cerr
		}
	}()
	key := t.Schema.Keys[position]
	var k walk
	k.start(w, t, 0, nil)
	k.pick = func(_, value []byte, flags byte) ([]byte, byte, bool, error) {
		ended, err := w.hasEnded(value)
		if err == nil && !ended {
			return nil, flagUnsettled, true, nil
		}
		return value, flags, flags&record.FlagDeleted == 0, err
	}
	for more := true; more; {
		if more, err = k.next(); err != nil {
			return 0, err
		}
		for i := range k.items {
			if err := x.addSettled(key, &k, i); err != nil {
				return 0, err
			}
		}
		if opt.Stop != nil {
			if err := opt.Stop(); err != nil {
				return 0, err
			}
		}
	}
	return x.fill(key)
}

// flagUnsettled says of an item of a walk that its last writer has not ended.
const flagUnsettled = 1 << 7

// addSettled adds the entry of an item of the walk, once it is known what its last writer does.
func (x *indexSort) addSettled(key *record.KeySchema, k *walk, i int) error {
	if k.items[i].flags&flagUnsettled == 0 {
		r, err := k.row(i)
		if err != nil {
			return err
		}
		return x.add(key, r, 0)
	}
	return x.w.withSettled(x.t, k.key(i), x.opt.Stop, func(r record.Row) error {
		if r.Val == nil {
			return nil
		}
		return x.add(key, r, sortedInDoubt)
	})
}

// withSettled calls fn with what settledRow returns, and again with what is there then if an off-page
// value is gone meanwhile: if its writer was in doubt the change may be taken back.
func (w *Worker) withSettled(t *Table, key []byte, stop func() error, fn func(record.Row) error) error {
	var before []byte
	for {
		r, err := w.settledRow(t, key, stop)
		if err != nil {
			return err
		}
		if err = fn(r); !isGone(err) || bytes.Equal(r.Val, before) {
			return err
		}
		before = bytes.Clone(r.Val)
	}
}

// hasEnded reports whether the last writer of a row, whose leaf is latched, will not take its
// change back: it is committed, or the worker itself.
func (w *Worker) hasEnded(value []byte) (bool, error) {
	writer, err := writerOf(value)
	if err != nil || writer == w.trx.ID() {
		return err == nil, err
	}
	settled, entry := w.e.Trx.Settled(writer)
	return settled && entry == 0, nil
}

// isSettled reports whether the last writer of a row, whose leaf is latched, is settled, or
// is the worker itself.
func (w *Worker) isSettled(value []byte) (bool, error) {
	writer, err := writerOf(value)
	if err != nil || writer == w.trx.ID() {
		return err == nil, err
	}
	if w.Applying {
		return !w.e.Trx.Executing(writer), nil
	}
	settled, entry := w.e.Trx.Settled(writer)
	if entry != 0 {
		w.trx.AddDependence(entry)
	}
	return settled, nil
}

// settledRow returns a copy, in w.old, of the newest version of the row, once its last writer
// is settled; no value if there is no such row.
func (w *Worker) settledRow(t *Table, key []byte, stop func() error) (record.Row, error) {
	for {
		r, settled, err := w.newest(t, key)
		if settled || err != nil {
			return r, err
		}
		if r, settled, err = w.awaitWriter(t, key); settled || err != nil {
			return r, err
		}
		if stop != nil {
			if err := stop(); err != nil {
				return record.Row{}, err
			}
		}
	}
}

// newest is settledRow of a row as it is now; settled is false if it says nothing yet.
func (w *Worker) newest(t *Table, key []byte) (r record.Row, settled bool, err error) {
	w.rm.BeginRead()
	defer w.release()
	w.look.Init(t.trees[0], w.rm)
	exact, err := w.look.SeekLeaf(key, mtr.S)
	if err != nil || !exact {
		return r, err == nil, err
	}
	if settled, err = w.isSettled(w.look.Value()); err != nil || !settled || w.look.Flags()&record.FlagDeleted != 0 {
		return r, settled, err
	}
	w.old = append(w.old[:0], w.look.Value()...)
	r, err = t.Schema.Row(key, w.old)
	return r, err == nil, err
}

// writerWait is how long a build waits for a writer before it asks whether to give up.
const writerWait = time.Second

// applierWait is how long a build that applies the log waits before it looks at a row again. Other
// appliers take no locks by which it could wait for them, and it has time.
const applierWait = time.Millisecond

// awaitWriter waits for the row's last writer by the lock on the row, and looks at the row
// while it has that. A transaction made for it takes the lock, so that nothing is left of
// it, no lock on a gap either where the row goes. settled is false if the wait was in vain.
func (w *Worker) awaitWriter(t *Table, key []byte) (r record.Row, settled bool, err error) {
	if w.Applying {
		env.Sleep(w.e.Env, applierWait)
		return w.newest(t, key)
	}
	own := w.trx
	w.trx = w.e.Trx.Begin(trx.Options{LockWait: writerWait})
	defer func(waiter *trx.Trx) {
		w.trx = own
		w.e.Trx.End(waiter)
	}(w.trx)
	must, err := w.lockNewest(t, key)
	if err == nil && must {
		err = w.wait()
	}
	w.trx = own
	if errors.Is(err, lock.ErrTimeout) {
		return r, false, nil
	}
	if err != nil {
		return r, false, err
	}
	return w.newest(t, key)
}

// lockNewest asks for the lock on a row.
func (w *Worker) lockNewest(t *Table, key []byte) (must bool, err error) {
	w.rm.BeginRead()
	defer w.release()
	w.look.Init(t.trees[0], w.rm)
	exact, err := w.look.SeekLeaf(key, mtr.S)
	if err != nil || !exact {
		return false, err
	}
	writer, err := writerOf(w.look.Value())
	if err != nil {
		return false, err
	}
	res, err := w.lockRecord(t.Schema.Keys[0].ID, key, lock.RecordS, lock.Block, writer)
	return res == lock.MustWait, err
}

// fillAlone loads the empty tree with what is committed, and what the worker's own
// transaction has changed. If that fails it gives back the pages that it has taken, as the disk may
// be full and the next try far off; what cannot be given back now goes before that.
func (w *Worker) fillAlone(t *Table, position int, opt LoadOptions) (int64, error) {
	var view trx.View
	w.e.Trx.OpenSnapshot(&view)
	defer w.e.Trx.CloseSnapshot(&view)
	view.Own = w.trx.ID()
	n, err := w.BuildIndex(t, position, &view.Snapshot, opt)
	if err != nil {
		_ = t.trees[position].Discard()
	}
	return n, err
}

// fill puts the sorted entries into the tree.
func (x *indexSort) fill(k *record.KeySchema) (n int64, err error) {
	if err := x.sorter.Finish(); err != nil {
		return 0, err
	}
	w, stop := x.w, x.opt.Stop
	compared := k.Unique && !w.Applying // entries without NULL are
	var run entryRun
	for {
		key, value, ok, err := x.sorter.Next()
		if err != nil {
			return n, err
		}
		flags := byte(0)
		if ok {
			key, flags, value = key[1:], value[0], value[1:]
		}
		doubt := flags&sortedInDoubt != 0
		if !ok || doubt || run.isFull() {
			if err := w.fillRun(x.t, k, &run, stop); err != nil || !ok {
				return n, err
			}
		}
		if !doubt {
			run.add(key, value, compared && flags&sortedNull == 0)
		} else if err := w.fillEntry(x.t, k, key, value, flags, stop); err != nil {
			return n, err
		}
		if n++; stop != nil && n%stopEvery == 0 {
			if err := stop(); err != nil {
				return n, err
			}
		}
	}
}

// fillEntry puts an entry into the index if the row that it points to still has it.
func (w *Worker) fillEntry(t *Table, k *record.KeySchema, key, value []byte, flags byte, stop func() error) error {
	defer w.e.Env.Yield()
	part, err := k.PartLen(key, len(k.Parts))
	if err != nil {
		return err
	}
	row := key[part:]
	unique := k.Unique && flags&sortedNull == 0 && !w.Applying
	sure := flags&sortedInDoubt == 0
	// Only an entry that others are compared with has to be looked at before it is tried.
	for look := unique && !sure; ; look = true {
		if look {
			has := false
			err := w.withSettled(t, row, stop, func(r record.Row) (err error) {
				has, err = w.hasEntry(t, k, r, key)
				return err
			})
			if err != nil || !has {
				return err
			}
		}
		done, err := w.tryEntry(t, k, key, value, part, unique, sure)
		var busy *busyRow
		if unique {
			// The part itself, see checkUnique: the entry keeps its key from now on.
			w.e.Locks.Unlock(w.trx.Locks(), k.ID, key[:part], lock.NextKeyX, lock.Area{})
		}
		var taken *DuplicateError
		switch {
		case errors.As(err, &busy):
			if _, _, err = w.awaitWriter(t, busy.key); err == nil && stop != nil {
				err = stop()
			}
			if err != nil {
				return err
			}
		case errors.As(err, &taken):
			// The other row has the key, and is locked. Does this one have it still?
			r, settled, rerr := w.newest(t, row)
			has := false
			if rerr == nil && settled {
				has, rerr = w.hasEntry(t, k, r, key)
			}
			if rerr != nil && !isGone(rerr) {
				return rerr
			}
			if has {
				return err
			}
			w.e.Locks.Unlock(w.trx.Locks(), t.Schema.Keys[0].ID, taken.Row, w.meets, lock.Area{})
		case err != nil || done:
			return err
		}
	}
}

// busyRow is the error of an entry that has to wait for a row which is locked.
type busyRow struct{ key []byte }

func (*busyRow) Error() string { return "table: a row is locked" }

// hasEntry reports whether a row, if there is one, has the entry.
func (w *Worker) hasEntry(t *Table, k *record.KeySchema, r record.Row, entry []byte) (has bool, err error) {
	if r.Val == nil {
		return false, nil
	}
	w.key, _, _, err = w.appendEntry(w.key[:0], t, k, r)
	if errors.Is(err, record.ErrKeyTooLong) {
		return false, nil
	}
	return bytes.Equal(w.key, entry), err
}

// tryEntry puts the entry there if the row has it, of which sure tells. done is false if somebody
// is changing the row, or has.
func (w *Worker) tryEntry(t *Table, k *record.KeySchema, key, value []byte, part int, unique, sure bool) (done bool, err error) {
	w.filling = true
	defer func() { w.filling = false }()
	err = w.putSecondary(t, k, key, part, unique, func(exact bool) ([]byte, byte, bool, error) {
		if sure {
			done = true
			return value, 0, !exact, nil
		}
		r, settled, err := w.newest(t, key[part:])
		if done = settled; !settled || err != nil {
			return nil, 0, false, err
		}
		has, err := w.hasEntry(t, k, r, key)
		if err == nil && has {
			err = w.entryValue(t, k, r, part)
		}
		if isGone(err) { // see withSettled
			done, err = false, nil
		}
		return w.secVal, 0, err == nil && has && done, err
	})
	return done, err
}

// fillDeleted puts the entry of the row's version in w.old into the index, as deleted.
func (w *Worker) fillDeleted(t *Table, k *record.KeySchema, key []byte) error {
	key = bytes.Clone(key)
	part, err := k.PartLen(key, len(k.Parts))
	if err != nil {
		return err
	}
	return w.putSecondary(t, k, key, part, false, func(bool) ([]byte, byte, bool, error) {
		r, err := t.Schema.Row(key[part:], w.old)
		if err != nil {
			return nil, 0, false, err
		}
		err = w.entryValue(t, k, r, part)
		return w.secVal, record.FlagDeleted, err == nil, err
	})
}

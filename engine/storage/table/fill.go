package table

import (
	"bytes"

	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// Filling an index that is Building, beside the changes of others.
//
// The rows are read, their entries sorted, and each is put into the tree unless it is
// there. Between reading and putting the row may have changed: so the row is looked at again
// under the latch of the entry's leaf, and the entry put only if the row's newest
// version has it. Whoever changes a row comes to the index after that, and what it takes
// back on rollback it puts there itself (restoreEntry). What a change removes that is
// not there yet is put there as deleted (markSecondary).
//
// Hence at the end of FillIndex the newest version of each row has its entry; older
// versions may lack theirs, so that snapshots from before cannot use the index.

// FillIndex puts what an index that is Building lacks into it, beside changes by
// others, and returns the number of entries looked at. It may be called again after an
// error or a crash, and finds out itself whether there is nothing there yet and nobody
// else at work (alone), which is faster.
//
// Errors: *[DuplicateError] if the index is unique and the worker does not apply the log,
// record.ErrKeyTooLong, lock errors, space.ErrNoSpace, file.ErrNoSpace, and
// record.ErrExternal if rows keep less of an off-page value than the index needs: then
// the whole table must be rebuilt.
//
// REQUIRES: alone only if nobody else changes rows of the table; the worker has a
// transaction.
func (w *Worker) FillIndex(t *Table, position int, alone bool, opt LoadOptions) (entries int64, err error) {
	if alone {
		if empty, err := w.isEmpty(t, position); err != nil {
			return 0, err
		} else if empty {
			return w.fillAlone(t, position, opt)
		}
	}
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
		return value, flags, flags&record.FlagDeleted == 0, nil
	}
	for more := true; more; {
		if more, err = k.next(); err != nil {
			return 0, err
		}
		for i := range k.items {
			r, err := k.row(i)
			if err != nil {
				return 0, err
			}
			if err := x.add(key, r); err != nil {
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

func (w *Worker) isEmpty(t *Table, position int) (bool, error) {
	w.rm.BeginRead()
	defer w.release()
	w.look.Init(t.trees[position], w.rm)
	err := w.look.First(mtr.S)
	return !w.look.Valid(), err
}

// fillAlone loads the empty tree with what is committed, and what the worker's own
// transaction has changed.
func (w *Worker) fillAlone(t *Table, position int, opt LoadOptions) (int64, error) {
	var view trx.View
	w.e.Trx.OpenSnapshot(&view)
	defer w.e.Trx.CloseSnapshot(&view)
	view.Own = w.trx.ID()
	return w.BuildIndex(t, position, &view.Snapshot, opt)
}

// fill puts the sorted entries into the tree.
func (x *indexSort) fill(k *record.KeySchema) (n int64, err error) {
	if err := x.sorter.Finish(); err != nil {
		return 0, err
	}
	for ; ; n++ {
		key, value, ok, err := x.sorter.Next()
		if err != nil || !ok {
			return n, err
		}
		if x.opt.Stop != nil && n%stopEvery == 0 {
			if err := x.opt.Stop(); err != nil {
				return n, err
			}
		}
		if err := x.w.fillEntry(x.t, k, key[1:], value[0] != 0); err != nil {
			return n, err
		}
		x.w.e.Env.Yield()
	}
}

// fillEntry puts an entry into the index if the row that it points to still has it.
func (w *Worker) fillEntry(t *Table, k *record.KeySchema, key []byte, hasNull bool) error {
	part, err := k.PartLen(key, len(k.Parts))
	if err != nil {
		return err
	}
	row := key[part:]
	return w.putSecondary(t, k, key, part, k.Unique && !hasNull && !w.Applying, func() (value []byte, flags byte, put bool, err error) {
		w.rm.BeginRead()
		defer w.release()
		w.look.Init(t.trees[0], w.rm)
		exact, err := w.look.SeekLeaf(row, mtr.S)
		if err != nil || !exact || w.look.Flags()&record.FlagDeleted != 0 {
			return nil, 0, false, err
		}
		r, err := t.Schema.Row(row, w.look.Value())
		if err != nil {
			return nil, 0, false, err
		}
		if w.key, _, _, w.arena, err = t.Schema.AppendSecondary(w.key[:0], k, r, w.arena[:0]); err != nil || !bytes.Equal(w.key, key) {
			return nil, 0, false, err
		}
		w.secVal, err = t.Schema.AppendSecondaryValue(w.secVal[:0], k, r, part)
		return w.secVal, 0, err == nil, err
	})
}

// fillDeleted puts the entry of the row's version in w.old into the index, as deleted.
func (w *Worker) fillDeleted(t *Table, k *record.KeySchema, key []byte) error {
	key = bytes.Clone(key)
	part, err := k.PartLen(key, len(k.Parts))
	if err != nil {
		return err
	}
	return w.putSecondary(t, k, key, part, false, func() ([]byte, byte, bool, error) {
		r, err := t.Schema.Row(key[part:], w.old)
		if err != nil {
			return nil, 0, false, err
		}
		w.secVal, err = t.Schema.AppendSecondaryValue(w.secVal[:0], k, r, part)
		return w.secVal, record.FlagDeleted, err == nil, err
	})
}

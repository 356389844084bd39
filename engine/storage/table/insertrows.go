package table

import (
	"bytes"
	"errors"

	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/undo"
	"github.com/triremedb/trireme/engine/types"
)

const (
	// runRedo is the redo from which on a mini-transaction takes no further row.
	runRedo = 32 << 10
	// encodedMax is from how many bytes on no further row is encoded ahead: what a leaf
	// takes. A worker keeps the memory.
	encodedMax = page.Size
)

// encodedRows are rows as the clustered index has them, one after the other.
type encodedRows struct {
	bytes []byte
	ends  []encodedEnd
}

type encodedEnd struct{ key, value int }

// row returns key and value of row i.
func (e *encodedRows) row(i int) (key, value []byte) {
	from := 0
	if i > 0 {
		from = e.ends[i-1].value
	}
	at := e.ends[i]
	return e.bytes[from:at.key:at.key], e.bytes[at.key:at.value:at.value]
}

// InsertRows is Insert of several rows: all of them are added or, with an error, none.
// failed is the place of the row that the error is about. Rows in the order of their keys
// are added to a leaf in one go.
//
// REQUIRES: not Applying.
func (w *Worker) InsertRows(t *Table, rows [][]types.Value) (failed int, err error) {
	if err := w.lockTable(t, lock.TableIX); err != nil {
		return 0, err
	}
	w.Savepoint() // a row may fail after others have raised counters
	err = w.atomically(func() error {
		for failed < len(rows) {
			n, err := w.insertSome(t, rows[failed:])
			failed += n
			if err != nil {
				return err
			}
		}
		return nil
	})
	return failed, err
}

// insertSome adds the first row, and others that can be added with it; n is how many.
func (w *Worker) insertSome(t *Table, rows [][]types.Value) (n int, err error) {
	if w.encodeRows(t.Schema, rows); len(w.encoded.ends) == 0 {
		// It has off-page values, or is wrong.
		if err := w.insert(t, rows[0]); err != nil {
			return 0, err
		}
		return 1, nil
	}
	for n < len(w.encoded.ends) && err == nil {
		var k int
		k, err = w.insertRun(t, n)
		n += k
	}
	var d *DuplicateError
	if err != nil && !errors.As(err, &d) {
		return n, err
	}
	// Before a key that is taken comes one of a row before it, in another index, and what
	// the rows before it leave behind.
	for i := range n {
		key, value := w.encoded.row(i)
		if err := w.insertEntries(t, key, value); err != nil {
			return i, err
		}
		w.noteCounters(t, rows[i])
	}
	return n, err
}

// encodeRows encodes the rows up to one that has to be looked at alone.
func (w *Worker) encodeRows(s *record.Schema, rows [][]types.Value) {
	e := &w.encoded
	e.bytes, e.ends = e.bytes[:0], e.ends[:0]
	for _, row := range rows {
		if len(e.bytes) > encodedMax || s.RowSize(row) > record.MaxInlineRow {
			return
		}
		b, err := s.AppendRowKey(e.bytes, row)
		key := len(b)
		if err == nil {
			b, err = s.AppendRow(b, row, nil)
		}
		if err != nil {
			return
		}
		e.bytes, e.ends = b, append(e.ends, encodedEnd{key, len(b)})
	}
}

// insertRun adds encoded rows from one on to its leaf: it and those after it that ascend
// and belong there too, as far as nothing stands in the way. n is how many, one at least
// unless there is an error.
func (w *Worker) insertRun(t *Table, from int) (n int, err error) {
	tree, index := t.trees[0], t.Schema.Keys[0].ID
	key, value := w.encoded.row(from)
	w.undo = record.AppendUndoInsert(w.undo[:0], t.ID(), key)
	for {
		log, err := w.prepareUndo(len(w.undo))
		if err != nil {
			return 0, err
		}
		if err := w.begin(); err != nil {
			return 0, err
		}
		w.cur.Init(tree, w.m)
		exact, err := w.cur.SeekLeaf(key, mtr.X)
		if err != nil {
			w.commit()
			return 0, err
		}
		if exact {
			w.commit()
			w.row = append(w.row[:0], value...)
			if err := w.insertClustered(t, key); err != nil {
				return 0, err
			}
			t.rows.Add(1)
			return 1, nil
		}
		again, must, err := w.mayInsert(index, true)
		if again || err != nil {
			if err = w.letGo(must, err); err != nil {
				return 0, err
			}
			continue
		}
		if !w.cur.Fits(len(key), len(value)) {
			w.commit()
			if err := w.makeRoom(tree, key, len(value)); err != nil {
				return 0, err
			}
			continue
		}
		n, must, err := w.addRun(index, log, t.ID(), from)
		w.commit()
		t.rows.Add(int64(n)) // a rollback takes them back with the records
		if err == nil && must {
			err = w.wait()
		}
		return n, err
	}
}

// addRun adds rows at the cursor, whose leaf is held in X, and the leaf of w.next too if
// that is another one, so that w.next stays the key after them. The first has an undo
// record in w.undo and a place, and may be inserted. must says that the lock for a further one has
// to be waited for.
func (w *Worker) addRun(index uint64, log *undo.Log, table uint64, from int) (n int, must bool, err error) {
	_, hi := w.cur.Bounds()
	key, value := w.encoded.row(from)
	for {
		// Only the first one can fail: the page is held then.
		ptr, _, err := log.Append(w.m, w.undo, true)
		if err != nil {
			return n, false, err
		}
		record.SetHeader(value, w.trx.ID(), uint64(ptr))
		w.cur.Insert(key, 0, value)
		w.inherit(index, key)
		if n++; from+n == len(w.encoded.ends) || w.m.RedoSize() >= runRedo {
			return n, false, nil
		}
		last := key
		key, value = w.encoded.row(from + n)
		if bytes.Compare(key, last) <= 0 || hi != nil && bytes.Compare(key, hi) >= 0 || w.next != nil && bytes.Compare(key, w.next) >= 0 ||
			!w.cur.Fits(len(key), len(value)) {
			return n, false, nil
		}
		w.undo = record.AppendUndoInsert(w.undo[:0], table, key)
		if !log.HasRoom(len(w.undo)) {
			return n, false, nil
		}
		if must, err = w.intend(index); must || err != nil {
			return n, must, err
		}
		w.cur.SetPos(w.cur.Pos() + 1)
	}
}

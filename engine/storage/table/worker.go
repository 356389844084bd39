package table

import (
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/btree"
	"github.com/triremedb/trireme/engine/storage/lob"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/storage/undo"
	"github.com/triremedb/trireme/engine/types"
)

// Worker is one task's means to work on tables. It belongs to one task, and works
// for one transaction at a time; see Use.
type Worker struct {
	e   *Engine
	trx *trx.Trx
	// Applying says that the changes come from the log: they are known to fit, so
	// no locks are taken and no constraint is checked. Transactions of several workers
	// may change one table at the same time, as long as they touch no row, and no key
	// of a unique index, together; what one of them has touched another may only once
	// that has called StartCommit, and then must commit after it ([ErrApply] else,
	// where it is noticed).
	Applying bool

	undoing bool      // rolling back
	meets   lock.Mode // how the row is locked that has a key of the one to insert
	filling bool      // an index that is being built
	probed  []byte    // such a row whose lock is new, see probe

	m      *mtr.Mtr     // the writing mini-transaction
	rm     *mtr.Mtr     // reads beside it
	cur    btree.Cursor // of m
	look   btree.Cursor // of rm
	inner  btree.Cursor // of rm: clustered lookups from a secondary index
	arena  []byte
	key    []byte // clustered key
	row    []byte // new value
	old    []byte // old value
	sec    []byte // secondary key
	sec2   []byte
	secVal []byte
	next   []byte // key after the one being inserted
	undo   []byte // undo payload
	undoIn []byte // undo record being read
	ver    [2][]byte
	long   []types.Value // off-page values of the row being read

	prefixes record.PrefixReader // readPrefix
	lobs     *lob.Reader         // its own; nil: not needed yet

	encoded encodedRows // being inserted
	area    neighbours  // of cur
}

// NewWorker returns a worker without a transaction.
func (e *Engine) NewWorker() *Worker {
	w := &Worker{e: e, m: mtr.New(e.Pool), rm: mtr.New(e.Pool), meets: lock.RecordS}
	w.prefixes = w.readPrefix
	return w
}

// Use makes the worker work for the transaction from now on.
func (w *Worker) Use(t *trx.Trx) { w.trx = t }

// Trx is the transaction that the worker works for.
func (w *Worker) Trx() *trx.Trx { return w.trx }

// begin starts the writing mini-transaction.
func (w *Worker) begin() error { return w.m.Begin() }

// commit ends the writing mini-transaction; the cursor lets go first.
func (w *Worker) commit() {
	w.cur.Reset()
	w.m.Commit()
}

// release ends the reading mini-transaction.
func (w *Worker) release() {
	w.look.Reset()
	w.inner.Reset()
	w.rm.Commit()
}

// lockTable takes a lock on the table for the rest of the transaction.
func (w *Worker) lockTable(t *Table, mode lock.Mode) error {
	if w.Applying {
		return nil
	}
	for {
		res, err := w.e.Locks.Acquire(w.trx.Locks(), lock.Request{Index: t.ID(), Mode: mode, Timeout: w.trx.LockWait()})
		if err != nil {
			return err
		}
		if res != lock.MustWait {
			if mode == lock.TableS || mode == lock.TableX {
				w.trx.DependOnTable(t.ID())
			}
			return nil
		}
		if err := w.wait(); err != nil {
			return err
		}
	}
}

// LockTable locks a whole table: S or X for LOCK TABLES, AUTO-INC for a statement.
func (w *Worker) LockTable(t *Table, mode lock.Mode) error { return w.lockTable(t, mode) }

// wait waits for the lock that was asked for last. nil says that the caller must
// look at the record again.
//
// REQUIRES: no latch is held.
func (w *Worker) wait() error {
	err := w.e.Locks.Wait(w.trx.Locks())
	if errors.Is(err, lock.ErrRetry) {
		return nil
	}
	return err
}

// lockRecord asks for a lock on an entry whose leaf is latched. writer is the
// transaction that wrote the entry's clustered record last, or 0 for a secondary
// entry. If the writer is in doubt, whoever gets the lock on the record depends on it.
func (w *Worker) lockRecord(index uint64, key []byte, mode lock.Mode, policy lock.Policy, writer uint64) (lock.Result, error) {
	return w.lockWithin(index, key, mode, policy, writer, lock.Area{})
}

// lockWithin is lockRecord where the entry's area is known.
func (w *Worker) lockWithin(index uint64, key []byte, mode lock.Mode, policy lock.Policy, writer uint64, area lock.Area) (lock.Result, error) {
	written := false
	var entry uint64 // of the log, by which the writer stands or falls
	if writer != 0 {
		if writer == w.trx.ID() {
			switch mode { // the record itself is ours already
			case lock.RecordS, lock.RecordX:
				return lock.Held, nil
			case lock.NextKeyS, lock.NextKeyX:
				written = true
			}
		} else if holder := w.e.Trx.Holder(writer); holder != nil {
			var how lock.Implicit
			// A scan that passes over rows would leave a lock for each with a holder of many.
			waits := policy == lock.Block || !mode.OnRecord() || !holder.Many()
			if waits {
				how, entry = w.e.Locks.ConvertImplicit(holder, writer, index, key)
			} else {
				how, entry = w.e.Locks.FindImplicit(holder, writer, index, key)
			}
			switch {
			case how == lock.ImplicitBroken:
				return lock.MustWait, ErrEntryFailed
			case how != lock.ImplicitHeld || waits:
			case policy == lock.SkipLocked:
				return lock.Skip, nil
			default:
				return lock.MustWait, lock.ErrNoWait
			}
		}
	}
	r := lock.Request{Index: index, Key: key, Mode: mode, Policy: policy, Timeout: w.trx.LockWait()}
	var res lock.Result
	var err error
	if area.Known || written {
		res, err = w.e.Locks.AcquireHinted(w.trx.Locks(), r, &lock.Hint{Area: area, Written: written})
	} else {
		res, err = w.e.Locks.Acquire(w.trx.Locks(), r)
	}
	if entry != 0 && err == nil && (res == lock.Granted || res == lock.Held) && mode.OnRecord() {
		w.trx.AddDependence(entry)
	}
	return res, err
}

// mayApply checks that a row, whose leaf is latched, may be changed by an applier.
func (w *Worker) mayApply(t *Table, writer uint64) error {
	if writer != w.trx.ID() && w.e.Trx.Executing(writer) {
		return fmt.Errorf("%w: transaction %d is still changing a row of table %d", ErrApply, writer, t.ID())
	}
	return nil
}

// mayInsert checks, under the X latch of the cursor's leaf, that no lock protects
// the gap into which key goes, and leaves the key of the entry after it in w.next
// (nil at the index's end). again says that the caller must let go of everything,
// call wait if must, and start over. With hold that entry stays the next one until the
// commit.
func (w *Worker) mayInsert(index uint64, hold bool) (again, must bool, err error) {
	if w.Applying {
		return false, false, nil
	}
	if w.cur.Valid() {
		w.next = append(w.next[:0], w.cur.Key()...)
	} else {
		look := w.cur.PeekNext
		if hold {
			look = w.cur.HoldNext
		}
		next, ok, err := look(w.next[:0])
		if err != nil || !ok {
			return true, false, err
		}
		w.next = next
	}
	must, err = w.intend(index)
	return must, must, err
}

// intend asks whether the gap before w.next may be inserted into. must says that the
// answer has to be waited for.
func (w *Worker) intend(index uint64) (must bool, err error) {
	res, err := w.e.Locks.Acquire(w.trx.Locks(), lock.Request{Index: index, Key: w.next, Mode: lock.InsertIntention, Timeout: w.trx.LockWait()})
	return res == lock.MustWait, err
}

// inherit passes gap locks on to an entry that was just inserted before w.next.
func (w *Worker) inherit(index uint64, key []byte) {
	if !w.Applying {
		w.e.Locks.InheritOnInsert(w.trx.Locks(), index, key, w.next)
	}
}

// prepareUndo returns the transaction's undo log with room for a record of that
// many bytes.
//
// REQUIRES: no latch is held.
func (w *Worker) prepareUndo(size int) (*undo.Log, error) {
	l, err := w.trx.Log()
	if err != nil {
		return nil, err
	}
	return l, l.Prepare(size)
}

// undoLog is the log that prepareUndo has returned before.
func (w *Worker) undoLog() *undo.Log {
	l, err := w.trx.Log()
	if err != nil {
		panic("table: no undo log was prepared: " + err.Error())
	}
	return l
}

// makeRoom makes room for an entry in its leaf. Rollback may use the space that is
// kept back for it: a full disk must not stop it.
func (w *Worker) makeRoom(tree *btree.Tree, key []byte, valueLen int) error {
	if w.undoing {
		return tree.MakeRoomReserved(key, valueLen)
	}
	return tree.MakeRoom(key, valueLen)
}

// Savepoint is the number of undo records so far: a state to roll back to.
func (w *Worker) Savepoint() uint64 { return w.trx.Mark() }

// atomically runs a change of a row and undoes what it did if it fails.
func (w *Worker) atomically(change func() error) error {
	top := w.trx.UndoTop()
	err := change()
	if err != nil && w.trx.UndoTop() > top {
		if uerr := w.RollbackTo(top); uerr != nil {
			// Not joined: who sees the first error alone would go on with half a row.
			return fmt.Errorf("table: undoing a change that failed (%v): %w", err, uerr)
		}
	}
	return err
}

// columnAffects reports whether any of the changes is of a column that the index
// is made from or keeps, and of its value.
func (t *Table) columnAffects(position int, changes []record.Change) (key, kept bool) {
	for i := range changes {
		if changes[i].Same {
			continue
		}
		c := changes[i].Column
		key = key || t.touches[position][c]
		for _, k := range t.Schema.Keys[position].Kept {
			kept = kept || k == c
		}
	}
	return key, kept
}

package trx

import (
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/undo"
)

// Isolation is a transaction's isolation level.
type Isolation uint8

const (
	// RepeatableRead takes its snapshot at the first consistent read.
	RepeatableRead Isolation = iota
	// ReadCommitted takes one for each statement.
	ReadCommitted
	// ReadUncommitted reads the newest versions.
	ReadUncommitted
	// Serializable is RepeatableRead whose plain reads lock; see [Trx.LockingReads].
	Serializable
)

var isolationNames = [...]string{"REPEATABLE READ", "READ COMMITTED", "READ UNCOMMITTED", "SERIALIZABLE"}

func (i Isolation) String() string {
	if int(i) < len(isolationNames) {
		return isolationNames[i]
	}
	return fmt.Sprintf("isolation %d", uint8(i))
}

// Options say what transaction to begin.
type Options struct {
	Isolation Isolation
	// ReadOnly transactions may not change anything (temporary tables aside).
	ReadOnly bool
	// HighPriority transactions win deadlocks and are not among those that the limit of
	// undo streams is for: the applier's.
	HighPriority bool
	// LockWait limits each wait for a lock (innodb_lock_wait_timeout); 0 takes the
	// lock table's default.
	LockWait time.Duration
	// Part is a number of the caller's choice: tasks with different ones are in each
	// other's way less when they begin, end and take snapshots. It changes nothing else.
	Part uint32
	// Waits counts the transaction's waits for locks; nil: nobody asks.
	Waits *lock.Waits
	// Until is when the present statement's waits for locks end; see lock.TxnOptions.
	Until func() time.Duration
	// Marks are the marks to which the transaction may still be rolled back, ascending, but
	// for the last one that was given out: counters as of others are forgotten. nil: all.
	Marks iter.Seq[uint64]
}

// State is where a transaction stands; see the package comment.
type State uint32

const (
	Ended State = iota
	Active
	Committing
	InDoubt
	Committed
	RollingBack
	RolledBack
)

var stateNames = [...]string{"ended", "active", "committing", "in doubt", "committed", "rolling back", "rolled back"}

func (st State) String() string {
	if int(st) < len(stateNames) {
		return stateNames[st]
	}
	return fmt.Sprintf("state %d", uint32(st))
}

// Trx is one transaction. It belongs to one task at a time; ID, State, Started,
// Locks and DependsOn are safe for others. The object is reused after End.
type Trx struct {
	sys     *System
	locks   lock.Owner
	id      atomic.Uint64
	state   atomic.Uint32
	started atomic.Int64
	opt     Options

	view      View
	stale     bool // the next Snapshot takes a new one
	log       *undo.Log
	statement uint64
	mark      uint64 // the last number of undo records that was given out to roll back to
	saves     []Savepoint
	tables    []TableUse

	depends  atomic.Uint64
	position Position
	wrote    []uint64 // tables, while in doubt
	older    *Trx     // in doubt; guarded by its mutex, like newer
	newer    *Trx

	part     *part
	link     link // guarded by the part's mutex, like nextFree
	nextFree *Trx
}

// TableUse is what a transaction did to a table, for statistics and counters.
type TableUse struct {
	Table   uint64
	Changed uint64 // rows inserted, updated or deleted
	Rows    int64  // inserted less deleted
	// Counters that the rows have raised, and the tablespace whose words keep them:
	// they become durable with the commit (AUTO_INCREMENT, hidden row id). Rows that
	// were rolled back do not count, so that they are the same on every node.
	Space    *space.Space
	Counters [2]uint64

	past []pastCounters // ascending
}

// Begin starts a transaction. It has neither id nor snapshot yet.
func (s *System) Begin(opt Options) *Trx {
	t := s.parts[opt.Part%partCount].take(s)
	t.opt = opt
	t.stale = true
	t.started.Store(int64(s.env.Monotonic()))
	t.move(Active, Ended)
	s.beginLocks(t)
	return t
}

// beginLocks makes the lock owner an active one.
func (s *System) beginLocks(t *Trx) {
	s.locks.Begin(&t.locks, t.ID(), lock.TxnOptions{
		ReadCommitted: t.opt.Isolation == ReadCommitted || t.opt.Isolation == ReadUncommitted,
		HighPriority:  t.opt.HighPriority,
		Waits:         t.opt.Waits,
		Until:         t.opt.Until,
	})
}

// End gives the object back for reuse. A transaction that is still active must
// have changed nothing; its locks are released.
func (s *System) End(t *Trx) {
	if st := t.State(); st == Active {
		t.endUnchanged()
	} else if st != Committed && st != RolledBack {
		panic("trx: End of a transaction that is " + st.String())
	}
	s.CloseSnapshot(&t.view)
	s.locks.ReleaseAll(&t.locks, 0)
	t.state.Store(uint32(Ended))
	t.id.Store(0)
	t.view.Snapshot = Snapshot{}
	t.statement, t.mark = 0, 0
	t.depends.Store(0)
	t.position = Position{}
	clear(t.saves)
	t.saves, t.tables = t.saves[:0], t.tables[:0]
	t.part.give(t)
}

// endUnchanged ends a transaction that has no undo records.
func (t *Trx) endUnchanged() {
	if t.HasChanges() {
		panic("trx: End of an active transaction that has changed something")
	}
	t.move(RollingBack, Active)
	t.FinishRollback()
}

// move changes the state; it panics if it is not one of from.
func (t *Trx) move(to State, from ...State) {
	st := t.State()
	for _, f := range from {
		if st == f {
			t.state.Store(uint32(to))
			return
		}
	}
	panic(fmt.Sprintf("trx: transaction %d cannot become %v: it is %v", t.ID(), to, st))
}

// ID is the transaction's id, 0 before its first change.
func (t *Trx) ID() uint64 { return t.id.Load() }

// State is where the transaction stands.
func (t *Trx) State() State { return State(t.state.Load()) }

// Started is when the transaction began, on the environment's monotonic clock.
func (t *Trx) Started() time.Duration { return time.Duration(t.started.Load()) }

// Isolation is the transaction's isolation level.
func (t *Trx) Isolation() Isolation { return t.opt.Isolation }

// ReadOnly reports whether the transaction may not change anything.
func (t *Trx) ReadOnly() bool { return t.opt.ReadOnly }

// Locks are the transaction's locks.
func (t *Trx) Locks() *lock.Owner { return &t.locks }

// LockWait limits each wait for a lock; 0 means the lock table's default.
func (t *Trx) LockWait() time.Duration { return t.opt.LockWait }

// LockingReads reports whether plain reads take shared locks.
func (t *Trx) LockingReads() bool { return t.opt.Isolation == Serializable }

// System is the transaction's system.
func (t *Trx) System() *System { return t.sys }

// Snapshot is what a consistent read sees. It is taken at the first call of the
// transaction, or of the statement for READ COMMITTED, and stays at its address.
func (t *Trx) Snapshot() *Snapshot {
	switch {
	case !t.stale:
	case t.opt.Isolation == ReadUncommitted:
		t.view.CSN = newest
		t.stale = false
	default:
		t.sys.OpenSnapshot(&t.view)
		t.stale = false
	}
	return &t.view.Snapshot
}

// TakesSnapshot reports whether the next call of Snapshot takes a new one, of what is committed by then.
func (t *Trx) TakesSnapshot() bool { return t.stale && t.opt.Isolation != ReadUncommitted }

// SnapshotAt makes the transaction read as of a CSN of the past, for good. See
// [System.OpenSnapshotAt] for errors.
//
// REQUIRES: the transaction has no snapshot yet, and is not READ UNCOMMITTED.
func (t *Trx) SnapshotAt(csn uint64) error {
	if err := t.sys.OpenSnapshotAt(&t.view, csn); err != nil {
		return err
	}
	t.opt.Isolation = RepeatableRead
	t.stale = false
	return nil
}

// OpenedSnapshot is the CSN of the transaction's snapshot, while it is open. Any task may call it.
func (t *Trx) OpenedSnapshot() (csn uint64, open bool) {
	t.part.mu.Lock()
	defer t.part.mu.Unlock()
	if !t.view.open {
		return 0, false
	}
	return t.view.CSN, true
}

// CloseSnapshot gives up the snapshot before the end, for READ COMMITTED between
// statements: purge need not wait for an idle session.
func (t *Trx) CloseSnapshot() {
	t.sys.CloseSnapshot(&t.view)
	t.stale = true
}

// EnsureID gives the transaction its id.
//
// REQUIRES: it is active; the task holds no latch and no writing mini-transaction.
func (t *Trx) EnsureID() (uint64, error) {
	if id := t.id.Load(); id != 0 {
		return id, nil
	}
	t.mustBe(Active)
	id, err := t.sys.newID(t)
	if err != nil {
		return 0, err
	}
	t.setID(id)
	return id, nil
}

func (t *Trx) setID(id uint64) {
	t.id.Store(id)
	t.view.Own = id
	t.locks.SetID(id)
}

func (t *Trx) mustBe(want State) {
	if st := t.State(); st != want {
		panic(fmt.Sprintf("trx: transaction %d is %v, not %v", t.ID(), st, want))
	}
}

// Log returns the transaction's undo log. The first call gives the transaction
// its id, if it has none, and a stream. Error: that of undo.Manager.Acquire.
//
// REQUIRES: it is active, or has a log already; the task holds no latch and no
// writing mini-transaction.
func (t *Trx) Log() (*undo.Log, error) {
	if t.log != nil {
		t.locks.SetWeight(t.log.Top())
		return t.log, nil
	}
	id, err := t.EnsureID()
	if err != nil {
		return nil, err
	}
	t.log, err = t.sys.undo.Acquire(id, t.opt.HighPriority)
	return t.log, err
}

// UndoTop is the number of the transaction's undo records: a savepoint.
func (t *Trx) UndoTop() uint64 {
	if t.log == nil {
		return 0
	}
	return t.log.Top()
}

// HasChanges reports whether the transaction has undo records.
func (t *Trx) HasChanges() bool { return t.UndoTop() > 0 }

// Use returns the entry of a table in the transaction's list; valid until the next
// call.
func (t *Trx) Use(table uint64) *TableUse {
	for i := len(t.tables) - 1; i >= 0; i-- {
		if t.tables[i].Table == table {
			return &t.tables[i]
		}
	}
	n := len(t.tables)
	if n == cap(t.tables) {
		t.tables = append(t.tables, TableUse{})
	}
	t.tables = t.tables[:n+1]
	t.tables[n].reset(table)
	return &t.tables[n]
}

// Tables is what the transaction did, by table in the order of first use.
func (t *Trx) Tables() []TableUse { return t.tables }

// StartCommit says that the transaction's commit is on its way: it changes
// nothing any more. Its snapshot is closed.
func (t *Trx) StartCommit() {
	t.move(Committing, Active)
	t.sys.CloseSnapshot(&t.view)
}

// StartRollback says that all changes will be undone: the caller takes the
// records away one by one (undo.Log.Last and DropLast) and calls FinishRollback.
//
// A transaction in doubt has its implicit locks back from now on. REQUIRES of it:
// whoever depends on it has ended, and it is the newest in doubt (else it panics).
func (t *Trx) StartRollback() {
	if t.State() == InDoubt {
		t.sys.doubt.fail(t)
		t.sys.beginLocks(t)
	}
	t.move(RollingBack, Active, Committing, InDoubt)
	t.sys.CloseSnapshot(&t.view)
}

// FinishRollback ends a rollback: the undo stream and the locks are given back.
//
// REQUIRES: the undo log is empty; the task holds no latch.
func (t *Trx) FinishRollback() {
	t.mustBe(RollingBack)
	s := t.sys
	if t.log != nil {
		if t.log.Top() != 0 {
			panic("trx: FinishRollback with undo records left")
		}
		s.undo.Release(t.log)
		t.log = nil
	}
	if id := t.id.Load(); id != 0 {
		s.ids.mu.Lock()
		s.ids.settle(id, forgotten)
		s.ids.finish(id)
		s.ids.mu.Unlock()
	}
	s.locks.ReleaseAll(&t.locks, 0)
	s.doubt.failed(t)
	t.move(RolledBack, RollingBack)
}

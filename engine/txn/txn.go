package txn

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/cache"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/trace"
)

// CommitLog makes transactions durable.
type CommitLog interface {
	// Commit gives the transaction its number in the group's log, waits until the
	// log has it for good, and commits it in the engine: trx.Trx.StartCommit,
	// [Txn.Appended], trx.System.CommitGroup, [Txn.Published]. It returns the number.
	//
	// From the call on the transaction is the commit log's. It gets it back to the
	// session by returning, with one exception: after an error that wraps
	// [ErrOutcomeUnknown] it stays the commit log's, which calls [Txn.Release] when it
	// is committed after all, or [Txn.Rollback] and Release when it is lost.
	//
	// After another error the transaction is not committed. The commit log has rolled
	// it back ([Txn.Rollback]) if it was in doubt. If it was not, either of both does.
	Commit(ctx context.Context, t *Txn) (number uint64, err error)

	// WaitFinished waits until the entries of the group's log up to the index, which
	// trx.Trx.DependsOn gave, are committed in the engine. An error says that some of
	// them are lost, or that nobody knows. If ended is not nil it is asked now and then; an
	// error of it ends the wait, and is returned.
	WaitFinished(ctx context.Context, index uint64, ended func() error) error
}

// ErrOutcomeUnknown: whether the transaction is committed will be known later, or
// elsewhere. Its commit token finds out.
var ErrOutcomeUnknown = errors.New("the outcome of the commit is unknown")

// Txn is a transaction that is being made by a session and then committed by a
// [CommitLog]. Objects are reused.
type Txn struct {
	Trx    *trx.Trx
	Worker *table.Worker
	// Keys is what the transaction wrote, for finding out which transactions depend
	// on each other.
	Keys WriteSet
	// Schema says that the transaction changes the catalogue. It is a barrier: it
	// depends on everything before it, and everything after on it; its locks are not
	// released early.
	Schema   bool
	HasToken bool
	Token    entry.Token
	// Trace is what the commit, and the application of the changes elsewhere, is part
	// of; zero: nobody traces it.
	Trace trace.Context

	// A slot for the commit log. Waiter is the parker of the task that called Commit,
	// without a token then; the rest is the commit log's own, zero at the call of Commit.
	Waiter env.Parker
	Time   int64 // of the commit, microseconds since 1970
	Next   *Txn
	Number uint64
	Err    error
	Done   atomic.Bool
	Packed []byte // its events, compressed before it has a number
	// Body describes the body of a large transaction that enough members have; nil: its events
	// go into its entry.
	Body     *entry.LargeBody
	BodyWait time.Duration // from the call of Commit until they had it

	sessionID    uint64 // by which rows are counted
	m            *Manager
	locks        metadataOwner
	metadataWait time.Duration
	ended        func() error // BeginOptions.Ended
	until        func() time.Duration
	events       *cache.Cache
	rows         event.Rows
	began        uint32   // when the statement did, seconds since 1970
	opened       []*Table // in use up to inUse
	inUse        int
	serial       uint64 // of the tables that may be used
	state        atomic.Uint32
	awaits       atomic.Bool // it waits for a rollback
	killed       atomic.Bool // its session was interrupted during this statement, not for Suspend's sake
	suspension   *error      // the manager's when the statement began

	released bool // guarded by Manager.mu

	watchedKeys []watchedKey // rows that it has changed of tables that somebody watches
	temp        *temporaryTables
	owns        *Watch // it changes the definition of the table that is watched

	statement  mark
	savepoints []savepoint
	// savepointBytes is what they take.
	savepointBytes int64
	marks          iter.Seq[uint64]      // eachMark
	broken         error                 // what must be rolled back, for the changes are not whole
	blind          error                 // why its plain reads fail: its snapshot was ended
	ending         atomic.Pointer[error] // why its snapshot is to be ended when the call that runs is over

	// Memory of one call.
	key     []byte
	values  []types.Value
	after   []types.Value
	columns []int
	changes []record.Change
	point   pointRead
}

// States of a Txn.
const (
	atSession  uint32 = iota
	committing        // handed to the commit log
	inDoubt           // appended to the log
)

func (s *Session) newTxn() *Txn {
	m := s.m
	t := &Txn{m: m, Worker: m.opt.Engine.Tables.NewWorker(), Waiter: m.opt.Env.NewParker()}
	t.Keys.max = m.opt.WriteSetMax
	t.locks.id, t.locks.waits = s.id, &s.waits
	t.events = m.newCache()
	t.marks = t.eachMark
	return t
}

// begin makes t a new transaction.
func (t *Txn) begin(opt BeginOptions) {
	opt.Marks = t.marks
	t.Trx = t.m.opt.Engine.Trx.Begin(opt.Options)
	t.Worker.Use(t.Trx)
	t.Token, t.HasToken = opt.Token, opt.HasToken
	t.Trace = trace.Context{}
	if t.metadataWait = opt.MetadataWait; t.metadataWait == 0 {
		t.metadataWait = t.m.opt.MetadataWait
	}
	t.ended, t.until = opt.Ended, opt.Until
	t.events.Owner = body.Owner{Session: opt.Client, Began: t.Trx.Started()}
	t.rows.Reset(t.events)
	t.newSerial()
	t.state.Store(atSession)
	t.forgetInterrupt() // no other task knows the transaction yet
	t.beginStatement()
}

// interrupt ends a wait for a lock, now or later up to resetInterrupt.
func (t *Txn) interrupt() {
	t.m.opt.Engine.Locks.Interrupt(t.Trx.Locks())
	t.m.locks.interrupt(&t.locks)
}

// Killed returns lock.ErrInterrupted if KILL has told the statement to end: a part of a commit that may
// be given up ends with it. Any task may call it.
func (t *Txn) Killed() error {
	if t.killed.Load() {
		return lock.ErrInterrupted
	}
	return nil
}

// forgetInterrupt takes back that of KILL as well.
func (t *Txn) forgetInterrupt() {
	t.killed.Store(false)
	t.resetInterrupt()
}

func (t *Txn) resetInterrupt() {
	t.Trx.Locks().ResetInterrupt()
	t.locks.interrupted.Store(false)
}

// Size is the number of bytes that AppendEvents appends.
func (t *Txn) Size() int64 { return t.events.Size() }

// AppendEvents appends the transaction's events, as an entry's body has them. Error:
// that of reading the cache file.
func (t *Txn) AppendEvents(dst []byte) ([]byte, error) { return t.events.AppendTo(dst) }

// ReadEvents reads the transaction's events from off, as io.ReaderAt.
func (t *Txn) ReadEvents(p []byte, off int64) (int, error) { return t.events.ReadAt(p, off) }

// Large reports whether the transaction is to be committed as a large one, with
// [Txn.SealEvents] instead of AppendEvents.
func (t *Txn) Large() bool { return t.events.Outgrown() }

// SealEvents closes the last frame of a large transaction's events and returns its body. When
// the transaction ends the body is dropped, unless it is Taken by then. Error: that of writing
// or reading the cache file.
//
// REQUIRES: Large.
func (t *Txn) SealEvents() (*body.File, error) { return t.events.Seal() }

// Appended says that the transaction is in the log of this node, at the position and
// with the number: it is in doubt. Its locks are released (trx.System.ReleaseLocks),
// unless it changes the catalogue.
//
// REQUIRES: calls come in the order of the log.
func (t *Txn) Appended(number uint64, at trx.Position) {
	t.Number = number
	if !t.Schema {
		t.m.opt.Engine.Trx.ReleaseLocks(t.Trx, at)
	}
	t.state.Store(inDoubt)
	t.m.wake()
}

// Published makes a change of the catalogue known. The commit log calls it in the
// order of the numbers, after CommitGroup and before it commits anything later.
func (t *Txn) Published() {
	if t.Schema {
		t.m.catalog.Committed(t.Trx)
	}
}

// Rollback takes back everything that the transaction did. If it returns an error it
// may be called again; after success it does nothing.
//
// REQUIRES: of transactions in doubt, t is the newest.
func (t *Txn) Rollback() error {
	if t.Trx.State() == trx.RolledBack {
		return nil
	}
	if err := t.Worker.Rollback(); err != nil {
		return err
	}
	if t.Schema {
		t.m.catalog.RolledBack(t.Trx)
	}
	return nil
}

// Release gives the object back, for a commit log that has answered its session with
// [ErrOutcomeUnknown]. It ends at once, or when the session, which others may still be looking at, has
// heard that.
//
// REQUIRES: Published was called, or Rollback without an error.
func (t *Txn) Release() {
	m := t.m
	m.mu.Lock()
	t.released = true
	left := m.left[t]
	m.mu.Unlock()
	if left {
		t.discard()
		m.mu.Lock()
		delete(m.left, t)
		m.mu.Unlock()
	}
	m.wake()
}

// discard ends a transaction that no session takes back.
func (t *Txn) discard() {
	t.end()
	t.m.discard(t.events)
}

// end ends a transaction that is committed, is rolled back, or has changed nothing,
// and makes t ready for another.
func (t *Txn) end() {
	t.closeTables()
	t.m.opt.Engine.Trx.End(t.Trx)
	t.Trx = nil
	t.endWatched()
	t.owns = nil
	t.m.locks.releaseFrom(&t.locks, 0)
	t.rows.Discard()
	t.events.Reset()
	t.Keys.reset()
	t.Schema, t.HasToken, t.Time = false, false, 0
	t.Next, t.Number, t.Err, t.Packed, t.Body = nil, 0, nil, nil, nil
	t.Done.Store(false)
	t.state.Store(atSession)
	t.dropSavepoints(0)
	t.broken, t.blind = nil, nil
	t.ending.Store(nil)
}

// changed reports whether there is anything to commit.
func (t *Txn) changed() bool { return t.events.Size() > 0 || t.Trx.HasChanges() }

package txn

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/internal/trace"
)

// BeginOptions say what transaction to begin. Part, Waits and Marks are the session's own.
type BeginOptions struct {
	trx.Options
	// Ended, if not nil, ends the wait of a plain read for what the transaction depends on, by an error. The
	// session's task asks it, now and then; it need not know of Interrupt.
	Ended        func() error
	Client       uint64        // number of the client's session, for lists of large transactions; 0: none
	MetadataWait time.Duration // lock_wait_timeout; 0: the manager's
	Token        entry.Token   // of the commit, with HasToken
	HasToken     bool
}

// Session is a client's way to run transactions, one at a time. It belongs to one
// task, but for Interrupt.
//
// Errors that end the transaction: a deadlock (1213), table.ErrEntryFailed (3101), the
// reason of [Manager.Suspend], an error of Settle or Commit. The transaction is rolled back
// then, and every call up to the next Begin returns the error again, but Rollback,
// which has nothing left to do.
type Session struct {
	m    *Manager
	id   uint64
	turn *env.Mutex // held during each call, so that Suspend comes between two of them
	t    *Txn       // nil: there is no transaction
	idle *Txn       // for the next one
	lost error      // what has ended the transaction

	mu  sync.Mutex // guards cur against Interrupt
	cur *Txn

	settling atomic.Bool // it waits until what it depends on is committed

	waits lock.Waits // for rows and definitions

	tables metadataOwner        // of LOCK TABLES
	named  metadataOwner        // of GET_LOCK
	times  map[string]namedLock // by name
	joined *Session             // for which its transactions work, see Join; nil: for none
	large  LargeCommit
	temp   *temporaryTables // nil: it has made none
}

// LargeCommit is what the commit of a large transaction had to wait for.
type LargeCommit struct {
	Bytes int64         // length of its events
	Wait  time.Duration // until a majority had them on disk
}

// Errors of calls at the wrong time.
var (
	ErrReadOnly      error = sqlerr.New(sqlerr.CantExecuteInReadOnlyTransaction)
	ErrNoTransaction       = errors.New("txn: the session has no transaction")
	ErrTransaction         = errors.New("txn: the session has a transaction already")
)

// NewSession returns a session without a transaction.
func (m *Manager) NewSession() *Session {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	s := &Session{m: m, id: m.made, turn: env.NewMutex(m.opt.Env)}
	for _, o := range []*metadataOwner{&s.tables, &s.named} {
		o.id, o.side, o.waits, o.lasting = s.id, s.id, &s.waits, true
	}
	m.sessions = append(m.sessions, s)
	return s
}

// ID is the session's number.
func (s *Session) ID() uint64 { return s.id }

// SetClient says whose session it is, by the number of the client's session, for lists of metadata locks.
//
// REQUIRES: it has done nothing yet.
func (s *Session) SetClient(number uint64) { s.tables.client, s.named.client = number, number }

// client is the number of the client's session that it is, or works for; 0: none.
func (s *Session) client() uint64 {
	if s.joined != nil {
		return s.joined.client()
	}
	return s.tables.client
}

// rollbackPause is how long a rollback that has failed waits until it is tried again.
const rollbackPause = time.Second

// Close rolls back the transaction if there is one, and ends the session. If that fails, for a page
// cannot be read at the moment, it is tried again for as long as the engine runs, so that the locks go
// when it can: the error only tells the caller.
func (s *Session) Close() error {
	err := s.close()
	s.ReleaseAllNamed() // also of a transaction that waits to be rolled back: they keep nobody from what it has changed
	if err != nil && s.m.opt.Engine.Err() == nil {
		s.m.opt.Env.Go("rollback", s.closeAgain)
	}
	return err
}

// closeAgain tries to close until that succeeds, or the engine has ended.
func (s *Session) closeAgain() {
	for s.m.opt.Engine.Err() == nil && s.m.Down() == nil {
		env.Sleep(s.m.opt.Env, rollbackPause)
		if s.close() == nil {
			return
		}
	}
}

// close is one try of Close. If the engine has halted there is nothing that could be taken back.
func (s *Session) close() error {
	err := s.Rollback()
	if errors.Is(err, ErrNoTransaction) {
		err = nil
	}
	if err != nil && s.m.opt.Engine.Err() == nil {
		return err
	}
	s.unlock()
	s.m.mu.Lock()
	for i := range s.m.sessions {
		if s.m.sessions[i] == s {
			s.m.sessions = append(s.m.sessions[:i], s.m.sessions[i+1:]...)
			break
		}
	}
	s.m.mu.Unlock()
	s.turn.Lock()
	_ = s.dropTemporaries() // what stays goes when the process ends
	s.turn.Unlock()
	if s.idle != nil {
		s.m.discard(s.idle.events)
		s.idle = nil
	}
	return err
}

// Begin starts a transaction and its first statement.
func (s *Session) Begin(opt BeginOptions) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.t != nil {
		return ErrTransaction
	}
	if err := s.m.Down(); err != nil {
		return err
	}
	t := s.idle
	if s.idle = nil; t == nil {
		t = s.newTxn()
	}
	opt.Part, opt.Waits = uint32(s.id), &s.waits
	t.temp = s.temp
	t.begin(opt)
	t.locks.side, t.locks.client = s.side(), s.client()
	s.lost = nil
	s.set(t)
	return nil
}

// set makes t the session's transaction.
func (s *Session) set(t *Txn) {
	s.mu.Lock()
	s.t, s.cur = t, t
	if t != nil {
		t.sessionID = s.id
	}
	s.mu.Unlock()
}

// InTransaction reports whether the session has a transaction.
func (s *Session) InTransaction() bool {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.t != nil
}

// Trx is the engine's transaction, for looking at, or nil. It is valid until the
// transaction ends.
func (s *Session) Trx() *trx.Trx {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur == nil {
		return nil
	}
	return s.cur.Trx
}

// Interrupt (KILL) ends a wait for a lock, now or later up to the next
// BeginStatement, with error 1317. Any task may call it.
func (s *Session) Interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur != nil {
		s.cur.killed.Store(true)
		s.cur.interrupt()
	}
	s.m.locks.interrupt(&s.tables)
	s.m.locks.interrupt(&s.named)
}

// interruptForSuspend ends a wait for a lock. [Session.giveWay] follows, and gives back what LockTables has locked. Named locks stay
// for as long as the session: who asks for one asks, too, whether this node leads.
func (s *Session) interruptForSuspend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur != nil {
		s.cur.interrupt()
	}
	s.m.locks.interrupt(&s.tables)
	s.m.locks.interrupt(&s.named)
}

// goOn takes the interrupt of Suspend back from a transaction that stays: a wait that comes when
// changes are allowed again would end with it. That of KILL remains.
func (s *Session) goOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.cur.killed.Load() {
		s.cur.resetInterrupt()
	}
}

// Waits is what the session waits for at the moment, as a process list says it, empty if for
// nothing. Any task may call it.
func (s *Session) Waits() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.cur
	switch {
	case t == nil:
		return s.m.locks.waits(&s.tables, &s.named)
	case t.state.Load() != atSession || s.settling.Load():
		return "waiting for handler commit"
	case t.awaits.Load():
		return "waiting for transactions to be rolled back"
	case s.m.opt.Engine.Locks.Waits(t.Trx.Locks()):
		return "Waiting for row lock"
	}
	return s.m.locks.waits(&t.locks, &s.tables, &s.named)
}

// waitFinished waits until the entries up to an index are committed. ended is as of
// CommitLog.WaitFinished.
func (s *Session) waitFinished(ctx context.Context, index uint64, ended func() error) error {
	s.settling.Store(true)
	defer s.settling.Store(false)
	return s.m.opt.Log.WaitFinished(ctx, index, ended)
}

// enter begins a call within a transaction; leave follows unless it returns an error.
func (s *Session) enter() (*Txn, error) {
	s.turn.Lock()
	t := s.t
	switch {
	case t == nil && s.lost != nil:
		defer s.turn.Unlock()
		return nil, s.lost
	case t == nil:
		s.turn.Unlock()
		return nil, ErrNoTransaction
	case t.broken != nil:
		defer s.turn.Unlock()
		return nil, t.broken
	}
	if t.ending.Load() != nil {
		s.endSnapshot()
	}
	return t, nil
}

// enterToWrite is enter for what changes or locks rows, of the table if that is known.
func (s *Session) enterToWrite(o *Table, change bool) (*Txn, error) {
	t, err := s.enter()
	if err != nil || o != nil && o.temporary != nil {
		return t, err
	}
	if change && t.Trx.ReadOnly() {
		err = ErrReadOnly
	} else {
		err = s.m.Suspended()
	}
	if err != nil {
		s.turn.Unlock()
		return nil, err
	}
	return t, nil
}

// leave ends a call. The victim of a deadlock is rolled back, and so is who depends on
// a transaction that the group has not committed.
func (s *Session) leave(err error) error {
	switch {
	case err == nil:
	case errors.Is(err, lock.ErrDeadlock), errors.Is(err, table.ErrEntryFailed):
		err = s.lose(err)
	default:
		var killed error
		if s.t != nil {
			killed = s.t.Killed()
		}
		err = s.forSuspend(err, killed)
	}
	if t := s.t; t != nil && t.ending.Load() != nil {
		if errors.Is(err, lock.ErrInterrupted) && t.Killed() == nil {
			err = *t.ending.Load()
		}
		s.endSnapshot()
	}
	s.turn.Unlock()
	return err
}

// forSuspend gives a wait that was ended for Suspend's sake, and not by a KILL, the reason of Suspend as its error.
func (s *Session) forSuspend(err, killed error) error {
	if killed == nil && errors.Is(err, lock.ErrInterrupted) {
		if reason := s.m.Suspended(); reason != nil {
			return reason
		}
	}
	return err
}

// lose rolls back the transaction because of an error, which it returns.
//
// REQUIRES: turn.
func (s *Session) lose(cause error) error {
	if s.t == nil {
		return cause
	}
	if err := s.undo(); err != nil {
		s.t.broken = halfUndone(cause, err)
		return s.t.broken
	}
	s.lost = cause
	return cause
}

// undo rolls the transaction back and ends it, or leaves that to the next start if the node stops.
//
// REQUIRES: turn; there is a transaction.
func (s *Session) undo() error {
	left, err := s.t.takeBack()
	switch {
	case err != nil:
		return err
	case left:
		s.leaveBehind()
	default:
		s.finish(false)
	}
	return nil
}

// finish ends a transaction that is committed, or unchanged, or rolled back.
func (s *Session) finish(commits bool) {
	s.t.endTemporary(commits)
	t := s.t
	s.set(nil)
	t.end()
	s.idle = t
}

// Rollback takes back everything that the transaction did and ends it. After an
// error it may be called again.
func (s *Session) Rollback() error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.t == nil {
		if s.lost != nil {
			s.lost = nil
			return nil
		}
		return ErrNoTransaction
	}
	return s.undo()
}

// Commit makes the transaction durable and visible and returns its number. One that
// has changed nothing has no number of its own: it gets the last committed one, after
// waiting for what its locking reads depend on. After an error the transaction is
// rolled back, unless the error wraps [ErrOutcomeUnknown]. In any case the session
// has no transaction afterwards.
func (s *Session) Commit(ctx context.Context) (number uint64, err error) {
	t, err := s.enter()
	if err != nil {
		return 0, s.refused(err)
	}
	if err = t.endStatement(); err == nil && t.changed() {
		err = s.m.locks.acquire(&t.locks, CommitLock, SharedWrite, t.metadataWait)
		if errors.Is(err, lock.ErrInterrupted) && t.Killed() == nil && t.ending.Load() != nil {
			s.endSnapshot() // which a commit does not need
			err = s.m.locks.acquire(&t.locks, CommitLock, SharedWrite, t.metadataWait)
		}
		if err = s.forSuspend(err, t.Killed()); err == nil {
			err = s.m.Suspended()
		}
	}
	switch {
	case err != nil:
		defer s.turn.Unlock()
		return 0, s.fail(err)
	case !t.changed():
		return s.commitUnchanged(ctx, t)
	}
	t.Waiter.Drain()
	t.state.Store(committing)
	s.turn.Unlock()

	number, err = s.m.opt.Log.Commit(ctx, t)

	s.turn.Lock()
	defer s.turn.Unlock()
	s.large = LargeCommit{}
	if t.Body != nil {
		s.large = LargeCommit{t.Body.Plain, t.BodyWait}
	}
	defer s.m.wake()
	switch {
	case err == nil:
		s.finish(true)
	case errors.Is(err, ErrOutcomeUnknown):
		t.endTemporary(true)
		s.set(nil) // before it may end: others look at what the session has
		s.m.locks.leaveSide(&t.locks)
		s.m.leave(t)
	default:
		t.state.Store(atSession)
		err = s.fail(err)
	}
	return number, err
}

// Trace says what the commit of the session's transaction, if it has one, is part of.
func (s *Session) Trace(c trace.Context) {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.t != nil {
		s.t.Trace = c
	}
}

// LargeCommit tells of the last Commit that had changes; zero: the transaction was no large one.
func (s *Session) LargeCommit() LargeCommit { return s.large }

// LockWaits is how often, and how long together, the session has waited for locks on rows and
// definitions since it is there.
func (s *Session) LockWaits() lock.Waits { return s.waits }

// refused is where Commit ends that has no whole transaction to commit.
func (s *Session) refused(err error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.t != nil {
		return s.fail(err)
	}
	s.lost = nil
	return err
}

// fail is lose for Commit: it tells what has ended the transaction, and nobody else
// needs to.
func (s *Session) fail(err error) error {
	err = s.lose(err)
	s.lost = nil
	return err
}

// commitUnchanged ends a transaction that has changed nothing.
//
// REQUIRES: turn, which it gives back.
func (s *Session) commitUnchanged(ctx context.Context, t *Txn) (uint64, error) {
	if depends := t.Trx.DependsOn(); depends != 0 {
		s.turn.Unlock()
		err := s.waitFinished(ctx, depends, nil)
		s.turn.Lock()
		if err == nil && s.t != t {
			err = s.lost
		}
		if err != nil {
			defer s.turn.Unlock()
			return 0, s.fail(err)
		}
	}
	s.finish(true)
	s.turn.Unlock()
	return s.m.opt.Engine.Trx.LastCommitted(), nil
}

// Settle waits until everything that the transaction has learned from rows whose
// locks were released early is committed. What a client is told of such rows (the
// result of a locking read, that a key is taken) waits for it. After an error the
// transaction is rolled back.
func (s *Session) Settle(ctx context.Context) error {
	t, err := s.enter()
	if err != nil {
		return err
	}
	depends := t.Trx.DependsOn()
	s.turn.Unlock()
	if depends == 0 {
		return nil
	}
	err = s.waitFinished(ctx, depends, nil)
	s.turn.Lock()
	defer s.turn.Unlock()
	switch {
	case s.t != t: // Suspend came: that index may be another's
		return s.lost
	case err != nil:
		return s.lose(err)
	}
	return nil
}

// Changed reports whether the transaction has changed anything, so that its commit confirms that this
// node writes.
func (s *Session) Changed() bool {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.t != nil && s.t.changed()
}

// Wrote returns nil if this node has written from the beginning of the transaction's statement until now.
// Suspend rolls back who has locked rows; who has locked definitions alone, or nothing, asks here whether
// what it has found is that of a node that writes.
func (s *Session) Wrote() error {
	t, err := s.enter()
	if err != nil {
		return err
	}
	defer s.turn.Unlock()
	if last := s.m.suspension.Load(); last != t.suspension || s.m.Suspended() != nil {
		return *last
	}
	return nil
}

// giveWay rolls the transaction back for Suspend, if it has changed or locked
// anything, and waits until it is the session's to do so, or is in doubt.
func (s *Session) giveWay(reason error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.m.locks.releaseFrom(&s.tables, 0) // another node gives such locks from now on
	for s.t != nil && s.t.state.Load() != atSession {
		t := s.t
		if t.state.Load() == inDoubt {
			return nil
		}
		s.turn.Unlock()
		s.m.await(func() bool { return t.state.Load() != committing })
		s.turn.Lock()
	}
	if s.t == nil {
		return nil
	}
	if s.t.Trx.Locks().Locks() == 0 && !s.t.changed() && s.t.Trx.DependsOn() == 0 {
		s.goOn()
		return nil
	}
	if err := s.undo(); err != nil {
		return err
	}
	s.lost = reason
	return nil
}

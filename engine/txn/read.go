package txn

import (
	"context"
	"errors"
	"time"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// isMissing reports whether an error says that there is no such table or schema.
func isMissing(err error) bool {
	var e *sqlerr.Error
	return errors.Is(err, table.ErrNoTable) || errors.As(err, &e) && e.Number == sqlerr.BadDBError
}

// snapshot is what the transaction's plain reads of the table see. Error: 1412 if the
// table that is open is not what its name stood for then. A READ COMMITTED transaction has a
// new snapshot with each statement, and on a node that applies the log the table may be
// another by then.
func (t *Txn) snapshot(o *Table) (*trx.Snapshot, error) {
	if err := t.mayUse(o); err != nil {
		return nil, err
	}
	if o.temporary != nil {
		return t.temp.work.Trx().Snapshot(), nil
	}
	if t.blind != nil {
		return nil, t.blind
	}
	snap := t.Trx.Snapshot()
	if !o.seen || o.seenAt != snap.CSN {
		if err := t.m.catalog.CheckSnapshot(o.handle, snap); err != nil {
			return nil, err
		}
		o.seen, o.seenAt = true, snap.CSN
	}
	return snap, nil
}

// awaitOwn waits, if the transaction's next plain read takes a new snapshot, until what the transaction
// depends on is committed: the snapshot would be from before it, and the rows that the transaction has
// changed since are built on it, so that together they would be a state that never was. KILL ends the
// wait, and BeginOptions.Ended; the transaction goes on then. It does not if an entry is lost.
//
// REQUIRES: turn, which it gives back meanwhile. After an error s.t may be another than t.
func (s *Session) awaitOwn(t *Txn) error {
	depends := t.Trx.DependsOn()
	if depends == 0 || !t.Trx.TakesSnapshot() {
		return nil
	}
	var stopped error
	s.turn.Unlock()
	err := s.waitFinished(context.Background(), depends, func() error {
		if stopped = t.Killed(); stopped == nil && t.ended != nil {
			stopped = t.ended()
		}
		return stopped
	})
	s.turn.Lock()
	switch {
	case s.t != t: // Suspend came
		return s.lost
	case err != nil && stopped == nil:
		return s.lose(err)
	}
	return err
}

// ReadAt makes the transaction's plain reads see the state as of a number, for good.
// Errors: trx.ErrSnapshotTooOld, trx.ErrSnapshotInFuture.
//
// REQUIRES: the transaction has read nothing yet.
func (s *Session) ReadAt(number uint64) error {
	t, err := s.enter()
	if err != nil {
		return err
	}
	return s.leave(t.Trx.SnapshotAt(number))
}

// Snapshot takes the transaction's snapshot now, if it has none (START TRANSACTION
// WITH CONSISTENT SNAPSHOT), and returns its number.
func (s *Session) Snapshot() (number uint64, err error) {
	t, err := s.enter()
	if err != nil {
		return 0, err
	}
	if err = t.blind; err == nil {
		err = s.awaitOwn(t)
	}
	if err == nil {
		number = t.Trx.Snapshot().CSN
	}
	return number, s.leave(err)
}

// ForgetSnapshot makes the next plain read see what is committed by then, at any isolation
// level: for checks of a statement that holds locks by now.
func (s *Session) ForgetSnapshot() error {
	t, err := s.enter()
	if err != nil {
		return err
	}
	t.Trx.CloseSnapshot()
	t.blind = nil
	return s.leave(nil)
}

// Holds is the snapshot that the session's transaction has open, if it has one, and the time at which the transaction began. Any task
// may call it.
func (s *Session) Holds() (csn uint64, began time.Duration, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur == nil {
		return 0, 0, false
	}
	csn, open = s.cur.Trx.OpenedSnapshot()
	return csn, s.cur.Trx.Started(), open
}

// EndSnapshot takes a snapshot away from the session's transaction, so that purge need not keep what it sees: plain reads, also those
// under way, fail with the reason from then on, up to the transaction's end or, if it is READ COMMITTED, the statement's. What else it
// does goes on, but that a wait for a lock ends with the reason, too. A session within a call does so when the call is over. EndSnapshot reports
// whether it has brought that about: not if the session has another snapshot, or none, or was told before. Any task may call it.
func (s *Session) EndSnapshot(csn uint64, reason error) bool {
	s.mu.Lock()
	t := s.cur
	if t == nil || t.state.Load() != atSession || t.ending.Load() != nil {
		s.mu.Unlock()
		return false
	}
	if now, open := t.Trx.OpenedSnapshot(); !open || now != csn {
		s.mu.Unlock()
		return false
	}
	t.ending.Store(&reason)
	t.interrupt()
	s.mu.Unlock()
	if s.turn.TryLock() {
		s.endSnapshot()
		s.turn.Unlock()
	}
	return true
}

// endSnapshot does what EndSnapshot has asked for. REQUIRES: turn.
func (s *Session) endSnapshot() {
	t := s.t
	if t == nil || t.state.Load() != atSession {
		return
	}
	reason := t.ending.Swap(nil)
	if reason == nil {
		return
	}
	if !t.Trx.TakesSnapshot() { // else it is the last statement's, and nobody reads in it again
		t.blind = *reason
	}
	t.Trx.CloseSnapshot()
	s.goOn()
}

// Get appends the wanted columns of the row with the clustered key to the batch, as
// the transaction's snapshot sees it; a SERIALIZABLE transaction locks it in S. found is
// false if there is no such row.
func (s *Session) Get(o *Table, key []byte, columns []int, batch *types.Batch) (found bool, err error) {
	t, err := s.enter()
	if err != nil {
		return false, err
	}
	if t.Trx.LockingReads() && o.temporary == nil {
		if err = s.m.Suspended(); err == nil {
			s.counted(o, 0, 1)
			found, err = t.point.read(t, o, key, lock.RecordS, lock.Block, columns, batch)
		}
		return found, s.leave(err)
	}
	var snap *trx.Snapshot
	if o.temporary == nil {
		err = s.awaitOwn(t)
	}
	if err == nil {
		snap, err = t.snapshot(o)
	}
	if err == nil {
		found, err = t.worker(o).Get(o.tbl, key, snap, columns, batch)
		s.counted(o, 0, 1)
	}
	return found, s.leave(err)
}

// GetLocked is Get of the newest version of the row, which it locks: RecordS or
// RecordX.
func (s *Session) GetLocked(o *Table, key []byte, mode lock.Mode, policy lock.Policy, columns []int, batch *types.Batch) (found bool, err error) {
	t, err := s.enterToWrite(o, false)
	if err != nil {
		return false, err
	}
	s.counted(o, 0, 1)
	found, err = t.point.read(t, o, key, mode, policy, columns, batch)
	return found, s.leave(err)
}

// counted counts rows that are read by way of the index at a position.
func (s *Session) counted(o *Table, position int, rows uint64) {
	o.access = position
	o.tbl.Count(table.Fetched, position, s.id, rows)
}

// mayWrite reports whether rows of the table may be changed and locked: not if its
// definition was changed since it was opened, by the log while this node did not lead
// (1412).
func (t *Txn) mayWrite(o *Table) error {
	if err := t.mayUse(o); err != nil {
		return err
	}
	if o.temporary == nil && !o.handle.Current() {
		return table.ErrTableChanged
	}
	return nil
}

// mayChange is mayWrite of who changes rows, which it is to keep off for as long as LOCK TABLES .. READ of another session
// lasts. Errors besides: those of waiting for a metadata lock.
func (t *Txn) mayChange(o *Table) error {
	err := t.mayWrite(o)
	if err == nil && !o.changes && o.temporary == nil {
		err = t.lockName(o.name, SharedWrite)
		o.changes = err == nil
	}
	return err
}

// pointRead reads the newest version of single rows.
type pointRead struct {
	scan table.Scanner
	key  []byte
}

func (p *pointRead) read(t *Txn, o *Table, key []byte, mode lock.Mode, policy lock.Policy, columns []int, batch *types.Batch) (bool, error) {
	if err := t.mayWrite(o); err != nil {
		return false, err
	}
	if batch.Len() > 0 { // a scan fills a batch from the beginning
		return p.append(t, o, key, mode, policy, columns, batch)
	}
	p.key = append(p.key[:0], key...)
	err := p.scan.Start(t.worker(o), o.tbl, nil, table.Range{Low: p.key, High: p.key, Columns: columns, Lock: mode, Policy: policy, Locking: true})
	for more := true; more && err == nil && batch.Len() == 0; {
		more, err = p.scan.Next(batch)
	}
	return batch.Len() > 0, err
}

// append is read for a batch that has rows.
func (p *pointRead) append(t *Txn, o *Table, key []byte, mode lock.Mode, policy lock.Policy, columns []int, batch *types.Batch) (bool, error) {
	one := o.batch(columns)
	found, err := p.read(t, o, key, mode, policy, columns, one)
	if found && err == nil {
		batch.AppendFrom(one, 0)
	}
	return found, err
}

// LockTable locks the rows of a whole table: TableS or TableX.
func (s *Session) LockTable(o *Table, mode lock.Mode) error {
	t, err := s.enterToWrite(o, false)
	if err != nil {
		return err
	}
	err = t.mayWrite(o)
	if o.temporary != nil {
		return s.leave(err)
	}
	if err == nil && (mode == lock.TableS || mode == lock.TableX) {
		err = t.awaitUnended()
	}
	if err == nil {
		err = t.Worker.LockTable(o.tbl, mode)
	}
	return s.leave(err)
}

// Scan reads ranges of tables, one after the other. A session may have several at a
// time.
type Scan struct {
	s    *Session
	t    *Txn
	scan table.Scanner
	lock bool
	own  bool // of a temporary table
	// o and access are what it reads, and by which index: table.NoIndex of a whole table.
	o      *Table
	access int
}

// NewScan returns a scan, to be used for as long as the session lives.
func (s *Session) NewScan() *Scan { return &Scan{s: s} }

// Start makes it a scan of a range, as the transaction's snapshot sees it or, of a
// locking one, as it is now. Plain scans of a SERIALIZABLE transaction lock in S. The
// bounds must stay as they are until the scan is over.
func (c *Scan) Start(o *Table, r table.Range) error {
	s := c.s
	t, err := s.enter()
	if err != nil {
		return err
	}
	if !r.Locking && t.Trx.LockingReads() && o.temporary == nil {
		r.Locking, r.Lock, r.Policy = true, lock.RecordS, lock.Block
	}
	c.t, c.lock, c.own = t, r.Locking, o.temporary != nil
	c.o, c.access = o, r.Index
	if r.Index == 0 && r.Low == nil && r.High == nil {
		c.access = table.NoIndex
	}
	if !c.own {
		if r.Locking {
			err = s.m.Suspended()
		} else {
			err = s.awaitOwn(t)
		}
	}
	var snap *trx.Snapshot
	switch {
	case err != nil:
	case r.Locking:
		err = t.mayWrite(o)
	default:
		snap, err = t.snapshot(o)
	}
	if err == nil {
		err = c.scan.Start(t.worker(o), o.tbl, snap, r)
	}
	return s.leave(err)
}

// enter begins a call of a scan that was started in the present transaction.
func (c *Scan) enter() error {
	t, err := c.s.enter()
	if err != nil {
		return err
	}
	if t != c.t {
		return c.s.leave(ErrNoTransaction)
	}
	switch {
	case c.own:
	case c.lock:
		err = c.s.m.Suspended()
	default:
		err = t.blind
	}
	if err != nil {
		return c.s.leave(err)
	}
	return nil
}

// Next fills the batch, which has a vector for each wanted column, with the next rows,
// and reports whether there may be more.
func (c *Scan) Next(batch *types.Batch) (more bool, err error) {
	if err := c.enter(); err != nil {
		return false, err
	}
	more, err = c.scan.Next(batch)
	c.s.counted(c.o, c.access, uint64(batch.Len()))
	return more, c.s.leave(err)
}

// Key is the clustered key of row i of the last batch.
//
// REQUIRES: Range.Keys.
func (c *Scan) Key(i int) []byte { return c.scan.Key(i) }

// Unlock gives up the locks on row i of the last batch of a locking scan, which the
// statement does not want after all, where the isolation level allows that.
func (c *Scan) Unlock(i int) {
	if c.enter() == nil {
		c.scan.Unlock(i)
		c.s.turn.Unlock()
	}
}

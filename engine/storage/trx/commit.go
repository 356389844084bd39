package trx

import (
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/undo"
)

// ErrOutOfOrder: a commit's number does not follow the last one, or a position
// does not follow the applied one. Nothing was changed.
var ErrOutOfOrder = errors.New("trx: commit out of order")

// commitChunk is how many transactions one mini-transaction commits, and of how many
// tables it raises the counters: each keeps a page latched.
const commitChunk = 64

// Commit is a transaction to commit and its number in the group's log. CSN 0 is
// for a transaction of this node's own, which has no number (membership state,
// statistics): its changes take the CSN of the one before it, that is to say they
// are visible at once, even to open snapshots of that CSN.
type Commit struct {
	Trx *Trx
	CSN uint64
}

// CommitGroup commits the transactions of an entry of the group's log, which is
// at pos, in the given order. What is durable of it is a prefix of the
// transactions, and the position once all of them are there: the marks in the undo logs, the
// applied CSN and the position change in one mini-transaction per [commitChunk]
// transactions, of which only the last one moves the position.
//
// The counters that the transactions have raised are durable at the latest with them.
// Those of a transaction of more than [commitChunk] tables may be durable, after a
// crash, while it is not: then the log brings it again, and raises them to the same
// values.
//
// Then it publishes them: all of the group become visible in one step. Locks are
// released, and undo is handed to history. The transactions are committed; who
// owns them calls End.
//
// Error: [ErrOutOfOrder]; else the engine has halted, and its log will be applied
// again after the next start.
//
// Transactions without a number at the end of the list become durable together with
// the position, all or none: what is logged and has no number (tokens, membership
// state) goes there.
//
// REQUIRES: the group, if there is one, has agreed on the entry; the transactions are
// active, committing or in doubt, each only once; the task holds no latch and no writing
// mini-transaction.
func (s *System) CommitGroup(items []Commit, pos Position) error {
	s.commitTurn.Lock()
	defer s.commitTurn.Unlock()
	last, err := s.checkGroup(items, pos)
	if err != nil {
		return err
	}
	most := s.chunkNow()
	for from := 0; ; {
		to := chunkEnd(items, from, most)
		at := pos
		if to < len(items) {
			at = s.applied
		}
		if err := s.commitChunk(items[from:to], at, most); err != nil {
			s.pool.Log().Fail(err)
			return err
		}
		if from = to; to == len(items) {
			break
		}
	}
	s.applied = pos
	s.publish(items, last)
	return nil
}

// chunkEnd is the end of the chunk that begins at from: of at most most transactions,
// which have raised the counters of as many tables unless the first one alone has
// raised more. Transactions without a number at the end of a group stay together: were
// a part of them durable without the position, nobody could tell which.
func chunkEnd(items []Commit, from, most int) int {
	to, tables := from, 0
	for to < len(items) && to-from < most {
		tables += items[to].Trx.raised()
		if tables > most && to > from {
			break
		}
		to++
	}
	own := len(items)
	for own > 0 && items[own-1].CSN == 0 {
		own--
	}
	switch {
	case to <= own || to == len(items):
		return to
	case own > from:
		return own
	}
	return len(items)
}

// chunkNow is how many transactions one mini-transaction commits in a pool of the
// present size, and of how many tables it raises the counters: it must not latch a
// large part of the pool.
func (s *System) chunkNow() int {
	return int(min(int64(s.chunk), max(1, s.pool.Size()/page.Size/8)))
}

// checkGroup checks order and states and fills in nothing; it returns the CSN of
// the last transaction.
func (s *System) checkGroup(items []Commit, pos Position) (uint64, error) {
	applied := s.applied
	if pos.Index < applied.Index || pos.Term < applied.Term {
		return 0, fmt.Errorf("%w: position %+v after %+v", ErrOutOfOrder, pos, applied)
	}
	last := s.lastCommitted.Load()
	for _, c := range items {
		switch st := c.Trx.State(); {
		case st != Active && st != Committing && st != InDoubt:
			panic("trx: commit of a transaction that is " + st.String())
		case st == InDoubt && c.Trx.position.Index > pos.Index:
			return 0, fmt.Errorf("%w: position %+v of a transaction in doubt at %+v", ErrOutOfOrder, pos, c.Trx.position)
		}
		if d := c.Trx.DependsOn(); d > pos.Index {
			return 0, fmt.Errorf("%w: position %+v of a transaction that depends on index %d", ErrOutOfOrder, pos, d)
		}
		if c.CSN == 0 {
			continue
		}
		if c.CSN != last+1 {
			return 0, fmt.Errorf("%w: number %d after %d", ErrOutOfOrder, c.CSN, last)
		}
		last = c.CSN
	}
	return last, nil
}

// commitChunk makes some transactions of a group durable with a position.
func (s *System) commitChunk(items []Commit, pos Position, most int) error {
	defer func() { clear(s.uses) }()
	s.uses = s.uses[:0]
	for _, c := range items {
		s.uses = c.Trx.appendRaised(s.uses)
	}
	uses := s.uses
	for ; len(uses) > most; uses = uses[most:] {
		if err := s.raiseAhead(uses[:most]); err != nil {
			return err
		}
	}
	m := s.commitMtr
	if err := m.Begin(); err != nil {
		return err
	}
	defer func() { s.commitLSN.Store(max(uint64(m.Commit()), s.commitLSN.Load())) }()
	for _, c := range items {
		if l := c.Trx.log; l != nil {
			if err := l.FixCommit(m); err != nil {
				return err
			}
		}
	}
	p, err := m.Get(systemPageID(), mtr.X)
	if err != nil {
		return err
	}
	// If it fails, those that are raised by then stay so: see raiseAhead.
	if err := raiseCounters(m, uses); err != nil {
		return err
	}
	csn := le.Uint64(p.Data[offApplied:])
	for _, c := range items {
		flags := undo.Unnumbered
		if c.CSN != 0 {
			csn, flags = c.CSN, 0
		}
		if l := c.Trx.log; l != nil {
			l.MarkCommitted(m, csn, flags)
		}
	}
	var b [24]byte
	le.PutUint64(b[:], csn)
	le.PutUint64(b[8:], pos.Index)
	le.PutUint64(b[16:], pos.Term)
	m.Write(p, offApplied, b[:])
	return nil
}

// raiseAhead makes counters durable before the transactions that have raised them. The
// group has agreed on these: after a crash they are applied again and raise the
// counters to where they are. Without a group nothing brings them again, and some
// values are never given.
func (s *System) raiseAhead(uses []*TableUse) error {
	m := s.commitMtr
	if err := m.Begin(); err != nil {
		return err
	}
	defer m.Commit()
	return raiseCounters(m, uses)
}

// raiseCounters raises the counters on the tables' pages. A tablespace that is gone
// has none.
func raiseCounters(m *mtr.Mtr, uses []*TableUse) error {
	for _, u := range uses {
		if err := u.Space.RaiseWords(m, u.Counters[:]); err != nil && !errors.Is(err, space.ErrNotFound) {
			return err
		}
	}
	return nil
}

// publish makes committed transactions visible and ends what they hold.
func (s *System) publish(items []Commit, last uint64) {
	csn := s.lastCommitted.Load()
	s.ids.mu.Lock()
	for _, c := range items {
		if c.CSN != 0 {
			csn = c.CSN
		}
		if id := c.Trx.id.Load(); id != 0 {
			s.ids.settle(id, csn)
		}
	}
	s.ids.mu.Unlock()
	s.env.Yield()
	s.lastCommitted.Store(last)
	s.env.Yield()
	s.finished.Store(s.applied.Index)
	for _, c := range items {
		t := c.Trx
		if t.log != nil {
			s.undo.Release(t.log)
			t.log = nil
		}
		s.CloseSnapshot(&t.view)
		s.locks.ReleaseAll(&t.locks, 0)
		if t.State() == InDoubt {
			s.doubt.finish(t)
		}
		t.move(Committed, Active, Committing, InDoubt)
	}
	// Until here others find the locks, or that they were released early: no answer
	// tells of a change before new snapshots see it.
	s.ids.mu.Lock()
	for _, c := range items {
		if id := c.Trx.id.Load(); id != 0 {
			s.ids.finish(id)
		}
	}
	s.ids.mu.Unlock()
	s.advanceHorizon()
}

// AdvancePosition records that an entry of the group's log without transactions
// has been applied. Error: [ErrOutOfOrder], or what halted the engine.
func (s *System) AdvancePosition(pos Position) error { return s.CommitGroup(nil, pos) }

// CommitLSN is the LSN up to which the redo log must be flushed to make every
// commit so far durable.
func (s *System) CommitLSN() page.LSN { return page.LSN(s.commitLSN.Load()) }

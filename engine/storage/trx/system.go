package trx

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/undo"
)

// SystemOptions configure a system. Pool, Locks and Undo.Spaces are required.
type SystemOptions struct {
	Pool  *buffer.Pool
	Locks *lock.Table
	// Undo says how to open the undo tablespaces; its Pool and OnCommitted are set
	// by Open.
	Undo undo.Options
}

// System is the transaction system of an engine. All methods are safe for
// concurrent use unless they say otherwise.
type System struct {
	visibleBelow  atomic.Uint64 // see the package comment
	lastCommitted atomic.Uint64
	finished      atomic.Uint64 // index of the applied position, published
	_             [40]byte

	env   env.Env
	pool  *buffer.Pool
	locks *lock.Table
	undo  *undo.Manager
	ids   idTable

	parts [partCount]part
	doubt inDoubt

	horizonMu sync.Mutex // guards the following; taken before a part's mutex
	horizon   uint64
	retain    uint64

	floor atomic.Uint64 // as on the system page

	commitTurn *env.Mutex // held by whoever commits a group
	commitMtr  *mtr.Mtr
	applied    Position    // guarded by commitTurn, like uses
	uses       []*TableUse // of the chunk at hand, those that have raised counters
	commitLSN  atomic.Uint64
	chunk      int

	pageTurn *env.Mutex // held by whoever else changes the system page
	pageMtr  *mtr.Mtr

	database    space.DatabaseID
	resurrected []*Trx
}

// Open reads the system page and the undo tablespaces. What was not committed is
// found again: see [System.Resurrected].
//
// REQUIRES: redo has been applied.
func Open(opt SystemOptions) (*System, error) {
	e := opt.Pool.Env()
	s := &System{
		env: e, pool: opt.Pool, locks: opt.Locks, retain: ^uint64(0),
		commitTurn: env.NewMutex(e), pageTurn: env.NewMutex(e),
		commitMtr: mtr.New(opt.Pool), pageMtr: mtr.New(opt.Pool),
		chunk: commitChunk,
	}
	for i := range s.parts {
		s.parts[i].init()
	}
	sp, err := s.readSystemPage()
	if err != nil {
		return nil, err
	}
	s.database = sp.database
	s.lastCommitted.Store(sp.csn)
	s.floor.Store(sp.floor)
	s.horizon = sp.floor
	s.applied = sp.position
	s.finished.Store(sp.position.Index)
	s.visibleBelow.Store(1)
	s.ids.init(sp.idLimit, sp.idLimit, &s.visibleBelow)

	opt.Undo.Pool = opt.Pool
	opt.Undo.OnCommitted = func(id, csn uint64) error {
		if id == 0 || id >= sp.idLimit || csn > sp.csn {
			return fmt.Errorf("trx: undo log of transaction %d, CSN %d, in a database with ids below %d and CSN %d: %w",
				id, csn, sp.idLimit, sp.csn, corruptSystem("applied CSN is behind the undo logs", csn, sp.csn))
		}
		s.ids.recover(id, csn)
		return nil
	}
	if s.undo, err = undo.Open(opt.Undo); err != nil {
		return nil, err
	}
	for _, l := range s.undo.Resurrected() {
		if err := s.resurrect(l); err != nil {
			return nil, err
		}
	}
	s.ids.advance(s.horizon)
	return s, nil
}

func (s *System) readSystemPage() (systemPage, error) {
	m := s.pageMtr
	m.BeginRead()
	defer m.Commit()
	p, err := m.Get(systemPageID(), mtr.S)
	if err != nil {
		return systemPage{}, err
	}
	return decodeSystemPage(p.Data)
}

// resurrect makes a transaction of a log without a commit.
func (s *System) resurrect(l *undo.Log) error {
	id := l.TrxID()
	if id == 0 || id >= s.ids.limit || s.ids.lookup(id) != forgotten {
		return corruptSystem("transaction id of an undo log", s.ids.limit, id)
	}
	t := s.Begin(Options{})
	t.setID(id)
	t.log = l
	s.ids.mu.Lock()
	s.ids.add(id, t)
	s.ids.mu.Unlock()
	t.StartRollback()
	s.resurrected = append(s.resurrected, t)
	return nil
}

// Resurrected returns the transactions that were running when the engine ended,
// rolling back: the caller undoes them, by FinishRollback and End, before or
// beside new work. Their rows are locked implicitly; they have no locks on tables.
func (s *System) Resurrected() []*Trx { return s.resurrected }

// Undo is the manager of the undo tablespaces.
func (s *System) Undo() *undo.Manager { return s.undo }

// Locks is the lock table.
func (s *System) Locks() *lock.Table { return s.locks }

// Database is the identity of the database.
func (s *System) Database() space.DatabaseID { return s.database }

// LastCommitted is the CSN of the last committed transaction.
func (s *System) LastCommitted() uint64 { return s.lastCommitted.Load() }

// Applied is what is committed in the engine: everything in the group's log up to
// the position, and of the entry after it the transactions up to the CSN. After a
// restart it says from where to apply again: entries behind the position, less
// the transactions with a number up to the CSN.
func (s *System) Applied() (csn uint64, pos Position) {
	s.commitTurn.Lock()
	defer s.commitTurn.Unlock()
	return s.lastCommitted.Load(), s.applied
}

// Status returns a transaction's CSN (0: it is visible to every snapshot, or
// never was), or active.
func (s *System) Status(id uint64) (csn uint64, active bool) {
	if id < s.visibleBelow.Load() {
		return 0, false
	}
	v := s.ids.lookup(id)
	if v == activeMark {
		return 0, true
	}
	return v, false
}

// Holder returns the lock owner of a running transaction, for
// lock.Table.ConvertImplicit, or nil if the transaction is not running. It may
// end at any time; ConvertImplicit checks the id, and tells apart the one that is
// in doubt, which holds nothing.
func (s *System) Holder(id uint64) *lock.Owner {
	if id < s.visibleBelow.Load() {
		return nil
	}
	if t := s.ids.owner(id); t != nil {
		return &t.locks
	}
	return nil
}

// Executing reports whether the transaction is still changing rows or taking them
// back: neither finished nor waiting for its commit.
func (s *System) Executing(id uint64) bool {
	if id < s.visibleBelow.Load() {
		return false
	}
	t := s.ids.owner(id)
	if t == nil {
		return false
	}
	st := t.State()
	return (st == Active || st == RollingBack) && t.ID() == id
}

// idMargin is by how much the durable limit of ids is raised at a time; at most
// that many ids are lost with a restart.
const idMargin = 1 << 16

// newID takes an id for t. It raises the durable limit first if it must.
func (s *System) newID(t *Trx) (uint64, error) {
	for {
		s.ids.mu.Lock()
		if s.ids.next < s.ids.limit {
			id := s.ids.next
			s.ids.next++
			s.ids.add(id, t)
			s.ids.mu.Unlock()
			return id, nil
		}
		seen := s.ids.limit
		s.ids.mu.Unlock()
		err := s.changePage(func(m *mtr.Mtr, p mtr.Page) {
			limit := le.Uint64(p.Data[offIDLimit:])
			if limit == seen {
				limit += idMargin
				m.WriteU64(p, offIDLimit, limit)
			}
			s.ids.mu.Lock()
			s.ids.limit = limit
			s.ids.mu.Unlock()
		})
		if err != nil {
			return 0, err
		}
	}
}

// Running calls fn for the transactions that have not ended, part by part, and
// newest first within a part. fn must not park and may use only what [Trx] says is
// safe for others.
func (s *System) Running(fn func(*Trx)) {
	for i := range s.parts {
		s.parts[i].running(fn)
	}
}

func (p *part) running(fn func(*Trx)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := p.trxs.next; l != &p.trxs; l = l.next {
		fn(l.t)
	}
}

// Count is the number of transactions that have not ended.
func (s *System) Count() int {
	n := 0
	for i := range s.parts {
		p := &s.parts[i]
		p.mu.Lock()
		n += p.count
		p.mu.Unlock()
	}
	return n
}

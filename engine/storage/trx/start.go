package trx

import (
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/mtr"
)

// ErrStarted: a database in which numbered transactions have been committed cannot be
// given another place in the group's log.
var ErrStarted = errors.New("trx: the database has its place in the log already")

// StartAt makes what is committed so far, all of it without numbers, the state as of
// a CSN and a position of the group's log: of a database that was received from
// another member as of then. It has no snapshot before that CSN. Error: [ErrStarted],
// or what halted the engine.
//
// REQUIRES: no snapshot is open and nothing else commits; the task holds no latch and
// no writing mini-transaction.
func (s *System) StartAt(csn uint64, pos Position) error {
	s.commitTurn.Lock()
	defer s.commitTurn.Unlock()
	if last := s.lastCommitted.Load(); last != 0 || s.applied != (Position{}) {
		return fmt.Errorf("%w: CSN %d at %+v", ErrStarted, last, s.applied)
	}
	if csn == activeMark {
		return fmt.Errorf("%w: number %d", ErrOutOfOrder, csn)
	}
	err := s.changePage(func(m *mtr.Mtr, p mtr.Page) {
		m.WriteU64(p, offApplied, csn)
		m.WriteU64(p, offPosition, pos.Index)
		m.WriteU64(p, offPosition+8, pos.Term)
		m.WriteU64(p, offFloor, csn)
		s.floor.Store(csn)
	})
	if err != nil {
		return err
	}
	s.commitLSN.Store(uint64(s.pool.Log().Published()))
	s.applied = pos
	s.finished.Store(pos.Index)
	s.lastCommitted.Store(csn)
	s.advanceHorizon()
	return nil
}

// Number is what a counter would give next.
func (s *System) Number(c Counter) (uint64, error) {
	m := mtr.New(s.pool)
	m.BeginRead()
	defer m.Commit()
	p, err := m.Get(systemPageID(), mtr.S)
	if err != nil {
		return 0, err
	}
	return le.Uint64(p.Data[offCounters+8*int(c):]), nil
}

package txn

import (
	"errors"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/storage/lock"
)

// TableLock is a table of LOCK TABLES.
type TableLock struct {
	Name  Name
	Write bool
}

// LockTables locks tables for the session, over its transactions, until UnlockTables: with Write nobody else uses them, else
// nobody else changes their rows, and what others have changed is committed, or rolled back. The session's transactions that begin
// from now on are not kept out, nor are those of sessions that Join it. Each wait lasts for limit at most. ended is asked first, for an Interrupt
// of before. Nothing is locked after an error: 1205, 1213, 1317, the reason of Manager.Suspend, which unlocks them, too; *WatchedError
// if the session has some locked already. Who locks tables to write keeps off who locks CommitLock: else he would wait for these tables,
// and their changes for him.
//
// REQUIRES: the session has no transaction.
func (s *Session) LockTables(tables []TableLock, limit time.Duration, ended func() error) error {
	locks := make([]lockWanted, 0, 3*len(tables))
	for _, t := range tables {
		mode := NoWrite
		if t.Write {
			mode = Exclusive
			locks = append(locks, lockWanted{CommitLock, SharedWrite})
		}
		locks = append(locks, lockWanted{t.Name, mode}, lockWanted{Name{Schema: t.Name.Schema}, Shared})
	}
	return s.lockForSession(locks, limit, ended)
}

// LockShared locks CommitLock or BackupLock for the session, as LockTables does tables: nobody else commits, or changes definitions,
// and who did so has ended.
func (s *Session) LockShared(n Name, limit time.Duration, ended func() error) error {
	return s.lockForSession([]lockWanted{{n, NoWrite}}, limit, ended)
}

func (s *Session) lockForSession(locks []lockWanted, limit time.Duration, ended func() error) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	if err := s.m.Suspended(); err != nil {
		return err
	}
	s.tables.interrupted.Store(false)
	if err := ended(); err != nil {
		return err
	}
	s.side = s.id
	s.tables.side = s.side
	before := len(s.tables.tickets)
	err := s.m.lockNames(&s.tables, nil, locks, limit)
	if err != nil {
		s.m.locks.releaseFrom(&s.tables, before)
	}
	if suspended := s.m.Suspended(); suspended != nil && errors.Is(err, lock.ErrInterrupted) && ended() == nil {
		err = suspended
	}
	return err
}

// UnlockTables gives back what LockTables has locked of some tables, and their schemas with the last of them.
func (s *Session) UnlockTables(tables ...Name) {
	s.turn.Lock()
	defer s.turn.Unlock()
	for _, n := range tables {
		s.m.locks.releaseName(&s.tables, n)
	}
	if s.tables.holds(CommitLock, SharedWrite) && !slices.ContainsFunc(s.tables.tickets, func(t *ticket) bool { return t.mode == Exclusive }) {
		s.m.locks.releaseName(&s.tables, CommitLock)
	}
	for i := len(s.tables.tickets) - 1; i >= 0; i-- {
		if n := s.tables.tickets[i].name; n.Table == "" && !slices.ContainsFunc(s.tables.tickets, func(t *ticket) bool { return t.name.Table != "" && t.name.Schema == n.Schema }) {
			s.m.locks.releaseName(&s.tables, n)
			i = len(s.tables.tickets)
		}
	}
}

// unlock gives back all that the session has locked.
func (s *Session) unlock() {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.m.locks.releaseFrom(&s.tables, 0)
}

// Join makes the transactions that the session begins from now on work for another session's present one, which waits for them: they
// are not kept out by what that, or LockTables, has locked, nor by who waits for it.
func (s *Session) Join(of *Session) {
	of.turn.Lock()
	defer of.turn.Unlock()
	s.side = of.side
	if of.t == nil {
		return
	}
	if of.t.locks.side == 0 {
		side := of.m.number()
		of.m.locks.lockAll()
		of.t.locks.side = side
		of.m.locks.unlockAll()
	}
	s.side = of.t.locks.side
}

// number is one that no session has, nor a side of owners of metadata locks.
func (m *Manager) number() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	return m.made
}

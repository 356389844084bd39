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
// nobody else changes their rows, and what others have changed is committed, or rolled back. The session's transactions
// are not kept out, nor are those of sessions that Join it. It waits for limit at most. ended is asked first, for an Interrupt
// of before. A circle that it waits in it leaves by giving back all, and begins again, unless the session has locked something before, or has
// a transaction.
// Nothing is locked after an error: 1205, 1213, 1317, the reason of Manager.Suspend, which unlocks them, too. Who locks tables to write keeps off who locks CommitLock: else he would wait for these tables,
// and their changes for him.
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
	before := len(s.tables.tickets)
	s.tables.again = before == 0 && len(s.named.tickets) == 0 && s.t == nil
	e := s.m.opt.Env
	for deadline := e.Monotonic() + limit; ; {
		err := s.m.lockNames(&s.tables, nil, locks, max(0, deadline-e.Monotonic()))
		if err == nil {
			return nil
		}
		s.m.locks.releaseFrom(&s.tables, before)
		if !s.tables.again || !errors.Is(err, lock.ErrDeadlock) {
			return s.forSuspend(err, ended())
		}
	}
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
	var empty []Name // schemas of which no table is left
	for _, t := range s.tables.tickets {
		if t.name.Table == "" && !slices.ContainsFunc(s.tables.tickets, func(o *ticket) bool { return o.name.Table != "" && o.name.Schema == t.name.Schema }) {
			empty = append(empty, t.name)
		}
	}
	for _, n := range empty {
		s.m.locks.releaseName(&s.tables, n)
	}
}

// side is that of the session's transactions, and of what it locks over them: of its own, or of another session that it has joined.
func (s *Session) side() uint64 {
	if s.joined != nil {
		return s.joined.side()
	}
	return s.id
}

// unlock gives back all that the session has locked, but named locks.
func (s *Session) unlock() {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.m.locks.releaseFrom(&s.tables, 0)
}

// Join makes the transactions that the session begins from now on work for another session's, which waits for them: they
// are not kept out by what it has locked, nor by who waits for it, and who waits for one of them waits for what any of them waits for.
//
// REQUIRES: of is not closed before the session is.
func (s *Session) Join(of *Session) { s.joined = of }

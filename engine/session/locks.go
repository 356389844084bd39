package session

import (
	"errors"
	"time"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// maxLockName is the length of a name of GET_LOCK, in characters.
const maxLockName = 64

// longestNamedWait is that of GET_LOCK() with a negative timeout.
const longestNamedWait = 100 * 365 * 24 * time.Hour

// errUserLockDeadlock is ER_USER_LOCK_DEADLOCK.
var errUserLockDeadlock = sqlerr.New(sqlerr.UserLockDeadlock)

// GetLock takes a named lock: 1, or 0 when the time is up. Errors: 3058, the wait closes a circle, perhaps by way of locks on tables;
// 1317; 3024, the statement's time was up first; 1053.
func (i *sessionInfo) GetLock(name string, timeout time.Duration) (int64, error) {
	s := i.s()
	if s.info.ReadOnly {
		return 0, errNamedLocks
	}
	if name == "" || types.CharsetUTF8MB4.Count([]byte(name)) > maxLockName {
		return 0, sqlerr.New(sqlerr.UserLockWrongName, name)
	}
	if !s.trx.active {
		if err := s.connect(); err != nil {
			return 0, err
		}
	}
	if timeout < 0 {
		timeout = longestNamedWait
	}
	if s.limit != 0 {
		timeout = min(timeout, s.limit-s.env.Monotonic())
	}
	name = dict.Fold(name)
	if !s.txn.HasNamedLock(name) {
		if err := s.holdKept(txn.NamedLockBytes); err != nil {
			return 0, err
		}
		defer s.forgetLock(name)
	}
	switch err := s.txn.LockNamed(name, timeout, s.waitEnded); {
	case errors.Is(err, lock.ErrTimeout) && s.timeUp():
		return 0, errTimeLimit()
	case errors.Is(err, lock.ErrTimeout):
		return 0, nil
	case errors.Is(err, lock.ErrDeadlock):
		return 0, errUserLockDeadlock
	case err != nil:
		return 0, err
	}
	if err := s.leads(); err != nil {
		s.txn.ReleaseNamed(name)
		return 0, err
	}
	return 1, nil
}

// forgetLock gives back what a lock is counted with that the session has not, or has no more.
func (s *Session) forgetLock(name string) {
	if !s.txn.HasNamedLock(name) {
		_ = s.holdKept(-txn.NamedLockBytes) // what is given back is never refused
	}
}

// ReleaseLock gives up a lock. A session that cannot be told that it was held until now keeps it.
func (i *sessionInfo) ReleaseLock(name string) (released, exists bool, err error) {
	if err := i.s().leads(); err != nil {
		return false, false, err
	}
	if i.txn == nil {
		return false, false, nil
	}
	name = dict.Fold(name)
	if released, exists = i.txn.ReleaseNamed(name); released {
		i.s().forgetLock(name)
	}
	return released, exists, nil
}

func (i *sessionInfo) ReleaseAllLocks() (int64, error) {
	if !i.s().HasLocks() {
		return 0, nil // which is so on any node
	}
	if err := i.s().leads(); err != nil {
		return 0, err
	}
	given := int64(i.txn.NamedLocks()) * txn.NamedLockBytes
	n := i.txn.ReleaseAllNamed()
	_ = i.s().holdKept(-min(given, i.s().kept)) // as in forgetLock
	return n, nil
}

func (i *sessionInfo) LockHolder(name string) (connection uint64, held bool, err error) {
	if i.txn != nil {
		connection, held = i.txn.NamedHolder(dict.Fold(name))
	}
	return connection, held, i.s().leads() // asked last: who leads then has led before
}

// HasLocks reports whether the session has locks of GET_LOCK.
func (s *Session) HasLocks() bool { return s.txn != nil && s.txn.HasNamed() }

// holdsLocks reports whether the session holds anything over its transactions that others may wait for.
func (s *Session) holdsLocks() bool {
	return s.HasLocks() || s.trx.tables.held || s.shared.commits || s.shared.instance
}

// beginsAgain reports whether what has met others in a circle is to be tried again: not if it was a circle of metadata locks and the
// session keeps what may be a part of it.
func (s *Session) beginsAgain(err error) bool {
	rows := (*lock.DeadlockError)(nil)
	return errors.Is(err, lock.ErrDeadlock) && (errors.As(err, &rows) || !s.holdsLocks())
}

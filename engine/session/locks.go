package session

import (
	"slices"
	"sync"
	"time"

	"github.com/triremedb/trireme/engine/env"
)

// namedLocks are those of GET_LOCK(). They are this node's own: clients that write
// meet on the leader.
type namedLocks struct {
	env   env.Env
	mu    sync.Mutex
	locks map[string]*namedLock
	wants map[uint64]string // by session: the lock that it waits for
}

type namedLock struct {
	holder  uint64
	depth   int64
	waiters []env.Parker // in order of arrival
}

// errUserLockDeadlock is ER_USER_LOCK_DEADLOCK.
var errUserLockDeadlock = newError(3058, "HY000", "Deadlock found when trying to get user-level lock; "+
	"try rolling back transaction/releasing locks and restarting lock acquisition.")

// get takes a lock for a session: 1, or 0 when the time is up. Errors: 3058, who holds it waits, perhaps by way
// of others, for a lock of this session; 1317; 3024, the statement's time was up first; 1053.
func (n *namedLocks) get(s *Session, name string, timeout time.Duration) (int64, error) {
	deadline := n.env.Monotonic() + timeout
	s.parker.Drain()
	for {
		now := n.env.Monotonic()
		left := deadline - now
		if timeout < 0 {
			left = unlimited
		}
		stop := s.waitEnded() // not under mu: it may let others go first
		if s.limit != 0 {
			if stop == nil && now >= s.limit {
				stop = errTimeLimit()
			}
			left = min(left, s.limit-now)
		}
		last := stop != nil || left <= 0
		taken, err := n.try(s, name, last)
		switch {
		case err != nil:
			return 0, err
		case taken:
			return 1, nil
		case last:
			return 0, stop
		case left == unlimited:
			s.parker.Park()
		default:
			s.parker.ParkFor(left)
		}
	}
}

// try takes a lock if it is free, or else enters the session in its queue. Who gives up leaves
// the queue in the step that finds the lock taken: a lock that becomes free wakes the first
// of those who still want it.
func (n *namedLocks) try(s *Session, name string, last bool) (taken bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.locks[name]
	if l == nil {
		if n.locks == nil {
			n.locks = map[string]*namedLock{}
		}
		l = &namedLock{}
		n.locks[name] = l
	}
	if l.holder == 0 || l.holder == s.id {
		l.holder = s.id
		l.depth++
		n.leave(s, l)
		return true, nil
	}
	if last {
		n.leave(s, l)
		return false, nil
	}
	if !slices.Contains(l.waiters, s.parker) {
		if n.circle(s.id, l) {
			return false, errUserLockDeadlock
		}
		if n.wants == nil {
			n.wants = map[uint64]string{}
		}
		l.waiters, n.wants[s.id] = append(l.waiters, s.parker), name
	}
	return false, nil
}

// circle reports whether who holds a lock waits, in the end, for a session, which is about to wait for
// the lock: one who begins to hold a lock waits for none, so that a circle closes with a wait only.
//
// REQUIRES: mu.
func (n *namedLocks) circle(id uint64, l *namedLock) bool {
	for l != nil && l.holder != 0 {
		if l.holder == id {
			return true
		}
		name, waits := n.wants[l.holder]
		if !waits {
			return false
		}
		l = n.locks[name]
	}
	return false
}

// leave takes a session out of a lock's queue.
//
// REQUIRES: mu.
func (n *namedLocks) leave(s *Session, l *namedLock) {
	delete(n.wants, s.id)
	l.leave(s.parker)
}

// leave takes a waiter out of the queue.
func (l *namedLock) leave(p env.Parker) {
	for i := range l.waiters {
		if l.waiters[i] == p {
			l.waiters = append(l.waiters[:i], l.waiters[i+1:]...)
			return
		}
	}
}

// release gives up a lock once.
func (n *namedLocks) release(id uint64, name string) (released, exists bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.locks[name]
	if l == nil || l.holder == 0 {
		return false, false
	}
	if l.holder != id {
		return false, true
	}
	if l.depth--; l.depth == 0 {
		n.free(name, l)
	}
	return true, true
}

// free gives a lock to who comes first.
//
// REQUIRES: mu.
func (n *namedLocks) free(name string, l *namedLock) {
	l.holder, l.depth = 0, 0
	if len(l.waiters) == 0 {
		delete(n.locks, name)
		return
	}
	l.waiters[0].Unpark()
}

// releaseAll gives up all locks of a session and returns how often they were taken.
func (n *namedLocks) releaseAll(id uint64) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	var count int64
	for name, l := range n.locks { // the order does not matter: each lock has its own waiters
		if l.holder == id {
			count += l.depth
			n.free(name, l)
		}
	}
	return count
}

// holds reports whether a session has any lock.
func (n *namedLocks) holds(id uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.locks {
		if l.holder == id {
			return true
		}
	}
	return false
}

// heldBy returns who holds a lock.
func (n *namedLocks) heldBy(name string) (uint64, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.locks[name]
	if l == nil || l.holder == 0 {
		return 0, false
	}
	return l.holder, true
}

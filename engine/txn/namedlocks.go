package txn

import (
	"errors"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/storage/lock"
)

// namedLock is a named lock that a session has.
type namedLock struct {
	times int64 // how often it has taken it
	at    int   // where the ticket is among its owner's
}

// LockNamed takes a named lock (GET_LOCK) for the session, once more if it has it: nobody else has it until it is given back as often, or the
// session ends. It waits for limit at most, not at all if that is 0 or less. ended is asked first, for an Interrupt of before.
// Suspend ends waits, and takes no such lock away: it is for the caller to ask whether this node leads. Errors: lock.ErrTimeout,
// lock.ErrDeadlock, 1317, ended's, the reason of Manager.Suspend. The transaction, if there is one, goes on.
//
// Unlike others this call may come within another one of the session, from what that evaluates.
func (s *Session) LockNamed(name string, limit time.Duration, ended func() error) error {
	if has, ok := s.times[name]; ok {
		has.times++
		s.times[name] = has
		return nil
	}
	if err := errors.Join(s.m.Down(), s.m.Suspended()); err != nil {
		return err
	}
	s.named.interrupted.Store(false)
	if err := ended(); err != nil {
		return err
	}
	name = strings.Clone(name) // it may be a part of a long text
	if err := s.m.locks.acquire(&s.named, Name{namedSchema, name}, Exclusive, limit); err != nil {
		if reason := ended(); errors.Is(err, lock.ErrInterrupted) && reason != nil {
			return reason
		}
		return s.forSuspend(err, nil)
	}
	if s.times == nil {
		s.times = map[string]namedLock{}
	}
	s.times[name] = namedLock{1, len(s.named.tickets) - 1}
	return nil
}

// ReleaseNamed gives a named lock back once. exists reports whether anybody had it.
func (s *Session) ReleaseNamed(name string) (released, exists bool) {
	has, ok := s.times[name]
	if !ok {
		_, exists = s.NamedHolder(name)
		return false, exists
	}
	if has.times--; has.times > 0 {
		s.times[name] = has
		return true, true
	}
	delete(s.times, name)
	if moved := s.m.locks.releaseAt(&s.named, has.at); moved != nil {
		other := s.times[moved.name.Table]
		other.at = has.at
		s.times[moved.name.Table] = other
	}
	return true, true
}

// ReleaseAllNamed gives all named locks back, and returns how often the session had taken them.
func (s *Session) ReleaseAllNamed() int64 {
	var taken int64
	for _, has := range s.times {
		taken += has.times
	}
	s.times = nil
	s.m.locks.releaseFrom(&s.named, 0)
	return taken
}

// HasNamed reports whether the session has a named lock.
func (s *Session) HasNamed() bool { return len(s.times) > 0 }

// HasNamedLock reports whether the session has a certain one.
func (s *Session) HasNamedLock(name string) bool {
	_, ok := s.times[name]
	return ok
}

// NamedLocks is how many named locks the session has.
func (s *Session) NamedLocks() int { return len(s.times) }

// KeptBytes is about how much memory the session's named locks and savepoints take, in bytes.
//
// REQUIRES: no other call of the session is under way.
func (s *Session) KeptBytes() int64 {
	s.turn.Lock()
	defer s.turn.Unlock()
	n := NamedLockBytes * int64(len(s.times))
	if s.t != nil {
		n += s.t.savepointBytes
	}
	return n
}

// NamedLockBytes is about what a named lock takes, and SavepointBytes a savepoint besides its name, in bytes.
const (
	NamedLockBytes = 1024
	SavepointBytes = 256
)

// NamedHolder returns the number of the client's session that has a named lock.
func (s *Session) NamedHolder(name string) (client uint64, held bool) {
	n := Name{namedSchema, name}
	shard := s.m.locks.shard(n)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	obj := shard.objects[n]
	if obj == nil || len(obj.granted) == 0 {
		return 0, false
	}
	return obj.granted[0].owner.client, true
}

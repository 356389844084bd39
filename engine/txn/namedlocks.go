package txn

import (
	"errors"
	"time"

	"github.com/triremedb/trireme/engine/storage/lock"
)

// LockNamed takes a named lock (GET_LOCK) for the session, once more if it has it: nobody else has it until it is given back as often, or the
// session ends. It waits for limit at most, not at all if that is 0 or less. ended is asked first, for an Interrupt of before.
// Suspend ends waits, and takes no such lock away: it is for the caller to ask whether this node leads. Errors: lock.ErrTimeout,
// lock.ErrDeadlock, 1317, ended's, the reason of Manager.Suspend. The transaction, if there is one, goes on.
//
// Unlike others this call may come within another one of the session, from what that evaluates.
func (s *Session) LockNamed(name string, limit time.Duration, ended func() error) error {
	if s.times[name] > 0 {
		s.times[name]++
		return nil
	}
	if err := errors.Join(s.m.Down(), s.m.Suspended()); err != nil {
		return err
	}
	s.named.interrupted.Store(false)
	if err := ended(); err != nil {
		return err
	}
	if err := s.m.locks.acquire(&s.named, Name{namedSchema, name}, Exclusive, limit); err != nil {
		if reason := ended(); errors.Is(err, lock.ErrInterrupted) && reason != nil {
			return reason
		}
		return s.forSuspend(err, nil)
	}
	if s.times == nil {
		s.times = map[string]int64{}
	}
	s.times[name] = 1
	return nil
}

// ReleaseNamed gives a named lock back once. exists reports whether anybody had it.
func (s *Session) ReleaseNamed(name string) (released, exists bool) {
	n := s.times[name]
	switch n {
	case 0:
		_, exists = s.NamedHolder(name)
		return false, exists
	case 1:
		delete(s.times, name)
		s.m.locks.releaseName(&s.named, Name{namedSchema, name})
	default:
		s.times[name] = n - 1
	}
	return true, true
}

// ReleaseAllNamed gives all named locks back, and returns how often the session had taken them.
func (s *Session) ReleaseAllNamed() int64 {
	var taken int64
	for _, n := range s.times {
		taken += n
	}
	clear(s.times)
	s.m.locks.releaseFrom(&s.named, 0)
	return taken
}

// HasNamed reports whether the session has a named lock.
func (s *Session) HasNamed() bool { return len(s.times) > 0 }

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

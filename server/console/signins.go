package console

import (
	"crypto/sha256"
	"sync"
	"time"
)

// signIn is somebody who has proved who he is. The fields above mu do not change.
type signIn struct {
	caller Caller
	// credential is that of the account when he did: another password, or one of two that is discarded, ends the sign-in.
	credential []byte
	admin      bool // his account may take the administrator's place
	token      string
	began      time.Time
	ended      chan struct{}

	mu      sync.Mutex
	used    time.Time
	over    bool
	streams int
	runs    map[string]*run
}

// signIns are those that are not over. In memory are only hashes of what their cookies have.
type signIns struct {
	idle time.Duration
	mu   sync.Mutex
	all  map[[sha256.Size]byte]*signIn
}

func (l *signIns) init(idle time.Duration) {
	l.idle, l.all = idle, make(map[[sha256.Size]byte]*signIn)
}

// add begins a sign-in and returns what its cookie has. If there are too many of the account,
// or in all, the one that has been idle for the longest ends.
func (l *signIns) add(s *signIn) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	s.began, s.used, s.token, s.ended, s.runs = now, now, secret(), make(chan struct{}), make(map[string]*run)
	l.expire(now)
	same := func(o *signIn) bool { return o.caller.id() == s.caller.id() }
	l.makeRoom(same, signInsOfOne)
	l.makeRoom(func(*signIn) bool { return true }, signInsMax)
	cookie := secret()
	l.all[sha256.Sum256([]byte(cookie))] = s
	return cookie
}

// makeRoom ends the one of those that is idle for the longest while there are so many.
func (l *signIns) makeRoom(of func(*signIn) bool, most int) {
	for {
		count := 0
		var oldest [sha256.Size]byte
		var least time.Time
		for key, s := range l.all {
			if !of(s) {
				continue
			}
			count++
			if used := s.lastUsed(); least.IsZero() || used.Before(least) {
				oldest, least = key, used
			}
		}
		if count < most {
			return
		}
		l.drop(oldest)
	}
}

func (l *signIns) drop(key [sha256.Size]byte) {
	if s := l.all[key]; s != nil {
		delete(l.all, key)
		s.end()
	}
}

func (l *signIns) expire(now time.Time) {
	for key, s := range l.all {
		if l.expired(s, now) {
			l.drop(key)
		}
	}
}

func (l *signIns) expired(s *signIn, now time.Time) bool {
	return now.Sub(s.lastUsed()) > l.idle || now.Sub(s.began) > signInLife
}

// find returns the sign-in of a cookie, nil if there is none or it is over. active says that a
// person did something, so that it is idle no more.
func (l *signIns) find(cookie string, active bool) *signIn {
	key := sha256.Sum256([]byte(cookie))
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.all[key]
	if s == nil {
		return nil
	}
	now := time.Now()
	if l.expired(s, now) {
		l.drop(key)
		return nil
	}
	if active {
		s.mu.Lock()
		s.used = now
		s.mu.Unlock()
	}
	return s
}

// remove ends a sign-in.
func (l *signIns) remove(of *signIn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, s := range l.all {
		if s == of {
			l.drop(key)
		}
	}
}

// look ends a sign-in that is over by now, and says whether it goes on.
func (l *signIns) look(s *signIn) bool {
	l.mu.Lock()
	over := l.expired(s, time.Now())
	l.mu.Unlock()
	if over {
		l.remove(s)
	}
	return !s.isOver()
}

func (s *signIn) lastUsed() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

func (s *signIn) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// end ends what goes on.
func (s *signIn) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over = true
	close(s.ended)
	for _, r := range s.runs {
		r.stop(errInterrupted)
	}
}

package session

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
)

// slowClock calls a hook whenever somebody asks for the time.
type slowClock struct {
	env.Env
	hook func()
}

func (c *slowClock) Monotonic() time.Duration {
	if c.hook != nil {
		c.hook()
	}
	return c.Env.Monotonic()
}

// TestNamedLockHandedOn: a lock that is given up just when the first of its queue gives up
// waiting goes to the next.
func TestNamedLockHandedOn(t *testing.T) {
	real := env.Real()
	clock := &slowClock{Env: real}
	n := &namedLocks{env: clock}
	open := func(id uint64) *Session { return &Session{id: id, env: real, parker: real.NewParker()} }
	holder, hasty, patient := open(1), open(2), open(3)
	if got, err := n.get(holder, "a", 0); got != 1 || err != nil {
		t.Fatal(got, err)
	}
	queued := func(k int) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return len(n.locks["a"].waiters) == k
	}
	second := make(chan int64, 1)
	// The holder gives up as soon as the hasty one, who is in the queue before the patient
	// one, looks at the clock without holding the mutex.
	asked := 0
	clock.hook = func() {
		if asked++; asked != 2 || !queued(1) {
			return
		}
		clock.hook = nil
		go func() {
			got, _ := n.get(patient, "a", -1)
			second <- got
		}()
		for !queued(2) {
			time.Sleep(time.Millisecond)
		}
		n.release(1, "a")
	}
	if got, err := n.get(hasty, "a", 0); got != 0 && got != 1 || err != nil {
		t.Fatal(got, err)
	}
	if clock.hook != nil { // it looked at nothing while it was in the queue
		clock.hook = nil
		go func() {
			got, _ := n.get(patient, "a", -1)
			second <- got
		}()
		n.release(1, "a")
	}
	n.releaseAll(2)
	select {
	case got := <-second:
		if got != 1 {
			t.Error(got)
		}
	case <-time.After(20 * time.Second):
		t.Error("the lock went to nobody")
	}
}

// TestNamedLockAsksAlone: whether a session is to give up is asked while others can get at the
// locks, since it lets them go first.
func TestNamedLockAsksAlone(t *testing.T) {
	n := &namedLocks{env: env.Real()}
	clock := &slowClock{Env: env.Real()}
	holder := &Session{id: 1, env: n.env, parker: n.env.NewParker()}
	s := &Session{id: 2, env: clock, parker: n.env.NewParker(), limit: time.Hour, checks: 15}
	if got, err := n.get(holder, "a", 0); got != 1 || err != nil {
		t.Fatal(got, err)
	}
	asked := false
	clock.hook = func() {
		if asked = true; !n.mu.TryLock() {
			t.Error("others are locked out")
			return
		}
		n.mu.Unlock()
	}
	if got, err := n.get(s, "a", 0); got != 0 || err != nil || !asked {
		t.Error(got, err, asked)
	}
	s.killed.Store(killQuery)
	if _, err := n.get(s, "a", -1); errorNumber(err) != errnoInterrupted || len(n.locks["a"].waiters) > 0 {
		t.Error(err, n.locks["a"].waiters)
	}
}

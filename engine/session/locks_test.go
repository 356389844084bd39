package session

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
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

// TestNamedLockCircle: who closes a circle of waits hears so, however long it is, and the others go on.
func TestNamedLockCircle(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		n := &namedLocks{env: sim}
		names := []string{"a", "b", "c"}
		var list []*Session
		for i, name := range names {
			s := &Session{id: uint64(i + 1), env: sim, parker: sim.NewParker()}
			if got, err := n.get(s, name, 0); got != 1 || err != nil {
				t.Fatal(got, err)
			}
			list = append(list, s)
		}
		outsider := &Session{id: 9, env: sim, parker: sim.NewParker()}
		got := make([]int64, 4)
		wait := func(i int, s *Session, name string) {
			sim.Go("waits", func() {
				var err error
				if got[i], err = n.get(s, name, -1); err != nil {
					t.Error(i, err)
				}
			})
			env.Sleep(sim, time.Millisecond)
		}
		wait(0, list[0], "b")
		wait(1, list[1], "c")
		wait(3, outsider, "b")
		if v, err := n.get(list[2], "a", 0); v != 0 || err != nil { // who does not wait closes none
			t.Error(v, err)
		}
		for range 2 {
			if v, err := n.get(list[2], "a", time.Hour); errorNumber(err) != 3058 {
				t.Error(v, err)
			}
		}
		for i := len(list) - 1; i >= 0; i-- {
			n.releaseAll(list[i].id)
			env.Sleep(sim, time.Millisecond)
		}
		n.releaseAll(outsider.id)
		if got[0] != 1 || got[1] != 1 || got[3] != 1 || len(n.locks) > 0 || len(n.wants) > 0 {
			t.Error(got, n.locks, n.wants)
		}
	})
}

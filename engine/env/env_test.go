package env_test

import (
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
)

// each runs a test in the real environment and in simulations.
func each(t *testing.T, run func(t *testing.T, e env.Env)) {
	t.Run("real", func(t *testing.T) { run(t, env.Real()) })
	for seed := range uint64(10) {
		t.Run("sim", func(t *testing.T) {
			sim := simenv.New(seed)
			sim.YieldOdds = seed % 3
			sim.Run(func() { run(t, sim) })
		})
	}
}

func TestParkTakesTokenLeftBefore(t *testing.T) {
	each(t, func(t *testing.T, e env.Env) {
		p := e.NewParker()
		p.Unpark()
		p.Park()
		p.Unpark()
		if !p.ParkFor(time.Hour) {
			t.Fatal("ParkFor did not see the token")
		}
	})
}

func TestParkerHoldsOneToken(t *testing.T) {
	each(t, func(t *testing.T, e env.Env) {
		p := e.NewParker()
		p.Unpark()
		p.Unpark()
		p.Park()
		if p.ParkFor(time.Microsecond) {
			t.Fatal("two tokens")
		}
		p.Unpark()
		p.Drain()
		p.Drain()
		if p.ParkFor(0) {
			t.Fatal("Drain left the token")
		}
	})
}

func TestParkForWithoutTime(t *testing.T) {
	each(t, func(t *testing.T, e env.Env) {
		p := e.NewParker()
		for _, d := range []time.Duration{0, -1, math.MinInt64} {
			if p.ParkFor(d) {
				t.Fatal("token out of nothing")
			}
			p.Unpark()
			if !p.ParkFor(d) {
				t.Fatal("did not take the token that was there")
			}
		}
	})
}

func TestParkForMaximum(t *testing.T) {
	each(t, func(t *testing.T, e env.Env) {
		p := e.NewParker()
		e.Go("waker", p.Unpark)
		if !p.ParkFor(math.MaxInt64) {
			t.Fatal("time ran out")
		}
	})
}

// A token that comes about when the time runs out is not lost: either ParkFor
// reports it or it stays.
func TestParkForRace(t *testing.T) {
	each(t, func(t *testing.T, e env.Env) {
		for range 100 {
			p := e.NewParker()
			g := env.NewGroup(e)
			g.Go("waker", func() {
				env.Sleep(e, 10*time.Microsecond)
				p.Unpark()
			})
			taken := p.ParkFor(10 * time.Microsecond)
			g.Wait()
			if left := p.ParkFor(0); left == taken {
				t.Fatalf("ParkFor said %v, and then %v", taken, left)
			}
		}
	})
}

func TestSleepLasts(t *testing.T) {
	each(t, func(t *testing.T, e env.Env) {
		start, wall := e.Monotonic(), e.Now()
		env.Sleep(e, time.Millisecond)
		if took := e.Monotonic() - start; took < time.Millisecond {
			t.Fatalf("slept %v", took)
		}
		if !e.Now().After(wall) {
			t.Fatal("the wall clock stands")
		}
	})
}

func TestMutexExcludes(t *testing.T) {
	each(t, func(t *testing.T, e env.Env) {
		m := env.NewMutex(e)
		g := env.NewGroup(e)
		inside, total := 0, 0
		for range 8 {
			g.Go("task", func() {
				for i := range 100 {
					if i%10 == 0 && m.TryLock() {
						m.Unlock()
					}
					m.Lock()
					inside++
					e.Yield()
					if inside != 1 {
						t.Error("two tasks inside")
					}
					inside--
					total++
					m.Unlock()
				}
			})
		}
		g.Wait()
		if total != 800 {
			t.Fatalf("%d rounds", total)
		}
	})
}

func TestMutexTryLock(t *testing.T) {
	each(t, func(t *testing.T, e env.Env) {
		m := env.NewMutex(e)
		if !m.TryLock() || m.TryLock() {
			t.Fatal("TryLock is wrong about a free or a held mutex")
		}
		m.Unlock()
		defer func() {
			if recover() == nil {
				t.Error("Unlock of a free mutex passed")
			}
		}()
		m.Unlock()
	})
}

// Waiters get the mutex in the order in which they came, and nobody overtakes them.
func TestMutexIsFair(t *testing.T) {
	for seed := range uint64(20) {
		sim := simenv.New(seed)
		sim.Run(func() {
			m, g := env.NewMutex(sim), env.NewGroup(sim)
			var order []int
			m.Lock()
			for i := range 10 {
				g.Go("waiter", func() {
					env.Sleep(sim, time.Duration(i+1)*time.Millisecond)
					m.Lock()
					order = append(order, i)
					sim.Yield()
					m.Unlock()
				})
			}
			env.Sleep(sim, time.Second)
			m.Unlock()
			if m.TryLock() {
				t.Error("overtook the waiters")
			}
			g.Wait()
			if !slices.IsSorted(order) || len(order) != 10 {
				t.Errorf("order is %v", order)
			}
		})
	}
}

func TestParkersReuse(t *testing.T) {
	each(t, func(t *testing.T, e env.Env) {
		c := env.NewParkers(e)
		p := c.Get()
		p.Unpark()
		c.Put(p)
		q := c.Get()
		if p != q {
			t.Fatal("the idle parker was not used")
		}
		if q.ParkFor(0) {
			t.Fatal("a reused parker has a token")
		}
	})
}

func TestGroupWaitsForAll(t *testing.T) {
	each(t, func(t *testing.T, e env.Env) {
		g := env.NewGroup(e)
		g.Wait() // nobody
		m := env.NewMutex(e)
		done := 0
		add := func() {
			m.Lock()
			done++
			m.Unlock()
		}
		for range 5 {
			g.Go("outer", func() {
				g.Go("inner", add)
				e.Yield()
				add()
			})
		}
		second := env.NewGroup(e)
		second.Go("also waits", g.Wait)
		g.Wait()
		second.Wait()
		if done != 10 {
			t.Fatalf("%d tasks are done", done)
		}
		g.Go("again", add)
		g.Wait()
		if done != 11 {
			t.Fatalf("%d tasks are done", done)
		}
	})
}

// TestGate: a gate that is being closed lets nobody in, and Close waits for those inside.
func TestGate(t *testing.T) {
	each(t, func(t *testing.T, e env.Env) {
		var g env.Gate
		callers := env.NewGroup(e)
		var left atomic.Int32
		for range 3 {
			entered := e.NewParker()
			callers.Go("caller", func() {
				if !g.Enter() {
					t.Error("an open gate")
				}
				entered.Unpark()
				for !g.Closed() {
					env.Sleep(e, time.Millisecond)
				}
				if g.Enter() {
					t.Error("a gate that is being closed lets a call in")
				}
				left.Add(1)
				g.Leave()
			})
			entered.Park()
		}
		if g.Closed() {
			t.Error("closed too early")
		}
		if g.Close(e); left.Load() != 3 {
			t.Errorf("closed while %d calls were inside", 3-left.Load())
		}
		callers.Wait()
	})
}

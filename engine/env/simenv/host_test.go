package simenv_test

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
)

// ticker counts milliseconds of a host until the simulation ends.
func ticker(h *simenv.Host, n *int) {
	for {
		env.Sleep(h, time.Millisecond)
		*n++
	}
}

func TestPausedHostStandsStill(t *testing.T) {
	for seed := range uint64(20) {
		sim := simenv.New(seed)
		sim.Run(func() {
			a, b := sim.NewHost(), sim.NewHost()
			na, nb := 0, 0
			for range 3 {
				a.Go("a", func() { ticker(a, &na) })
				b.Go("b", func() { ticker(b, &nb) })
			}
			env.Sleep(sim, 10*time.Millisecond)
			a.Pause(seed%2 == 0)
			before, other := na, nb
			spawned := false
			a.Go("later", func() { spawned = true })
			env.Sleep(sim, time.Second)
			if na != before || nb < other+2000 || spawned || !a.Paused() {
				t.Errorf("seed %d: paused at %d, then %d; the other went from %d to %d", seed, before, na, other, nb)
			}
			a.Resume()
			env.Sleep(sim, 10*time.Millisecond)
			if na < before+20 || na > before+40 || !spawned || a.Paused() {
				t.Errorf("seed %d: %d at the pause, %d after it", seed, before, na)
			}
		})
	}
}

func TestClockOfHost(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		h := sim.NewHost()
		at := func(want time.Duration) {
			t.Helper()
			if got := h.Monotonic(); got < want-2 || got > want+2 {
				t.Errorf("the clock shows %v, want %v", got, want)
			}
		}
		env.Sleep(sim, 100*time.Millisecond)
		at(100 * time.Millisecond)
		h.SetRate(1.05)
		env.Sleep(sim, 100*time.Millisecond)
		at(205 * time.Millisecond)
		h.Pause(false)
		env.Sleep(sim, 100*time.Millisecond)
		h.Resume()
		at(310 * time.Millisecond)
		h.Pause(true)
		env.Sleep(sim, 100*time.Millisecond)
		at(310 * time.Millisecond)
		h.Resume()
		at(310 * time.Millisecond)
		start, mine := sim.Monotonic(), h.Monotonic()
		env.Sleep(h, 105*time.Millisecond)
		if took := sim.Monotonic() - start; took < 100*time.Millisecond || took > 101*time.Millisecond {
			t.Errorf("105 ms of a fast clock lasted %v", took)
		}
		if took := h.Monotonic() - mine; took < 105*time.Millisecond {
			t.Errorf("a wait of 105 ms lasted %v on the host's own clock", took)
		}
	})
}

// A wait stands still with the clock, and can be ended while it does.
func TestWaitsStandStillWithTheClock(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		h := sim.NewHost()
		p := h.NewParker()
		slept, woken := time.Duration(0), time.Duration(0)
		h.Go("sleep", func() { env.Sleep(h, 50*time.Millisecond); slept = sim.Monotonic() })
		h.Go("wait", func() {
			if !p.ParkFor(50 * time.Millisecond) {
				t.Error("the time ran out while it stood still")
			}
			woken = sim.Monotonic()
		})
		env.Sleep(sim, 20*time.Millisecond)
		h.Pause(true)
		env.Sleep(sim, time.Second)
		p.Unpark()
		env.Sleep(sim, time.Second)
		if slept != 0 || woken != 0 {
			t.Error("a paused host went on")
		}
		h.Resume()
		env.Sleep(sim, 100*time.Millisecond)
		if slept != 2050*time.Millisecond || woken != 2020*time.Millisecond {
			t.Errorf("slept until %v, woken at %v", slept, woken)
		}
	})
}

// A caller stands still with the process that it works in.
func TestRunInHost(t *testing.T) {
	for seed := range uint64(20) {
		sim := simenv.New(seed)
		sim.Run(func() {
			h := sim.NewHost()
			steps, calls := 0, 0
			sim.Go("caller", func() {
				for {
					h.Run(func() {
						for range 5 {
							sim.Yield()
							steps++
						}
					})
					calls++
					env.Sleep(sim, time.Millisecond)
				}
			})
			env.Sleep(sim, 100*time.Millisecond)
			h.Pause(false)
			was, done := steps, calls
			env.Sleep(sim, 100*time.Millisecond)
			if was == 0 || steps != was || calls != done {
				t.Errorf("seed %d: %d steps and %d calls at the pause, then %d and %d", seed, was, done, steps, calls)
			}
			h.Resume()
			env.Sleep(sim, 100*time.Millisecond)
			if calls < done+50 {
				t.Errorf("seed %d: %d calls after the pause", seed, calls-done)
			}
		})
	}
}

// Tasks of a paused host end with the simulation.
func TestEndWithPausedHost(t *testing.T) {
	ended := 0
	for seed := range uint64(10) {
		sim := simenv.New(seed)
		sim.Run(func() {
			h := sim.NewHost()
			for range 3 {
				h.Go("task", func() {
					defer func() { ended++ }()
					n := 0
					ticker(h, &n)
				})
			}
			env.Sleep(sim, 10*time.Millisecond)
			h.Pause(seed%2 == 0)
			h.Go("never", func() { t.Error("a task of a paused host began") })
			env.Sleep(sim, 10*time.Millisecond)
		})
	}
	if ended != 30 {
		t.Errorf("%d of 30 tasks have ended", ended)
	}
}

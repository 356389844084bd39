package simenv_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program is a workload whose result depends on the schedule: tasks that take a
// mutex, sleep, draw numbers and wake each other.
func program(sim *simenv.Sim) string {
	var log strings.Builder
	sim.Run(func() {
		m, g := env.NewMutex(sim), env.NewGroup(sim)
		ring := make([]env.Parker, 5)
		for i := range ring {
			ring[i] = sim.NewParker()
		}
		for i := range ring {
			g.Go(fmt.Sprint("task ", i), func() {
				for range 20 {
					m.Lock()
					fmt.Fprint(&log, i, " ", sim.Monotonic(), ";")
					sim.Yield()
					m.Unlock()
					ring[(i+1)%len(ring)].Unpark()
					ring[i].ParkFor(time.Duration(sim.Uint64() % 1000))
				}
			})
		}
		g.Wait()
	})
	return log.String()
}

func TestSameSeedSameRun(t *testing.T) {
	hashes := map[uint64]bool{}
	for seed := range uint64(20) {
		a, b := simenv.New(seed), simenv.New(seed)
		if program(a) != program(b) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
		if a.TraceHash() != b.TraceHash() || a.Steps() != b.Steps() {
			t.Fatalf("seed %d: same runs, different traces", seed)
		}
		hashes[a.TraceHash()] = true
	}
	if len(hashes) != 20 {
		t.Fatalf("20 seeds gave %d traces", len(hashes))
	}
}

func TestTraceCountsEvents(t *testing.T) {
	run := func(event string) uint64 {
		sim := simenv.New(1)
		sim.Run(func() { sim.Trace(event) })
		return sim.TraceHash()
	}
	if a, again := run("a"), run("a"); a != again || a == run("b") {
		t.Fatal("the trace does not tell events apart")
	}
}

// Every interleaving of a few steps is found by some seed.
func TestSeedsReachEveryInterleaving(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(500) {
		sim := simenv.New(seed)
		sim.YieldOdds = 2
		var order string
		sim.Run(func() {
			g := env.NewGroup(sim)
			for _, name := range []string{"a", "b"} {
				g.Go(name, func() {
					for range 2 {
						order += name
						sim.Yield()
					}
				})
			}
			g.Wait()
		})
		seen[order] = true
	}
	if len(seen) != 6 {
		t.Fatalf("saw %d of 6 interleavings: %v", len(seen), seen)
	}
}

func TestYieldOddsZeroNeverSwitches(t *testing.T) {
	for seed := range uint64(20) {
		sim := simenv.New(seed)
		sim.YieldOdds = 0
		sim.Run(func() {
			other := false
			sim.Go("other", func() { other = true })
			for range 100 {
				sim.Yield()
			}
			if other {
				t.Error("Yield switched")
			}
		})
	}
}

// Timers fire in the order of their times; equal ones make their tasks runnable
// in the order in which they were set.
func TestTimersFireInOrder(t *testing.T) {
	sim := simenv.New(3)
	sim.Run(func() {
		g := env.NewGroup(sim)
		var woke []time.Duration
		for _, d := range []time.Duration{5, 1, 9, 3, 3, 7} {
			g.Go("sleeper", func() {
				env.Sleep(sim, d)
				if sim.Monotonic() != d {
					t.Errorf("slept until %v, want %v", sim.Monotonic(), d)
				}
				woke = append(woke, d)
			})
		}
		g.Wait()
		if !slices.IsSorted(woke) || len(woke) != 6 {
			t.Errorf("woke in order %v", woke)
		}
	})
}

// Time passes only while every task waits, and a timer that is no longer needed
// does not move it.
func TestClockStandsWhileTasksRun(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		p := sim.NewParker()
		sim.Go("waker", p.Unpark)
		if !p.ParkFor(time.Hour) {
			t.Error("time ran out while a task could run")
		}
		env.Sleep(sim, time.Second)
		if sim.Monotonic() != time.Second {
			t.Errorf("clock is at %v", sim.Monotonic())
		}
	})
}

// Tasks that still wait when main returns are ended, and clean up.
func TestEndOfRunEndsTasks(t *testing.T) {
	sim := simenv.New(1)
	begun, cleaned := 0, 0
	sim.Run(func() {
		m := env.NewMutex(sim)
		m.Lock()
		for range 3 {
			sim.Go("waits for a token", func() {
				begun++
				defer func() { cleaned++ }()
				sim.NewParker().Park()
				t.Error("went on")
			})
			sim.Go("waits for a lock", func() {
				begun++
				defer func() { cleaned++ }()
				m.Lock()
				t.Error("went on")
			})
			sim.Go("waits again while it ends", func() {
				begun++
				defer func() { cleaned++ }()
				defer env.Sleep(sim, time.Second)
				env.Sleep(sim, time.Hour)
			})
			sim.Go("never stops", func() {
				begun++
				defer func() { cleaned++ }()
				for {
					sim.Yield()
				}
			})
		}
		for begun < 12 {
			sim.Yield()
		}
	})
	if cleaned != 12 {
		t.Fatalf("%d of 12 tasks cleaned up", cleaned)
	}
}

// A task that has not begun when main returns never does.
func TestEndOfRunBeforeTaskBegins(t *testing.T) {
	for seed := range uint64(20) {
		sim := simenv.New(seed)
		ended := false
		sim.Run(func() {
			sim.Go("task", func() {
				if ended {
					t.Error("began after the end")
				}
			})
			ended = true
		})
	}
}

// A simulation can be entered again, as after a crash.
func TestRunAgain(t *testing.T) {
	sim := simenv.New(1)
	for round := range 3 {
		ran := false
		sim.Run(func() {
			sim.Go("left behind", func() { env.Sleep(sim, time.Hour) })
			g := env.NewGroup(sim)
			g.Go("task", func() {
				env.Sleep(sim, time.Second)
				ran = true
			})
			g.Wait()
		})
		if want := time.Duration(round+1) * time.Second; !ran || sim.Monotonic() != want {
			t.Fatalf("round %d: ran %v, clock %v", round, ran, sim.Monotonic())
		}
	}
}

// failure returns what Run panics with.
func failure(sim *simenv.Sim, main func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	sim.Run(main)
	return ""
}

func TestPanicSurfaces(t *testing.T) {
	for seed := range uint64(10) {
		text := failure(simenv.New(seed), func() {
			panic("broken main")
		})
		if !strings.Contains(text, "broken main") {
			t.Fatalf("Run panics with %q", text)
		}
		sim := simenv.New(seed)
		text = failure(sim, func() {
			sim.Go("bad", func() { panic("broken task") })
			sim.Go("waits", func() { sim.NewParker().Park() })
			env.Sleep(sim, time.Hour)
		})
		if !strings.Contains(text, "broken task") || !strings.Contains(text, `"bad"`) {
			t.Fatalf("Run panics with %q", text)
		}
	}
}

func TestDeadlockNamesTheTasks(t *testing.T) {
	sim := simenv.New(1)
	text := failure(sim, func() {
		m := env.NewMutex(sim)
		m.Lock()
		m.Lock()
	})
	for _, want := range []string{"every task waits", `"main"`, "(*Mutex).Lock", "simenv_test.go"} {
		if !strings.Contains(text, want) {
			t.Fatalf("%q is not in %q", want, text)
		}
	}
}

func TestStepLimit(t *testing.T) {
	sim := simenv.New(1)
	sim.StepLimit = 1000
	text := failure(sim, func() {
		for {
			sim.Yield()
		}
	})
	if !strings.Contains(text, "more than 1000 steps") {
		t.Fatalf("Run panics with %q", text)
	}
}

func TestTwoTasksInOneParker(t *testing.T) {
	sim := simenv.New(1)
	text := failure(sim, func() {
		p := sim.NewParker()
		sim.Go("other", p.Park)
		env.Sleep(sim, time.Second)
		p.Park()
	})
	if !strings.Contains(text, "two tasks in one Parker") {
		t.Fatalf("Run panics with %q", text)
	}
}

func BenchmarkSwitch(b *testing.B) {
	sim := simenv.New(1)
	sim.YieldOdds = 1
	sim.Run(func() {
		for range b.N {
			sim.Yield()
		}
	})
}

func BenchmarkParkFor(b *testing.B) {
	sim := simenv.New(1)
	sim.Run(func() {
		p := sim.NewParker()
		for range b.N {
			p.ParkFor(1)
		}
	})
}

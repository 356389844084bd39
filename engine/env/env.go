// Package env is what the engine, the log and the group take from the outside
// world: time, randomness and the running of tasks. Files are injected the same
// way by package file.
//
// Nothing above this package starts a goroutine, reads a clock, sleeps, draws a
// random number or blocks on a channel by itself: it asks its [Env]. In
// production [Real] passes the calls to the Go runtime. In a simulation
// (package simenv) one task runs at a time, in an order drawn from a seed, on a
// virtual clock, so that the same seed gives the same run.
//
// The rules that make this work:
//
//   - A task waits only through a [Parker] or what is built from it here
//     ([Mutex], [Group], [Sleep]).
//   - A sync.Mutex may guard memory if nothing inside the critical section can
//     park (no file I/O, no latch, no Parker). A simulation switches tasks only
//     inside Park, Yield and file calls, so such a mutex is never contended there.
//   - No behaviour may depend on map iteration order, on select among ready
//     channels, on sync.Pool hits or on addresses.
package env

import (
	"math/rand/v2"
	"time"
)

// Env gives time, randomness and tasks. All methods are safe for concurrent use.
type Env interface {
	// Now is the wall clock. It may jump.
	Now() time.Time
	// Monotonic is the time since some fixed point; it never falls.
	Monotonic() time.Duration
	// Uint64 is a uniformly random number, for choices and identifiers
	// (not for secrets).
	Uint64() uint64
	// Go runs fn as a new task. The name appears in traces.
	Go(name string, fn func())
	// NewParker returns a parker for one waiting task at a time.
	NewParker() Parker
	// Yield marks a point where a simulation may run another task. It costs
	// nothing in production.
	Yield()
}

// Parker lets one task sleep until another wakes it. It holds at most one
// token: Unpark leaves the token if nobody is parked, and the next Park takes it
// and returns at once. Callers re-check their condition after Park, since a
// token may be older than the wait.
type Parker interface {
	// Park waits for the token and takes it.
	Park()
	// ParkFor is Park with a limit. It reports whether the token was taken;
	// false means that the time ran out.
	ParkFor(d time.Duration) bool
	// Unpark leaves the token. It never blocks.
	Unpark()
	// Drain takes the token if there is one, without waiting.
	Drain()
}

// Sleep parks the calling task for d.
func Sleep(e Env, d time.Duration) {
	e.NewParker().ParkFor(d)
}

// Real is the Go runtime's own clock, randomness and scheduler.
func Real() Env { return realEnv{} }

type realEnv struct{}

// UntilBeat is the time until the next multiple of a period on the process's clock, or until the one
// after that if less than a tenth of the period is left. Tasks that look around every so often sleep
// for that long and wake together: to wake an idle process once costs less than to do so for each.
func UntilBeat(period time.Duration) time.Duration {
	if period <= 0 {
		return 0
	}
	left := period - time.Since(processStart)%period
	if left < period/10 {
		left += period
	}
	return left
}

// Beat is UntilBeat, or the period itself where time is simulated, so that tasks come in any order.
func Beat(e Env, period time.Duration) time.Duration {
	if e != Real() {
		return period
	}
	return UntilBeat(period)
}

// Ticker is like one of package time, and ticks at the multiples of its period (UntilBeat). After
// each tick it has to be told that the next one is waited for.
type Ticker struct {
	*time.Timer
	every time.Duration
}

// NewTicker returns one whose first tick is the next.
func NewTicker(every time.Duration) Ticker { return Ticker{time.NewTimer(UntilBeat(every)), every} }

// Next waits for the next tick.
func (t Ticker) Next() { t.Reset(UntilBeat(t.every)) }

var processStart = time.Now()

func (realEnv) Now() time.Time           { return time.Now() }
func (realEnv) Monotonic() time.Duration { return time.Since(processStart) }
func (realEnv) Uint64() uint64           { return rand.Uint64() }
func (realEnv) Go(_ string, fn func())   { go fn() }
func (realEnv) Yield()                   {}
func (realEnv) NewParker() Parker        { return &realParker{token: make(chan struct{}, 1)} }

type realParker struct{ token chan struct{} }

func (p *realParker) Park() { <-p.token }

func (p *realParker) ParkFor(d time.Duration) bool {
	select {
	case <-p.token:
		return true
	default:
	}
	if d <= 0 {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.token:
		return true
	case <-t.C:
		return false
	}
}

func (p *realParker) Unpark() {
	select {
	case p.token <- struct{}{}:
	default:
	}
}

func (p *realParker) Drain() {
	select {
	case <-p.token:
	default:
	}
}

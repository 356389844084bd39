package simenv

import (
	"container/heap"
	"math"
	"time"

	"github.com/triremedb/trireme/engine/env"
)

// Host is a machine, or a process, of a simulation: the [env.Env] of what runs on it. It can
// stand still and go on (SIGSTOP, a guest that its hypervisor pauses), and its clock may run at
// a speed of its own.
//
// A task is a host's if the host's Go has started it, or while it is inside [Host.Run], as a
// caller's is that works in the process of another.
type Host struct {
	*Sim
	rate  float64       // of the clock; 1 is the simulation's
	base  time.Duration // what the clock showed
	since time.Duration // when, on the simulation's clock

	paused  bool
	frozen  bool     // with its clock
	held    []*task  // would run if the host did
	stopped []*timer // stand still with the clock
}

var _ env.Env = (*Host)(nil)

// NewHost returns a host that runs, with a clock that shows what the simulation's does.
func (s *Sim) NewHost() *Host { return &Host{Sim: s, rate: 1, base: s.now, since: s.now} }

// Monotonic implements [env.Env].
func (h *Host) Monotonic() time.Duration {
	switch {
	case h.frozen:
		return h.base
	case h.rate == 1:
		return h.base + (h.now - h.since)
	}
	return h.base + time.Duration(float64(h.now-h.since)*h.rate)
}

// lasts is how long, for the simulation, the host's clock takes to move by d.
func (h *Host) lasts(d time.Duration) time.Duration {
	if h == nil || h.rate == 1 || d == math.MaxInt64 {
		return d
	}
	// A clock that is read when a timer fires must show that the time is up.
	return time.Duration(math.Ceil(float64(d)/h.rate)) + 1
}

// SetRate sets the speed of the host's clock, a positive multiple of the simulation's. Waits
// that have begun end as they would have.
func (h *Host) SetRate(rate float64) {
	if rate <= 0 {
		panic("simenv: a clock does not stand still or run backwards by SetRate")
	}
	h.base, h.since, h.rate = h.Monotonic(), h.now, rate
}

// Go implements [env.Env].
func (h *Host) Go(name string, fn func()) { h.spawn(h, name, fn) }

// NewParker implements [env.Env].
func (h *Host) NewParker() env.Parker { return &parker{sim: h.Sim, host: h} }

// Run runs fn in the present task as one of the host's. It begins, and returns, when the host
// is not paused.
func (h *Host) Run(fn func()) {
	t := h.current
	if t == nil {
		panic("simenv: Host.Run outside a task")
	}
	was := t.host
	defer func() { t.host = was }()
	h.enter(t)
	fn()
	h.enter(t)
}

// enter makes the current task one of the host's, and waits while that is paused.
func (h *Host) enter(t *task) {
	t.host = h
	if h.paused && !h.stopping {
		h.held = append(h.held, t)
		h.switchOut(t)
	}
}

// Paused reports whether the host stands still.
func (h *Host) Paused() bool { return h.paused }

// Pause makes the host's tasks stand still where they are, until [Host.Resume]. Waits go on,
// and what they wait for is there at once afterwards; with clock set, its clock and all its
// waits stand still too.
func (h *Host) Pause(clock bool) {
	if h.paused {
		return
	}
	if clock {
		h.stopClock()
	}
	h.paused = true
	kept := h.runnable[:0]
	for _, t := range h.runnable {
		if t.host == h {
			h.held = append(h.held, t)
		} else {
			kept = append(kept, t)
		}
	}
	clear(h.runnable[len(kept):])
	h.runnable = kept
}

// Resume lets the host go on.
func (h *Host) Resume() {
	if !h.paused {
		return
	}
	if h.frozen {
		h.startClock()
	}
	h.paused = false
	h.runnable = append(h.runnable, h.held...)
	h.held = nil
}

func (h *Host) stopClock() {
	h.base, h.since, h.frozen = h.Monotonic(), h.now, true
	kept := h.timers[:0]
	for _, t := range h.timers {
		if t.host == h {
			t.due, t.at = t.due-h.now, -1
			h.stopped = append(h.stopped, t)
			continue
		}
		t.at = len(kept)
		kept = append(kept, t)
	}
	clear(h.timers[len(kept):])
	h.timers = kept
	heap.Init(&h.timers)
}

func (h *Host) startClock() {
	h.since, h.frozen = h.now, false
	for _, t := range h.stopped {
		if t.due > math.MaxInt64-h.now {
			t.due = math.MaxInt64
		} else {
			t.due += h.now
		}
		heap.Push(&h.timers, t)
	}
	h.stopped = nil
}

package lock

import "time"

// recheckMax bounds, in units of Options.RecheckEvery, the time between two
// searches of a waiter, which doubles from one to the next.
const recheckMax = 16

// Wait parks until the request that Acquire queued is decided. It returns nil
// if the lock was granted, [ErrRetry] if the key left the index, a
// *[DeadlockError], [ErrTimeout], [ErrTimeLimit] or [ErrInterrupted]. After an error nothing of
// the request remains, and the transaction's other locks are untouched.
//
// In both of the first cases the record may have changed meanwhile: the caller
// finds it again and repeats Acquire, which answers [Held] if the lock fits.
//
// REQUIRES: o's last Acquire answered [MustWait] without an error; the caller
// holds no latch and no mutex.
func (t *Table) Wait(o *Owner) error {
	t.env.Yield()
	detect := t.enterWait(o)
	limit, patience := stepsAtOnce, t.recheckEvery
	for {
		o.mu.Lock()
		w := &o.wait
		if w.outcome != waitPending {
			o.mu.Unlock()
			return t.leaveWait(o)
		}
		if w.recheck {
			w.recheck, detect = false, true
		}
		seq, deadline, atEnd, parker := w.seq, w.deadline, w.atEnd, o.parker
		o.mu.Unlock()

		if detect && t.detect.Load() {
			t.findDeadlocks(o, limit)
			detect = false
			continue
		}
		pause := patience
		if deadline >= 0 {
			left := deadline - t.env.Monotonic()
			if left <= 0 {
				t.cancel(o, seq, atEnd)
				continue
			}
			pause = min(pause, left)
		}
		if !parker.ParkFor(pause) && pause == patience {
			detect, limit = true, stepsAtLeisure
			patience = min(2*patience, recheckMax*t.recheckEvery)
		}
	}
}

// enterWait makes the wait known to the detector. It reports false if it is
// over already.
func (t *Table) enterWait(o *Owner) bool {
	o.mu.Lock()
	pending := o.wait.outcome == waitPending
	if o.wait.outcome == waitNone {
		o.mu.Unlock()
		panic("lock: Wait without a queued request")
	}
	o.mu.Unlock()
	if pending {
		t.detector.enter(t, o)
	}
	return pending
}

// leaveWait accounts for the wait and turns its outcome into an error.
func (t *Table) leaveWait(o *Owner) error {
	t.detector.leave(o)
	o.mu.Lock()
	how, dead, started, waits := o.wait.outcome, o.wait.deadlock, o.wait.started, o.opts.Waits
	o.wait.outcome, o.wait.deadlock = waitNone, nil
	o.mu.Unlock()
	took := t.env.Monotonic() - started
	t.stats.waited(took)
	waits.Add(took)
	switch how {
	case waitGranted:
		return nil
	case waitRetry:
		return ErrRetry
	case waitDeadlock:
		return &DeadlockError{dead}
	case waitTimeout:
		t.stats.timeouts.Add(1)
		return ErrTimeout
	case waitLimit:
		return ErrTimeLimit
	default:
		return ErrInterrupted
	}
}

// Cancel withdraws the request that o has queued, if it still waits, instead of
// Wait. A lock granted meanwhile stays.
func (t *Table) Cancel(o *Owner) {
	o.mu.Lock()
	seq := o.wait.seq
	o.mu.Unlock()
	t.cancel(o, seq, waitInterrupted)
	o.mu.Lock()
	o.wait.outcome, o.wait.deadlock = waitNone, nil
	o.mu.Unlock()
}

// Interrupt (KILL) ends the wait of o with [ErrInterrupted], and that of every
// later request until [Owner.ResetInterrupt]. Any task may call it.
func (t *Table) Interrupt(o *Owner) {
	o.mu.Lock()
	o.interrupted = true
	seq := o.wait.seq
	o.mu.Unlock()
	t.cancel(o, seq, waitInterrupted)
}

// Waiting reports whether o waits now, and for how long it has.
func (t *Table) Waiting(o *Owner) (time.Duration, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.wait.lock == nil {
		return 0, false
	}
	return t.env.Monotonic() - o.wait.started, true
}

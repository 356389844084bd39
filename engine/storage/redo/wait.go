package redo

import (
	"sync/atomic"

	"github.com/triremedb/trireme/engine/env"
)

// waitList holds tasks that wait until some LSN reaches theirs. Log.mu guards it;
// n may be read without.
//
// No wakeup is lost: a waiter first enters the list and then looks at the LSN
// again; whoever moves the LSN does so first and then looks at n. Go's atomics
// are sequentially consistent, so one of the two sees the other.
type waitList struct {
	n    atomic.Int32
	list []waiter
}

type waiter struct {
	lsn    uint64
	parker env.Parker
}

func (w *waitList) add(lsn uint64, p env.Parker) {
	w.list = append(w.list, waiter{lsn, p})
	w.n.Add(1)
}

// wake wakes those whose LSN is reached, and only those.
func (w *waitList) wake(reached uint64) {
	kept := w.list[:0]
	for _, x := range w.list {
		if x.lsn <= reached {
			x.parker.Unpark()
		} else {
			kept = append(kept, x)
		}
	}
	clear(w.list[len(kept):])
	w.list = kept
	w.n.Store(int32(len(kept)))
}

// wakeFirst wakes the one who has waited longest.
func (w *waitList) wakeFirst() {
	if len(w.list) == 0 {
		return
	}
	w.list[0].parker.Unpark()
	copy(w.list, w.list[1:])
	w.list[len(w.list)-1] = waiter{}
	w.list = w.list[:len(w.list)-1]
	w.n.Add(-1)
}

func (w *waitList) wakeAll() { w.wake(^uint64(0)) }

// await parks once in w, unless at has reached lsn or the log has failed.
// Whoever wakes a waiter takes it off the list first, so that its parker gets
// exactly one token. kick sets the writer task to work meanwhile.
func (l *Log) await(w *waitList, at *atomic.Uint64, lsn uint64, kick bool) {
	p := l.parkers.Get()
	l.mu.Lock()
	w.add(lsn, p)
	if at.Load() >= lsn || l.failure.Load() != nil {
		w.list[len(w.list)-1] = waiter{}
		w.list = w.list[:len(w.list)-1]
		w.n.Add(-1)
		l.mu.Unlock()
	} else {
		l.mu.Unlock()
		if kick {
			l.kick()
		}
		p.Park()
	}
	l.parkers.Put(p)
}

// waitRoom waits until the ring has room for a group that ends at end. What is
// in the way was reserved earlier and will be published without waiting for us,
// so the writer gets there.
func (l *Log) waitRoom(end uint64) {
	l.stats.logWaits.Add(1)
	for !l.hasRoom(end) && l.failure.Load() == nil {
		l.await(&l.roomWait, &l.written, end-uint64(len(l.ring)), true)
	}
}

// waitPublished waits until every group below lsn is published.
func (l *Log) waitPublished(lsn uint64) error {
	for l.published.Load() < lsn {
		if err := l.Err(); err != nil {
			return err
		}
		l.await(&l.pubWait, &l.published, lsn, false)
	}
	return nil
}

func (l *Log) wakePublished() {
	l.mu.Lock()
	l.pubWait.wake(l.published.Load())
	l.mu.Unlock()
}

// admitWaiter is a task in Admit.
type admitWaiter struct {
	n      int64
	parker env.Parker
	err    error
}

// Admit reserves n bytes of the log's capacity for groups to come. If the
// checkpoint age would exceed the capacity it calls OnPressure and parks until
// a checkpoint or another's Unadmit has made room; who waits longest is first.
// It returns the error that halted the log. n counts a group's header as well
// (GroupHeaderSize).
//
// REQUIRES: the caller holds no latch and no admission that it would give back
// only later; n is at most the capacity less 64 KiB.
func (l *Log) Admit(n int) error {
	if err := l.Err(); err != nil {
		return err
	}
	if int64(n) > l.limit.Load() || n < 0 {
		panic("redo: Admit of more than the log can hold")
	}
	if l.admitQueue.Load() != 0 || !l.tryAdmit(int64(n)) {
		if err := l.admitSlowly(int64(n)); err != nil {
			return err
		}
	}
	if l.Age() > l.asyncAge() && !l.pressed.Load() && l.pressed.CompareAndSwap(false, true) {
		l.options.OnPressure()
	}
	return nil
}

// asyncAge is the age from which on the log asks for a checkpoint.
func (l *Log) asyncAge() int64 { return l.limit.Load() / 4 * 3 }

// tryAdmit takes n bytes if they fit.
//
// The order of the loads makes it sound without a lock: a group that no longer
// counts in admitted when we add ours has been reserved before, so the later
// load of current counts it. Those who add after us count ours.
func (l *Log) tryAdmit(n int64) bool {
	admitted := l.admitted.Add(n)
	if l.Age()+admitted <= l.limit.Load() {
		return true
	}
	l.admitted.Add(-n)
	return false
}

func (l *Log) admitSlowly(n int64) error {
	w := &admitWaiter{n: n, parker: l.parkers.Get()}
	l.mu.Lock()
	l.admitWait = append(l.admitWait, w)
	l.admitQueue.Store(int32(len(l.admitWait)))
	if f := l.failure.Load(); f != nil {
		l.failAdmits(f.err)
	} else {
		// For us, and for a waiter whom our failed try may have kept out.
		l.grantAdmits()
	}
	last := len(l.admitWait) - 1
	waiting := last >= 0 && l.admitWait[last] == w
	l.mu.Unlock()
	if waiting {
		l.stats.admitWaits.Add(1)
		l.options.OnPressure()
	}
	w.parker.Park()
	l.parkers.Put(w.parker)
	return w.err
}

// grantAdmits lets in those who fit, in the order in which they came.
//
// REQUIRES: l.mu is held.
func (l *Log) grantAdmits() {
	n := 0
	for n < len(l.admitWait) && l.tryAdmit(l.admitWait[n].n) {
		l.admitWait[n].parker.Unpark()
		n++
	}
	l.dropAdmits(n)
}

func (l *Log) failAdmits(err error) {
	for _, w := range l.admitWait {
		w.err = err
		w.parker.Unpark()
	}
	l.dropAdmits(len(l.admitWait))
}

func (l *Log) dropAdmits(n int) {
	kept := copy(l.admitWait, l.admitWait[n:])
	clear(l.admitWait[kept:])
	l.admitWait = l.admitWait[:kept]
	l.admitQueue.Store(int32(kept))
}

// Unadmit gives back what Admit took, once the caller has reserved what it
// needed of it.
func (l *Log) Unadmit(n int) {
	l.admitted.Add(-int64(n))
	l.roomForAdmits()
}

// roomForAdmits is called after capacity has become free.
func (l *Log) roomForAdmits() {
	if l.admitQueue.Load() == 0 {
		return
	}
	l.mu.Lock()
	l.grantAdmits()
	l.mu.Unlock()
}

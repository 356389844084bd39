package buffer

import (
	"sync"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/env"
)

// The latch word of a frame, from the low end: count of S holders, X bit,
// waiters bit, version.
const (
	latchSharedMask = 1<<16 - 1
	latchExclusive  = 1 << 16
	latchWaiters    = 1 << 17
	latchVersionLow = 20
	latchVersionOne = 1 << latchVersionLow
)

// latch is a reader-writer lock with a version. Waiters queue in the pool's
// parking lot, in order, and are handed the latch: nobody overtakes them.
type latch struct{ word atomic.Uint64 }

// tryShared takes S unless X is held or someone waits.
func (l *latch) tryShared() bool {
	for {
		w := l.word.Load()
		if w&(latchExclusive|latchWaiters) != 0 {
			return false
		}
		if l.word.CompareAndSwap(w, w+1) {
			return true
		}
	}
}

// bargeShared takes S unless X is held, also before those who wait. It is for a task
// that must not wait since others wait for what it holds: were it refused because of
// a queue, a queue of such tasks would never end.
func (l *latch) bargeShared() bool {
	for {
		w := l.word.Load()
		if w&latchExclusive != 0 {
			return false
		}
		if l.word.CompareAndSwap(w, w+1) {
			return true
		}
	}
}

// tryExclusive takes X if nobody holds or awaits the latch.
func (l *latch) tryExclusive() bool {
	w := l.word.Load()
	return w&(latchExclusive|latchWaiters|latchSharedMask) == 0 &&
		l.word.CompareAndSwap(w, w|latchExclusive)
}

// stableVersion returns the version, and false while X is held.
func (l *latch) stableVersion() (uint64, bool) {
	w := l.word.Load()
	return w >> latchVersionLow, w&latchExclusive == 0
}

// waiter is a task that queues for a latch.
type waiter struct {
	frame     uint32
	exclusive bool
	parker    env.Parker
}

const parkingSpots = 64

// parkingLot holds the queues of all latches, sharded by frame. A frame's
// waiters bit is set exactly while its queue is not empty; both change under the
// shard's mutex.
type parkingLot struct {
	parkers *env.Parkers
	shards  [parkingSpots]struct {
		mu    sync.Mutex
		queue []waiter // of all frames of the shard, in order of arrival
	}
}

// lock takes the frame's latch, waiting if it must.
func (p *Pool) lock(idx uint32, exclusive bool) {
	f := &p.frames[idx]
	if exclusive {
		if f.latch.tryExclusive() {
			return
		}
	} else if f.latch.tryShared() {
		return
	}
	p.stats.latchWaits.Add(1)
	s := &p.lot.shards[idx%parkingSpots]
	parker := p.lot.parkers.Get()
	s.mu.Lock()
	for {
		w := f.latch.word.Load()
		if w&latchWaiters == 0 {
			if exclusive && w&(latchExclusive|latchSharedMask) == 0 {
				if f.latch.word.CompareAndSwap(w, w|latchExclusive) {
					s.mu.Unlock()
					p.lot.parkers.Put(parker)
					return
				}
				continue
			}
			if !exclusive && w&latchExclusive == 0 {
				if f.latch.word.CompareAndSwap(w, w+1) {
					s.mu.Unlock()
					p.lot.parkers.Put(parker)
					return
				}
				continue
			}
		}
		if w&latchWaiters != 0 || f.latch.word.CompareAndSwap(w, w|latchWaiters) {
			break
		}
	}
	s.queue = append(s.queue, waiter{frame: idx, exclusive: exclusive, parker: parker})
	s.mu.Unlock()
	parker.Park() // whoever unlocks hands the latch over
	p.lot.parkers.Put(parker)
}

// unlockShared drops one S hold.
func (p *Pool) unlockShared(idx uint32) {
	f := &p.frames[idx]
	w := f.latch.word.Add(^uint64(0))
	if w&latchWaiters != 0 && w&latchSharedMask == 0 {
		p.handOver(idx)
	}
}

// unlockExclusive drops X and raises the version.
func (p *Pool) unlockExclusive(idx uint32) {
	f := &p.frames[idx]
	w := f.latch.word.Add(latchVersionOne - latchExclusive)
	if w&latchWaiters != 0 {
		p.handOver(idx)
	}
}

// handOver gives a free latch to the first waiters of its queue: to one that
// wants X, or to all that want S up to the next that wants X.
func (p *Pool) handOver(idx uint32) {
	for p.handSome(idx) {
	}
}

// handSome hands the latch to as many waiters as fit its stack, and reports whether
// more might have it. Some left behind would keep the waiters bit set, and with it
// everyone queueing who comes meanwhile.
func (p *Pool) handSome(idx uint32) (more bool) {
	f := &p.frames[idx]
	s := &p.lot.shards[idx%parkingSpots]
	var wake [8]env.Parker
	n := 0
	s.mu.Lock()
	kept := s.queue[:0]
	blocked := false
	for _, q := range s.queue {
		switch {
		case q.frame != idx:
			kept = append(kept, q)
			continue
		case !blocked && n < len(wake) && f.grant(q.exclusive):
			wake[n] = q.parker
			n++
			continue
		}
		more = more || !blocked && n == len(wake)
		blocked = true
		kept = append(kept, q)
	}
	clear(s.queue[len(kept):])
	s.queue = kept
	if !blocked {
		f.latch.word.And(^uint64(latchWaiters))
	}
	s.mu.Unlock()
	for _, parker := range wake[:n] {
		parker.Unpark()
	}
	return more
}

// grant takes the latch for a queued waiter.
//
// REQUIRES: the shard's mutex is held and the waiters bit is set, so that no
// one else can take the latch but in S and by barging.
func (f *frame) grant(exclusive bool) bool {
	for {
		w := f.latch.word.Load()
		if w&latchExclusive != 0 || exclusive && w&latchSharedMask != 0 {
			return false
		}
		to := w + 1
		if exclusive {
			to = w + latchExclusive
		}
		if f.latch.word.CompareAndSwap(w, to) {
			return true
		}
	}
}

package buffer

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/storage/page"
)

// Values of frame.lru.
const (
	lruNone uint32 = iota
	lruYoung
	lruOld
	lruWithdrawn // not in use: above the pool's present size, empty
)

// lruList orders the resident pages by use, newest first. Its tail, the old
// sublist, takes pages as they are read; one that is used again after
// OldBlocksTime moves to the head. So a scan passes through the old sublist only.
// It also keeps the free frames.
type lruList struct {
	pool *Pool
	mu   sync.Mutex

	head, tail uint32
	midpoint   uint32 // first frame of the old sublist
	young, old int

	free   []uint32
	target int // frames in use by configuration: indexes 1..target
	oldPct int // Options.OldBlocksPct

	clock   atomic.Uint32 // counts evictions
	youngIn atomic.Uint32 // evictions for which a young page keeps its place: an eighth of target
	oldTime atomic.Int64  // Options.OldBlocksTime
}

func (l *lruList) init(p *Pool, frames int) {
	l.pool = p
	l.oldPct = p.opt.OldBlocksPct
	l.oldTime.Store(int64(p.opt.OldBlocksTime))
	l.setTarget(frames)
	l.free = make([]uint32, 0, len(p.frames))
	for i := len(p.frames) - 1; i >= 1; i-- {
		f := &p.frames[i]
		f.fix.Store(tombstone)
		if i <= frames {
			l.free = append(l.free, uint32(i))
		} else {
			f.lru.Store(lruWithdrawn)
		}
	}
}

func (l *lruList) setTarget(frames int) {
	l.target = frames
	l.youngIn.Store(uint32(frames / 8))
}

// touch notes a use of frame i; it moves the page only where that matters, so
// that a pool that evicts nothing takes no lock here.
func (p *Pool) touch(i uint32) {
	clock := p.lru.clock.Load()
	if clock == 0 {
		return
	}
	f := &p.frames[i]
	switch f.lru.Load() {
	case lruOld:
		now := uint32(p.env.Monotonic()/time.Millisecond) | 1
		first := f.firstAccess.Load()
		if first == 0 {
			f.firstAccess.Store(now)
			if p.lru.oldTime.Load() > 0 {
				return
			}
		} else if int64(now-first)*int64(time.Millisecond) < p.lru.oldTime.Load() {
			return
		}
	case lruYoung:
		if clock-f.stamp.Load() <= p.lru.youngIn.Load() {
			return
		}
	default:
		return
	}
	p.lru.makeYoung(i)
}

func (l *lruList) makeYoung(i uint32) {
	f := &l.pool.frames[i]
	l.mu.Lock()
	if f.lru.Load() != lruNone {
		if f.lru.Load() == lruOld {
			l.pool.stats.madeYoung.Add(1)
		}
		l.unlink(i)
		l.pushHead(i)
		l.balance()
	}
	l.mu.Unlock()
}

// add puts a new page at the midpoint.
func (l *lruList) add(i uint32) {
	f := &l.pool.frames[i]
	l.mu.Lock()
	f.firstAccess.Store(0)
	if l.midpoint == noFrame {
		l.pushHead(i)
	} else {
		l.insertBefore(l.midpoint, i)
		f.lru.Store(lruOld)
		l.midpoint = i
		l.old++
	}
	l.balance()
	l.mu.Unlock()
}

func (l *lruList) remove(i uint32) {
	l.mu.Lock()
	if l.pool.frames[i].lru.Load() != lruNone {
		l.unlink(i)
		l.balance()
	}
	l.mu.Unlock()
}

func (l *lruList) pushHead(i uint32) {
	f := &l.pool.frames[i]
	f.lruPrev, f.lruNext = noFrame, l.head
	if l.head != noFrame {
		l.pool.frames[l.head].lruPrev = i
	} else {
		l.tail = i
	}
	l.head = i
	f.lru.Store(lruYoung)
	f.stamp.Store(l.clock.Load())
	l.young++
}

func (l *lruList) insertBefore(at, i uint32) {
	a, f := &l.pool.frames[at], &l.pool.frames[i]
	f.lruPrev, f.lruNext = a.lruPrev, at
	if a.lruPrev != noFrame {
		l.pool.frames[a.lruPrev].lruNext = i
	} else {
		l.head = i
	}
	a.lruPrev = i
}

func (l *lruList) unlink(i uint32) {
	f := &l.pool.frames[i]
	if l.midpoint == i {
		l.midpoint = f.lruNext
	}
	if f.lruPrev != noFrame {
		l.pool.frames[f.lruPrev].lruNext = f.lruNext
	} else {
		l.head = f.lruNext
	}
	if f.lruNext != noFrame {
		l.pool.frames[f.lruNext].lruPrev = f.lruPrev
	} else {
		l.tail = f.lruPrev
	}
	if f.lru.Load() == lruOld {
		l.old--
	} else {
		l.young--
	}
	f.lru.Store(lruNone)
	f.lruPrev, f.lruNext = noFrame, noFrame
}

// balance moves the midpoint until the old sublist has its share.
func (l *lruList) balance() {
	want := (l.young + l.old) * l.oldPct / 100
	for l.old < want {
		at := l.tail
		if l.midpoint != noFrame {
			at = l.pool.frames[l.midpoint].lruPrev
		}
		if at == noFrame {
			return
		}
		l.pool.frames[at].lru.Store(lruOld)
		l.midpoint = at
		l.young--
		l.old++
	}
	for l.old > want+1 && l.midpoint != noFrame {
		f := &l.pool.frames[l.midpoint]
		f.lru.Store(lruYoung)
		f.stamp.Store(l.clock.Load())
		l.midpoint = f.lruNext
		l.old--
		l.young++
	}
}

const (
	evictScanDepth = 100              // frames looked at from the tail before help is called
	freeWait       = time.Millisecond // pause between attempts to get a frame
	freeAttempts   = 10_000           // attempts before ErrExhausted: about ten seconds
)

// takeFree returns an empty frame with the tombstone in its fix count.
func (l *lruList) takeFree() (uint32, error) {
	for attempt := 0; ; attempt++ {
		l.mu.Lock()
		if n := len(l.free); n > 0 {
			i := l.free[n-1]
			l.free = l.free[:n-1]
			l.mu.Unlock()
			return i, nil
		}
		depth := evictScanDepth
		if attempt > 0 {
			depth = len(l.pool.frames)
		}
		i := l.evictLocked(depth)
		l.mu.Unlock()
		if i != noFrame {
			return i, nil
		}
		l.pool.stats.waitFree.Add(1)
		if err := l.pool.log.Err(); err != nil {
			return noFrame, err
		}
		if attempt == freeAttempts {
			return noFrame, ErrExhausted
		}
		l.pool.clean.needFrames(l.pool)
		l.pool.pause(freeWait)
	}
}

// evictLocked takes the least recently used clean page that nobody fixes out of
// the pool and returns its frame.
func (l *lruList) evictLocked(depth int) uint32 {
	for i := l.tail; i != noFrame && depth > 0; depth-- {
		prev := l.pool.frames[i].lruPrev
		if l.evictFrame(i) {
			if int(i) <= l.target {
				return i
			}
			l.retire(i)
		}
		i = prev
	}
	return noFrame
}

// evictFrame takes the page of a frame of the list out of the pool, if it is clean
// and nobody fixes it. The frame is then in no list, with the tombstone.
func (l *lruList) evictFrame(i uint32) bool {
	p := l.pool
	f := &p.frames[i]
	if f.oldest.Load() != 0 || !f.fix.CompareAndSwap(0, tombstone) {
		return false
	}
	if f.oldest.Load() != 0 || !p.emptyFrame(i) {
		f.fix.Add(-tombstone)
		return false
	}
	l.unlink(i)
	l.balance()
	l.clock.Add(1)
	p.stats.evicted.Add(1)
	return true
}

// retire takes an empty frame above the target out of use and gives its memory
// back to the system.
func (l *lruList) retire(i uint32) {
	l.pool.frames[i].lru.Store(lruWithdrawn)
	releaseMemory(l.pool.bytesOf(i))
}

// emptyFrame takes the page out of the hash under the latch, so that optimistic
// readers notice.
//
// REQUIRES: the tombstone is set.
func (p *Pool) emptyFrame(i uint32) bool {
	f := &p.frames[i]
	if !f.latch.tryExclusive() {
		return false // a late pin holds the latch for a moment
	}
	p.removeFromHash(i)
	p.unlockExclusive(i)
	return true
}

// giveFree returns a frame that takeFree gave out.
func (l *lruList) giveFree(i uint32) {
	l.mu.Lock()
	if int(i) <= l.target {
		l.free = append(l.free, i)
	} else {
		l.retire(i)
	}
	l.mu.Unlock()
}

// reclaim frees a frame that has left the hash and the list but may still be
// fixed by tasks that are about to notice.
func (l *lruList) reclaim(i uint32) {
	f := &l.pool.frames[i]
	for !f.fix.CompareAndSwap(0, tombstone) {
		l.pool.pause(10 * time.Microsecond)
	}
	l.giveFree(i)
}

// pause lets other tasks run for about d.
func (p *Pool) pause(d time.Duration) {
	parker := p.lot.parkers.Get()
	parker.ParkFor(d)
	p.lot.parkers.Put(parker)
}

// DropSpace forgets all cached pages of a tablespace that is being dropped:
// changes that are not on disk are discarded.
//
// REQUIRES: nothing fixes a page of the tablespace for longer than a moment, and
// no task brings one in again.
func (p *Pool) DropSpace(space uint32) {
	p.EachFrameOf(space, func(i uint32, id page.ID) {
		f := &p.frames[i]
		for f.resident.Load() && f.id.Load() == id.Uint64() {
			if f.fix.CompareAndSwap(0, tombstone) {
				if !f.resident.Load() || f.id.Load() != id.Uint64() {
					f.fix.Add(-tombstone) // another page has come into the frame
					return
				}
				p.flush.remove(i)
				for !p.emptyFrame(i) {
					p.pause(10 * time.Microsecond)
				}
				p.lru.remove(i)
				p.lru.giveFree(i)
				return
			}
			p.pause(50 * time.Microsecond)
		}
	})
}

// EachFrameOf calls fn for each frame that holds a page of the tablespace at the
// moment when it is looked at.
func (p *Pool) EachFrameOf(space uint32, fn func(frame uint32, id page.ID)) {
	for i := 1; i < len(p.frames); i++ {
		f := &p.frames[i]
		if id := page.FromUint64(f.id.Load()); f.resident.Load() && id.Space == space {
			fn(uint32(i), id)
		}
	}
}

package buffer

import (
	"fmt"
	"time"

	"github.com/triremedb/trireme/engine/storage/page"
)

// withdrawPause is the pause before frames that are in use are tried again.
const withdrawPause = time.Millisecond

// withdrawStep is how many frames are looked at under the list's mutex at a time.
const withdrawStep = batchPages

// Resize makes the pool as large as that many bytes, rounded down to pages, while
// it is in use. From [MinSize] to Options.SizeMax is possible.
//
// Growing takes effect at once: the address space is there, and the system gives
// memory as it is touched. Shrinking withdraws the frames above the new size:
// their pages are written if they are dirty, and forgotten, and the memory goes
// back to the system. It returns when all of them are withdrawn, which takes until
// everyone has let go of their pages. An error is what has halted the engine.
//
// REQUIRES: the task holds no latch.
func (p *Pool) Resize(bytes int64) error {
	if bytes < MinSize || bytes >= p.SizeMax()+page.Size {
		return fmt.Errorf("buffer: innodb_buffer_pool_size cannot be %d bytes: %d to %d are possible while the engine runs",
			bytes, int64(MinSize), p.SizeMax())
	}
	p.resizing.Lock()
	defer p.resizing.Unlock()
	frames := int(bytes / page.Size)
	old := p.lru.retarget(frames)
	for left := old - frames; left > 0; {
		left = 0
		moved := false
		for from := frames + 1; from <= old; from += withdrawStep {
			dirty, busy, gone := p.lru.withdraw(from, min(from+withdrawStep-1, old))
			left += busy
			moved = moved || gone
			if err := p.log.Err(); err != nil {
				return err
			}
			if err := p.writeFrames(dirty); err != nil {
				return err
			}
		}
		if left > 0 && !moved {
			p.pause(withdrawPause)
		}
	}
	if old > frames {
		releaseMemory(p.arena[frames*page.Size : old*page.Size])
	}
	return nil
}

// SizeMax is the size in bytes up to which the pool can grow.
func (p *Pool) SizeMax() int64 { return int64(len(p.frames)-1) * page.Size }

// SetOldBlocks changes Options.OldBlocksPct and OldBlocksTime.
func (p *Pool) SetOldBlocks(pct int, wait time.Duration) {
	o := Options{OldBlocksPct: pct, OldBlocksTime: wait}
	o.setDefaults()
	l := &p.lru
	l.mu.Lock()
	l.oldPct = o.OldBlocksPct
	l.balance()
	l.mu.Unlock()
	l.oldTime.Store(int64(o.OldBlocksTime))
}

// OldBlocks returns the settings in force.
func (p *Pool) OldBlocks() (pct int, wait time.Duration) {
	p.lru.mu.Lock()
	defer p.lru.mu.Unlock()
	return p.lru.oldPct, time.Duration(p.lru.oldTime.Load())
}

// retarget sets the number of frames, gives out those that come in, takes in the
// empty ones of those that go, and returns the number before.
func (l *lruList) retarget(frames int) (old int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old = l.target
	l.setTarget(frames)
	for i := frames; i > old; i-- {
		// One that a shrinking has left in use, since the engine halted, goes on.
		if l.pool.frames[i].lru.CompareAndSwap(lruWithdrawn, lruNone) {
			l.free = append(l.free, uint32(i))
		}
	}
	kept := l.free[:0]
	for _, i := range l.free {
		if int(i) <= frames {
			kept = append(kept, i)
		} else {
			l.pool.frames[i].lru.Store(lruWithdrawn)
		}
	}
	l.free = kept
	return old
}

// withdraw takes the frames from first to last out of use, as far as they are
// clean and nobody fixes them. It returns those that are dirty, how many are still
// in use, and whether any was withdrawn.
func (l *lruList) withdraw(first, last int) (dirty []uint32, busy int, moved bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := uint32(first); int(i) <= last; i++ {
		f := &l.pool.frames[i]
		switch f.lru.Load() {
		case lruWithdrawn:
			continue
		case lruNone: // on its way into the pool or out of it
		default:
			if l.evictFrame(i) {
				f.lru.Store(lruWithdrawn)
				moved = true
				continue
			}
			if f.oldest.Load() != 0 {
				dirty = append(dirty, i)
			}
		}
		busy++
	}
	return dirty, busy, moved
}

// writeFrames writes those of the frames that are dirty and can be written now.
func (p *Pool) writeFrames(frames []uint32) error {
	p.clean.turn.Lock()
	defer p.clean.turn.Unlock()
	b := p.clean.batch
	b.frames = b.frames[:0]
	for _, i := range frames {
		f := &p.frames[i]
		if f.fix.Add(1) <= 0 || f.oldest.Load() == 0 {
			f.fix.Add(-1)
			continue
		}
		b.frames = append(b.frames, i)
	}
	if len(b.frames) == 0 {
		return nil
	}
	n, err := p.write(b)
	if n == 0 && err == nil {
		p.pause(latchPause)
	}
	return err
}

package buffer

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/page"
)

// CleanerOptions say when and how fast dirty pages are written.
type CleanerOptions struct {
	// IOCapacity is innodb_io_capacity: pages a second for idle flushing and the
	// base of the adaptive rate; 0 means 2,000. IOCapacityMax bounds the adaptive
	// rate; 0 means 20,000, or twice IOCapacity if that is more.
	IOCapacity, IOCapacityMax int
	// MaxDirtyPct is innodb_max_dirty_pages_pct: above it pages are written at
	// IOCapacityMax; 0 means 90.
	MaxDirtyPct int
	// LRUScanDepth is innodb_lru_scan_depth: free or clean frames to keep ready at
	// the tail of the LRU list; 0 means 256, at most a quarter of the pool.
	LRUScanDepth int
	// Interval is the time between the cleaner's rounds; 0 means 250 ms.
	Interval time.Duration
	// Off leaves all writing to explicit calls and to pressure (tests).
	Off bool
}

// SetCleaner changes the cleaner's settings; zero means the default. They hold
// from its next round on.
func (p *Pool) SetCleaner(o CleanerOptions) {
	o.setDefaults()
	p.clean.opt.Store(&o)
	p.clean.parker.Unpark()
}

// CleanerOptions returns the settings in force.
func (p *Pool) CleanerOptions() CleanerOptions { return *p.clean.opt.Load() }

func (o *CleanerOptions) setDefaults() {
	setDefault(&o.IOCapacity, 2000)
	setDefault(&o.IOCapacityMax, max(20_000, 2*o.IOCapacity))
	setDefault(&o.MaxDirtyPct, 90)
	setDefault(&o.LRUScanDepth, 256)
	setDefault(&o.Interval, 250*time.Millisecond)
}

func setDefault[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// The watermarks of the checkpoint age, in eighths of the log's capacity. From
// async on, the cleaner writes as fast as it can beside the running work; from
// sync on, mini-transactions wait at Admit for it.
const (
	asyncEighths = 6
	syncEighths  = 7
)

// cleaner is the page cleaner: one task that writes dirty pages ahead of need and
// advances the checkpoint.
type cleaner struct {
	turn   *env.Mutex // held by whoever writes a batch
	batch  *batch
	parker env.Parker
	opt    atomic.Pointer[CleanerOptions]

	wantFrames atomic.Bool // someone waits for a free frame
	urged      atomic.Bool // the log is short of room

	mu       sync.Mutex
	lastAt   time.Duration
	lastLSN  page.LSN
	redoRate float64 // smoothed, bytes a second
	credit   float64 // pages owed by the adaptive rate, fractions included
	lruRate  float64 // pages written for the LRU list since the last round
}

func (c *cleaner) init(p *Pool) {
	c.turn = env.NewMutex(p.env)
	c.batch = newBatch()
	c.parker = p.env.NewParker()
	opt := p.opt.Cleaner
	c.opt.Store(&opt)
}

// closeFlag tells tasks to end.
type closeFlag struct{ v atomic.Bool }

func (f *closeFlag) set()        { f.v.Store(true) }
func (f *closeFlag) isSet() bool { return f.v.Load() }

// Start runs the page cleaner and the read-ahead tasks.
func (p *Pool) Start() {
	p.clean.lastAt, p.clean.lastLSN = p.env.Monotonic(), p.log.Current()
	p.tasks.Go("page-cleaner", p.runCleaner)
	for range max(p.opt.ReadAheadTasks, 0) {
		p.ahead.start(p)
	}
}

// Kick wakes the page cleaner because the redo log is short of room; it never
// blocks. It is the log's pressure hook.
func (p *Pool) Kick() {
	p.clean.urged.Store(true)
	p.clean.parker.Unpark()
}

func (c *cleaner) needFrames(p *Pool) {
	c.wantFrames.Store(true)
	c.parker.Unpark()
}

// idleIntervals is the time between rounds while no page is dirty, in intervals.
const idleIntervals = 4

func (p *Pool) runCleaner() {
	c := &p.clean
	checkpointAt := p.env.Monotonic()
	for !p.closing.isSet() {
		pause := c.opt.Load().Interval
		if p.flush.len() == 0 {
			pause = env.Beat(p.env, pause*idleIntervals) // whoever needs it sooner wakes it
		}
		c.parker.ParkFor(pause)
		if p.closing.isSet() || p.log.Err() != nil {
			return
		}
		c.turn.Lock()
		err := p.cleanRound()
		c.turn.Unlock()
		if now := p.env.Monotonic(); err == nil && now-checkpointAt >= time.Second {
			checkpointAt = now
			err = p.Checkpoint()
			p.store.SaveLSNs()
		}
		if err != nil {
			p.log.Fail(err)
			return
		}
	}
}

// cleanRound does the work that is due now.
func (p *Pool) cleanRound() error {
	c := &p.clean
	if err := p.relievePressure(); err != nil {
		return err
	}
	off := c.opt.Load().Off
	if wanted := c.wantFrames.Swap(false); wanted || !off {
		if err := p.flushLRU(wanted); err != nil {
			return err
		}
	}
	if off {
		return nil
	}
	pages, adaptive := p.due()
	for pages > 0 {
		n, err := p.flushOldest(min(pages, batchPages), page.LSN(^uint64(0)))
		if err != nil || n == 0 {
			return err
		}
		if adaptive {
			p.stats.adaptivePages.Add(uint64(n))
		} else {
			p.stats.backgroundPages.Add(uint64(n))
		}
		pages -= n
		if c.urged.Load() || c.wantFrames.Load() {
			return nil // come back at once, urgent work first
		}
	}
	return nil
}

// due computes how many pages the smoothed rates ask for since the last round.
// At a steady redo rate r, every page must be written once while the log turns
// over once: r x dirty pages / capacity a second. Pages written for the LRU list
// count towards it.
func (p *Pool) due() (pages int, adaptive bool) {
	c, o := &p.clean, p.clean.opt.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	now, lsn := p.env.Monotonic(), p.log.Current()
	dt := (now - c.lastAt).Seconds()
	if dt <= 0 {
		return 0, true
	}
	rate := float64(lsn-c.lastLSN) / dt
	c.lastAt, c.lastLSN = now, lsn
	weight := min(dt/2, 1) // smoothed over about two seconds
	c.redoRate += (rate - c.redoRate) * weight

	dirty := p.flush.len()
	if dirty == 0 {
		c.credit, c.lruRate = 0, 0
		return 0, true
	}
	if rate == 0 {
		return int(float64(o.IOCapacity)*dt) + 1, false // idle: bring the disk up to date
	}
	perSecond := c.redoRate * float64(dirty) / (float64(p.log.Capacity()) * asyncEighths / 8)
	if dirty*100 > p.lru.size()*o.MaxDirtyPct {
		perSecond = float64(o.IOCapacityMax)
	}
	perSecond = min(perSecond, float64(o.IOCapacityMax))
	c.credit += perSecond*dt - c.lruRate
	c.lruRate = 0
	c.credit = max(c.credit, -float64(o.IOCapacity))
	if c.credit < 1 {
		return 0, true
	}
	pages = int(c.credit)
	c.credit -= float64(pages)
	return pages, true
}

// relievePressure writes the oldest pages until the checkpoint age is below the
// async watermark, and moves the checkpoint as it goes.
func (p *Pool) relievePressure() error {
	urged := p.clean.urged.Swap(false)
	for {
		age, capacity := uint64(p.log.Age()), uint64(p.log.Capacity())
		if age <= capacity*asyncEighths/8 && !urged {
			return nil
		}
		urged = false
		n, err := p.flushOldest(batchPages, page.LSN(^uint64(0)))
		if err != nil {
			return err
		}
		if age > capacity*syncEighths/8 {
			p.stats.syncPages.Add(uint64(n))
		} else {
			p.stats.asyncPages.Add(uint64(n))
		}
		if err := p.Checkpoint(); err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
	}
}

// flushOldest writes up to limit of the pages whose oldest change began before
// upTo, oldest first. With no error it returns 0 only if there are none; it waits
// while all of them are being changed.
//
// REQUIRES: the cleaner's turn.
func (p *Pool) flushOldest(limit int, upTo page.LSN) (int, error) {
	b := p.clean.batch
	for {
		b.frames = p.flush.collect(b.frames[:0], min(limit, batchPages), upTo)
		if len(b.frames) == 0 {
			return 0, nil
		}
		if n, err := p.write(b); n > 0 || err != nil {
			return n, err
		}
		if p.clean.wantFrames.Load() { // a latch holder may be waiting for a frame
			if err := p.flushLRU(true); err != nil {
				return 0, err
			}
		}
		p.pause(latchPause)
	}
}

// latchPause is the pause before pages that are being changed are tried again.
const latchPause = 100 * time.Microsecond

// flushLRU writes dirty pages near the LRU list's tail, so that readers find
// clean frames there. If someone waits for a frame and all that is there is in use,
// it looks at the whole list.
func (p *Pool) flushLRU(wanted bool) error {
	size := p.lru.size()
	n, err := p.flushTail(min(p.clean.opt.Load().LRUScanDepth, size/4))
	if n == 0 && err == nil && wanted {
		_, err = p.flushTail(size)
	}
	return err
}

// flushTail writes some dirty pages among the last depth of the LRU list.
func (p *Pool) flushTail(depth int) (n int, err error) {
	b := p.clean.batch
	b.frames = p.lru.collectDirty(b.frames[:0], depth, batchPages)
	if len(b.frames) == 0 {
		return 0, nil
	}
	n, err = p.write(b)
	p.stats.lruPages.Add(uint64(n))
	p.clean.mu.Lock()
	p.clean.lruRate += float64(n)
	p.clean.mu.Unlock()
	return n, err
}

// collectDirty appends dirty pages among the last depth of the list, fixed. It
// finds none while the free list alone has depth frames.
func (l *lruList) collectDirty(into []uint32, depth, limit int) []uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	depth -= len(l.free)
	for i := l.tail; i != noFrame && depth > 0 && len(into) < limit; i = l.pool.frames[i].lruPrev {
		depth--
		f := &l.pool.frames[i]
		if f.oldest.Load() == 0 || f.fix.Load() != 0 {
			continue
		}
		if f.fix.Add(1) <= 0 {
			f.fix.Add(-1)
			continue
		}
		into = append(into, i)
	}
	return into
}

// size is the number of frames that the pool may use now.
func (l *lruList) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.target
}

// Checkpoint records in the log how far the disk is up to date.
func (p *Pool) Checkpoint() error {
	lsn := p.CheckpointLSN()
	if lsn <= p.log.CheckpointLSN() {
		return nil
	}
	if err := p.log.FlushTo(lsn); err != nil {
		return err
	}
	return p.log.Checkpoint(lsn)
}

// FlushAll writes every page that is dirty now and checkpoints: the log before
// the current LSN is not needed any more.
func (p *Pool) FlushAll() error {
	upTo := p.log.Published()
	for {
		p.clean.turn.Lock()
		n, err := p.flushOldest(batchPages, upTo)
		p.clean.turn.Unlock()
		if err != nil {
			return err
		}
		if n == 0 {
			return p.Checkpoint()
		}
	}
}

// FlushSpace writes the dirty pages of one tablespace and syncs it: what was
// loaded without redo is durable afterwards.
func (p *Pool) FlushSpace(space uint32) error {
	var frames []uint32
	p.EachFrameOf(space, func(i uint32, _ page.ID) {
		if p.frames[i].oldest.Load() != 0 {
			frames = append(frames, i)
		}
	})
	for len(frames) > 0 {
		n := min(len(frames), batchPages)
		if err := p.flushFrames(space, frames[:n]); err != nil {
			return err
		}
		frames = frames[n:]
	}
	// Pages that a batch is just writing are not dirty any more, nor on disk yet; and a failed sync
	// of the tablespace may have lost what that batch counts on, so that it stops the engine.
	p.clean.turn.Lock()
	defer p.clean.turn.Unlock()
	if err := p.log.Err(); err != nil {
		return err
	}
	err := p.store.SyncSpace(space)
	if ignoreDropped(err) != nil {
		p.log.Fail(err)
	}
	return err
}

// flushFrames writes those of the frames that hold dirty pages of the tablespace.
func (p *Pool) flushFrames(space uint32, frames []uint32) error {
	for {
		p.clean.turn.Lock()
		b := p.clean.batch
		b.frames = b.frames[:0]
		for _, i := range frames {
			f := &p.frames[i]
			if f.fix.Add(1) <= 0 || f.oldest.Load() == 0 || page.FromUint64(f.id.Load()).Space != space {
				f.fix.Add(-1)
				continue
			}
			b.frames = append(b.frames, i)
		}
		rest := len(b.frames)
		written, err := p.write(b)
		p.clean.turn.Unlock()
		if err != nil || written == rest {
			return err
		}
		p.pause(latchPause)
	}
}

// Close ends the pool's tasks, writes what is dirty unless the engine has failed,
// and unmaps the memory. Nothing may use the pool any more: whoever does fails at
// once, also in race builds, which unmap nothing.
func (p *Pool) Close() error {
	p.StopTasks()
	var err error
	if p.log.Err() == nil {
		err = p.FlushAll()
	}
	if p.dblwr != nil {
		if cerr := p.dblwr.close(); err == nil {
			err = cerr
		}
	}
	if ferr := errors.Join(freeArena(p.arena), p.unmap()); err == nil {
		err = ferr
	}
	p.arena, p.frames = nil, nil
	return err
}

// StopTasks ends the page cleaner and the read-ahead tasks and waits for them.
func (p *Pool) StopTasks() {
	p.closing.set()
	p.clean.parker.Unpark()
	p.ahead.stop()
	p.tasks.Wait()
}

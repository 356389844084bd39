package buffer

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/storage/page"
)

// flushList orders the dirty frames by the LSN of their oldest unwritten change,
// the newest at the head.
type flushList struct {
	pool       *Pool
	mu         sync.Mutex
	head, tail uint32
	count      int

	// writing is the least oldest-LSN of the pages whose copies are being written,
	// 0 if none: they have left the list but are not safe yet.
	writing atomic.Uint64
}

func (l *flushList) init(p *Pool) { l.pool = p }

// add puts a frame that was clean into the list. Mini-transactions finish slightly
// out of order, so the place is searched from the head.
func (l *flushList) add(i uint32, start page.LSN) {
	f := &l.pool.frames[i]
	l.mu.Lock()
	if f.oldest.Load() != 0 {
		l.mu.Unlock()
		return
	}
	f.oldest.Store(uint64(start))
	at, newer := l.head, noFrame
	for at != noFrame && l.pool.frames[at].oldest.Load() > uint64(start) {
		newer, at = at, l.pool.frames[at].flushNext
	}
	f.flushPrev, f.flushNext = newer, at
	if newer != noFrame {
		l.pool.frames[newer].flushNext = i
	} else {
		l.head = i
	}
	if at != noFrame {
		l.pool.frames[at].flushPrev = i
	} else {
		l.tail = i
	}
	l.count++
	l.mu.Unlock()
}

func (l *flushList) remove(i uint32) {
	l.mu.Lock()
	l.removeLocked(i)
	l.mu.Unlock()
}

func (l *flushList) removeLocked(i uint32) {
	f := &l.pool.frames[i]
	if f.oldest.Load() == 0 {
		return
	}
	if f.flushPrev != noFrame {
		l.pool.frames[f.flushPrev].flushNext = f.flushNext
	} else {
		l.head = f.flushNext
	}
	if f.flushNext != noFrame {
		l.pool.frames[f.flushNext].flushPrev = f.flushPrev
	} else {
		l.tail = f.flushPrev
	}
	f.flushPrev, f.flushNext = noFrame, noFrame
	f.oldest.Store(0)
	l.count--
}

// len is the number of dirty pages.
func (l *flushList) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// oldestLSN is where the oldest change began that is not on disk, or 0 if there
// is none.
func (l *flushList) oldestLSN() page.LSN {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := l.writing.Load()
	if l.tail != noFrame {
		if o := l.pool.frames[l.tail].oldest.Load(); oldest == 0 || o < oldest {
			oldest = o
		}
	}
	return page.LSN(oldest)
}

// collect appends up to limit frames from the tail whose oldest change began
// before upTo, fixed so that they stay.
func (l *flushList) collect(into []uint32, limit int, upTo page.LSN) []uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := l.tail; i != noFrame && len(into) < limit; i = l.pool.frames[i].flushPrev {
		f := &l.pool.frames[i]
		if f.oldest.Load() >= uint64(upTo) {
			break
		}
		if f.fix.Add(1) <= 0 {
			f.fix.Add(-1)
			continue
		}
		into = append(into, i)
	}
	return into
}

// CheckpointLSN is the highest LSN below which every change is on disk.
func (p *Pool) CheckpointLSN() page.LSN {
	published := p.log.Published() // first: see the package comment
	if oldest := p.flush.oldestLSN(); oldest != 0 && oldest < published {
		return oldest
	}
	return published
}

// DirtyPages is the number of pages that are newer in memory than on disk.
func (p *Pool) DirtyPages() int { return p.flush.len() }

// batchPages is the most pages that one write batch holds.
const batchPages = 128

// batch is the cleaner's working memory for one write batch.
type batch struct {
	frames []uint32
	copies []byte // sealed copies, page.Size each
	ids    []page.ID
	spaces []uint32
}

func newBatch() *batch {
	return &batch{frames: make([]uint32, 0, batchPages), copies: make([]byte, 0, batchPages*page.Size)}
}

// write copies the fixed frames of b, makes the redo before them durable, and
// writes the copies: doublewrite file, sync, in place, sync. It drops the fixes.
// Pages that are being changed at the moment are left for a later batch. Any error stops the engine, since a page on disk may be torn now.
//
// REQUIRES: one caller at a time (the cleaner's turn).
func (p *Pool) write(b *batch) (written int, err error) {
	b.copies, b.ids, b.spaces = b.copies[:0], b.ids[:0], b.spaces[:0]
	defer func() {
		if err != nil {
			// First of all: the pages are in no list any more, and no checkpoint may
			// pass their changes.
			p.log.Fail(err)
		}
		for _, i := range b.frames {
			p.frames[i].fix.Add(-1)
		}
		b.frames = b.frames[:0]
		p.flush.writing.Store(0)
	}()
	var newest page.LSN
	for _, i := range b.frames {
		if lsn, ok := p.copyOut(b, i); ok && lsn > newest {
			newest = lsn
		}
	}
	if len(b.ids) == 0 {
		return 0, nil
	}
	if err := p.log.FlushTo(newest); err != nil {
		return 0, err
	}
	if p.dblwr != nil {
		if err := p.dblwr.write(b.copies, len(b.ids)); err != nil {
			return 0, err
		}
		p.stats.dblwrPages.Add(uint64(len(b.ids)))
		p.stats.dblwrWrites.Add(1)
	}
	for n, id := range b.ids {
		if err := p.store.WritePage(id, b.copies[n*page.Size:(n+1)*page.Size]); ignoreDropped(err) != nil {
			return n, err
		}
	}
	for _, space := range b.spaces {
		if err := p.store.SyncSpace(space); ignoreDropped(err) != nil {
			return 0, err
		}
	}
	p.stats.written.Add(uint64(len(b.ids)))
	return len(b.ids), nil
}

// ignoreDropped forgives the loss of a page whose tablespace is gone.
func ignoreDropped(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// copyOut takes a dirty frame off the flush list and appends its sealed copy. It
// passes over a frame that is latched in X.
func (p *Pool) copyOut(b *batch, i uint32) (page.LSN, bool) {
	f := &p.frames[i]
	if !f.latch.bargeShared() {
		// Never wait: the holder may itself wait for a frame that only this batch
		// can make clean. The page stays in the list.
		return 0, false
	}
	defer p.unlockShared(i)
	p.flush.mu.Lock()
	oldest := f.oldest.Load()
	if oldest == 0 || !f.resident.Load() {
		p.flush.mu.Unlock()
		return 0, false
	}
	if w := p.flush.writing.Load(); w == 0 || oldest < w {
		p.flush.writing.Store(oldest)
	}
	p.flush.removeLocked(i)
	p.flush.mu.Unlock()

	data := p.bytesOf(i)
	n := len(b.copies)
	b.copies = append(b.copies, data...)
	page.Seal(b.copies[n:])
	id := page.FromUint64(f.id.Load())
	b.ids = append(b.ids, id)
	known := false
	for _, s := range b.spaces {
		known = known || s == id.Space
	}
	if !known {
		b.spaces = append(b.spaces, id.Space)
	}
	return page.GetLSN(data), true
}

package buffer

import (
	"errors"
	"fmt"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/redo"
)

// Store is where pages live on disk; package space implements it.
type Store interface {
	// ReadPage fills p with the page as it is on disk, unverified.
	ReadPage(id page.ID, p []byte) error
	// WritePage writes a sealed page in place.
	WritePage(id page.ID, p []byte) error
	// SyncSpace makes all pages written to the tablespace durable.
	SyncSpace(space uint32) error
	// CheckLSN looks whether a page that was read, and is sound, is as new as it was written.
	CheckLSN(id page.ID, p []byte) error
	// SaveLSNs is called every second or so, to let CheckLSN know after a restart what it knows now.
	SaveLSNs()
	// Unsound is told of a page that was read and is not what was written.
	Unsound(id page.ID, err error)
}

// ErrExhausted says that every frame is fixed by running work, so that no page
// can be brought in. A larger innodb_buffer_pool_size helps.
var ErrExhausted = errors.New("buffer: every page of the buffer pool is in use; increase innodb_buffer_pool_size")

// ErrNotFound is wrapped by a Store's error for a page of a tablespace that is
// not there (dropped while work on it went on).
var ErrNotFound = errors.New("buffer: no such tablespace")

// Mode says how a page is latched.
type Mode uint8

const (
	Shared    Mode = iota // many readers
	Exclusive             // one writer
)

// Options configure a pool. Env, Store and Log are required.
type Options struct {
	Env   env.Env
	Store Store
	Log   *redo.Log
	FS    file.FS // holds the doublewrite file
	// Size is innodb_buffer_pool_size in bytes, rounded down to pages; at least
	// MinSize. SizeMax bounds later growth by Resize; 0 means Size.
	Size, SizeMax int64
	// Cleaner settings; see [CleanerOptions].
	Cleaner CleanerOptions
	// OldBlocksPct is innodb_old_blocks_pct: the share of the LRU list in which
	// pages that were read once stay; 0 means 37.
	OldBlocksPct int
	// OldBlocksTime is innodb_old_blocks_time: how long after its first access a
	// page must be touched again to become young; 0 means 1 s, negative none.
	OldBlocksTime time.Duration
	// Validate, if set, checks the body of a page that was read and whose checksum is
	// right: a page can be rotten from before it was sealed.
	Validate func(p []byte) error
	// ReadAheadTasks is the number of tasks that serve Prefetch; 0 means 2,
	// negative none.
	ReadAheadTasks int
}

// MinSize is the smallest pool, in bytes.
const MinSize = 64 * page.Size

// Pool is the buffer pool. See the package comment.
type Pool struct {
	env   env.Env
	store Store
	log   *redo.Log
	opt   Options

	arena  []byte
	frames []frame // index 0 stands for "no frame"; outside the Go heap like the arena
	unmap  func() error
	hash   *pageHash
	lot    parkingLot
	lru    lruList
	flush  flushList
	ahead  readAhead
	clean  cleaner
	dblwr  *doublewrite
	stats  counters
	tasks  *env.Group

	closing  closeFlag
	resizing *env.Mutex // held by Resize
}

// New maps the pool's memory. It starts no task; see [Pool.Start].
func New(opt Options) (*Pool, error) {
	if opt.Size < MinSize {
		return nil, fmt.Errorf("buffer: innodb_buffer_pool_size is %d bytes; the least is %d", opt.Size, MinSize)
	}
	if opt.SizeMax < opt.Size {
		opt.SizeMax = opt.Size
	}
	opt.setDefaults()
	count := int(opt.SizeMax / page.Size)
	arena, err := newArena(count * page.Size)
	if err != nil {
		return nil, err
	}
	frames, unmap, err := newFrames(count + 1)
	if err != nil {
		return nil, errors.Join(err, freeArena(arena))
	}
	p := &Pool{
		env: opt.Env, store: opt.Store, log: opt.Log, opt: opt,
		arena:  arena,
		frames: frames,
		unmap:  unmap,
		hash:   newPageHash(count),
		tasks:  env.NewGroup(opt.Env),

		resizing: env.NewMutex(opt.Env),
	}
	p.lot.parkers = env.NewParkers(opt.Env)
	p.lru.init(p, int(opt.Size/page.Size))
	p.flush.init(p)
	p.ahead.init(p)
	p.clean.init(p)
	if opt.FS != nil {
		if p.dblwr, err = openDoublewrite(opt.FS); err != nil {
			return nil, errors.Join(err, freeArena(arena), unmap())
		}
	}
	return p, nil
}

func (o *Options) setDefaults() {
	if o.OldBlocksPct <= 0 || o.OldBlocksPct > 95 {
		o.OldBlocksPct = 37
	}
	if o.OldBlocksTime == 0 {
		o.OldBlocksTime = time.Second
	}
	if o.ReadAheadTasks == 0 {
		o.ReadAheadTasks = 2
	}
	o.Cleaner.setDefaults()
}

// Log is the redo log that the pool's changes go to.
func (p *Pool) Log() *redo.Log { return p.log }

// Env is the pool's environment.
func (p *Pool) Env() env.Env { return p.env }

// Fix brings the page into memory if it is not there, keeps it there and latches
// it. Every Fix needs one Unfix with the same mode. The error is the store's, a
// *page.CorruptError, or [ErrExhausted].
func (p *Pool) Fix(id page.ID, mode Mode) (Handle, error) {
	key := id.Uint64()
	for {
		i := p.find(key)
		if i == noFrame || !p.pin(i, key) {
			var err error
			if i, err = p.read(id); err != nil {
				return Handle{}, err
			}
		}
		f := &p.frames[i]
		p.lock(i, mode == Exclusive)
		if f.id.Load() == key && f.resident.Load() {
			p.touch(i)
			return Handle{Data: p.bytesOf(i), Frame: i}, nil
		}
		p.unlock(i, mode) // evicted before the pin, or its read failed
		f.fix.Add(-1)
		p.env.Yield()
	}
}

// TryFix is Fix without waiting for the latch; ok is false where it would wait. In
// S it goes before those who wait. It may wait for the page to be read.
func (p *Pool) TryFix(id page.ID, mode Mode) (h Handle, ok bool, err error) {
	key := id.Uint64()
	i := p.find(key)
	if i == noFrame || !p.pin(i, key) {
		if i, err = p.read(id); err != nil {
			return Handle{}, false, err
		}
	}
	f := &p.frames[i]
	if mode == Exclusive && !f.latch.tryExclusive() || mode == Shared && !f.latch.bargeShared() {
		f.fix.Add(-1)
		return Handle{}, false, nil
	}
	if f.id.Load() != key || !f.resident.Load() {
		p.unlock(i, mode)
		f.fix.Add(-1)
		return Handle{}, false, nil
	}
	p.touch(i)
	return Handle{Data: p.bytesOf(i), Frame: i}, true, nil
}

// FixNew gives a frame to a page whose old content does not matter: nothing is
// read, the bytes are stale, the latch is X. The caller initialises the page.
func (p *Pool) FixNew(id page.ID) (Handle, error) {
	key := id.Uint64()
	for {
		i := p.find(key)
		if i == noFrame || !p.pin(i, key) {
			fresh, err := p.claim(key)
			if err != nil {
				return Handle{}, err
			}
			if fresh == noFrame {
				continue
			}
			p.touch(fresh)
			return Handle{Data: p.bytesOf(fresh), Frame: fresh}, nil
		}
		f := &p.frames[i]
		p.lock(i, true)
		if f.id.Load() == key && f.resident.Load() {
			p.touch(i)
			return Handle{Data: p.bytesOf(i), Frame: i}, nil
		}
		p.unlock(i, Exclusive)
		f.fix.Add(-1)
		p.env.Yield()
	}
}

// pin keeps frame i, found for key, from eviction. It fails if the frame is being
// evicted or holds another page by now: waiting for the latch of an unrelated
// page could break the latch order.
func (p *Pool) pin(i uint32, key uint64) bool {
	f := &p.frames[i]
	if f.fix.Add(1) > 0 && f.id.Load() == key {
		return true
	}
	f.fix.Add(-1)
	return false
}

func (p *Pool) unlock(i uint32, mode Mode) {
	if mode == Exclusive {
		p.unlockExclusive(i)
	} else {
		p.unlockShared(i)
	}
}

// Unfix drops the latch and the hold on the frame.
func (p *Pool) Unfix(h Handle, mode Mode) {
	p.unlock(h.Frame, mode)
	p.frames[h.Frame].fix.Add(-1)
}

// claim takes a free frame for the page, puts it into the hash and returns it
// fixed and X-latched. It returns noFrame if another task has brought the page
// in meanwhile.
func (p *Pool) claim(key uint64) (uint32, error) {
	i, err := p.lru.takeFree()
	if err != nil {
		return noFrame, err
	}
	f := &p.frames[i]
	// The frame is free: nobody fixes it, and only late optimists and late pins
	// look at it. X raises its version for the former.
	p.lock(i, true)
	bucket := p.hash.bucket(key)
	mu := p.hash.lockFor(bucket)
	mu.Lock()
	if p.findLocked(bucket, key) != noFrame {
		mu.Unlock()
		p.unlockExclusive(i)
		p.lru.giveFree(i)
		return noFrame, nil
	}
	f.id.Store(key)
	f.fix.Add(1 - tombstone)
	p.insertLocked(bucket, i)
	mu.Unlock()
	p.lru.add(i)
	return i, nil
}

// read brings the page in and returns its frame fixed, not latched.
func (p *Pool) read(id page.ID) (uint32, error) {
	key := id.Uint64()
	for {
		i, err := p.claim(key)
		if err != nil {
			return noFrame, err
		}
		if i == noFrame {
			if i = p.find(key); i != noFrame && p.pin(i, key) {
				return i, nil
			}
			p.env.Yield()
			continue
		}
		p.stats.reads.Add(1)
		data := p.bytesOf(i)
		err = p.store.ReadPage(id, data)
		if err == nil {
			if err = p.verify(data, id); err != nil {
				p.store.Unsound(id, err)
			}
		}
		if err != nil {
			p.discard(i)
			return noFrame, err
		}
		p.unlockExclusive(i)
		return i, nil
	}
}

// verify checks a page that was read. One that is newer than the redo log's end
// was written under a log that is lost: its changes may be half there.
func (p *Pool) verify(data []byte, id page.ID) error {
	if err := page.Verify(data, id); err != nil {
		return err
	}
	if lsn, end := page.GetLSN(data), p.log.Current(); lsn > end {
		return &page.CorruptError{ID: id, Problem: "LSN is beyond the end of the redo log", Expected: uint64(end), Found: uint64(lsn)}
	}
	if err := p.store.CheckLSN(id, data); err != nil {
		return err
	}
	if p.opt.Validate != nil {
		return p.opt.Validate(data)
	}
	return nil
}

// discard gives up a frame whose page could not be read. Tasks that wait for its
// latch see that it is not resident and look again.
//
// REQUIRES: fixed once and X-latched by the caller.
func (p *Pool) discard(i uint32) {
	f := &p.frames[i]
	p.removeFromHash(i)
	p.lru.remove(i)
	p.unlockExclusive(i)
	f.fix.Add(-1)
	p.lru.reclaim(i)
}

// Optimistic returns the page's bytes without latching or fixing them, with the
// frame and version for [Pool.Validate]. ok is false if the page is not in memory
// or is being changed: use Fix then.
//
// The bytes may change while they are read: nothing derived from them may be
// trusted, used as an index without a bound check, or acted upon before Validate
// says true.
func (p *Pool) Optimistic(id page.ID) (data []byte, frame uint32, version uint64, ok bool) {
	key := id.Uint64()
	i := p.find(key)
	if i == noFrame {
		return nil, 0, 0, false
	}
	f := &p.frames[i]
	version, ok = f.latch.stableVersion()
	if !ok || f.id.Load() != key || !f.resident.Load() {
		return nil, 0, 0, false
	}
	return p.bytesOf(i), i, version, true
}

// Validate reports whether the frame still has the version that [Pool.Optimistic]
// returned, so that what was read from its bytes since then was consistent.
func (p *Pool) Validate(frame uint32, version uint64) bool {
	v, ok := p.frames[frame].latch.stableVersion()
	return ok && v == version
}

// Version is the version of a latched frame, for a later Validate.
//
// REQUIRES: the caller holds the latch. Under X the version is the one that the
// frame will not have any more after Unfix.
func (p *Pool) Version(frame uint32) uint64 {
	return p.frames[frame].latch.word.Load() >> latchVersionLow
}

// MarkDirty records that the page was changed by the redo from start to end.
//
// REQUIRES: the page is X-latched and the redo is reserved but not published.
func (p *Pool) MarkDirty(frame uint32, start, end page.LSN) {
	page.SetLSN(p.bytesOf(frame), end)
	if p.frames[frame].oldest.Load() == 0 {
		p.flush.add(frame, start)
	}
}

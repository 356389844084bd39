package buffer

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
)

// RecoveryCache keeps pages in memory while recovery changes them, so that a page which
// many batches of redo change is read and written once and not with each of them. Its
// memory is what the pool will have that is opened after it. A page for which there is no
// room is written at once. All writes go through the doublewrite file.
//
//	each batch:  Begin(pages); for each page, in any order and in parallel:
//	             Get, then Done with the page brought up to date or Leave; EndBatch
//	end:         Flush, Close
//
// Nothing is durable before Flush returns but what was evicted; the redo log has it all.
type RecoveryCache struct {
	writer *PageWriter
	turn   *env.Mutex // held by the task that uses the writer
	arena  []byte
	round  uint32

	mu     sync.Mutex // guards what follows
	frames map[page.ID]*recoveryFrame
	free   []*recoveryFrame
	unused []byte // of the arena

	// Written counts pages written, Kept those that Flush would write now.
	Written, Kept atomic.Int64
}

type recoveryFrame struct {
	id   page.ID
	used uint32 // the round in which it was used last
	data []byte
}

// NewRecoveryCache makes a cache of so many bytes and opens the doublewrite file.
func NewRecoveryCache(e env.Env, fsys file.FS, store Store, size int64) (*RecoveryCache, error) {
	arena, err := newArena(max(int(size/page.Size), 1) * page.Size)
	if err != nil {
		return nil, err
	}
	w, err := NewPageWriter(fsys, store)
	if err != nil {
		return nil, errors.Join(err, freeArena(arena))
	}
	return &RecoveryCache{writer: w, turn: env.NewMutex(e), arena: arena, unused: arena, frames: map[page.ID]*recoveryFrame{}}, nil
}

// room is how many pages more the cache takes.
func (c *RecoveryCache) room() int { return len(c.free) + len(c.unused)/page.Size }

// frame returns a frame that is free, or nil.
func (c *RecoveryCache) frame() *recoveryFrame {
	if n := len(c.free); n > 0 {
		f := c.free[n-1]
		c.free = c.free[:n-1]
		return f
	}
	if len(c.unused) == 0 {
		return nil
	}
	f := &recoveryFrame{data: c.unused[:page.Size:page.Size]}
	c.unused = c.unused[page.Size:]
	return f
}

// Begin makes room for the pages of a batch: those that it does not use go, the ones that
// were used longest ago first.
func (c *RecoveryCache) Begin(ids []page.ID) error {
	c.round++
	missing := 0
	for _, id := range ids {
		if f := c.frames[id]; f != nil {
			f.used = c.round
		} else {
			missing++
		}
	}
	if missing <= c.room() {
		return nil
	}
	var old []*recoveryFrame
	for _, f := range c.frames {
		if f.used != c.round {
			old = append(old, f)
		}
	}
	slices.SortFunc(old, func(a, b *recoveryFrame) int {
		return cmp.Or(cmp.Compare(a.used, b.used), cmp.Compare(a.id.Uint64(), b.id.Uint64()))
	})
	return c.write(old[:min(len(old), missing-c.room())])
}

// write writes pages and frees their frames.
//
// REQUIRES: no other task uses the cache.
func (c *RecoveryCache) write(frames []*recoveryFrame) error {
	slices.SortFunc(frames, func(a, b *recoveryFrame) int { return cmp.Compare(a.id.Uint64(), b.id.Uint64()) })
	for _, f := range frames {
		if err := c.writer.Add(f.id, f.data); err != nil {
			return err
		}
		c.Written.Add(1)
		c.release(f)
	}
	return nil
}

func (c *RecoveryCache) release(f *recoveryFrame) {
	delete(c.frames, f.id)
	c.free = append(c.free, f)
	c.Kept.Add(-1)
}

// Get returns memory for a page, spare if there is no room. known: it holds the page as it
// was left; otherwise the caller reads the page into it.
func (c *RecoveryCache) Get(id page.ID, spare []byte) (p []byte, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.frames[id]; f != nil {
		return f.data, true
	}
	f := c.frame()
	if f == nil {
		return spare, false
	}
	f.id, f.used = id, c.round
	c.frames[id] = f
	c.Kept.Add(1)
	return f.data, false
}

// Done takes a page back that is to be written.
func (c *RecoveryCache) Done(id page.ID, p []byte) error {
	c.mu.Lock()
	_, kept := c.frames[id]
	c.mu.Unlock()
	if kept {
		return nil
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	c.Written.Add(1)
	return c.writer.Add(id, p)
}

// Leave takes back memory of a page that is not there to be changed.
func (c *RecoveryCache) Leave(id page.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.frames[id]; f != nil {
		c.release(f)
	}
}

// DropSpace forgets the pages of a tablespace whose file is going to be removed.
//
// REQUIRES: the last batch has ended.
func (c *RecoveryCache) DropSpace(no uint32) {
	for id, f := range c.frames {
		if id.Space == no {
			c.release(f)
		}
	}
}

// EndBatch makes durable what had no room: the next batch reads it from its file.
func (c *RecoveryCache) EndBatch() error { return c.writer.Flush() }

// Flush makes every page durable.
func (c *RecoveryCache) Flush() error {
	all := make([]*recoveryFrame, 0, len(c.frames))
	for _, f := range c.frames {
		all = append(all, f)
	}
	if err := c.write(all); err != nil {
		return err
	}
	return c.writer.Flush()
}

// Close gives the memory back and closes the doublewrite file. What was not flushed is lost.
func (c *RecoveryCache) Close() error {
	err := errors.Join(c.writer.dblwr.close(), freeArena(c.arena))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frames, c.free, c.unused, c.arena = nil, nil, nil, nil // its progress may be looked at for longer
	return err
}

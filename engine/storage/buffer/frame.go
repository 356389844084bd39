package buffer

import (
	"sync/atomic"

	"github.com/triremedb/trireme/engine/storage/page"
)

// noFrame ends the intrusive lists; frame indexes start at 1.
const noFrame uint32 = 0

// tombstone is added to a frame's fix count by its evictor. A count at or below
// zero after an increment tells a reader that it came too late.
const tombstone int32 = -1 << 24

// frame describes one 16 KiB slot of the arena. It holds no pointer, so that the
// array of frames costs the garbage collector nothing.
type frame struct {
	latch latch
	// id is the page in the frame, 0 if none (page 0:0 is told apart by resident).
	id       atomic.Uint64
	fix      atomic.Int32
	resident atomic.Bool // the frame is in the page hash

	// hashNext links the frames of one hash bucket; it changes under the bucket's
	// mutex and is read without it.
	hashNext atomic.Uint32

	// Guarded by the LRU list's mutex; old and stamp are also read without it, as hints.
	lruPrev, lruNext uint32
	lru              atomic.Uint32 // lruNone, lruYoung or lruOld
	stamp            atomic.Uint32 // eviction clock when the page was last made young
	firstAccess      atomic.Uint32 // milliseconds, 0: not yet

	// Guarded by the flush list's mutex; oldest is also read without it.
	flushPrev, flushNext uint32
	oldest               atomic.Uint64 // LSN where the first change began that is not on disk; 0: clean
}

// Handle is a fixed frame: the page's bytes stay in place until [Pool.Unfix].
type Handle struct {
	Data  []byte // page.Size bytes
	Frame uint32
}

// ID is the page that the handle holds.
func (h Handle) ID() page.ID { return page.GetID(h.Data) }

func (p *Pool) bytesOf(i uint32) []byte {
	off := (int(i) - 1) * page.Size
	return p.arena[off : off+page.Size : off+page.Size]
}

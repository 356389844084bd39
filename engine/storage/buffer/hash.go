package buffer

import (
	"sync"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/storage/page"
)

const hashLocks = 128

// pageHash finds the frame of a page. Lookups take no lock; what they find is a
// hint that the caller confirms by fixing the frame. A miss is certain only under
// the bucket's mutex.
type pageHash struct {
	mask    uint64
	buckets []atomic.Uint32
	locks   [hashLocks]struct {
		sync.Mutex
		_ [56]byte // a cache line each
	}
}

func newPageHash(frames int) *pageHash {
	n := uint64(64)
	for n < uint64(frames)*2 {
		n *= 2
	}
	return &pageHash{mask: n - 1, buckets: make([]atomic.Uint32, n)}
}

func (h *pageHash) bucket(id uint64) uint64 {
	id ^= id >> 32
	return id * 0x9E3779B97F4A7C15 >> 20 & h.mask
}

func (h *pageHash) lockFor(bucket uint64) *sync.Mutex { return &h.locks[bucket%hashLocks].Mutex }

// chainLimit bounds a lookup without lock, which may wander into another chain
// when frames are moved under it.
const chainLimit = 64

// find returns a frame that holds id, or noFrame if it saw none.
func (p *Pool) find(id uint64) uint32 {
	i := p.hash.buckets[p.hash.bucket(id)].Load()
	for n := 0; i != noFrame && n < chainLimit; n++ {
		f := &p.frames[i]
		if f.id.Load() == id && f.resident.Load() {
			return i
		}
		i = f.hashNext.Load()
	}
	return noFrame
}

// findLocked is find under the bucket's mutex, hence certain.
func (p *Pool) findLocked(bucket, id uint64) uint32 {
	for i := p.hash.buckets[bucket].Load(); i != noFrame; i = p.frames[i].hashNext.Load() {
		if p.frames[i].id.Load() == id {
			return i
		}
	}
	return noFrame
}

// insertLocked puts frame i, whose id is set, at the head of its chain.
func (p *Pool) insertLocked(bucket uint64, i uint32) {
	f := &p.frames[i]
	f.hashNext.Store(p.hash.buckets[bucket].Load())
	f.resident.Store(true)
	p.hash.buckets[bucket].Store(i)
}

// removeFromHash takes frame i out of its chain.
func (p *Pool) removeFromHash(i uint32) {
	f := &p.frames[i]
	bucket := p.hash.bucket(f.id.Load())
	mu := p.hash.lockFor(bucket)
	mu.Lock()
	link := &p.hash.buckets[bucket]
	for at := link.Load(); at != noFrame; at = link.Load() {
		if at == i {
			link.Store(f.hashNext.Load())
			break
		}
		link = &p.frames[at].hashNext
	}
	f.resident.Store(false)
	mu.Unlock()
}

// Resident reports whether the page is in memory at the moment.
func (p *Pool) Resident(id page.ID) bool { return p.find(id.Uint64()) != noFrame }

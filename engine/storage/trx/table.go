package trx

import (
	"sort"
	"sync"
	"sync/atomic"
)

// What the table says of an id, apart from its CSN. The values are chosen so that
// "visible" is one comparison: value <= snapshot.
const (
	forgotten  uint64 = 0          // visible to every snapshot, or left no trace
	activeMark uint64 = ^uint64(0) // not committed
)

const (
	chunkBits = 10
	chunkIDs  = 1 << chunkBits
)

// idTable maps transaction ids to CSNs. Lookups take no lock: a ring of chunks of
// consecutive ids is replaced as a whole when it grows. An id without a chunk is
// forgotten.
type idTable struct {
	ring atomic.Pointer[chunkRing]

	mu           sync.Mutex
	live         []*chunk // ascending
	next         uint64   // the next id
	limit        uint64   // ids below may be used
	visibleBelow *atomic.Uint64
	swept        uint64 // horizon when chunks were last dropped
}

type chunkRing struct {
	mask  uint64
	slots []atomic.Pointer[chunk]
}

// chunk holds ids number<<chunkBits and on.
type chunk struct {
	number uint64
	csn    [chunkIDs]atomic.Uint64
	owners atomic.Pointer[[chunkIDs]atomic.Pointer[Trx]] // nil once nobody is active

	// Guarded by idTable.mu.
	active int
	maxCSN uint64
}

func newRing(size uint64) *chunkRing {
	return &chunkRing{mask: size - 1, slots: make([]atomic.Pointer[chunk], size)}
}

func (t *idTable) init(next, limit uint64, visibleBelow *atomic.Uint64) {
	t.ring.Store(newRing(64))
	t.next, t.limit, t.visibleBelow = next, limit, visibleBelow
}

// find returns the chunk of an id, or nil.
func (t *idTable) find(id uint64) *chunk {
	r := t.ring.Load()
	number := id >> chunkBits
	c := r.slots[number&r.mask].Load()
	if c == nil || c.number != number {
		return nil
	}
	return c
}

// lookup returns the CSN of an id, activeMark or forgotten.
func (t *idTable) lookup(id uint64) uint64 {
	c := t.find(id)
	if c == nil {
		return forgotten
	}
	return c.csn[id%chunkIDs].Load()
}

// owner returns the active transaction with the id, or nil.
func (t *idTable) owner(id uint64) *Trx {
	c := t.find(id)
	if c == nil {
		return nil
	}
	o := c.owners.Load()
	if o == nil {
		return nil
	}
	return o[id%chunkIDs].Load()
}

// chunkFor returns the chunk of an id, made if needed. REQUIRES: mu.
func (t *idTable) chunkFor(id uint64) *chunk {
	if c := t.find(id); c != nil {
		return c
	}
	t.sweep(t.swept) // transactions that were rolled back do not move the horizon
	c := &chunk{number: id >> chunkBits}
	i := len(t.live)
	for i > 0 && t.live[i-1].number > c.number {
		i--
	}
	t.live = append(t.live, nil)
	copy(t.live[i+1:], t.live[i:])
	t.live[i] = c
	r := t.ring.Load()
	if r.slots[c.number&r.mask].Load() == nil {
		r.slots[c.number&r.mask].Store(c)
		return c
	}
	t.grow()
	return c
}

// grow makes the ring so large that the live chunks have a place each.
func (t *idTable) grow() {
	size := uint64(len(t.ring.Load().slots))
next:
	for {
		size *= 2
		r := newRing(size)
		for _, c := range t.live {
			slot := &r.slots[c.number&r.mask]
			if slot.Load() != nil {
				continue next
			}
			slot.Store(c)
		}
		t.ring.Store(r)
		return
	}
}

// add makes an id that of a running transaction. REQUIRES: mu.
func (t *idTable) add(id uint64, owner *Trx) {
	c := t.chunkFor(id)
	o := c.owners.Load()
	if o == nil {
		o = new([chunkIDs]atomic.Pointer[Trx])
		c.owners.Store(o)
	}
	o[id%chunkIDs].Store(owner)
	c.csn[id%chunkIDs].Store(activeMark)
	c.active++
}

// settle says from which CSN on what a running transaction did is visible, or that
// it left no trace. REQUIRES: mu; finish follows.
func (t *idTable) settle(id, csn uint64) {
	c := t.find(id)
	c.csn[id%chunkIDs].Store(csn)
	c.maxCSN = max(c.maxCSN, csn)
}

// finish records the end of a transaction that was settled. REQUIRES: mu.
func (t *idTable) finish(id uint64) {
	c := t.find(id)
	c.owners.Load()[id%chunkIDs].Store(nil)
	c.active--
}

// recover records a transaction that committed before the start.
func (t *idTable) recover(id, csn uint64) {
	t.mu.Lock()
	c := t.chunkFor(id)
	c.csn[id%chunkIDs].Store(csn)
	c.maxCSN = max(c.maxCSN, csn)
	t.next = max(t.next, id+1)
	t.mu.Unlock()
}

// advance forgets what every snapshot at or above horizon sees.
func (t *idTable) advance(horizon uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if horizon >= t.swept+chunkIDs || horizon > t.swept && len(t.live) <= 4 {
		t.sweep(horizon)
	}
	id := t.visibleBelow.Load()
	for id < t.next {
		c := t.find(id)
		end := min(t.next, (id>>chunkBits+1)<<chunkBits)
		switch {
		case c == nil:
			id = t.nextLive(id)
			continue
		case c.active == 0 && c.maxCSN <= horizon:
			id = end
			continue
		}
		for id < end && c.csn[id%chunkIDs].Load() <= horizon {
			id++
		}
		if id < end {
			break
		}
	}
	t.visibleBelow.Store(id)
}

// nextLive is the first id of a live chunk above that of id, or next. REQUIRES: mu.
func (t *idTable) nextLive(id uint64) uint64 {
	i := sort.Search(len(t.live), func(i int) bool { return t.live[i].number > id>>chunkBits })
	if i == len(t.live) {
		return t.next
	}
	return min(t.next, t.live[i].number<<chunkBits)
}

// sweep drops the chunks of which every id is visible at the horizon, and the
// owners of those where nobody is active.
func (t *idTable) sweep(horizon uint64) {
	t.swept = horizon
	r := t.ring.Load()
	kept := t.live[:0]
	for _, c := range t.live {
		full := c.number < t.next>>chunkBits
		if full && c.active == 0 && c.maxCSN <= horizon {
			r.slots[c.number&r.mask].Store(nil)
			continue
		}
		if full && c.active == 0 {
			c.owners.Store(nil)
		}
		kept = append(kept, c)
	}
	clear(t.live[len(kept):])
	t.live = kept
}

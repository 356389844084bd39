package lock

import (
	"bytes"
	"unsafe"
)

// lock is one lock or request, in two lists: its key's and its owner's.
type lock struct {
	owner *Owner
	// Guarded by the mutex of the shard.
	q          *queue // nil once out of its queue
	prev, next *lock
	// Guarded by the owner's mutex.
	ownPrev, ownNext *lock
	index            uint64
	shard            uint32
	mode             Mode
	echo             bool // of a span, which covers the key too
}

const (
	lockBytes  = int64(unsafe.Sizeof(lock{}))
	queueBytes = int64(unsafe.Sizeof(queue{}))
)

// lockList is a doubly linked list by either pair of links.
type lockList struct{ head, tail *lock }

func (l *lockList) push(k *lock) {
	k.prev, k.next = l.tail, nil
	if l.tail == nil {
		l.head = k
	} else {
		l.tail.next = k
	}
	l.tail = k
}

func (l *lockList) remove(k *lock) {
	if k.prev == nil {
		l.head = k.next
	} else {
		k.prev.next = k.next
	}
	if k.next == nil {
		l.tail = k.prev
	} else {
		k.next.prev = k.prev
	}
	k.prev, k.next = nil, nil
}

func (l *lockList) pushOwn(k *lock) {
	k.ownPrev, k.ownNext = l.tail, nil
	if l.tail == nil {
		l.head = k
	} else {
		l.tail.ownNext = k
	}
	l.tail = k
}

func (l *lockList) removeOwn(k *lock) {
	if k.ownPrev == nil {
		l.head = k.ownNext
	} else {
		k.ownPrev.ownNext = k.ownNext
	}
	if k.ownNext == nil {
		l.tail = k.ownPrev
	} else {
		k.ownNext.ownPrev = k.ownPrev
	}
	k.ownPrev, k.ownNext = nil, nil
}

// queue is a key or table with its locks: the granted ones and, in the order of
// their arrival, the waiting ones. It exists while it has any.
type queue struct {
	chain   *queue // next of the hash bucket, or of the free list
	hash    uint64
	index   uint64
	key     []byte
	granted lockList
	waiting lockList
	// present counts granted and waiting locks of a table by mode, so that the
	// many intention locks need not be walked.
	present [tableModes]uint32
	table   bool
	inline  [27]byte // holds short keys, and makes the queue 128 bytes
}

func (q *queue) supremum() bool { return !q.table && len(q.key) == 0 }

func (q *queue) empty() bool { return q.granted.head == nil && q.waiting.head == nil }

func (q *queue) bytes() int64 { return lockBytes + queueBytes + int64(len(q.key)) }

func (q *queue) add(l *lock, waiting bool) {
	l.q = q
	if waiting {
		q.waiting.push(l)
	} else {
		q.granted.push(l)
	}
	if q.table {
		q.present[l.mode]++
	}
}

func (q *queue) removeGranted(l *lock) {
	q.granted.remove(l)
	q.gone(l)
}

func (q *queue) removeWaiting(l *lock) {
	q.waiting.remove(l)
	q.gone(l)
}

func (q *queue) gone(l *lock) {
	l.q = nil
	if q.table {
		q.present[l.mode]--
	}
}

// quiet reports whether no lock of a table, whoever owns it, is in the way of mode.
func (q *queue) quiet(mode Mode) bool {
	for m, n := range q.present {
		if n != 0 && blockers[mode].has(Mode(m)) {
			return false
		}
	}
	return true
}

// check looks for a lock of o that covers mode and for an owner that a request
// of o for mode has to wait for.
func (q *queue) check(o *Owner, mode Mode) (held *lock, blocker *Owner) {
	if q.table && q.quiet(mode) {
		return nil, nil // Acquire has looked at the owner's tables already.
	}
	var own modeSet
	for g := q.granted.head; g != nil; g = g.next {
		if g.owner == o {
			if g.mode.Covers(mode) {
				return g, nil
			}
			own |= 1 << g.mode
		} else if blocker == nil && mode.Conflicts(g.mode) {
			blocker = g.owner
		}
	}
	if blocker == nil {
		blocker = q.waiterBefore(o, mode, own, nil)
	}
	return nil, blocker
}

// waiterBefore returns the owner of the first waiting lock, before end, that a
// request for mode has to wait for. It need not if that lock waits for what the
// requester itself holds (own): waiting behind it would be a deadlock. This
// does not hold for an insert intention, whose insert would give the waiter a
// part of its gap lock ahead of time and run into it next.
func (q *queue) waiterBefore(o *Owner, mode Mode, own modeSet, end *lock) *Owner {
	for w := q.waiting.head; w != end; w = w.next {
		if w.owner == o || !mode.Conflicts(w.mode) {
			continue
		}
		if mode != InsertIntention && blockers[w.mode]&own != 0 {
			continue
		}
		return w.owner
	}
	return nil
}

// grantedBlocker returns the owner of a granted lock that l has to wait for,
// and the modes that l's owner has been granted.
func (q *queue) grantedBlocker(l *lock) (blocker *Owner, own modeSet) {
	for g := q.granted.head; g != nil; g = g.next {
		if g.owner == l.owner {
			own |= 1 << g.mode
		} else if blocker == nil && l.mode.Conflicts(g.mode) {
			blocker = g.owner
		}
	}
	return blocker, own
}

// grantedModes is the set of the modes granted to anyone.
func (q *queue) grantedModes() modeSet {
	var s modeSet
	for g := q.granted.head; g != nil; g = g.next {
		s |= 1 << g.mode
	}
	return s
}

// hasGaps reports whether a lock here covers the gap.
func (q *queue) hasGaps() bool {
	for g := q.granted.head; g != nil; g = g.next {
		if gapModes.has(g.mode) {
			return true
		}
	}
	for w := q.waiting.head; w != nil; w = w.next {
		if gapModes.has(w.mode) {
			return true
		}
	}
	return false
}

// holds reports whether o has been granted a lock that covers mode.
func (q *queue) holds(o *Owner, mode Mode) bool {
	for g := q.granted.head; g != nil; g = g.next {
		if g.owner == o && g.mode.Covers(mode) {
			return true
		}
	}
	return false
}

func (q *queue) matches(hash, index uint64, key []byte, table bool) bool {
	return q.hash == hash && q.index == index && q.table == table && bytes.Equal(q.key, key)
}

// lockArena is an owner's memory for lock objects: a few inside the owner, then
// slabs of growing size, of which the first ones are kept for later transactions.
type lockArena struct {
	free  *lock // chained by ownNext
	bump  []lock
	slabs [][]lock
	slab  int // slabs in use
	first [8]lock
	ready bool
}

const (
	slabMin       = 32
	slabDoublings = 4
	slabsKept     = 3
)

func (a *lockArena) get() *lock {
	if l := a.free; l != nil {
		a.free = l.ownNext
		*l = lock{}
		return l
	}
	if len(a.bump) == 0 {
		a.grow()
	}
	l := &a.bump[0]
	a.bump = a.bump[1:]
	*l = lock{}
	return l
}

func (a *lockArena) grow() {
	if !a.ready {
		a.ready = true
		a.bump = a.first[:]
		return
	}
	if a.slab == len(a.slabs) {
		a.slabs = append(a.slabs, make([]lock, slabMin<<min(a.slab, slabDoublings)))
	}
	a.bump = a.slabs[a.slab]
	a.slab++
}

func (a *lockArena) put(l *lock) {
	l.ownNext = a.free
	a.free = l
}

// reset frees all locks at once.
func (a *lockArena) reset() {
	a.free = nil
	a.bump = a.first[:]
	a.ready = true
	a.slab = 0
	if len(a.slabs) > slabsKept {
		clear(a.slabs[slabsKept:])
		a.slabs = a.slabs[:slabsKept]
	}
}

package lock

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Bounds on the edges that one search follows: right after a request was queued,
// and when its owner has waited for Options.RecheckEvery.
const (
	stepsAtOnce    = 2_000
	stepsAtLeisure = 100_000
)

// detector finds the cycles among the waiting owners. A search starts at one
// waiter, in that waiter's own task, and follows every lock that keeps it and
// those before it waiting. It looks at one shard at a time, so what it finds is
// a suspicion: the cycle is checked and broken with all its shards locked. A real
// cycle does not go away by itself, and each of its members searches after it
// has queued its request, so the last one sees it whole.
type detector struct {
	mu      sync.Mutex
	waiting []*Owner // those inside Wait; Owner.slot is the position plus one
	round   uint64
	path    []step
	edges   []*Owner
	last    *Deadlock

	weighed   time.Duration // when the weights were last computed
	blockedBy []int32
	incoming  []int32
	weights   []uint64
}

// step is an owner on the path of the search and its blockers not yet visited.
type step struct {
	owner    *Owner
	from, to int // in detector.edges
}

// Deadlock is a cycle of transactions that waited for each other.
type Deadlock struct {
	At time.Time
	// Victim is the transaction that has to roll back.
	Victim uint64
	// Waits is the cycle: each transaction waits for the next one, the last for
	// the first, which is the one that closed the cycle or found it.
	Waits []DeadlockWait
}

// DeadlockWait is one transaction of a cycle.
type DeadlockWait struct {
	Trx    uint64
	Locks  int    // number of locks it has, the requested one included
	Undo   uint64 // undo records it has written
	Index  uint64 // index or table id
	Key    []byte // nil is the supremum, or a table
	Mode   Mode   // what it waits for
	Next   uint64 // the transaction in its way
	InWay  Mode   // that one's lock on the same key
	Queued bool   // InWay is itself waiting
}

// String describes the cycle in several lines.
func (d *Deadlock) String() string {
	var b strings.Builder
	for i, w := range d.Waits {
		fmt.Fprintf(&b, "(%d) TRANSACTION %d, %d locks, %d undo records\n", i+1, w.Trx, w.Locks, w.Undo)
		verb := "holding"
		if w.Queued {
			verb = "waiting for"
		}
		super := w.supremum()
		fmt.Fprintf(&b, "    waits for %s on %s, behind transaction %d %s %s\n",
			w.Mode.name(super), w.where(), w.Next, verb, w.InWay.name(super))
	}
	fmt.Fprintf(&b, "ROLL BACK TRANSACTION %d\n", d.Victim)
	return b.String()
}

func (w *DeadlockWait) supremum() bool { return !w.Mode.IsTable() && len(w.Key) == 0 }

func (w *DeadlockWait) where() string {
	switch {
	case w.Mode.IsTable():
		return fmt.Sprintf("table %d", w.Index)
	case len(w.Key) == 0:
		return fmt.Sprintf("index %d supremum", w.Index)
	}
	return fmt.Sprintf("index %d key %s", w.Index, hex.EncodeToString(w.Key))
}

// LastDeadlock is the latest deadlock that was found, or nil.
func (t *Table) LastDeadlock() *Deadlock {
	t.detector.mu.Lock()
	defer t.detector.mu.Unlock()
	return t.detector.last
}

// findDeadlocks breaks every cycle that o is part of, as far as limit steps show.
func (t *Table) findDeadlocks(o *Owner, limit int) {
	d := &t.detector
	d.mu.Lock()
	defer d.mu.Unlock()
	for tries := 0; tries < 100; tries++ {
		if !t.search(o, limit) {
			return
		}
		t.breakCycle(d.path)
	}
}

// search leaves a cycle through root in detector.path, if there seems to be one.
func (t *Table) search(root *Owner, limit int) bool {
	d := &t.detector
	d.round++
	d.path, d.edges = d.path[:0], d.edges[:0]
	t.descend(root)
	for len(d.path) > 0 && limit > 0 {
		s := &d.path[len(d.path)-1]
		if s.from == s.to {
			d.path = d.path[:len(d.path)-1]
			continue
		}
		next := d.edges[s.from]
		s.from++
		limit--
		if next == root {
			return true
		}
		if next.visit != d.round {
			t.descend(next)
		}
	}
	return false
}

// descend puts o on the path, with the owners that it waits for.
func (t *Table) descend(o *Owner) {
	d := &t.detector
	o.visit = d.round
	if n := len(d.path); n > 0 {
		d.edges = d.edges[:d.path[n-1].to]
	}
	from := len(d.edges)
	if s, l := t.waitingLock(o); l != nil {
		s.mu.Lock()
		if o.waitsFor(l) {
			l.q.eachBlocker(l, t.fifo.Load(), func(b *lock, _ bool) bool {
				d.edges = append(d.edges, b.owner)
				return true
			})
		}
		s.mu.Unlock()
	}
	d.path = append(d.path, step{o, from, len(d.edges)})
}

// waitingLock is the lock that o waits for and its shard, nil if none. Without
// the shard's mutex this may change at once.
func (t *Table) waitingLock(o *Owner) (*shard, *lock) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.wait.lock == nil {
		return nil, nil
	}
	return &t.shards[o.wait.lock.shard], o.wait.lock
}

func (o *Owner) waitsFor(l *lock) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.wait.lock == l
}

// Waits reports whether an owner waits for a lock. Any task may ask.
func (t *Table) Waits(o *Owner) bool {
	_, l := t.waitingLock(o)
	return l != nil
}

// eachBlocker calls visit for the locks that keep l waiting, until it returns
// false: every granted lock in its way; and of the waiting locks in its way, in
// order of arrival all that came before it, else only the one it stands behind.
// The second argument says that the lock waits itself.
func (q *queue) eachBlocker(l *lock, fifo bool, visit func(*lock, bool) bool) {
	var own modeSet
	for g := q.granted.head; g != nil; g = g.next {
		if g.owner == l.owner {
			own |= 1 << g.mode
		} else if l.mode.Conflicts(g.mode) && !visit(g, false) {
			return
		}
	}
	behind := l.owner.blockedBy.Load()
	for w := q.waiting.head; w != l; w = w.next {
		if w.owner == l.owner || !l.mode.Conflicts(w.mode) {
			continue
		}
		if !q.table && !fifo && w.owner != behind {
			continue
		}
		if l.mode != InsertIntention && blockers[w.mode]&own != 0 {
			continue
		}
		if !visit(w, true) {
			return
		}
	}
}

// breakCycle checks that the owners on path wait for each other in turn, and if
// so ends the wait of one.
func (t *Table) breakCycle(path []step) {
	numbers := make([]uint32, 0, len(path))
	for _, p := range path {
		if s, l := t.waitingLock(p.owner); l != nil {
			numbers = append(numbers, s.number)
		}
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	for _, n := range numbers {
		t.shards[n].mu.Lock()
	}
	var w wakes
	if dead := t.describe(path, numbers); dead != nil {
		victim := t.choose(path, dead)
		dead.Victim = dead.Waits[victim].Trx
		t.detector.last = dead
		t.stats.deadlocks.Add(1)
		t.sacrifice(path[victim].owner, dead, &w)
	}
	for _, n := range numbers {
		t.shards[n].mu.Unlock()
	}
	w.fire()
}

// describe returns the cycle, or nil if it is none, the locked shards being those
// with the given numbers.
func (t *Table) describe(path []step, locked []uint32) *Deadlock {
	dead := &Deadlock{At: t.env.Now()}
	for i, p := range path {
		o, next := p.owner, path[(i+1)%len(path)].owner
		o.mu.Lock()
		l := o.wait.lock
		w := DeadlockWait{Trx: o.id, Locks: o.count, Undo: o.undo.Load()}
		o.mu.Unlock()
		if l == nil {
			return nil
		}
		if _, ok := slices.BinarySearch(locked, l.shard); !ok {
			return nil
		}
		found := false
		l.q.eachBlocker(l, t.fifo.Load(), func(b *lock, queued bool) bool {
			found = b.owner == next
			w.InWay, w.Queued = b.mode, queued
			return !found
		})
		if !found {
			return nil
		}
		w.Index, w.Mode, w.Next = l.index, l.mode, next.ID()
		if len(l.q.key) > 0 {
			w.Key = slices.Clone(l.q.key)
		}
		dead.Waits = append(dead.Waits, w)
	}
	return dead
}

// choose returns the position of the victim: of the lowest priority, then the
// cheapest to roll back, then the one that closed the cycle, then the newest.
func (t *Table) choose(path []step, dead *Deadlock) int {
	best := 0
	for i := 1; i < len(path); i++ {
		a, b := path[i].owner.priority(), path[best].owner.priority()
		x, y := dead.Waits[i], dead.Waits[best]
		costX, costY := uint64(x.Locks)+x.Undo, uint64(y.Locks)+y.Undo
		switch {
		case a != b:
			if !a {
				best = i
			}
		case costX != costY:
			if costX < costY {
				best = i
			}
		case best != 0 && x.Trx > y.Trx:
			best = i
		}
	}
	return best
}

func (o *Owner) priority() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.opts.HighPriority
}

// sacrifice ends the wait of a deadlock's victim.
func (t *Table) sacrifice(o *Owner, dead *Deadlock, w *wakes) {
	o.mu.Lock()
	s := &t.shards[o.wait.lock.shard]
	q := t.removeWait(o, waitDeadlock, w)
	o.wait.deadlock = dead
	o.mu.Unlock()
	t.grant(s, q, o, w)
}

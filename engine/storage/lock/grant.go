package lock

import (
	"cmp"
	"slices"
)

// boost is the advantage of a waiter that was passed over for too long.
const boost = 1_000_000_000

// scratchKept bounds the waiters for which a shard keeps its scratch space.
const scratchKept = 1024

// grant looks at the waiters of q after a lock of gone left it, grants what can
// be granted, and drops q if it is empty.
func (t *Table) grant(s *shard, q *queue, gone *Owner, w *wakes) {
	if q.waiting.head != nil {
		if q.table || t.fifo.Load() {
			t.grantInOrder(s, q, w)
		} else {
			t.grantByWeight(s, q, gone, w)
		}
	}
	if q.empty() {
		s.drop(q)
	}
}

// grantInOrder grants each waiter that nothing before it is in the way of.
func (t *Table) grantInOrder(s *shard, q *queue, w *wakes) {
	granted, before := q.grantedModes(), modeSet(0)
	for l := q.waiting.head; l != nil; {
		next := l.next
		if t.blockedInOrder(q, l, granted, before) {
			before |= 1 << l.mode
		} else {
			t.grantOne(s, q, l, w)
			granted |= 1 << l.mode
		}
		l = next
	}
}

// blockedInOrder reports whether a granted lock or an earlier waiter is in the
// way of l, and if so makes its owner the one that l waits for. The sets of
// modes spare the walk where no owner can be in the way.
func (t *Table) blockedInOrder(q *queue, l *lock, granted, before modeSet) bool {
	if blockers[l.mode]&(granted|before) == 0 {
		return false
	}
	b, own := q.grantedBlocker(l)
	if b == nil && blockers[l.mode]&before != 0 {
		b = q.waiterBefore(l.owner, l.mode, own, l)
	}
	if b != nil {
		l.owner.blockedBy.Store(b)
	}
	return b != nil
}

// grantByWeight grants those waiters that gone held up, the weightiest first,
// ties in the order of arrival, as far as no granted lock is in the way. Those
// that wait for another owner are not looked at: a waiter behind a waiting X
// lock stays there.
func (t *Table) grantByWeight(s *shard, q *queue, gone *Owner, w *wakes) {
	granted := q.grantedModes()
	all := s.scratch[:0]
	for l := q.waiting.head; l != nil; l = l.next {
		if l.owner.blockedBy.Load() == gone && !blockedByGranted(q, l, granted) {
			all = append(all, l)
		}
	}
	if free := all; len(free) > 0 {
		first := t.weightiest(free)
		granted |= 1 << free[first].mode
		t.grantOne(s, q, free[first], w)
		free = slices.Delete(free, first, first+1)
		// Most often the lock just granted is in the way of all the rest, and
		// there is nothing to sort.
		free = slices.DeleteFunc(free, func(l *lock) bool { return blockedByGranted(q, l, granted) })
		slices.SortStableFunc(free, func(a, b *lock) int {
			return cmp.Compare(t.weightOf(b.owner), t.weightOf(a.owner))
		})
		for _, l := range free {
			if !blockedByGranted(q, l, granted) {
				t.grantOne(s, q, l, w)
				granted |= 1 << l.mode
			}
		}
	}
	clear(all)
	s.scratch = all[:0]
	if cap(all) > scratchKept {
		s.scratch = nil
	}
}

// blockedByGranted reports whether a granted lock, the modes of which are given,
// is in the way of l, and if so makes its owner the one that l waits for.
func blockedByGranted(q *queue, l *lock, granted modeSet) bool {
	if blockers[l.mode]&granted == 0 {
		return false
	}
	b, _ := q.grantedBlocker(l)
	if b != nil {
		l.owner.blockedBy.Store(b)
	}
	return b != nil
}

// weightiest returns the position of the first lock whose owner has the highest
// weight.
func (t *Table) weightiest(locks []*lock) int {
	best, most := 0, t.weightOf(locks[0].owner)
	for i, l := range locks[1:] {
		if w := t.weightOf(l.owner); w > most {
			best, most = i+1, w
		}
	}
	return best
}

// weightOf is about the number of transactions that wait for o, itself included,
// plus the boost if it has waited while more than twice as many others as wait
// now came to wait: this bounds how often a waiter is passed over.
func (t *Table) weightOf(o *Owner) uint64 {
	w := o.scheduling.Load()
	if t.overdue(o) {
		w += boost
	}
	return w
}

func (t *Table) overdue(o *Owner) bool {
	return t.suspensions.Load()-o.reservation.Load() > 2*uint64(t.stats.waiting.Load())
}

// grantOne moves l from the waiting to the granted locks and ends the wait.
func (t *Table) grantOne(s *shard, q *queue, l *lock, w *wakes) {
	o := l.owner
	q.waiting.remove(l)
	q.granted.push(l)
	o.mu.Lock()
	t.endWait(o, waitGranted, w)
	o.mu.Unlock()
}

// endWait tells o how its wait ended. REQUIRES: o.mu and the mutex of the shard
// of the lock waited for.
func (t *Table) endWait(o *Owner, how outcome, w *wakes) {
	o.wait.lock = nil
	o.wait.outcome = how
	o.blockedBy.Store(nil)
	t.stats.waiting.Add(-1)
	w.add(o.parker)
}

// removeWait takes the lock that o waits for out of the table. It leaves the
// queue as it is: grant must follow. REQUIRES: as endWait, l == o.wait.lock.
func (t *Table) removeWait(o *Owner, how outcome, w *wakes) *queue {
	l := o.wait.lock
	q := l.q
	q.removeWaiting(l)
	t.endWait(o, how, w)
	o.unlink(l, q.bytes())
	return q
}

// cancel ends wait number seq of o, if it still lasts.
func (t *Table) cancel(o *Owner, seq uint64, how outcome) {
	o.mu.Lock()
	if o.wait.lock == nil || o.wait.seq != seq {
		o.mu.Unlock()
		return
	}
	s := &t.shards[o.wait.lock.shard]
	o.mu.Unlock()

	var w wakes
	s.mu.Lock()
	o.mu.Lock()
	if o.wait.lock == nil || o.wait.seq != seq {
		o.mu.Unlock()
		s.mu.Unlock()
		return
	}
	q := t.removeWait(o, how, &w)
	o.mu.Unlock()
	t.grant(s, q, o, &w)
	s.mu.Unlock()
	w.fire()
}

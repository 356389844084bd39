package lock

import (
	"bytes"
	"fmt"
)

// check walks the whole table and returns the first broken invariant. The caller
// makes sure that nothing changes.
func (t *Table) check() error {
	for i := range t.shards {
		s := &t.shards[i]
		n := 0
		for _, q := range s.buckets {
			for ; q != nil; q = q.chain {
				n++
				if err := t.checkQueue(s, q); err != nil {
					return fmt.Errorf("index %d key %q: %w", q.index, q.key, err)
				}
			}
		}
		if n != s.queues {
			return fmt.Errorf("shard %d has %d queues, counts %d", i, n, s.queues)
		}
	}
	return t.checkSpans()
}

// checkSpans looks at the spans as a tree, and each one against the queues that it covers:
// it conflicts with no lock, and what waits for it finds a lock of its owner there.
func (t *Table) checkSpans() error {
	total := 0
	for i := range t.spans {
		s := &t.spans[i]
		all := s.root.near(nil, 0, nil, nil)
		for ix := uint64(1); ix < 10; ix++ {
			all = s.root.near(all, ix, nil, nil)
		}
		if len(all) != int(s.n.Load()) {
			return fmt.Errorf("slot %d has %d spans, counts %d", i, len(all), s.n.Load())
		}
		total += len(all)
		for j, p := range all {
			if j > 0 && !all[j-1].before(p) {
				return fmt.Errorf("spans are out of order")
			}
			if p.owner.state != ownerActive || len(p.end) > 0 && bytes.Compare(p.low, p.end) >= 0 {
				return fmt.Errorf("span [%q, %q) of %d", p.low, p.end, p.owner.id)
			}
			if q := p.up; q == nil && s.root != p || q != nil && (q.left != p && q.right != p || q.prio < p.prio) {
				return fmt.Errorf("span [%q, %q) hangs loose", p.low, p.end)
			}
			max := p.max
			if p.pull(); p.max != max && (max.endsBefore(p.max) || p.max.endsBefore(max)) {
				return fmt.Errorf("span [%q, %q) does not know the greatest end", p.low, p.end)
			}
		}
	}
	if n := t.stats.ranges.Load(); int(n) != total {
		return fmt.Errorf("%d spans, %d counted", total, n)
	}
	return nil
}

// checkCovered compares a queue with the spans that cover its key.
func (t *Table) checkCovered(q *queue) error {
	if q.table || q.supremum() {
		return nil
	}
	for _, p := range t.slotOf(q.index).over(q.index, q.key) {
		for g := q.granted.head; g != nil; g = g.next {
			if g.owner != p.owner && mustWait(g.mode, p.mode, false) && mustWait(p.mode, g.mode, false) {
				return fmt.Errorf("%v of %d is granted within a span of %d", g.mode, g.owner.id, p.owner.id)
			}
		}
		for w := q.waiting.head; w != nil; w = w.next {
			if w.owner != p.owner && mustWait(w.mode, p.mode, false) && !q.holds(p.owner, p.mode) {
				return fmt.Errorf("%v of %d does not know that it waits for a span of %d", w.mode, w.owner.id, p.owner.id)
			}
		}
	}
	return nil
}

func (t *Table) checkQueue(s *shard, q *queue) error {
	if t.shardOf(q.hash) != s || t.hash(q.index, q.key, q.table) != q.hash {
		return fmt.Errorf("in the wrong shard")
	}
	if q.empty() {
		return fmt.Errorf("empty")
	}
	var present [tableModes]uint32
	for _, list := range [...]lockList{q.granted, q.waiting} {
		for l := list.head; l != nil; l = l.next {
			if l.q != q || l.shard != s.number || l.owner.state != ownerActive {
				return fmt.Errorf("stray lock of %d", l.owner.id)
			}
			if q.table {
				present[l.mode]++
			}
		}
	}
	if present != q.present {
		return fmt.Errorf("counts %v, has %v", q.present, present)
	}
	for a := q.granted.head; a != nil; a = a.next {
		for b := q.granted.head; b != nil; b = b.next {
			if a.owner != b.owner && mustWait(a.mode, b.mode, q.supremum()) && mustWait(b.mode, a.mode, q.supremum()) {
				return fmt.Errorf("%v of %d and %v of %d are both granted", a.mode, a.owner.id, b.mode, b.owner.id)
			}
		}
	}
	for w := q.waiting.head; w != nil; w = w.next {
		if err := t.checkWaiter(q, w); err != nil {
			return err
		}
	}
	return t.checkCovered(q)
}

// checkWaiter: the owner that w waits for has a lock here that is in its way; in
// order of arrival, one that is granted or came first.
func (t *Table) checkWaiter(q *queue, w *lock) error {
	if w.owner.wait.lock != w {
		return fmt.Errorf("the owner of waiting %v of %d does not wait for it", w.mode, w.owner.id)
	}
	by := w.owner.blockedBy.Load()
	for g := q.granted.head; g != nil; g = g.next {
		if g.owner == by && mustWait(w.mode, g.mode, q.supremum()) {
			return nil
		}
	}
	for v := q.waiting.head; v != nil; v = v.next {
		if v == w && (t.fifo.Load() || q.table) {
			break
		}
		if v.owner == by && mustWait(w.mode, v.mode, q.supremum()) {
			return nil
		}
	}
	return fmt.Errorf("%v of %d waits for nobody", w.mode, w.owner.id)
}

// mustWait says whether a request has to wait for another owner's lock, in the
// words of InnoDB's rules rather than by the tables of this package.
func mustWait(request, other Mode, supremum bool) bool {
	if request.IsTable() {
		compatible := map[[2]Mode]bool{
			{TableIS, TableIS}: true, {TableIS, TableIX}: true, {TableIS, TableS}: true, {TableIS, TableAutoInc}: true,
			{TableIX, TableIS}: true, {TableIX, TableIX}: true, {TableIX, TableAutoInc}: true,
			{TableS, TableIS}: true, {TableS, TableS}: true,
			{TableAutoInc, TableIS}: true, {TableAutoInc, TableIX}: true,
		}
		return !compatible[[2]Mode{request, other}]
	}
	exclusive := func(m Mode) bool { return m == RecordX || m == GapX || m == NextKeyX || m == InsertIntention }
	gapOnly := func(m Mode) bool { return m == GapS || m == GapX || m == InsertIntention }
	intention := request == InsertIntention
	switch {
	case !exclusive(request) && !exclusive(other):
		return false // S locks agree
	case (supremum || gapOnly(request)) && !intention:
		return false // a gap lock waits for nothing
	case !intention && gapOnly(other):
		return false // nor does a lock on the record for one on the gap
	case gapOnly(request) && (other == RecordS || other == RecordX):
		return false // nor one on the gap for one on the record
	case other == InsertIntention:
		return false // nor anything for an insert intention
	}
	return true
}

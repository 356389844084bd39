package lock

import "fmt"

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
	return nil
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

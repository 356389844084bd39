package lock

// Wrote gives up the lock on a record that o has just written: the record names o
// as its writer, and that is as good ([Table.ConvertImplicit]). What somebody waits for
// stays, and so does what covers the gap or other keys. alone says that the lock is a
// range's which may have no other entry in it: [Table.DropAlone] tells.
//
// REQUIRES: the leaf of the key is latched in X, from before the record was written.
func (t *Table) Wrote(o *Owner, index uint64, key []byte) (alone bool) {
	if o.knows(index, key, RecordX) && gapModes.has(o.known.mode) {
		return false
	}
	h := t.hash(index, key, false)
	s := t.shardOf(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.find(h, index, key, false); q != nil && q.waiting.head == nil {
		o.mu.Lock()
		for g := q.granted.head; g != nil; {
			next := g.next
			if g.owner == o && !g.echo && RecordX.Covers(g.mode) {
				q.removeGranted(g)
				o.unlink(g, q.bytes())
			}
			g = next
		}
		o.mu.Unlock()
		if q.empty() {
			s.drop(q)
		}
	}
	return t.someSpan(o, index, key, func(_ *spanSlot, p *span) bool { return RecordX.Covers(p.mode) })
}

// DropAlone is Wrote for ranges that have no entry beside the key, which is the only one in
// its area.
func (t *Table) DropAlone(o *Owner, index uint64, key []byte, area Area) {
	h := t.hash(index, key, false)
	s := t.shardOf(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.find(h, index, key, false); !q.onlyOf(o) {
		return // a lock made from the range stays, and the range with it
	}
	slot := t.slotOf(index)
	slot.mu.Lock()
	defer slot.mu.Unlock()
	for _, p := range slot.over(index, key) {
		if p.owner == o && RecordX.Covers(p.mode) && string(p.low) >= string(area.From) && compareEnds(p.end, area.To) <= 0 {
			slot.cut(p, area.From, area.To)
			o.mu.Lock()
			o.counted(-1)
			o.mu.Unlock()
		}
	}
}

// Keep makes sure that o has a lock on a record that is about to get a version of
// somebody else back, where o goes on: a rollback to a savepoint gives up no lock. It
// never parks and cannot fail; what it adds may exceed the memory limit.
//
// REQUIRES: the leaf of the key is latched in X, and the record names o as its writer.
func (t *Table) Keep(o *Owner, index uint64, key []byte, area Area) {
	h := t.hash(index, key, false)
	s := t.shardOf(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.find(h, index, key, false)
	if q != nil && q.holds(o, RecordX) || t.holdsInSpan(o, index, key, RecordX) {
		return
	}
	at := place{t: t, s: s, hash: h, index: index, key: key, q: q}
	if q.onlyOf(o) && area.Known {
		// With force, it does not fail.
		_ = t.keepInSpan(&at, o, RecordX, area, true)
		return
	}
	at.addHeld(o, RecordX)
}

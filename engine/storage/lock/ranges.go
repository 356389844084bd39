package lock

import (
	"bytes"
	"unsafe"
)

const spanBytes = int64(unsafe.Sizeof(span{}))

// Area is what a caller knows of a key's neighbourhood: the key is the only entry of
// the index in [From, To), but for entries that the owner has inserted itself. An
// empty To is the index's end. The zero value says nothing.
type Area struct {
	From, To []byte
	Known    bool
}

// Single is the area of the key alone. It appends to buf, which is returned for reuse.
func Single(buf, key []byte) (Area, []byte) {
	buf = append(append(buf[:0], key...), 0)
	return Area{From: key, To: buf, Known: true}, buf
}

// after is the least key above the given one: to itself, if that is it.
func after(to, key []byte) []byte {
	if n := len(key); len(to) == n+1 && to[n] == 0 && bytes.Equal(to[:n], key) {
		return to
	}
	return append(bytes.Clone(key), 0)
}

// active reports whether the owner holds its locks. It may release them at any time.
func (o *Owner) active() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state == ownerActive
}

// meetSpans looks for a span of o that covers the request, and for spans of others
// that are in its way. Those become granted locks in the key's queue if the request is
// going to wait for them, so that everything about waiting is the queues' matter.
func (t *Table) meetSpans(slot *spanSlot, at *place, o *Owner, mode Mode, policy Policy) (held bool, blocker *Owner) {
	slot.mu.Lock()
	defer slot.mu.Unlock()
	over := slot.over(at.index, at.key)
	for _, p := range over {
		if p.owner == o && p.mode.Covers(mode) {
			return true, nil
		}
	}
	for _, p := range over {
		if p.owner == o || !mode.Conflicts(p.mode) || !p.owner.active() {
			continue
		}
		if policy == Block && !at.echo(p) {
			continue // released meanwhile
		}
		if blocker == nil {
			blocker = p.owner
		}
	}
	return false, blocker
}

// echo grants the span's owner a lock on the key, unless it has one or is releasing:
// then it reports false. The lock exceeds the memory limit if need be, and counts for
// nothing in Owner.count: the span has counted the key.
func (p *place) echo(of *span) bool {
	q := p.find()
	if q != nil {
		for g := q.granted.head; g != nil; g = g.next {
			if g.owner == of.owner && g.mode.Covers(of.mode) {
				return true
			}
		}
	}
	o := of.owner
	o.mu.Lock()
	if o.state != ownerActive {
		o.mu.Unlock()
		return false
	}
	l, _ := o.newLock(p.index, p.s.number, of.mode, lockBytes+queueBytes+int64(len(p.key)), true)
	l.echo = true
	o.count--
	o.mu.Unlock()
	if q == nil {
		p.q = p.s.make(p.hash, p.index, p.key, false)
	}
	p.q.add(l, false)
	p.t.stats.rangeLocks.Add(1)
	return true
}

// onlyOf reports whether nobody but o has anything to do with the key.
func (q *queue) onlyOf(o *Owner) bool {
	if q == nil {
		return true
	}
	if q.waiting.head != nil {
		return false
	}
	for g := q.granted.head; g != nil; g = g.next {
		if g.owner != o {
			return false
		}
	}
	return true
}

// keepInSpan gives o the lock on a key of which nobody else wants anything, as part of
// a span. What else o has locked of the key is absorbed, if the span stands for it.
//
// REQUIRES: the mutex of the key's shard; no lock of another owner conflicts.
func (t *Table) keepInSpan(at *place, o *Owner, mode Mode, area Area, force bool) error {
	slot := t.slotOf(at.index)
	slot.mu.Lock()
	defer slot.mu.Unlock()
	var base *span
	var was int64
	above := false
	for _, p := range slot.near(at.index, area.From, area.To) {
		switch {
		case p.owner != o || p.mode != mode:
			continue
		case base == nil:
			base, was = p, p.bytes()
		default: // the key closes the gap between two spans
			slot.merge(base, p)
			o.mu.Lock()
			o.unlinkSpan(p)
			o.mu.Unlock()
		}
		above = compareEnds(p.end, at.key) > 0
	}
	if gapModes.has(mode) && !above {
		// What o inserts after the key is in a gap that it has not locked.
		area.To = after(area.To, at.key)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.assertReady()
	if base == nil {
		p := &span{owner: o, index: at.index, mode: mode}
		p.setLow(area.From)
		p.setEnd(area.To)
		if !o.charge(p.bytes(), force) {
			return ErrTableFull
		}
		slot.add(p)
		o.linkSpan(p)
		base = p
	} else {
		slot.widen(base, area)
		o.charge(base.bytes()-was, true)
	}
	o.counted(1)
	o.known.set(base, o.cuts.Load())
	at.absorb(o, mode)
	return nil
}

// known is the span that its owner has made wider last, as it was then: rows are locked by a
// scan and once more by their change, and most find their lock here without the mutexes of all.
type known struct {
	is       bool
	mode     Mode
	index    uint64
	low, end []byte
	cuts     uint64 // while the owner's are as many, all of it is locked
}

// set makes it the span. REQUIRES: the mutex of the span's slot.
func (k *known) set(p *span, cuts uint64) {
	k.is, k.mode, k.index, k.cuts = true, p.mode, p.index, cuts
	k.low, k.end = append(k.low[:0], p.low...), append(k.end[:0], p.end...)
}

// knows reports whether the span that o has made wider last covers the lock. false says nothing.
//
// REQUIRES: the caller is the owner's task; the latch of the leaf in which the key is, so that
// nobody cuts the key out.
func (o *Owner) knows(index uint64, key []byte, mode Mode) bool {
	k := &o.known
	return k.is && k.index == index && len(key) > 0 && k.mode.Covers(mode) && k.cuts == o.cuts.Load() &&
		bytes.Compare(k.low, key) <= 0 && (len(k.end) == 0 || bytes.Compare(key, k.end) < 0)
}

// absorbs reports whether a span of the mode stands for another lock of its owner on the
// same key. Of locks on records alone it must be the same: a read may give up what it has
// newly got, and keep a weaker one that the transaction had before.
func absorbs(mode, other Mode) bool {
	return mode == other || gapModes.has(mode) && mode.Covers(other)
}

// absorb takes o's locks on the key out for which the span stands.
//
// REQUIRES: o.mu; nobody waits for the key.
func (p *place) absorb(o *Owner, mode Mode) {
	q := p.find()
	if q == nil {
		return
	}
	for g := q.granted.head; g != nil; {
		next := g.next
		if g.owner == o && absorbs(mode, g.mode) {
			q.removeGranted(g)
			o.unlink(g, q.bytes())
		}
		g = next
	}
	if q.empty() {
		p.s.drop(q)
		p.q = nil
	}
}

// add puts a span into the slot.
func (s *spanSlot) add(p *span) {
	s.insert(p)
	s.n.Add(1)
}

// take takes a span out of the slot.
func (s *spanSlot) take(p *span) {
	s.remove(p)
	if s.n.Add(-1) == 0 {
		s.some = nil
	}
}

// widen makes a span reach over the area, which touches it.
func (s *spanSlot) widen(p *span, area Area) {
	if compareEnds(p.end, area.To) < 0 {
		p.setEnd(area.To)
		p.grown()
	}
	if bytes.Compare(area.From, p.low) < 0 {
		s.remove(p)
		p.setLow(area.From)
		s.insert(p)
	}
}

// merge makes p reach to where q, which comes after it, ends, and takes q out.
func (s *spanSlot) merge(p, q *span) {
	if compareEnds(p.end, q.end) < 0 {
		p.setEnd(q.end)
		p.grown()
	}
	s.take(q)
}

// cut takes [from, to) out of a span. It reports false, changing nothing, if a second
// span is needed for what is behind it and the owner is releasing.
//
// REQUIRES: s.mu; the span overlaps [from, to).
func (s *spanSlot) cut(p *span, from, to []byte) bool {
	before := bytes.Compare(p.low, from) < 0
	after := len(to) > 0 && compareEnds(to, p.end) < 0
	o := p.owner
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state != ownerActive {
		return false
	}
	o.cuts.Add(1)
	was := p.bytes()
	switch {
	case before && after:
		q := &span{owner: o, index: p.index, mode: p.mode}
		q.setLow(to)
		q.setEnd(p.end)
		o.charge(q.bytes(), true)
		o.linkSpan(q)
		p.setEnd(from)
		p.ended()
		s.add(q)
	case before:
		p.setEnd(from)
		p.ended()
	case after:
		s.remove(p)
		p.setLow(to)
		s.insert(p)
	default:
		s.take(p)
		o.unlinkSpan(p)
		return true
	}
	o.charge(p.bytes()-was, true)
	return true
}

// linkSpan adds p to the owner's spans. REQUIRES: o.mu, as unlinkSpan.
func (o *Owner) linkSpan(p *span) {
	p.ownNext = o.spans
	if p.ownNext != nil {
		p.ownNext.ownPrev = p
	}
	o.spans = p
	o.table.stats.ranges.Add(1)
}

func (o *Owner) unlinkSpan(p *span) {
	if p.ownPrev != nil {
		p.ownPrev.ownNext = p.ownNext
	} else {
		o.spans = p.ownNext
	}
	if p.ownNext != nil {
		p.ownNext.ownPrev = p.ownPrev
	}
	p.ownPrev, p.ownNext = nil, nil
	o.discharge(p.bytes())
	o.table.stats.ranges.Add(-1)
}

// releaseSpans is for an owner that is releasing, so that nobody else touches its list.
func (t *Table) releaseSpans(o *Owner) {
	for p := o.spans; p != nil; p = p.ownNext {
		t.env.Yield()
		s := t.slotOf(p.index)
		s.mu.Lock()
		s.take(p)
		s.mu.Unlock()
		t.stats.ranges.Add(-1)
	}
	o.spans = nil
}

// someSpan reports whether fn is true of one of o's spans over the key, and ends with that one. The
// spans' slot is locked meanwhile.
func (t *Table) someSpan(o *Owner, index uint64, key []byte, fn func(*spanSlot, *span) bool) bool {
	slot := t.spansOn(index, key)
	if slot == nil {
		return false
	}
	slot.mu.Lock()
	defer slot.mu.Unlock()
	for _, p := range slot.over(index, key) {
		if p.owner == o && fn(slot, p) {
			return true
		}
	}
	return false
}

// unlockInSpan takes a key out of o's span of the mode, if there is one that covers it.
func (t *Table) unlockInSpan(o *Owner, index uint64, key []byte, mode Mode, area Area) bool {
	return t.someSpan(o, index, key, func(slot *spanSlot, p *span) bool {
		if p.mode != mode || !slot.cut(p, area.From, area.To) {
			return false
		}
		o.mu.Lock()
		o.counted(-1)
		o.mu.Unlock()
		return true
	})
}

// holdsInSpan reports whether a span of o covers a lock on the key.
func (t *Table) holdsInSpan(o *Owner, index uint64, key []byte, mode Mode) bool {
	return t.someSpan(o, index, key, func(_ *spanSlot, p *span) bool { return p.mode.Covers(mode) })
}

// inheritSpans is InheritOnInsert for spans: the new entry is cut out of those of
// others than inserter, and who has the gap before successor in a span gets the new
// entry's gap.
func (heir *place) inheritSpans(slot *spanSlot, inserter *Owner, successor []byte) {
	slot.mu.Lock()
	defer slot.mu.Unlock()
	_, to := Single(nil, heir.key)
	for _, p := range slot.over(heir.index, heir.key) {
		if p.owner == inserter || !slot.cut(p, heir.key, to) {
			continue
		}
		p.owner.splits.Add(1)
		heir.t.stats.rangeSplits.Add(1)
	}
	if len(successor) == 0 {
		return
	}
	for _, p := range slot.over(heir.index, successor) {
		if gapModes.has(p.mode) && !slot.covered(heir, p.owner, p.mode.gap()) {
			heir.addHeld(p.owner, p.mode.gap())
		}
	}
}

// inheritRemoved is InheritOnRemove for spans, which stay as they are: what they
// cover is not there any more.
func (heir *place) inheritRemoved(slot *spanSlot, inserter *Owner, removed []byte) {
	slot.mu.Lock()
	defer slot.mu.Unlock()
	for _, p := range slot.over(heir.index, removed) {
		o := p.owner
		if o == inserter && !gapModes.has(p.mode) {
			continue
		}
		if heir.inherited(o, p.mode) && !slot.covered(heir, o, p.mode.gap()) {
			heir.addHeld(o, p.mode.gap())
		}
	}
}

// covered reports whether a span of o covers the lock at the place.
func (s *spanSlot) covered(at *place, o *Owner, mode Mode) bool {
	return len(at.key) > 0 && s.root.covered(at.index, at.key, o, mode)
}

func (p *span) covered(index uint64, key []byte, o *Owner, mode Mode) bool {
	if p == nil || p.max.index < index || p.max.index == index && compareEnds(p.max.end, key) <= 0 {
		return false
	}
	if p.owner == o && p.mode.Covers(mode) && p.covers(index, key) {
		return true
	}
	if p.left.covered(index, key, o, mode) {
		return true
	}
	if p.index > index || p.index == index && bytes.Compare(p.low, key) > 0 {
		return false
	}
	return p.right.covered(index, key, o, mode)
}

package lock

// InheritOnInsert is called after inserter has inserted newKey before successor, under
// the same latch, and holds it by that (nil if it does not): who has locked the gap before successor gets both halves of
// it. Waiting requests count too, since they have claimed the whole gap. It
// never parks and cannot fail; the locks it adds may exceed the memory limit.
func (t *Table) InheritOnInsert(inserter *Owner, index uint64, newKey, successor []byte) {
	from := t.hash(index, successor, false)
	s := t.shardOf(from)
	s.mu.Lock()
	q := s.find(from, index, successor, false)
	// While the leaf is latched no span comes to cover newKey, so that the mutex of
	// its shard is not needed to see that there is none.
	if (q == nil || !q.hasGaps()) && t.spansOn(index, newKey) == nil {
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()

	to := t.hash(index, newKey, false)
	d := t.shardOf(to)
	lockPair(s, d)
	defer unlockPair(s, d)
	heir := place{t: t, s: d, hash: to, index: index, key: newKey}
	if slot := t.spansOn(index, newKey); slot != nil {
		heir.inheritSpans(slot, inserter, successor)
	}
	if q = s.find(from, index, successor, false); q == nil {
		return
	}
	for _, list := range [...]lockList{q.granted, q.waiting} {
		for l := list.head; l != nil; l = l.next {
			if gapModes.has(l.mode) {
				heir.add(l.owner, l.mode.gap())
			}
		}
	}
}

// InheritOnRemove is called when removed leaves the index for good (purge, or
// the rollback of an insert), under the latch of its leaf: its locks, waiting
// ones too, become locks on the gap before successor, which now reaches over
// where it was; its waiters are woken with [ErrRetry]. The X locks of
// READ COMMITTED owners are not inherited. It never parks and cannot fail. inserter is
// not nil if it takes back an entry that it had inserted and, but for its gap, not locked.
//
// REQUIRES: no change of the entries from removed to successor by others.
func (t *Table) InheritOnRemove(inserter *Owner, index uint64, removed, successor []byte) {
	from := t.hash(index, removed, false)
	s := t.shardOf(from)
	s.mu.Lock()
	q := s.find(from, index, removed, false)
	nothing := q == nil && t.spansOn(index, removed) == nil
	s.mu.Unlock()
	if nothing {
		return
	}
	to := t.hash(index, successor, false)
	d := t.shardOf(to)
	var w wakes
	lockPair(s, d)
	heir := place{t: t, s: d, hash: to, index: index, key: successor}
	if q = s.find(from, index, removed, false); q != nil {
		for _, list := range [...]lockList{q.granted, q.waiting} {
			for l := list.head; l != nil; l = l.next {
				heir.addRemoved(l.owner, l.mode)
			}
		}
	}
	if slot := t.spansOn(index, removed); slot != nil {
		heir.inheritRemoved(slot, inserter, removed)
	}
	heir.recheck(&w)
	if q != nil {
		t.evict(s, q, &w)
	}
	unlockPair(s, d)
	w.fire()
}

// evict takes all locks out of the queue of a removed key and drops it.
func (t *Table) evict(s *shard, q *queue, w *wakes) {
	for l := q.granted.head; l != nil; l = q.granted.head {
		q.removeGranted(l)
		o := l.owner
		o.mu.Lock()
		if o.state == ownerActive {
			o.unlink(l, q.bytes())
		} // else ReleaseAll is on its way through the list
		o.mu.Unlock()
	}
	for l := q.waiting.head; l != nil; l = q.waiting.head {
		o := l.owner
		o.mu.Lock()
		t.removeWait(o, waitRetry, w)
		o.mu.Unlock()
	}
	s.drop(q)
}

// place is a key that others' locks are added to, under its shard's mutex.
type place struct {
	t     *Table
	s     *shard
	hash  uint64
	index uint64
	key   []byte
	q     *queue
	grew  bool
}

func (p *place) find() *queue {
	if p.q == nil {
		p.q = p.s.find(p.hash, p.index, p.key, false)
	}
	return p.q
}

// addRemoved adds what a lock on a removed key becomes.
func (p *place) addRemoved(o *Owner, mode Mode) {
	if p.inherited(o, mode) {
		p.add(o, mode.gap())
	}
}

// inherited reports whether a lock on a removed key is kept, on the gap.
func (p *place) inherited(o *Owner, mode Mode) bool {
	if mode == InsertIntention {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.opts.ReadCommitted || mode.gap() != GapX
}

// add grants o a lock, unless it has what covers it or is releasing.
func (p *place) add(o *Owner, mode Mode) {
	if !p.t.holdsInSpan(o, p.index, p.key, mode) {
		p.addHeld(o, mode)
	}
}

// addHeld is add where no span covers the lock.
func (p *place) addHeld(o *Owner, mode Mode) {
	q := p.find()
	if q != nil && q.holds(o, mode) {
		return
	}
	o.mu.Lock()
	if o.state != ownerActive {
		o.mu.Unlock()
		return
	}
	n := lockBytes + queueBytes + int64(len(p.key))
	l, _ := o.newLock(p.index, p.s.number, mode, n, true)
	o.mu.Unlock()
	if q == nil {
		p.q = p.s.make(p.hash, p.index, p.key, false)
	}
	p.q.add(l, false)
	p.grew = true
}

// recheck wakes the insert intentions that wait at the place, if locks were
// added: they may have closed a cycle that no request of its members would find.
func (p *place) recheck(w *wakes) {
	if !p.grew || !p.t.detect.Load() {
		return
	}
	for l := p.q.waiting.head; l != nil; l = l.next {
		if l.mode != InsertIntention {
			continue
		}
		o := l.owner
		o.mu.Lock()
		o.wait.recheck = true
		w.add(o.parker)
		o.mu.Unlock()
	}
}

// Implicit is the answer of [Table.ConvertImplicit].
type Implicit uint8

// Answers: the holder has an explicit lock now; it has released its locks; it is
// another transaction by now; someone else has a lock on the entry.
const (
	ImplicitHeld Implicit = iota
	ImplicitReleased
	ImplicitUnknown
	ImplicitBroken
)

// ConvertImplicit gives holder, if it still is the active transaction id, the X
// lock on the entry that it holds implicitly as its last writer. The caller will
// ask for its own lock next. It never parks and cannot fail. Called under the latch
// of the entry's leaf.
//
// On [ImplicitReleased] sequence is what [Table.ReleaseAll] was told: 0, or the log
// entry by which the holder's changes stand or fall. On [ImplicitUnknown] the
// transaction has ended. [ImplicitBroken] can only be if the holder had released
// early and was made active again, since its entry failed: who has got a lock on
// what it wrote meanwhile must not go on.
func (t *Table) ConvertImplicit(holder *Owner, id uint64, index uint64, key []byte) (how Implicit, sequence uint64) {
	return t.implicit(holder, id, index, key, true)
}

// FindImplicit is ConvertImplicit for who is not going to wait for the holder: the lock
// stays implicit, so that reads which pass over rows in great number leave nothing behind.
func (t *Table) FindImplicit(holder *Owner, id uint64, index uint64, key []byte) (how Implicit, sequence uint64) {
	return t.implicit(holder, id, index, key, false)
}

func (t *Table) implicit(holder *Owner, id uint64, index uint64, key []byte, convert bool) (how Implicit, sequence uint64) {
	h := t.hash(index, key, false)
	s := t.shardOf(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place{t: t, s: s, hash: h, index: index, key: key}
	held, inSpan, broken := at.holders(holder)
	holder.mu.Lock()
	defer holder.mu.Unlock()
	switch {
	case holder.id != id || holder.state == ownerIdle:
		return ImplicitUnknown, 0
	case holder.state == ownerReleased:
		return ImplicitReleased, holder.released
	case broken:
		return ImplicitBroken, 0
	case held || !convert:
		return ImplicitHeld, 0
	}
	l, _ := holder.newLock(index, s.number, RecordX, lockBytes+queueBytes+int64(len(key)), true)
	if inSpan {
		l.echo = true
		holder.count--
	}
	if at.q == nil {
		at.q = s.make(h, index, key, false)
	}
	at.q.add(l, false)
	return ImplicitHeld, 0
}

// holders tells whether the holder has an X lock of its own on the entry, or a span that
// covers it; or else someone else has a lock on it.
func (p *place) holders(holder *Owner) (held, inSpan, others bool) {
	if q := p.find(); q != nil {
		for g := q.granted.head; g != nil; g = g.next {
			switch {
			case g.owner == holder && g.mode.Covers(RecordX):
				return true, false, false
			case g.owner != holder && g.mode.OnRecord():
				return false, false, true
			}
		}
	}
	if slot := p.t.spansOn(p.index, p.key); slot != nil {
		slot.mu.Lock()
		defer slot.mu.Unlock()
		for _, of := range slot.over(p.index, p.key) {
			switch {
			case of.owner == holder && of.mode.Covers(RecordX):
				return false, true, false
			case of.owner != holder && of.mode.OnRecord() && of.owner.active():
				others = true
			}
		}
	}
	return false, false, others
}

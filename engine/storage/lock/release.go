package lock

// ReleaseAll releases every lock of o, the newest first, wakes those that
// waited for them, and ends a wait that o may have queued. A sequence other than
// 0 says that o releases early, before the log entry with that number is finished:
// [Table.ConvertImplicit] tells it to whoever meets what o has written.
//
// It may yield: the caller holds no sync.Mutex.
func (t *Table) ReleaseAll(o *Owner, sequence uint64) {
	o.mu.Lock()
	if o.state != ownerActive {
		o.mu.Unlock()
		return
	}
	pending, seq := o.wait.lock != nil, o.wait.seq
	o.mu.Unlock()
	if pending {
		t.cancel(o, seq, waitInterrupted)
	}

	o.mu.Lock()
	o.state = ownerReleased // from here on nobody else touches the lists
	o.released = sequence
	o.wait.outcome = waitNone
	o.wait.deadlock = nil
	o.mu.Unlock()
	for l := o.records.tail; l != nil; l = l.ownPrev {
		t.release(l)
	}
	t.releaseSpans(o)
	for l := o.tables.tail; l != nil; l = l.ownPrev {
		t.release(l)
	}
	o.mu.Lock()
	o.records, o.tables, o.count = lockList{}, lockList{}, 0
	o.arena.reset()
	o.dischargeAll()
	o.mu.Unlock()
}

// release takes one lock out of its queue.
func (t *Table) release(l *lock) {
	t.env.Yield()
	s := &t.shards[l.shard]
	s.mu.Lock()
	q := l.q
	if q == nil { // its key left the index
		s.mu.Unlock()
		return
	}
	q.removeGranted(l)
	if q.waiting.head == nil {
		if q.granted.head == nil {
			s.drop(q)
		}
		s.mu.Unlock()
		return
	}
	t.grantAndUnlock(s, q, l.owner)
}

// grantAndUnlock is grant, then releases the shard, then wakes.
func (t *Table) grantAndUnlock(s *shard, q *queue, gone *Owner) {
	var w wakes
	t.grant(s, q, gone, &w)
	s.mu.Unlock()
	w.fire()
}

// Unlock releases one granted record lock of exactly this mode, for a row that
// turned out not to match (READ COMMITTED). It reports whether there was one.
// Only a lock that the same read was newly [Granted] may be given up so. The area is
// that of the request, unless [Owner.Splits] has changed since: then that of the key alone.
func (t *Table) Unlock(o *Owner, index uint64, key []byte, mode Mode, area Area) bool {
	if mode.IsTable() {
		panic("lock: Unlock of a table lock")
	}
	if len(key) == 0 {
		mode = mode.onSupremum()
	}
	h := t.hash(index, key, false)
	s := t.shardOf(h)
	s.mu.Lock()
	if !area.Known {
		area, _ = Single(nil, key)
	}
	found := t.unlockInSpan(o, index, key, mode, area)
	q := s.find(h, index, key, false)
	if q == nil {
		s.mu.Unlock()
		return found
	}
	l := q.granted.head
	for l != nil && (l.owner != o || l.mode != mode) {
		l = l.next
	}
	if l == nil {
		s.mu.Unlock()
		return found
	}
	q.removeGranted(l)
	o.mu.Lock()
	o.unlink(l, q.bytes())
	o.mu.Unlock()
	t.grantAndUnlock(s, q, o)
	return true
}

// ReleaseAutoInc releases the AUTO-INC locks of o, at the end of a statement.
func (t *Table) ReleaseAutoInc(o *Owner) {
	for l := o.tables.head; l != nil; {
		next := l.ownNext
		if l.mode == TableAutoInc {
			s := &t.shards[l.shard]
			s.mu.Lock()
			q := l.q
			q.removeGranted(l)
			o.mu.Lock()
			o.unlink(l, q.bytes())
			o.mu.Unlock()
			t.grantAndUnlock(s, q, o)
		}
		l = next
	}
}

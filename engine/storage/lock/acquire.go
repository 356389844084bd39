package lock

import (
	"time"

	"github.com/triremedb/trireme/engine/env"
)

// Supremum is the key of the gap after the last entry of an index.
var Supremum []byte

// Policy says what a request does that cannot be granted at once.
type Policy uint8

// Policies: join the queue, fail with [ErrNoWait], or answer [Skip].
const (
	Block Policy = iota
	NoWait
	SkipLocked
)

// Request asks for a lock.
type Request struct {
	// Index is the index's id, or the table's for a table mode. The two are kept
	// apart.
	Index uint64
	// Key is the full key of an existing entry, or [Supremum]; unused by table
	// modes. It is copied.
	Key    []byte
	Mode   Mode
	Policy Policy
	// Timeout limits the wait; 0 takes Options.WaitTimeout, negative is no limit.
	Timeout time.Duration
}

// Hint is what a caller knows of the key of a request beside the request itself.
type Hint struct {
	// Area, if known, lets the lock become part of one that covers a range of keys.
	// Only for entries.
	Area Area
	// Written says that the owner has written the record of the entry, and so has
	// that locked: of a next-key lock only the gap is needed.
	Written bool
	// NoEntry says that no entry has this key, which stands for something else:
	// locks on ranges of keys do not cover it.
	NoEntry bool
}

// Result is the answer to a request.
type Result uint8

// Results. Granted means that the lock is new (for an insert intention: that
// nothing is in the way), Held that the owner had what covers it. MustWait means
// that the request is in the queue: Wait or Cancel must follow.
const (
	Granted Result = iota
	Held
	MustWait
	Skip
)

var resultNames = [...]string{"granted", "held", "must wait", "skip"}

func (r Result) String() string { return resultNames[r] }

// Acquire asks for a lock and never parks. After [MustWait] the caller gives up
// its latches and calls [Table.Wait]. Errors are [ErrNoWait], [ErrTableFull] and,
// where it would have to wait, [ErrInterrupted]; nothing is queued then.
//
// REQUIRES: o is active and not waiting; for record modes the latch of the leaf
// in which Key is, so that the entry stays while it is locked; for an insert
// intention also that of the leaf where the new entry will be, up to the insert.
func (t *Table) Acquire(o *Owner, r Request) (Result, error) {
	mode, key, table := r.Mode, r.Key, r.Mode.IsTable()
	if table {
		key = nil
		if o.holdsTable(r.Index, mode) {
			return Held, nil
		}
	} else if len(key) == 0 {
		mode = mode.onSupremum()
	} else if o.knows(r.Index, key, mode) {
		return Held, nil
	}
	h := t.hash(r.Index, key, table)
	s := t.shardOf(h)
	s.mu.Lock()
	q := s.find(h, r.Index, key, table)
	if !table && t.slotOf(r.Index).n.Load() != 0 {
		return t.acquireRanged(o, r, &Hint{}, s, q, h, mode)
	}
	var blocker *Owner
	if q != nil {
		var held *lock
		held, blocker = q.check(o, mode)
		if held != nil {
			s.mu.Unlock()
			return Held, nil
		}
	}
	if blocker != nil || mode == InsertIntention {
		return t.enqueue(o, r, s, q, h, mode, blocker)
	}
	o.mu.Lock()
	o.assertReady()
	l, err := o.newLock(r.Index, s.number, mode, lockBytes+queueBytes+int64(len(key)), false)
	o.mu.Unlock()
	if err != nil {
		s.mu.Unlock()
		return MustWait, err
	}
	if q == nil {
		q = s.make(h, r.Index, key, table)
	}
	q.add(l, false)
	s.mu.Unlock()
	return Granted, nil
}

// AcquireHinted is [Table.Acquire] of a lock on a key of which more is known. The two are
// apart since the arguments of Acquire fit into registers.
func (t *Table) AcquireHinted(o *Owner, r Request, hint *Hint) (Result, error) {
	mode := r.Mode
	if mode.IsTable() {
		panic("lock: a table has no key")
	}
	if len(r.Key) == 0 {
		mode = mode.onSupremum()
	}
	h := t.hash(r.Index, r.Key, false)
	s := t.shardOf(h)
	s.mu.Lock()
	return t.acquireRanged(o, r, hint, s, s.find(h, r.Index, r.Key, false), h, mode)
}

// acquireRanged is Acquire, from the lookup of the queue on, where ranges may matter.
//
// REQUIRES: the mutex of the shard, which is released.
func (t *Table) acquireRanged(o *Owner, r Request, hint *Hint, s *shard, q *queue, hash uint64, mode Mode) (Result, error) {
	wide, ranged := mode, hint.Area.Known && mode.OnRecord()
	if hint.Written {
		mode = mode.gap()
	}
	at := place{t: t, s: s, hash: hash, index: r.Index, key: r.Key, q: q}
	var blocker *Owner
	if q != nil {
		var held *lock
		held, blocker = q.check(o, mode)
		if held != nil {
			if ranged && !held.echo && absorbs(wide, held.mode) && q.onlyOf(o) {
				// What a full table has no room for stays as it is.
				_ = t.keepInSpan(&at, o, wide, hint.Area, false)
			}
			s.mu.Unlock()
			return Held, nil
		}
	}
	if slot := t.spansOn(r.Index, r.Key); slot != nil && !hint.NoEntry {
		held, other := t.meetSpans(slot, &at, o, mode, r.Policy)
		if held {
			s.mu.Unlock()
			return Held, nil
		}
		if blocker == nil {
			blocker = other
		}
	}
	if blocker == nil && ranged && at.q.onlyOf(o) {
		err := t.keepInSpan(&at, o, wide, hint.Area, false)
		s.mu.Unlock()
		if err != nil {
			return MustWait, err
		}
		return Granted, nil
	}
	return t.enqueue(o, r, s, at.q, hash, mode, blocker)
}

// enqueue grants a lock, or makes it wait behind the blocker as far as the policy says.
//
// REQUIRES: the mutex of the shard, which is released.
func (t *Table) enqueue(o *Owner, r Request, s *shard, q *queue, hash uint64, mode Mode, blocker *Owner) (Result, error) {
	if blocker == nil && mode == InsertIntention {
		s.mu.Unlock()
		return Granted, nil
	}
	if blocker != nil && r.Policy != Block {
		s.mu.Unlock()
		if r.Policy == SkipLocked {
			return Skip, nil
		}
		return MustWait, ErrNoWait
	}
	key, table := r.Key, mode.IsTable()
	if table {
		key = nil
	}
	n := lockBytes + queueBytes + int64(len(key))
	var l *lock
	var err error
	if blocker == nil {
		o.mu.Lock()
		o.assertReady()
		l, err = o.newLock(r.Index, s.number, mode, n, false)
		o.mu.Unlock()
	} else {
		l, err = t.newWait(o, r, s.number, mode, n, blocker)
	}
	if err != nil {
		s.mu.Unlock()
		return MustWait, err
	}
	if q == nil {
		q = s.make(hash, r.Index, key, table)
	}
	q.add(l, blocker != nil)
	s.mu.Unlock()
	if blocker != nil {
		return MustWait, nil
	}
	return Granted, nil
}

// newLock makes a lock of o that is in its list but in no queue yet. Force says
// that it may exceed the memory limit. REQUIRES: o.mu.
func (o *Owner) newLock(index uint64, shard uint32, mode Mode, bytes int64, force bool) (*lock, error) {
	if !o.charge(bytes, force) {
		return nil, ErrTableFull
	}
	l := o.arena.get()
	l.owner, l.index, l.shard, l.mode = o, index, shard, mode
	o.link(l)
	return l, nil
}

// assertReady panics unless o may ask for a lock. REQUIRES: o.mu.
func (o *Owner) assertReady() {
	if o.state != ownerActive || o.wait.lock != nil {
		panic("lock: Acquire for an owner that is not active or waits")
	}
}

// newWait is newLock for a lock to wait for.
func (t *Table) newWait(o *Owner, r Request, shard uint32, mode Mode, bytes int64, blocker *Owner) (*lock, error) {
	now := t.env.Monotonic()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.assertReady()
	if o.interrupted {
		return nil, ErrInterrupted
	}
	l, err := o.newLock(r.Index, shard, mode, bytes, false)
	if err != nil {
		return nil, err
	}
	timeout := r.Timeout
	if timeout == 0 {
		timeout = time.Duration(t.waitTimeout.Load())
	}
	w := &o.wait
	w.lock, w.outcome, w.recheck, w.deadlock = l, waitPending, false, nil
	w.seq++
	w.started, w.deadline = now, now+timeout
	if timeout < 0 {
		w.deadline = -1
	}
	w.atEnd = waitTimeout
	if until := o.opts.until(); until > 0 && (w.deadline < 0 || until <= w.deadline) {
		w.deadline, w.atEnd = until, waitLimit
	}
	if o.parker == nil {
		o.parker = t.env.NewParker()
	}
	o.blockedBy.Store(blocker)
	o.scheduling.Store(1)
	o.reservation.Store(t.suspensions.Add(1))
	t.stats.waits.Add(1)
	t.stats.waiting.Add(1)
	return l, nil
}

// Holds reports whether o has been granted a lock that covers mode.
func (t *Table) Holds(o *Owner, index uint64, key []byte, mode Mode) bool {
	table := mode.IsTable()
	if table {
		key = nil
	} else if len(key) == 0 {
		mode = mode.onSupremum()
	}
	h := t.hash(index, key, table)
	s := t.shardOf(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.find(h, index, key, table)
	return q != nil && q.holds(o, mode) || !table && t.holdsInSpan(o, index, key, mode)
}

// wakes collects whom to wake once the shard's mutex is released.
type wakes struct {
	n    int
	few  [8]env.Parker
	more []env.Parker
}

func (w *wakes) add(p env.Parker) {
	if w.n < len(w.few) {
		w.few[w.n] = p
		w.n++
		return
	}
	w.more = append(w.more, p)
}

func (w *wakes) fire() {
	for _, p := range w.few[:w.n] {
		p.Unpark()
	}
	for _, p := range w.more {
		p.Unpark()
	}
}

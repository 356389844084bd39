package lock

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
)

// Owner is the lock state of one transaction, embedded in it and reused by the
// next one. The zero value is ready for [Table.Begin]. It must not be copied.
//
// One task at a time acts for an owner (Acquire, Wait, Release...). Others only
// add locks that it holds implicitly or inherits, take those of removed keys,
// grant or end its wait.
type Owner struct {
	table *Table

	mu    sync.Mutex // guards the following, up to the next comment
	id    uint64
	state ownerState
	opts  TxnOptions
	// tables and records are the owner's locks in the order they were asked
	// for, the one waited for included. While the owner releases, the lists are its own.
	tables, records lockList
	count           int   // of locks; a span counts as often as it was made wider
	spans           *span // chained by ownNext
	arena           lockArena
	used, charged   int64 // bytes of locks held; bytes of them reported to the table
	released        uint64

	wait        waitState
	interrupted bool
	parker      env.Parker

	// Written under the mutex of the shard of the lock waited for.
	blockedBy   atomic.Pointer[Owner]
	reservation atomic.Uint64
	scheduling  atomic.Uint64

	undo   atomic.Uint64
	many   atomic.Bool   // has, or had, many locks
	splits atomic.Uint64 // how often an entry of others was cut out of a span
	cuts   atomic.Uint64 // how often a span became narrower, whoever did it

	known known // of the owner's task alone

	// Guarded by the detector's mutex.
	slot  int
	visit uint64
}

type ownerState uint8

const (
	ownerIdle ownerState = iota
	ownerActive
	ownerReleased
)

// TxnOptions are the properties of a transaction that matter to its locks.
type TxnOptions struct {
	// ReadCommitted says that X locks on removed entries do not become gap locks.
	ReadCommitted bool
	// HighPriority transactions are a deadlock's victim only if all members of
	// the cycle are.
	HighPriority bool
	// Waits counts the waits of the transaction's task; nil: nobody asks. It is the task's own.
	Waits *Waits
	// Until, if not nil, says when the time of the task's present statement is up, on the environment's
	// monotonic clock; 0: it has all the time. A wait asks it when it begins and ends then with ErrTimeLimit.
	Until func() time.Duration
}

// until is Until; 0 without one.
func (o *TxnOptions) until() time.Duration {
	if o.Until == nil {
		return 0
	}
	return o.Until()
}

// Waits is how often, and how long together, somebody has waited for locks.
type Waits struct {
	Count uint64
	Time  time.Duration
}

// Add counts a wait.
func (w *Waits) Add(d time.Duration) {
	if w != nil {
		w.Count++
		w.Time += d
	}
}

type outcome uint8

const (
	waitNone outcome = iota
	waitPending
	waitGranted
	waitRetry
	waitDeadlock
	waitTimeout
	waitLimit
	waitInterrupted
)

type waitState struct {
	lock     *lock // not nil exactly while outcome is waitPending
	seq      uint64
	outcome  outcome
	recheck  bool // someone new may be in the way: look for a deadlock again
	deadlock *Deadlock
	started  time.Duration
	deadline time.Duration // negative: none
	atEnd    outcome       // of the wait at the deadline: waitTimeout or waitLimit
}

// Begin makes o the lock state of transaction id.
//
// REQUIRES: o is new or was released.
func (t *Table) Begin(o *Owner, id uint64, opts TxnOptions) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state == ownerActive {
		panic("lock: Begin of an active owner")
	}
	o.table, o.id, o.opts, o.state = t, id, opts, ownerActive
	o.released = 0
	o.known.is = false
	o.undo.Store(0)
	if o.many.Load() {
		o.many.Store(false)
	}
}

// SetID changes the id, for a transaction that gets one with its first write.
func (o *Owner) SetID(id uint64) {
	o.mu.Lock()
	o.id = id
	o.mu.Unlock()
}

// ID is the transaction's id.
func (o *Owner) ID() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.id
}

// Released reports whether o, if it still is transaction id, has released its locks,
// and what [Table.ReleaseAll] was told.
func (o *Owner) Released(id uint64) (released bool, sequence uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.id != id || o.state == ownerIdle:
		return true, 0
	case o.state == ownerReleased:
		return true, o.released
	}
	return false, 0
}

// SetWeight tells how much a rollback would undo, in undo records. With the
// number of locks it decides who is a deadlock's victim.
func (o *Owner) SetWeight(undoRecords uint64) { o.undo.Store(undoRecords) }

// Locks is the number of locks, the one waited for included.
func (o *Owner) Locks() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count
}

// AppendChanged appends the tables of which o may change rows: those on which it has
// an IX or X lock.
func (o *Owner) AppendChanged(to []uint64) []uint64 {
	for l := o.tables.head; l != nil; l = l.ownNext {
		if l.mode == TableIX || l.mode == TableX {
			to = append(to, l.index)
		}
	}
	return to
}

// ResetInterrupt forgets an earlier [Table.Interrupt]; called at the start of a
// statement.
func (o *Owner) ResetInterrupt() {
	o.mu.Lock()
	o.interrupted = false
	o.mu.Unlock()
}

// ownerFreeBytes is how much each owner may use without counting it against the
// table's limit, so that a small transaction does not touch a shared counter.
const ownerFreeBytes = 4 << 10

// charge accounts for n more bytes. It reports false, changing nothing, if the
// table's limit forbids it and force is not set. REQUIRES: o.mu.
func (o *Owner) charge(n int64, force bool) bool {
	o.used += n
	over := o.used - ownerFreeBytes - o.charged
	if over <= 0 {
		return true
	}
	chunk := max(over, min(o.used/8, 1<<20), ownerFreeBytes)
	t := o.table
	if total := t.memory.Add(chunk); !force && total > t.memoryMax.Load() {
		t.memory.Add(-chunk)
		o.used -= n
		return false
	}
	o.charged += chunk
	return true
}

// discharge gives n bytes back, to the table once it is worth it. REQUIRES: o.mu.
func (o *Owner) discharge(n int64) {
	o.used -= n
	if spare := o.charged - max(o.used, 0); spare > 1<<20+o.used {
		o.charged -= spare - 1<<19
		o.table.memory.Add(1<<19 - spare)
	}
}

// dischargeAll gives back everything. REQUIRES: o.mu.
func (o *Owner) dischargeAll() {
	if o.charged != 0 {
		o.table.memory.Add(-o.charged)
	}
	o.used, o.charged = 0, 0
}

// link adds l to the owner's locks. REQUIRES: o.mu.
func (o *Owner) link(l *lock) {
	o.listOf(l).pushOwn(l)
	if o.count++; o.count == o.table.rangesFrom {
		o.many.Store(true)
	}
}

// counted adds n to the number of locks. REQUIRES: o.mu.
func (o *Owner) counted(n int) {
	o.count += n
	if o.count >= o.table.rangesFrom && !o.many.Load() {
		o.many.Store(true)
	}
}

// Many reports whether o has, or had since [Table.Begin], so many locks that they should be kept
// on ranges of keys ([Hint]), or given up where the writer's id in a record says
// the same ([Table.Wrote]). Small transactions spare themselves the work.
func (o *Owner) Many() bool { return o.many.Load() }

// Splits counts how often someone else has inserted an entry into a range that o has
// locked the entries of.
func (o *Owner) Splits() uint64 { return o.splits.Load() }

// unlink takes l out and makes its memory free. REQUIRES: o.mu.
func (o *Owner) unlink(l *lock, bytes int64) {
	o.listOf(l).removeOwn(l)
	if !l.echo {
		o.count--
	}
	o.discharge(bytes)
	o.arena.put(l)
}

func (o *Owner) listOf(l *lock) *lockList {
	if l.mode.IsTable() {
		return &o.tables
	}
	return &o.records
}

// holdsTable reports whether the owner's table locks cover mode. Only the
// owner's task changes the list while it runs, so that task needs no mutex.
func (o *Owner) holdsTable(table uint64, mode Mode) bool {
	for l := o.tables.head; l != nil; l = l.ownNext {
		if l.index == table && l.mode.Covers(mode) {
			return true
		}
	}
	return false
}

package lock

import (
	"bytes"
	"cmp"
	"slices"
	"sync/atomic"
	"time"
)

// Info is a lock as performance_schema.data_locks shows it.
type Info struct {
	Trx     uint64
	Table   bool   // a table lock; Index is then the table's id
	Index   uint64 //
	Key     []byte // nil is the supremum, or a table
	Mode    string // such as "X,REC_NOT_GAP" or "S,GAP"
	Granted bool
	// Range says that the lock is on all entries from Key on to before End, which is
	// the index's end if empty. Those of them that somebody waits for are listed too.
	Range bool
	End   []byte
}

// WaitInfo is a waiting lock and one that is in its way, as in
// performance_schema.data_lock_waits.
type WaitInfo struct {
	Requesting, Blocking uint64
	Table                bool
	Index                uint64
	Key                  []byte
	RequestingMode       string
	BlockingMode         string
}

// Snapshot is the state of the table, each key at some moment between the call
// and its return.
type Snapshot struct {
	Locks []Info     // by transaction, then tables first, index, key, mode
	Waits []WaitInfo // by requesting, then blocking transaction
	// Truncated says that the limit cut the lists.
	Truncated bool
}

// Snapshot lists the locks and waits, at most max of each (0: no limit).
func (t *Table) Snapshot(max int) Snapshot {
	var snap Snapshot
	full := func(n int) bool { return max > 0 && n >= max }
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for _, q := range s.buckets {
			for ; q != nil; q = q.chain {
				if full(len(snap.Locks)) || full(len(snap.Waits)) {
					snap.Truncated = true
					break
				}
				snap.collect(q, t.fifo.Load())
			}
		}
		s.mu.Unlock()
	}
	for i := range t.spans {
		if s := &t.spans[i]; s.n.Load() != 0 {
			s.mu.Lock()
			snap.collectSpans(s.root, full)
			s.mu.Unlock()
		}
	}
	snap.sort()
	return snap
}

func (snap *Snapshot) collect(q *queue, fifo bool) {
	var key []byte
	if len(q.key) > 0 {
		key = bytes.Clone(q.key)
	}
	super := q.supremum()
	for i, list := range [...]lockList{q.granted, q.waiting} {
		for l := list.head; l != nil; l = l.next {
			trx := l.owner.ID()
			snap.Locks = append(snap.Locks, Info{Trx: trx, Table: q.table, Index: q.index, Key: key, Mode: l.mode.name(super), Granted: i == 0})
			if i == 0 {
				continue
			}
			q.eachBlocker(l, fifo, func(b *lock, _ bool) bool {
				snap.Waits = append(snap.Waits, WaitInfo{
					trx, b.owner.ID(), q.table, q.index, key, l.mode.name(super), b.mode.name(super),
				})
				return true
			})
		}
	}
}

func (snap *Snapshot) collectSpans(p *span, full func(int) bool) {
	if p == nil || full(len(snap.Locks)) {
		snap.Truncated = snap.Truncated || p != nil
		return
	}
	snap.collectSpans(p.left, full)
	snap.Locks = append(snap.Locks, Info{Trx: p.owner.ID(), Index: p.index, Key: append([]byte{}, p.low...),
		Mode: p.mode.String(), Granted: true, Range: true, End: bytes.Clone(p.end)})
	snap.collectSpans(p.right, full)
}

func (snap *Snapshot) sort() {
	slices.SortStableFunc(snap.Locks, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.Trx, b.Trx), compareKeys(a.Table, b.Table, a.Index, b.Index, a.Key, b.Key),
			compareBool(b.Granted, a.Granted), cmp.Compare(a.Mode, b.Mode))
	})
	slices.SortStableFunc(snap.Waits, func(a, b WaitInfo) int {
		return cmp.Or(cmp.Compare(a.Requesting, b.Requesting), cmp.Compare(a.Blocking, b.Blocking),
			compareKeys(a.Table, b.Table, a.Index, b.Index, a.Key, b.Key), cmp.Compare(a.BlockingMode, b.BlockingMode))
	})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// compareKeys orders tables before records and the supremum after the entries.
func compareKeys(tableA, tableB bool, indexA, indexB uint64, a, b []byte) int {
	return cmp.Or(compareBool(tableB, tableA), cmp.Compare(indexA, indexB),
		compareBool(len(a) == 0, len(b) == 0), bytes.Compare(a, b))
}

// Stats are counts since the table was made, but for WaitsNow.
type Stats struct {
	Waits     uint64 // requests that had to wait (Innodb_row_lock_waits and table waits)
	WaitsNow  int64
	Deadlocks uint64
	Timeouts  uint64
	WaitTime  time.Duration // of the waits that are over (Innodb_row_lock_time)
	WaitMax   time.Duration
	Memory    int64 // bytes, as [Table.Memory]
	// Ranges is the number of locks on ranges of keys now, RangeLocks how many locks on
	// single keys were made from such for others to wait for, RangeSplits how many entries were
	// inserted into such a range by others.
	Ranges                  int64
	RangeLocks, RangeSplits uint64
}

type counters struct {
	waits, deadlocks, timeouts atomic.Uint64
	waiting                    atomic.Int64
	time, longest              atomic.Int64
	ranges                     atomic.Int64
	rangeLocks, rangeSplits    atomic.Uint64
}

func (c *counters) waited(d time.Duration) {
	c.time.Add(int64(d))
	for {
		m := c.longest.Load()
		if int64(d) <= m || c.longest.CompareAndSwap(m, int64(d)) {
			return
		}
	}
}

// Stats returns the counters.
func (t *Table) Stats() Stats {
	c := &t.stats
	return Stats{
		Waits:     c.waits.Load(),
		WaitsNow:  c.waiting.Load(),
		Deadlocks: c.deadlocks.Load(),
		Timeouts:  c.timeouts.Load(),
		WaitTime:  time.Duration(c.time.Load()),
		WaitMax:   time.Duration(c.longest.Load()),
		Memory:    t.Memory(),

		Ranges:      c.ranges.Load(),
		RangeLocks:  c.rangeLocks.Load(),
		RangeSplits: c.rangeSplits.Load(),
	}
}

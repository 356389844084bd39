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
			snap.Locks = append(snap.Locks, Info{trx, q.table, q.index, key, l.mode.name(super), i == 0})
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
}

type counters struct {
	waits, deadlocks, timeouts atomic.Uint64
	waiting                    atomic.Int64
	time, longest              atomic.Int64
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
	}
}

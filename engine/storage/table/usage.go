package table

import (
	"sync"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/storage/record"
)

// UsageKind is what was done with rows.
type UsageKind uint8

const (
	Fetched UsageKind = iota
	Inserted
	Updated
	Deleted
	usageKinds
)

// usageStripes is how many parts the counts of an index have: sessions with different numbers are seldom in each
// other's way. Each part has a cache line of its own.
const usageStripes = 4

type usageStripe struct {
	n [usageKinds]atomic.Uint64
	_ [64 - 8*usageKinds]byte
}

// indexUsage counts the rows that were read or changed by way of an index.
type indexUsage struct {
	stripes [usageStripes]usageStripe
	base    UsageCounts // when they were reset: guarded by the mutex of Usages
}

// UsageCounts are numbers of rows by UsageKind.
type UsageCounts [usageKinds]uint64

func (c *UsageCounts) add(o UsageCounts) {
	for i := range c {
		c[i] += o[i]
	}
}

func (u *indexUsage) counts() (c UsageCounts) {
	for i := range u.stripes {
		for k := range c {
			c[k] += u.stripes[i].n[k].Load()
		}
	}
	return c
}

// NoIndex is the position of what is done without an index: rows that are added, and scans of a whole table.
const NoIndex = -1

// Count counts n rows by way of the index at a position, or NoIndex. by is the number of who does it.
func (t *Table) Count(kind UsageKind, position int, by uint64, n uint64) {
	if t.usage == nil || n == 0 {
		return
	}
	t.usage[position+1].stripes[by%usageStripes].n[kind].Add(n)
}

// UsageMax is how many tables are counted one by one. Further ones are counted together.
const UsageMax = 10_000

// Usages counts what is done with the rows of tables, for as long as the engine is open. Tables that leave
// the cache keep their counts; those of dropped ones are in the totals only.
type Usages struct {
	mu     sync.Mutex
	tables map[uint64]map[uint64]*indexUsage // by table and index; index 0 is NoIndex
	rest   indexUsage                        // of tables beyond UsageMax
	gone   UsageCounts                       // of tables that were dropped
}

// of returns the counts of a table by position+1.
func (u *Usages) of(s *record.Schema) []*indexUsage {
	if u == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	list := make([]*indexUsage, len(s.Keys)+1)
	known := u.tables[s.Table.ID]
	if known == nil && len(u.tables) >= UsageMax {
		for i := range list {
			list[i] = &u.rest
		}
		return list
	}
	if u.tables == nil {
		u.tables = map[uint64]map[uint64]*indexUsage{}
	}
	if known == nil {
		known = map[uint64]*indexUsage{}
		u.tables[s.Table.ID] = known
	}
	for i := range list {
		id := uint64(0)
		if i > 0 {
			id = s.Keys[i-1].ID
		}
		if known[id] == nil {
			known[id] = &indexUsage{}
		}
		list[i] = known[id]
	}
	return list
}

// Read returns the counts since the last Reset by table and index number, where index 0 is NoIndex, and those of the tables
// that are counted together.
func (u *Usages) Read() (tables map[uint64]map[uint64]UsageCounts, rest UsageCounts) {
	u.mu.Lock()
	defer u.mu.Unlock()
	tables = make(map[uint64]map[uint64]UsageCounts, len(u.tables))
	for id, of := range u.tables {
		counts := make(map[uint64]UsageCounts, len(of))
		for index, x := range of {
			counts[index] = x.since()
		}
		tables[id] = counts
	}
	return tables, u.rest.since()
}

// since are the counts after the last reset.
func (u *indexUsage) since() UsageCounts {
	c := u.counts()
	for i := range c {
		c[i] -= u.base[i]
	}
	return c
}

// Reset makes Read begin from 0. Totals go on.
func (u *Usages) Reset() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.rest.base = u.rest.counts()
	for _, of := range u.tables {
		for _, x := range of {
			x.base = x.counts()
		}
	}
}

// Total is how many rows were read and changed since the engine was opened.
func (u *Usages) Total() UsageCounts {
	u.mu.Lock()
	defer u.mu.Unlock()
	sum := u.gone
	sum.add(u.rest.counts())
	for _, of := range u.tables {
		for _, x := range of {
			sum.add(x.counts())
		}
	}
	return sum
}

// Forget drops the counts of a table that is no more, but for the totals.
func (u *Usages) Forget(id uint64) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, x := range u.tables[id] {
		u.gone.add(x.counts())
	}
	delete(u.tables, id)
}

package table_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
)

var (
	lockRows = flag.Int("lockrows", race.Fewer(30_000, 3_000), "rows that TestLocksOfLargeStatements locks with each statement")
	lockFrom = flag.Int("lockfrom", 0, "lock.Options.RangesFrom of TestLocksOfLargeStatements")
)

// TestWorkloadsWithRanges runs the workloads with ranges from the first lock on: what
// they assert must hold as before.
func TestWorkloadsWithRanges(t *testing.T) {
	rangesFrom = 1
	defer func() { rangesFrom = 0 }()
	t.Run("simulated", TestWorkloadSimulated)
	t.Run("real", TestWorkloadReal)
	t.Run("semi-consistent", TestSemiConsistentUpdates)
	t.Run("early-release", TestEarlyReleaseSimulated)
	t.Run("rows", TestInsertRows)
}

// counters is (id INT PRIMARY KEY, k INT, v INT, KEY (k)).
func counters(id uint64) *record.Table {
	return &record.Table{
		ID: id, Schema: "test", Name: fmt.Sprint("counters", id), RowVersion: 1, NextColumn: 4,
		Columns: []record.Column{
			{ID: 1, Name: "id", Type: intType(false), AddedIn: 1},
			{ID: 2, Name: "k", Type: intType(false), AddedIn: 1},
			{ID: 3, Name: "v", Type: intType(false), AddedIn: 1},
		},
		Indexes: []record.Index{
			{ID: id*10 + 1, Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}},
			{ID: id*10 + 2, Name: "k", Parts: []record.Part{{Column: 2}}},
		},
	}
}

// largeStatement changes, or only locks, all rows of a table, or every other one.
type largeStatement struct {
	name   string
	iso    trx.Isolation
	r      table.Range
	half   bool // unlocks every other row
	change bool
	// How many bytes of locks each row may take, in the end and at the worst.
	endMax, peakMax float64
}

var largeStatements = []largeStatement{
	{"update", trx.RepeatableRead, table.Range{Lock: lock.RecordX}, false, true, 0.5, 1},
	{"update-backward", trx.RepeatableRead, table.Range{Lock: lock.RecordX, Backward: true}, false, true, 0.5, 1},
	{"for-share", trx.RepeatableRead, table.Range{Lock: lock.RecordS}, false, false, 0.5, 1},
	{"update-by-k", trx.RepeatableRead, table.Range{Index: 1, Lock: lock.RecordX}, false, true, 0.5, 1},
	{"for-update-by-k", trx.RepeatableRead, table.Range{Index: 1, Lock: lock.RecordX}, false, false, 1, 70},
	{"update-committed", trx.ReadCommitted, table.Range{Lock: lock.RecordX}, false, true, 0.5, 1},
	{"for-update-committed", trx.ReadCommitted, table.Range{Lock: lock.RecordX}, false, false, 0.5, 1},
	{"update-half-committed", trx.ReadCommitted, table.Range{Lock: lock.RecordX}, true, true, 0.5, 1},
	{"update-by-k-committed", trx.ReadCommitted, table.Range{Index: 1, Lock: lock.RecordX}, false, true, 0.5, 1},
}

func TestLocksOfLargeStatements(t *testing.T) {
	rangesFrom = *lockFrom
	defer func() { rangesFrom = 0 }()
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 16384)
	defer r.close()
	tbl := r.create(counters(30))
	s := r.session()
	s.begin(trx.RepeatableRead)
	n := int64(*lockRows)
	shuffled := rand.New(rand.NewPCG(1, 1)).Perm(int(n))
	for id := range n {
		if err := s.Insert(tbl, []types.Value{types.NewInt(id), types.NewInt(int64(shuffled[id])), types.NewInt(0)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.commit(); err != nil {
		t.Fatal(err)
	}
	for _, l := range largeStatements {
		t.Run(l.name, func(t *testing.T) { l.run(t, r, tbl, n) })
	}
}

func (l *largeStatement) run(t *testing.T, r *rig, tbl *table.Table, n int64) {
	s := r.session()
	s.begin(l.iso)
	var sc table.Scanner
	rg := l.r
	rg.Locking, rg.Keys, rg.Columns = true, true, []int{2}
	batch := types.NewBatch([]*types.Type{&tbl.Schema.Columns[2].Type})
	peak, rows := int64(0), int64(0)
	began := time.Now()
	if err := sc.Start(s.Worker, tbl, nil, rg); err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		var err error
		if more, err = sc.Next(batch); err != nil {
			t.Fatal(err)
		}
		peak = max(peak, r.e.Locks.Memory())
		for i := range batch.Len() {
			if l.half && i%2 == 1 {
				sc.Unlock(i)
			}
		}
		for i := range batch.Len() {
			rows++
			if !l.change || l.half && i%2 == 1 {
				continue
			}
			v := batch.Row(nil, i)[0].Int()
			if err := s.Update(tbl, sc.Key(i), []record.Change{{Column: 2, Value: types.NewInt(v + 1)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	took, end := time.Since(began), r.e.Locks.Memory()
	count, ranges := s.Trx().Locks().Locks(), r.e.Locks.Stats().Ranges
	began = time.Now()
	if err := s.commit(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rows, %v, commit %v; %d locks, %d ranges, %d bytes, %d at the worst", rows, took, time.Since(began), count, ranges, end, peak)
	if rows != n {
		t.Errorf("%d of %d rows", rows, n)
	}
	if *lockFrom >= 0 && (float64(end) > 2<<20+l.endMax*float64(n) || float64(peak) > 2<<20+l.peakMax*float64(n)) {
		t.Errorf("%d bytes of locks, %d at the worst", end, peak)
	}
	if m := r.e.Locks.Memory(); m != 0 {
		t.Errorf("%d bytes are left", m)
	}
}

// TestSavepointKeepsLocks: what a rollback to a savepoint takes back stays locked,
// although the records name others as their writers again.
func TestSavepointKeepsLocks(t *testing.T) {
	rangesFrom = 1
	defer func() { rangesFrom = 0 }()
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 1024)
	defer r.close()
	tbl := r.create(counters(31))
	s, other := r.session(), r.session()
	s.begin(trx.RepeatableRead)
	const n = 500
	for id := range int64(n) {
		if err := s.Insert(tbl, []types.Value{types.NewInt(id), types.NewInt(id * 7 % n), types.NewInt(0)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.commit(); err != nil {
		t.Fatal(err)
	}
	s.begin(trx.RepeatableRead)
	mark := s.Savepoint()
	for id := range int64(n) {
		if id%3 == 0 {
			continue
		}
		if err := s.Update(tbl, pk(tbl, id), []record.Change{{Column: 2, Value: types.NewInt(1)}}); err != nil {
			t.Fatal(err)
		}
	}
	if l := s.Trx().Locks().Locks(); l > 10 {
		t.Errorf("%d locks beside the written rows", l)
	}
	if err := s.RollbackTo(mark); err != nil {
		t.Fatal(err)
	}
	other.begin(trx.ReadCommitted)
	for id := range int64(n) {
		var sc table.Scanner
		key := pk(tbl, id)
		rg := table.Range{Low: key, High: key, Locking: true, Lock: lock.RecordX, Policy: lock.NoWait, Columns: []int{2}}
		batch := types.NewBatch([]*types.Type{&tbl.Schema.Columns[2].Type})
		err := sc.Start(other.Worker, tbl, nil, rg)
		if err == nil {
			_, err = sc.Next(batch)
		}
		if free := id%3 == 0; free && err != nil || !free && !errors.Is(err, lock.ErrNoWait) {
			t.Fatalf("row %d: %v", id, err)
		}
	}
	other.rollback()
	s.rollback()
	if m := r.e.Locks.Stats(); m.Memory != 0 || m.Ranges != 0 {
		t.Errorf("left: %+v", m)
	}
}

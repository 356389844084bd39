package table_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// TestLockingScanOfLeaves: a locking scan, which keeps a leaf's latch from row to row, gives the rows that a
// plain scan gives: over leaves with rows that are completed without a latch, with delete marks, either way,
// in batches of any size. Afterwards no latch is left: all rows can be changed.
func TestLockingScanOfLeaves(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 512)
	defer r.close()
	tbl := r.create(people(60))
	s := r.session()
	const rows = 700
	var all [][]types.Value
	for id := range int64(rows) {
		bio := fmt.Sprint("short", id)
		if id%5 == 0 {
			bio = strings.Repeat(fmt.Sprint("long", id), 3000)
		}
		all = append(all, person(id, fmt.Sprint("name", id), id, id, bio))
	}
	s.insertAll(tbl, all)
	s.begin(trx.RepeatableRead)
	for id := int64(3); id < rows; id += 4 {
		if err := s.Delete(tbl, pk(tbl, id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.commit(); err != nil {
		t.Fatal(err)
	}
	kept := slices.DeleteFunc(slices.Clone(all), func(row []types.Value) bool { return row[0].Int()%4 == 3 })

	for _, iso := range []trx.Isolation{trx.ReadCommitted, trx.RepeatableRead} {
		for _, backward := range []bool{false, true} {
			for _, size := range []int{1, 7, 1024} {
				s.begin(iso)
				got, err := s.scanBy(tbl, nil, table.Range{Backward: backward, Locking: true, Lock: lock.RecordX}, size)
				if err != nil {
					t.Fatal(err)
				}
				want := slices.Clone(kept)
				if backward {
					slices.Reverse(want)
				}
				if text(got, tbl) != text(want, tbl) {
					t.Fatalf("%v, backward %v, batches of %d: %d rows, and others than the %d that were expected", iso, backward, size, len(got), len(want))
				}
				for _, row := range want {
					if err := s.Update(tbl, pk(tbl, row[0].Int()), []record.Change{{Column: 2, Value: types.NewInt(-1)}}); err != nil {
						t.Fatal(err)
					}
				}
				s.rollback()
			}
		}
	}
}

// A scan returns now and then from entries that are no rows for it, so that its statement may end.
func TestScanOfInvisibleRowsPauses(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 4096)
	defer r.close()
	tbl := r.create(people(60))
	s, other := r.session(), r.session()
	const rows = 60_000
	var all [][]types.Value
	for id := range int64(rows) {
		all = append(all, person(id, fmt.Sprint("name", id), id, id, strings.Repeat("b", 120)))
	}
	s.insertAll(tbl, all)
	s.begin(trx.RepeatableRead)
	for id := range int64(rows) {
		if err := s.Delete(tbl, pk(tbl, id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.commit(); err != nil {
		t.Fatal(err)
	}
	for _, rng := range []table.Range{{}, {Backward: true}, {Locking: true, Lock: lock.RecordX}, {Locking: true, Lock: lock.RecordX, Backward: true}} {
		other.begin(trx.ReadCommitted)
		calls, found := 0, 0
		var sc table.Scanner
		var snap *trx.Snapshot
		if !rng.Locking {
			snap = other.Trx().Snapshot()
		}
		rng.Columns = []int{0}
		if err := sc.Start(other.Worker, tbl, snap, rng); err != nil {
			t.Fatal(err)
		}
		b := types.NewBatch([]*types.Type{&tbl.Schema.Columns[0].Type})
		for more := true; more; calls++ {
			var err error
			if more, err = sc.Next(b); err != nil {
				t.Fatal(err)
			}
			found += b.Len()
		}
		if calls < 3 || found != 0 {
			t.Errorf("%+v: %d calls, %d rows", rng, calls, found)
		}
		other.rollback()
	}
}

package table_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// TestApplying has several appliers change disjoint rows of one table beside each
// other: no lock is taken, and the rows and indexes are those of the same changes
// made by a session.
func TestApplying(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 512)
	defer r.close()
	byLog, bySession := r.create(people(30)), r.create(people(31))
	change := func(s *session, tbl *table.Table, id int64) error {
		if err := s.Insert(tbl, person(id, "name", id, id*10, "bio")); err != nil {
			return err
		}
		if id%3 == 0 {
			return s.Delete(tbl, pk(tbl, id))
		}
		return s.Update(tbl, pk(tbl, id), []record.Change{{Column: 3, Value: types.NewInt(id*10 + 1)}})
	}
	const appliers, rows = 4, 200
	var wg sync.WaitGroup
	sessions := make([]*session, appliers)
	for n := range appliers {
		s := r.session()
		s.Applying = true
		s.begin(trx.RepeatableRead)
		sessions[n] = s
		wg.Go(func() {
			for id := int64(n); id < rows; id += appliers {
				if err := change(s, byLog, id); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if held := r.e.Locks.Snapshot(10).Locks; len(held) > 0 {
		t.Errorf("appliers hold locks: %v", held)
	}
	for _, s := range sessions {
		if err := s.commit(); err != nil {
			t.Fatal(err)
		}
	}
	s := r.session()
	s.begin(trx.RepeatableRead)
	for id := range int64(rows) {
		if err := change(s, bySession, id); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.commit(); err != nil {
		t.Fatal(err)
	}
	s.begin(trx.RepeatableRead)
	for index := range 3 {
		expect(t, byLog.Schema.Keys[index].Name, s.all(byLog, index), s.all(bySession, index))
	}
	if err := s.commit(); err != nil {
		t.Fatal(err)
	}

	// What does not fit stops the applier.
	s.Applying = true
	s.begin(trx.RepeatableRead)
	if err := s.Insert(byLog, person(1, "twice", 1, 99, "")); !errors.Is(err, table.ErrApply) {
		t.Errorf("a row that exists was applied: %v", err)
	}
	if err := s.Delete(byLog, pk(byLog, 3)); !errors.Is(err, table.ErrApply) {
		t.Errorf("a row that does not exist was deleted: %v", err)
	}
	s.rollback()
}

// TestApplyingCounters: appliers beside each other raise the counters of a table with
// a hidden row id and an AUTO_INCREMENT column to the greatest of what was committed,
// in memory and on disk.
func TestApplyingCounters(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 512)
	defer r.close()
	tbl := r.create(counted(33))
	const appliers, rows = 4, 300
	var wg sync.WaitGroup
	sessions := make([]*session, appliers)
	for n := range appliers {
		s := r.session()
		s.Applying = true
		s.begin(trx.RepeatableRead)
		sessions[n] = s
		wg.Go(func() {
			for id := rows - 1 - n; id >= 0; id -= appliers {
				if err := s.Insert(tbl, []types.Value{types.NewUint(uint64(id)), types.NewUint(uint64(2 * id)), types.NewUint(uint64(id))}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for n, s := range sessions { // the first one has the greatest values
		if n == 0 {
			s.rollback()
			continue
		}
		if err := s.commit(); err != nil {
			t.Fatal(err)
		}
		if auto, row, err := tbl.Counters(); auto != 2*(rows-2)+1 || row != rows-1 || err != nil {
			t.Errorf("after applier %d: counters %d, %d, %v", n, auto, row, err)
		}
	}
	if tbl.NextAuto() != 2*(rows-1)+1 || tbl.RowID() != rows {
		t.Errorf("counters in memory: %d, %d", tbl.NextAuto(), tbl.RowID())
	}
	if n := tbl.Rows(); n != rows*(appliers-1)/appliers {
		t.Errorf("%d rows counted", n)
	}
}

// TestApplyingConflict: a change on top of another transaction's is an error while
// that one is still at work, and fits once it has done all its work.
func TestApplyingConflict(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 512)
	defer r.close()
	tbl := r.create(people(34))
	first, second := r.session(), r.session()
	first.Applying, second.Applying = true, true
	first.begin(trx.RepeatableRead)
	second.begin(trx.RepeatableRead)
	if err := first.Insert(tbl, person(1, "a", 1, 10, "")); err != nil {
		t.Fatal(err)
	}
	if err := first.Insert(tbl, person(2, "b", 2, 20, "")); err != nil {
		t.Fatal(err)
	}
	if err := first.Delete(tbl, pk(tbl, 2)); err != nil {
		t.Fatal(err)
	}
	change := []record.Change{{Column: 2, Value: types.NewInt(5)}}
	if err := second.Update(tbl, pk(tbl, 1), change); !errors.Is(err, table.ErrApply) {
		t.Errorf("update of a row that is being changed: %v", err)
	}
	if err := second.Insert(tbl, person(2, "c", 2, 20, "")); !errors.Is(err, table.ErrApply) {
		t.Errorf("insert over a row that is being deleted: %v", err)
	}
	first.Trx().StartCommit()
	if err := second.Update(tbl, pk(tbl, 1), change); err != nil {
		t.Error(err)
	}
	if err := second.Insert(tbl, person(2, "c", 2, 20, "")); err != nil {
		t.Error(err)
	}
	second.Trx().StartCommit()
	items := []trx.Commit{{Trx: first.Trx(), CSN: 1}, {Trx: second.Trx(), CSN: 2}}
	if err := r.e.Trx.CommitGroup(items, trx.Position{Index: 1, Term: 1}); err != nil {
		t.Fatal(err)
	}
	for _, c := range items {
		r.e.Trx.End(c.Trx)
	}
	s := r.session()
	s.begin(trx.RepeatableRead)
	for index := range 3 {
		expect(t, tbl.Schema.Keys[index].Name, s.all(tbl, index), "1 a 5 10 \n2 c 2 20 \n")
	}
	if err := s.commit(); err != nil {
		t.Fatal(err)
	}
}

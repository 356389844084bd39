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

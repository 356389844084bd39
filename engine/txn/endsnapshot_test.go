package txn_test

import (
	"errors"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// TestEndSnapshot: a transaction whose snapshot is taken away reads nothing more in it, not even by a scan under way, and does
// everything else; purge goes on at once.
func TestEndSnapshot(t *testing.T) {
	for _, iso := range []trx.Isolation{trx.RepeatableRead, trx.ReadCommitted} {
		t.Run(iso.String(), func(t *testing.T) {
			r := newRig(t, env.Real(), nil)
			defer r.close(t)
			r.create(t, people("p"))
			const rows, changed = 3000, 200
			r.do(t, func() (err error) {
				p := open(t, r.s, "p")
				for i := 0; i < rows && err == nil; i++ {
					err = r.s.Insert(p, row(i, nil, 1, nil), false)
				}
				return err
			})
			reader := r.m.NewSession()
			defer func() { must(t, reader.Close()) }()
			if _, _, open := reader.Holds(); open {
				t.Error("a session without a transaction holds a snapshot")
			}
			must(t, reader.Begin(txn.BeginOptions{Options: trx.Options{Isolation: iso}}))
			o := open(t, reader, "p")
			scan, batch := reader.NewScan(), types.NewBatch([]*types.Type{&nullInt})
			must(t, scan.Start(o, table.Range{Columns: []int{2}}))
			if _, err := scan.Next(batch); err != nil || batch.Len() == 0 || batch.Len() == rows {
				t.Fatalf("the first part of the scan has %d rows, error %v", batch.Len(), err)
			}
			csn, _, held := reader.Holds()
			if !held {
				t.Fatal("the scan has no snapshot")
			}
			for i := range changed {
				r.do(t, func() error {
					p := open(t, r.s, "p")
					return r.s.Delete(p, key(p, i), nil)
				})
			}
			purged := func() uint64 {
				_, err := r.eng.Purge.Run()
				must(t, err)
				return r.eng.Purge.HistoryLength()
			}
			if n := purged(); n < changed {
				t.Fatalf("purge leaves %d transactions behind an open snapshot", n)
			}
			if h, err := r.eng.History(); err != nil || h.Held != csn {
				t.Errorf("purge is held by snapshot %d (error %v), want %d", h.Held, err, csn)
			}
			reason := errors.New("too old")
			if reader.EndSnapshot(csn+1, reason) {
				t.Error("a snapshot was ended that is another one")
			}
			if !reader.EndSnapshot(csn, reason) || reader.EndSnapshot(csn, reason) {
				t.Error("the snapshot was not ended once")
			}
			if n := purged(); n != 0 {
				t.Errorf("purge leaves %d transactions", n)
			}
			if h, err := r.eng.History(); err != nil || h.Held != 0 {
				t.Errorf("purge is held by snapshot %d (error %v) when there is nothing left", h.Held, err)
			}
			get := func() error {
				_, err := reader.Get(o, key(o, 1), []int{2}, types.NewBatch([]*types.Type{&nullInt}))
				return err
			}
			batch.Reset()
			_, next := scan.Next(batch)
			_, again := reader.Snapshot()
			for what, err := range map[string]error{"the scan": next, "a read of a row": get(), "another scan": scan.Start(o, table.Range{Columns: []int{2}}), "the snapshot": again} {
				if !errors.Is(err, reason) {
					t.Errorf("%s ends with %v", what, err)
				}
			}
			// A locking read sees what there is now, and changes go on.
			found, err := reader.GetLocked(o, key(o, 1), 0, 0, []int{2}, types.NewBatch([]*types.Type{&nullInt}))
			if found || err != nil {
				t.Errorf("a locking read of a row that is deleted: %t, %v", found, err)
			}
			must(t, reader.Insert(o, row(rows, nil, 1, nil), false))
			must(t, reader.EndStatement())
			must(t, reader.BeginStatement())
			if err := get(); errors.Is(err, reason) != (iso == trx.RepeatableRead) {
				t.Errorf("the next statement's read ends with %v", err)
			}
			_, err = reader.Commit(t.Context())
			must(t, err)
			must(t, reader.Begin(txn.BeginOptions{Options: trx.Options{Isolation: iso}}))
			o = open(t, reader, "p")
			must(t, get())
			must(t, reader.Rollback())
		})
	}
}

// TestEndSnapshotInWaits: a wait for a row ends with the snapshot's reason, that of a COMMIT goes on, which needs no snapshot.
func TestEndSnapshotInWaits(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	defer r.close(t)
	r.create(t, people("p"))
	r.do(t, func() error { return r.s.Insert(open(t, r.s, "p"), row(1, nil, 1, nil), false) })
	reason := errors.New("too old")
	reader := r.m.NewSession()
	defer func() { must(t, reader.Close()) }()
	begin := func() (csn uint64) {
		t.Helper()
		must(t, reader.Begin(txn.BeginOptions{Options: trx.Options{LockWait: time.Hour}}))
		csn, err := reader.Snapshot()
		must(t, err)
		return csn
	}
	during := func(csn uint64, call func() error) chan error {
		t.Helper()
		done := make(chan error, 1)
		go func() { done <- call() }()
		for reader.Waits() == "" {
			time.Sleep(time.Millisecond)
		}
		if !reader.EndSnapshot(csn, reason) {
			t.Error("the snapshot of who waits was not ended")
		}
		return done
	}
	must(t, r.s.Begin(txn.BeginOptions{}))
	p := open(t, r.s, "p")
	_, err := r.s.GetLocked(p, key(p, 1), lock.RecordX, lock.Block, []int{2}, types.NewBatch([]*types.Type{&nullInt}))
	must(t, err)
	csn := begin()
	o := open(t, reader, "p")
	if err := <-during(csn, func() error {
		_, err := reader.GetLocked(o, key(o, 1), lock.RecordX, lock.Block, []int{2}, types.NewBatch([]*types.Type{&nullInt}))
		return err
	}); !errors.Is(err, reason) {
		t.Errorf("the wait for a row ends with %v", err)
	}
	must(t, reader.EndStatement())
	must(t, reader.BeginStatement())
	must(t, r.s.Rollback())
	if found, err := reader.GetLocked(o, key(o, 1), lock.RecordX, lock.Block, []int{2}, types.NewBatch([]*types.Type{&nullInt})); !found || err != nil {
		t.Errorf("it locks the row later: %t, %v", found, err)
	}
	must(t, reader.Rollback())

	must(t, r.s.LockShared(txn.CommitLock, time.Hour, func() error { return nil }))
	csn = begin()
	o = open(t, reader, "p")
	must(t, reader.Insert(o, row(2, nil, 1, nil), false))
	done := during(csn, func() error {
		_, err := reader.Commit(t.Context())
		return err
	})
	select {
	case err := <-done:
		t.Fatalf("COMMIT ends while commits are locked: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	r.s.UnlockTables(txn.CommitLock)
	must(t, <-done)
}

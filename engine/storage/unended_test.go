package storage_test

import (
	"errors"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// halfDone returns a database whose engine ended while a transaction had deleted some rows of
// "a", changed all others and inserted new ones, with the last changes in rows from diskRows on.
func halfDone(t *testing.T) *disk {
	t.Helper()
	d := newDisk(t)
	d.open()
	err := d.with("a", func(tbl *table.Table) error {
		w := d.eng.Tables.NewWorker()
		w.Use(d.eng.Trx.Begin(trx.Options{}))
		for id := range int64(diskRows) {
			key := tbl.Schema.Keys[0].AppendKey(nil, types.NewInt(id))
			var err error
			if id%3 == 0 {
				err = w.Delete(tbl, key)
			} else {
				err = w.Update(tbl, key, []record.Change{{Column: 2, Value: types.NewInt(7)}})
			}
			if err != nil {
				return err
			}
		}
		for id := int64(diskRows); id < 30*diskRows; id++ {
			if err := w.Insert(tbl, row(id, 7)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = d.eng.Log.FlushTo(d.eng.Log.Published())
	}
	if err != nil {
		t.Fatal(err)
	}
	killed := d.fs.KillImage()
	d.fs.Crash()
	_ = d.eng.Close()
	d.fs = killed
	return d
}

// isAsBefore checks that table a has the rows that it had before halfDone.
func (d *disk) isAsBefore() {
	d.t.Helper()
	for index := range 2 {
		if rows, sum, err := d.count("a", index, 0); err != nil || rows != diskRows || sum != 0 {
			d.t.Errorf("by index %d: %d rows, whose sum is %d; %v", index, rows, sum, err)
		}
	}
}

// TestRollbackLater: a large transaction that had not ended is rolled back beside new work, which
// waits for its rows and for nothing else. What an end leaves of it, the next start takes back.
func TestRollbackLater(t *testing.T) {
	d := halfDone(t)
	d.opt.RollbackLater = 100
	var again storage.Recovery
	for round := 0; ; round++ {
		var r storage.Recovery
		d.opt.Recovery = &r
		d.open()
		s := r.State()
		if s.Stage == storage.StageRolledBack || s.Unfinished == 0 {
			t.Fatalf("nothing is left in round %d: %+v", round, s)
		}
		d.isAsBefore()
		d.works("b")
		if round < 2 {
			d.close() // meanwhile
			continue
		}
		break
	}
	err := d.with("a", func(tbl *table.Table) error {
		s := d.eng.NewSession()
		_, err := s.Do(trx.Options{LockWait: time.Millisecond}, func(w *table.Worker) error {
			key := tbl.Schema.Keys[0].AppendKey(nil, types.NewInt(1)) // the first changes are taken back last
			return w.Update(tbl, key, []record.Change{{Column: 2, Value: types.NewInt(9)}})
		})
		return err
	})
	if !errors.Is(err, lock.ErrTimeout) {
		t.Errorf("a row that is not as it was yet was changed: %v", err)
	}
	if err := d.set("a", 1, 3, 0); err != nil { // waits until it is over
		t.Errorf("a row is locked for good: %v", err)
	}
	if d.eng.AwaitRollback(func() bool { return false }); d.opt.Recovery.State().Stage != storage.StageRolledBack {
		t.Errorf("it is over: %+v", d.opt.Recovery.State())
	}
	d.isAsBefore()
	d.check()
	d.close()
	d.opt.Recovery = &again
	d.open()
	if s := again.State(); s.Unfinished != 0 {
		t.Errorf("after a clean end: %+v", s)
	}
	d.isAsBefore()
	d.works("a")
	d.close()
}

// TestRollbackFirst: changes of the catalogue are rolled back before anything else is done,
// however large the transaction is.
func TestRollbackFirst(t *testing.T) {
	d := newDisk(t)
	d.open()
	w := d.eng.Tables.NewWorker()
	w.Use(d.eng.Trx.Begin(trx.Options{}))
	if err := d.createTable(w, "c"); err != nil {
		t.Fatal(err)
	}
	if err := d.eng.Log.FlushTo(d.eng.Log.Published()); err != nil {
		t.Fatal(err)
	}
	killed := d.fs.KillImage()
	d.fs.Crash()
	_ = d.eng.Close()
	d.fs = killed
	var r storage.Recovery
	d.opt.Recovery, d.opt.RollbackLater = &r, 1
	d.open()
	if s := r.State(); s.Unfinished != 1 || s.RolledBack != 1 || s.Stage != storage.StageOpen {
		t.Errorf("%+v", s)
	}
	if err := d.with("c", func(*table.Table) error { return nil }); err == nil {
		t.Error("the table is there")
	}
	d.create("c")
	d.close()
}

// TestRollbackFails: who waits for a rollback beside new work does so no longer once the engine has failed.
func TestRollbackFails(t *testing.T) {
	d := halfDone(t)
	d.opt.RollbackLater, d.opt.Recovery = 100, &storage.Recovery{}
	d.open()
	d.eng.Log.Fail(errors.New("the disk is broken"))
	asked := 0
	d.eng.AwaitRollback(func() bool { asked++; return asked > 100 })
	if asked > 100 {
		t.Error("it waits for a rollback that does not come")
	}
	_ = d.eng.Close()
}

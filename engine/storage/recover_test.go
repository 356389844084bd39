package storage_test

import (
	"testing"

	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// crashed returns a database with redo to apply and a transaction to roll back.
func crashed(t *testing.T) *disk {
	t.Helper()
	d := newDisk(t)
	d.opt.Cleaner.Off = true
	d.open()
	for i := range int64(20) {
		if err := d.set("a", 0, diskRows, i); err != nil {
			t.Fatal(err)
		}
	}
	err := d.with("a", func(tbl *table.Table) error {
		w := d.eng.Tables.NewWorker()
		w.Use(d.eng.Trx.Begin(trx.Options{}))
		return w.Update(tbl, tbl.Schema.Keys[0].AppendKey(nil, types.NewInt(1)), []record.Change{{Column: 2, Value: types.NewInt(5)}})
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.eng.Log.FlushTo(d.eng.Log.Published()); err != nil {
		t.Fatal(err)
	}
	killed := d.fs.KillImage()
	d.fs.Crash()
	_ = d.eng.Close()
	d.fs = killed
	return d
}

// TestRecoveryProgress: what recovery tells from outside, at each stage and in the end.
func TestRecoveryProgress(t *testing.T) {
	d := crashed(t)
	var r storage.Recovery
	var stages []storage.Stage
	at := map[storage.Stage]storage.RecoveryState{}
	r.OnStage = func(s storage.Stage) {
		stages = append(stages, s)
		at[s] = r.State()
	}
	d.opt.Recovery, d.opt.RecoveryMemory = &r, 64<<10
	d.open()
	if len(stages) != 4 || stages[0] != storage.StageRedo || stages[1] != storage.StagePages ||
		stages[2] != storage.StageRollback || stages[3] != storage.StageOpen {
		t.Fatalf("stages %v", stages)
	}
	if s := at[storage.StageRedo]; s.Redo < 100<<10 || s.RedoApplied != 0 || s.Groups > 1 {
		t.Errorf("when it begins: %+v", s)
	}
	if s := at[storage.StagePages]; s.RedoApplied != s.Redo || s.Groups == 0 || s.PagesKept == 0 || s.PagesWritten != 0 {
		t.Errorf("when pages are written: %+v", s)
	}
	if s := at[storage.StageRollback]; s.PagesKept != 0 || s.PagesWritten != at[storage.StagePages].PagesKept || s.Unfinished != 1 || s.RolledBack != 0 {
		t.Errorf("when it rolls back: %+v", s)
	}
	if s := r.State(); s.RolledBack != 1 || s.Stage != storage.StageOpen {
		t.Errorf("in the end: %+v", s)
	}
	d.check()
	d.close()
}

// TestRecoveryWritesOnce: pages that fit into memory are written once, though each batch of
// redo changes them, and twice as a doublewrite.
func TestRecoveryWritesOnce(t *testing.T) {
	pages := func(cache int64) int64 {
		d := crashed(t)
		var r storage.Recovery
		d.opt.Recovery, d.opt.RecoveryMemory, d.opt.RecoveryCache = &r, 64<<10, cache
		d.open()
		d.check()
		d.close()
		return r.State().PagesWritten
	}
	all, few := pages(4<<20), pages(4*page.Size)
	if all*3 > few {
		t.Errorf("%d pages were written with all of them in memory, %d with four", all, few)
	}
}

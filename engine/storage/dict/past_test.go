package dict_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// A table is read in its definition as of a snapshot, whatever becomes of it.
func TestTableAt(t *testing.T) {
	s := newDB(t, nil)
	made := s.create(t, simpleTable("db", "t"))
	other := s.create(t, simpleTable("db", "other"))
	for n := range int64(50) {
		must(t, s.do(func() error {
			return errors.Join(s.insert("db", "t", types.NewInt(n), types.NewInt(n*2), types.NewString("old")),
				s.insert("db", "other", types.NewInt(n), types.Null, types.Null))
		}))
	}
	var v trx.View
	s.eng.Trx.OpenSnapshot(&v)
	h := s.open(t, "t")
	w := s.eng.Tables.NewWorker()
	export := func(tbl *table.Table) string {
		t.Helper()
		var all []byte
		x := w.NewExporter(tbl, &v.Snapshot, nil)
		for {
			out, n, err := x.Next(all, 100)
			must(t, err)
			if all = out; n == 0 {
				return fmt.Sprintf("%x", all)
			}
		}
	}
	want := export(h.Table())
	h.Release()

	must(t, s.do(func() error { // one column goes, one comes, an index goes
		def := *made
		def.Columns = append([]record.Column(nil), made.Columns...)
		def.RowVersion++
		def.Columns[2].DroppedIn = def.RowVersion
		def.Columns = append(def.Columns[:2:2], record.Column{ID: def.NextColumn, Name: "n", Type: nullInt, AddedIn: def.RowVersion}, def.Columns[2])
		def.NextColumn++
		def.Indexes = def.Indexes[:1]
		def.Name = "renamed"
		_, err := s.c.ReplaceTable(s.Worker, &def)
		return err
	}))
	h = s.open(t, "renamed")
	must(t, s.do(func() error {
		for n := range int64(25) {
			key := h.Table().Schema.Keys[0].AppendKey(nil, types.NewInt(n))
			if err := s.Update(h.Table(), key, []record.Change{{Column: 2, Value: types.NewInt(n)}}); err != nil {
				return err
			}
		}
		return s.Delete(h.Table(), h.Table().Schema.Keys[0].AppendKey(nil, types.NewInt(30)))
	}))
	h.Release()
	must(t, s.do(func() error { _, err := s.c.DropTable(s.Worker, "db", "other"); return err }))
	if _, err := s.c.Reclaim(); err != nil {
		t.Fatal(err)
	}
	past, err := s.c.TableAt(&v.Snapshot, made.ID)
	must(t, err)
	if d := past.Schema.Table; d.Name != "t" || len(d.Columns) != 3 || len(d.Indexes) != 2 {
		t.Errorf("definition %+v", d)
	}
	if got := export(past); got != want {
		t.Errorf("exported %s\nwant     %s", got, want)
	}
	if past, err = s.c.TableAt(&v.Snapshot, other.ID); err != nil || export(past) == "" {
		t.Errorf("a dropped table: %v", err)
	}
	must(t, s.do(func() error { _, err := s.c.DropTable(s.Worker, "db", "renamed"); return err }))
	past, err = s.c.TableAt(&v.Snapshot, made.ID)
	must(t, err)
	if got := export(past); got != want {
		t.Errorf("exported %s\nwant     %s", got, want)
	}
	s.eng.Trx.CloseSnapshot(&v)
	if left, err := s.c.Reclaim(); left != 0 || err != nil {
		t.Errorf("%d left, %v", left, err)
	}
	s.eng.Trx.OpenSnapshot(&v)
	defer s.eng.Trx.CloseSnapshot(&v)
	if _, err := s.c.TableAt(&v.Snapshot, made.ID); !errors.Is(err, table.ErrNoTable) {
		t.Errorf("after the drop: %v", err)
	}
}

// A snapshot that can be opened has the files of all tables that it sees: also one of the past that
// nobody had open when the table was dropped, or when its file went, and after a start.
func TestSnapshotsOfThePastKeepFiles(t *testing.T) {
	readable := func(s *session, csn, id uint64) (opened bool) {
		t.Helper()
		var v trx.View
		if err := s.eng.Trx.OpenSnapshotAt(&v, csn); err != nil {
			if !errors.Is(err, trx.ErrSnapshotTooOld) {
				t.Error(err)
			}
			return false
		}
		defer s.eng.Trx.CloseSnapshot(&v)
		past, err := s.c.TableAt(&v.Snapshot, id)
		if err != nil {
			t.Errorf("snapshot %d can be opened, and a table that it sees cannot: %v", csn, err)
			return true
		}
		x := s.eng.Tables.NewWorker().NewExporter(past, &v.Snapshot, nil)
		if _, n, err := x.Next(nil, 100); n == 0 || err != nil {
			t.Errorf("snapshot %d: %d rows, %v", csn, n, err)
		}
		return true
	}
	for seed := range uint64(2) {
		for _, crash := range []bool{false, true} {
			sim := simenv.New(seed)
			sim.Run(func() {
				s, fs := crashDB(t, sim, seed)
				id := simpleDefinition(t, s).ID
				var v trx.View // while it is open no commit moves the horizon
				s.eng.Trx.OpenSnapshot(&v)
				csn := v.CSN
				must(t, s.do(func() error { _, err := s.c.DropTable(s.Worker, "db", "t"); return err }))
				left, err := s.c.Reclaim()
				must(t, err)
				if left == 0 || !readable(s, csn, id) {
					t.Errorf("seed %d: %d left while the snapshot is open", seed, left)
				}
				if crash {
					must(t, s.eng.Log.FlushTo(s.eng.Log.Published()))
					fs.Crash()
					s.eng.Log.Fail(errors.New("power lost"))
					_ = shut(s.eng)
					fs = fs.CrashImage()
					eng, err := open(options(fs, sim))
					must(t, err)
					s = newSession(eng)
				} else {
					s.eng.Trx.CloseSnapshot(&v)
				}
				readable(s, csn, id)
				for left = 1; left > 0; {
					left, err = s.c.Reclaim()
					must(t, err)
				}
				if n := s.files(t); n != 0 || readable(s, csn, id) {
					t.Errorf("seed %d, crash %v: %d files; the snapshot can be opened without any", seed, crash, n)
				}
				// The limit is as durable as what went by it.
				fs.Crash()
				s.eng.Log.Fail(errors.New("power lost"))
				_ = shut(s.eng)
				eng, err := open(options(fs.CrashImage(), sim))
				must(t, err)
				s = newSession(eng)
				if readable(s, csn, id) {
					t.Errorf("seed %d, crash %v: after a start the snapshot can be opened", seed, crash)
				}
				must(t, shut(eng))
			})
		}
	}
}

// An index that was dropped right before a crash stays as well, as long as a snapshot of before can be opened.
func TestSweepLeavesThePast(t *testing.T) {
	opened := 0
	for seed := range uint64(8) {
		sim := simenv.New(seed)
		sim.Run(func() {
			s, fs := crashDB(t, sim, seed)
			id, csn := simpleDefinition(t, s).ID, s.eng.Trx.LastCommitted()
			s.eng.Catalog.Close() // which ends what deletes in the background
			must(t, s.do(func() error { _, err := s.c.DropIndex(s.Worker, id, "v"); return err }))
			must(t, s.eng.Log.FlushTo(s.eng.Log.Published()))
			fs.Crash()
			s.eng.Log.Fail(errors.New("power lost"))
			_ = shut(s.eng)
			eng, err := open(options(fs.CrashImage(), sim))
			must(t, err)
			var v trx.View
			if eng.Trx.OpenSnapshotAt(&v, csn) == nil {
				opened++
				if left, err := eng.Catalog.Reclaim(); left != 1 || err != nil {
					t.Errorf("seed %d: %d left while the snapshot is open, %v", seed, left, err)
				}
				eng.Trx.CloseSnapshot(&v)
			}
			for left := 1; left > 0; {
				left, err = eng.Catalog.Reclaim()
				must(t, err)
			}
			must(t, shut(eng))
		})
	}
	if opened == 0 {
		t.Error("the snapshot could not be opened after any start")
	}
}

// What an attempt has left that was not committed when the process ended keeps nobody from making the same again, as the log says,
// though a snapshot of before is open: that cannot see it.
func TestSweptAttemptIsMadeAgain(t *testing.T) {
	made := 0
	for seed := range uint64(8) {
		sim := simenv.New(seed)
		sim.Run(func() {
			s, fs := crashDB(t, sim, seed)
			id, csn := simpleDefinition(t, s).ID, s.eng.Trx.LastCommitted()
			must(t, s.do(func() error { return s.insert("db", "t", types.NewInt(900), types.Null, types.Null) }))
			s.begin()
			def, err := s.c.AddIndex(s.Worker, id, record.Index{Name: "again", Parts: []record.Part{{Column: 3}}})
			must(t, err)
			must(t, s.eng.Log.FlushTo(s.eng.Log.Published()))
			fs.Crash()
			s.eng.Log.Fail(errors.New("power lost"))
			_ = shut(s.eng)
			eng, err := open(options(fs.CrashImage(), sim))
			must(t, err)
			eng.AwaitRollback(func() bool { return false })
			var v trx.View
			if eng.Trx.OpenSnapshotAt(&v, csn) == nil {
				if left, err := eng.Catalog.Reclaim(); err != nil {
					t.Error(err)
				} else if left == 1 {
					made++
				}
				f := newSession(eng)
				f.Applying = true
				must(t, f.do(func() error { _, err := f.c.ReplaceTable(f.Worker, def); return err }))
				eng.Trx.CloseSnapshot(&v)
			}
			must(t, shut(eng))
		})
	}
	if made == 0 {
		t.Error("no start has found what was left")
	}
}

package purge_test

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

type fixture struct {
	t   testing.TB
	eng *storage.Engine
	tbl *table.Table
	s   *storage.Session
}

func setUp(t testing.TB, tasks int) *fixture {
	t.Helper()
	f := &fixture{t: t}
	var err error
	f.eng, err = storage.Open(storage.Options{FS: file.OS(t.TempDir()), Env: env.Real(), BufferPoolSize: 16 << 20,
		RedoCapacity: 8 << 20, PurgeTasks: tasks, PurgeInterval: time.Millisecond})
	f.must(err)
	f.s = f.eng.NewSession()
	f.s.Begin(trx.Options{})
	_, err = f.eng.Catalog.CreateSchema(f.s.Worker(), dict.Schema{Name: "test"})
	f.must(err)
	integer := types.Type{Kind: types.KindInt, NotNull: true}
	def, err := f.eng.Catalog.CreateTable(f.s.Worker(), &record.Table{Schema: "test", Name: "t",
		Columns: []record.Column{{ID: 1, Name: "id", Type: integer}, {ID: 2, Name: "v", Type: integer}},
		Indexes: []record.Index{
			{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}},
			{Name: "v", Parts: []record.Part{{Column: 2}}},
		}})
	f.must(err)
	_, err = f.s.Commit()
	f.must(err)
	h, err := f.eng.Catalog.OpenTableByID(nil, def.ID)
	f.must(err)
	f.tbl = h.Table()
	return f
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// do runs a transaction.
func (f *fixture) do(fn func(w *table.Worker) error) {
	f.t.Helper()
	f.s.Begin(trx.Options{})
	f.must(fn(f.s.Worker()))
	_, err := f.s.Commit()
	f.must(err)
}

func (f *fixture) key(id int64) []byte { return f.tbl.Schema.Keys[0].AppendKey(nil, types.NewInt(id)) }

func (f *fixture) insert(id, v int64) {
	f.t.Helper()
	f.do(func(w *table.Worker) error { return w.Insert(f.tbl, []types.Value{types.NewInt(id), types.NewInt(v)}) })
}

func (f *fixture) update(id, v int64) {
	f.t.Helper()
	f.do(func(w *table.Worker) error {
		return w.Update(f.tbl, f.key(id), []record.Change{{Column: 1, Value: types.NewInt(v)}})
	})
}

func (f *fixture) delete(id int64) {
	f.t.Helper()
	f.do(func(w *table.Worker) error { return w.Delete(f.tbl, f.key(id)) })
}

// purgedClean runs purge to the end and checks that nothing is left behind.
func (f *fixture) purgedClean(rows int64) {
	f.t.Helper()
	for f.eng.Purge.HistoryLength() > 0 {
		_, err := f.eng.Purge.Run()
		f.must(err)
	}
	sum, err := f.tbl.Check(table.CheckOptions{State: table.CheckPurged}, func(x table.Finding) { f.t.Error(x) })
	f.must(err)
	if sum.Rows != rows || sum.Deleted != 0 {
		f.t.Errorf("%d rows and %d deleted ones, want %d and 0", sum.Rows, sum.Deleted, rows)
	}
}

// TestLongSnapshot checks that a snapshot holds back what it needs and only that.
func TestLongSnapshot(t *testing.T) {
	f := setUp(t, -1)
	for id := range int64(50) {
		f.insert(id, id)
	}
	for id := range int64(10) {
		f.update(id, 1000+id)
	}
	reader := f.eng.Trx.Begin(trx.Options{})
	snap := reader.Snapshot()
	for id := range int64(50) {
		if id%2 == 0 {
			f.delete(id)
		} else {
			f.update(id, 2000+id)
		}
	}
	before := f.eng.Purge.HistoryLength()
	_, err := f.eng.Purge.Run()
	f.must(err)
	if left := f.eng.Purge.HistoryLength(); left != 50 || before <= left {
		t.Errorf("history of %d transactions before and %d after; the snapshot needs 50", before, left)
	}
	w := f.eng.Tables.NewWorker()
	w.Use(reader)
	for id := range int64(50) {
		row, err := w.GetRow(f.tbl, f.key(id), snap)
		f.must(err)
		want := id
		if id < 10 {
			want = 1000 + id
		}
		if row == nil || row[1].Int() != want {
			t.Errorf("the snapshot sees %v for %d, want %d", row, id, want)
		}
	}
	f.eng.Trx.End(reader)
	f.purgedClean(25)
	f.must(f.eng.Close())
}

// TestTasks purges with none, one and many tasks, beside the work that makes the
// history.
func TestTasks(t *testing.T) {
	for _, tasks := range []int{-1, 1, 8, 32} {
		f := setUp(t, tasks)
		for round := range int64(4) {
			for id := range int64(60) {
				f.insert(id, round)
			}
			for id := range int64(60) {
				f.update(id, round*100+id)
				f.delete(id)
			}
		}
		f.insert(7, 7)
		f.purgedClean(1)
		if s := f.eng.Purge.Stats(); s.Logs == 0 || s.Err != nil {
			t.Errorf("%d tasks: %+v", tasks, s)
		}
		f.must(f.eng.Close())
	}
}

// TestPaused checks that purge rests while it is paused.
func TestPaused(t *testing.T) {
	f := setUp(t, 2)
	f.eng.Purge.SetPaused(true)
	time.Sleep(5 * time.Millisecond) // a round may be under way
	f.insert(1, 1)
	f.delete(1)
	time.Sleep(20 * time.Millisecond)
	if f.eng.Purge.HistoryLength() == 0 {
		t.Error("purge went on while it was paused")
	}
	f.eng.Purge.SetPaused(false)
	f.eng.Purge.Wake()
	f.purgedClean(0)
	f.must(f.eng.Close())
}

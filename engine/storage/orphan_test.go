package storage_test

import (
	"testing"

	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// TestOrphanNumber: a crash leaves the file of a tablespace and takes back that its
// number was given. What is bulk-loaded next is not lost to the recovery after that.
func TestOrphanNumber(t *testing.T) {
	base := newDisk(t)
	base.open()
	first := base.fs.Mutations()
	base.create("c")
	last := base.fs.Mutations()
	base.close()
	for k := first + 1; k <= last; k++ {
		d := newDisk(t)
		d.open()
		d.fs.CrashAt(d.fs.Mutations() + k - first)
		_, _ = d.eng.NewSession().Do(trx.Options{}, func(w *table.Worker) error { return d.createTable(w, "c") })
		d.fs.Crash()
		_ = d.eng.Close()
		d.fs = d.fs.CrashImage()
		d.open()
		if err := d.with("c", func(*table.Table) error { return nil }); err != nil {
			d.create("c")
		}
		err := d.with("c", func(tbl *table.Table) error {
			l := d.eng.Tables.NewWorker().NewLoader(tbl, table.LoadOptions{FS: d.fs})
			for id := range int64(diskRows) {
				if err := l.Add(row(id, 1)); err != nil {
					return err
				}
			}
			return l.Finish()
		})
		if err == nil {
			err = d.eng.Log.FlushTo(d.eng.Log.Published())
		}
		if err != nil {
			t.Fatal(err)
		}
		d.fs.Crash()
		_ = d.eng.Close()
		d.fs = d.fs.CrashImage()
		d.open()
		if n, _, err := d.count("c", 0, 0); n != diskRows || err != nil {
			t.Errorf("crash at change %d of %d: %d rows, %v", k-first, last-first, n, err)
		}
		d.close()
	}
}

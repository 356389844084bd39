package dict_test

import (
	"errors"
	"fmt"
	"testing"

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

package storage_test

import (
	"testing"

	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// TestCounterHash: a node where statements were rolled back, and one that has only
// applied what was committed, have the same counters, also after a restart.
func TestCounterHash(t *testing.T) {
	leader, follower := newDisk(t), newDisk(t)
	bigint := types.Type{Kind: types.KindBigInt, NotNull: true}
	for _, d := range []*disk{leader, follower} {
		d.open()
		_, err := d.eng.NewSession().Do(trx.Options{}, func(w *table.Worker) error {
			if _, err := d.eng.Catalog.CreateSchema(w, dict.Schema{Name: "c"}); err != nil {
				return err
			}
			_, err := d.eng.Catalog.CreateTable(w, &record.Table{Schema: "c", Name: "c",
				Columns: []record.Column{{ID: 1, Name: "id", Type: bigint, AutoIncrement: true}},
				Indexes: []record.Index{{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}}})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	insert := func(d *disk, ids ...int64) {
		t.Helper()
		err := d.with("c", func(tbl *table.Table) error {
			_, err := d.eng.NewSession().Do(trx.Options{}, func(w *table.Worker) error {
				w.Applying = d == follower
				for _, id := range ids {
					mark := w.Trx().BeginStatement()
					if err := w.Insert(tbl, []types.Value{types.NewInt(max(id, -id))}); err != nil {
						return err
					}
					if id < 0 {
						if err := w.RollbackTo(mark); err != nil {
							return err
						}
					}
				}
				return nil
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	same := func() bool {
		t.Helper()
		a, n, at, err := leader.eng.CounterHash()
		if err != nil {
			t.Fatal(err)
		}
		b, m, pos, err := follower.eng.CounterHash()
		if err != nil || n != m || at != pos {
			t.Fatalf("%d at %+v and %d at %+v, %v", n, at, m, pos, err)
		}
		return a == b
	}
	insert(leader, 5, -9, 6)
	insert(follower, 5, 6)
	if !same() {
		t.Error("counters differ by a statement that was rolled back")
	}
	leader.close()
	leader.open()
	if !same() {
		t.Error("counters differ after a restart")
	}
	insert(leader, 8)
	insert(follower, 7)
	if same() {
		t.Error("other rows have the same counters")
	}
	leader.close()
	follower.close()
}

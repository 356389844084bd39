package storage_test

import (
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// TestInDoubtAtACrash: transactions on top of each other, all but the last in doubt,
// are rolled back by the next start, in whatever order it finds them.
func TestInDoubtAtACrash(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d := newDisk(t)
		d.open()
		if err := d.with("a", func(tbl *table.Table) error { return d.pile(tbl, rng, 6) }); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := d.eng.Log.FlushTo(d.eng.Log.Published()); err != nil {
			t.Fatal(err)
		}
		killed := d.fs.KillImage()
		d.fs.Crash()
		_ = d.eng.Close()
		d.fs = killed
		d.open()
		for index := range 2 {
			if n, sum, err := d.count("a", index, 0); n != diskRows || sum != 0 || err != nil {
				t.Errorf("seed %d: %d rows, sum %d by index %d, %v", seed, n, sum, index, err)
			}
		}
		d.check()
		d.works("a")
		d.close()
	}
}

// pile runs transactions that change rows one after the other. They write a row of
// their own first, in another order.
func (d *disk) pile(tbl *table.Table, rng *rand.Rand, n int) error {
	add := func(w *table.Worker, id int64) error {
		key := tbl.Schema.Keys[0].AppendKey(nil, types.NewInt(id))
		return w.Update(tbl, key, []record.Change{{Column: 2, Value: types.NewInt(1 + rng.Int64N(100))}})
	}
	workers := make([]*table.Worker, n)
	for _, i := range rng.Perm(n) {
		workers[i] = d.eng.Tables.NewWorker()
		workers[i].Use(d.eng.Trx.Begin(trx.Options{}))
		if err := add(workers[i], int64(100+i)); err != nil {
			return err
		}
	}
	_, at := d.eng.Trx.Applied()
	for i, w := range workers {
		for range 1 + rng.IntN(4) {
			id := rng.Int64N(6)
			err := add(w, id)
			if rng.IntN(4) == 0 && err == nil {
				err = w.Delete(tbl, tbl.Schema.Keys[0].AppendKey(nil, types.NewInt(id)))
				if err == nil {
					err = w.Insert(tbl, row(id, rng.Int64N(50)))
				}
			}
			if err != nil {
				return err
			}
		}
		if i < n-1 {
			at.Index++
			w.Trx().StartCommit()
			d.eng.Trx.ReleaseLocks(w.Trx(), at)
		}
	}
	return nil
}

package storage_test

import (
	"fmt"
	"os"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// A first session: make a table, write, read at a snapshot, scan a secondary index.
func Example() {
	dir, err := os.MkdirTemp("", "trireme")
	must(err)
	defer os.RemoveAll(dir)

	eng, err := storage.Open(storage.Options{FS: file.OS(dir), Env: env.Real()})
	must(err)
	s := eng.NewSession()

	// A schema and a table with a secondary index, in one transaction.
	_, err = s.Do(trx.Options{}, func(w *table.Worker) error {
		if _, err := eng.Catalog.CreateSchema(w, dict.Schema{Name: "shop"}); err != nil {
			return err
		}
		_, err := eng.Catalog.CreateTable(w, &record.Table{
			Schema: "shop", Name: "fruit",
			Columns: []record.Column{
				{ID: 1, Name: "id", Type: types.Type{Kind: types.KindBigInt, NotNull: true}},
				{ID: 2, Name: "name", Type: types.Type{Kind: types.KindVarChar, Length: 40, Collation: types.CollationUTF8MB40900AI}},
			},
			Indexes: []record.Index{
				{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}},
				{Name: "name", Parts: []record.Part{{Column: 2}}},
			},
		})
		return err
	})
	must(err)
	fruit, err := eng.Catalog.OpenTable(nil, "shop", "fruit")
	must(err)

	// Rows. The number of a commit is the clock: a snapshot is one such number.
	csn, err := s.Do(trx.Options{}, func(w *table.Worker) error {
		for id, name := range []string{"pear", "Apple", "fig"} {
			if err := w.Insert(fruit.Table(), []types.Value{types.NewInt(int64(id)), types.NewString(name)}); err != nil {
				return err
			}
		}
		return nil
	})
	must(err)

	// A reader keeps its snapshot while another session deletes a row.
	s.Begin(trx.Options{})
	s.Trx().Snapshot()
	pear := fruit.Table().Schema.Keys[0].AppendKey(nil, types.NewInt(0))
	_, err = eng.NewSession().Do(trx.Options{}, func(w *table.Worker) error { return w.Delete(fruit.Table(), pear) })
	must(err)
	row, err := s.Worker().GetRow(fruit.Table(), pear, s.Trx().Snapshot())
	must(err)
	fmt.Printf("at %d: %s\n", csn, row[1].Bytes())
	_, err = s.Commit()
	must(err)

	// The secondary index is in the order of its collation.
	s.Begin(trx.Options{})
	must(s.Scan(fruit.Table(), table.Range{Index: 1}, func(row []types.Value) error {
		fmt.Printf("%d %s\n", row[0].Int(), row[1].Bytes())
		return nil
	}))
	_, err = s.Commit()
	must(err)
	fruit.Release()
	must(eng.Close())
	// Output:
	// at 2: pear
	// 1 Apple
	// 2 fig
}

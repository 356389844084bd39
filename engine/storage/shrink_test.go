package storage_test

import (
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
)

// TestFilesShrink drops a large index and purges a large transaction, and expects
// the files to give the pages back.
func TestFilesShrink(t *testing.T) {
	eng, err := storage.Open(storage.Options{FS: file.OS(t.TempDir()), Env: env.Real(), PurgeTasks: -1, UndoSizeMax: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s := eng.NewSession()
	s.Begin(trx.Options{})
	_, err = eng.Catalog.CreateSchema(s.Worker(), dict.Schema{Name: "test"})
	must(err)
	def, err := eng.Catalog.CreateTable(s.Worker(), &record.Table{
		Schema: "test", Name: "wide",
		Columns: []record.Column{
			{ID: 1, Name: "id", Type: types.Type{Kind: types.KindInt, NotNull: true}},
			{ID: 2, Name: "text", Type: types.Type{Kind: types.KindVarChar, Length: 700, Collation: types.CollationASCIIBin}},
		},
		Indexes: []record.Index{
			{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}},
			{Name: "text", Parts: []record.Part{{Column: 2}}},
		},
	})
	must(err)
	_, err = s.Commit()
	must(err)
	h, err := eng.Catalog.OpenTableByID(nil, def.ID)
	must(err)
	tbl := h.Table()
	const rows = 4000
	s.Begin(trx.Options{})
	for i := range int64(rows) {
		text := strings.Repeat(string(rune('a'+i%26)), 600)
		must(s.Worker().Insert(tbl, []types.Value{types.NewInt(i), types.NewString(text)}))
	}
	_, err = s.Commit()
	must(err)
	s.Begin(trx.Options{})
	for i := range int64(rows) {
		key := tbl.Schema.Keys[0].AppendKey(nil, types.NewInt(i))
		must(s.Worker().Update(tbl, key, []record.Change{{Column: 1, Value: types.NewString("short")}}))
	}
	_, err = s.Commit()
	must(err)

	undoBefore := eng.Spaces.Get(space.FirstUndo).SizePages() + eng.Spaces.Get(space.FirstUndo+1).SizePages()
	_, err = eng.Purge.Run()
	must(err)
	_, err = eng.Purge.ShrinkUndo()
	must(err)
	undoAfter := eng.Spaces.Get(space.FirstUndo).SizePages() + eng.Spaces.Get(space.FirstUndo+1).SizePages()
	if undoBefore < 300 || undoAfter > undoBefore/4 {
		t.Errorf("undo tablespaces have %d pages before purge and %d after", undoBefore, undoAfter)
	}

	before, err := tbl.Space().Stats()
	must(err)
	h.Release()
	s.Begin(trx.Options{})
	_, err = eng.Catalog.DropIndex(s.Worker(), def.ID, "text")
	must(err)
	_, err = s.Commit()
	must(err)
	if left, err := eng.Catalog.Reclaim(); left != 0 || err != nil {
		t.Fatalf("%d things left to delete: %v", left, err)
	}
	after, err := tbl.Space().Stats()
	must(err)
	if after.File >= before.File {
		t.Errorf("the file has %d pages before the index is dropped and %d after", before.File, after.File)
	}
	must(eng.Close())
}

package table_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/json"
)

// Tables that come to the same rows in different ways have the same hash.
func TestHashHistories(t *testing.T) {
	fsys := file.OS(t.TempDir())
	r := newRig(t, env.Real(), fsys, 1024)
	defer r.close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var rows [][]types.Value
	for n := range 600 {
		rows = append(rows, article(t, n))
	}
	s := r.session()
	straight := r.create(goods(60))
	s.insertAll(straight, rows)
	want := r.hash(straight)
	if want.Rows != 600 {
		t.Fatalf("%v", want)
	}
	key := func(tbl *table.Table, n int) []byte {
		k, err := tbl.Schema.AppendRowKey(nil, rows[n])
		must(err)
		return k
	}

	loaded := r.create(goods(61))
	must(r.load(loaded, table.LoadOptions{FS: fsys, Fill: 50}, sorted(t, loaded, rows)))
	if h := r.hash(loaded); h != want {
		t.Errorf("loaded: %v, want %v", h, want)
	}

	// Backwards, with rows that come and go, and others that change to and fro.
	winding := r.create(goods(62))
	back := slices.Clone(rows)
	slices.Reverse(back)
	s.insertAll(winding, back)
	s.begin(trx.RepeatableRead)
	for n := 0; n < 600; n += 7 {
		must(s.Delete(winding, key(winding, n)))
		must(s.Update(winding, key(winding, n+1), []record.Change{{Column: 5, Value: types.NewString(strings.Repeat("w", 12000))}, {Column: 4, Value: types.Null}}))
	}
	must(s.commit())
	s.begin(trx.RepeatableRead)
	for n := 0; n < 600; n += 7 {
		must(s.Insert(winding, rows[n]))
		must(s.Update(winding, key(winding, n+1), []record.Change{{Column: 5, Value: rows[n+1][5]}, {Column: 4, Value: rows[n+1][4]}}))
	}
	must(s.commit())
	s.begin(trx.RepeatableRead)
	must(s.Delete(winding, key(winding, 100)))
	if h := r.hash(winding); h != want {
		t.Errorf("winding: %v, want %v", h, want)
	}
	s.rollback()
	if h := r.hash(winding); h != want {
		t.Errorf("rolled back: %v, want %v", h, want)
	}

	// A document that was edited in place says the same.
	doc := rows[5][3].Bytes()
	path := json.MustPath("$.a")
	edit, err := json.Set(doc, path, mustJSON(t, `"x"`).Bytes())
	must(err)
	edited, err := json.Compact(nil, edit.Doc)
	must(err)
	for i, tbl := range []*table.Table{loaded, winding} {
		s.begin(trx.RepeatableRead)
		must(s.Update(tbl, key(tbl, 5), []record.Change{{Column: 3, Value: types.NewJSON([][]byte{edit.Doc, edited}[i])}}))
		must(s.commit())
	}
	if a, b := r.hash(loaded), r.hash(winding); a != b || a == want {
		t.Errorf("documents: %v and %v, before %v", a, b, want)
	}
}

// A column that was added without touching rows hashes as if it had been stored,
// one that was dropped not at all.
func TestHashColumns(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 512)
	defer r.close()
	s := r.session()
	rows := func(from, to int64, extra ...types.Value) (out [][]types.Value) {
		for n := from; n < to; n++ {
			out = append(out, append(person(n, "x", n, n, "text"), extra...))
		}
		return out
	}
	old := r.create(people(70))
	s.insertAll(old, rows(0, 10))

	def := people(70)
	def.RowVersion, def.Version, def.NextColumn = 2, 2, 7
	def.Columns = append(def.Columns, record.Column{ID: 6, Name: "added", Type: intType(true), AddedIn: 2,
		Initial: types.AppendStored(nil, types.NewInt(42), &types.Type{Kind: types.KindInt})})
	def.Columns[4].DroppedIn = 2
	schema, err := record.Prepare(def)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := r.e.Open(schema, old.Where)
	if err != nil {
		t.Fatal(err)
	}
	r.tables[70] = changed
	s.insertAll(changed, rows(10, 20, types.NewInt(42)))

	fresh := people(71)
	fresh.NextColumn = 8
	fresh.Columns[4] = record.Column{ID: 7, Name: "added", Type: intType(true), AddedIn: 1}
	built := r.create(fresh)
	var all [][]types.Value
	for _, row := range rows(0, 20) {
		row[4] = types.NewInt(42)
		all = append(all, row)
	}
	s.insertAll(built, all)
	if a, b := r.hash(changed), r.hash(built); a != b || a.Rows != 20 {
		t.Errorf("%v and %v", a, b)
	}
	r.clean(changed)
}

// Any single change changes the hash, and taking it back brings it back.
func TestHashSensitive(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 512)
	defer r.close()
	tbl := r.create(goods(60))
	s := r.session()
	var rows [][]types.Value
	for n := range 40 {
		rows = append(rows, article(t, n))
	}
	s.insertAll(tbl, rows)
	base := r.hash(tbl)
	seen := map[table.StateHash]string{base: "base"}
	key, _ := tbl.Schema.AppendRowKey(nil, rows[7])
	for name, v := range map[string]record.Change{
		"case of a letter": {Column: 0, Value: types.NewString(strings.ToUpper(string(rows[7][0].Bytes())))},
		"number":           {Column: 1, Value: types.NewInt(8000)},
		"NULL":             {Column: 2, Value: types.Null},
		"document":         {Column: 3, Value: mustJSON(t, `{"n": 7}`)},
		"document type":    {Column: 3, Value: mustJSON(t, `{"n": 7.0}`)},
		"JSON null":        {Column: 3, Value: mustJSON(t, `null`)},
		"no document":      {Column: 3, Value: types.Null},
		"double":           {Column: 4, Value: types.NewDouble(1e-300)},
		"empty text":       {Column: 5, Value: types.NewString("")},
		"no text":          {Column: 5, Value: types.Null},
		"long text":        {Column: 5, Value: types.NewString(strings.Repeat("y", 9000))},
		"longer text":      {Column: 5, Value: types.NewString(strings.Repeat("y", 9001))},
		"bytes":            {Column: 7, Value: types.NewBytes([]byte{1, 0, 7, 1})},
	} {
		s.begin(trx.RepeatableRead)
		if err := s.Update(tbl, key, []record.Change{v}); err != nil {
			t.Fatal(name, err)
		}
		h, err := s.Hash(tbl, s.Trx().Snapshot(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[h]; ok {
			t.Errorf("%s: same hash as %s", name, other)
		}
		seen[h] = name
		s.rollback()
		if h := r.hash(tbl); h != base {
			t.Errorf("%s: hash %v after taking it back", name, h)
		}
	}
	s.begin(trx.RepeatableRead)
	if err := s.Delete(tbl, key); err != nil {
		t.Fatal(err)
	}
	if h, _ := s.Hash(tbl, s.Trx().Snapshot(), nil); seen[h] != "" || h.Rows != 39 {
		t.Errorf("one row less: %v", h)
	}
	s.rollback()
}

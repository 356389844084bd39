package table_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/btree"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/storage/undo"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/json"
	"github.com/triremedb/trireme/internal/race"
)

// bulkRows is how many rows the larger tests load.
var bulkRows = race.Fewer(50_000, 2000)

// goods is a table with many types: a primary key that is lossy, a nullable unique
// index, an index on a prefix of a long column, and an AUTO_INCREMENT column.
func goods(id uint64) *record.Table {
	bin := types.CollationUTF8MB4Bin
	return &record.Table{
		ID: id, Schema: "test", Name: fmt.Sprint("goods", id), RowVersion: 1, NextColumn: 10,
		Columns: []record.Column{
			{ID: 1, Name: "name", Type: types.Type{Kind: types.KindVarChar, NotNull: true, Length: 60, Collation: types.CollationUTF8MB40900AI}, AddedIn: 1},
			{ID: 2, Name: "no", Type: types.Type{Kind: types.KindInt, NotNull: true}, AddedIn: 1},
			{ID: 3, Name: "unit", Type: intType(true), AddedIn: 1},
			{ID: 4, Name: "doc", Type: types.Type{Kind: types.KindJSON, Collation: types.CollationBinary}, AddedIn: 1},
			{ID: 5, Name: "price", Type: types.Type{Kind: types.KindDouble}, AddedIn: 1},
			{ID: 6, Name: "text", Type: types.Type{Kind: types.KindText, Collation: bin}, AddedIn: 1},
			{ID: 7, Name: "seq", Type: types.Type{Kind: types.KindBigInt, Unsigned: true, NotNull: true}, AutoIncrement: true, AddedIn: 1},
			{ID: 8, Name: "raw", Type: types.Type{Kind: types.KindBinary, Length: 4, Collation: types.CollationBinary}, AddedIn: 1},
		},
		Indexes: []record.Index{
			{ID: id*10 + 1, Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1, Desc: true}, {Column: 2}}},
			{ID: id*10 + 2, Name: "unit", Unique: true, Parts: []record.Part{{Column: 3}, {Column: 8}}},
			{ID: id*10 + 3, Name: "text", Parts: []record.Part{{Column: 6, Prefix: 20}}},
			{ID: id*10 + 4, Name: "seq", Unique: true, Parts: []record.Part{{Column: 7}}},
		},
	}
}

func mustJSON(t testing.TB, text string) types.Value {
	t.Helper()
	doc, err := json.Parse(nil, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return types.NewJSON(doc)
}

// article makes up row n.
func article(t testing.TB, n int) []types.Value {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	row := []types.Value{
		types.NewString(fmt.Sprintf("%s-%d", []string{"Anker", "anker", "Élan", "zeta", ""}[n%5], n/3)), types.NewInt(int64(n)), types.Null,
		types.Null, types.NewDouble(r.NormFloat64()), types.Null, types.NewUint(uint64(n*7 + 1)), types.NewBytes([]byte{1, 0, byte(n), 0}),
	}
	if n%3 > 0 {
		row[2] = types.NewInt(int64(r.Uint32() >> 1))
	}
	if n%4 > 0 {
		row[3] = mustJSON(t, fmt.Sprintf(`{"n": %d, "b": [1, "x", {"y": null}], "a": %q}`, n, strings.Repeat("j", r.IntN(30))))
	}
	if n%5 > 0 {
		size := r.IntN(100)
		if n%500 == 1 {
			size = 10000 + r.IntN(30000)
		}
		row[5] = types.NewString(strings.Repeat(string(rune('a'+n%26)), size))
	}
	return row
}

// sorted sorts rows by their clustered keys.
func sorted(t testing.TB, tbl *table.Table, rows [][]types.Value) [][]types.Value {
	t.Helper()
	key := func(row []types.Value) []byte {
		k, err := tbl.Schema.AppendRowKey(nil, row)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b []types.Value) int { return bytes.Compare(key(a), key(b)) })
	return rows
}

func (r *rig) load(tbl *table.Table, opt table.LoadOptions, rows [][]types.Value) error {
	l := r.e.NewWorker().NewLoader(tbl, opt)
	for _, row := range rows {
		if err := l.Add(row); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	return l.Finish()
}

// insert adds rows one by one, in transactions of some hundred.
func (s *session) insertAll(tbl *table.Table, rows [][]types.Value) {
	s.r.t.Helper()
	for len(rows) > 0 {
		n := min(len(rows), 500)
		s.begin(trx.RepeatableRead)
		for _, row := range rows[:n] {
			if err := s.Insert(tbl, row); err != nil {
				s.r.t.Fatal(err)
			}
		}
		if err := s.commit(); err != nil {
			s.r.t.Fatal(err)
		}
		rows = rows[n:]
	}
}

func (r *rig) hash(tbl *table.Table) table.StateHash {
	r.t.Helper()
	var v trx.View
	r.e.Trx.OpenSnapshot(&v)
	defer r.e.Trx.CloseSnapshot(&v)
	h, err := r.e.NewWorker().Hash(tbl, &v.Snapshot, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

// check returns what the check finds.
func (r *rig) check(tbl *table.Table, state table.CheckState) []string {
	r.t.Helper()
	var found []string
	if _, err := tbl.Check(table.CheckOptions{State: state}, func(f table.Finding) { found = append(found, f.String()) }); err != nil {
		r.t.Fatal(err)
	}
	return found
}

// clean purges, and wants a check to find nothing.
func (r *rig) clean(tbl *table.Table) {
	r.t.Helper()
	for n := 1; n > 0; {
		var err error
		if n, err = r.purger.Run(); err != nil {
			r.t.Fatal(err)
		}
	}
	states := []table.CheckState{table.CheckPurged, table.CheckQuiet, table.CheckOnline}
	if tbl.Rows() > 10000 {
		states = states[:1]
	}
	for _, state := range states {
		for _, f := range r.check(tbl, state) {
			r.t.Errorf("check %d: %s", state, f)
		}
	}
}

func (s *session) same(a, b *table.Table) {
	s.r.t.Helper()
	s.begin(trx.RepeatableRead)
	for i := range a.Schema.Keys {
		ra, err := s.scan(a, s.Trx().Snapshot(), table.Range{Index: i})
		if err != nil {
			s.r.t.Fatal(err)
		}
		rb, err := s.scan(b, s.Trx().Snapshot(), table.Range{Index: i})
		if err != nil {
			s.r.t.Fatal(err)
		}
		equal := slices.EqualFunc(ra, rb, func(x, y []types.Value) bool {
			return slices.EqualFunc(x, y, func(v, w types.Value) bool {
				return v.Class() == w.Class() && bytes.Equal(v.Bytes(), w.Bytes()) && types.Compare(v, w, &types.Type{}) == 0
			})
		})
		if len(ra) == 0 || !equal {
			s.r.t.Errorf("index %s: %d and %d rows differ", a.Schema.Keys[i].Name, len(ra), len(rb))
		}
	}
	if err := s.commit(); err != nil {
		s.r.t.Fatal(err)
	}
}

func TestLoadEqualsInserts(t *testing.T) {
	fsys := file.OS(t.TempDir())
	r := newRig(t, env.Real(), fsys, 4096)
	defer r.close()
	var rows [][]types.Value
	for n := range bulkRows {
		rows = append(rows, article(t, n))
	}
	one, all := r.create(goods(30)), r.create(goods(31))
	s := r.session()
	s.insertAll(one, rows)

	l := r.e.NewWorker().NewLoader(all, table.LoadOptions{FS: fsys, Memory: 1})
	for _, row := range sorted(t, all, rows) {
		if err := l.Add(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Finish(); err != nil {
		t.Fatal(err)
	}
	if st := l.SortStats(); st.Runs < 2 || st.Entries != int64(3*bulkRows) {
		t.Errorf("%+v: want several runs", st)
	}
	if names, err := fsys.List("tmp"); err != nil || len(names) != 0 {
		t.Errorf("temporary files: %q, %v", names, err)
	}
	if all.Rows() != int64(bulkRows) || all.NextAuto() != one.NextAuto() {
		t.Errorf("%d rows, next %d; want next %d", all.Rows(), all.NextAuto(), one.NextAuto())
	}
	again, err := r.e.Open(all.Schema, all.Where)
	if err != nil || again.NextAuto() != one.NextAuto() {
		t.Errorf("opened again: %v, next %d", err, again.NextAuto())
	}
	r.clean(all)
	s.same(one, all)
	if a, b := r.hash(one), r.hash(all); a != b || a.Rows != int64(bulkRows) {
		t.Errorf("hashes %v and %v", a, b)
	}

	// Life goes on, with rows that nobody wrote.
	for _, tbl := range []*table.Table{one, all} {
		s.begin(trx.RepeatableRead)
		for n := 0; n < bulkRows; n += bulkRows / 200 {
			key, _ := tbl.Schema.AppendRowKey(nil, rows[n])
			var err error
			switch n % 3 {
			case 0:
				err = s.Delete(tbl, key)
			case 1:
				err = s.Update(tbl, key, []record.Change{{Column: 2, Value: types.NewInt(int64(-n))}, {Column: 5, Value: types.NewString("new")}})
			default:
				err = s.Update(tbl, key, []record.Change{{Column: 0, Value: types.NewString("moved")}})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := s.commit(); err != nil {
			t.Fatal(err)
		}
		s.begin(trx.RepeatableRead)
		for n := 1; n < bulkRows; n += bulkRows / 100 {
			key, _ := tbl.Schema.AppendRowKey(nil, rows[n])
			if err := s.Delete(tbl, key); err != nil && !errors.Is(err, table.ErrNotFound) {
				t.Fatal(err)
			}
		}
		for _, f := range r.check(tbl, table.CheckOnline) {
			t.Errorf("within a transaction: %s", f)
		}
		s.rollback()
	}
	s.same(one, all)
	if a, b := r.hash(one), r.hash(all); a != b {
		t.Errorf("hashes %v and %v after changes", a, b)
	}
	r.clean(one)
	r.clean(all)
}

func TestLoadHeader(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 256)
	defer r.close()
	tbl := r.create(people(20))
	if err := r.load(tbl, table.LoadOptions{FS: file.OS(t.TempDir())}, [][]types.Value{person(1, "x", 2, 3, "")}); err != nil {
		t.Fatal(err)
	}
	m := mtr.New(r.e.Pool)
	m.BeginRead()
	defer m.Commit()
	c := tbl.Tree(0).NewCursor(m)
	if err := c.First(mtr.S); err != nil {
		t.Fatal(err)
	}
	if v := c.Value(); !undo.RollPtr(record.RollPtr(v)).Insert() || record.TrxID(v) >= r.e.Trx.VisibleBelow() {
		t.Errorf("header: transaction %d, roll pointer %v", record.TrxID(v), undo.RollPtr(record.RollPtr(v)))
	}
}

func TestLoadErrors(t *testing.T) {
	fsys := file.OS(t.TempDir())
	r := newRig(t, env.Real(), fsys, 512)
	defer r.close()
	opt := table.LoadOptions{FS: fsys}
	id := uint64(40)
	load := func(rows ...[]types.Value) error {
		id++
		return r.load(r.create(people(id)), opt, rows)
	}
	var dup *table.DuplicateError
	if err := load(person(1, "a", 1, 1, ""), person(1, "b", 1, 2, "")); !errors.As(err, &dup) || dup.Index != "PRIMARY" {
		t.Errorf("duplicate primary key: %v", err)
	}
	if err := load(person(1, "a", 1, 7, ""), person(2, "b", 1, 8, ""), person(3, "c", 1, 7, "")); !errors.As(err, &dup) || dup.Index != "code" ||
		!bytes.Equal(dup.Row, r.tables[id].Schema.Keys[0].AppendKey(nil, types.NewInt(1))) {
		t.Errorf("duplicate unique key: %v", err)
	}
	if err := load(person(2, "a", 1, 1, ""), person(1, "b", 1, 2, "")); !errors.Is(err, btree.ErrUnsorted) {
		t.Errorf("unsorted: %v", err)
	}
	null := person(2, "b", 1, 0, "")
	null[3] = types.Null
	nulls := [][]types.Value{person(1, "a", 1, 0, ""), null, slices.Clone(null)}
	nulls[2][0] = types.NewInt(3)
	nulls[0][3] = types.Null
	if err := load(nulls...); err != nil {
		t.Errorf("NULLs in a unique index: %v", err)
	}
	r.clean(r.tables[id])
	if err := r.load(r.tables[id], opt, nulls); !errors.Is(err, btree.ErrNotEmpty) {
		t.Errorf("table with rows: %v", err)
	}
	if err := load(); err != nil {
		t.Errorf("no rows: %v", err)
	}
	r.clean(r.tables[id])
	stop := errors.New("stop")
	opt.Stop = func() error { return stop }
	if err := load(person(1, "a", 1, 1, "")); !errors.Is(err, stop) {
		t.Errorf("stopped: %v", err)
	}
}

func TestBuildIndex(t *testing.T) {
	fsys := file.OS(t.TempDir())
	r := newRig(t, env.Real(), fsys, 512)
	defer r.close()
	full := people(50)
	slim := people(50)
	slim.Indexes = slim.Indexes[:1]
	tbl := r.create(slim)
	s := r.session()
	count := min(bulkRows/2, 2000)
	var rows [][]types.Value
	for n := range count {
		rows = append(rows, person(int64(n), fmt.Sprint("name", n%100), int64(n%7), int64(n^0x155), strings.Repeat("b", n%100*100)))
	}
	s.insertAll(tbl, rows)
	var v trx.View
	r.e.Trx.OpenSnapshot(&v)
	defer r.e.Trx.CloseSnapshot(&v)
	s.begin(trx.RepeatableRead) // what comes after the snapshot does not count
	if err := s.Update(tbl, pk(tbl, 1), []record.Change{{Column: 3, Value: types.NewInt(2 ^ 0x155)}}); err != nil {
		t.Fatal(err)
	}

	schema, err := record.Prepare(full)
	if err != nil {
		t.Fatal(err)
	}
	at := tbl.Where
	for _, ix := range full.Indexes[1:] {
		if at.Roots[ix.ID], err = r.e.CreateIndex(tbl.Space(), ix.ID); err != nil {
			t.Fatal(err)
		}
	}
	wide, err := r.e.Open(schema, at)
	if err != nil {
		t.Fatal(err)
	}
	w := r.e.NewWorker()
	for i := 1; i <= 2; i++ {
		n, err := w.BuildIndex(wide, i, &v.Snapshot, table.LoadOptions{FS: fsys, Memory: 1})
		if err != nil || n != int64(count) {
			t.Fatalf("%d entries, %v", n, err)
		}
	}
	s.rollback()
	r.tables[50] = wide
	r.clean(wide)

	s.begin(trx.RepeatableRead)
	if err := s.Insert(tbl, person(5000, "x", 1, 7^0x155, "")); err != nil {
		t.Fatal(err)
	}
	if err := s.commit(); err != nil {
		t.Fatal(err)
	}
	var v2 trx.View
	r.e.Trx.OpenSnapshot(&v2)
	defer r.e.Trx.CloseSnapshot(&v2)
	root, err := r.e.CreateIndex(tbl.Space(), 999)
	if err != nil {
		t.Fatal(err)
	}
	full.Indexes[1].ID = 999
	if schema, err = record.Prepare(full); err != nil {
		t.Fatal(err)
	}
	at.Roots[999] = root
	if wide, err = r.e.Open(schema, at); err != nil {
		t.Fatal(err)
	}
	var dup *table.DuplicateError
	if _, err := w.BuildIndex(wide, 1, &v2.Snapshot, table.LoadOptions{FS: fsys}); !errors.As(err, &dup) || dup.Position != 1 {
		t.Errorf("duplicates: %v", err)
	}
}

func benchRows(n int) [][]types.Value {
	rows := make([][]types.Value, n)
	for n := range rows {
		rows[n] = person(int64(n), fmt.Sprint("name", n%1000), int64(n%7), int64(n^0x15555), "some words about a person")
	}
	return rows
}

func BenchmarkLoad(b *testing.B) {
	fsys := file.OS(b.TempDir())
	r := newRig(b, env.Real(), fsys, 4096)
	defer r.close()
	rows := benchRows(200000)
	id := uint64(100)
	for b.Loop() {
		id++
		if err := r.load(r.create(people(id)), table.LoadOptions{FS: fsys}, rows); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(rows)*b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkWholeTable(b *testing.B) {
	fsys := file.OS(b.TempDir())
	r := newRig(b, env.Real(), fsys, 4096)
	defer r.close()
	rows := benchRows(200000)
	tbl := r.create(people(100))
	if err := r.load(tbl, table.LoadOptions{FS: fsys}, rows); err != nil {
		b.Fatal(err)
	}
	var v trx.View
	r.e.Trx.OpenSnapshot(&v)
	defer r.e.Trx.CloseSnapshot(&v)
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(len(rows)*b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
	run("hash", func() { r.hash(tbl) })
	run("check", func() {
		if f := r.check(tbl, table.CheckPurged); f != nil {
			b.Fatal(f)
		}
	})
	run("export", func() {
		x := r.e.NewWorker().NewExporter(tbl, &v.Snapshot, nil)
		for buf, n := []byte(nil), 1; n > 0; {
			var err error
			if buf, n, err = x.Next(buf[:0], 1<<20); err != nil {
				b.Fatal(err)
			}
		}
	})
}

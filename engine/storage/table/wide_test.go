package table_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// wideTable has a primary key of bytes, a long one of which many indexes are made, five short columns
// for them, and long texts.
func wideTable(id uint64, indexes, texts int, building bool) *record.Table {
	bytesOf := func(n uint32) types.Type {
		return types.Type{Kind: types.KindVarBinary, Length: n, NotNull: true, Collation: types.CollationBinary}
	}
	def := &record.Table{ID: id, Schema: "test", Name: fmt.Sprint("wide", id), RowVersion: 1, NextColumn: 100,
		Columns: []record.Column{{ID: 1, Name: "k", Type: bytesOf(700), AddedIn: 1}, {ID: 2, Name: "u", Type: bytesOf(3000), AddedIn: 1}},
		Indexes: []record.Index{{ID: id * 100, Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}}}
	for i := range uint32(5) {
		def.Columns = append(def.Columns, record.Column{ID: 3 + i, Name: fmt.Sprint("c", i), Type: intType(false), AddedIn: 1})
	}
	for i := range uint32(texts) {
		def.Columns = append(def.Columns, record.Column{ID: 10 + i, Name: fmt.Sprint("t", i), AddedIn: 1,
			Type: types.Type{Kind: types.KindLongText, Collation: types.CollationUTF8MB4Bin}})
	}
	for i := range uint64(indexes) {
		def.Indexes = append(def.Indexes, record.Index{ID: id*100 + 1 + i, Name: fmt.Sprint("i", i), Building: building,
			Parts: []record.Part{{Column: 2}, {Column: 3 + uint32(i)%5, Desc: i >= 5}}})
	}
	return def
}

// wideRows is what should be in the table, by key.
type wideRows map[string][]types.Value

func (m wideRows) draw(rng *rand.Rand, texts int) []types.Value {
	fill := func(n int) types.Value {
		b := make([]byte, n)
		for i := range b {
			b[i] = 'a' + byte(rng.IntN(26))
		}
		return types.NewBytes(b)
	}
	row := []types.Value{fill(1 + rng.IntN(700)), fill([]int{0, 100, 1500, 2900, 3000}[rng.IntN(5)])}
	for range 5 {
		row = append(row, types.NewInt(rng.Int64N(3)))
	}
	for range texts {
		row = append(row, fill([]int{10, 200, 9000}[rng.IntN(3)]))
	}
	return row
}

func (m wideRows) any(rng *rand.Rand) string {
	keys := slices.Sorted(maps.Keys(m))
	return keys[rng.IntN(len(keys))]
}

// change does something to a random row.
func (m wideRows) change(s *session, tbl *table.Table, rng *rand.Rand, texts int) error {
	if len(m) == 0 || rng.IntN(4) == 0 {
		row := m.draw(rng, texts)
		m[string(row[0].Bytes())] = row
		return s.Insert(tbl, row)
	}
	k := m.any(rng)
	key := tbl.Schema.Keys[0].AppendKey(nil, m[k][0])
	if rng.IntN(2) == 0 {
		delete(m, k)
		return s.Delete(tbl, key)
	}
	other, row := m.draw(rng, texts), slices.Clone(m[k])
	var changes []record.Change
	for i := range row {
		if rng.IntN(3) == 0 || i == 1 && rng.IntN(2) == 0 {
			row[i] = other[i]
			changes = append(changes, record.Change{Column: i, Value: other[i]})
		}
	}
	delete(m, k)
	m[string(row[0].Bytes())] = row
	return s.Update(tbl, key, changes)
}

// expect compares the table, read by each index, with what should be there.
func (m wideRows) expect(s *session, tbl *table.Table, snap *trx.Snapshot, when string) {
	s.r.t.Helper()
	want := text(sorted(s.r.t, tbl, slices.Collect(maps.Values(m))), tbl)
	for i := range tbl.Schema.Keys {
		rows, err := s.scan(tbl, snap, table.Range{Index: i})
		if err != nil {
			s.r.t.Fatal(err)
		}
		if got := text(sorted(s.r.t, tbl, rows), tbl); got != want {
			s.r.t.Fatalf("%s: index %d has %d rows, %d are wanted", when, i, len(rows), len(m))
		}
	}
}

// TestWideRows adds indexes to rows whose entries have more bytes together than one undo record
// takes. What the build takes can be changed, deleted, taken back, read as it was, and loaded, by
// sessions and by who applies the log.
func TestWideRows(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 1))
		e := env.Real()
		fsys := simfile.New(e, seed)
		r := newRig(t, e, fsys, 512)
		indexes, texts := 1+rng.IntN(10), rng.IntN(40)
		tbl := r.create(wideTable(30, 0, texts, false))
		s, rows := r.session(), wideRows{}
		s.begin(trx.RepeatableRead)
		for range 12 {
			row := rows.draw(rng, texts)
			rows[string(row[0].Bytes())] = row
			do(t, s.Insert(tbl, row))
		}
		do(t, s.commit())

		at := tbl.Where
		at.Roots = maps.Clone(at.Roots)
		for i := range indexes {
			root, err := r.e.CreateIndex(tbl.Space(), 3001+uint64(i))
			do(t, err)
			at.Roots[3001+uint64(i)] = root
		}
		reopen := func(building bool) {
			schema, err := record.Prepare(wideTable(30, indexes, texts, building))
			do(t, err)
			tbl, err = r.e.Open(schema, at)
			do(t, err)
			r.tables[30] = tbl
		}
		reopen(true)
		s.begin(trx.RepeatableRead)
		for i := range indexes {
			_, err := s.FillIndex(tbl, i+1, rng.IntN(2) == 0, table.LoadOptions{FS: fsys})
			do(t, err)
		}
		do(t, s.commit())
		reopen(false)
		tbl.SetRows(int64(len(rows)))
		s.Applying = seed%2 == 1

		for range 6 {
			reader, before := r.session(), maps.Clone(rows)
			reader.begin(trx.RepeatableRead)
			before.expect(reader, tbl, reader.Trx().Snapshot(), "before")
			s.begin(trx.RepeatableRead)
			for range 1 + rng.IntN(8) {
				mark, kept := s.Savepoint(), maps.Clone(rows)
				do(t, rows.change(s, tbl, rng, texts))
				if rng.IntN(4) == 0 {
					do(t, s.RollbackTo(mark))
					rows = kept
				}
			}
			rows.expect(s, tbl, s.Trx().Snapshot(), "own changes")
			if rng.IntN(3) == 0 {
				s.rollback()
				rows = maps.Clone(before)
			} else {
				do(t, s.commit())
			}
			before.expect(reader, tbl, reader.Trx().Snapshot(), "older snapshot")
			do(t, reader.commit())
			if rng.IntN(2) == 0 {
				r.clean(tbl)
			}
		}
		s.begin(trx.RepeatableRead)
		rows.expect(s, tbl, s.Trx().Snapshot(), "at the end")
		do(t, s.commit())

		copied := r.create(wideTable(31, indexes, texts, false))
		do(t, r.load(copied, table.LoadOptions{FS: fsys}, sorted(t, copied, slices.Collect(maps.Values(rows)))))
		r.clean(copied)
		s.begin(trx.RepeatableRead)
		for k := range rows {
			do(t, s.Delete(tbl, tbl.Schema.Keys[0].AppendKey(nil, rows[k][0])))
			do(t, s.Delete(copied, copied.Schema.Keys[0].AppendKey(nil, rows[k][0])))
		}
		do(t, s.commit())
		wideRows{}.expect(s, tbl, nil, "after the last")
		r.clean(tbl)
		r.clean(copied)
		if n, m := tbl.Rows(), copied.Rows(); n != 0 || m != 0 {
			t.Errorf("seed %d: %d and %d rows are estimated", seed, n, m)
		}
		r.close()
		if t.Failed() {
			return
		}
	}
}

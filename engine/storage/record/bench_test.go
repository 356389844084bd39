package record

import (
	"testing"

	"github.com/triremedb/trireme/engine/types"
)

// benchSchema is a table like those of the usual OLTP benchmarks.
func benchSchema(t fataler) *Schema {
	varchar := types.Type{Kind: types.KindVarChar, Length: 60, Collation: types.CollationUTF8MB40900AI}
	s, err := Prepare(&Table{
		ID: 1, Schema: "s", Name: "t", RowVersion: 1, NextColumn: 9,
		Columns: []Column{
			{ID: 1, Name: "id", Type: types.Type{Kind: types.KindBigInt, NotNull: true}, AddedIn: 1},
			{ID: 2, Name: "k", Type: types.Type{Kind: types.KindInt, NotNull: true}, AddedIn: 1},
			{ID: 3, Name: "c", Type: varchar, AddedIn: 1},
			{ID: 4, Name: "pad", Type: varchar, AddedIn: 1},
			{ID: 5, Name: "price", Type: types.Type{Kind: types.KindDecimal, Precision: 12, Scale: 2}, AddedIn: 1},
			{ID: 6, Name: "at", Type: types.Type{Kind: types.KindDateTime, FSP: 6}, AddedIn: 1},
			{ID: 7, Name: "n", Type: types.Type{Kind: types.KindBigInt}, AddedIn: 1},
			{ID: 8, Name: "d", Type: types.Type{Kind: types.KindDouble}, AddedIn: 1},
		},
		Indexes: []Index{
			{ID: 1, Name: "PRIMARY", Unique: true, Parts: []Part{{Column: 1}}},
			{ID: 2, Name: "k", Parts: []Part{{Column: 2}}},
			{ID: 3, Name: "c", Parts: []Part{{Column: 3}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func benchRow(i int64) []types.Value {
	price := types.NewDecimal(mustDecimal(1234567))
	return []types.Value{
		types.NewInt(i), types.NewInt(i % 97), types.NewString("sbtest-0123456789-abcdefghij"), types.NewString("padding padding padding padding"),
		price, types.NewDateTime(types.MakeDateTime(2024, 2, 29, 1, 2, 3, 456789)), types.NewInt(-i), types.NewDouble(0.25),
	}
}

// benchRows are the rows of one leaf.
func benchRows(t fataler, s *Schema) []Row {
	var rows []Row
	for i := range int64(100) {
		key, val := encode(t, s, benchRow(i))
		rows = append(rows, open(t, s, key, val))
	}
	return rows
}

func perRow(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/value")
}

// BenchmarkColumn reads one column of a hundred rows, row by row and in one loop.
func BenchmarkColumn(b *testing.B) {
	s := benchSchema(b)
	rows := benchRows(b, s)
	for i := range s.Columns {
		vec := types.NewVector(&s.Columns[i].Type, len(rows))
		b.Run(s.Columns[i].Name+"/rows", func(b *testing.B) {
			for b.Loop() {
				vec.Reset()
				for j := range rows {
					if err := rows[j].AppendTo(vec, i); err != nil {
						b.Fatal(err)
					}
				}
			}
			perRow(b, len(rows))
		})
		b.Run(s.Columns[i].Name+"/column", func(b *testing.B) {
			for b.Loop() {
				vec.Reset()
				if _, err := AppendColumn(vec, rows, i); err != nil {
					b.Fatal(err)
				}
			}
			perRow(b, len(rows))
		})
	}
}

func BenchmarkRow(b *testing.B) {
	s := benchSchema(b)
	key, val := encode(b, s, benchRow(7))
	for b.Loop() {
		if _, err := s.Row(key, val); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendRow(b *testing.B) {
	s, row := benchSchema(b), benchRow(7)
	var dst []byte
	var err error
	for b.Loop() {
		if dst, err = s.AppendRow(dst[:0], row, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendUpdated(b *testing.B) {
	s := benchSchema(b)
	key, val := encode(b, s, benchRow(7))
	r := open(b, s, key, val)
	var dst []byte
	for name, changes := range map[string][]Change{
		"patched": {{Column: 1, Value: types.NewInt(8)}},
		"rebuilt": {{Column: 2, Value: types.NewString("short")}},
	} {
		b.Run(name, func(b *testing.B) {
			var err error
			for b.Loop() {
				if dst, err = s.AppendUpdated(dst[:0], r, changes); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendSecondary(b *testing.B) {
	s := benchSchema(b)
	key, val := encode(b, s, benchRow(7))
	r := open(b, s, key, val)
	var dst, arena []byte
	for _, k := range s.Keys[1:] {
		b.Run(k.Name, func(b *testing.B) {
			var err error
			for b.Loop() {
				if dst, _, _, arena, err = s.AppendSecondary(dst[:0], k, r, arena[:0]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDelta(b *testing.B) {
	s := benchSchema(b)
	key, val := encode(b, s, benchRow(7))
	r := open(b, s, key, val)
	for name, change := range map[string]Change{
		"number": {Column: 1, Value: types.NewInt(8)},
		"string": {Column: 2, Value: types.NewString("short")},
	} {
		newer, err := s.AppendUpdated(nil, r, []Change{change})
		if err != nil {
			b.Fatal(err)
		}
		delta := AppendDelta(nil, val, newer)
		var dst []byte
		b.Run(name+"/append", func(b *testing.B) {
			for b.Loop() {
				dst = AppendDelta(dst[:0], val, newer)
			}
			b.ReportMetric(float64(len(delta)), "bytes")
		})
		b.Run(name+"/apply", func(b *testing.B) {
			for b.Loop() {
				if dst, err = ApplyDelta(dst[:0], newer, delta); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

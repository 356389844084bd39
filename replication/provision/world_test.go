package provision

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
	"github.com/triremedb/trireme/engine/types/json"
)

const utf8ai = types.CollationUTF8MB40900AI

func col(name string, t types.Type) record.Column { return record.Column{Name: name, Type: t} }

func bigint() types.Type { return types.Type{Kind: types.KindBigInt, NotNull: true} }

// plainTable is (id BIGINT PRIMARY KEY, code VARCHAR(80), n INT, UNIQUE (code), KEY (n)).
func plainTable(schema, name string) *record.Table {
	return &record.Table{Schema: schema, Name: name, Collation: utf8ai,
		Columns: []record.Column{col("id", bigint()), col("code", types.Type{Kind: types.KindVarChar, Length: 80, Collation: utf8ai}),
			col("n", types.Type{Kind: types.KindInt})},
		Indexes: []record.Index{
			{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}},
			{Name: "code", Unique: true, Parts: []record.Part{{Column: 2}}},
			{Name: "n", Parts: []record.Part{{Column: 3, Desc: true}}},
		}}
}

func plainRow(id int64) []types.Value {
	return []types.Value{types.NewInt(id), types.NewString(fmt.Sprintf("code %d %s", id*7919%10007, strings.Repeat("x", int(id%50)))), types.NewInt(id % 17)}
}

// allTypes are columns of every kind.
func allTypes() (columns []record.Column) {
	for k := types.KindTinyInt; k <= types.KindJSON; k++ {
		ty := types.Type{Kind: k}
		switch {
		case k == types.KindDecimal:
			ty.Precision, ty.Scale = 40, 7
		case k == types.KindBit:
			ty.Length = 19
		case ty.IsTemporal() && k != types.KindDate:
			ty.FSP = 3
		case k == types.KindEnum || k == types.KindSet:
			ty.Collation, ty.Members = utf8ai, []string{"a", "b", "ß"}
		case ty.IsText():
			ty.Collation = utf8ai
			if !ty.IsLong() {
				ty.Length = 30
			}
		case ty.IsBlob(), k == types.KindVarBinary, k == types.KindJSON:
			ty.Collation = types.CollationBinary
			if !ty.IsLong() && k != types.KindJSON {
				ty.Length = 30
			}
		}
		columns = append(columns, col(strings.ReplaceAll(k.String(), " ", "_"), ty))
	}
	return columns
}

// anyValue makes up a value of a column.
func anyValue(t testing.TB, rng *rand.Rand, ty *types.Type) types.Value {
	if !ty.NotNull && rng.IntN(5) == 0 {
		return types.Null
	}
	size := rng.IntN(30)
	if ty.IsLong() && ty.MaxBytes() > 60000 && rng.IntN(20) == 0 {
		size = 3000 + rng.IntN(30000)
	}
	switch ty.Class() {
	case types.ClassInt:
		bits := map[types.Kind]int{types.KindTinyInt: 8, types.KindSmallInt: 16, types.KindMediumInt: 24, types.KindInt: 32, types.KindBigInt: 64}[ty.Kind]
		return types.NewInt(int64(rng.Uint64()) >> (64 - bits))
	case types.ClassUint:
		switch ty.Kind {
		case types.KindEnum:
			return types.NewUint(rng.Uint64N(4))
		case types.KindSet:
			return types.NewUint(rng.Uint64N(8))
		case types.KindYear:
			return types.NewUint(1901 + rng.Uint64N(200))
		}
		return types.NewUint(rng.Uint64N(1 << 19))
	case types.ClassFloat:
		return types.NewFloat(float32(rng.NormFloat64()))
	case types.ClassDouble:
		return types.NewDouble(rng.NormFloat64())
	case types.ClassDecimal:
		d, _, _ := decimal.FromUint128(rng.Uint64()>>40, rng.Uint64(), rng.IntN(7), rng.IntN(2) == 0).Fit(int(ty.Precision), int(ty.Scale))
		return types.NewDecimal(d)
	case types.ClassDate, types.ClassDateTime:
		d := types.MakeDateTime(rng.IntN(9999), 1+rng.IntN(12), 1+rng.IntN(28), 0, 0, 0, 0)
		if ty.Kind == types.KindDate {
			return types.NewDate(d)
		}
		d |= types.MakeDateTime(0, 0, 0, rng.IntN(24), rng.IntN(60), rng.IntN(60), rng.IntN(1_000_000))
		return types.NewDateTime(d.TruncateFraction(int(ty.FSP)))
	case types.ClassTimestamp:
		return types.NewTimestamp(types.Timestamp(rng.Int64N(int64(types.MaxTimestamp)/1_000_000) * 1_000_000))
	case types.ClassTime:
		return types.NewTime(types.DurationOfMicros(rng.Int64N(types.MaxDuration.Micros())).TruncateFraction(int(ty.FSP)))
	case types.ClassJSON:
		doc, err := json.Parse(nil, []byte(fmt.Sprintf(`{"k": [%d, "%s", null], "a": {"b": 1.5}}`, rng.IntN(100), strings.Repeat("j", size))))
		if err != nil {
			t.Fatal(err)
		}
		return types.NewJSON(doc)
	}
	if ty.Kind == types.KindBinary {
		b := make([]byte, ty.Length)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return types.NewBytes(b)
	}
	if ty.IsText() {
		return types.NewString(strings.Repeat([]string{"a", "Ä", "ß", "中"}[rng.IntN(4)], min(size, int(ty.MaxBytes())/8)) + fmt.Sprint(rng.IntN(1000)))
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return types.NewBytes(b)
}

// typesTable has a column of every kind and indexes on some, with NULLs and prefixes.
func typesTable(schema string) *record.Table {
	def := &record.Table{Schema: schema, Name: "types", Collation: utf8ai, Comment: "all of them", Options: map[string]string{"x": "y", "a": ""},
		Columns: append([]record.Column{col("id", bigint())}, allTypes()...),
		Indexes: []record.Index{{Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}}}
	for i := range def.Columns {
		c := &def.Columns[i]
		switch c.Type.Kind {
		case types.KindDecimal, types.KindVarChar, types.KindDateTime, types.KindEnum:
			def.Indexes = append(def.Indexes, record.Index{Name: "i_" + c.Name, Parts: []record.Part{{Column: uint32(i + 1)}}})
		case types.KindLongText, types.KindBlob:
			def.Indexes = append(def.Indexes, record.Index{Name: "p_" + c.Name, Parts: []record.Part{{Column: uint32(i + 1), Prefix: 10}}})
		}
	}
	return def
}

// fill inserts rows made by row, in a few transactions.
func fill(t testing.TB, eng *storage.Engine, schema, name string, n int, row func(i int, tbl *table.Table) []types.Value) {
	t.Helper()
	with(t, eng, schema, name, func(tbl *table.Table) {
		for from := 0; from < n; from += 500 {
			do(t, eng, func(w *table.Worker) error {
				for i := from; i < min(n, from+500); i++ {
					if err := w.Insert(tbl, row(i, tbl)); err != nil {
						return fmt.Errorf("row %d: %w", i, err)
					}
				}
				return nil
			})
		}
	})
}

func create(t testing.TB, eng *storage.Engine, def *record.Table) (made *record.Table) {
	t.Helper()
	do(t, eng, func(w *table.Worker) (err error) {
		made, err = eng.Catalog.CreateTable(w, def)
		return err
	})
	return made
}

func createSchema(t testing.TB, eng *storage.Engine, name string) {
	t.Helper()
	do(t, eng, func(w *table.Worker) error {
		_, err := eng.Catalog.CreateSchema(w, dict.Schema{Name: name, Collation: utf8ai, Options: map[string]string{"made": "by a test"}})
		return err
	})
}

// fillWorld makes tables of every sort.
func fillWorld(t testing.TB, eng *storage.Engine, scale int) {
	t.Helper()
	createSchema(t, eng, "db")
	createSchema(t, eng, "Ünïcode")
	rng := rand.New(rand.NewPCG(1, 2))

	create(t, eng, typesTable("db"))
	fill(t, eng, "db", "types", 3*scale, func(i int, tbl *table.Table) []types.Value {
		row := []types.Value{types.NewInt(int64(i)*3 - 50)}
		for c := 1; c < len(tbl.Schema.Columns); c++ {
			row = append(row, anyValue(t, rng, &tbl.Schema.Columns[c].Type))
		}
		return row
	})
	fillKeys(t, eng, scale)
	fillHistory(t, eng, scale)
	create(t, eng, plainTable("db", "empty"))
	for i := range 30 {
		do(t, eng, func(w *table.Worker) error {
			return eng.Catalog.PutState(w, dict.Replicated, []byte(fmt.Sprintf("token/%02d", i)), []byte(strings.Repeat("v", i*40)))
		})
	}
	do(t, eng, func(w *table.Worker) error { return eng.Catalog.DeleteState(w, dict.Replicated, []byte("token/07")) })
	do(t, eng, func(w *table.Worker) error {
		return eng.Catalog.PutState(w, dict.Local, []byte("mine"), []byte("not to be sent"))
	})
	dropped := create(t, eng, plainTable("db", "dropped")) // its numbers are used up
	do(t, eng, func(w *table.Worker) error { _, err := eng.Catalog.DropTable(w, "db", dropped.Name); return err })
}

// fillKeys makes a table without a primary key, one with AUTO_INCREMENT, and one with a
// foreign key.
func fillKeys(t testing.TB, eng *storage.Engine, scale int) {
	t.Helper()
	hidden := plainTable("db", "hidden")
	hidden.Indexes = hidden.Indexes[2:]
	create(t, eng, hidden)
	fill(t, eng, "db", "hidden", 10*scale, func(i int, tbl *table.Table) []types.Value {
		return append(plainRow(int64(i%5)), types.NewUint(tbl.NextRowID()))
	})
	with(t, eng, "db", "hidden", func(tbl *table.Table) {
		do(t, eng, func(w *table.Worker) error { // the last rows go: their ids are not used again
			for i := range 3 {
				if err := w.Delete(tbl, tbl.Schema.Keys[0].AppendKey(nil, types.NewUint(uint64(10*scale-i)))); err != nil {
					return err
				}
			}
			return nil
		})
	})
	auto := plainTable("Ünïcode", "äuto")
	auto.Columns[0].AutoIncrement = true
	auto.Columns[0].Type.Unsigned = true
	auto.ForeignKeys = []record.ForeignKey{{Name: "fk", Columns: []uint32{3}, RefSchema: "db", RefTable: "parent", RefColumns: []string{"id"}, OnDelete: 2, OnUpdate: 1}}
	create(t, eng, auto)
	fill(t, eng, "Ünïcode", "äuto", 5*scale, func(i int, tbl *table.Table) []types.Value {
		row := plainRow(int64(i))
		row[0] = types.NewUint(tbl.ReserveAuto(1))
		return row
	})
	with(t, eng, "Ünïcode", "äuto", func(tbl *table.Table) {
		do(t, eng, func(w *table.Worker) error {
			return w.Delete(tbl, tbl.Schema.Keys[0].AppendKey(nil, types.NewUint(uint64(5*scale))))
		})
	})
}

// fillHistory makes a table whose columns have changed, with an index that is being
// built over rows that do not fit it.
func fillHistory(t testing.TB, eng *storage.Engine, scale int) {
	t.Helper()
	create(t, eng, plainTable("db", "parent"))
	made := create(t, eng, plainTable("db", "history"))
	fill(t, eng, "db", "history", 10*scale, func(i int, _ *table.Table) []types.Value { return plainRow(int64(i)) })
	do(t, eng, func(w *table.Worker) error {
		def := *made
		def.Columns = append([]record.Column(nil), made.Columns...)
		def.RowVersion++
		gone := def.Columns[1]
		gone.DroppedIn = def.RowVersion
		added := record.Column{ID: def.NextColumn, Name: "added", Type: types.Type{Kind: types.KindInt, NotNull: true}, AddedIn: def.RowVersion,
			HasDefault: true, Default: "42"}
		added.Initial = types.AppendStored(nil, types.NewInt(42), &added.Type)
		def.NextColumn++
		def.Columns = []record.Column{def.Columns[0], added, def.Columns[2], gone}
		def.Indexes = []record.Index{made.Indexes[0], made.Indexes[2]}
		_, err := eng.Catalog.ReplaceTable(w, &def)
		return err
	})
	fill(t, eng, "db", "history", 5*scale, func(i int, _ *table.Table) []types.Value {
		return []types.Value{types.NewInt(int64(-1 - i)), types.NewInt(int64(i % 3)), types.Null, types.Null}
	})
	do(t, eng, func(w *table.Worker) error {
		_, err := eng.Catalog.AddIndex(w, made.ID, record.Index{Name: "building", Unique: true, Parts: []record.Part{{Column: 4}}})
		return err
	})
}

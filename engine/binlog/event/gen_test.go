package event

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation"
	"github.com/triremedb/trireme/engine/types/decimal"
	"github.com/triremedb/trireme/engine/types/json"
)

// tableOf makes a table whose clustered index is on the columns with the names.
func tableOf(id uint64, columns []record.Column, key ...string) *record.Table {
	t := &record.Table{ID: id, Schema: "shop", Name: fmt.Sprintf("t%d", id), Version: 1, RowVersion: 1}
	for i := range columns {
		c := columns[i]
		c.ID, c.AddedIn = uint32(i+1), record.FirstRowVersion
		t.Columns = append(t.Columns, c)
	}
	t.NextColumn = uint32(len(columns) + 1)
	ix := record.Index{Name: "PRIMARY", Unique: true}
	for _, k := range key {
		ix.Parts = append(ix.Parts, record.Part{Column: t.ColumnNamed(k).ID})
	}
	t.Indexes = []record.Index{ix}
	return t
}

func col(name string, t types.Type) record.Column { return record.Column{Name: name, Type: t} }

func members(n int, format string) []string {
	m := make([]string, n)
	for i := range m {
		m[i] = fmt.Sprintf(format, i+1)
	}
	return m
}

// allTypes is every kind of type in every width, with its extremes.
func allTypes() []types.Type {
	var all []types.Type
	for k := types.KindTinyInt; k <= types.KindBigInt; k++ {
		all = append(all, types.Type{Kind: k}, types.Type{Kind: k, Unsigned: true})
	}
	for _, d := range [][2]uint8{{1, 0}, {5, 2}, {9, 9}, {18, 0}, {19, 10}, {38, 30}, {65, 0}, {65, 30}} {
		all = append(all, types.Type{Kind: types.KindDecimal, Precision: d[0], Scale: d[1]})
	}
	all = append(all, types.Type{Kind: types.KindDecimal, Precision: 10, Scale: 2, Unsigned: true},
		types.Type{Kind: types.KindFloat}, types.Type{Kind: types.KindDouble}, types.Type{Kind: types.KindYear}, types.Type{Kind: types.KindDate})
	for _, n := range []uint32{1, 7, 8, 9, 16, 33, 64} {
		all = append(all, types.Type{Kind: types.KindBit, Length: n})
	}
	for _, k := range []types.Kind{types.KindTime, types.KindDateTime, types.KindTimestamp} {
		for fsp := range uint8(types.MaxFSP + 1) {
			all = append(all, types.Type{Kind: k, FSP: fsp})
		}
	}
	for _, coll := range []types.CollationID{types.CollationUTF8MB40900AI, types.CollationLatin1Swedish, types.CollationASCIIGeneral} {
		for _, n := range []uint32{0, 1, 63, 64, 255} {
			all = append(all, types.Type{Kind: types.KindChar, Length: n, Collation: coll})
		}
		for _, n := range []uint32{1, 63, 64, 255, 256, 1000} {
			all = append(all, types.Type{Kind: types.KindVarChar, Length: n, Collation: coll})
		}
		for k := types.KindTinyText; k <= types.KindLongText; k++ {
			all = append(all, types.Type{Kind: k, Collation: coll})
		}
	}
	all = append(all, types.Type{Kind: types.KindVarChar, Length: 20000, Collation: types.CollationUTF8MB40900AI})
	for _, n := range []uint32{1, 255} {
		all = append(all, types.Type{Kind: types.KindBinary, Length: n, Collation: types.CollationBinary})
	}
	for _, n := range []uint32{1, 255, 256, 65535} {
		all = append(all, types.Type{Kind: types.KindVarBinary, Length: n, Collation: types.CollationBinary})
	}
	for k := types.KindTinyBlob; k <= types.KindLongBlob; k++ {
		all = append(all, types.Type{Kind: k, Collation: types.CollationBinary})
	}
	for _, n := range []int{1, 255, 256} {
		all = append(all, types.Type{Kind: types.KindEnum, Members: members(n, "e%d"), Collation: types.CollationUTF8MB40900AI})
	}
	for _, n := range []int{1, 8, 9, 17, 25, 33, 64} {
		all = append(all, types.Type{Kind: types.KindSet, Members: members(n, "s%d"), Collation: types.CollationLatin1Swedish})
	}
	return append(all, types.Type{Kind: types.KindJSON, Collation: types.CollationBinary})
}

// wideTable has a column of every type, some of them NOT NULL, and a key of two.
func wideTable(id uint64, rng *rand.Rand) *record.Table {
	columns := []record.Column{col("id", types.Type{Kind: types.KindBigInt, NotNull: true})}
	for i, t := range allTypes() {
		t.NotNull = rng != nil && rng.IntN(3) == 0
		columns = append(columns, col(fmt.Sprintf("c%d", i), t))
	}
	columns = append(columns, col("code", types.Type{Kind: types.KindVarChar, Length: 10, NotNull: true, Collation: types.CollationUTF8MB4Bin}))
	return tableOf(id, columns, "id", "code")
}

func randomRow(rng *rand.Rand, t *record.Table) []types.Value {
	row := make([]types.Value, len(t.Columns))
	for i := range t.Columns {
		if t.Columns[i].Type.NotNull || rng.IntN(4) > 0 {
			row[i] = randomValue(rng, &t.Columns[i].Type)
		}
	}
	return row
}

// randomValue is a value of the type; every third time one of its extremes.
func randomValue(rng *rand.Rand, t *types.Type) types.Value {
	if ends := extremes(t); rng.IntN(3) == 0 {
		return ends[rng.IntN(len(ends))]
	}
	u := rng.Uint64()
	switch t.Kind {
	case types.KindTinyInt, types.KindSmallInt, types.KindMediumInt, types.KindInt, types.KindBigInt:
		size, _ := types.FixedSize(t)
		if t.Unsigned {
			return types.NewUint(u >> (64 - 8*size))
		}
		return types.NewInt(int64(u) >> (64 - 8*size))
	case types.KindDecimal:
		d := decimal.Max(int(t.Precision), int(t.Scale))
		for range rng.IntN(5) {
			d, _ = decimal.Quo(d, decimal.FromUint64(uint64(rng.IntN(1e9)+1)), int(t.Scale))
		}
		if !t.Unsigned && !d.IsZero() && u&1 == 0 {
			d = d.Neg()
		}
		return types.NewDecimal(d)
	case types.KindFloat:
		return types.NewFloat(float32(rng.NormFloat64()))
	case types.KindDouble:
		return types.NewDouble(rng.NormFloat64() * math.Pow10(rng.IntN(200)-100))
	case types.KindBit:
		return types.NewUint(u >> (64 - t.Length))
	case types.KindYear:
		return types.NewUint(1901 + u%255)
	case types.KindDate:
		return types.NewDate(types.MakeDateTime(rng.IntN(10000), rng.IntN(13), rng.IntN(32), 0, 0, 0, 0))
	case types.KindDateTime:
		d := types.MakeDateTime(rng.IntN(10000), rng.IntN(13), rng.IntN(32), rng.IntN(24), rng.IntN(60), rng.IntN(60), rng.IntN(1e6))
		return types.NewDateTime(d.TruncateFraction(int(t.FSP)))
	case types.KindTime:
		d := types.MakeDuration(u&1 == 0, rng.IntN(838), rng.IntN(60), rng.IntN(60), rng.IntN(1e6))
		return types.NewTime(d.TruncateFraction(int(t.FSP)))
	case types.KindTimestamp:
		us := rng.Int64N(int64(types.MaxTimestamp))
		return types.NewTimestamp(types.Timestamp(us - us%int64(math.Pow10(6-int(t.FSP)))))
	case types.KindEnum:
		return types.NewUint(u % uint64(len(t.Members)+1))
	case types.KindSet:
		return types.NewUint(u >> (64 - len(t.Members)))
	case types.KindJSON:
		return types.NewJSON(randomDocument(rng, 3))
	}
	return types.NewBytes(randomText(rng, t, rng.IntN(40)))
}

func randomText(rng *rand.Rand, t *types.Type, n int) []byte {
	var s []byte
	if t.Kind == types.KindChar || t.Kind == types.KindVarChar || t.Kind == types.KindBinary || t.Kind == types.KindVarBinary {
		n = min(n, int(t.Length))
	}
	for range n {
		switch cs := t.Charset(); {
		case t.IsBlob():
			s = append(s, byte(rng.Uint32()))
		case cs == types.CharsetUTF8MB4 && rng.IntN(3) == 0:
			s = append(s, [...]string{"é", "ß", "日", "🙂"}[rng.IntN(4)]...)
		case cs == types.CharsetLatin1 && rng.IntN(3) == 0:
			s = append(s, byte(0xa1+rng.IntN(90)))
		default:
			s = append(s, byte('!'+rng.IntN(90)))
		}
	}
	if t.Kind == types.KindBinary {
		s = append(s, make([]byte, int(t.Length)-len(s))...)
	}
	return s[:min(int64(len(s)), t.MaxBytes())]
}

func randomDocument(rng *rand.Rand, depth int) []byte {
	var b json.Builder
	buildRandom(rng, &b, depth)
	doc, err := b.Finish(nil)
	if err != nil {
		panic(err)
	}
	return doc
}

func buildRandom(rng *rand.Rand, b *json.Builder, depth int) {
	kinds := 12
	if depth == 0 {
		kinds = 10
	}
	switch rng.IntN(kinds) {
	case 0:
		b.Null()
	case 1:
		b.Bool(rng.IntN(2) == 0)
	case 2:
		b.Int(int64(rng.Uint64()) >> rng.IntN(64))
	case 3:
		b.Uint(rng.Uint64() >> rng.IntN(64))
	case 4:
		b.Double(rng.NormFloat64())
	case 5:
		b.Decimal(decimal.FromUnscaled(rng.Int64()>>rng.IntN(60), rng.IntN(10)))
	case 6:
		b.DateTime(json.FieldDateTime, types.MakeDateTime(2024, 2, 29, 23, 59, 58, 123456))
	case 7:
		b.Time(types.MakeDuration(rng.IntN(2) == 0, 10, 20, 30, 400001))
	case 8:
		b.DateTime(json.FieldDate, types.MakeDateTime(1999, 12, 31, 0, 0, 0, 0))
	case 9:
		b.String([]byte("näme \"x\"\n"))
	case 10:
		b.BeginArray()
		for range rng.IntN(4) {
			buildRandom(rng, b, depth-1)
		}
		b.EndArray()
	case 11:
		b.BeginObject()
		for range rng.IntN(4) {
			b.Key([]byte(fmt.Sprintf("k%d", rng.IntN(100))))
			buildRandom(rng, b, depth-1)
		}
		b.EndObject()
	}
}

var documents = [...]types.Value{largeDocument(false), largeDocument(true), opaqueDocument()}

// largeDocument is an array or object in the form for more than 64 KiB, with one in
// the form for less in it.
func largeDocument(object bool) types.Value {
	var b json.Builder
	if object {
		b.BeginObject()
	} else {
		b.BeginArray()
	}
	for i := range 9000 {
		if object {
			b.Key(fmt.Appendf(nil, "k%d", i))
		}
		switch i % 3 {
		case 0:
			b.Int(int64(i) * 1e9)
		case 1:
			b.Int(int64(i) * 1e5)
		default:
			b.BeginArray()
			b.String([]byte("x"))
			b.EndArray()
		}
	}
	if object {
		b.EndObject()
	} else {
		b.EndArray()
	}
	doc, err := b.Finish(nil)
	if err != nil {
		panic(err)
	}
	return types.NewJSON(doc)
}

// opaqueDocument has values of column types that JSON lacks.
func opaqueDocument() types.Value {
	var b json.Builder
	b.BeginArray()
	b.Opaque(json.FieldBlob, []byte{0, 1, 254, 255})
	b.Opaque(json.FieldBit, []byte{5})
	b.Decimal(decimal.Max(65, 30).Neg())
	b.EndArray()
	doc, err := b.Finish(nil)
	if err != nil {
		panic(err)
	}
	return types.NewJSON(doc)
}

// extremes are the least and greatest values of the type, zero, and what else its
// form has a special place for.
func extremes(t *types.Type) []types.Value {
	switch t.Kind {
	case types.KindTinyInt, types.KindSmallInt, types.KindMediumInt, types.KindInt, types.KindBigInt:
		size, _ := types.FixedSize(t)
		if t.Unsigned {
			return []types.Value{types.NewUint(0), types.NewUint(1<<(8*size) - 1), types.NewUint(1 << (8*size - 1))}
		}
		return []types.Value{types.NewInt(0), types.NewInt(-1), types.NewInt(-1 << (8*size - 1)), types.NewInt(1<<(8*size-1) - 1)}
	case types.KindDecimal:
		d := decimal.Max(int(t.Precision), int(t.Scale))
		zero, _ := decimal.FromInt64(0).Round(int(t.Scale))
		values := []types.Value{types.NewDecimal(zero), types.NewDecimal(d)}
		if !t.Unsigned {
			values = append(values, types.NewDecimal(d.Neg()))
		}
		return values
	case types.KindFloat:
		return []types.Value{types.NewFloat(0), types.NewFloat(math.MaxFloat32), types.NewFloat(-math.MaxFloat32), types.NewFloat(math.SmallestNonzeroFloat32)}
	case types.KindDouble:
		return []types.Value{types.NewDouble(0), types.NewDouble(math.Copysign(0, -1)), types.NewDouble(math.MaxFloat64), types.NewDouble(-math.SmallestNonzeroFloat64)}
	case types.KindBit:
		return []types.Value{types.NewUint(0), types.NewUint(1), types.NewUint(math.MaxUint64 >> (64 - t.Length))}
	case types.KindYear:
		return []types.Value{types.NewUint(0), types.NewUint(1901), types.NewUint(2155)}
	case types.KindDate:
		return []types.Value{types.NewDate(0), types.NewDate(types.MakeDateTime(1000, 1, 1, 0, 0, 0, 0)), types.NewDate(types.MaxDateTime.Truncate())}
	case types.KindDateTime:
		return []types.Value{types.NewDateTime(0), types.NewDateTime(types.MaxDateTime.TruncateFraction(int(t.FSP)))}
	case types.KindTime:
		small := types.MakeDuration(true, 0, 0, 0, 999_999).TruncateFraction(int(t.FSP))
		return []types.Value{types.NewTime(0), types.NewTime(types.MaxDuration), types.NewTime(-types.MaxDuration), types.NewTime(small)}
	case types.KindTimestamp:
		last := int64(types.MaxTimestamp)
		return []types.Value{types.NewTimestamp(0), types.NewTimestamp(types.MinTimestamp), types.NewTimestamp(types.Timestamp(last - last%int64(math.Pow10(6-int(t.FSP)))))}
	case types.KindEnum:
		return []types.Value{types.NewUint(0), types.NewUint(1), types.NewUint(uint64(len(t.Members)))}
	case types.KindSet:
		return []types.Value{types.NewUint(0), types.NewUint(1), types.NewUint(math.MaxUint64 >> (64 - len(t.Members)))}
	case types.KindJSON:
		return []types.Value{types.NewJSON([]byte{4, 0}), documents[0], documents[1], documents[2]}
	}
	n := int(min(t.MaxBytes(), 70000)) / t.Charset().MaxLen()
	if t.Kind == types.KindBinary {
		zeros := make([]byte, t.Length)
		return []types.Value{types.NewBytes(zeros), types.NewBytes(append(make([]byte, t.Length-1), 1))}
	}
	full := make([]byte, 0, n)
	for range n {
		full = append(full, 'x')
	}
	return []types.Value{types.NewString(""), types.NewBytes(full)}
}

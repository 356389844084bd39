package txntest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/triremedb/trireme/engine/types"
	_ "github.com/triremedb/trireme/engine/types/collation" // collations of columns
	"github.com/triremedb/trireme/engine/types/decimal"
	"github.com/triremedb/trireme/engine/types/json"
)

// RandomValue is a value of the type, not NULL; now and then one of its extremes.
func RandomValue(rng *rand.Rand, t *types.Type) types.Value {
	if ends := extremes(t); rng.IntN(8) == 0 {
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
		b.Time(types.MakeDuration(rng.IntN(2) == 0, 10, 20, 30, 400000))
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
		return []types.Value{types.NewJSON([]byte{4, 0})}
	}
	n := int(min(t.MaxBytes(), 12000)) / t.Charset().MaxLen()
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

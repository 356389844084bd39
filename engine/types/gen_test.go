package types

import (
	"bytes"
	"math"

	"github.com/triremedb/trireme/engine/types/decimal"
	"pgregory.net/rapid"
)

// Collations of the tests: ASCII letters without case, and Latin-1 bytes.
const (
	testCI     CollationID = 2000
	testLatin1 CollationID = 2001
	testASCII  CollationID = 2002
	testBin4   CollationID = 2003
)

type testCollation struct {
	id   CollationID
	name string
	cs   Charset
	fold bool
}

func init() {
	RegisterCollation(testCollation{testCI, "test_ci", CharsetUTF8MB4, true})
	RegisterCollation(testCollation{testLatin1, "test_latin1", CharsetLatin1, false})
	RegisterCollation(testCollation{testASCII, "test_ascii", CharsetASCII, false})
	RegisterCollation(testCollation{testBin4, "test_bin4", CharsetUTF8MB4, false})
}

func (c testCollation) ID() CollationID  { return c.id }
func (c testCollation) Name() string     { return c.name }
func (c testCollation) Charset() Charset { return c.cs }
func (c testCollation) PadSpace() bool   { return false }
func (c testCollation) Lossless() bool   { return !c.fold }
func (c testCollation) MaxKeyLen(n int) int {
	return n
}

func (c testCollation) AppendSortKey(dst, s []byte) []byte {
	for _, b := range s {
		if c.fold && b-'A' < 26 {
			b |= 0x20
		}
		dst = append(dst, b)
	}
	return dst
}

func (c testCollation) Compare(a, b []byte) int {
	return bytes.Compare(c.AppendSortKey(nil, a), c.AppendSortKey(nil, b))
}

func (c testCollation) Hash(seed uint64, s []byte) uint64 {
	return HashBytes(seed, c.AppendSortKey(nil, s))
}

// columnTypes draws valid types of every kind but JSON.
func columnTypes() *rapid.Generator[*Type] {
	return rapid.Custom(func(t *rapid.T) *Type {
		kind := Kind(rapid.IntRange(int(KindTinyInt), int(KindSet)).Draw(t, "kind"))
		ty := &Type{Kind: kind, NotNull: rapid.Bool().Draw(t, "not null"), Unsigned: rapid.Bool().Draw(t, "unsigned")}
		switch {
		case kind == KindDecimal:
			ty.Precision = uint8(rapid.IntRange(1, 65).Draw(t, "precision"))
			ty.Scale = uint8(rapid.IntRange(0, min(int(ty.Precision), 30)).Draw(t, "scale"))
		case kind == KindBit:
			ty.Length = uint32(rapid.IntRange(1, 64).Draw(t, "bits"))
		case ty.IsTemporal() && kind != KindDate:
			ty.FSP = uint8(rapid.IntRange(0, 6).Draw(t, "fsp"))
		case kind == KindEnum || kind == KindSet:
			limit := map[Kind]int{KindEnum: 300, KindSet: 64}[kind]
			ty.Collation = testCI
			for i := range rapid.IntRange(1, limit).Draw(t, "members") {
				ty.Members = append(ty.Members, "m"+string(rune('a'+i%26))+string(rune('0'+i/26)))
			}
		case ty.IsText():
			ty.Collation = rapid.SampledFrom([]CollationID{testCI, testLatin1, testBin4}).Draw(t, "collation")
			ty.Length = 20
		case ty.IsBlob():
			ty.Collation = CollationBinary
			ty.Length = uint32(rapid.IntRange(0, 20).Draw(t, "length"))
		}
		if ty.IsLong() {
			ty.Length = 0
		}
		if err := ty.Validate(); err != nil {
			t.Fatalf("%+v: %v", ty, err)
		}
		return ty
	})
}

// strings are short and full of the bytes that matter to escaping.
func drawBytes(t *rapid.T, limit int, text bool) []byte {
	alphabet := []byte{0, 0, 1, 1, 2, 'a', 'A', 'b', ' ', 0xfe, 0xff}
	if text {
		alphabet = []byte{0, 1, 2, 'a', 'A', 'b', ' ', '~'}
	}
	return rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, limit).Draw(t, "bytes")
}

// drawValue draws a valid value of ty, NULL where allowed.
func drawValue(t *rapid.T, ty *Type) Value {
	if !ty.NotNull && rapid.IntRange(0, 7).Draw(t, "null") == 0 {
		return Null
	}
	switch ty.Class() {
	case ClassInt:
		lo, hi := intLimits(ty)
		return NewInt(rapid.Int64Range(lo, int64(hi)).Draw(t, "int"))
	case ClassUint:
		return NewUint(drawUint(t, ty))
	case ClassFloat:
		return NewFloat(rapid.OneOf(rapid.Float32Range(-math.MaxFloat32, math.MaxFloat32),
			rapid.Just(float32(math.Copysign(0, -1)))).Draw(t, "float"))
	case ClassDouble:
		return NewDouble(rapid.OneOf(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64),
			rapid.Just(math.Copysign(0, -1))).Draw(t, "double"))
	case ClassDecimal:
		hi, lo := rapid.Uint64().Draw(t, "hi"), rapid.Uint64().Draw(t, "lo")
		d := decimal.FromUint128(hi>>rapid.IntRange(0, 64).Draw(t, "shift"), lo, rapid.IntRange(0, 38).Draw(t, "s"), rapid.Bool().Draw(t, "neg"))
		if rapid.Bool().Draw(t, "wide") {
			d, _ = decimal.Mul(d, decimal.FromUint64(1e18))
		}
		d, _, _ = d.Fit(int(ty.Precision), int(ty.Scale))
		return NewDecimal(d)
	case ClassDate, ClassDateTime:
		return drawDateTime(t, ty)
	case ClassTimestamp:
		us := rapid.Int64Range(0, int64(MaxTimestamp)).Draw(t, "instant")
		return NewTimestamp(Timestamp(us - us%int64(fspUnit[ty.FSP])))
	case ClassTime:
		us := rapid.Int64Range(-MaxDuration.Micros(), MaxDuration.Micros()).Draw(t, "time")
		return NewTime(DurationOfMicros(us).TruncateFraction(int(ty.FSP)))
	}
	limit := 20
	if !ty.IsText() && !ty.IsLong() {
		limit = int(ty.Length)
	}
	s := drawBytes(t, limit, ty.IsText())
	if ty.Kind == KindBinary {
		s = append(s, make([]byte, int(ty.Length)-len(s))...)
	}
	return NewBytes(s)
}

func drawUint(t *rapid.T, ty *Type) uint64 {
	switch ty.Kind {
	case KindBit:
		return rapid.Uint64Range(0, 1<<ty.Length-1).Draw(t, "bits")
	case KindYear:
		if y := rapid.Uint64Range(1900, 2155).Draw(t, "year"); y > 1900 {
			return y
		}
		return 0
	case KindEnum:
		return rapid.Uint64Range(0, uint64(len(ty.Members))).Draw(t, "member")
	case KindSet:
		return rapid.Uint64Range(0, 1<<len(ty.Members)-1).Draw(t, "members")
	}
	_, hi := intLimits(ty)
	return rapid.Uint64Range(0, hi).Draw(t, "uint")
}

func drawDateTime(t *rapid.T, ty *Type) Value {
	date := MakeDateTime(rapid.IntRange(0, 9999).Draw(t, "y"), rapid.IntRange(0, 12).Draw(t, "m"), rapid.IntRange(0, 31).Draw(t, "d"), 0, 0, 0, 0)
	if ty.Kind == KindDate {
		return NewDate(date)
	}
	clock := MakeDateTime(0, 0, 0, rapid.IntRange(0, 23).Draw(t, "h"), rapid.IntRange(0, 59).Draw(t, "mi"),
		rapid.IntRange(0, 59).Draw(t, "s"), rapid.IntRange(0, 999_999).Draw(t, "us"))
	return NewDateTime((date | clock).TruncateFraction(int(ty.FSP)))
}

// same reports whether two values are identical, not only equal.
func same(a, b Value) bool {
	switch {
	case a.Class() != b.Class():
		return false
	case a.Class() == ClassBytes || a.Class() == ClassJSON:
		return bytes.Equal(a.Bytes(), b.Bytes())
	case a.Class() == ClassDecimal:
		return a.Decimal() == b.Decimal()
	}
	return a.a == b.a
}

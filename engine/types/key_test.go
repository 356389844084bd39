package types

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func sign(n int) int { return max(-1, min(1, n)) }

func TestKeyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ty := columnTypes().Draw(t, "type")
		a, b := drawValue(t, ty), drawValue(t, ty)
		want := Compare(a, b, ty)
		if got := sign(bytes.Compare(AppendKey(nil, a, ty, false, 0), AppendKey(nil, b, ty, false, 0))); got != want {
			t.Fatalf("%s: ascending keys compare %d, values %d", ty.Kind, got, want)
		}
		if got := sign(bytes.Compare(AppendKey(nil, a, ty, true, 0), AppendKey(nil, b, ty, true, 0))); got != -want {
			t.Fatalf("%s: descending keys compare %d, values %d", ty.Kind, got, want)
		}
		n, desc := rapid.IntRange(1, 20).Draw(t, "head"), rapid.Bool().Draw(t, "desc")
		head, whole := AppendKeyHead([]byte("before"), a, ty, desc, n)
		head, all := head[len("before"):], AppendKey(nil, a, ty, desc, 0)
		if !bytes.HasPrefix(all, head) || whole != (len(head) == len(all)) || !whole && len(head) <= n {
			t.Fatalf("%s: the head of the key %x is %x, whole: %v", ty.Kind, all, head, whole)
		}
		if want == 0 && Hash(7, a, ty) != Hash(7, b, ty) {
			t.Fatalf("%s: equal values hash differently", ty.Kind)
		}
		if Compare(b, a, ty) != -want {
			t.Fatalf("%s: Compare is not antisymmetric", ty.Kind)
		}
	})
}

// TestCompositeKeyOrder checks that parts do not run into each other, for
// strings above all: ("a","b") against ("ab","").
func TestCompositeKeyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.IntRange(1, 4).Draw(t, "parts")
		var ka, kb []byte
		want := 0
		for range parts {
			ty := columnTypes().Draw(t, "type")
			desc := rapid.Bool().Draw(t, "desc")
			a := drawValue(t, ty)
			b := a
			if rapid.IntRange(0, 2).Draw(t, "differ") == 0 {
				b = drawValue(t, ty)
			}
			ka, kb = AppendKey(ka, a, ty, desc, 0), AppendKey(kb, b, ty, desc, 0)
			if c := Compare(a, b, ty); want == 0 && desc {
				want = -c
			} else if want == 0 {
				want = c
			}
		}
		if got := sign(bytes.Compare(ka, kb)); got != want {
			t.Fatalf("keys compare %d, values %d: %x %x", got, want, ka, kb)
		}
	})
}

func TestKeySkipAndDecode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ty := columnTypes().Draw(t, "type")
		desc := rapid.Bool().Draw(t, "desc")
		prefix := 0
		if ty.IsText() || ty.IsBlob() {
			prefix = rapid.SampledFrom([]int{0, 0, 1, 5, 30}).Draw(t, "prefix")
		}
		v := drawValue(t, ty)
		key := AppendKey([]byte("x"), v, ty, desc, prefix)[1:]
		if len(key) > MaxKeyLen(ty, prefix) {
			t.Fatalf("%s: key of %d bytes, at most %d", ty.Kind, len(key), MaxKeyLen(ty, prefix))
		}
		tail := drawBytes(t, 3, false)
		whole := append(bytes.Clone(key), tail...)
		if n, err := SkipKey(whole, ty, desc, prefix); err != nil || n != len(key) {
			t.Fatalf("%s: SkipKey = %d, %v, want %d", ty.Kind, n, err, len(key))
		}
		back, rest, arena, err := DecodeKey(whole, ty, desc, prefix, []byte("arena"))
		if !KeyLossless(ty, prefix) {
			if !errors.Is(err, ErrLossyKey) {
				t.Fatalf("%s: DecodeKey of a lossy key: %v", ty.Kind, err)
			}
			return
		}
		if err != nil || !bytes.Equal(rest, tail) || !same(back, v) || !bytes.HasPrefix(arena, []byte("arena")) {
			t.Fatalf("%s: %x came back as %+v, rest %x, %v", ty.Kind, key, back, rest, err)
		}
		vec := NewVector(ty, 1)
		vec.AppendNull()
		rest, err = vec.AppendKey(whole, desc, prefix)
		if err != nil || !bytes.Equal(rest, tail) || vec.Len() != 2 || !same(vec.Value(1), v) {
			t.Fatalf("%s: vector got %+v, %v", ty.Kind, vec.Value(1), err)
		}
		for n := range key {
			if n, err := SkipKey(key[:n], ty, desc, prefix); err == nil {
				t.Fatalf("%s: a proper prefix of %x parses as a part of %d bytes", ty.Kind, key, n)
			}
		}
	})
}

func TestKeyBytes(t *testing.T) {
	varbinary := &Type{Kind: KindVarBinary, Length: 10, Collation: CollationBinary}
	word := &Type{Kind: KindVarChar, Length: 10, Collation: testCI, NotNull: true}
	for _, c := range []struct {
		v      Value
		t      *Type
		desc   bool
		prefix int
		key    string
	}{
		{Null, varbinary, false, 0, "\x00"},
		{Null, varbinary, true, 0, "\xff"},
		{NewString("a\x00\x01"), varbinary, false, 0, "\x01a\x01\x01\x01\x02\x00"},
		{NewString("a"), varbinary, true, 0, "\xfe\x9e\xff"},
		{NewString("AbC"), word, false, 0, "abc\x00"},
		{NewString("äbc"), word, false, 2, "äb\x00"},
		{NewInt(-1), &Type{Kind: KindInt, NotNull: true}, false, 0, "\x7f\xff\xff\xff"},
		{NewInt(1), &Type{Kind: KindMediumInt, NotNull: true}, false, 0, "\x80\x00\x01"},
		{NewUint(2024), &Type{Kind: KindYear}, false, 0, "\x01\x7c"},
		{NewDouble(math.Copysign(0, -1)), &Type{Kind: KindDouble, NotNull: true}, false, 0, "\x80\x00\x00\x00\x00\x00\x00\x00"},
		{NewString("ab\x00"), &Type{Kind: KindBinary, Length: 3}, false, 2, "\x01ab"},
	} {
		if got := string(AppendKey(nil, c.v, c.t, c.desc, c.prefix)); got != c.key {
			t.Errorf("%s: %x, want %x", c.t.Kind, got, c.key)
		}
	}
}

func TestCountEscaped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SliceOf(rapid.SampledFrom([]byte{0, 1, 2, 3, 0x7e, 0x7f, 0x80, 0x81, 0xfe, 0xff})).Draw(t, "s")
		want := bytes.Count(s, []byte{0}) + bytes.Count(s, []byte{1})
		if got := countEscaped(s); got != want {
			t.Fatalf("%d bytes of %x, want %d", got, s, want)
		}
	})
}

func TestStoredRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ty := columnTypes().Draw(t, "type")
		v := drawValue(t, ty)
		if v.IsNull() {
			return
		}
		b := AppendStored(nil, v, ty)
		if size, ok := FixedSize(ty); ok && len(b) != size {
			t.Fatalf("%s: %d bytes, want %d", ty.Kind, len(b), size)
		}
		back, err := DecodeStored(b, ty)
		if err != nil || !same(back, v) {
			t.Fatalf("%s: %x came back as %+v, %v", ty.Kind, b, back, err)
		}
		vec := NewVector(ty, 1)
		if err := vec.AppendStored(b); err != nil || !same(vec.Value(0), v) {
			t.Fatalf("%s: vector got %+v, %v", ty.Kind, vec.Value(0), err)
		}
	})
}

// The bytes are MySQL's for TIME2, DATETIME2 and TIMESTAMP2.
func TestTemporalBytes(t *testing.T) {
	for _, c := range []struct {
		v      Value
		t      Type
		stored string
	}{
		{NewTime(MakeDuration(true, 0, 0, 1, 0)), Type{Kind: KindTime}, "\x7f\xff\xff"},
		{NewTime(MakeDuration(true, 0, 0, 0, 10_000)), Type{Kind: KindTime, FSP: 2}, "\x7f\xff\xff\xff"},
		{NewTime(MakeDuration(true, 0, 0, 1, 10_000)), Type{Kind: KindTime, FSP: 2}, "\x7f\xff\xfe\xff"},
		{NewTime(MakeDuration(false, 0, 0, 1, 500_000)), Type{Kind: KindTime, FSP: 6}, "\x80\x00\x01\x07\xa1\x20"},
		{NewDateTime(0), Type{Kind: KindDateTime}, "\x80\x00\x00\x00\x00"},
		{NewDateTime(MakeDateTime(2012, 12, 31, 23, 59, 59, 0)), Type{Kind: KindDateTime}, "\x99\x8e\x3f\x7e\xfb"},
		{NewTimestamp(1_500_000), Type{Kind: KindTimestamp, FSP: 3}, "\x00\x00\x00\x01\x13\x88"},
		{NewDate(MakeDateTime(2024, 2, 29, 0, 0, 0, 0)), Type{Kind: KindDate}, "\x0f\xd0\x5d"},
	} {
		if got := string(AppendStored(nil, c.v, &c.t)); got != c.stored {
			t.Errorf("%s: %x, want %x", AppendText(nil, c.v, &c.t, nil), got, c.stored)
		}
	}
}

func TestTypeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ty := columnTypes().Draw(t, "type")
		b := AppendType(nil, ty)
		back, rest, err := DecodeType(append(b, "tail"...))
		if err != nil || string(rest) != "tail" || !back.Equal(ty) {
			t.Fatalf("%+v came back as %+v, %q, %v", ty, back, rest, err)
		}
	})
}

func FuzzDecodeType(f *testing.F) {
	f.Add(AppendType(nil, &Type{Kind: KindEnum, Collation: testCI, Members: []string{"a", "bc"}}))
	f.Add(AppendType(nil, &Type{Kind: KindDecimal, Precision: 65, Scale: 30}))
	f.Fuzz(func(t *testing.T, b []byte) {
		ty, rest, err := DecodeType(b)
		if err != nil {
			return
		}
		if err := ty.Validate(); err != nil {
			t.Fatal(err)
		}
		if again := AppendType(nil, &ty); !bytes.Equal(append(again, rest...), b) {
			t.Fatalf("%x came back as %x", b, again)
		}
	})
}

// fuzzTypes are the types that fuzz targets pick from.
var fuzzTypes = []Type{
	{Kind: KindTinyInt}, {Kind: KindMediumInt, NotNull: true}, {Kind: KindBigInt, Unsigned: true},
	{Kind: KindDecimal, Precision: 65, Scale: 30}, {Kind: KindDecimal, Precision: 10, Scale: 2, NotNull: true},
	{Kind: KindFloat}, {Kind: KindDouble}, {Kind: KindBit, Length: 13}, {Kind: KindDate}, {Kind: KindTime, FSP: 2},
	{Kind: KindTime, FSP: 6}, {Kind: KindDateTime}, {Kind: KindDateTime, FSP: 3}, {Kind: KindTimestamp, FSP: 5},
	{Kind: KindYear}, {Kind: KindVarChar, Length: 9, Collation: testBin4}, {Kind: KindVarBinary, Length: 5, NotNull: true},
	{Kind: KindBinary, Length: 4}, {Kind: KindBlob}, {Kind: KindEnum, Collation: testCI, Members: []string{"a", "b"}},
	{Kind: KindSet, Collation: testCI, Members: []string{"a", "b", "c"}}, {Kind: KindJSON}, {Kind: KindTime},
}

func FuzzDecodeStored(f *testing.F) {
	f.Add(uint8(9), []byte{0x7f, 0xff, 0xff, 0xff})
	f.Add(uint8(3), make([]byte, 30))
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		ty := &fuzzTypes[int(which)%len(fuzzTypes)]
		v, err := DecodeStored(b, ty)
		vec := NewVector(ty, 1)
		if vecErr := vec.AppendStored(b); (vecErr == nil) != (err == nil) {
			t.Fatalf("%s: %v but vector %v", ty.Kind, err, vecErr)
		}
		if err != nil {
			return
		}
		AppendText(nil, v, ty, nil)
		if again := AppendStored(nil, v, ty); !bytes.Equal(again, b) {
			t.Fatalf("%s: %x came back as %x", ty.Kind, b, again)
		}
	})
}

func FuzzDecodeKey(f *testing.F) {
	f.Add(uint8(15), false, []byte("\x01ab\x01\x01\x00tail"))
	f.Add(uint8(3), true, make([]byte, 31))
	f.Fuzz(func(t *testing.T, which uint8, desc bool, b []byte) {
		ty := &fuzzTypes[int(which)%len(fuzzTypes)]
		n, skipErr := SkipKey(b, ty, desc, 0)
		if skipErr == nil && (n < 0 || n > len(b)) {
			t.Fatalf("%s: SkipKey = %d of %d", ty.Kind, n, len(b))
		}
		v, rest, _, err := DecodeKey(b, ty, desc, 0, nil)
		if err != nil {
			return
		}
		if again := append(AppendKey(nil, v, ty, desc, 0), rest...); !bytes.Equal(again, b) {
			t.Fatalf("%s: %x came back as %x", ty.Kind, b, again)
		}
	})
}

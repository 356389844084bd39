package types

import (
	"slices"
	"testing"

	"github.com/triremedb/trireme/engine/types/decimal"
	"pgregory.net/rapid"
)

func TestVector(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ty := columnTypes().Draw(t, "type")
		nullable := *ty
		nullable.NotNull = false
		ty = &nullable
		var want []Value
		vec, other := NewVector(ty, 4), NewVector(ty, 4)
		for range rapid.IntRange(1, 150).Draw(t, "n") {
			v := drawValue(t, ty)
			want = append(want, v)
			vec.Append(v)
		}
		var rows []uint32
		nulls := 0
		for i, v := range want {
			if !same(vec.Value(i), v) || vec.IsNull(i) != v.IsNull() {
				t.Fatalf("value %d is %+v, want %+v", i, vec.Value(i), v)
			}
			if v.IsNull() {
				nulls++
			}
			if i%3 == 0 {
				rows = append(rows, uint32(i))
			}
		}
		if vec.NullCount() != nulls || vec.Len() != len(want) {
			t.Fatalf("%d NULLs of %d, want %d of %d", vec.NullCount(), vec.Len(), nulls, len(want))
		}
		other.AppendNull()
		other.Gather(vec, rows)
		if other.Len() != len(rows)+1 {
			t.Fatalf("gathered %d of %d", other.Len(), len(rows))
		}
		for k, i := range rows {
			if !same(other.Value(k+1), want[i]) || other.Compare(k+1, vec, int(i)) != 0 {
				t.Fatalf("gathered %+v, want %+v", other.Value(k+1), want[i])
			}
		}
		if vec.MemoryBytes() <= 0 {
			t.Fatal("no memory")
		}
		for i := 1; i < len(want); i++ {
			if vec.Compare(i-1, vec, i) != Compare(want[i-1], want[i], ty) {
				t.Fatalf("values %d and %d compare differently", i-1, i)
			}
		}
		hashes := make([]uint64, vec.Len())
		vec.HashInto(hashes)
		for i, h := range hashes {
			if h != Hash(0, want[i], ty) {
				t.Fatalf("hash of value %d differs", i)
			}
		}
		cut := rapid.IntRange(0, len(want)).Draw(t, "cut")
		vec.Truncate(cut)
		vec.AppendNull()
		vec.Append(want[0])
		nulls = 1
		for i, v := range append(append([]Value{}, want[:cut]...), Null, want[0]) {
			if !same(vec.Value(i), v) {
				t.Fatalf("value %d is %+v after Truncate(%d)", i, vec.Value(i), cut)
			}
			if v.IsNull() && i != cut {
				nulls++
			}
		}
		if vec.Len() != cut+2 || vec.NullCount() != nulls {
			t.Fatalf("%d values, %d NULLs after Truncate(%d)", vec.Len(), vec.NullCount(), cut)
		}
		vec.Reset()
		if vec.Len() != 0 || vec.HasNulls() {
			t.Fatal("Reset left values")
		}
	})
}

// TestExtend: values that a kernel writes behind others are theirs, and the memory of a
// vector in use does not show through.
func TestExtend(t *testing.T) {
	for _, ty := range batchTypes() {
		v := NewVector(ty, 0)
		if v.layout == layoutBytes {
			continue
		}
		for range 200 { // to be forgotten
			v.AppendNull()
		}
		v.Reset()
		row := batchRow()[0]
		for i, o := range batchTypes() {
			if o.Kind == ty.Kind && o.Precision == ty.Precision {
				row = batchRow()[i]
			}
		}
		v.Append(row)
		v.AppendNull()
		if from := v.Extend(130); from != 2 || v.Len() != 132 || v.NullCount() != 1 {
			t.Fatalf("%v: extended from %d to %d values, %d NULLs", ty.Kind, from, v.Len(), v.NullCount())
		}
		for i := 2; i < v.Len(); i++ {
			if v.IsNull(i) {
				t.Fatalf("%v: value %d is NULL", ty.Kind, i)
			}
		}
		v.SetNull(131)
		v.Truncate(2)
		if !same(v.Value(0), row) || !v.IsNull(1) || v.NullCount() != 1 {
			t.Fatalf("%v: the values before have changed", ty.Kind)
		}
	}
}

func batchTypes() []*Type {
	return []*Type{
		{Kind: KindBigInt}, {Kind: KindDouble}, {Kind: KindDecimal, Precision: 12, Scale: 2},
		{Kind: KindDecimal, Precision: 40, Scale: 2}, {Kind: KindVarChar, Length: 50, Collation: testCI}, {Kind: KindDateTime, FSP: 3},
	}
}

func batchRow() []Value {
	return []Value{NewInt(7), NewDouble(1.5), NewDecimal(decimal.FromUnscaled(12345, 2)),
		NewDecimal(decimal.FromUint128(1<<40, 5, 2, true)), NewString("a piece of text"), NewDateTime(MakeDateTime(2024, 2, 29, 1, 2, 3, 4000))}
}

func TestBatch(t *testing.T) {
	b, c := NewBatch(batchTypes()), NewBatch(batchTypes())
	row := batchRow()
	for !b.Full() {
		b.AppendRow(row)
	}
	if b.Len() != BatchRows {
		t.Fatal(b.Len())
	}
	c.AppendFrom(b, 3)
	c.Gather(b, []uint32{1, 2})
	got := c.Row(nil, 2)
	for i, v := range row {
		if Compare(got[i], v, batchTypes()[i]) != 0 {
			t.Errorf("column %d: %+v", i, got[i])
		}
	}
	if c.Len() != 3 || b.MemoryBytes() < BatchRows*40 {
		t.Error(c.Len(), b.MemoryBytes())
	}
	b.Column(0).AppendInt64(1) // a row begun
	b.Truncate(b.Len())
	if b.Column(0).Len() != BatchRows || b.Len() != BatchRows {
		t.Error("Truncate left a row begun")
	}
	b.Reset()
	b.Vecs[4].AppendBytes(make([]byte, BatchBytes))
	b.EndRow()
	if !b.Full() {
		t.Error("batch with large strings is not full")
	}
	b.SetLen(0)
	v := &b.Vecs[0]
	v.Resize(70)
	v.Int64s()[69] = 9
	v.SetNull(3)
	if v.Len() != 70 || v.NullCount() != 1 || v.Value(69).Int() != 9 || !v.Value(3).IsNull() {
		t.Error("Resize")
	}
}

func TestNoAllocations(t *testing.T) {
	columns, row := batchTypes(), batchRow()
	b, c := NewBatch(columns), NewBatch(columns)
	ctx := Context{Mode: ModeDefault}
	var key, stored []byte
	var rows []uint32
	for i := range uint32(64) {
		rows = append(rows, i)
	}
	dest := make([]Value, 0, len(row))
	run := func() {
		b.Reset()
		c.Reset()
		ctx.Reset()
		for range 64 {
			for i, t := range columns {
				key = AppendKey(key[:0], row[i], t, i&1 == 0, 0)
				stored = AppendStored(stored[:0], row[i], t)
				if b.Vecs[i].AppendStored(stored) != nil {
					panic("stored")
				}
				if _, err := ctx.Store(row[i], t, t); err != nil {
					panic(err)
				}
				if KeyLossless(t, 0) {
					if _, err := c.Vecs[i].AppendKey(key, i&1 == 0, 0); err != nil {
						panic(err)
					}
				}
			}
			b.EndRow()
		}
		c.Reset()
		c.Gather(b, rows)
		dest = c.Row(dest, 5)
		if _, err := ctx.Store(NewString("2024-02-29 12:34:56"), nil, columns[5]); err != nil {
			panic(err)
		}
		if _, err := ctx.Store(NewString("-12.50"), nil, columns[2]); err != nil {
			panic(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestValueClone(t *testing.T) {
	wide, _ := decimal.Mul(decimal.FromUint128(1<<60, 0, 0, false), decimal.FromUint64(1e18))
	buf := []byte("text")
	for _, v := range []Value{Null, NewInt(1), NewBytes(buf), NewDecimal(wide), NewJSON(buf)} {
		c := v.Clone()
		d, arena := v.CloneInto([]byte("x"))
		if !same(c, v) || !same(d, v) || arena[0] != 'x' {
			t.Errorf("%+v: clone %+v, %+v", v, c, d)
		}
	}
	v := NewBytes(buf).Clone()
	buf[0] = 'T'
	if string(v.Bytes()) != "text" {
		t.Error("clone shares memory")
	}
}

func BenchmarkAppendKeyInt(b *testing.B) {
	t := &Type{Kind: KindBigInt, NotNull: true}
	key := make([]byte, 0, 64)
	for b.Loop() {
		key = AppendKey(key[:0], NewInt(42), t, false, 0)
	}
}

func BenchmarkAppendKeyString(b *testing.B) {
	t := &Type{Kind: KindVarBinary, Length: 100}
	key := make([]byte, 0, 64)
	v := NewString("user:1234567890:session")
	for b.Loop() {
		key = AppendKey(key[:0], v, t, false, 0)
	}
}

func BenchmarkVectorAppendStoredInt(b *testing.B) {
	v := NewVector(&Type{Kind: KindBigInt}, BatchRows)
	s := AppendStored(nil, NewInt(42), v.Type())
	for b.Loop() {
		if v.Len() == BatchRows {
			v.Reset()
		}
		_ = v.AppendStored(s)
	}
}

func BenchmarkVectorAppendStoredString(b *testing.B) {
	v := NewVector(&Type{Kind: KindVarBinary, Length: 100}, BatchRows)
	s := []byte("user:1234567890:session")
	for b.Loop() {
		if v.Len() == BatchRows {
			v.Reset()
		}
		_ = v.AppendStored(s)
	}
}

func BenchmarkVectorAppendStoredDecimal(b *testing.B) {
	v := NewVector(&Type{Kind: KindDecimal, Precision: 15, Scale: 2}, BatchRows)
	s := AppendStored(nil, NewDecimal(decimal.FromUnscaled(1234567, 2)), v.Type())
	for b.Loop() {
		if v.Len() == BatchRows {
			v.Reset()
		}
		_ = v.AppendStored(s)
	}
}

// A batch is full with as much in all columns together as four full columns have.
func TestBatchFullOfManyColumns(t *testing.T) {
	text := &Type{Kind: KindText, Length: MaxVarLength, Collation: CollationBinary}
	b := NewRow(slices.Repeat([]*Type{text}, 100))
	value := NewBytes(make([]byte, 10_000))
	for !b.Full() {
		for i := range b.Vecs {
			b.Vecs[i].Append(value)
		}
		b.EndRow()
	}
	n := 0
	for i := range b.Vecs {
		n += len(b.Vecs[i].BytesBuffer())
	}
	if n < BatchAllBytes || n > BatchAllBytes+1_000_000 {
		t.Errorf("it is full with %d rows, %d bytes", b.Len(), n)
	}
}

package types

import (
	"encoding/binary"
	"math"

	"github.com/triremedb/trireme/engine/types/decimal"
)

// Vector is a column of values of one type. Its memory is kept over Reset, so
// that a vector in use settles into not allocating.
//
// The layout follows the class: []int64 for integers, the temporal classes and
// short decimals (unscaled, at the type's scale); []uint64; []float64 for DOUBLE
// and FLOAT, which widens exactly; []decimal.Decimal; bytes as offsets into one
// arena. A NULL has its bit set and a meaningless entry in the layout.
//
// A Vector is not safe for concurrent use.
type Vector struct {
	typ    *Type
	class  Class
	layout layout
	n      int
	nNull  int
	nulls  []uint64 // bit i%64 of word i/64
	i64    []int64
	u64    []uint64
	f64    []float64
	dec    []decimal.Decimal
	off    []uint32 // n+1 offsets into data
	data   []byte
}

type layout uint8

const (
	layoutNone layout = iota
	layoutInt
	layoutUint
	layoutFloat
	layoutDecimal
	layoutBytes
)

func layoutOf(t *Type, c Class) layout {
	switch c {
	case ClassNull:
		return layoutNone
	case ClassUint:
		return layoutUint
	case ClassFloat, ClassDouble:
		return layoutFloat
	case ClassBytes, ClassJSON:
		return layoutBytes
	case ClassDecimal:
		if !t.ShortDecimal() {
			return layoutDecimal
		}
	}
	return layoutInt
}

// NewVector returns an empty vector with room for capacity values.
func NewVector(t *Type, capacity int) *Vector {
	v := &Vector{}
	v.Init(t)
	v.Reserve(capacity)
	return v
}

// Init empties v and gives it a type, which must not change afterwards.
func (v *Vector) Init(t *Type) {
	v.typ, v.class = t, t.Class()
	v.layout = layoutOf(t, v.class)
	v.Reset()
}

// Reset empties the vector and keeps its memory.
func (v *Vector) Reset() {
	v.n, v.nNull = 0, 0
	v.nulls = v.nulls[:0]
	v.i64, v.u64, v.f64, v.dec = v.i64[:0], v.u64[:0], v.f64[:0], v.dec[:0]
	v.off, v.data = v.off[:0], v.data[:0]
	if v.layout == layoutBytes {
		v.off = append(v.off, 0)
	}
}

// Reserve makes room for capacity values in all; arenas grow as bytes come.
func (v *Vector) Reserve(capacity int) {
	grow := capacity - v.n
	if grow <= 0 {
		return
	}
	v.nulls = growCap(v.nulls, (capacity+63)/64)
	switch v.layout {
	case layoutInt:
		v.i64 = growCap(v.i64, capacity)
	case layoutUint:
		v.u64 = growCap(v.u64, capacity)
	case layoutFloat:
		v.f64 = growCap(v.f64, capacity)
	case layoutDecimal:
		v.dec = growCap(v.dec, capacity)
	case layoutBytes:
		v.off = growCap(v.off, capacity+1)
	}
}

// growCap returns s with at least the given capacity.
func growCap[T any](s []T, capacity int) []T {
	if cap(s) >= capacity {
		return s
	}
	return append(make([]T, 0, capacity), s...)
}

// extend returns s with length n; new elements hold whatever was there.
func extend[T any](s []T, n int) []T {
	if cap(s) < n {
		s = append(make([]T, 0, max(n, 2*cap(s))), s...)
	}
	return s[:n]
}

// Type returns the vector's type.
func (v *Vector) Type() *Type { return v.typ }

// Class returns the class of its values.
func (v *Vector) Class() Class { return v.class }

// Len returns the number of values.
func (v *Vector) Len() int { return v.n }

// HasNulls reports whether any value is NULL.
func (v *Vector) HasNulls() bool { return v.nNull > 0 }

// NullCount returns the number of NULLs.
func (v *Vector) NullCount() int { return v.nNull }

// IsNull reports whether value i is NULL.
func (v *Vector) IsNull(i int) bool { return v.nulls[i>>6]>>(i&63)&1 != 0 }

// Nulls returns the bitmap of NULLs: bit i%64 of word i/64. Bits past Len are
// zero. It may be read only; [Vector.SetNull] writes.
func (v *Vector) Nulls() []uint64 { return v.nulls }

// SetNull makes value i NULL.
func (v *Vector) SetNull(i int) {
	word, bit := &v.nulls[i>>6], uint64(1)<<(i&63)
	if *word&bit == 0 {
		*word |= bit
		v.nNull++
	}
}

// Int64s returns the values of integer, temporal and short decimal vectors. It
// aliases the vector and may be written to.
func (v *Vector) Int64s() []int64 { return v.i64 }

// Uint64s is [Vector.Int64s] for ClassUint.
func (v *Vector) Uint64s() []uint64 { return v.u64 }

// Float64s is [Vector.Int64s] for ClassFloat and ClassDouble.
func (v *Vector) Float64s() []float64 { return v.f64 }

// Decimals is [Vector.Int64s] for decimals that are not short.
func (v *Vector) Decimals() []decimal.Decimal { return v.dec }

// IsShortDecimal reports whether decimals are held unscaled in [Vector.Int64s].
func (v *Vector) IsShortDecimal() bool { return v.class == ClassDecimal && v.layout == layoutInt }

// BytesAt returns value i of a string or JSON vector; it aliases the vector.
func (v *Vector) BytesAt(i int) []byte { return v.data[v.off[i]:v.off[i+1]:v.off[i+1]] }

// Bytes is the length of string i, 0 if the values are no strings.
func (v *Vector) Bytes(i int) int {
	if v.layout != layoutBytes {
		return 0
	}
	return int(v.off[i+1] - v.off[i])
}

// Longest returns the length of the longest string, 0 if the values are no strings.
func (v *Vector) Longest() int {
	most := 0
	if v.layout == layoutBytes && v.n > 0 {
		for i, from := range v.off[:v.n] {
			most = max(most, int(v.off[i+1]-from))
		}
	}
	return most
}

// Resize sets the number of values to n for a kernel that then writes them all
// through the typed slices. None is NULL. Not for strings.
func (v *Vector) Resize(n int) {
	v.n, v.nNull = n, 0
	v.nulls = extend(v.nulls, (n+63)/64)
	clear(v.nulls)
	switch v.layout {
	case layoutInt:
		v.i64 = extend(v.i64, n)
	case layoutUint:
		v.u64 = extend(v.u64, n)
	case layoutFloat:
		v.f64 = extend(v.f64, n)
	case layoutDecimal:
		v.dec = extend(v.dec, n)
	case layoutBytes:
		panic("types: Resize of a vector of strings")
	}
}

// Extend adds n values for a kernel that then writes them all through the typed
// slices, from the returned position on. None of them is NULL. Not for strings.
func (v *Vector) Extend(n int) (from int) {
	from = v.n
	v.n += n
	words := len(v.nulls)
	v.nulls = extend(v.nulls, (v.n+63)/64)
	clear(v.nulls[words:])
	switch v.layout {
	case layoutInt:
		v.i64 = extend(v.i64, v.n)
	case layoutUint:
		v.u64 = extend(v.u64, v.n)
	case layoutFloat:
		v.f64 = extend(v.f64, v.n)
	case layoutDecimal:
		v.dec = extend(v.dec, v.n)
	case layoutBytes:
		panic("types: Extend of a vector of strings")
	}
	return from
}

// Truncate removes all values from n on, if there are so many.
func (v *Vector) Truncate(n int) {
	if n >= v.n {
		return
	}
	for i := n; i < v.n && v.nNull > 0; i++ {
		if v.IsNull(i) {
			v.nNull--
		}
	}
	v.n = n
	v.nulls = v.nulls[:(n+63)/64]
	if n&63 != 0 {
		v.nulls[n>>6] &= 1<<(n&63) - 1
	}
	switch v.layout {
	case layoutInt:
		v.i64 = v.i64[:n]
	case layoutUint:
		v.u64 = v.u64[:n]
	case layoutFloat:
		v.f64 = v.f64[:n]
	case layoutDecimal:
		v.dec = v.dec[:n]
	case layoutBytes:
		v.data = v.data[:v.off[n]]
		v.off = v.off[:n+1]
	}
}

// step counts one more value that is not NULL.
func (v *Vector) step() {
	if v.n&63 == 0 {
		v.nulls = append(v.nulls, 0)
	}
	v.n++
}

// AppendNull appends NULL.
func (v *Vector) AppendNull() {
	v.step()
	v.nulls[(v.n-1)>>6] |= 1 << ((v.n - 1) & 63)
	v.nNull++
	switch v.layout {
	case layoutInt:
		v.i64 = append(v.i64, 0)
	case layoutUint:
		v.u64 = append(v.u64, 0)
	case layoutFloat:
		v.f64 = append(v.f64, 0)
	case layoutDecimal:
		v.dec = append(v.dec, decimal.Decimal{})
	case layoutBytes:
		v.off = append(v.off, uint32(len(v.data)))
	}
}

// AppendInt64 appends to a vector of ClassInt or a temporal class.
func (v *Vector) AppendInt64(x int64) {
	v.step()
	v.i64 = append(v.i64, x)
}

// AppendUint64 appends to a vector of ClassUint.
func (v *Vector) AppendUint64(x uint64) {
	v.step()
	v.u64 = append(v.u64, x)
}

// AppendFloat64 appends to a vector of ClassFloat or ClassDouble.
func (v *Vector) AppendFloat64(x float64) {
	v.step()
	v.f64 = append(v.f64, x)
}

// AppendDecimal appends to a vector of ClassDecimal. REQUIRES: d fits the type.
func (v *Vector) AppendDecimal(d decimal.Decimal) {
	v.step()
	if v.layout == layoutInt {
		if d.Scale() != int(v.typ.Scale) {
			d, _, _ = d.Fit(int(v.typ.Precision), int(v.typ.Scale))
		}
		x, _ := d.Unscaled()
		v.i64 = append(v.i64, x)
		return
	}
	v.dec = append(v.dec, d)
}

// AppendBytes appends to a vector of ClassBytes or ClassJSON; it copies s.
// REQUIRES: all bytes of the vector stay below 4 GiB, see [Batch.Full].
func (v *Vector) AppendBytes(s []byte) {
	v.data = append(v.data, s...)
	v.endBytes()
}

func (v *Vector) endBytes() {
	if len(v.data) > math.MaxUint32 {
		panic("types: vector of strings exceeds 4 GiB")
	}
	v.step()
	v.off = append(v.off, uint32(len(v.data)))
}

// BytesBuffer lends the arena to a function that appends one value to it:
//
//	v.EndBytes(appendSomething(v.BytesBuffer()))
func (v *Vector) BytesBuffer() []byte { return v.data }

// EndBytes takes the arena back: what was appended to it is the next value.
func (v *Vector) EndBytes(arena []byte) {
	v.data = arena
	v.endBytes()
}

// Append appends any value. REQUIRES: x is NULL or of the vector's class.
func (v *Vector) Append(x Value) {
	if x.class == ClassNull {
		v.AppendNull()
		return
	}
	switch v.class {
	case ClassUint:
		v.AppendUint64(x.a)
	case ClassFloat:
		v.AppendFloat64(float64(x.Float()))
	case ClassDouble:
		v.AppendFloat64(x.Double())
	case ClassDecimal:
		v.AppendDecimal(x.Decimal())
	case ClassBytes, ClassJSON:
		v.AppendBytes(x.Bytes())
	default:
		v.AppendInt64(int64(x.a))
	}
}

// Value returns value i; strings and wide decimals alias the vector.
func (v *Vector) Value(i int) Value {
	if v.IsNull(i) {
		return Null
	}
	switch v.class {
	case ClassUint:
		return NewUint(v.u64[i])
	case ClassFloat:
		return NewFloat(float32(v.f64[i]))
	case ClassDouble:
		return NewDouble(v.f64[i])
	case ClassDecimal:
		if v.layout == layoutInt {
			return shortDecimal(v.i64[i], v.typ.Scale)
		}
		return decimalRef(&v.dec[i])
	case ClassBytes, ClassJSON:
		x := NewBytes(v.BytesAt(i))
		x.class = v.class
		return x
	}
	return Value{class: v.class, a: uint64(v.i64[i])}
}

// AppendStored decodes a stored value, see [DecodeStored], into the vector
// without allocating. The error is a [CorruptError]; nothing is appended then.
func (v *Vector) AppendStored(b []byte) error {
	if v.typ.Kind == KindBigInt && len(b) == 8 { // most keys
		if v.layout == layoutUint {
			v.AppendUint64(binary.BigEndian.Uint64(b))
		} else {
			v.AppendInt64(int64(binary.BigEndian.Uint64(b) ^ 1<<63))
		}
		return nil
	}
	size, fixed := FixedSize(v.typ)
	if fixed && len(b) != size {
		return corrupt(v.typ, "wrong length")
	}
	if v.layout == layoutBytes {
		v.AppendBytes(b)
		return nil
	}
	return v.appendFixed(b)
}

// appendFixed appends a value in the fixed encoding.
func (v *Vector) appendFixed(b []byte) error {
	switch {
	case v.typ.IsInteger():
		x := decodeInt(b, v.typ.Unsigned)
		if v.typ.Unsigned {
			v.AppendUint64(x.a)
		} else {
			v.AppendInt64(int64(x.a))
		}
		return nil
	case v.class == ClassDecimal:
		d, err := decimal.DecodePacked(b, int(v.typ.Precision), int(v.typ.Scale))
		if err != nil {
			return corrupt(v.typ, "not a number")
		}
		v.AppendDecimal(d)
		return nil
	}
	x, err := decodeFixed(b, v.typ)
	if err == nil {
		v.Append(x)
	}
	return err
}

// AppendKey decodes a lossless key part, see [DecodeKey], into the vector and
// returns the rest of the key. It allocates only for wide decimals.
func (v *Vector) AppendKey(key []byte, desc bool, prefixLen int) (rest []byte, err error) {
	if v.layout != layoutBytes {
		x, rest, _, err := DecodeKey(key, v.typ, desc, prefixLen, nil)
		if err == nil {
			v.Append(x)
		}
		return rest, err
	}
	start := len(v.data)
	x, rest, arena, err := DecodeKey(key, v.typ, desc, prefixLen, v.data)
	v.data = arena[:start]
	switch {
	case err != nil:
	case x.IsNull():
		v.AppendNull()
	case len(arena) > start:
		v.EndBytes(arena)
	default:
		v.AppendBytes(x.Bytes())
	}
	return rest, err
}

// AppendFrom appends value i of src, which has the same type.
func (v *Vector) AppendFrom(src *Vector, i int) {
	if src.IsNull(i) {
		v.AppendNull()
		return
	}
	switch v.layout {
	case layoutInt:
		v.AppendInt64(src.i64[i])
	case layoutUint:
		v.AppendUint64(src.u64[i])
	case layoutFloat:
		v.AppendFloat64(src.f64[i])
	case layoutDecimal:
		v.step()
		v.dec = append(v.dec, src.dec[i])
	case layoutBytes:
		v.AppendBytes(src.BytesAt(i))
	}
}

// Gather appends the values of src, which has the same type, at rows.
func (v *Vector) Gather(src *Vector, rows []uint32) {
	if src.nNull > 0 || v.layout == layoutBytes {
		for _, i := range rows {
			v.AppendFrom(src, int(i))
		}
		return
	}
	at, n := v.n, v.n+len(rows)
	words := len(v.nulls)
	v.nulls = extend(v.nulls, (n+63)/64)
	clear(v.nulls[words:])
	v.n = n
	switch v.layout {
	case layoutInt:
		v.i64 = gather(v.i64, src.i64, rows, at)
	case layoutUint:
		v.u64 = gather(v.u64, src.u64, rows, at)
	case layoutFloat:
		v.f64 = gather(v.f64, src.f64, rows, at)
	case layoutDecimal:
		v.dec = gather(v.dec, src.dec, rows, at)
	}
}

func gather[T any](dst, src []T, rows []uint32, at int) []T {
	dst = extend(dst, at+len(rows))
	out := dst[at:]
	for k, i := range rows {
		out[k] = src[i]
	}
	return dst
}

// Compare compares value i with value j of o, which has the same type.
func (v *Vector) Compare(i int, o *Vector, j int) int {
	if v.layout == layoutInt && v.nNull|o.nNull == 0 {
		a, b := v.i64[i], o.i64[j]
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	}
	return Compare(v.Value(i), o.Value(j), v.typ)
}

// HashInto mixes every value into the hash of its row. REQUIRES: len(hashes) is
// Len.
func (v *Vector) HashInto(hashes []uint64) {
	for i := range hashes {
		hashes[i] = Hash(hashes[i], v.Value(i), v.typ)
	}
}

// MemoryBytes returns the memory that the vector holds, in use or not.
func (v *Vector) MemoryBytes() int64 {
	return int64(8*(cap(v.nulls)+cap(v.i64)+cap(v.u64)+cap(v.f64)) + 40*cap(v.dec) + 4*cap(v.off) + cap(v.data))
}

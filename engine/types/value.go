package types

import (
	"math"
	"unsafe"

	"github.com/triremedb/trireme/engine/types/decimal"
)

// Value is one SQL value: a tag and a word or two. It owns no memory for
// strings: it aliases the bytes it was made from, and [Value.Clone] copies them.
// The zero Value is NULL. Values are compared with [Compare], never with ==.
//
// What the fields hold depends on the class:
//
//	Int, Uint, Float, Double  a = the number or its IEEE bits
//	Date .. Time              a = the packed form
//	Bytes, JSON               p = first byte, a = length
//	Decimal                   b:a = magnitude below 2^128, or p = *decimal.Decimal
type Value struct {
	p     unsafe.Pointer
	a, b  uint64
	class Class
	scale uint8 // Decimal
	neg   bool  // Decimal
}

// Null is the NULL value.
var Null = Value{}

// NewInt returns a signed integer.
func NewInt(v int64) Value { return Value{class: ClassInt, a: uint64(v)} }

// NewUint returns an unsigned integer, an ENUM's member number, a SET's or
// BIT's bits, or a YEAR.
func NewUint(v uint64) Value { return Value{class: ClassUint, a: v} }

// NewFloat returns a FLOAT.
func NewFloat(v float32) Value { return Value{class: ClassFloat, a: uint64(math.Float32bits(v))} }

// NewDouble returns a DOUBLE.
func NewDouble(v float64) Value { return Value{class: ClassDouble, a: math.Float64bits(v)} }

// NewBytes returns a string of bytes or characters that aliases s.
func NewBytes(s []byte) Value {
	return Value{class: ClassBytes, p: unsafe.Pointer(unsafe.SliceData(s)), a: uint64(len(s))}
}

// NewString is [NewBytes] of a string.
func NewString(s string) Value {
	return Value{class: ClassBytes, p: unsafe.Pointer(unsafe.StringData(s)), a: uint64(len(s))}
}

// NewJSON returns a JSON document in its binary form; it aliases doc.
func NewJSON(doc []byte) Value {
	v := NewBytes(doc)
	v.class = ClassJSON
	return v
}

// NewDecimal returns a DECIMAL. It allocates if the magnitude needs more than
// 128 bits (beyond 38 digits).
func NewDecimal(d decimal.Decimal) Value {
	if hi, lo, ok := d.Uint128(); ok {
		return Value{class: ClassDecimal, a: lo, b: hi, scale: uint8(d.Scale()), neg: d.Negative()}
	}
	wide := d
	return Value{class: ClassDecimal, p: unsafe.Pointer(&wide)}
}

// decimalRef is NewDecimal of a decimal that outlives the value: no allocation.
func decimalRef(d *decimal.Decimal) Value {
	if hi, lo, ok := d.Uint128(); ok {
		return Value{class: ClassDecimal, a: lo, b: hi, scale: uint8(d.Scale()), neg: d.Negative()}
	}
	return Value{class: ClassDecimal, p: unsafe.Pointer(d)}
}

// shortDecimal returns unscaled * 10^-scale.
func shortDecimal(unscaled int64, scale uint8) Value {
	v := Value{class: ClassDecimal, a: uint64(unscaled), scale: scale}
	if unscaled < 0 {
		v.a, v.neg = -v.a, true
	}
	return v
}

// NewDate returns a DATE; the time part of d must be zero.
func NewDate(d DateTime) Value { return Value{class: ClassDate, a: uint64(d)} }

// NewDateTime returns a DATETIME.
func NewDateTime(d DateTime) Value { return Value{class: ClassDateTime, a: uint64(d)} }

// NewTimestamp returns a TIMESTAMP.
func NewTimestamp(t Timestamp) Value { return Value{class: ClassTimestamp, a: uint64(t)} }

// NewTime returns a TIME.
func NewTime(d Duration) Value { return Value{class: ClassTime, a: uint64(d)} }

// Class returns how the value is held; ClassNull for NULL.
func (v Value) Class() Class { return v.class }

// IsNull reports whether the value is NULL.
func (v Value) IsNull() bool { return v.class == ClassNull }

// Int returns the number of a ClassInt value. The accessors do not check the
// class: asked for another one they return the bits.
func (v Value) Int() int64 { return int64(v.a) }

// Uint returns the number of a ClassUint value.
func (v Value) Uint() uint64 { return v.a }

// Float returns the number of a ClassFloat value.
func (v Value) Float() float32 { return math.Float32frombits(uint32(v.a)) }

// Double returns the number of a ClassDouble value.
func (v Value) Double() float64 { return math.Float64frombits(v.a) }

// DateTime returns the packed form of a ClassDate or ClassDateTime value.
func (v Value) DateTime() DateTime { return DateTime(v.a) }

// Timestamp returns the instant of a ClassTimestamp value.
func (v Value) Timestamp() Timestamp { return Timestamp(v.a) }

// Time returns the packed form of a ClassTime value.
func (v Value) Time() Duration { return Duration(v.a) }

// Bytes returns the bytes of a ClassBytes or ClassJSON value, nil for others.
// They may be those of a string: never write to them.
func (v Value) Bytes() []byte {
	if v.class != ClassBytes && v.class != ClassJSON {
		return nil
	}
	return unsafe.Slice((*byte)(v.p), v.a)
}

// Decimal returns the number of a ClassDecimal value, zero for others.
func (v Value) Decimal() decimal.Decimal {
	if v.class != ClassDecimal {
		return decimal.Decimal{}
	}
	if v.p != nil {
		return *(*decimal.Decimal)(v.p)
	}
	return decimal.FromUint128(v.b, v.a, int(v.scale), v.neg)
}

// Clone returns the value with memory of its own.
func (v Value) Clone() Value {
	switch {
	case v.class == ClassBytes || v.class == ClassJSON:
		c := NewBytes(append([]byte(nil), v.Bytes()...))
		c.class = v.class
		return c
	case v.class == ClassDecimal && v.p != nil:
		return NewDecimal(v.Decimal())
	}
	return v
}

// CloneInto is [Value.Clone] with the bytes appended to arena. The arena must
// not be shrunk or overwritten while the value lives; growing it is harmless.
func (v Value) CloneInto(arena []byte) (Value, []byte) {
	if v.class != ClassBytes && v.class != ClassJSON {
		return v.Clone(), arena
	}
	start := len(arena)
	arena = append(arena, v.Bytes()...)
	c := NewBytes(arena[start:])
	c.class = v.class
	return c, arena
}

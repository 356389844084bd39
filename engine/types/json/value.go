package json

import (
	"bytes"
	"cmp"
	"math"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

// A Value is one value in a document. It aliases the document's bytes and is valid as long as they do not change.
type Value struct {
	data  []byte // exactly the payload; of strings and opaque values the bytes after the length
	tag   byte
	field FieldType // of opaque values
}

var missing = Value{tag: tagMissing}

// nullDocument is what an empty column stands for.
var nullDocument = []byte{tagLiteral, literalNull}

// Open returns the value that a document is. An empty document is JSON null, as in MySQL; a damaged one gives a value whose
// Type is TypeMissing.
func Open(doc []byte) Value {
	if len(doc) == 0 {
		doc = nullDocument
	}
	v, _ := makeValue(doc[0], doc[1:])
	return v
}

// makeValue cuts the payload of a value off the start of b. Containers are checked as far as their tables.
func makeValue(tag byte, b []byte) (v Value, ok bool) {
	switch tag {
	case tagString:
		s, ok := cutString(b)
		if !ok {
			return missing, false
		}
		return Value{data: s, tag: tag}, true
	case tagOpaque:
		return makeOpaque(b)
	case tagSmallObject, tagLargeObject, tagSmallArray, tagLargeArray:
		c, ok := openContainer(tag, b)
		if !ok {
			return missing, false
		}
		return Value{data: c.data, tag: tag}, true
	}
	size := scalarSize(tag)
	if size == 0 || len(b) < size {
		return missing, false
	}
	return Value{data: b[:size], tag: tag}, true
}

func makeOpaque(b []byte) (v Value, ok bool) {
	if len(b) == 0 {
		return missing, false
	}
	s, ok := cutString(b[1:])
	if !ok {
		return missing, false
	}
	return Value{data: s, tag: tagOpaque, field: FieldType(b[0])}, true
}

// open returns the container that v is. REQUIRES: v.IsContainer().
func (v Value) open() container {
	c, _ := openContainer(v.tag, v.data)
	return c
}

// A Type is what kind of value a Value is.
type Type uint8

// The types, in the order in which values of different types compare; Integer, Unsigned, Double and Decimal compare as
// numbers.
const (
	TypeMissing Type = iota // not there, or damaged
	TypeNull
	TypeInteger
	TypeUnsigned
	TypeDouble
	TypeDecimal
	TypeString
	TypeObject
	TypeArray
	TypeBoolean
	TypeDate
	TypeTime
	TypeDateTime
	TypeOpaque
	TypeBit
	TypeBlob
)

var typeNames = [...]string{"MISSING", "NULL", "INTEGER", "UNSIGNED INTEGER", "DOUBLE", "DECIMAL", "STRING", "OBJECT", "ARRAY",
	"BOOLEAN", "DATE", "TIME", "DATETIME", "OPAQUE", "BIT", "BLOB"}

// String returns the name that JSON_TYPE gives.
func (t Type) String() string { return typeNames[t] }

// Type returns the value's type.
func (v Value) Type() Type {
	switch v.tag {
	case tagSmallObject, tagLargeObject:
		return TypeObject
	case tagSmallArray, tagLargeArray:
		return TypeArray
	case tagInt16, tagInt32, tagInt64:
		return TypeInteger
	case tagUint16, tagUint32, tagUint64:
		return TypeUnsigned
	case tagDouble:
		return TypeDouble
	case tagString:
		return TypeString
	case tagOpaque:
		return v.opaqueType()
	case tagLiteral:
		if v.data[0] == literalNull {
			return TypeNull
		}
		return TypeBoolean
	}
	return TypeMissing
}

func (v Value) opaqueType() Type {
	switch v.field {
	case FieldDecimal:
		if _, ok := v.Decimal(); ok {
			return TypeDecimal
		}
	case FieldDate, FieldTime, FieldDateTime, FieldTimestamp:
		if len(v.data) == 8 {
			return temporalType(v.field)
		}
	case FieldBit:
		return TypeBit
	case FieldVarchar, FieldTinyBlob, FieldMediumBlob, FieldLongBlob, FieldBlob, FieldVarString, FieldString:
		return TypeBlob
	}
	return TypeOpaque
}

func temporalType(f FieldType) Type {
	switch f {
	case FieldDate:
		return TypeDate
	case FieldTime:
		return TypeTime
	}
	return TypeDateTime
}

// Exists reports whether the value is there.
func (v Value) Exists() bool { return v.tag != tagMissing }

// IsContainer reports whether the value is an array or object.
func (v Value) IsContainer() bool { return isContainer(v.tag) }

// IsArray reports whether the value is an array.
func (v Value) IsArray() bool { return v.tag == tagSmallArray || v.tag == tagLargeArray }

// IsObject reports whether the value is an object.
func (v Value) IsObject() bool { return isObject(v.tag) }

// IsNull reports whether the value is JSON's null.
func (v Value) IsNull() bool { return v.tag == tagLiteral && v.data[0] == literalNull }

// Bool returns a boolean; false for other types.
func (v Value) Bool() bool { return v.tag == tagLiteral && v.data[0] == literalTrue }

// Int returns an Integer; 0 for other types.
func (v Value) Int() int64 {
	switch v.tag {
	case tagInt16:
		return int64(int16(le.Uint16(v.data)))
	case tagInt32:
		return int64(int32(le.Uint32(v.data)))
	case tagInt64:
		return int64(le.Uint64(v.data))
	}
	return 0
}

// Uint returns an Unsigned; 0 for other types.
func (v Value) Uint() uint64 {
	switch v.tag {
	case tagUint16:
		return uint64(le.Uint16(v.data))
	case tagUint32:
		return uint64(le.Uint32(v.data))
	case tagUint64:
		return le.Uint64(v.data)
	}
	return 0
}

// Double returns a Double; 0 for other types.
func (v Value) Double() float64 {
	if v.tag == tagDouble {
		return math.Float64frombits(le.Uint64(v.data))
	}
	return 0
}

// Str returns a String's bytes, in UTF-8 and without quotes; nil for other types.
func (v Value) Str() []byte {
	if v.tag == tagString {
		return v.data
	}
	return nil
}

// Opaque returns the bytes of any value that came from a column type JSON lacks, decimals and dates included.
func (v Value) Opaque() (f FieldType, data []byte, ok bool) {
	return v.field, v.data, v.tag == tagOpaque
}

// Decimal returns a Decimal; ok is false for other types.
func (v Value) Decimal() (d decimal.Decimal, ok bool) {
	if v.tag != tagOpaque || v.field != FieldDecimal || len(v.data) < 2 {
		return d, false
	}
	precision, scale := int(v.data[0]), int(v.data[1])
	if precision == 0 || precision > types.MaxDecimalPrecision || scale > types.MaxDecimalScale || scale > precision ||
		len(v.data) != 2+decimal.PackedSize(precision, scale) {
		return d, false
	}
	d, err := decimal.DecodePacked(v.data[2:], precision, scale)
	return d, err == nil
}

// DateTime returns a Date or DateTime; 0 for other types.
func (v Value) DateTime() types.DateTime {
	if t := v.Type(); t == TypeDate || t == TypeDateTime {
		return types.DateTime(le.Uint64(v.data))
	}
	return 0
}

// Time returns a Time; 0 for other types.
func (v Value) Time() types.Duration {
	if v.Type() == TypeTime {
		return types.Duration(le.Uint64(v.data))
	}
	return 0
}

// Len returns the number of elements or members; 1 for scalars.
func (v Value) Len() int {
	if !v.IsContainer() {
		return 1
	}
	c := v.open()
	return c.count
}

// Index returns element i of an array, or the value of member i of an object in key order.
func (v Value) Index(i int) (Value, bool) {
	if !v.IsContainer() {
		return missing, false
	}
	c := v.open()
	if i < 0 || i >= c.count {
		return missing, false
	}
	return c.value(i)
}

// Key returns the name of member i of an object.
func (v Value) Key(i int) ([]byte, bool) {
	if !v.IsObject() {
		return nil, false
	}
	c := v.open()
	if i < 0 || i >= c.count {
		return nil, false
	}
	return c.key(i)
}

// Member returns the value of an object's member.
func (v Value) Member(key []byte) (Value, bool) {
	if !v.IsObject() {
		return missing, false
	}
	c := v.open()
	i, found := c.search(key)
	if !found {
		return missing, false
	}
	return c.value(i)
}

// compareKeys is the order of members: by length, then by bytes.
func compareKeys(a, b []byte) int {
	if len(a) != len(b) {
		return cmp.Compare(len(a), len(b))
	}
	return bytes.Compare(a, b)
}

// Depth returns the number of levels: 1 for scalars and empty containers.
func (v Value) Depth() int { return v.depth(1) }

func (v Value) depth(level int) int {
	deepest := level
	if !v.IsContainer() || level > MaxDepth+1 {
		return deepest
	}
	c := v.open()
	for i := range c.count {
		if e, ok := c.value(i); ok {
			deepest = max(deepest, e.depth(level+1))
		}
	}
	return deepest
}

// nesting returns the number of containers within each other.
func (v Value) nesting(level int) int {
	if !v.IsContainer() || level > MaxDepth {
		return level
	}
	c := v.open()
	deepest := level + 1
	for i := range c.count {
		if e, ok := c.value(i); ok && e.IsContainer() {
			deepest = max(deepest, e.nesting(level+1))
		}
	}
	return deepest
}

// Free returns the bytes that edits in place have left unused.
func (v Value) Free() int { return v.free(1) }

func (v Value) free(level int) int {
	if !v.IsContainer() || level > MaxDepth+1 {
		return 0
	}
	c := v.open()
	free := len(c.data) - c.tablesEnd()
	for i := range c.count {
		if c.object {
			k, _ := c.key(i)
			free -= len(k)
		}
		e, ok := c.value(i)
		if !ok || isInlined(e.tag, c.large) {
			continue
		}
		free += e.free(level+1) - e.payloadSize()
	}
	return free
}

// Size is the number of bytes that AppendDocument appends.
func (v Value) Size() int { return 1 + v.payloadSize() }

// payloadSize is the number of bytes that a value takes where it is not inlined.
func (v Value) payloadSize() int {
	switch v.tag {
	case tagString:
		return lengthSize(len(v.data)) + len(v.data)
	case tagOpaque:
		return 1 + lengthSize(len(v.data)) + len(v.data)
	}
	return len(v.data)
}

// appendPayload appends the value as it stands where it is not inlined.
func (v Value) appendPayload(dst []byte) []byte {
	switch v.tag {
	case tagString:
		dst = appendLength(dst, len(v.data))
	case tagOpaque:
		dst = appendLength(append(dst, byte(v.field)), len(v.data))
	}
	return append(dst, v.data...)
}

// AppendDocument appends a document that is this value. Bytes are copied as they are, gaps included.
func (v Value) AppendDocument(dst []byte) []byte {
	if !v.Exists() {
		return append(dst, nullDocument...)
	}
	return v.appendPayload(append(dst, v.tag))
}

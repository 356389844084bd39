package json

import (
	"bytes"
	"cmp"

	"github.com/triremedb/trireme/engine/types"
)

// rank orders values of different types as MySQL does; all numbers have one rank.
func (t Type) rank() Type {
	if t >= TypeInteger && t <= TypeDecimal {
		return TypeInteger
	}
	return t
}

// Compare orders values as SQL does: by type first, except that numbers compare by value; arrays element by element; objects by
// the number of members, then member by member in key order, name before value.
func Compare(a, b Value) int { return compareAt(a, b, 0) }

func compareAt(a, b Value, level int) int {
	ta, tb := a.Type(), b.Type()
	if r := cmp.Compare(ta.rank(), tb.rank()); r != 0 {
		return r
	}
	switch ta {
	case TypeInteger, TypeUnsigned, TypeDouble, TypeDecimal:
		return compareNumbers(a, b, ta, tb)
	case TypeString, TypeBit, TypeBlob, TypeOpaque:
		if r := cmp.Compare(a.field, b.field); r != 0 {
			return r
		}
		return bytes.Compare(a.data, b.data)
	case TypeBoolean:
		return cmp.Compare(b.data[0], a.data[0]) // true is 1, false is 2
	case TypeDate, TypeTime, TypeDateTime:
		return cmp.Compare(int64(le.Uint64(a.data)), int64(le.Uint64(b.data)))
	case TypeArray, TypeObject:
		return compareContainers(a, b, level)
	}
	return 0
}

func compareContainers(a, b Value, level int) int {
	x, y := a.open(), b.open()
	if level > MaxDepth {
		return 0
	}
	if x.object && x.count != y.count {
		return cmp.Compare(x.count, y.count)
	}
	for i := range min(x.count, y.count) {
		if x.object {
			k, _ := x.key(i)
			l, _ := y.key(i)
			if r := compareKeys(k, l); r != 0 {
				return r
			}
		}
		v, _ := x.value(i)
		w, _ := y.value(i)
		if r := compareAt(v, w, level+1); r != 0 {
			return r
		}
	}
	return cmp.Compare(x.count, y.count)
}

func compareNumbers(a, b Value, ta, tb Type) int {
	switch {
	case ta == TypeInteger && tb == TypeInteger:
		return cmp.Compare(a.Int(), b.Int())
	case ta == TypeUnsigned && tb == TypeUnsigned:
		return cmp.Compare(a.Uint(), b.Uint())
	case ta == TypeDouble && tb == TypeDouble:
		return cmp.Compare(a.Double(), b.Double())
	}
	var x, y [numberKeySize]byte
	return bytes.Compare(appendNumberKey(x[:0], a, ta), appendNumberKey(y[:0], b, tb))
}

// Bytes of sort keys besides the rank of a value's type, which begins it.
const (
	keyEnd       = 0x00 // of an array; below every rank
	keyEscape    = 0xFF // after a zero byte within a string
	keyStringEnd = 0x01 // after the zero byte that ends a string
)

// AppendSortKey appends bytes that order as Compare does. No key is a prefix of another.
func (v Value) AppendSortKey(dst []byte) []byte { return v.appendSortKey(dst, 0) }

func (v Value) appendSortKey(dst []byte, level int) []byte {
	t := v.Type()
	dst = append(dst, byte(t.rank())+1)
	switch t {
	case TypeInteger, TypeUnsigned, TypeDouble, TypeDecimal:
		return appendNumberKey(dst, v, t)
	case TypeString:
		return appendEscaped(dst, v.data)
	case TypeBit, TypeBlob, TypeOpaque:
		return appendEscaped(append(dst, byte(v.field)), v.data)
	case TypeBoolean:
		return append(dst, literalFalse-v.data[0])
	case TypeDate, TypeTime, TypeDateTime:
		return be.AppendUint64(dst, le.Uint64(v.data)^1<<63)
	case TypeArray, TypeObject:
		return v.appendContainerKey(dst, level)
	}
	return dst
}

func (v Value) appendContainerKey(dst []byte, level int) []byte {
	c := v.open()
	if level > MaxDepth {
		return dst
	}
	if c.object {
		dst = be.AppendUint32(dst, uint32(c.count))
	}
	for i := range c.count {
		if c.object {
			k, _ := c.key(i)
			dst = append(be.AppendUint16(dst, uint16(len(k))), k...)
		}
		e, _ := c.value(i)
		dst = e.appendSortKey(dst, level+1)
	}
	if c.object {
		return dst
	}
	return append(dst, keyEnd)
}

// appendEscaped appends s so that its end is recognised and sorts below any further byte.
func appendEscaped(dst, s []byte) []byte {
	for {
		i := bytes.IndexByte(s, 0)
		if i < 0 {
			break
		}
		dst = append(append(dst, s[:i]...), 0, keyEscape)
		s = s[i+1:]
	}
	return append(append(dst, s...), 0, keyStringEnd)
}

// Hash is equal for values that compare equal, and the same in every process.
func (v Value) Hash(seed uint64) uint64 { return v.hash(seed, 0) }

func (v Value) hash(h uint64, level int) uint64 {
	t := v.Type()
	h = types.HashUint64(h, uint64(t.rank())<<8|uint64(v.field&hashedField(t)))
	switch t {
	case TypeNull, TypeMissing:
		return h
	case TypeInteger, TypeUnsigned, TypeDouble, TypeDecimal:
		var key [numberKeySize]byte
		return types.HashBytes(h, appendNumberKey(key[:0], v, t))
	case TypeArray, TypeObject:
	default:
		return types.HashBytes(h, v.data)
	}
	c := v.open()
	h = types.HashUint64(h, uint64(c.count))
	if level > MaxDepth {
		return h
	}
	for i := range c.count {
		if c.object {
			k, _ := c.key(i)
			h = types.HashBytes(h, k)
		}
		e, _ := c.value(i)
		h = e.hash(h, level+1)
	}
	return h
}

// hashedField masks the column type out where it does not take part in comparison.
func hashedField(t Type) FieldType {
	if t == TypeOpaque || t == TypeBlob || t == TypeBit {
		return 0xFF
	}
	return 0
}

package json

import "encoding/binary"

// The tags of the binary form.
const (
	tagSmallObject = 0x00
	tagLargeObject = 0x01
	tagSmallArray  = 0x02
	tagLargeArray  = 0x03
	tagLiteral     = 0x04 // one byte: null, true or false
	tagInt16       = 0x05
	tagUint16      = 0x06
	tagInt32       = 0x07
	tagUint32      = 0x08
	tagInt64       = 0x09
	tagUint64      = 0x0A
	tagDouble      = 0x0B
	tagString      = 0x0C // length, bytes
	tagOpaque      = 0x0F // column type, length, bytes
	tagMissing     = 0xFF // ours, never stored: a value that is not there
)

const (
	literalNull  = 0
	literalTrue  = 1
	literalFalse = 2
)

// A FieldType is MySQL's number of a column type, the first byte of an opaque value.
type FieldType uint8

// The column types that this package knows. Others may occur and are carried along.
const (
	FieldTimestamp  FieldType = 7
	FieldDate       FieldType = 10
	FieldTime       FieldType = 11
	FieldDateTime   FieldType = 12
	FieldVarchar    FieldType = 15
	FieldBit        FieldType = 16
	FieldDecimal    FieldType = 246 // precision, scale, packed decimal
	FieldTinyBlob   FieldType = 249
	FieldMediumBlob FieldType = 250
	FieldLongBlob   FieldType = 251
	FieldBlob       FieldType = 252
	FieldVarString  FieldType = 253
	FieldString     FieldType = 254
)

var le = binary.LittleEndian

func isContainer(tag byte) bool { return tag <= tagLargeArray }
func isObject(tag byte) bool    { return tag <= tagLargeObject }
func isLarge(tag byte) bool     { return tag == tagLargeObject || tag == tagLargeArray }

// isInlined reports whether values of the tag stand in the entry of a small or large container, instead of their offset.
func isInlined(tag byte, large bool) bool {
	switch tag {
	case tagLiteral, tagInt16, tagUint16:
		return true
	case tagInt32, tagUint32:
		return large
	}
	return false
}

// offsetWidth is the width of counts, sizes and offsets.
func offsetWidth(large bool) int {
	if large {
		return 4
	}
	return 2
}

func readOffset(b []byte, large bool) int {
	if large {
		return int(le.Uint32(b))
	}
	return int(le.Uint16(b))
}

func appendOffset(dst []byte, n int, large bool) []byte {
	if large {
		return le.AppendUint32(dst, uint32(n))
	}
	return le.AppendUint16(dst, uint16(n))
}

func putOffset(b []byte, n int, large bool) {
	if large {
		le.PutUint32(b, uint32(n))
	} else {
		le.PutUint16(b, uint16(n))
	}
}

// Lengths of strings: seven bits a byte, least first, the high bit set on all bytes but the last; at most five bytes.
const maxLengthBytes = 5

func appendLength(dst []byte, n int) []byte {
	for ; n >= 0x80; n >>= 7 {
		dst = append(dst, byte(n)|0x80)
	}
	return append(dst, byte(n))
}

func lengthSize(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

// cutString returns the bytes of a string that begins with its length. Lengths of more bytes than needed are not accepted.
func cutString(b []byte) (s []byte, ok bool) {
	n := 0
	for i := 0; i < len(b) && i < maxLengthBytes; i++ {
		n |= int(b[i]&0x7F) << (7 * i)
		if b[i] < 0x80 {
			minimal := i == 0 || b[i] != 0
			if b = b[i+1:]; n > len(b) || !minimal {
				return nil, false
			}
			return b[:n], true
		}
	}
	return nil, false
}

// A container is the opened header of an array or object; all its tables are known to lie within data.
type container struct {
	data   []byte // the whole container: size bytes
	count  int
	object bool
	large  bool
}

// openContainer checks the header of the container at the start of b.
func openContainer(tag byte, b []byte) (c container, ok bool) {
	large := isLarge(tag)
	w := offsetWidth(large)
	if len(b) < 2*w {
		return c, false
	}
	count, size := readOffset(b, large), readOffset(b[w:], large)
	if size > len(b) {
		return c, false
	}
	c = container{data: b[:size], count: count, object: isObject(tag), large: large}
	return c, c.tablesEnd() <= size
}

func (c *container) width() int      { return offsetWidth(c.large) }
func (c *container) keyEntry() int   { return c.width() + 2 }
func (c *container) valueEntry() int { return c.width() + 1 }

// keyAt and valueAt are the positions of entries.
func (c *container) keyAt(i int) int { return 2*c.width() + i*c.keyEntry() }

func (c *container) valueAt(i int) int {
	at := 2*c.width() + i*c.valueEntry()
	if c.object {
		at += c.count * c.keyEntry()
	}
	return at
}

func (c *container) tablesEnd() int { return c.valueAt(c.count) }

// key returns the name of member i.
func (c *container) key(i int) (key []byte, ok bool) {
	entry := c.data[c.keyAt(i):]
	offset := readOffset(entry, c.large)
	length := int(le.Uint16(entry[c.width():]))
	if offset+length > len(c.data) {
		return nil, false
	}
	return c.data[offset : offset+length], true
}

// value returns value i.
func (c *container) value(i int) (v Value, ok bool) {
	entry := c.data[c.valueAt(i):]
	tag := entry[0]
	if isInlined(tag, c.large) {
		return makeValue(tag, entry[1:1+c.width()])
	}
	offset := readOffset(entry[1:], c.large)
	if offset >= len(c.data) {
		return missing, false
	}
	return makeValue(tag, c.data[offset:])
}

// offset returns where the payload of value i stands; ok is false when it is inlined.
func (c *container) offset(i int) (offset int, ok bool) {
	entry := c.data[c.valueAt(i):]
	if isInlined(entry[0], c.large) {
		return 0, false
	}
	return readOffset(entry[1:], c.large), true
}

// search returns the index of a member, or where it would be.
func (c *container) search(key []byte) (i int, found bool) {
	lo, hi := 0, c.count
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		k, ok := c.key(mid)
		if !ok {
			return 0, false
		}
		switch r := compareKeys(k, key); {
		case r == 0:
			return mid, true
		case r < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return lo, false
}

// scalarSize returns the payload size of tags that have a fixed one, 0 for others.
func scalarSize(tag byte) int {
	switch tag {
	case tagLiteral:
		return 1
	case tagInt16, tagUint16:
		return 2
	case tagInt32, tagUint32:
		return 4
	case tagInt64, tagUint64, tagDouble:
		return 8
	}
	return 0
}

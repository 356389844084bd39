package mysqlwire

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"

	"github.com/triremedb/trireme/engine/types"
)

// encoding is how the values of a column become bytes. It is chosen once for a row set:
// the loop over rows only switches on it.
type encoding uint8

const (
	textAny       encoding = iota // types.AppendText
	textInt                       // of Int64s
	textUint                      // of Uint64s
	textBytes                     // as they are
	textConverted                 // AppendText, then to another character set
	bin8                          // little-endian integers
	bin16
	bin32
	bin64
	binFloat
	binDouble
	binDate
	binDateTime
	binTimestamp
	binTime
)

// field is a column of a row set while its rows are sent.
type field struct {
	encoding encoding
	from, to types.Charset
}

// chooseEncoding decides how a column of type t travels. to is the character set of
// results.
func chooseEncoding(t *types.Type, binaryRows bool, to types.Charset, convert bool) field {
	f := field{encoding: textEncoding(t)}
	if isCharacters(t) && convert {
		f.from, f.to = t.Charset(), to
		// ASCII is a part of all others, and bytes are never converted.
		if f.from != types.CharsetBinary && !types.SameBytes(f.from, f.to) {
			f.encoding = textConverted
		}
	}
	if t.Kind == types.KindJSON && convert && !to.IsUTF8() {
		f.from, f.to, f.encoding = types.CharsetUTF8MB4, to, textConverted
	}
	if !binaryRows {
		return f
	}
	switch fieldTypes[t.Kind] {
	case fieldTiny:
		f.encoding = bin8
	case fieldShort, fieldYear:
		f.encoding = bin16
	case fieldLong, fieldInt24:
		f.encoding = bin32
	case fieldLongLong:
		f.encoding = bin64
	case fieldFloat:
		f.encoding = binFloat
	case fieldDouble:
		f.encoding = binDouble
	case fieldDate:
		f.encoding = binDate
	case fieldDateTime:
		f.encoding = binDateTime
	case fieldTimestamp:
		f.encoding = binTimestamp
	case fieldTime:
		f.encoding = binTime
	}
	return f
}

func textEncoding(t *types.Type) encoding {
	switch {
	case t.ZeroFill:
		return textAny
	case t.IsInteger() && t.Unsigned:
		return textUint
	case t.IsInteger():
		return textInt
	case t.Class() == types.ClassBytes:
		return textBytes
	}
	return textAny
}

// shortText is the longest text of a value that is not a string: it has one byte of
// length. A number has at most 65 digits, sign and point; DOUBLE(255,30) up to 342.
const shortText = 250

// appendTextValue appends value i of the vector, which is not NULL, as a
// length-encoded string.
func appendTextValue(b []byte, f *field, v *types.Vector, i int, loc *time.Location, scratch *[]byte) []byte {
	switch f.encoding {
	case textInt:
		at := len(b)
		b = strconv.AppendInt(append(b, 0), v.Int64s()[i], 10)
		b[at] = byte(len(b) - at - 1)
		return b
	case textUint:
		at := len(b)
		b = strconv.AppendUint(append(b, 0), v.Uint64s()[i], 10)
		b[at] = byte(len(b) - at - 1)
		return b
	case textBytes:
		return appendString(b, v.BytesAt(i))
	case textConverted:
		*scratch = types.AppendText((*scratch)[:0], v.Value(i), v.Type(), loc)
		n := len(*scratch)
		*scratch, _ = types.Convert(*scratch, (*scratch)[:n:n], f.from, f.to)
		return appendString(b, (*scratch)[n:])
	}
	at := len(b)
	b = types.AppendText(append(b, 0), v.Value(i), v.Type(), loc)
	n := len(b) - at - 1
	if n <= shortText {
		b[at] = byte(n)
		return b
	}
	// The length does not fit the byte that was left for it.
	size := intSize(uint64(n))
	b = append(b, make([]byte, size-1)...)
	copy(b[at+size:], b[at+1:at+1+n])
	appendInt(b[:at], uint64(n))
	return b
}

// appendBinaryValue appends value i of the vector, which is not NULL, in the form of the
// binary protocol.
func appendBinaryValue(b []byte, f *field, v *types.Vector, i int, loc *time.Location, scratch *[]byte) []byte {
	switch f.encoding {
	case bin8:
		return append(b, byte(integer(v, i)))
	case bin16:
		return binary.LittleEndian.AppendUint16(b, uint16(integer(v, i)))
	case bin32:
		return binary.LittleEndian.AppendUint32(b, uint32(integer(v, i)))
	case bin64:
		return binary.LittleEndian.AppendUint64(b, integer(v, i))
	case binFloat:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v.Float64s()[i])))
	case binDouble:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Float64s()[i]))
	case binDate:
		return appendBinaryDate(b, types.DateTime(v.Int64s()[i]).Truncate())
	case binDateTime:
		return appendBinaryDate(b, types.DateTime(v.Int64s()[i]))
	case binTimestamp:
		t := types.Timestamp(v.Int64s()[i])
		if t == 0 {
			return append(b, 0)
		}
		return appendBinaryDate(b, t.In(loc))
	case binTime:
		return appendBinaryTime(b, types.Duration(v.Int64s()[i]))
	}
	return appendTextValue(b, f, v, i, loc, scratch)
}

func integer(v *types.Vector, i int) uint64 {
	if v.Class() == types.ClassUint {
		return v.Uint64s()[i]
	}
	return uint64(v.Int64s()[i])
}

func appendBinaryDate(b []byte, d types.DateTime) []byte {
	year, month, day := d.Date()
	hour, minute, second, micro := d.Clock()
	n := 11
	switch {
	case d == 0:
		return append(b, 0)
	case hour|minute|second|micro == 0:
		n = 4
	case micro == 0:
		n = 7
	}
	b = append(b, byte(n), byte(year), byte(year>>8), byte(month), byte(day))
	if n == 4 {
		return b
	}
	b = append(b, byte(hour), byte(minute), byte(second))
	if n == 7 {
		return b
	}
	return binary.LittleEndian.AppendUint32(b, uint32(micro))
}

func appendBinaryTime(b []byte, d types.Duration) []byte {
	if d == 0 {
		return append(b, 0)
	}
	neg, hour, minute, second, micro := d.Clock()
	sign := byte(0)
	if neg {
		sign = 1
	}
	n := byte(12)
	if micro == 0 {
		n = 8
	}
	b = append(b, n, sign)
	b = binary.LittleEndian.AppendUint32(b, uint32(hour/24))
	b = append(b, byte(hour%24), byte(minute), byte(second))
	if micro == 0 {
		return b
	}
	return binary.LittleEndian.AppendUint32(b, uint32(micro))
}

// appendTextRow appends row i of the batch as the text protocol has it. room is nil if it cannot be long. Errors: as of
// rowRoom.
func appendTextRow(b []byte, fields []field, batch *types.Batch, i int, loc *time.Location, scratch *[]byte, room *rowRoom) ([]byte, error) {
	for k := range fields {
		v := &batch.Vecs[k]
		if v.IsNull(i) {
			b = append(b, 0xfb)
			continue
		}
		if room != nil {
			var err error
			if b, err = room.before(b, &fields[k], v.Bytes(i)); err != nil {
				return b, err
			}
		}
		b = appendTextValue(b, &fields[k], v, i, loc, scratch)
		if room != nil {
			if err := room.after(b, *scratch); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

// appendBinaryRow appends row i of the batch as the binary protocol has it: a bitmap of
// NULLs that begins at its third bit, then the other values. room and errors are as of appendTextRow.
func appendBinaryRow(b []byte, fields []field, batch *types.Batch, i int, loc *time.Location, scratch *[]byte, room *rowRoom) ([]byte, error) {
	b = append(b, headerOK)
	at := len(b)
	for range (len(fields) + 9) / 8 {
		b = append(b, 0)
	}
	for k := range fields {
		v := &batch.Vecs[k]
		if v.IsNull(i) {
			b[at+(k+2)/8] |= 1 << ((k + 2) % 8)
			continue
		}
		if room != nil {
			var err error
			if b, err = room.before(b, &fields[k], v.Bytes(i)); err != nil {
				return b, err
			}
		}
		b = appendBinaryValue(b, &fields[k], v, i, loc, scratch)
		if room != nil {
			if err := room.after(b, *scratch); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

package record

import (
	"encoding/binary"
	"math"

	"github.com/triremedb/trireme/engine/types"
)

// decoder says how a fixed column is read where that takes an instruction or two;
// package types decodes the others.
type decoder uint8

const (
	decodeAny decoder = iota
	decodeInt1
	decodeInt2
	decodeInt3
	decodeInt4
	decodeInt8
	decodeUint1
	decodeUint2
	decodeUint3
	decodeUint4
	decodeUint8
	decodeDouble
	decodeDate
	decodeDecimal // of at most 18 digits
)

func decoderOf(t *types.Type) decoder {
	switch {
	case t.Kind == types.KindDouble:
		return decodeDouble
	case t.Kind == types.KindDate:
		return decodeDate
	case t.ShortDecimal():
		return decodeDecimal
	case !t.IsInteger():
		return decodeAny
	}
	d := decodeInt1 + decoder(t.Kind-types.KindTinyInt)
	if t.Unsigned {
		d += decodeUint1 - decodeInt1
	}
	return d
}

func uint24(b []byte) uint32 {
	return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
}

// float reads a DOUBLE; ok is false if it is none that a column may have.
func float(b []byte) (f float64, ok bool) {
	bits := binary.BigEndian.Uint64(b)
	if bits>>63 != 0 {
		bits &^= 1 << 63
	} else {
		bits = ^bits
	}
	f = math.Float64frombits(bits)
	return f, f-f == 0
}

// appendFixed appends a value that has a fixed encoding.
func appendFixed(vec *types.Vector, d decoder, b []byte) error {
	switch d {
	case decodeInt1:
		vec.AppendInt64(int64(int8(b[0] ^ 1<<7)))
	case decodeInt2:
		vec.AppendInt64(int64(int16(binary.BigEndian.Uint16(b) ^ 1<<15)))
	case decodeInt3:
		vec.AppendInt64(int64(int32(uint24(b)^1<<23) << 8 >> 8))
	case decodeInt4:
		vec.AppendInt64(int64(int32(binary.BigEndian.Uint32(b) ^ 1<<31)))
	case decodeInt8:
		vec.AppendInt64(int64(binary.BigEndian.Uint64(b) ^ 1<<63))
	case decodeUint1:
		vec.AppendUint64(uint64(b[0]))
	case decodeUint2:
		vec.AppendUint64(uint64(binary.BigEndian.Uint16(b)))
	case decodeUint3:
		vec.AppendUint64(uint64(uint24(b)))
	case decodeUint4:
		vec.AppendUint64(uint64(binary.BigEndian.Uint32(b)))
	case decodeUint8:
		vec.AppendUint64(binary.BigEndian.Uint64(b))
	case decodeDouble:
		f, ok := float(b)
		if !ok {
			return vec.AppendStored(b) // gives the error
		}
		vec.AppendFloat64(f)
	default:
		return vec.AppendStored(b)
	}
	return nil
}

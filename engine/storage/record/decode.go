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
)

func decoderOf(t *types.Type) decoder {
	if t.Kind == types.KindDouble {
		return decodeDouble
	}
	if !t.IsInteger() {
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

// AppendColumn decodes a column of many rows into a vector of its type: what
// AppendTo of each of them does, in one loop. It stops at the first error, which is
// [ErrExternal] for an off-page value; n rows are done then.
func AppendColumn(vec *types.Vector, rows []Row, column int) (n int, err error) {
	vec.Reserve(vec.Len() + len(rows))
	for n < len(rows) {
		l := rows[n].layout
		end := n + 1
		for end < len(rows) && rows[end].layout == l {
			end++
		}
		loc := &l.columns[column]
		done := 0
		switch loc.kind {
		case locFixed:
			done, err = appendFixedColumn(vec, rows[n:end], loc)
		case locVariable:
			done, err = appendVariableColumn(vec, rows[n:end], loc)
		case locKey:
			done, err = appendKeyColumn(vec, rows[n:end], column)
		default:
			done, err = appendEach(vec, rows[n:end], column)
		}
		if n += done; err != nil {
			return n, err
		}
	}
	return n, nil
}

func appendEach(vec *types.Vector, rows []Row, column int) (int, error) {
	for i := range rows {
		if err := rows[i].AppendTo(vec, column); err != nil {
			return i, err
		}
	}
	return len(rows), nil
}

// appendFixedColumn decodes a fixed column of rows of one layout.
func appendFixedColumn(vec *types.Vector, rows []Row, loc *location) (int, error) {
	at, nullAt, mask := int(loc.off), int(loc.nullAt), loc.nullMask
	switch loc.decode {
	case decodeInt4:
		for i := range rows {
			if v := rows[i].Val; v[nullAt]&mask == 0 {
				vec.AppendInt64(int64(int32(binary.BigEndian.Uint32(v[at:]) ^ 1<<31)))
			} else {
				vec.AppendNull()
			}
		}
		return len(rows), nil
	case decodeInt8:
		for i := range rows {
			if v := rows[i].Val; v[nullAt]&mask == 0 {
				vec.AppendInt64(int64(binary.BigEndian.Uint64(v[at:]) ^ 1<<63))
			} else {
				vec.AppendNull()
			}
		}
		return len(rows), nil
	}
	end, d := at+int(loc.size), loc.decode
	for i := range rows {
		v := rows[i].Val
		if v[nullAt]&mask != 0 {
			vec.AppendNull()
		} else if err := appendFixed(vec, d, v[at:end]); err != nil {
			return i, err
		}
	}
	return len(rows), nil
}

// appendKeyColumn decodes a column that lies in the clustered key.
func appendKeyColumn(vec *types.Vector, rows []Row, column int) (int, error) {
	k := rows[0].schema.Keys[0]
	part := int(rows[0].layout.columns[column].off)
	p, at := &k.Parts[part], k.offsets[part]
	if p.decode == decodeAny || at < 0 {
		return appendEach(vec, rows, column)
	}
	for i := range rows {
		key := rows[i].Key
		if at+p.size > len(key) {
			return i, shortKey(key)
		}
		if p.decode == decodeInt8 {
			vec.AppendInt64(int64(binary.BigEndian.Uint64(key[at:]) ^ 1<<63))
		} else if err := appendFixed(vec, p.decode, key[at:at+p.size]); err != nil {
			return i, err
		}
	}
	return len(rows), nil
}

// appendVariableColumn decodes a variable column of rows of one layout: strings
// and documents, which are stored as they are.
func appendVariableColumn(vec *types.Vector, rows []Row, loc *location) (int, error) {
	for i := range rows {
		r := &rows[i]
		if r.Val[loc.nullAt]&loc.nullMask != 0 {
			vec.AppendNull()
			continue
		}
		f, err := r.variable(loc)
		switch {
		case err != nil:
			return i, err
		case f.External:
			return i, ErrExternal
		}
		vec.AppendBytes(f.Bytes)
	}
	return len(rows), nil
}

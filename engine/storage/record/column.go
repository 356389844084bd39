package record

import (
	"encoding/binary"

	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/engine/types/decimal"
)

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
			done, err = appendFixedColumn(vec, rows[n:end], column, loc)
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

// appendFixedColumn decodes a fixed column of rows of one layout. The words are
// written first, whatever is NULL; if one is no value the rows are decoded one by one,
// which finds out whether that matters.
func appendFixedColumn(vec *types.Vector, rows []Row, column int, loc *location) (int, error) {
	if loc.decode == decodeAny {
		return appendEach(vec, rows, column)
	}
	from := vec.Extend(len(rows))
	if !decodeWords(vec, from, rows, loc) {
		vec.Truncate(from)
		return appendEach(vec, rows, column)
	}
	if mask, at := loc.nullMask, int(loc.nullAt); mask != 0 {
		for i := range rows {
			if rows[i].Val[at]&mask != 0 {
				vec.SetNull(from + i)
			}
		}
	}
	return len(rows), nil
}

// decodeWords sets the values of a vector from one position on.
func decodeWords(vec *types.Vector, from int, rows []Row, loc *location) (ok bool) {
	at := int(loc.off)
	switch loc.decode {
	case decodeDouble:
		out := vec.Float64s()[from:]
		ok = true
		for i := range rows {
			f, is := float(rows[i].Val[at : at+8])
			out[i] = f
			ok = ok && is
		}
		return ok
	case decodeUint1, decodeUint2, decodeUint3, decodeUint4, decodeUint8:
		decodeUints(vec.Uint64s()[from:], rows, at, int(loc.size))
		return true
	case decodeDate:
		out := vec.Int64s()[from:]
		ok = true
		for i := range rows {
			w, is := types.StoredDate(rows[i].Val[at : at+3])
			out[i] = w
			ok = ok && is
		}
		return ok
	case decodeDecimal:
		t := vec.Type()
		return decodeDecimals(vec.Int64s()[from:], rows, at, decimal.NewShortPacking(int(t.Precision), int(t.Scale)))
	}
	decodeInts(vec.Int64s()[from:], rows, at, int(loc.size))
	return true
}

// decodeInts reads big-endian integers whose sign bit is inverted.
func decodeInts(out []int64, rows []Row, at, size int) {
	out = out[:len(rows)]
	switch size {
	case 1:
		for i := range rows {
			out[i] = int64(int8(rows[i].Val[at] ^ 1<<7))
		}
	case 2:
		for i := range rows {
			out[i] = int64(int16(binary.BigEndian.Uint16(rows[i].Val[at:]) ^ 1<<15))
		}
	case 3:
		for i := range rows {
			out[i] = int64(int32(uint24(rows[i].Val[at:at+3])^1<<23) << 8 >> 8)
		}
	case 4:
		for i := range rows {
			out[i] = int64(int32(binary.BigEndian.Uint32(rows[i].Val[at:]) ^ 1<<31))
		}
	default:
		for i := range rows {
			out[i] = int64(binary.BigEndian.Uint64(rows[i].Val[at:]) ^ 1<<63)
		}
	}
}

func decodeUints(out []uint64, rows []Row, at, size int) {
	out = out[:len(rows)]
	switch size {
	case 1:
		for i := range rows {
			out[i] = uint64(rows[i].Val[at])
		}
	case 2:
		for i := range rows {
			out[i] = uint64(binary.BigEndian.Uint16(rows[i].Val[at:]))
		}
	case 3:
		for i := range rows {
			out[i] = uint64(uint24(rows[i].Val[at : at+3]))
		}
	case 4:
		for i := range rows {
			out[i] = uint64(binary.BigEndian.Uint32(rows[i].Val[at:]))
		}
	default:
		for i := range rows {
			out[i] = binary.BigEndian.Uint64(rows[i].Val[at:])
		}
	}
}

func decodeDecimals(out []int64, rows []Row, at int, p decimal.ShortPacking) bool {
	out = out[:len(rows)]
	end, ok := at+p.Size(), true
	for i := range rows {
		x, is := p.Unscaled(rows[i].Val[at:end])
		out[i] = x
		ok = ok && is
	}
	return ok
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
	l := rows[0].layout
	at := l.ends + 2*int(loc.off)
	for i := range rows {
		v := rows[i].Val
		if v[loc.nullAt]&loc.nullMask != 0 {
			vec.AppendNull()
			continue
		}
		from, end := l.data, int(binary.LittleEndian.Uint16(v[at:]))
		if loc.off > 0 {
			from = int(binary.LittleEndian.Uint16(v[at-2:])) &^ extFlag
		}
		if from >= l.data && from <= end && end <= len(v) { // so it has no extFlag
			vec.AppendBytes(v[from:end])
			continue
		}
		if f, err := rows[i].variable(loc); err != nil {
			return i, err
		} else if f.External {
			return i, ErrExternal
		}
	}
	return len(rows), nil
}

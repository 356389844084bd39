package record

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/types"
)

// maxInlineRow bounds the value of a clustered record, so that two records fit a
// page; longer rows put values off-page.
const maxInlineRow = 7800

// MaxInlineRow is the largest value of a clustered record in bytes.
const MaxInlineRow = maxInlineRow

// ErrRowTooLarge says that a row does not fit a page even with its long values
// off-page (MySQL's error 1118).
var ErrRowTooLarge = errors.New("record: row size too large")

// TrxID returns the transaction that wrote the version.
//
// REQUIRES: len(value) >= HeaderSize, as Row checks.
func TrxID(value []byte) uint64 {
	return uint64(binary.LittleEndian.Uint32(value[offTrx:])) | uint64(binary.LittleEndian.Uint16(value[offTrx+4:]))<<32
}

// RollPtr returns the version's roll pointer, under the same condition.
func RollPtr(value []byte) uint64 {
	return uint64(binary.LittleEndian.Uint32(value[offRoll:])) |
		uint64(binary.LittleEndian.Uint16(value[offRoll+4:]))<<32 | uint64(value[offRoll+6])<<48
}

// SetHeader stores transaction id (48 bits) and roll pointer (56 bits).
func SetHeader(value []byte, trx, roll uint64) {
	binary.LittleEndian.PutUint32(value[offTrx:], uint32(trx))
	binary.LittleEndian.PutUint16(value[offTrx+4:], uint16(trx>>32))
	binary.LittleEndian.PutUint32(value[offRoll:], uint32(roll))
	binary.LittleEndian.PutUint16(value[offRoll+4:], uint16(roll>>32))
	value[offRoll+6] = byte(roll >> 48)
}

// External is how a column's value is passed when it lies off-page: the reference
// followed by the local prefix.
type External []byte

// Change is a new value for a column.
type Change struct {
	Column   int // position
	Value    types.Value
	External External // set instead of Value for an off-page value
}

// AppendRow appends the value of a clustered record in the current row version;
// the header's transaction and roll pointer are zero. values has one element for
// each column position, of which those of dropped columns are ignored; external
// is nil or has the off-page form of the columns that have one.
func (s *Schema) AppendRow(dst []byte, values []types.Value, external []External) ([]byte, error) {
	l := s.current
	start := len(dst)
	dst = appendZeros(dst, l.data)
	dst[start+offVersion] = s.RowVersion
	for _, i := range s.order {
		loc := &l.columns[i]
		if loc.kind != locFixed && loc.kind != locVariable {
			continue
		}
		var ext External
		if external != nil {
			ext = external[i]
		}
		var err error
		if dst, err = s.putColumn(dst, start, i, values[i], ext); err != nil {
			return dst[:start], err
		}
	}
	return dst, nil
}

// putColumn stores a column of a row under construction, whose variable columns
// come in order.
func (s *Schema) putColumn(dst []byte, start, i int, v types.Value, ext External) ([]byte, error) {
	l, t := s.current, &s.Columns[i].Type
	loc := &l.columns[i]
	null := v.IsNull() && ext == nil
	if null {
		if loc.nullBit < 0 {
			return dst, fmt.Errorf("record: NULL for column %s, which is NOT NULL", s.Columns[i].Name)
		}
		dst[start+HeaderSize+loc.nullBit/8] |= 1 << (loc.nullBit % 8)
	}
	if loc.kind == locFixed {
		if !null {
			at := start + loc.off
			if n := len(types.AppendStored(dst[at:at:at+loc.size], v, t)); n != loc.size {
				return dst, fmt.Errorf("record: column %s has %d bytes, not %d", s.Columns[i].Name, n, loc.size)
			}
		}
		return dst, nil
	}
	flag := 0
	switch {
	case ext != nil:
		dst = append(dst, ext...)
		flag = extFlag
	case !null:
		dst = types.AppendStored(dst, v, t)
	}
	return endVariable(dst, start, l, loc, flag)
}

func endVariable(dst []byte, start int, l *Layout, loc *location, flag int) ([]byte, error) {
	end := len(dst) - start
	if end > maxInlineRow {
		return dst, ErrRowTooLarge
	}
	binary.LittleEndian.PutUint16(dst[start+l.ends+2*loc.off:], uint16(end|flag))
	return dst, nil
}

func appendZeros(dst []byte, n int) []byte {
	for ; n >= 64; n -= 64 {
		dst = append(dst, zeros[:]...)
	}
	return append(dst, zeros[:n]...)
}

var zeros [64]byte

// AppendUpdated appends the row with some columns changed, in the current row
// version, header included as it is in the old one.
func (s *Schema) AppendUpdated(dst []byte, old Row, changes []Change) ([]byte, error) {
	if old.layout == s.current && s.patchable(old, changes) {
		return s.appendPatched(dst, old, changes)
	}
	l := s.current
	start := len(dst)
	dst = appendZeros(dst, l.data)
	copy(dst[start:], old.Val[:offVersion])
	dst[start+offVersion] = s.RowVersion
	for _, i := range s.order {
		loc := &l.columns[i]
		if loc.kind != locFixed && loc.kind != locVariable {
			continue
		}
		var err error
		if c := changeOf(changes, i); c != nil {
			dst, err = s.putColumn(dst, start, i, c.Value, c.External)
		} else {
			dst, err = s.copyColumn(dst, start, i, old)
		}
		if err != nil {
			return dst[:start], err
		}
	}
	return dst, nil
}

func changeOf(changes []Change, column int) *Change {
	for i := range changes {
		if changes[i].Column == column {
			return &changes[i]
		}
	}
	return nil
}

// patchable reports whether the changes leave every other byte in its place.
func (s *Schema) patchable(old Row, changes []Change) bool {
	for i := range changes {
		c := &changes[i]
		loc := &s.current.columns[c.Column]
		switch {
		case loc.kind == locFixed:
		case loc.kind == locVariable && c.External == nil && !c.Value.IsNull():
			f, err := old.Field(c.Column)
			if err != nil || f.Null || f.External || len(f.Bytes) != len(c.Value.Bytes()) {
				return false
			}
		case loc.kind == locVariable:
			return false
		}
	}
	return true
}

func (s *Schema) appendPatched(dst []byte, old Row, changes []Change) ([]byte, error) {
	start := len(dst)
	dst = append(dst, old.Val...)
	for i := range changes {
		c := &changes[i]
		loc := &s.current.columns[c.Column]
		switch loc.kind {
		case locFixed:
			if loc.nullBit >= 0 {
				dst[start+HeaderSize+loc.nullBit/8] &^= 1 << (loc.nullBit % 8)
			}
			clear(dst[start+loc.off : start+loc.off+loc.size])
			var err error
			if dst, err = s.putColumn(dst, start, c.Column, c.Value, nil); err != nil {
				return dst[:start], err
			}
		case locVariable:
			f, err := old.Field(c.Column)
			if err != nil {
				return dst[:start], err
			}
			end := int(binary.LittleEndian.Uint16(old.Val[s.current.ends+2*loc.off:]))
			copy(dst[start+end-len(f.Bytes):], c.Value.Bytes())
		}
	}
	return dst, nil
}

// copyColumn takes a column over from an older row, whatever its version.
func (s *Schema) copyColumn(dst []byte, start, i int, old Row) ([]byte, error) {
	f, err := old.Field(i)
	if err != nil {
		return dst, err
	}
	l := s.current
	loc := &l.columns[i]
	if f.Null {
		if loc.nullBit < 0 {
			return dst, fmt.Errorf("%w: NULL in column %s", ErrCorrupt, s.Columns[i].Name)
		}
		dst[start+HeaderSize+loc.nullBit/8] |= 1 << (loc.nullBit % 8)
	}
	if loc.kind == locFixed {
		if !f.Null && copy(dst[start+loc.off:start+loc.off+loc.size], f.Bytes) != loc.size {
			return dst, fmt.Errorf("%w: column %s has %d bytes", ErrCorrupt, s.Columns[i].Name, len(f.Bytes))
		}
		return dst, nil
	}
	dst = append(dst, f.Bytes...)
	flag := 0
	if f.External {
		flag = extFlag
	}
	return endVariable(dst, start, l, loc, flag)
}

// Row is a clustered record being read. It aliases the record's bytes.
type Row struct {
	Key, Val []byte
	schema   *Schema
	layout   *Layout
}

// Field is a column of a record in stored form.
type Field struct {
	Bytes    []byte // of an off-page value: the reference and the local prefix
	Null     bool
	External bool
	keyPart  bool // Bytes is a key form that is not the stored form
}

// Row checks a clustered record's outline and returns it for reading.
func (s *Schema) Row(key, value []byte) (Row, error) {
	if len(value) < HeaderSize {
		return Row{}, fmt.Errorf("%w: row of %d bytes", ErrCorrupt, len(value))
	}
	l := s.current
	if value[offVersion] != s.RowVersion {
		var err error
		if l, err = s.layout(value[offVersion]); err != nil {
			return Row{}, err
		}
	}
	if len(value) < l.data {
		return Row{}, fmt.Errorf("%w: row of %d bytes; its version has at least %d", ErrCorrupt, len(value), l.data)
	}
	return Row{Key: key, Val: value, schema: s, layout: l}, nil
}

// TrxID is the transaction that wrote the row.
func (r *Row) TrxID() uint64 { return TrxID(r.Val) }

// Field returns a column in stored form. A column that lies in the key and whose
// key form differs is decoded by Value and AppendTo only; its Bytes are the key
// form then.
func (r *Row) Field(i int) (Field, error) {
	loc := &r.layout.columns[i]
	if loc.nullBit >= 0 && r.Val[HeaderSize+loc.nullBit/8]>>(loc.nullBit%8)&1 != 0 {
		return Field{Null: true}, nil
	}
	switch loc.kind {
	case locFixed:
		return Field{Bytes: r.Val[loc.off : loc.off+loc.size]}, nil
	case locVariable:
		return r.variable(loc)
	case locKey:
		k := r.schema.Keys[0]
		b, err := k.partOf(r.Key, loc.off)
		if err != nil {
			return Field{}, err
		}
		p := &k.Parts[loc.off]
		return Field{Bytes: b, keyPart: !p.Plain || !p.Type.NotNull}, nil
	}
	c := &r.schema.Columns[i]
	return Field{Bytes: c.Initial, Null: c.Initial == nil}, nil
}

func (r *Row) variable(loc *location) (Field, error) {
	l := r.layout
	at := l.ends + 2*loc.off
	end := int(binary.LittleEndian.Uint16(r.Val[at:]))
	from := l.data
	if loc.off > 0 {
		from = int(binary.LittleEndian.Uint16(r.Val[at-2:])) &^ extFlag
	}
	ext := end&extFlag != 0
	end &^= extFlag
	if from < l.data || from > end || end > len(r.Val) || ext && end-from < LOBRefSize {
		return Field{}, fmt.Errorf("%w: column from %d to %d in a row of %d bytes", ErrCorrupt, from, end, len(r.Val))
	}
	return Field{Bytes: r.Val[from:end:end], External: ext}, nil
}

// ErrExternal says that a column lies off-page and must be read through its
// reference.
var ErrExternal = errors.New("record: the value lies off-page")

// Value decodes a column. Strings alias the record or arena, to which it appends.
// The error is [ErrExternal] for an off-page value.
func (r *Row) Value(i int, arena []byte) (types.Value, []byte, error) {
	f, err := r.Field(i)
	switch {
	case err != nil:
		return types.Null, arena, err
	case f.Null:
		return types.Null, arena, nil
	case f.External:
		return types.Null, arena, ErrExternal
	case f.keyPart:
		p := &r.schema.Keys[0].Parts[r.layout.columns[i].off]
		v, _, arena, err := types.DecodeKey(f.Bytes, p.Type, p.Desc, p.Prefix, arena)
		return v, arena, err
	}
	v, err := types.DecodeStored(f.Bytes, &r.schema.Columns[i].Type)
	return v, arena, err
}

// AppendTo decodes a column into a vector of its type, without allocating. The
// error is [ErrExternal] for an off-page value; nothing is appended then.
func (r *Row) AppendTo(vec *types.Vector, i int) error {
	f, err := r.Field(i)
	switch {
	case err != nil:
		return err
	case f.Null:
		vec.AppendNull()
		return nil
	case f.External:
		return ErrExternal
	case f.keyPart:
		p := &r.schema.Keys[0].Parts[r.layout.columns[i].off]
		_, err := vec.AppendKey(f.Bytes, p.Desc, p.Prefix)
		return err
	}
	return vec.AppendStored(f.Bytes)
}

// IsExternal reports whether a column lies off-page.
func (r *Row) IsExternal(i int) bool {
	loc := &r.layout.columns[i]
	return loc.kind == locVariable && binary.LittleEndian.Uint16(r.Val[r.layout.ends+2*loc.off:])&extFlag != 0
}

// EachExternal calls fn with the reference of every off-page value of the row.
func (r *Row) EachExternal(fn func(column int, ref []byte) error) error {
	for i := range r.layout.columns {
		if r.layout.columns[i].kind != locVariable {
			continue
		}
		f, err := r.Field(i)
		if err != nil {
			return err
		}
		if f.External {
			if err := fn(i, f.Bytes[:LOBRefSize]); err != nil {
				return err
			}
		}
	}
	return nil
}

package record

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/types"
)

// Row is a clustered record being read. It aliases the record's bytes.
type Row struct {
	Key, Val []byte
	// Prefixes reads what index entries need of an off-page value beyond what the row keeps of
	// it. Without it they fail with [ErrExternal] there.
	Prefixes PrefixReader
	schema   *Schema
	layout   *Layout
}

// PrefixReader appends the first n bytes of a column's off-page value, to which ref refers.
type PrefixReader func(dst []byte, column int, ref []byte, n int) ([]byte, error)

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
	if r.Val[loc.nullAt]&loc.nullMask != 0 {
		return Field{Null: true}, nil
	}
	switch loc.kind {
	case locFixed:
		return Field{Bytes: r.Val[loc.off : loc.off+loc.size : loc.off+loc.size]}, nil
	case locVariable:
		return r.variable(loc)
	case locKey:
		k := r.schema.Keys[0]
		b, err := k.partOf(r.Key, int(loc.off))
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
	at := l.ends + 2*int(loc.off)
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
	loc := &r.layout.columns[i]
	switch loc.kind {
	case locFixed:
		if r.Val[loc.nullAt]&loc.nullMask != 0 {
			vec.AppendNull()
			return nil
		}
		return appendFixed(vec, loc.decode, r.Val[loc.off:loc.off+loc.size])
	case locKey:
		return appendPart(vec, r.schema.Keys[0], r.Key, int(loc.off))
	}
	f, err := r.Field(i)
	switch {
	case err != nil:
		return err
	case f.Null:
		vec.AppendNull()
		return nil
	case f.External:
		return ErrExternal
	}
	return vec.AppendStored(f.Bytes)
}

// IsExternal reports whether a column lies off-page.
func (r *Row) IsExternal(i int) bool {
	loc := &r.layout.columns[i]
	return loc.kind == locVariable && binary.LittleEndian.Uint16(r.Val[r.layout.ends+2*int(loc.off):])&extFlag != 0
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

package record

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/triremedb/trireme/engine/types"
)

// AppendKey appends the key form of values, which belong to the index's parts in
// order; fewer values than parts give the prefix of a key, for ranges.
func (k *KeySchema) AppendKey(dst []byte, values ...types.Value) []byte {
	for i, v := range values {
		p := &k.Parts[i]
		dst = types.AppendKey(dst, v, p.Type, p.Desc, p.Prefix)
	}
	return dst
}

// AppendRowKey appends the clustered key of a row given by column position.
func (s *Schema) AppendRowKey(dst []byte, values []types.Value) ([]byte, error) {
	start := len(dst)
	for i := range s.Keys[0].Parts {
		p := &s.Keys[0].Parts[i]
		if values[p.Column].IsNull() {
			return dst[:start], fmt.Errorf("record: NULL for primary key column %s", s.Columns[p.Column].Name)
		}
		dst = types.AppendKey(dst, values[p.Column], p.Type, p.Desc, p.Prefix)
	}
	if n := len(dst) - start; n > MaxEntryKey {
		return dst[:start], fmt.Errorf("%w: primary key of %d bytes, at most %d are possible", ErrKeyTooLong, n, MaxEntryKey)
	}
	return dst, nil
}

// partOf returns part i of a key that belongs to the index.
func (k *KeySchema) partOf(key []byte, i int) ([]byte, error) {
	p := &k.Parts[i]
	if at := k.offsets[i]; at >= 0 && p.size > 0 {
		if at+p.size > len(key) {
			return nil, shortKey(key)
		}
		return key[at : at+p.size : at+p.size], nil
	}
	for j := 0; ; j++ {
		q := &k.Parts[j]
		n, err := types.SkipKey(key, q.Type, q.Desc, q.Prefix)
		if err != nil {
			return nil, fmt.Errorf("%w: part %d: %w", ErrCorrupt, j+1, err)
		}
		if j == i {
			return key[:n:n], nil
		}
		key = key[n:]
	}
}

func shortKey(key []byte) error {
	return fmt.Errorf("%w: key of %d bytes is too short", ErrCorrupt, len(key))
}

// PartLen returns the length of the first parts of a key.
func (k *KeySchema) PartLen(key []byte, parts int) (int, error) {
	at := 0
	for j := range parts {
		q := &k.Parts[j]
		n, err := types.SkipKey(key[at:], q.Type, q.Desc, q.Prefix)
		if err != nil {
			return 0, fmt.Errorf("%w: part %d: %w", ErrCorrupt, j+1, err)
		}
		at += n
	}
	return at, nil
}

// AppendSecondary appends the key of the row's entry in a secondary index: the
// index's parts, of partLen bytes, and the clustered key. hasNull tells that a part
// is NULL, so that the entry is not subject to uniqueness. arena is working memory,
// returned for reuse.
//
// Errors: [ErrKeyTooLong], which does not come for rows that were made for a table with
// the index; and where the row keeps less of an off-page value than the index needs,
// what row.Prefixes returns, or [ErrExternal] if there is none.
func (s *Schema) AppendSecondary(dst []byte, k *KeySchema, row Row, arena []byte) (key []byte, partLen int, hasNull bool, arenaOut []byte, err error) {
	start := len(dst)
	for i := range k.Parts {
		p := &k.Parts[i]
		f, err := row.Field(p.Column)
		if err != nil {
			return dst[:start], 0, false, arena, err
		}
		hasNull = hasNull || f.Null
		if p.Plain && !f.keyPart && !f.Null {
			if !p.Type.NotNull {
				dst = append(dst, 1)
			}
			dst = append(dst, f.Bytes...)
			continue
		}
		v := types.Null
		switch {
		case f.Null:
		case f.External:
			local, need := f.Bytes[LOBRefSize:], p.needs(f.Bytes)
			if len(local) < need {
				from := len(arena)
				if arena, err = row.appendPrefix(arena, p.Column, f.Bytes, need); err != nil {
					return dst[:start], 0, false, arena, err
				}
				local = arena[from:]
			}
			v = types.NewBytes(local)
		default:
			if v, arena, err = row.Value(p.Column, arena); err != nil {
				return dst[:start], 0, false, arena, err
			}
		}
		dst = types.AppendKey(dst, v, p.Type, p.Desc, p.Prefix)
	}
	partLen = len(dst) - start
	if k.checkSize || partLen+len(row.Key) > MaxEntryKey {
		if err := s.checkEntry(k, row, partLen+len(row.Key)); err != nil {
			return dst[:start], 0, false, arena, err
		}
	}
	return append(dst, row.Key...), partLen, hasNull, arena, nil
}

// SameFields reports whether two versions of a row have the same in all columns that the index's entries are made
// from, off-page references included. They have the same entry then.
func (k *KeySchema) SameFields(a, b Row) (bool, error) {
	for i := range k.Parts {
		if same, err := sameField(&a, &b, k.Parts[i].Column); !same {
			return false, err
		}
	}
	for _, c := range k.Kept {
		if same, err := sameField(&a, &b, c); !same {
			return false, err
		}
	}
	return true, nil
}

func sameField(a, b *Row, column int) (bool, error) {
	f, err := a.Field(column)
	if err != nil {
		return false, err
	}
	g, err := b.Field(column)
	return err == nil && f.Null == g.Null && f.External == g.External && bytes.Equal(f.Bytes, g.Bytes), err
}

// needs is how many bytes of an off-page value the index needs.
func (p *KeyPart) needs(field []byte) int {
	n := externalLen(field)
	if p.Prefix > 0 {
		n = min(n, p.Prefix*width(p.Type))
	}
	return n
}

// appendPrefix appends the first n bytes of an off-page value of which the row keeps less.
func (r *Row) appendPrefix(dst []byte, column int, field []byte, n int) ([]byte, error) {
	if r.Prefixes == nil {
		return dst, ErrExternal
	}
	if int64(n) > r.schema.Columns[column].Type.MaxBytes() || n > math.MaxUint16 {
		return dst, fmt.Errorf("%w: an index needs %d bytes of column %s", ErrCorrupt, n, r.schema.Columns[column].Name)
	}
	return r.Prefixes(dst, column, field[:LOBRefSize], n)
}

// externalLen is the length of the value that a reference names. The rest of a
// reference is package lob's.
func externalLen(field []byte) int { return int(binary.LittleEndian.Uint32(field[8:])) }

// keptNull stands for NULL among the kept columns of a secondary record.
const keptNull = 0xFFFF

// AppendSecondaryValue appends the value of the row's secondary record. Errors as of
// AppendSecondary.
func (s *Schema) AppendSecondaryValue(dst []byte, k *KeySchema, row Row, partLen int) ([]byte, error) {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(partLen))
	for _, c := range k.Kept {
		f, err := row.Field(c)
		switch {
		case err != nil:
			return dst, err
		case f.Null:
			dst = binary.LittleEndian.AppendUint16(dst, keptNull)
		default:
			b := f.Bytes
			if f.External {
				n := externalLen(f.Bytes)
				if b = b[LOBRefSize:]; len(b) < n {
					dst = binary.LittleEndian.AppendUint16(dst, uint16(n))
					if dst, err = row.appendPrefix(dst, c, f.Bytes, n); err != nil {
						return dst, err
					}
					continue
				}
			}
			dst = binary.LittleEndian.AppendUint16(dst, uint16(len(b)))
			dst = append(dst, b...)
		}
	}
	return dst, nil
}

// ClusteredKey returns the clustered key within a secondary record.
func ClusteredKey(key, value []byte) ([]byte, error) {
	if len(value) < 2 {
		return nil, fmt.Errorf("%w: secondary record's value has %d bytes", ErrCorrupt, len(value))
	}
	n := int(binary.LittleEndian.Uint16(value))
	if n > len(key) {
		return nil, fmt.Errorf("%w: secondary key has %d bytes, its first part %d", ErrCorrupt, len(key), n)
	}
	return key[n:], nil
}

// AppendCovered decodes a column of a secondary record into a vector.
//
// REQUIRES: k is a secondary index and k.Covers[column].
func (s *Schema) AppendCovered(vec *types.Vector, k *KeySchema, key, value []byte, column int) error {
	for n, c := range k.Kept {
		if c == column {
			return appendKept(vec, value, n)
		}
	}
	for i := range k.Parts {
		if p := &k.Parts[i]; p.Column == column && p.Lossless {
			return appendPart(vec, k, key, i)
		}
	}
	clustered, err := ClusteredKey(key, value)
	if err != nil {
		return err
	}
	pk := s.Keys[0]
	for i := range pk.Parts {
		if p := &pk.Parts[i]; p.Column == column && p.Lossless {
			return appendPart(vec, pk, clustered, i)
		}
	}
	return fmt.Errorf("record: index %s does not cover column %s", k.Name, s.Columns[column].Name)
}

func appendPart(vec *types.Vector, k *KeySchema, key []byte, i int) error {
	p := &k.Parts[i]
	b, err := k.partOf(key, i)
	if err != nil {
		return err
	}
	if p.Plain && p.Type.NotNull {
		return appendFixed(vec, p.decode, b)
	}
	_, err = vec.AppendKey(b, p.Desc, p.Prefix)
	return err
}

func appendKept(vec *types.Vector, value []byte, n int) error {
	b := value
	if len(b) < 2 {
		return fmt.Errorf("%w: secondary record's value has %d bytes", ErrCorrupt, len(value))
	}
	for b = b[2:]; ; n-- {
		if len(b) < 2 {
			return fmt.Errorf("%w: secondary record's value is cut short", ErrCorrupt)
		}
		size := int(binary.LittleEndian.Uint16(b))
		b = b[2:]
		if size == keptNull {
			if n == 0 {
				vec.AppendNull()
				return nil
			}
			continue
		}
		if size > len(b) {
			return fmt.Errorf("%w: secondary record's value is cut short", ErrCorrupt)
		}
		if n == 0 {
			return vec.AppendStored(b[:size])
		}
		b = b[size:]
	}
}

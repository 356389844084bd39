package record

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/triremedb/trireme/engine/types"
)

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
	// Same says that the column has this value already: only how the row keeps it changes.
	Same bool
}

// AppendRow appends the value of a clustered record in the current row version;
// the header's transaction and roll pointer are zero. values has one element for
// each column position, of which those of dropped columns are ignored; external
// is nil or has the off-page form of the columns that have one.
//
// The row fits: its clustered record and its secondary records are within the
// limits of an entry. Errors: [ErrRowTooLarge], [ErrKeyTooLong].
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
		v, ext := values[i], External(nil)
		if external != nil {
			ext = external[i]
		}
		if s.Columns[i].DroppedIn != 0 { // see Older
			v, ext = types.Null, nil
		}
		var err error
		if dst, err = s.putColumn(dst, start, i, v, ext); err != nil {
			return dst[:start], err
		}
	}
	return s.checkNewRow(dst, start, values, external)
}

// putColumn stores a column of a row under construction, whose variable columns
// come in order.
func (s *Schema) putColumn(dst []byte, start, i int, v types.Value, ext External) ([]byte, error) {
	l, t := s.current, &s.Columns[i].Type
	loc := &l.columns[i]
	null := v.IsNull() && ext == nil
	if null {
		if loc.nullMask == 0 && s.Columns[i].DroppedIn == 0 {
			return dst, fmt.Errorf("record: NULL for column %s, which is NOT NULL", s.Columns[i].Name)
		}
		dst[start+int(loc.nullAt)] |= loc.nullMask
	}
	if loc.kind == locFixed {
		if !null {
			at, size := start+int(loc.off), int(loc.size)
			if n := len(types.AppendStored(dst[at:at:at+size], v, t)); n != size {
				return dst, fmt.Errorf("record: column %s has %d bytes, not %d", s.Columns[i].Name, n, size)
			}
		}
		return dst, nil
	}
	flag := 0
	switch {
	case ext != nil:
		if len(ext) < LOBRefSize {
			return dst, fmt.Errorf("record: off-page reference of %d bytes for column %s", len(ext), s.Columns[i].Name)
		}
		dst = append(dst, ext...)
		flag = extFlag
	case !null:
		dst = types.AppendStored(dst, v, t)
	}
	return endVariable(dst, start, l, loc, flag)
}

func endVariable(dst []byte, start int, l *Layout, loc *location, flag int) ([]byte, error) {
	end := len(dst) - start
	if end > MaxInlineRow {
		return dst, ErrRowTooLarge
	}
	binary.LittleEndian.PutUint16(dst[start+l.ends+2*int(loc.off):], uint16(end|flag))
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
// version, header included as it is in the old one. The row fits, as AppendRow's
// does, but for entries that stay as they are: a row may be too long for an index that is
// being built. old.Prefixes reads the off-page values of either.
//
// REQUIRES: each column is changed once; none of them is part of the clustered
// key, or its key form stays the same.
func (s *Schema) AppendUpdated(dst []byte, old Row, changes []Change) ([]byte, error) {
	start := len(dst)
	var err error
	if old.layout == s.current && s.patchable(old, changes) {
		dst, err = s.appendPatched(dst, old, changes)
	} else {
		dst, err = s.appendChanged(dst, old, changes)
	}
	if err != nil {
		return dst, err
	}
	if err = checkRecord(len(dst)-start, old.Key); err != nil {
		return dst[:start], err
	}
	for i, k := range s.unbounded {
		if !s.mayLengthen(k, changes) {
			continue
		}
		if dst, err = s.checkEntries(dst, start, len(dst), old.Key, old.Prefixes, s.unbounded[i:i+1]); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// mayLengthen reports whether the changes can make a row's entry in an index longer than it is. In which
// version the row was, and what else of its layout changes, is nothing to an entry.
func (s *Schema) mayLengthen(k *KeySchema, changes []Change) bool {
	for i := range changes {
		c := &changes[i]
		if !c.Same && k.holds(c.Column) && (s.current.columns[c.Column].kind == locVariable || !s.Columns[c.Column].Type.NotNull) {
			return true
		}
	}
	return false
}

// holds reports whether entries are made from a column.
func (k *KeySchema) holds(column int) bool {
	for i := range k.Parts {
		if k.Parts[i].Column == column {
			return true
		}
	}
	return slices.Contains(k.Kept, column)
}

// appendChanged builds the row anew, column by column.
func (s *Schema) appendChanged(dst []byte, old Row, changes []Change) ([]byte, error) {
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
			dst[start+int(loc.nullAt)] &^= loc.nullMask // of a NOT NULL column it is 0
			at := start + int(loc.off)
			clear(dst[at : at+int(loc.size)])
			var err error
			if dst, err = s.putColumn(dst, start, c.Column, c.Value, nil); err != nil {
				return dst[:start], err
			}
		case locVariable:
			f, err := old.Field(c.Column)
			if err != nil {
				return dst[:start], err
			}
			end := int(binary.LittleEndian.Uint16(old.Val[s.current.ends+2*int(loc.off):]))
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
		if loc.nullMask == 0 {
			return dst, fmt.Errorf("%w: NULL in column %s", ErrCorrupt, s.Columns[i].Name)
		}
		dst[start+int(loc.nullAt)] |= loc.nullMask
	}
	if loc.kind == locFixed {
		at, size := start+int(loc.off), int(loc.size)
		if !f.Null && (len(f.Bytes) != size || copy(dst[at:at+size], f.Bytes) != size) {
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

package record

import (
	"encoding/binary"
	"fmt"
)

// UndoKind says what an undo record takes back.
type UndoKind uint8

const (
	UndoInsert UndoKind = 1 // the row was not there before
	UndoUpdate UndoKind = 2 // the row had another version before, perhaps a deleted one
	UndoLOB    UndoKind = 3 // an off-page value was begun that no row refers to yet
)

// UndoRecord describes one change of a clustered record: enough to take it back,
// to show the version before it, and to purge what that version leaves behind.
// Its fields alias the bytes it was decoded from.
type UndoRecord struct {
	Kind  UndoKind
	Table uint64
	Key   []byte // clustered key; of UndoLOB: the reference

	// Of UndoUpdate:
	OldFlags byte
	Delta    []byte // from the newer version to the older
	// secondary and lobs are lists that EachSecondary and EachLOB walk.
	secondary []byte
	lobs      []byte
}

// LOBRefSize is the size of a reference to an off-page value in a row.
const LOBRefSize = 24

// AppendUndoInsert appends the undo record of an insert.
func AppendUndoInsert(dst []byte, table uint64, key []byte) []byte {
	dst = append(dst, byte(UndoInsert))
	dst = binary.AppendUvarint(dst, table)
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	return append(dst, key...)
}

// AppendUndoLOB appends the undo record of an off-page value's creation.
func AppendUndoLOB(dst []byte, table uint64, ref []byte) []byte {
	dst = append(dst, byte(UndoLOB))
	dst = binary.AppendUvarint(dst, table)
	dst = binary.AppendUvarint(dst, uint64(len(ref)))
	return append(dst, ref...)
}

// AppendUndoUpdate begins the undo record of a change of an existing record. Add
// the secondary keys that the old version leaves behind with AppendOldSecondary,
// then call FinishSecondary, then AppendOldLOB for each off-page value of the old
// version that the new one does not refer to.
func AppendUndoUpdate(dst []byte, table uint64, key []byte, oldFlags byte, older, newer []byte) []byte {
	dst = append(dst, byte(UndoUpdate))
	dst = binary.AppendUvarint(dst, table)
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	dst = append(dst, key...)
	dst = append(dst, oldFlags)
	at := len(dst)
	dst = append(dst, 0, 0)
	dst = AppendDelta(dst, older, newer)
	binary.LittleEndian.PutUint16(dst[at:], uint16(len(dst)-at-2))
	return dst
}

// AppendOldSecondary adds a secondary entry that purge is to remove. Index is the
// index's ID.
func AppendOldSecondary(dst []byte, index uint64, key []byte) []byte {
	dst = binary.AppendUvarint(dst, index+1) // 0 ends the list
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	return append(dst, key...)
}

// FinishSecondary ends the list of secondary entries.
func FinishSecondary(dst []byte) []byte { return append(dst, 0) }

// AppendOldLOB adds an off-page value that purge is to free.
func AppendOldLOB(dst []byte, ref []byte) []byte { return append(dst, ref[:LOBRefSize]...) }

// DecodeUndo decodes an undo record.
func DecodeUndo(b []byte) (r UndoRecord, err error) {
	if len(b) == 0 {
		return r, fmt.Errorf("%w: empty undo record", ErrCorrupt)
	}
	r.Kind = UndoKind(b[0])
	b = b[1:]
	table, n := binary.Uvarint(b)
	if n <= 0 {
		return r, fmt.Errorf("%w: undo record without a table", ErrCorrupt)
	}
	r.Table = table
	if r.Key, b, err = takeBytes(b[n:], maxValue); err != nil {
		return r, err
	}
	switch r.Kind {
	case UndoInsert, UndoLOB:
		if len(b) != 0 {
			return r, fmt.Errorf("%w: %d bytes behind an undo record of kind %d", ErrCorrupt, len(b), r.Kind)
		}
		if r.Kind == UndoLOB && len(r.Key) != LOBRefSize {
			return r, fmt.Errorf("%w: undo record with an off-page reference of %d bytes", ErrCorrupt, len(r.Key))
		}
		return r, nil
	case UndoUpdate:
	default:
		return r, fmt.Errorf("%w: undo record of kind %d", ErrCorrupt, r.Kind)
	}
	if len(b) < 3 {
		return r, fmt.Errorf("%w: undo record is cut short", ErrCorrupt)
	}
	r.OldFlags = b[0]
	size := int(binary.LittleEndian.Uint16(b[1:]))
	b = b[3:]
	if size > len(b) {
		return r, fmt.Errorf("%w: undo record is cut short", ErrCorrupt)
	}
	r.Delta, b = b[:size:size], b[size:]
	rest, err := skipSecondary(b)
	if err != nil {
		return r, err
	}
	r.secondary = b[: len(b)-len(rest) : len(b)-len(rest)]
	if len(rest)%LOBRefSize != 0 {
		return r, fmt.Errorf("%w: list of off-page values has %d bytes", ErrCorrupt, len(rest))
	}
	r.lobs = rest
	return r, nil
}

func skipSecondary(b []byte) ([]byte, error) {
	for {
		index, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, fmt.Errorf("%w: list of secondary entries is cut short", ErrCorrupt)
		}
		b = b[n:]
		if index == 0 {
			return b, nil
		}
		var err error
		if _, b, err = takeBytes(b, maxValue); err != nil {
			return nil, err
		}
	}
}

// HasPurgeWork reports whether purge has anything to remove after the change: what
// the version before it leaves behind, or the record itself.
func (r *UndoRecord) HasPurgeWork() bool {
	return len(r.secondary) > 1 || len(r.lobs) > 0 || r.MayDelete()
}

// MayDelete reports whether the change can have been that the row was deleted: the
// row was there, and its columns stayed as they were.
func (r *UndoRecord) MayDelete() bool {
	return r.Kind == UndoUpdate && r.OldFlags&FlagDeleted == 0 && headerOnly(r.Delta)
}

// EachSecondary calls fn for each secondary entry that the old version leaves
// behind, until fn returns an error.
func (r *UndoRecord) EachSecondary(fn func(index uint64, key []byte) error) error {
	for b := r.secondary; len(b) > 0; {
		index, n := binary.Uvarint(b)
		if n <= 0 || index == 0 {
			return nil
		}
		key, rest, err := takeBytes(b[n:], maxValue)
		if err != nil {
			return err
		}
		if err := fn(index-1, key); err != nil {
			return err
		}
		b = rest
	}
	return nil
}

// EachLOB calls fn for each off-page value that only the old version refers to,
// until fn returns an error.
func (r *UndoRecord) EachLOB(fn func(ref []byte) error) error {
	for b := r.lobs; len(b) >= LOBRefSize; b = b[LOBRefSize:] {
		if err := fn(b[:LOBRefSize]); err != nil {
			return err
		}
	}
	return nil
}

package event

import "encoding/binary"

// Framer is a writer that keeps events in frames, each of which can be read without those
// before it.
type Framer interface {
	// Full reports whether a frame ends with the next n bytes. [Rows] names the table of
	// rows that come after them in a table map of their own.
	Full(n int) bool
}

// Closes reports whether no event that comes after a whole event needs it: it is the last
// one of its table map, or has none.
func Closes(raw []byte) bool {
	switch t := Type(raw[offType]); {
	case t == TypeTableMap:
		return false
	case t.IsRows():
		return len(raw) >= rowsFlags+2 && binary.LittleEndian.Uint16(raw[rowsFlags:])&FlagStatementEnd != 0
	}
	return true
}

// Survey counts whole events and reports whether the last one Closes. Error: ErrCorrupt.
func Survey(events []byte) (count int, closed bool, err error) {
	r := NewReader(events)
	var e Event
	for {
		more, err := r.Next(&e)
		if !more || err != nil {
			return count, count > 0 && Closes(e.Raw), err
		}
		count++
	}
}

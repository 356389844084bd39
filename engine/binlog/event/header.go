package event

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// HeaderSize is the length of an event's header in bytes:
//
//	 0  4  seconds since 1970, when the statement began
//	 4  1  type
//	 5  4  server id
//	 9  4  length of the event, with header and checksum
//	13  4  position behind the event in its file; 0 inside of entries
//	17  2  flags
const HeaderSize = 19

const (
	offType     = 4
	offServerID = 5
	offLength   = 9
	offLogPos   = 13
	offFlags    = 17
)

// Type is what an event is: MySQL's numbers, and one of our own.
type Type uint8

// The types that this package reads or writes.
const (
	TypeQuery             Type = 2
	TypeStop              Type = 3
	TypeRotate            Type = 4
	TypeFormatDescription Type = 15
	TypeXID               Type = 16
	TypeTableMap          Type = 19
	TypeHeartbeat         Type = 27
	TypeWriteRows         Type = 30 // version 2, as the next two
	TypeUpdateRows        Type = 31
	TypeDeleteRows        Type = 32
	TypeGTID              Type = 33
	TypePreviousGTIDs     Type = 35

	// TypeSchema is our own: what a change of the catalogue is, in the engine's terms.
	// MySQL's numbers end at 42, MariaDB's begin at 160 and end below 180.
	TypeSchema Type = 230
)

var typeNames = map[Type]string{
	TypeQuery: "Query", TypeStop: "Stop", TypeRotate: "Rotate", TypeFormatDescription: "Format_desc", TypeXID: "Xid",
	TypeTableMap: "Table_map", TypeHeartbeat: "Heartbeat", TypeWriteRows: "Write_rows", TypeUpdateRows: "Update_rows",
	TypeDeleteRows: "Delete_rows", TypeGTID: "Gtid", TypePreviousGTIDs: "Previous_gtids", TypeSchema: "Schema",
}

// String returns the name that SHOW BINLOG EVENTS gives.
func (t Type) String() string {
	if s, ok := typeNames[t]; ok {
		return s
	}
	return fmt.Sprintf("Type_%d", uint8(t))
}

// IsRows reports whether the event holds changes of rows.
func (t Type) IsRows() bool { return t >= TypeWriteRows && t <= TypeDeleteRows }

// Flags of an event's header.
const (
	// FlagInUse marks the format description of a file that is being written.
	FlagInUse uint16 = 0x01
	// FlagIgnorable: a reader that does not know the type skips the event.
	FlagIgnorable uint16 = 0x80
)

// ErrCorrupt says that bytes are no event, or not one that fits its table.
var ErrCorrupt = errors.New("binlog event: malformed")

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

const (
	// MaxTransaction is the greatest length in bytes of the events of a transaction that lies
	// in its entry of the log. One that is longer has a body of its own, or fails with
	// ErrTooLarge.
	MaxTransaction = 64 << 20
	// MaxEvent is about the greatest length of an event in bytes: a row with a value as long
	// as max_allowed_packet. A longer row fails with ErrTooLarge.
	MaxEvent = 1<<30 + 16<<20
)

// ErrTooLarge is error 1197, ER_TRANS_CACHE_FULL.
var ErrTooLarge error = sqlerr.New(sqlerr.TransCacheFull)

// Header is an event's header.
type Header struct {
	Timestamp uint32
	Type      Type
	ServerID  uint32
	Length    uint32 // of the event, header included
	LogPos    uint32
	Flags     uint16
}

// Event is an event cut out of a run of bytes, which it aliases.
type Event struct {
	Header
	Raw  []byte // the whole event
	Body []byte // what follows the header
}

// appendHeader appends the header of an event of unknown length; endEvent completes it.
func appendHeader(dst []byte, t Type, timestamp uint32, flags uint16) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, timestamp)
	dst = append(dst, byte(t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	return binary.LittleEndian.AppendUint16(dst, flags)
}

// endEvent enters the length of the event that begins at start.
func endEvent(dst []byte, start int) []byte {
	binary.LittleEndian.PutUint32(dst[start+offLength:], uint32(len(dst)-start))
	return dst
}

// ParseHeader reads the header at the beginning of b; ok is false if b is too short. The
// header's length may be anything.
func ParseHeader(b []byte) (h Header, ok bool) {
	if len(b) < HeaderSize {
		return h, false
	}
	return Header{
		Timestamp: binary.LittleEndian.Uint32(b), Type: Type(b[offType]),
		ServerID: binary.LittleEndian.Uint32(b[offServerID:]), Length: binary.LittleEndian.Uint32(b[offLength:]),
		LogPos: binary.LittleEndian.Uint32(b[offLogPos:]), Flags: binary.LittleEndian.Uint16(b[offFlags:]),
	}, true
}

// Reader gives the events of a run of bytes one by one.
type Reader struct{ rest []byte }

// NewReader returns a reader of events without checksums, such as a transaction's.
func NewReader(events []byte) Reader { return Reader{events} }

// Next reads the next event; more is false at the end. Error: ErrCorrupt.
func (r *Reader) Next(e *Event) (more bool, err error) {
	if len(r.rest) == 0 {
		return false, nil
	}
	b := r.rest
	var ok bool
	if e.Header, ok = ParseHeader(b); !ok {
		return false, corrupt("%d bytes, a header has %d", len(b), HeaderSize)
	}
	if e.Length < HeaderSize || uint64(e.Length) > uint64(len(b)) {
		return false, corrupt("%v event of %d bytes where %d are", e.Type, e.Length, len(b))
	}
	e.Raw = b[:e.Length:e.Length]
	e.Body = e.Raw[HeaderSize:]
	r.rest = b[e.Length:]
	return true, nil
}

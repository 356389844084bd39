package event

import (
	"bytes"
	"encoding/binary"
)

// Query is a statement: a change of the catalogue, or the BEGIN of a transaction.
type Query struct {
	Schema string // the default one
	Text   []byte // in the character set of Client

	ThreadID uint32
	ExecTime uint32 // seconds
	Error    uint16

	// What the statement's meaning depends on.
	Flags2  uint32 // QueryNoForeignKeyChecks …
	SQLMode uint64
	// Client, Connection and Server are collation numbers: of character_set_client,
	// collation_connection and collation_server.
	Client, Connection, Server uint16
	TimeZone                   string // "": not written
	Micros                     uint32 // of the statement's start, after the header's seconds
	XID                        uint64 // with which a change of the catalogue commits; 0: not written
	DefaultUTF8MB4             uint16 // default_collation_for_utf8mb4; 0: not written
}

// Bits of Query.Flags2, as in MySQL's option_bits.
const (
	QueryNoForeignKeyChecks  uint32 = 1 << 26
	QueryRelaxedUniqueChecks uint32 = 1 << 27
)

// queryHeader is the length of a QUERY event's fixed part in bytes:
//
//	0  4  thread
//	4  4  seconds that the statement took
//	8  1  length of the default schema's name
//	9  2  error number
//	11 2  length of the status variables
const queryHeader = 13

// Status variables: a code and a value. They are written in order of their codes; a
// reader stops at the first that it does not know.
const (
	varFlags2         = 0
	varSQLMode        = 1
	varCharset        = 4
	varTimeZone       = 5
	varCatalogue      = 6
	varMicros         = 13
	varXID            = 17
	varDefaultUTF8MB4 = 18
)

// catalogue is the only one that MySQL has.
const catalogue = "std"

// maxName is the longest schema's or time zone's name in bytes: its length is a byte.
const maxName = 255

// AppendQuery appends a QUERY event. Names longer than maxName are cut.
func AppendQuery(dst []byte, timestamp uint32, q *Query) []byte {
	schema := q.Schema[:min(len(q.Schema), maxName)]
	start := len(dst)
	dst = appendHeader(dst, TypeQuery, timestamp, 0)
	dst = binary.LittleEndian.AppendUint32(dst, q.ThreadID)
	dst = binary.LittleEndian.AppendUint32(dst, q.ExecTime)
	dst = append(dst, byte(len(schema)))
	dst = binary.LittleEndian.AppendUint16(dst, q.Error)
	dst = append(dst, 0, 0)
	variables := len(dst)
	dst = q.appendVariables(dst)
	binary.LittleEndian.PutUint16(dst[variables-2:], uint16(len(dst)-variables))
	dst = append(append(dst, schema...), 0)
	return endEvent(append(dst, q.Text...), start)
}

func (q *Query) appendVariables(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, varFlags2), q.Flags2)
	dst = binary.LittleEndian.AppendUint64(append(dst, varSQLMode), q.SQLMode)
	dst = append(dst, varCharset)
	for _, collation := range [...]uint16{q.Client, q.Connection, q.Server} {
		dst = binary.LittleEndian.AppendUint16(dst, collation)
	}
	if q.TimeZone != "" {
		zone := q.TimeZone[:min(len(q.TimeZone), maxName)]
		dst = append(append(dst, varTimeZone, byte(len(zone))), zone...)
	}
	dst = append(append(dst, varCatalogue, byte(len(catalogue))), catalogue...)
	if q.Micros != 0 {
		dst = appendLE(append(dst, varMicros), uint64(q.Micros), 3)
	}
	if q.XID != 0 {
		dst = binary.LittleEndian.AppendUint64(append(dst, varXID), q.XID)
	}
	if q.DefaultUTF8MB4 != 0 {
		dst = binary.LittleEndian.AppendUint16(append(dst, varDefaultUTF8MB4), q.DefaultUTF8MB4)
	}
	return dst
}

// ParseQuery reads a QUERY event; Text aliases it. Error: ErrCorrupt.
func ParseQuery(e *Event) (q Query, err error) {
	b := e.Body
	if e.Type != TypeQuery || len(b) < queryHeader {
		return q, corrupt("%v event of %d bytes is no statement", e.Type, e.Length)
	}
	q.ThreadID, q.ExecTime = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	schema, variables := int(b[8]), int(binary.LittleEndian.Uint16(b[11:]))
	q.Error = binary.LittleEndian.Uint16(b[9:])
	b = b[queryHeader:]
	if len(b) < variables+schema+1 || b[variables+schema] != 0 {
		return q, corrupt("%v event of %d bytes is cut off", e.Type, e.Length)
	}
	if !q.parseVariables(b[:variables]) {
		return q, corrupt("%v event: status variables", e.Type)
	}
	q.Schema = string(b[variables : variables+schema])
	q.Text = b[variables+schema+1:]
	return q, nil
}

// parseVariables reads status variables up to the first that is not ours.
func (q *Query) parseVariables(b []byte) (ok bool) {
	for len(b) > 0 {
		code := b[0]
		b = b[1:]
		size := [...]int{varFlags2: 4, varSQLMode: 8, varCharset: 6, varMicros: 3, varXID: 8, varDefaultUTF8MB4: 2}
		n := 0
		switch {
		case code == varTimeZone || code == varCatalogue:
			if len(b) == 0 {
				return false
			}
			n = int(b[0])
			b = b[1:]
		case int(code) < len(size) && size[code] > 0:
			n = size[code]
		default:
			return true
		}
		if len(b) < n {
			return false
		}
		q.setVariable(code, b[:n])
		b = b[n:]
	}
	return true
}

func (q *Query) setVariable(code byte, v []byte) {
	switch code {
	case varFlags2:
		q.Flags2 = uint32(readLE(v))
	case varSQLMode:
		q.SQLMode = readLE(v)
	case varCharset:
		q.Client, q.Connection, q.Server = uint16(readLE(v[:2])), uint16(readLE(v[2:4])), uint16(readLE(v[4:6]))
	case varTimeZone:
		q.TimeZone = string(v)
	case varMicros:
		q.Micros = uint32(readLE(v))
	case varXID:
		q.XID = readLE(v)
	case varDefaultUTF8MB4:
		q.DefaultUTF8MB4 = uint16(readLE(v))
	}
}

// IsBegin reports whether the statement begins a transaction.
func (q *Query) IsBegin() bool { return bytes.Equal(q.Text, begin) }

var begin = []byte("BEGIN")

// AppendSchema appends a SCHEMA event: a change of the catalogue in a form of its
// owner's, whose first byte is that form's version. Other consumers skip it.
func AppendSchema(dst []byte, timestamp uint32, payload []byte) []byte {
	start := len(dst)
	dst = appendHeader(dst, TypeSchema, timestamp, FlagIgnorable)
	return endEvent(append(dst, payload...), start)
}

// ParseSchema returns the payload of a SCHEMA event, which it aliases. Error:
// ErrCorrupt.
func ParseSchema(e *Event) (payload []byte, err error) {
	if e.Type != TypeSchema || len(e.Body) == 0 {
		return nil, corrupt("%v event of %d bytes is no change of the catalogue", e.Type, e.Length)
	}
	return e.Body, nil
}

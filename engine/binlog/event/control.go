package event

import (
	"bytes"
	"encoding/binary"
)

// FlagArtificial marks an event that is in no file: the ROTATE that begins a dump.
const FlagArtificial uint16 = 0x20

// Magic begins a binlog file that other tools read.
const Magic = "\xfebin"

// Checksum algorithms.
const (
	checksumOff   = 0
	checksumCRC32 = 1
	checksumSize  = 4
)

const (
	binlogVersion     = 4
	serverVersionSize = 50
	formatHead        = 2 + serverVersionSize + 4 + 1
)

// eventTypes is how many types a format description tells of: MySQL 8.4's.
const eventTypes = 42

// postHeaders are the lengths of the events' fixed parts by type, from 1 on, as MySQL
// 8.4 has them: 0 for types that it no longer writes.
var postHeaders = [eventTypes]byte{
	0, queryHeader, 0, 8, 0, 0, 0, 0, 4, 0, // 1 to 10
	4, 0, 0, 0, formatHead + eventTypes, 0, 4, 26, 8, 0, // 11 to 20
	0, 0, 0, 0, 0, 2, 0, 0, 0, 10, // 21 to 30
	10, 10, gtidHead, gtidHead, 0, 18, 52, 0, 10, 40, // 31 to 40
	0, 0, // 41, 42
}

// FormatDescription is the event that says how the events after it are written.
type FormatDescription struct {
	ServerVersion string // up to 50 bytes
	Created       uint32 // seconds since 1970; 0: not at a server's start
	Checksum      bool   // events end in CRC32; this one does always
}

// AppendFormatDescription appends a FORMAT_DESCRIPTION event, with room for its checksum.
func AppendFormatDescription(dst []byte, timestamp uint32, f *FormatDescription) []byte {
	start := len(dst)
	dst = appendHeader(dst, TypeFormatDescription, timestamp, 0)
	dst = binary.LittleEndian.AppendUint16(dst, binlogVersion)
	var version [serverVersionSize]byte
	copy(version[:serverVersionSize-1], f.ServerVersion)
	dst = append(dst, version[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, f.Created)
	dst = append(append(dst, HeaderSize), postHeaders[:]...)
	algorithm := byte(checksumOff)
	if f.Checksum {
		algorithm = checksumCRC32
	}
	return endEvent(append(dst, algorithm, 0, 0, 0, 0), start)
}

// ParseFormatDescription reads a FORMAT_DESCRIPTION event. Error: ErrCorrupt.
func ParseFormatDescription(e *Event) (f FormatDescription, err error) {
	b := e.Body
	switch {
	case e.Type != TypeFormatDescription || len(b) < formatHead+int(TypeDeleteRows)+1+checksumSize:
		return f, corrupt("%v event of %d bytes is no format description", e.Type, e.Length)
	case binary.LittleEndian.Uint16(b) != binlogVersion:
		return f, corrupt("binlog version %d", binary.LittleEndian.Uint16(b))
	case b[formatHead-1] != HeaderSize:
		return f, corrupt("headers of %d bytes", b[formatHead-1])
	}
	version, _, _ := bytes.Cut(b[2:2+serverVersionSize], []byte{0})
	f.ServerVersion = string(version)
	f.Created = binary.LittleEndian.Uint32(b[2+serverVersionSize:])
	switch algorithm := b[len(b)-checksumSize-1]; algorithm {
	case checksumOff:
	case checksumCRC32:
		f.Checksum = true
	default:
		return f, corrupt("checksum algorithm %d", algorithm)
	}
	return f, nil
}

// AppendRotate appends a ROTATE event: the log goes on at a position of another file.
func AppendRotate(dst []byte, timestamp uint32, flags uint16, position uint64, name string) []byte {
	start := len(dst)
	dst = appendHeader(dst, TypeRotate, timestamp, flags)
	dst = binary.LittleEndian.AppendUint64(dst, position)
	return endEvent(append(dst, name...), start)
}

// ParseRotate reads a ROTATE event. Error: ErrCorrupt.
func ParseRotate(e *Event) (position uint64, name string, err error) {
	if e.Type != TypeRotate || len(e.Body) <= 8 {
		return 0, "", corrupt("%v event of %d bytes names no file", e.Type, e.Length)
	}
	return binary.LittleEndian.Uint64(e.Body), string(e.Body[8:]), nil
}

// AppendStop appends a STOP event: the file ends and nothing follows it yet.
func AppendStop(dst []byte, timestamp uint32) []byte {
	start := len(dst)
	return endEvent(appendHeader(dst, TypeStop, timestamp, 0), start)
}

// AppendXID appends an XID event: the transaction commits.
func AppendXID(dst []byte, timestamp uint32, xid uint64) []byte {
	start := len(dst)
	dst = appendHeader(dst, TypeXID, timestamp, 0)
	return endEvent(binary.LittleEndian.AppendUint64(dst, xid), start)
}

// ParseXID reads an XID event. Error: ErrCorrupt.
func ParseXID(e *Event) (xid uint64, err error) {
	if e.Type != TypeXID || len(e.Body) != 8 {
		return 0, corrupt("%v event of %d bytes is no commit", e.Type, e.Length)
	}
	return binary.LittleEndian.Uint64(e.Body), nil
}

// Package page is the 16 KiB page: its identity, its header, its checksum.
//
// Every page of every tablespace starts with the same header; what follows
// belongs to the package that owns the page type. Integers are little-endian.
//
//	offset size field
//	0      4    checksum: CRC-32C of bytes 4 to 16383
//	4      4    tablespace number
//	8      4    page number in the tablespace
//	12     1    page type
//	13     1    format version
//	14     2    flags, owned by the page type
//	16     8    LSN: end of the last mini-transaction that changed the page
//	24     8    owner: index or segment number
//	32          body
//
// A page of zeros is a page that was never written; it is valid and has LSN 0.
package page

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Size is the size of a page in bytes.
const Size = 16 << 10

// HeaderSize is where a page's body begins.
const HeaderSize = 32

// Version is the format version that this code writes and the newest it reads.
const Version = 1

// Offsets of the header fields.
const (
	OffChecksum = 0
	OffSpace    = 4
	OffNumber   = 8
	OffType     = 12
	OffVersion  = 13
	OffFlags    = 14
	OffLSN      = 16
	OffOwner    = 24
)

// LSN is a position in the redo log: the count of bytes ever logged before it.
type LSN uint64

// ID names a page: a tablespace and a page number in it.
type ID struct {
	Space uint32
	No    uint32
}

// None is the page number that stands for "no page". Page 0 of a tablespace is
// its header, which nothing points to.
const None uint32 = 0

// Uint64 packs the ID into one integer that orders by space, then number.
func (id ID) Uint64() uint64 { return uint64(id.Space)<<32 | uint64(id.No) }

// FromUint64 is the inverse of [ID.Uint64].
func FromUint64(v uint64) ID { return ID{Space: uint32(v >> 32), No: uint32(v)} }

func (id ID) String() string { return fmt.Sprintf("%d:%d", id.Space, id.No) }

// Type says which package owns a page's body.
type Type uint8

// The page types. Their numbers are part of the file format.
const (
	TypeFree        Type = iota // allocated to nobody; contents are stale
	TypeSpaceHeader             // space: page 0 of a tablespace
	TypeExtents                 // space: extent descriptors
	TypeInodes                  // space: segment inodes
	TypeIndex                   // btree: a node of an index
	TypeUndoHeader              // undo: directory of undo streams
	TypeUndoStream              // undo: head of an undo stream
	TypeUndo                    // undo: a page of undo records
	TypeLOBFirst                // lob: first page of an off-page value
	TypeLOBIndex                // lob: further index entries of a value
	TypeLOBData                 // lob: a piece of a value
	TypeSystem                  // trx: the engine's own state (system tablespace)
	typeEnd
)

var typeNames = [...]string{
	"free", "space header", "extents", "inodes", "index", "undo header", "undo stream",
	"undo", "LOB first", "LOB index", "LOB data", "system",
}

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Valid reports whether t is a type that this code knows.
func (t Type) Valid() bool { return t < typeEnd }

// GetType returns the page's type.
func GetType(p []byte) Type { return Type(p[OffType]) }

// GetLSN returns the page's LSN.
func GetLSN(p []byte) LSN { return LSN(binary.LittleEndian.Uint64(p[OffLSN:])) }

// SetLSN stores the page's LSN.
func SetLSN(p []byte, lsn LSN) { binary.LittleEndian.PutUint64(p[OffLSN:], uint64(lsn)) }

// GetOwner returns the number of the index or segment that the page belongs to.
func GetOwner(p []byte) uint64 { return binary.LittleEndian.Uint64(p[OffOwner:]) }

// GetID returns the identity that the page itself carries.
func GetID(p []byte) ID {
	return ID{
		Space: binary.LittleEndian.Uint32(p[OffSpace:]),
		No:    binary.LittleEndian.Uint32(p[OffNumber:]),
	}
}

// Init makes p an empty page: zeros but for the header.
//
// REQUIRES: len(p) == Size.
func Init(p []byte, id ID, t Type) {
	clear(p)
	binary.LittleEndian.PutUint32(p[OffSpace:], id.Space)
	binary.LittleEndian.PutUint32(p[OffNumber:], id.No)
	p[OffType] = byte(t)
	p[OffVersion] = Version
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum computes what the page's checksum field should hold.
func Checksum(p []byte) uint32 { return crc32.Checksum(p[4:Size], castagnoli) }

// Seal stores the checksum. It is the last step before a page goes to disk.
func Seal(p []byte) { binary.LittleEndian.PutUint32(p[OffChecksum:], Checksum(p)) }

// IsZero reports whether p was never written.
func IsZero(p []byte) bool {
	for i := 0; i < len(p); i += 8 {
		if binary.LittleEndian.Uint64(p[i:]) != 0 {
			return false
		}
	}
	return true
}

// ErrNewerFormat: a newer version of the program wrote this. All errors about
// formats that are too new wrap it, those of other packages too.
var ErrNewerFormat = errors.New("the format is newer than this program reads")

// CorruptError says that a page read from disk is not what was written there, or
// that this program does not know its format yet.
type CorruptError struct {
	ID       ID
	Problem  string // what is wrong, in a few words
	Expected uint64
	Found    uint64
	Newer    bool // not damaged: errors.Is finds ErrNewerFormat
}

// Is reports whether target is ErrNewerFormat and the page is too new.
func (e *CorruptError) Is(target error) bool { return e.Newer && target == ErrNewerFormat }

func (e *CorruptError) Error() string {
	if e.Newer {
		return fmt.Sprintf("tablespace %d, page %d: %s: %v: known are 1 to %d, found %d",
			e.ID.Space, e.ID.No, e.Problem, ErrNewerFormat, e.Expected, e.Found)
	}
	return fmt.Sprintf("corrupt page: tablespace %d, page %d: %s: expected %#x, found %#x",
		e.ID.Space, e.ID.No, e.Problem, e.Expected, e.Found)
}

// Verify checks a page that was read from disk as id. A page of zeros passes.
// The error is a *[CorruptError].
//
// REQUIRES: len(p) == Size.
func Verify(p []byte, id ID) error {
	stored := binary.LittleEndian.Uint32(p[OffChecksum:])
	if computed := Checksum(p); stored != computed {
		if stored == 0 && IsZero(p) {
			return nil
		}
		return &CorruptError{ID: id, Problem: "checksum", Expected: uint64(computed), Found: uint64(stored)}
	}
	if found := GetID(p); found != id {
		return &CorruptError{ID: id, Problem: "page belongs elsewhere (tablespace<<32|number)", Expected: id.Uint64(), Found: found.Uint64()}
	}
	if p[OffVersion] > Version {
		return &CorruptError{ID: id, Problem: "page version", Expected: Version, Found: uint64(p[OffVersion]), Newer: true}
	}
	if !GetType(p).Valid() {
		return &CorruptError{ID: id, Problem: "page type", Expected: uint64(typeEnd - 1), Found: uint64(p[OffType])}
	}
	return nil
}

package undo

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/page"
)

// The directory: page 1 of each undo tablespace, of type page.TypeUndoHeader.
//
//	offset size field
//	32     8    magic
//	40     4    number of streams
//	44     4    reserved
//	48     4n   home page of each stream
const (
	dirPage     uint32 = 1
	dirMagic           = "TRUNDO01"
	offDirMagic        = page.HeaderSize
	offDirCount        = 40
	offDirHomes        = 48
	dirCapacity        = (page.Size - offDirHomes) / 4
)

// Every page of a stream, after the page header:
//
//	offset size field
//	32     4    previous page of the chain; stale in the first one
//	36     4    next page, or 0
//	40     8    records of the log that runs into this page that lie before it
//	48          entries (page.TypeUndo)
//
// The home page (page.TypeUndoStream) goes on:
//
//	48     4    segment of the stream's pages
//	52     4    last page of the chain
//	56     4    first page of the chain
//	60     4    head: page of the oldest log that is not purged
//	64     2    head: offset; there may be no log there yet
//	66     14   reserved
//	80          entries
//
// Entries follow one another up to a terminator, two zero bytes. An entry is
//
//	u16 kind<<14 | size,  size bytes,  the u16 again
//
// so that a page can be walked both ways. An entry never spans pages.
const (
	offPrev    = page.HeaderSize
	offNext    = 36
	offBase    = 40
	offEntries = 48 // page.TypeUndo

	offSegment     = 48
	offLast        = 52
	offFirst       = 56
	offHead        = 60 // page, offset
	offHomeEntries = 80
)

const (
	kindEnd    = 0 // terminator
	kindInsert = 1 // record of an insert
	kindChange = 2 // record of an update or delete
	kindHeader = 3 // log header

	sizeBits     = 14
	sizeMask     = 1<<sizeBits - 1
	entryFrame   = 4 // the two words around an entry's bytes
	terminator   = 2
	headerSize   = 32
	headerEntry  = headerSize + entryFrame
	minEntrySize = entryFrame
)

// MaxRecord is the largest payload of a record in bytes.
const MaxRecord = 15 << 10

// A log header's bytes:
//
//	0   8  transaction id
//	8   8  CSN
//	16  8  number of records
//	24  4  end of the log: page
//	28  2  end of the log: offset
//	30  2  flags
//
// All but the id are zero until the commit.
const (
	hdrTrx     = 0
	hdrCSN     = 8
	hdrRecords = 16
	hdrEndPage = 24
	hdrEndOff  = 28
	hdrFlags   = 30
)

// Flags of a committed log. Those of the caller use the upper byte.
type Flags uint16

const (
	// Committed is set by [Log.MarkCommitted].
	Committed Flags = 1 << 0
	// InsertOnly says that no record has anything to purge.
	InsertOnly Flags = 1 << 1
	// Unnumbered says that the transaction had no number of its own in the
	// group's log; its CSN is that of the one before it.
	Unnumbered Flags = 1 << 8
)

var le = binary.LittleEndian

// pos is a place between entries: a page of the stream's tablespace and an offset.
type pos struct {
	page uint32
	off  uint16
}

// RollPtr points to an undo record. It fits in 7 bytes: insert bit 55, index of
// the undo tablespace bits 48 to 54, page number 16 to 47, offset 0 to 15.
type RollPtr uint64

// MaxSpaces is the greatest number of undo tablespaces.
const MaxSpaces = 127

const ptrInsert RollPtr = 1 << 55

func makePtr(space int, at pos, insert bool) RollPtr {
	p := RollPtr(space)<<48 | RollPtr(at.page)<<16 | RollPtr(at.off)
	if insert {
		p |= ptrInsert
	}
	return p
}

// Insert reports whether the record undoes an insert: there is no older version,
// and the record need not be read to know that.
func (p RollPtr) Insert() bool { return p&ptrInsert != 0 }

func (p RollPtr) space() int { return int(p >> 48 & 0x7f) }
func (p RollPtr) pos() pos   { return pos{page: uint32(p >> 16), off: uint16(p)} }

func (p RollPtr) String() string {
	return fmt.Sprintf("%d:%d+%d(insert %v)", p.space(), p.pos().page, p.pos().off, p.Insert())
}

// Errors.
var (
	// ErrTooManyTransactions: every stream has an owner and there may be no more
	// (MySQL's error 1637, ER_TOO_MANY_CONCURRENT_TRXS).
	ErrTooManyTransactions = errors.New("undo: too many active concurrent transactions")
	// ErrBadPointer: a roll pointer does not lead to an undo record. For a reader
	// that held what the package comment asks for, this is corruption.
	ErrBadPointer = errors.New("undo: roll pointer does not lead to an undo record")
)

func corrupt(id page.ID, problem string, expected, found uint64) error {
	return &page.CorruptError{ID: id, Problem: problem, Expected: expected, Found: found}
}

// entry is a decoded entry of a page; data aliases the page.
type entry struct {
	kind int
	off  int
	data []byte
}

// end is the offset behind the entry.
func (e entry) end() int { return e.off + len(e.data) + entryFrame }

// firstEntry is the offset of a page's first entry, or 0 if it is no page of a stream.
func firstEntry(p []byte) int {
	switch page.GetType(p) {
	case page.TypeUndo:
		return offEntries
	case page.TypeUndoStream:
		return offHomeEntries
	}
	return 0
}

// entryAt decodes the entry at off; kindEnd is a terminator. It reports false if
// there is nothing of the kind.
func entryAt(p []byte, off int) (entry, bool) {
	if len(p) != page.Size || off < offEntries || off > page.Size-terminator {
		return entry{}, false
	}
	word := le.Uint16(p[off:])
	if word == 0 {
		return entry{off: off}, true
	}
	kind, size := int(word>>sizeBits), int(word&sizeMask)
	end := off + size + entryFrame
	if kind == kindEnd || size > MaxRecord || end > page.Size-terminator || le.Uint16(p[end-2:]) != word {
		return entry{}, false
	}
	if kind == kindHeader && size != headerSize {
		return entry{}, false
	}
	return entry{kind: kind, off: off, data: p[off+2 : end-2 : end-2]}, true
}

// entryBefore decodes the entry that ends at off.
func entryBefore(p []byte, off int) (entry, bool) {
	if off < offEntries+minEntrySize || off > page.Size-terminator {
		return entry{}, false
	}
	size := int(le.Uint16(p[off-2:]) & sizeMask)
	e, ok := entryAt(p, off-entryFrame-size)
	return e, ok && e.kind != kindEnd && e.end() == off
}

// endOfEntries walks a page's entries from off and returns the offset of the
// terminator and how many records were passed.
func endOfEntries(p []byte, off int, visit func(entry) error) (end, records int, err error) {
	for {
		e, ok := entryAt(p, off)
		if !ok {
			return off, records, corrupt(page.GetID(p), "undo entry at offset", uint64(off), uint64(peek(p, off)))
		}
		if e.kind == kindEnd {
			return off, records, nil
		}
		if visit != nil {
			if err := visit(e); err != nil {
				return off, records, err
			}
		}
		if e.kind != kindHeader {
			records++
		}
		off = e.end()
	}
}

func peek(p []byte, off int) uint16 {
	if off < 0 || off+2 > len(p) {
		return 0
	}
	return le.Uint16(p[off:])
}

// appendEntry appends an entry made of parts of its bytes.
func appendEntry(dst []byte, kind int, data []byte) []byte {
	word := uint16(kind<<sizeBits | len(data))
	dst = le.AppendUint16(dst, word)
	dst = append(dst, data...)
	return le.AppendUint16(dst, word)
}

// logHeader is a decoded log header.
type logHeader struct {
	trx     uint64
	csn     uint64
	records uint64
	end     pos
	flags   Flags
}

func getLogHeader(b []byte) logHeader {
	return logHeader{
		trx: le.Uint64(b[hdrTrx:]), csn: le.Uint64(b[hdrCSN:]), records: le.Uint64(b[hdrRecords:]),
		end:   pos{page: le.Uint32(b[hdrEndPage:]), off: le.Uint16(b[hdrEndOff:])},
		flags: Flags(le.Uint16(b[hdrFlags:])),
	}
}

func (h *logHeader) put(b []byte) {
	le.PutUint64(b[hdrTrx:], h.trx)
	le.PutUint64(b[hdrCSN:], h.csn)
	le.PutUint64(b[hdrRecords:], h.records)
	le.PutUint32(b[hdrEndPage:], h.end.page)
	le.PutUint16(b[hdrEndOff:], h.end.off)
	le.PutUint16(b[hdrFlags:], uint16(h.flags))
}

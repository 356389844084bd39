package lob

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/page"
)

// Layout of the first page.
const (
	offSerial    = page.OffOwner   // u64, on every page of the value
	offLength    = page.HeaderSize // u64
	offTrx       = 40              // u64
	offVersion   = 48              // u32
	offDataPages = 52              // u32
	offSegment   = 56              // u32
	offState     = 60              // u8
	offIndexes   = 64              // u32 each
	maxIndexes   = 72
	offDirect    = offIndexes + 4*maxIndexes // u32 each
	directPages  = 128
	offInline    = offDirect + 4*directPages

	// InlineBytes is how much of a value the first page holds.
	InlineBytes = page.Size - offInline

	// PageBytes is how much of a value a data page holds.
	PageBytes = page.Size - page.HeaderSize

	indexPages = 4080 // data pages per index page

	// MaxLength is the greatest length of a value, in bytes.
	MaxLength = 1<<32 - 1
)

// States of a value.
const (
	stateWriting  = 1
	stateComplete = 2
	stateFreeing  = 3
	stateFreed    = 4
)

var le = binary.LittleEndian

// ErrGone: the value was freed, or is being freed.
var ErrGone = errors.New("off-page value is gone")

// ErrTooLong: the value would be longer than [MaxLength].
var ErrTooLong = errors.New("off-page value is too long")

// ErrRange: bytes outside the value were to be patched.
var ErrRange = errors.New("range is outside the off-page value")

// Ref names a value. A row stores it as [RefSize] bytes. It is local to the node.
// The zero Ref is the empty value.
type Ref struct {
	Space   uint32
	First   uint32 // page.None for the empty value
	Length  uint32
	Version uint32 // rises with each patch
	Serial  uint64 // tells the value from others that began on the same page
}

// RefSize is the size of an encoded Ref.
const RefSize = 24

// Append appends the encoded Ref to dst.
func (r Ref) Append(dst []byte) []byte {
	dst = le.AppendUint32(dst, r.Space)
	dst = le.AppendUint32(dst, r.First)
	dst = le.AppendUint32(dst, r.Length)
	dst = le.AppendUint32(dst, r.Version)
	return le.AppendUint64(dst, r.Serial)
}

// Decode reads a Ref from the beginning of b. It fails only if b is too short;
// whether there is such a value is seen when it is read.
func Decode(b []byte) (Ref, error) {
	if len(b) < RefSize {
		return Ref{}, fmt.Errorf("lob: reference of %d bytes; it takes %d", len(b), RefSize)
	}
	return Ref{le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:]), le.Uint32(b[12:]), le.Uint64(b[16:])}, nil
}

func (r Ref) id(no uint32) page.ID { return page.ID{Space: r.Space, No: no} }

func (r Ref) corrupt(no uint32, problem string, expected, found uint64) error {
	return &page.CorruptError{ID: r.id(no), Problem: problem, Expected: expected, Found: found}
}

// dataPages is how many data pages a value of n bytes has.
func dataPages(n uint64) uint32 {
	if n <= InlineBytes {
		return 0
	}
	return uint32((n - InlineBytes + PageBytes - 1) / PageBytes)
}

// indexesFor is how many index pages n data pages need.
func indexesFor(n uint32) uint32 {
	if n <= directPages {
		return 0
	}
	return (n - directPages + indexPages - 1) / indexPages
}

// entryAt is where the number of data page i is stored: in the first page
// (index < 0) or in an index page; off is the offset there.
func entryAt(i uint32) (index, off int) {
	if i < directPages {
		return -1, offDirect + 4*int(i)
	}
	i -= directPages
	return int(i / indexPages), page.HeaderSize + 4*int(i%indexPages)
}

// header is the fixed part of the first page.
type header struct {
	serial  uint64
	length  uint64
	trx     uint64
	version uint32
	pages   uint32
	segment uint32
	state   uint8
}

func getHeader(p []byte) header {
	return header{
		serial: le.Uint64(p[offSerial:]), length: le.Uint64(p[offLength:]), trx: le.Uint64(p[offTrx:]),
		version: le.Uint32(p[offVersion:]), pages: le.Uint32(p[offDataPages:]),
		segment: le.Uint32(p[offSegment:]), state: p[offState],
	}
}

// maxDataPages is what the longest value has.
var maxDataPages = dataPages(MaxLength)

// readHeader checks a first page against the reference. gone tells that the page
// is not, or not any more, that of this value.
func (r Ref) readHeader(p []byte) (h header, gone bool, err error) {
	if page.GetType(p) != page.TypeLOBFirst {
		return h, true, nil
	}
	h = getHeader(p)
	if h.serial != r.Serial || h.state == stateFreed {
		return h, true, nil
	}
	switch {
	case h.state < stateWriting || h.state > stateFreed:
		return h, false, r.corrupt(r.First, "state of the off-page value", stateComplete, uint64(h.state))
	case h.length > MaxLength || h.pages > maxDataPages:
		return h, false, r.corrupt(r.First, "length of the off-page value", uint64(r.Length), h.length)
	case h.state == stateComplete && h.pages != dataPages(h.length):
		return h, false, r.corrupt(r.First, "pages of the off-page value", uint64(dataPages(h.length)), uint64(h.pages))
	}
	return h, false, nil
}

package log

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/engine/binlog/entry"
)

const (
	magic       = "TRIBLOG\x00"
	headerSize  = 4096
	headerCRC   = 508
	sectorSize  = 512
	markOffset  = sectorSize // of mark 0; mark 1 lies a sector behind it
	markSize    = 32
	termsOffset = 3 * sectorSize
	maxTerms    = (headerSize - termsOffset) / 16

	recordHeader = 25

	filePrefix = "binlog."
	tempSuffix = ".tmp"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// FileName is the name of a file in the log's directory.
func FileName(number uint64) string { return fmt.Sprintf("%s%06d", filePrefix, number) }

// FileNumber is the number of the file that has this name.
func FileNumber(name string) (number uint64, ok bool) {
	digits, ok := strings.CutPrefix(name, filePrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0 && FileName(n) == name
}

// termStart says that from index on entries have this term.
type termStart struct{ index, term uint64 }

// header is what a file's header block says.
type header struct {
	version      uint8 // of the format
	group        [16]byte
	number       uint64
	first        uint64 // index of the first entry
	termBefore   uint64
	numberBefore uint64
	sizeBefore   int64 // of the file before
	chainBefore  uint32
	// terms are those that begin in the file before. More than maxTerms: the
	// oldest are left out, termCount tells.
	terms     []termStart
	termCount uint32
}

func (h *header) encode(b []byte) {
	clear(b[:headerSize])
	le := binary.LittleEndian
	copy(b, magic)
	le.PutUint32(b[8:], uint32(h.version))
	le.PutUint32(b[12:], headerSize)
	copy(b[16:], h.group[:])
	le.PutUint64(b[32:], h.number)
	le.PutUint64(b[40:], h.first)
	le.PutUint64(b[48:], h.termBefore)
	le.PutUint64(b[56:], h.numberBefore)
	le.PutUint64(b[64:], uint64(h.sizeBefore))
	le.PutUint32(b[72:], h.chainBefore)
	le.PutUint32(b[76:], h.termCount)
	for i, t := range h.terms {
		le.PutUint64(b[termsOffset+16*i:], t.index)
		le.PutUint64(b[termsOffset+16*i+8:], t.term)
	}
	le.PutUint32(b[headerCRC:], headerChecksum(b))
}

func headerChecksum(b []byte) uint32 {
	crc := crc32.Update(0, castagnoli, b[:headerCRC])
	return crc32.Update(crc, castagnoli, b[termsOffset:headerSize])
}

// decodeHeader reads a header block of a version up to newest. Error: ErrNewerFormat, or
// what is wrong with it.
func decodeHeader(b []byte, newest uint8) (h header, err error) {
	le := binary.LittleEndian
	switch {
	case len(b) < headerSize:
		return h, fmt.Errorf("the header has %d bytes", len(b))
	case string(b[:8]) != magic:
		return h, fmt.Errorf("this is no binlog file")
	case le.Uint32(b[headerCRC:]) != headerChecksum(b): // newer formats have it there too
		return h, fmt.Errorf("the header's checksum is wrong")
	case le.Uint32(b[8:]) > uint32(newest):
		return h, newerFormat(le.Uint32(b[8:]), newest)
	case !allZero(b[headerCRC+4 : markOffset]):
		return h, fmt.Errorf("the header has bytes where zeros belong")
	case le.Uint32(b[8:]) < entry.FirstVersion || le.Uint32(b[12:]) != headerSize || int64(le.Uint64(b[64:])) < 0:
		return h, fmt.Errorf("the header is malformed")
	}
	h = header{version: b[8], number: le.Uint64(b[32:]), first: le.Uint64(b[40:]), termBefore: le.Uint64(b[48:]),
		numberBefore: le.Uint64(b[56:]), sizeBefore: int64(le.Uint64(b[64:])), chainBefore: le.Uint32(b[72:]),
		termCount: le.Uint32(b[76:])}
	copy(h.group[:], b[16:])
	h.terms = make([]termStart, min(h.termCount, maxTerms))
	last := termStart{}
	for i := range h.terms {
		at := termsOffset + 16*i
		t := termStart{le.Uint64(b[at:]), le.Uint64(b[at+8:])}
		if t.index <= last.index || t.term <= last.term || t.index >= h.first || t.term > h.termBefore {
			return h, fmt.Errorf("the header's terms are malformed")
		}
		h.terms[i], last = t, t
	}
	if h.first == 0 || h.number == 0 {
		return h, fmt.Errorf("the header is malformed")
	}
	return h, nil
}

func newerFormat(version uint32, newest uint8) error {
	return fmt.Errorf("%w: version %d, known are versions up to %d: upgrade this node", ErrNewerFormat, version, newest)
}

// mark is a sync mark: when it was written, everything below offset was durable.
//
//	0  8  sequence; its lowest bit names the sector
//	8  8  offset
//	16 8  index of the entry that begins there, or will
//	24 4  number of the file, its low bits
//	28 4  CRC-32C of what is before
type mark struct {
	sequence uint64
	offset   int64
	index    uint64
}

func (m *mark) encode(b []byte, number uint64) {
	le := binary.LittleEndian
	le.PutUint64(b, m.sequence)
	le.PutUint64(b[8:], uint64(m.offset))
	le.PutUint64(b[16:], m.index)
	le.PutUint32(b[24:], uint32(number))
	le.PutUint32(b[28:], crc32.Checksum(b[:28], castagnoli))
}

// at is where the mark lies.
func (m *mark) at() int64 { return markOffset + int64(m.sequence%2)*sectorSize }

// decodeMarks returns the newest mark of a header block. Of two one may be bad, since
// a write that failed may have got half way; then the other one holds.
func decodeMarks(b []byte, number uint64) (m mark, blank, damaged bool) {
	le := binary.LittleEndian
	blank = true
	good, bad := 0, 0
	for i := range 2 {
		sector := b[markOffset+i*sectorSize:][:sectorSize]
		if allZero(sector) {
			continue
		}
		blank = false
		s := sector[:markSize]
		c := mark{sequence: le.Uint64(s), offset: int64(le.Uint64(s[8:])), index: le.Uint64(s[16:])}
		if le.Uint32(s[28:]) != crc32.Checksum(s[:28], castagnoli) || le.Uint32(s[24:]) != uint32(number) ||
			c.sequence%2 != uint64(i) || c.offset < headerSize || !allZero(sector[markSize:]) {
			bad++
			continue
		}
		good++
		if c.sequence > m.sequence {
			m = c
		}
	}
	return m, blank, bad == 2 && good == 0
}

func allZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

// record is the header of a record.
type record struct {
	crc    uint32
	length int
	index  uint64
	term   uint64
	typ    uint8
}

func decodeRecord(b []byte) record {
	le := binary.LittleEndian
	_ = b[recordHeader-1]
	return record{crc: le.Uint32(b), length: int(le.Uint32(b[4:])), index: le.Uint64(b[8:]), term: le.Uint64(b[16:]), typ: b[24]}
}

// appendRecord appends the header of e's record and returns its checksum.
func appendRecord(b []byte, e *Entry, chain uint32) ([]byte, uint32) {
	le := binary.LittleEndian
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	b = le.AppendUint32(b, uint32(len(e.Data)))
	b = le.AppendUint64(b, e.Index)
	b = le.AppendUint64(b, e.Term)
	b = append(b, e.Type)
	crc := crc32.Update(chain, castagnoli, b[at+4:])
	crc = crc32.Update(crc, castagnoli, e.Data)
	le.PutUint32(b[at:], crc)
	return b, crc
}

// place is a boundary between records: where the record of entry index begins, and
// what came before it.
type place struct {
	file   uint64
	offset int64
	index  uint64
	number uint64 // of the last transaction before
	term   uint64 // of the entry before
	chain  uint32 // checksum of the record before
}

// content is what the log looks at in an entry.
type content struct {
	rotate  bool
	version uint8
	first   uint64 // of count transactions
	count   uint32
	time    int64
	known   bool // there is an envelope
	// large describes the body of a large transaction, which lies behind the record; nil: the
	// entry is of another kind.
	large *entry.LargeBody
}

// headSize is how many bytes of an entry's data inspect looks at.
const headSize = entry.EnvelopeSize + entry.LargeSize

// inspect reads the envelope of an entry from the first bytes of its data, headSize of them if
// there are so many. It is entry.Parse without the body, but for what an entry of kind Large says
// of its transaction's body.
func inspect(typ uint8, term uint64, length int, head []byte) (c content, problem string) {
	switch {
	case typ > ConfChangeV2:
		return c, "its type is unknown"
	case length > MaxData:
		return c, "it is too long"
	case typ != Normal || length == 0:
		return c, ""
	case length < entry.EnvelopeSize:
		return c, "its envelope is cut off"
	}
	le := binary.LittleEndian
	kind, raw := entry.Kind(head[0]), le.Uint32(head[4:])
	if kind < entry.Transactions || kind > entry.Large || raw > entry.MaxBody ||
		entry.Codec(head[1]) == entry.Plain && int(raw) != length-entry.EnvelopeSize {
		return c, "its envelope is malformed"
	}
	c = content{rotate: head[2]&entry.FlagRotate != 0, version: head[3], first: le.Uint64(head[16:]),
		count: le.Uint32(head[24:]), time: int64(le.Uint64(head[32:])), known: true}
	if kind == entry.Transactions && (c.count == 0 || c.count > raw/entry.MinTxn) || c.count != 0 && (c.first == 0 || c.first+uint64(c.count) < c.first) {
		return c, "its envelope is malformed"
	}
	if kind == entry.Large {
		if problem := c.inspectLarge(length, head); problem != "" {
			return c, problem
		}
	}
	if le.Uint64(head[8:]) != term {
		c.first, c.count = 0, 0 // made in another term: it holds nothing
	}
	return c, ""
}

// after is the boundary behind a record that begins at p.
func (p place) after(r record, c content) place {
	p.offset += recordHeader + int64(r.length)
	if c.large != nil {
		p.offset = fileEnd(c.large)
	}
	p.index = r.index + 1
	p.term = r.term
	p.chain = r.crc
	if c.count != 0 {
		p.number = c.first + uint64(c.count) - 1
	}
	return p
}

// follows says why an entry cannot come at p, or "".
func (p place) follows(index, term uint64, c content) string {
	switch {
	case index != p.index:
		return fmt.Sprintf("index %d where %d is due", index, p.index)
	case term < p.term:
		return fmt.Sprintf("term %d after term %d", term, p.term)
	case c.count != 0 && c.first != p.number+1:
		return fmt.Sprintf("transaction %d where %d is due", c.first, p.number+1)
	}
	return ""
}

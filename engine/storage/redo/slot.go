package redo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
)

// A slot says where recovery begins. Integers are little-endian.
//
//	offset size field
//	0      8    magic
//	8      4    format version
//	12     4    epoch of the groups at the checkpoint
//	16     16   database id
//	32     8    sequence; its lowest bit names the block
//	40     8    start LSN: lies at the first byte behind the header
//	48     8    capacity
//	56     8    checkpoint LSN
//	64     8    bound: everything below was durable when the slot was written
//	72     4    CRC-32C of bytes 0 to 71
const (
	slotMagic   = "TRIREDO\x00"
	slotVersion = 1
	slotSize    = 76

	blockSize  = 4096
	copyOffset = blockSize / 2
	headerSize = 2 * blockSize

	maxCapacity = 1 << 46
)

// shape maps LSNs to places in the file.
type shape struct {
	start    page.LSN
	capacity int64
}

// place is where lsn lies in the file, and how many bytes from there on are
// contiguous.
func (s shape) place(lsn page.LSN) (off, contiguous int64) {
	at := int64(uint64(lsn-s.start) % uint64(s.capacity))
	return headerSize + at, s.capacity - at
}

type slot struct {
	shape
	id         [16]byte
	sequence   uint64
	epoch      uint32
	checkpoint page.LSN
	flushed    page.LSN // the bound
	version    uint32   // if it is not slotVersion
}

func (s *slot) encode(b []byte) {
	le := binary.LittleEndian
	copy(b, slotMagic)
	le.PutUint32(b[8:], slotVersion)
	le.PutUint32(b[12:], s.epoch)
	copy(b[16:], s.id[:])
	le.PutUint64(b[32:], s.sequence)
	le.PutUint64(b[40:], uint64(s.start))
	le.PutUint64(b[48:], uint64(s.capacity))
	le.PutUint64(b[56:], uint64(s.checkpoint))
	le.PutUint64(b[64:], uint64(s.flushed))
	le.PutUint32(b[72:], crc32.Checksum(b[:72], castagnoli))
}

// decodeSlot returns what is wrong with the bytes, or "". Of a newer format only the
// version counts; it keeps magic number, version and checksum where they are.
func decodeSlot(b []byte) (s slot, problem string) {
	le := binary.LittleEndian
	if string(b[:8]) != slotMagic {
		return s, "magic number"
	}
	if found := le.Uint32(b[72:]); found != crc32.Checksum(b[:72], castagnoli) {
		return s, "checksum of the header"
	}
	if v := le.Uint32(b[8:]); v != slotVersion {
		s.version = v
		return s, "format version"
	}
	s.epoch = le.Uint32(b[12:])
	copy(s.id[:], b[16:])
	s.sequence = le.Uint64(b[32:])
	s.start = page.LSN(le.Uint64(b[40:]))
	s.capacity = int64(le.Uint64(b[48:]))
	s.checkpoint = page.LSN(le.Uint64(b[56:]))
	s.flushed = page.LSN(le.Uint64(b[64:]))
	if s.capacity <= margin || s.capacity > maxCapacity || s.checkpoint < s.start || s.flushed < s.checkpoint ||
		uint64(s.flushed-s.checkpoint) > uint64(s.capacity) {
		return s, "inconsistent header"
	}
	return s, ""
}

// write puts the slot into a block, twice.
func (s *slot) write(f file.File, block uint64) error {
	b := make([]byte, blockSize)
	s.encode(b)
	copy(b[copyOffset:], b[:slotSize])
	_, err := f.WriteAt(b, int64(block)*blockSize)
	return err
}

// readSlots returns the newest slot of the file.
//
// A block without any good copy is an error even if the other block is good. No
// crash leaves one: sectors are written whole, so each of the two copies is
// either the old one or the new one. It is decay, and the other block may then
// be the older one, whose checkpoint the log has long overwritten.
func readSlots(f file.File) (slot, error) {
	b := make([]byte, headerSize)
	if n, err := f.ReadAt(b, 0); errors.Is(err, io.EOF) {
		return slot{}, &CorruptError{Offset: int64(n), Problem: "file ends within its header"}
	} else if err != nil {
		return slot{}, fmt.Errorf("redo: read of the header: %w", err)
	}
	var newest slot
	for block := 0; block < headerSize; block += blockSize {
		good, problem := false, ""
		for off := block; off < block+blockSize; off += copyOffset {
			s, p := decodeSlot(b[off : off+slotSize])
			if s.version > slotVersion {
				return slot{}, fmt.Errorf("%s: %w: format %d, known is %d", f.Name(), ErrNewerFormat, s.version, slotVersion)
			}
			if p != "" {
				problem = p
				continue
			}
			good = true
			if s.sequence >= newest.sequence {
				newest = s
			}
		}
		if !good {
			return slot{}, &CorruptError{Offset: int64(block), Problem: problem}
		}
	}
	return newest, nil
}

// CorruptError says that the log is not what was written: not a torn end, which a
// crash may leave, but damage to bytes that were durable. Recovery cannot go on:
// the data files may hold changes that the log should explain.
type CorruptError struct {
	File     string
	LSN      page.LSN // the group that is damaged; 0: the header
	Offset   int64    // where it lies in the file
	Bound    page.LSN // everything below was durable
	Problem  string   // what is wrong, in a few words
	Expected uint32
	Found    uint32
}

func (e *CorruptError) Error() string {
	if e.LSN == 0 {
		return fmt.Sprintf("redo: corrupt log %s: offset %d: %s", e.File, e.Offset, e.Problem)
	}
	return fmt.Sprintf("redo: corrupt log %s: group at LSN %d, offset %d, below LSN %d which was durable: %s: expected %#x, found %#x",
		e.File, e.LSN, e.Offset, e.Bound, e.Problem, e.Expected, e.Found)
}

package log

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"

	"github.com/triremedb/trireme/engine/storage/file"
)

// TornEnd is an end of the log that a start has cut off: it was being written when the process
// before ended, and nobody was told that it is durable.
type TornEnd struct {
	File   string
	Offset int64  // where the log ends now
	Bytes  int64  // from there to the last byte that was written
	Index  uint64 // of the first entry that is gone
	Number uint64 // of the last transaction that is left
	What   string // what is wrong with the first record
	Why    string // why nobody was told that it is durable
}

func (t *TornEnd) String() string {
	return fmt.Sprintf("%s, offset %d, %d bytes, from entry %d on, behind transaction %d: %s; %s",
		t.File, t.Offset, t.Bytes, t.Index, t.Number, t.What, t.Why)
}

// tail is what lies behind the last good record of the last file, where no mark says that it
// was durable. It was zeros before it was written, and each sector of it holds one of the
// contents that it had since: zeros, or what was written up to some record's end. So a
// record that a loss of power has torn lacks at least one sector, from where the record or the
// sector begins to the sector's end. A bad record that lacks none was written whole: it is
// damage, since it may have been acknowledged.
type tail struct {
	f     file.File
	at    place // where the bad record begins
	size  int64 // of the file
	end   int64 // behind the last byte that is not zero
	exact bool  // nobody was told of the record: the side mark is this run's, or the file is a copy
	cause error // the file could not be read
}

// tornMax is how long a record may be that is held against every bit in it that may have
// flipped, and lengthsMax how many lengths one is held against.
const (
	tornMax    = 4096
	lengthsMax = 512
	searchMax  = 256 << 20
)

// read returns n bytes at off, zeros where the file ends.
func (t *tail) read(off, n int64) []byte {
	b := make([]byte, n)
	if _, err := t.f.ReadAt(b, off); err != nil && err != io.EOF && t.cause == nil {
		t.cause = err
	}
	return b
}

// measure finds the last byte that is not zero.
func (t *tail) measure() {
	t.end = t.at.offset
	for off := t.at.offset; off < t.size && t.cause == nil; off += bufferSize {
		b := t.read(off, min(bufferSize, t.size-off))
		if n := len(bytes.TrimRight(b, "\x00")); n > 0 {
			t.end = off + int64(n)
		}
	}
}

// lacks reports whether a sector of what lies from lo to hi is not there.
func (t *tail) lacks(lo, hi int64) bool {
	if hi > t.size {
		return true // the file had not grown yet
	}
	for lo < hi && t.cause == nil {
		next := min((lo/sectorSize+1)*sectorSize, t.size)
		if lo >= t.end || allZero(t.read(lo, next-lo)) {
			return true
		}
		lo = next
	}
	return false
}

// judge says how the record came to be bad: why, if it was torn, or what shows that it was
// written whole.
func (t *tail) judge() (torn bool, why string) {
	head := t.at.offset + recordHeader
	r := decodeRecord(t.read(t.at.offset, recordHeader))
	data := head + int64(r.length)
	sane := r.length >= 0 && r.length <= MaxData && r.index == t.at.index && r.term >= t.at.term && r.typ <= ConfChangeV2
	if t.exact && (t.end < head || sane && t.end < data) {
		return true, "the process ended while it wrote that, and no sync covers it, as " + SyncedMark + " says"
	}
	lost := t.lacks(t.at.offset, head)
	switch {
	case !lost && !sane:
		return false, "the record's header was written whole"
	case lost || t.lacks((head+sectorSize-1)/sectorSize*sectorSize, data):
	case r.length >= directSize && t.lacks(head, head+1): // written apart from its header
	default:
		return false, "all sectors of the record were written"
	}
	if how := t.whole(&r, sane && !lost); how != "" {
		return false, how
	}
	return true, "a sector of the record was never written, so that no sync covers it"
}

// whole looks for what shows that a record was written whole which seems to lack a sector:
// zeros may be what belongs there, and a wrong length leads to zeros. What lies in the
// sectors that seem to lack is not what shows it. Empty: nothing.
func (t *tail) whole(r *record, header bool) string {
	head := t.at.offset + recordHeader
	if header {
		if at, ok := t.successor(r); ok && at == head+int64(r.length) {
			return ""
		} else if ok {
			return fmt.Sprintf("the next entry begins at offset %d, so that the record's length is wrong", at)
		}
		if n, ok := t.otherLength(r); ok {
			return fmt.Sprintf("the record is whole with a length of %d bytes", n)
		}
	}
	if n := recordHeader + r.length; r.length >= 0 && n <= tornMax {
		return t.flipped(t.read(t.at.offset, int64(n)))
	}
	return ""
}

// otherLength looks for a length with which the record is good: one that differs in a bit, or,
// as the last one ends so, with the last byte that is not zero, or with some zeros behind that.
func (t *tail) otherLength(r *record) (length int, ok bool) {
	for bit := range 27 { // MaxData is shorter
		if n := r.length ^ 1<<bit; n <= MaxData && t.at.offset+recordHeader+int64(n) <= t.size {
			b := t.read(t.at.offset, recordHeader+int64(n))
			binary.LittleEndian.PutUint32(b[4:], uint32(n))
			if crc32.Update(t.at.chain, castagnoli, b[4:]) == r.crc {
				return n, true
			}
		}
	}
	n := max(t.end-t.at.offset, recordHeader)
	tries := int64(lengthsMax)
	switch {
	case n > recordHeader+MaxData:
		return 0, false
	case n > bufferSize:
		tries = 16
	}
	b := t.read(t.at.offset, n+tries)
	for ; tries > 0; tries, n = tries-1, n+1 {
		binary.LittleEndian.PutUint32(b[4:], uint32(n-recordHeader))
		if crc32.Update(t.at.chain, castagnoli, b[4:n]) == r.crc {
			return int(n - recordHeader), true
		}
	}
	return 0, false
}

// flipped looks for a bit, in the sectors that are there, that makes the record good.
func (t *tail) flipped(b []byte) string {
	want := binary.LittleEndian.Uint32(b)
	if got := crc32.Update(t.at.chain, castagnoli, b[4:]); bits.OnesCount32(got^want) == 1 {
		return "but for one bit of its checksum the record is whole"
	}
	gone := int64(-1) // the sector looked at last that is not there
	for i := 4; i < len(b); i++ {
		if off := t.at.offset + int64(i); i == 4 || off%sectorSize == 0 {
			start := max(t.at.offset, off/sectorSize*sectorSize)
			if t.lacks(start, start+1) {
				gone = off / sectorSize
			}
		}
		if (t.at.offset+int64(i))/sectorSize == gone {
			continue
		}
		for bit := range 8 {
			b[i] ^= 1 << bit
			if crc32.Update(t.at.chain, castagnoli, b[4:]) == want {
				return fmt.Sprintf("but for one bit at offset %d the record is whole", t.at.offset+int64(i))
			}
			b[i] ^= 1 << bit
		}
	}
	return ""
}

// successor looks for the record of the next entry, which is known by its checksum.
func (t *tail) successor(r *record) (at int64, ok bool) {
	const step = bufferSize
	var index [8]byte
	binary.LittleEndian.PutUint64(index[:], r.index+1)
	from := t.at.offset + recordHeader
	budget := int64(searchMax)
	for off := from; off < t.end && t.cause == nil; off += step {
		b := t.read(off, step+recordHeader)
		for i := 0; ; i++ {
			n := bytes.Index(b[min(i+8, len(b)):], index[:])
			if i += n; n < 0 || i >= step || budget < 0 {
				break
			}
			next := decodeRecord(b[i:])
			end := off + int64(i) + recordHeader + int64(next.length)
			if next.term < r.term || next.typ > ConfChangeV2 || next.length < 0 || next.length > MaxData || end > t.size {
				continue
			}
			budget -= int64(next.length)
			body := t.read(off+int64(i)+4, end-off-int64(i)-4)
			if crc32.Update(r.crc, castagnoli, body) == next.crc {
				return off + int64(i), true
			}
		}
	}
	return 0, false
}

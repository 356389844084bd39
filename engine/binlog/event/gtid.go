package event

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// UUID names a group, the source of its transactions' numbers.
type UUID [16]byte

// String returns the usual form, 8-4-4-4-12 digits.
func (u UUID) String() string {
	s := hex.EncodeToString(u[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// GTID says which transaction the events up to the next GTID event are.
type GTID struct {
	UUID   UUID
	Number uint64 // from 1
	// Sequence and LastCommitted are the transaction's number in its file, and that of
	// the newest one that must be applied before it: what parallel appliers go by.
	LastCommitted, Sequence uint64
	CommitTime              int64  // microseconds since 1970
	Length                  uint64 // of the transaction's events in bytes, this one and checksums included
	ServerVersion           uint32 // such as 80400
	// Statement says that the transaction is a statement, not rows.
	Statement bool
}

const (
	gtidHead = 1 + 16 + 8 + 1 + 8 + 8

	gtidStatement   = 1 // flag
	gtidClock       = 2 // type of the logical clock
	gtidTimeSize    = 7
	gtidTimeTwo     = 1 << 55 // both the original commit's time and the immediate one
	gtidVersionTwo  = 1 << 31
	gtidVersionSize = 4
)

// AppendGTID appends a GTID event.
func AppendGTID(dst []byte, timestamp uint32, g *GTID) []byte {
	start := len(dst)
	dst = appendHeader(dst, TypeGTID, timestamp, 0)
	flags := byte(0)
	if g.Statement {
		flags = gtidStatement
	}
	dst = append(append(dst, flags), g.UUID[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, g.Number)
	dst = binary.LittleEndian.AppendUint64(append(dst, gtidClock), g.LastCommitted)
	dst = binary.LittleEndian.AppendUint64(dst, g.Sequence)
	dst = appendLE(dst, uint64(g.CommitTime)&(gtidTimeTwo-1), gtidTimeSize)
	dst = appendPacked(dst, g.Length)
	return endEvent(binary.LittleEndian.AppendUint32(dst, g.ServerVersion&^gtidVersionTwo), start)
}

// lengthWithSelf returns the length of a transaction, rest being that of all but the
// field that holds it.
func lengthWithSelf(rest uint64) uint64 {
	n := rest + 1
	for n != rest+uint64(len(appendPacked(nil, n))) {
		n = rest + uint64(len(appendPacked(nil, n)))
	}
	return n
}

// ParseGTID reads a GTID event. Error: ErrCorrupt.
func ParseGTID(e *Event) (g GTID, err error) {
	b := e.Body
	if e.Type != TypeGTID || len(b) < gtidHead+gtidTimeSize {
		return g, corrupt("%v event of %d bytes names no transaction", e.Type, e.Length)
	}
	g.Statement = b[0]&gtidStatement != 0
	copy(g.UUID[:], b[1:])
	g.Number = binary.LittleEndian.Uint64(b[17:])
	if b[25] != gtidClock {
		return g, corrupt("%v event with a clock of type %d", e.Type, b[25])
	}
	g.LastCommitted, g.Sequence = binary.LittleEndian.Uint64(b[26:]), binary.LittleEndian.Uint64(b[34:])
	b = b[gtidHead:]
	time := readLE(b[:gtidTimeSize])
	b = b[gtidTimeSize:]
	if time&gtidTimeTwo != 0 {
		if len(b) < gtidTimeSize {
			return g, corrupt("%v event without its original time", e.Type)
		}
		b = b[gtidTimeSize:]
	}
	g.CommitTime = int64(time &^ gtidTimeTwo)
	var ok bool
	if g.Length, b, ok = cutPacked(b); !ok || len(b) < gtidVersionSize {
		return g, corrupt("%v event is cut off", e.Type)
	}
	g.ServerVersion = binary.LittleEndian.Uint32(b) &^ gtidVersionTwo
	return g, nil
}

// GTIDRange is consecutive transactions of one source.
type GTIDRange struct {
	UUID        UUID
	First, Last uint64
}

// GTIDSet is a set of transactions: ranges by source, then by number, that neither
// touch nor overlap.
type GTIDSet []GTIDRange

// String returns the set as MySQL writes it.
func (s GTIDSet) String() string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case i > 0 && s[i-1].UUID == r.UUID:
			b.WriteByte(':')
		case i > 0:
			b.WriteByte(',')
			fallthrough
		default:
			b.WriteString(r.UUID.String() + ":")
		}
		if fmt.Fprint(&b, r.First); r.Last != r.First {
			fmt.Fprintf(&b, "-%d", r.Last)
		}
	}
	return b.String()
}

// valid reports whether the ranges are as a GTIDSet's must be.
func (s GTIDSet) valid() bool {
	for i, r := range s {
		if r.First == 0 || r.Last < r.First || r.Last == 1<<64-1 {
			return false
		}
		if i > 0 {
			order := bytes.Compare(s[i-1].UUID[:], r.UUID[:])
			if order > 0 || order == 0 && s[i-1].Last+1 >= r.First {
				return false
			}
		}
	}
	return true
}

// AppendGTIDSet appends the binary form of a set, as PREVIOUS_GTIDS events and the
// replication protocol have it: the number of sources, and for each its UUID, the number
// of ranges, and for each the first number and the one after the last, all of 8 bytes.
func AppendGTIDSet(dst []byte, s GTIDSet) []byte {
	count := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, 0)
	sources := uint64(0)
	for i := 0; i < len(s); sources++ {
		n := slices.IndexFunc(s[i:], func(r GTIDRange) bool { return r.UUID != s[i].UUID })
		if n < 0 {
			n = len(s) - i
		}
		dst = binary.LittleEndian.AppendUint64(append(dst, s[i].UUID[:]...), uint64(n))
		for _, r := range s[i : i+n] {
			dst = binary.LittleEndian.AppendUint64(dst, r.First)
			dst = binary.LittleEndian.AppendUint64(dst, r.Last+1)
		}
		i += n
	}
	binary.LittleEndian.PutUint64(dst[count:], sources)
	return dst
}

// ParseGTIDSet reads the binary form of a set, all of b. Error: ErrCorrupt.
func ParseGTIDSet(b []byte) (s GTIDSet, err error) {
	bad := corrupt("set of transactions of %d bytes", len(b))
	if len(b) < 8 {
		return nil, bad
	}
	sources := binary.LittleEndian.Uint64(b)
	for b = b[8:]; sources > 0; sources-- {
		if len(b) < 24 {
			return nil, bad
		}
		r := GTIDRange{UUID: UUID(b[:16])}
		ranges := binary.LittleEndian.Uint64(b[16:])
		b = b[24:]
		if ranges == 0 || ranges > uint64(len(b)/16) {
			return nil, bad
		}
		for ; ranges > 0; ranges-- {
			r.First, r.Last = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])-1
			s = append(s, r)
			b = b[16:]
		}
	}
	if len(b) > 0 || !s.valid() {
		return nil, bad
	}
	return s, nil
}

// AppendPreviousGTIDs appends a PREVIOUS_GTIDS event: the transactions before its file.
func AppendPreviousGTIDs(dst []byte, timestamp uint32, s GTIDSet) []byte {
	start := len(dst)
	dst = appendHeader(dst, TypePreviousGTIDs, timestamp, 0)
	return endEvent(AppendGTIDSet(dst, s), start)
}

// ParsePreviousGTIDs reads a PREVIOUS_GTIDS event. Error: ErrCorrupt.
func ParsePreviousGTIDs(e *Event) (GTIDSet, error) {
	if e.Type != TypePreviousGTIDs {
		return nil, corrupt("%v event has no set of transactions", e.Type)
	}
	return ParseGTIDSet(e.Body)
}

package provision

import (
	"fmt"

	"github.com/triremedb/trireme/engine/storage/trx"
)

// FormatVersion is the newest format of the stream that this code speaks, and
// minFormat the oldest. A donor answers in the newest one that the receiver knows, too.
const (
	FormatVersion = appliedFormat
	minFormat     = 1
)

const (
	// splitFormat is the format from which long rows come in several parts.
	splitFormat = 2
	// appliedFormat is the format from which the state comes with the entry up to which the donor has applied the log.
	appliedFormat = 3
)

// maxMembership bounds the membership state in bytes.
const maxMembership = 1 << 20

// Manifest says what a snapshot is.
type Manifest struct {
	Format   uint32
	Group    [16]byte
	CSN      uint64       // of the last transaction in it
	Position trx.Position // of the last entry in it
	Time     int64        // when it was taken by the donor's clock, microseconds since 1970
	// Membership is what [SourceOptions].Membership returned when it was taken.
	Membership []byte
	// NextTable and NextIndex are the numbers that the donor gives next.
	NextTable, NextIndex uint64
}

func (m *Manifest) String() string {
	return fmt.Sprintf("snapshot %d at entry %d of term %d", m.CSN, m.Position.Index, m.Position.Term)
}

func (m *Manifest) append(dst []byte) []byte {
	dst = appendUints(dst, uint64(m.Format))
	dst = append(dst, m.Group[:]...)
	dst = appendUints(dst, m.CSN, m.Position.Index, m.Position.Term, uint64(m.Time), m.NextTable, m.NextIndex)
	return appendBytes(dst, m.Membership)
}

func (d *decoder) manifest() (m Manifest) {
	m.Format = uint32(d.uint(1<<32 - 1))
	copy(m.Group[:], d.take(len(m.Group)))
	m.CSN, m.Position.Index, m.Position.Term = d.uint64(), d.uint64(), d.uint64()
	m.Time = int64(d.uint64())
	m.NextTable, m.NextIndex = d.uint64(), d.uint64()
	m.Membership = append([]byte(nil), d.bytes(maxMembership)...)
	return m
}

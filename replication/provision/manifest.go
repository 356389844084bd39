package provision

import "github.com/triremedb/trireme/engine/storage/trx"

// FormatVersion is the format of the stream that this code sends, and the newest
// that it reads.
const FormatVersion = 1

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

	Schemas, Tables int
	Rows, Bytes     int64 // estimates
}

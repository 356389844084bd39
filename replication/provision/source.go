package provision

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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
	// then, and its CSN the last number up to it. take is short and does no I/O. An
	// error says why there is no such moment now. nil: every commit is an entry, as
	// those of storage.Session are, and take runs at once.
	AtBoundary func(take func()) error
	// Membership returns Raft's membership state as of the applied position. It is
	// called within AtBoundary.
	Membership func() []byte
	// Committed returns the group's commit index as this member knows it: no
	// snapshot beyond it is sent. nil: what is applied is committed.
	Committed func() uint64

	Grace        time.Duration // how long a snapshot stays open without a request: 10 min
	MaxAge       time.Duration // how long it stays open at all: 24 h
	MaxSnapshots int           // open at a time, besides those of dumps: 2
	MaxStreams   int           // served at a time, besides those of dumps: 8
	PartSize     int           // bytes of rows in a part: 1 MiB, at most maxPartSize
	Rate         int64         // bytes a second that are sent, all streams together; 0: no limit
}

// maxPartSize is the greatest PartSize in bytes.
const maxPartSize = 16 << 20

func (o *SourceOptions) check() error {
	if o.Engine == nil || o.Env == nil {
		return errors.New("provision: a source needs an engine and an environment")
	}
	for _, n := range []int64{int64(o.Grace), int64(o.MaxAge), int64(o.MaxSnapshots), int64(o.MaxStreams), int64(o.PartSize), o.Rate} {
		if n < 0 {
			return errors.New("provision: options of a source may not be negative")
		}
	}
	setDefault(&o.Grace, 10*time.Minute)
	setDefault(&o.MaxAge, 24*time.Hour)
	setDefault(&o.MaxSnapshots, 2)
	setDefault(&o.MaxStreams, 8)
	setDefault(&o.PartSize, 1<<20)
	o.PartSize = min(o.PartSize, maxPartSize)
	return nil
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Source serves snapshots of an engine to other members. All methods are safe for
// concurrent use.
type Source struct {
	opt   SourceOptions
	pace  limiter
	tasks *env.Group
	watch env.Parker // of the task that ends snapshots

	mu        sync.Mutex // guards the following
	snapshots []*snapshot
	forsaken  []*snapshot // the last ones
	taking    int         // snapshots that are being opened
	streams   int
	dumps     int       // that are under way
	senders   []*sender // at rest
	watching  bool
	closed    bool
	idle      env.Parker // of Close, while it waits for the streams

	count struct {
		taken, expired, rows, parts, raw, sent atomic.Int64
	}
}

// NewSource returns a source.
func NewSource(opt SourceOptions) (*Source, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	return &Source{opt: opt, pace: limiter{env: opt.Env, rate: opt.Rate}, tasks: env.NewGroup(opt.Env),
		watch: opt.Env.NewParker(), idle: opt.Env.NewParker()}, nil
}

// snapshot is an open snapshot.
type snapshot struct {
	manifest Manifest // without a position if another donor has taken it
	view     trx.View
	opened   time.Duration

	// Guarded by Source.mu.
	users    map[uint64]bool // receivers that may come back
	active   []answering     // that are being given
	retained uint64          // by a receiver that a dump is made for; 0: by none
	last     time.Duration   // when the last one ended
	gone     bool            // the requests in progress end
	why      string          // it is gone; empty: it is too old
}

// answering is a request that is being answered, and where to.
type answering struct {
	r *request
	w ChunkWriter
}

// abort ends the streams of readers that do not read, which would not hear otherwise that they are to end.
//
// REQUIRES: Source.mu.
func (sn *snapshot) abort() {
	for _, a := range sn.active {
		a.w.Abort()
	}
}

// errClosed: the source is closed, or being closed.
var errClosed = remotef(ErrBusy, "the donor is shutting down")

// Snapshots returns the open snapshots: the log behind each is needed by who receives it. One that another donor
// has taken has a CSN but no position.
func (s *Source) Snapshots() (all []Manifest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sn := range s.snapshots {
		if !sn.gone {
			all = append(all, sn.manifest)
		}
	}
	return all
}

// Forsake ends the snapshots that nobody can go on from, since the log begins with entry first by now, and reports whether
// there were any. Who receives one is told why.
func (s *Source) Forsake(first uint64, why string) (any bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.snapshots) - 1; i >= 0; i-- {
		sn := s.snapshots[i]
		if at := sn.manifest.Position.Index; sn.gone || at == 0 || at+1 >= first {
			continue
		}
		any, sn.gone = true, true
		sn.why = fmt.Sprintf("the log behind snapshot %d was removed: %s", sn.manifest.CSN, why)
		s.forsaken = append(s.forsaken[max(0, len(s.forsaken)-maxForsaken+1):], sn)
		if len(sn.active) == 0 {
			s.drop(i)
			s.count.expired.Add(1)
		}
	}
	return any
}

// maxForsaken is of how many snapshots it is remembered why they were ended.
const maxForsaken = 8

// lost says why a snapshot was ended, if it was one of the last; else it is nil.
//
// REQUIRES: s.mu.
func (s *Source) lost(csn uint64) error {
	for _, sn := range s.forsaken {
		if sn.manifest.CSN == csn {
			return remotef(ErrSnapshotGone, "%s", sn.why)
		}
	}
	return nil
}

// SourceStats are numbers of a source: of the moment, and counters since it was made.
type SourceStats struct {
	Snapshots, Streams int   // open now
	Taken, Expired     int64 // snapshots
	Rows, Parts        int64 // sent
	RawBytes           int64 // of rows before compression
	SentBytes          int64
}

// Stats returns the source's numbers.
func (s *Source) Stats() SourceStats {
	s.mu.Lock()
	st := SourceStats{Snapshots: len(s.snapshots), Streams: s.streams}
	s.mu.Unlock()
	c := &s.count
	st.Taken, st.Expired = c.taken.Load(), c.expired.Load()
	st.Rows, st.Parts, st.RawBytes, st.SentBytes = c.rows.Load(), c.parts.Load(), c.raw.Load(), c.sent.Load()
	return st
}

// closeGrace is how long the streams have to come to their next part when a source is closed.
const closeGrace = time.Second

// Close ends all streams and closes all snapshots. It waits for the streams, which end
// at their next part; those that wait for their readers are cut off after a while.
func (s *Source) Close() {
	s.mu.Lock()
	s.closed = true
	for s.streams > 0 {
		s.mu.Unlock()
		s.idle.ParkFor(closeGrace)
		s.mu.Lock()
		for _, sn := range s.snapshots {
			sn.abort()
		}
	}
	s.mu.Unlock()
	s.watch.Unpark()
	s.tasks.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.snapshots) > 0 {
		s.drop(0)
	}
}

package body

import (
	"fmt"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
)

// State is what became of a [File].
type State uint8

const (
	// Growing: more frames may come, and others may be cut off.
	Growing State = iota
	// Complete: it is the whole body; see File.Summary.
	Complete
	// Taken: it has become a file of the log, under another name.
	Taken
	// Dropped: the transaction was rolled back, or nobody needs the file.
	Dropped
)

// File is the body of a large transaction that is not in the log yet: on the leader the
// session's cache file, elsewhere the file that frames are received into. One task writes;
// all other methods are safe for concurrent use. No method but ReadFrame and the writer's
// touches the disk.
type File struct {
	ID    entry.StreamID
	Name  string // in the file system of the node's data
	Owner Owner  // on the leader; constant once other tasks know the file
	f     file.File

	mu      sync.Mutex
	x       Index
	epoch   uint64
	synced  int64 // bytes of the body that are durable; within the present frames
	state   State
	summary entry.LargeBody
	watches []env.Parker
	cuts    []cut
	holds   int // of readers
	closed  bool
}

// Owner is the transaction that makes a body, as lists show it.
type Owner struct {
	Session uint64        // number of the client's session, its processlist id; 0: none
	Began   time.Duration // when the transaction did, on the node's monotonic clock
}

// NewFile returns the body that is to lie in f, which is called name and is empty.
func NewFile(id entry.StreamID, name string, f file.File) *File {
	return &File{ID: id, Name: name, f: f}
}

// Status is a File at one moment.
type Status struct {
	State  State
	Epoch  uint64 // how often something was cut off
	Frames int
	Stored int64 // bytes in the file
	Plain  int64 // bytes of events
	Events int64
	Synced int64 // of the bytes in the file those that are durable
	Chain  uint32
}

// Status says how the file is.
func (b *File) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status()
}

// status is Status. REQUIRES: mu.
func (b *File) status() Status {
	return Status{State: b.state, Epoch: b.epoch, Frames: b.x.Len(), Stored: b.x.Stored(), Plain: b.x.Plain(), Events: b.x.Events(),
		Synced: b.synced, Chain: b.x.Chain()}
}

// Summary is what the body is, once it is Complete; ok is false before.
func (b *File) Summary() (l entry.LargeBody, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.summary, b.summary.Frames > 0
}

// Frame returns frame n in an epoch; ok is false if it is not there, or of another one.
func (b *File) Frame(n int, epoch uint64) (f Frame, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if epoch != b.epoch || n >= b.x.Len() {
		return f, false
	}
	return b.x.Frame(n), true
}

// Holds returns the frame with byte off of the events, and the checksum of the frame before
// it; ok is false behind the last one.
func (b *File) Holds(off int64) (f Frame, before uint32, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.x.Holds(off)
	if n == b.x.Len() {
		return f, 0, false
	}
	if n > 0 {
		before = b.x.Frame(n - 1).CRC
	}
	return b.x.Frame(n), before, true
}

// Watch has the parker unparked after each change, until Unwatch.
func (b *File) Watch(p env.Parker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watches = append(b.watches, p)
}

// Unwatch ends Watch.
func (b *File) Unwatch(p env.Parker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.watches {
		if b.watches[i] == p {
			b.watches = append(b.watches[:i], b.watches[i+1:]...)
			return
		}
	}
}

// changed tells those that watch. REQUIRES: mu.
func (b *File) changed() {
	for _, p := range b.watches {
		p.Unpark()
	}
}

// ReadAt reads bytes of the body; off counts from its beginning. What lies behind a cut that
// came meanwhile is garbage: the caller looks at the epoch before and after.
func (b *File) ReadAt(p []byte, off int64) (int, error) { return b.f.ReadAt(p, Offset+off) }

// ReadFrame reads and unpacks a frame, into memory that grows from buf's and scratch's. Error:
// ErrCorrupt if the frame was cut off meanwhile, or is damaged; the file's.
func (b *File) ReadFrame(f Frame, before uint32, z *zstd.Decoder, scratch, buf []byte) (payload, events []byte, err error) {
	payload = room(scratch, int(f.Stored))
	if _, err := b.f.ReadAt(payload, Offset+f.At+HeaderSize); err != nil {
		return payload, nil, fmt.Errorf("%s, frame %d: %w", b.Name, f.Number, err)
	}
	if err = f.Verify(before, payload); err == nil {
		events, err = f.Unpack(z, payload, buf)
	}
	if err != nil {
		err = fmt.Errorf("%s, frame %d: %w", b.Name, f.Number, err)
	}
	return payload, events, err
}

// Write is the writer's: it adds a frame, made by AppendFrame behind the last one.
func (b *File) Write(frame []byte, h Header, after uint64) error {
	b.mu.Lock()
	at := b.x.Stored()
	b.mu.Unlock()
	if _, err := b.f.WriteAt(frame, Offset+at); err != nil {
		return err
	}
	b.Added(h, after)
	return nil
}

// WriteAt is the writer's: it writes bytes of a frame that is not whole yet.
func (b *File) WriteAt(p []byte, off int64) (int, error) { return b.f.WriteAt(p, Offset+off) }

// Added is the writer's: a frame that WriteAt has put behind the last one is whole, and
// its checksum is right.
func (b *File) Added(h Header, after uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.x.Add(h, after)
	b.changed()
}

// Truncate is the writer's: it leaves the first n frames.
func (b *File) Truncate(n int) {
	b.mu.Lock()
	b.x.Truncate(n)
	b.epoch++
	b.cuts = addCut(b.cuts, cut{b.epoch, n})
	end := b.x.Stored()
	b.synced = min(b.synced, end)
	b.changed()
	b.mu.Unlock()
	// That it may fail does not matter: what is there is garbage, and is written over.
	_ = b.f.Truncate(Offset + end)
}

// Sync makes durable what was written before.
func (b *File) Sync() error {
	b.mu.Lock()
	epoch, end := b.epoch, b.x.Stored()
	b.mu.Unlock()
	if err := b.f.Sync(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if epoch == b.epoch && b.synced < end {
		b.synced = end
		b.changed()
	}
	return nil
}

// Finish is the writer's: the body is whole. It returns what the body is.
func (b *File) Finish() entry.LargeBody {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.summary = b.x.Describe()
	b.summary.ID = b.ID
	b.state = Complete
	b.changed()
	return b.summary
}

// End says that the file was taken into the log, or dropped. It stays open for readers until
// Close.
func (b *File) End(s State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state = s
	b.changed()
}

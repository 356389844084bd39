package redo

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/page"
)

// Limits and defaults, in bytes.
const (
	DefaultCapacity   = 100 << 20
	MinCapacity       = 4 << 20
	DefaultBufferSize = 16 << 20
	MinBufferSize     = 1 << 20

	// GroupHeaderSize is what a group takes besides its payload.
	GroupHeaderSize = 8
	// MaxPayload is the largest payload of a group: with its header it fills the
	// smallest buffer.
	MaxPayload = MinBufferSize - GroupHeaderSize
	// StartLSN is where a new log begins unless told otherwise.
	StartLSN page.LSN = 8192

	// margin of the capacity is never admitted. The log's own epoch groups use it.
	margin = 64 << 10
	// writeMax is how much one write to the file takes at most.
	writeMax = 1 << 20
	// boundLagMax is the most by which the bound in the slots trails while the log
	// is busy.
	boundLagMax = 1 << 20
)

// The errors that callers tell apart.
var (
	// ErrClosed: the log was closed.
	ErrClosed = errors.New("redo: log is closed")
	// ErrFutureLSN: the caller asks for an LSN that the log has not reached, as a
	// page does that is newer than the log.
	ErrFutureLSN = errors.New("redo: LSN is beyond the end of the log")
	// ErrWrongID: the log belongs to another database.
	ErrWrongID = errors.New("redo: log belongs to another database")
	// ErrTooSmall: the log's live part does not fit the capacity asked for. A
	// later checkpoint may make it fit.
	ErrTooSmall = errors.New("redo: live log does not fit the new capacity")
	// ErrNewerFormat: a newer version of the program wrote the log.
	ErrNewerFormat = fmt.Errorf("redo: log: %w", page.ErrNewerFormat)
)

// HaltError is what a halted log answers with: Cause is the error that halted it.
type HaltError struct{ Cause error }

func (e *HaltError) Error() string {
	return fmt.Sprintf("the engine has halted and takes no changes until it is restarted: %v", e.Cause)
}

// Unwrap returns the cause.
func (e *HaltError) Unwrap() error { return e.Cause }

// Options says where the log lies and how large it is. FS, Env and Dir are
// required; elsewhere the zero value means the default.
type Options struct {
	FS  file.FS
	Env env.Env
	// Dir is the directory of the log file; Create makes it.
	Dir string
	// ID ties the log to its database. Create stores it (a random one if zero);
	// Open returns ErrWrongID for a log of another ID, unless zero.
	ID [16]byte
	// StartLSN is where Create begins; [StartLSN] by default. A log made for
	// existing data files must begin above every page's LSN.
	StartLSN page.LSN
	// Capacity is innodb_redo_log_capacity: [DefaultCapacity] by default,
	// [MinCapacity] at least. Open resizes the log to it if the live part fits.
	Capacity int64
	// BufferSize is innodb_log_buffer_size, rounded up to a power of two:
	// [DefaultBufferSize] by default, [MinBufferSize] at least. The log uses as
	// much again to keep track of publishing.
	BufferSize int
	// FlushInterval is how often what was logged becomes durable without anybody's
	// asking (innodb_flush_log_at_timeout); 1 s by default.
	FlushInterval time.Duration
	// OnPressure is called when the log wants a younger checkpoint: its age has
	// crossed three quarters of what it can hold, or an Admit has to wait. It must
	// not block.
	OnPressure func()
	// OnRange is told what Open scans, before it does: from the checkpoint to the bound;
	// and again when the end of the log is found. nil: nobody is told.
	OnRange func(from, to page.LSN)
}

func (o Options) withDefaults() Options {
	if o.StartLSN == 0 {
		o.StartLSN = StartLSN
	}
	if o.Capacity == 0 {
		o.Capacity = DefaultCapacity
	}
	o.Capacity = min(max(o.Capacity, MinCapacity), maxCapacity)
	if o.BufferSize == 0 {
		o.BufferSize = DefaultBufferSize
	}
	size := MinBufferSize
	for size < o.BufferSize {
		size *= 2
	}
	o.BufferSize = size
	if o.FlushInterval <= 0 {
		o.FlushInterval = time.Second
	}
	if o.OnPressure == nil {
		o.OnPressure = func() {}
	}
	if o.OnRange == nil {
		o.OnRange = func(from, to page.LSN) {}
	}
	return o
}

// Log is an open redo log. All methods are safe for concurrent use.
type Log struct {
	env     env.Env
	fs      file.FS
	dir     string
	options Options

	ring  []byte          // LSN x lies at x mod len
	links []atomic.Uint64 // a published group's end, at (start / 8) mod len
	epoch uint32          // of every group this process logs

	_         [64]byte
	current   atomic.Uint64 // end of what is reserved
	_         [56]byte
	published atomic.Uint64 // everything below was published
	_         [56]byte
	admitted  atomic.Int64 // sum of the admitted bytes
	_         [56]byte
	written   atomic.Uint64 // everything below is in the file; moves under writeTurn
	flushed   atomic.Uint64 // everything below is durable; the end of a group
	// wholeWritten is the end of a group, at most written, after which flushed
	// can be set by a sync.
	wholeWritten atomic.Uint64

	ckpt     atomic.Uint64 // the durable checkpoint
	bound    atomic.Uint64 // the flushed LSN that the newest durable slot names
	limit    atomic.Int64  // capacity - margin: what may be admitted
	capacity atomic.Int64
	failure  atomic.Pointer[failure]
	stopping atomic.Bool
	closed   atomic.Bool
	kicked   atomic.Bool // the writer task has a token or is about to look
	pressed  atomic.Bool // OnPressure was called for this crossing

	// Turns are taken in this order: flushing, slotTurn, writeTurn. The file
	// changes hands only while all three are held.
	slotTurn  *env.Mutex // slot, epochs; a sync for the sake of a slot
	writeTurn *env.Mutex // writes of log bytes
	file      file.File
	shape     shape
	slot      slot         // the newest durable one
	epochs    []epochStart // ascending; the first one holds at the checkpoint

	parkers *env.Parkers
	writer  env.Parker
	flusher env.Parker
	tasks   *env.Group

	mu         sync.Mutex
	flushing   bool     // somebody writes and syncs for all
	flushWait  waitList // for flushed
	pubWait    waitList // for published
	roomWait   waitList // for written
	admitWait  []*admitWaiter
	admitQueue atomic.Int32 // len(admitWait)

	stats counters
}

type failure struct{ err error }

// epochStart says from which LSN on groups are checksummed with an epoch.
type epochStart struct {
	lsn   page.LSN
	epoch uint32
}

// newLog returns a log that ends at end, all of it durable, without tasks.
func newLog(opt Options, f file.File, s slot, epochs []epochStart, end page.LSN) *Log {
	opt.ID = s.id
	l := &Log{
		env: opt.Env, fs: opt.FS, dir: opt.Dir, options: opt, file: f, shape: s.shape, slot: s, epochs: epochs,
		epoch: epochs[len(epochs)-1].epoch,
		ring:  make([]byte, opt.BufferSize),
		links: make([]atomic.Uint64, opt.BufferSize/linkSpan),

		slotTurn: env.NewMutex(opt.Env), writeTurn: env.NewMutex(opt.Env),
		parkers: env.NewParkers(opt.Env), tasks: env.NewGroup(opt.Env),
		writer: opt.Env.NewParker(), flusher: opt.Env.NewParker(),
	}
	for _, v := range []*atomic.Uint64{&l.current, &l.published, &l.written, &l.wholeWritten, &l.flushed} {
		v.Store(uint64(end))
	}
	l.ckpt.Store(uint64(s.checkpoint))
	l.bound.Store(uint64(s.flushed))
	l.setCapacity(s.capacity)
	return l
}

func (l *Log) start() {
	l.tasks.Go("redo writer", l.runWriter)
	l.tasks.Go("redo flusher", l.runFlusher)
}

func (l *Log) setCapacity(n int64) {
	l.capacity.Store(n)
	l.limit.Store(n - margin)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is the CRC of a group. The start LSN goes in by the table, since
// eight bytes on the stack would escape through crc32.Update.
func checksum(epoch uint32, start page.LSN, payload []byte) uint32 {
	crc := ^epoch
	for v, i := uint64(start), 0; i < 8; i++ {
		crc = castagnoli[byte(crc)^byte(v)] ^ crc>>8
		v >>= 8
	}
	return crc32.Update(^crc, castagnoli, payload)
}

// linkSpan is how many LSNs share a link. The shortest group has 9 bytes, so two
// groups in the ring never share one.
const linkSpan = 8

func (l *Log) link(lsn uint64) *atomic.Uint64 {
	return &l.links[lsn/linkSpan&uint64(len(l.links)-1)]
}

// hasRoom reports whether the ring has room for a group that ends at end. Once
// true it stays true. False for a reserved group means that the log has failed.
func (l *Log) hasRoom(end uint64) bool { return end <= l.written.Load()+uint64(len(l.ring)) }

// Reserve takes the LSNs of a group with n bytes of payload. It may wait for the
// log writer, if the ring is full, and for nothing else; after a failure of the
// log it does not wait. Every reserved group must be published.
//
// REQUIRES: 1 <= n <= MaxPayload; the caller's Admits cover n + GroupHeaderSize.
func (l *Log) Reserve(n int) (start, end page.LSN) {
	if n < 1 || n > MaxPayload || n+GroupHeaderSize > len(l.ring) {
		panic(fmt.Sprintf("redo: Reserve of %d bytes: a group has 1 to %d", n, MaxPayload))
	}
	size := uint64(n + GroupHeaderSize)
	e := l.current.Add(size)
	if !l.hasRoom(e) {
		l.waitRoom(e)
	}
	return page.LSN(e - size), page.LSN(e)
}

// Fill frames and checksums the payload of the group reserved at start and puts
// it into the ring.
//
// REQUIRES: len(payload) is what was reserved.
func (l *Log) Fill(start page.LSN, payload []byte) {
	if !l.hasRoom(uint64(start) + GroupHeaderSize + uint64(len(payload))) {
		return // failed: nothing reads the ring any more
	}
	var h [GroupHeaderSize]byte
	binary.LittleEndian.PutUint32(h[0:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(h[4:], checksum(l.epoch, start, payload))
	l.put(uint64(start), h[:])
	l.put(uint64(start)+GroupHeaderSize, payload)
}

func (l *Log) put(lsn uint64, b []byte) {
	n := copy(l.ring[lsn&uint64(len(l.ring)-1):], b)
	copy(l.ring, b[n:])
}

// Publish gives the group to the log writer. By then its pages must be in the
// flush lists: a checkpoint may be taken at [Log.Published].
//
// A link holds the end of the last group that began there. It is the end of the
// group at the published LSN exactly if it is larger: groups of earlier laps
// ended below, and one of a later lap has room only after published has moved
// on, when the swap fails. So links need no clearing.
func (l *Log) Publish(start, end page.LSN) {
	if !l.hasRoom(uint64(end)) {
		return // failed
	}
	l.link(uint64(start)).Store(uint64(end))
	for {
		at := l.published.Load()
		next := l.link(at).Load()
		if next <= at {
			break
		}
		l.published.CompareAndSwap(at, next)
	}
	if l.pubWait.n.Load() != 0 {
		l.wakePublished()
	}
	if l.roomWait.n.Load() != 0 || l.published.Load() >= l.written.Load()+l.writeAhead() {
		l.kick()
	}
}

// writeAhead is how much may lie unwritten before the writer task writes it.
func (l *Log) writeAhead() uint64 { return min(uint64(len(l.ring))/4, writeMax) }

// Published is the LSN below which every group has been published.
func (l *Log) Published() page.LSN { return page.LSN(l.published.Load()) }

// Flushed is the LSN below which everything is durable.
func (l *Log) Flushed() page.LSN { return page.LSN(l.flushed.Load()) }

// Current is the end of the last reserved group.
func (l *Log) Current() page.LSN { return page.LSN(l.current.Load()) }

// CheckpointLSN is where a recovery would begin now.
func (l *Log) CheckpointLSN() page.LSN { return page.LSN(l.ckpt.Load()) }

// Capacity is the size of the ring in the file in bytes.
func (l *Log) Capacity() int64 { return l.capacity.Load() }

// Age is the checkpoint age: how many bytes a recovery would have to read.
func (l *Log) Age() int64 {
	ckpt := l.ckpt.Load() // first: the difference must not be negative
	return int64(l.current.Load() - ckpt)
}

// ID is the database that the log belongs to.
func (l *Log) ID() [16]byte { return l.options.ID }

// Err is the error that halted the log, a *[HaltError], or nil.
func (l *Log) Err() error {
	if f := l.failure.Load(); f != nil {
		return f.err
	}
	return nil
}

// Fail halts the log for good: no byte is written after what is being written
// now, and every waiter gets err, within a *[HaltError] unless it is [ErrClosed]. The
// first error stays.
//
// REQUIRES: err is not nil.
func (l *Log) Fail(err error) {
	if err == nil {
		panic("redo: Fail without an error")
	}
	if err != ErrClosed {
		err = &HaltError{err}
	}
	if !l.failure.CompareAndSwap(nil, &failure{err}) {
		return
	}
	l.mu.Lock()
	l.flushWait.wakeAll()
	l.pubWait.wakeAll()
	l.roomWait.wakeAll()
	l.failAdmits(err)
	l.mu.Unlock()
}

// Close makes everything durable, unless the log has failed, and ends its tasks.
// It returns the error that halted the log, if any.
//
// REQUIRES: every reserved group is or will be published; nobody reserves more.
func (l *Log) Close() error {
	if l.closed.Swap(true) {
		return ErrClosed
	}
	err := l.FlushTo(l.Current())
	if err == nil {
		err = l.saveBound()
	}
	l.stopping.Store(true)
	l.writer.Unpark()
	l.flusher.Unpark()
	l.tasks.Wait()
	if err == nil {
		err = l.Err()
	}
	l.Fail(ErrClosed)
	if cerr := l.file.Close(); err == nil {
		err = cerr
	}
	return err
}

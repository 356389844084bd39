// Package cache keeps the events of a running transaction: in memory up to
// binlog_cache_size, beyond that in a file of the session's own under
// #binlog_cache_files.
//
//	c := cache.New(opt)               // with the session
//	c.Write(events)                   // whole events, from event.Rows
//	mark := c.Mark(); c.Truncate(mark)   // savepoint and statement rollback
//	body, err = c.AppendTo(body)      // commit
//	c.Reset()                         // the next transaction
//	c.Close()                         // the session's end
//
// A transaction that outgrows binlog_large_commit_threshold gets a large mode, if there is
// a [Large]: its events are then the frames of a body (package body) in a file that the log
// takes over at COMMIT, and that the group has most of by then. See large.go.
//
// # Invariants
//
//   - What is in memory follows what is in the file: the first spilled bytes of the events
//     are in the file, as they are or in frames, and the rest is in buf. Bytes of the file
//     behind them are garbage.
//   - A call of Write that fails leaves the contents as they were, so that the statement
//     fails and the transaction goes on. Truncate, Reset and marks never fail.
//   - Memory is at most binlog_cache_size a session, whatever the transaction's size; in
//     large mode the events of one frame.
//
// The cache never syncs: a file that the log has not taken means nothing to another
// process, and [Clean] removes what a crash has left. The file of raw events is made when a
// transaction first outgrows memory, emptied between transactions and removed with the
// session; that of a body belongs to one transaction.
package cache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strings"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
)

const (
	// DefaultDir is where files are.
	DefaultDir = "#binlog_cache_files"
	// DefaultSize is the default of binlog_cache_size in bytes, MySQL's.
	DefaultSize = 32 << 10
	// MinSize is the least binlog_cache_size in bytes.
	MinSize = 4 << 10
	// Unlimited is the default of max_binlog_cache_size: as much as the disk holds.
	Unlimited = math.MaxInt64

	filePrefix = "ML_"
)

// Options are what caches are made with.
type Options struct {
	FS  file.FS
	Env env.Env // names files
	Dir string  // "": DefaultDir

	// Size is binlog_cache_size: how much is kept in memory, in bytes. 0:
	// DefaultSize; less than MinSize: MinSize.
	Size int
	// MaxSize is max_binlog_cache_size: the greatest length of a transaction's
	// events in bytes. 0: Unlimited. A transaction that is not large has at most
	// event.MaxTransaction.
	MaxSize int64
	// Large makes large transactions; nil: none.
	Large Large

	Stats *Stats // nil: not counted
}

// Stats counts what caches did since the start.
type Stats struct {
	Use       atomic.Int64 // Binlog_cache_use: transactions that had events
	DiskUse   atomic.Int64 // Binlog_cache_disk_use: of them, those that needed a file
	LargeUse  atomic.Int64 // of them, those that got the large mode
	DiskBytes atomic.Int64 // bytes written to files
	Files     atomic.Int64 // files that are there now and not the log's
}

// Cache is the events of one session's transaction. It belongs to one task at a time.
type Cache struct {
	// Owner is the transaction whose events these are, for lists of large transactions.
	Owner body.Owner

	opt Options

	buf     []byte
	spilled int64 // bytes of events in the file, before those in buf
	f       file.File
	name    string

	limit int64 // a size that Write does not pass without asking outgrow
	ask   int64 // the size at which Large is asked again, after it refused
	cut   int64 // where Full has last had a table map written, without large mode

	large // see there

	counted, countedDisk bool // in Stats, for this transaction
}

// Mark is a place to go back to.
type Mark int64

// New returns an empty cache.
func New(opt Options) *Cache {
	if opt.Dir == "" {
		opt.Dir = DefaultDir
	}
	if opt.Size == 0 {
		opt.Size = DefaultSize
	}
	opt.Size = max(opt.Size, MinSize)
	if opt.MaxSize <= 0 {
		opt.MaxSize = Unlimited
	}
	if opt.Stats == nil {
		opt.Stats = new(Stats)
	}
	return &Cache{opt: opt}
}

// Write appends p, whole events. Errors: event.ErrTooLarge (1197) beyond
// max_binlog_cache_size; the file's, such as file.ErrNoSpace. The contents are then as
// they were.
func (c *Cache) Write(p []byte) (int, error) {
	if n := c.spilled + int64(len(c.buf)+len(p)); n > c.limit {
		if err := c.outgrow(n); err != nil {
			return 0, err
		}
	}
	var err error
	if c.body != nil {
		err = c.writeLarge(p)
	} else {
		err = c.writeRaw(p)
	}
	if err != nil {
		return 0, err
	}
	if !c.counted {
		c.counted = true
		c.opt.Stats.Use.Add(1)
	}
	return len(p), nil
}

// writeRaw is Write without large mode.
func (c *Cache) writeRaw(p []byte) error {
	if len(c.buf)+len(p) > c.opt.Size {
		if err := c.spill(c.buf); err != nil {
			return err
		}
		c.buf = c.buf[:0]
	}
	if len(p) > c.opt.Size {
		return c.spill(p)
	}
	c.keep(p)
	return nil
}

// outgrow is asked before the contents get n bytes, more than limit, and sets a new limit:
// they are too many, or the transaction gets its large mode. Each transaction asks with its
// first event, since limit is 0 then.
func (c *Cache) outgrow(n int64) error {
	switch {
	case c.failed != nil:
		return c.failed
	case n > c.opt.MaxSize:
		return event.ErrTooLarge
	case c.body != nil:
		c.limit = c.opt.MaxSize
		return nil
	}
	c.limit = min(c.opt.MaxSize, event.MaxTransaction)
	if c.opt.Large != nil {
		if at := max(c.opt.Large.Threshold(), c.ask); n <= min(at, c.limit) {
			c.limit = min(at, c.limit)
			return nil
		}
		if turned, err := c.turnLarge(); turned || err != nil {
			c.limit = 0 // the next event asks again
			return err
		}
		c.ask = 2 * n
	}
	if n > c.limit {
		return event.ErrTooLarge
	}
	if c.ask > 0 {
		c.limit = min(c.limit, c.ask)
	}
	return nil
}

// keep appends p to what is in memory. REQUIRES: there is room for it.
func (c *Cache) keep(p []byte) {
	if n := len(c.buf) + len(p); n > cap(c.buf) {
		grown := make([]byte, len(c.buf), min(max(2*cap(c.buf), n), c.opt.Size))
		copy(grown, c.buf)
		c.buf = grown
	}
	c.buf = append(c.buf, p...)
}

// spill appends p to the file.
func (c *Cache) spill(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if c.f == nil {
		f, name, err := c.create()
		if err != nil {
			return fmt.Errorf("binlog cache: %w", err)
		}
		c.f, c.name = f, name
	}
	if _, err := c.f.WriteAt(p, c.spilled); err != nil {
		return fmt.Errorf("binlog cache: %w", err)
	}
	c.spilled += int64(len(p))
	c.countDisk(int64(len(p)))
	return nil
}

// countDisk counts bytes that were written to a file.
func (c *Cache) countDisk(n int64) {
	c.opt.Stats.DiskBytes.Add(n)
	if !c.countedDisk {
		c.countedDisk = true
		c.opt.Stats.DiskUse.Add(1)
	}
}

// createTries bounds the search for a name that is free.
const createTries = 8

// create makes a file with a name of its own.
func (c *Cache) create() (f file.File, name string, err error) {
	if err = c.opt.FS.MkdirAll(c.opt.Dir); err != nil {
		return nil, "", err
	}
	for range createTries {
		name = path.Join(c.opt.Dir, fmt.Sprintf("%s%016x", filePrefix, c.opt.Env.Uint64()))
		f, err = c.opt.FS.Open(name, file.OpenOptions{Exclusive: true})
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return nil, "", err
	}
	c.opt.Stats.Files.Add(1)
	return f, name, nil
}

// Size is the length of the contents in bytes.
func (c *Cache) Size() int64 {
	if c.failed != nil {
		return int64(c.wanted)
	}
	return c.spilled + int64(len(c.buf))
}

// Spilled is how much of them is in the file.
func (c *Cache) Spilled() int64 { return c.spilled }

// Mark returns the place behind the last byte.
func (c *Cache) Mark() Mark { return Mark(c.Size()) }

// Truncate takes away what was written after the mark.
//
// REQUIRES: the contents have not been cut below the mark since it was taken.
func (c *Cache) Truncate(m Mark) {
	if c.body != nil {
		c.truncateLarge(m)
		return
	}
	c.cut = min(c.cut, int64(m))
	if int64(m) >= c.spilled {
		c.buf = c.buf[:int64(m)-c.spilled]
		return
	}
	c.buf = c.buf[:0]
	c.spilled = int64(m)
	c.release()
}

// release gives back the file's space behind what it holds. That it may fail does not
// matter: what is there is garbage, and is written over.
func (c *Cache) release() {
	if c.f != nil {
		_ = c.f.Truncate(c.spilled)
	}
}

// Reset makes the cache empty for the next transaction.
//
// REQUIRES: whoever may take the body of a large transaction has done so, or will not.
func (c *Cache) Reset() {
	if c.body != nil {
		_ = c.dropLarge()
	}
	if c.spilled > 0 {
		c.Truncate(0)
	}
	c.buf = c.buf[:0]
	c.limit, c.ask, c.cut = 0, 0, 0
	c.counted, c.countedDisk = false, false
}

// Bytes returns the contents if they are all in memory. They are valid until the next
// change.
func (c *Cache) Bytes() (b []byte, ok bool) {
	if c.spilled > 0 {
		return nil, false
	}
	return c.buf, true
}

// AppendTo appends the contents to dst. Errors are the file's; dst is then returned
// as it was.
func (c *Cache) AppendTo(dst []byte) ([]byte, error) {
	start := len(dst)
	if c.spilled > 0 {
		n := int(c.spilled)
		if cap(dst)-start < n+len(c.buf) {
			grown := make([]byte, start, start+n+len(c.buf))
			copy(grown, dst)
			dst = grown
		}
		if err := c.readFile(dst[start:start+n], 0); err != nil {
			return dst[:start], err
		}
		dst = dst[:start+n]
	}
	return append(dst, c.buf...), nil
}

// ReadAt reads the contents from off, as io.ReaderAt: for reading them in pieces.
func (c *Cache) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("binlog cache: read at %d: %w", off, fs.ErrInvalid)
	}
	if off < c.spilled {
		n = int(min(int64(len(p)), c.spilled-off))
		if err := c.readFile(p[:n], off); err != nil {
			return 0, err
		}
		off += int64(n)
	}
	if n < len(p) && off < c.Size() {
		n += copy(p[n:], c.buf[off-c.spilled:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readFile reads the events that are in the file.
//
// REQUIRES: off+len(p) <= spilled.
func (c *Cache) readFile(p []byte, off int64) error {
	if c.body != nil {
		return c.readFrames(p, off)
	}
	if _, err := c.f.ReadAt(p, off); err != nil {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%s ends before %d bytes: %w", c.name, c.spilled, io.ErrUnexpectedEOF)
		}
		return fmt.Errorf("binlog cache: %w", err)
	}
	return nil
}

// Full implements event.Framer: frames end, and tables are named anew, every few hundred
// KiB. Without large mode too, so that what is cached can be cut into frames later.
func (c *Cache) Full(n int) bool {
	if c.body != nil {
		return body.Full(len(c.buf)+n, c.spilled)
	}
	size := c.spilled + int64(len(c.buf)+n)
	if c.opt.Large == nil || !body.Full(int(size-c.cut), 0) {
		return false
	}
	c.cut = size
	return true
}

// Close empties the cache and removes its files. The cache may be used again.
func (c *Cache) Close() error {
	var err error
	if c.body != nil {
		err = c.dropLarge()
	}
	c.spilled, c.buf = 0, nil
	c.Reset()
	if c.f != nil {
		err = errors.Join(err, c.f.Close(), c.remove(c.name))
		c.f = nil
	}
	return err
}

// Clean removes the files that a crash left in a directory; "" is DefaultDir. It is
// called at the start, before there is any cache. It returns how many there were.
func Clean(fsys file.FS, dir string) (removed int, err error) {
	if dir == "" {
		dir = DefaultDir
	}
	names, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("binlog cache: %w", err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, filePrefix) {
			continue
		}
		if err := fsys.Remove(path.Join(dir, name)); err != nil {
			return removed, fmt.Errorf("binlog cache: %w", err)
		}
		removed++
	}
	return removed, nil
}

package cache

import (
	"errors"
	"fmt"
	"slices"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/internal/turn"
)

// Large makes large transactions: it takes bodies to the other members while transactions
// run. Its methods are safe for concurrent use.
type Large interface {
	// Threshold is binlog_large_commit_threshold as it is now, in bytes.
	Threshold() int64
	// Begin is asked when a transaction's events outgrow the threshold. f is an empty file
	// for its body, called name. o is Cache.Owner. ok is false if no large transaction can be made now: the
	// cache goes on without, and asks again when the events have doubled, or would become
	// too many for a transaction that is not large. With ok, the file's handle is Large's
	// to close (body.File.Close), after End or once the body is taken into the log.
	Begin(name string, f file.File, o body.Owner) (b *body.File, ok bool)
	// After is the newest log index that is accepted now, the 'after' of a frame that is
	// closed now.
	After() uint64
	// Changed says that the body has another frame, or lost some.
	Changed(b *body.File)
	// End says that the transaction is over, or goes on, without the body. The body is
	// Dropped and its name removed.
	End(b *body.File)
	// Compress is binlog_transaction_compression.
	Compress() bool
}

// large is the large mode of a cache, for one transaction.
type large struct {
	body *body.File // nil: there is no large mode

	// A Truncate to wanted could not read back the frame that it cuts: nothing can be
	// written, read or sealed, for the reason failed, until a Truncate can. The body is as
	// it was before.
	failed error
	wanted Mark

	read       []byte // events of the frame that was last read
	readNumber int    // its number
}

const (
	// readPiece is how much is read at a time of what was cached before the large mode.
	readPiece = 256 << 10
	// longEvents are put into a frame of their own where they can, rather than copied.
	longEvents = 4 << 20
	// keptFrame is how much memory is kept from one frame of a transaction for the next.
	keptFrame = 8 << 20
)

// Large returns the body of the transaction if it is in large mode. As long as it grows, the
// last events are not in it: see Seal.
func (c *Cache) Large() (b *body.File, ok bool) { return c.body, c.body != nil }

// Outgrown reports whether the transaction is to be committed as a large one: it is in large
// mode, and what savepoints have left of it needs that.
func (c *Cache) Outgrown() bool {
	return c.body != nil && (c.Size() > c.opt.Large.Threshold() || c.Size() > event.MaxTransaction)
}

// Seal closes the last frame and returns the body, which has all events then. Errors are
// those of Write.
//
// REQUIRES: the transaction is in large mode.
func (c *Cache) Seal() (*body.File, error) {
	if c.failed != nil {
		return nil, c.failed
	}
	if len(c.buf) > 0 {
		if err := c.closeFrame(); err != nil {
			return nil, err
		}
	}
	return c.body, nil
}

// turnLarge begins the large mode: the events so far become frames of a body, but for the
// last ones, which stay in buf. After an error everything is as before.
func (c *Cache) turnLarge() (turned bool, err error) {
	f, name, err := c.create()
	if err != nil {
		return false, fmt.Errorf("binlog cache: %w", err)
	}
	b, ok := c.opt.Large.Begin(name, f, c.Owner)
	if !ok {
		// If the file cannot be removed, the next start does.
		_ = errors.Join(f.Close(), c.remove(name))
		return false, nil
	}
	rest, err := c.cutFrames(b)
	if err != nil {
		_ = c.drop(b)
		return false, err
	}
	c.body = b
	c.spilled = 0
	c.release() // the raw file's space
	c.spilled = b.Status().Plain
	c.buf = rest
	c.opt.Stats.LargeUse.Add(1)
	return true, nil
}

// cutFrames puts what is cached without large mode into frames of b. It cuts where a table
// is named anew, as Full has asked for. rest are the events behind the last cut.
func (c *Cache) cutFrames(b *body.File) (rest []byte, err error) {
	var own turn.Turn
	var framed int64
	whole, closed := 0, false // bytes of whole events in rest, and whether nothing refers to them
	for off, size := int64(0), c.Size(); off < size; {
		at, n := len(rest), int(min(readPiece, size-off))
		rest = slices.Grow(rest, n)[:at+n]
		if _, err := c.ReadAt(rest[at:], off); err != nil {
			return nil, err
		}
		off += int64(n)
		for {
			h, ok := event.ParseHeader(rest[whole:])
			if !ok {
				break
			}
			if closed && !h.Type.IsRows() && body.Full(whole, framed) {
				if err := c.addFrame(b, rest[:whole]); err != nil {
					return nil, err
				}
				framed += int64(whole)
				rest = append(rest[:0], rest[whole:]...)
				whole = 0
				own.Pass()
			}
			if int64(h.Length) > int64(len(rest)-whole) {
				break
			}
			if h.Length < event.HeaderSize {
				return nil, fmt.Errorf("binlog cache: %w: an event of %d bytes", event.ErrCorrupt, h.Length)
			}
			length := int(h.Length)
			closed = event.Closes(rest[whole : whole+length])
			whole += length
		}
	}
	if whole != len(rest) {
		return nil, fmt.Errorf("binlog cache: %w: %d bytes behind the last event", event.ErrCorrupt, len(rest)-whole)
	}
	return rest, nil
}

// writeLarge is Write in large mode.
func (c *Cache) writeLarge(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if len(c.buf)+len(p) > body.FrameMax {
		return event.ErrTooLarge
	}
	if !c.Full(len(p)) {
		c.buf = append(c.buf, p...)
		return nil
	}
	_, closed, err := event.Survey(p)
	if err != nil {
		return fmt.Errorf("binlog cache: %w", err)
	}
	if h, _ := event.ParseHeader(p); len(p) >= longEvents && len(c.buf) > 0 && !h.Type.IsRows() {
		if err := c.closeFrame(); err != nil {
			return err
		}
	}
	if len(c.buf) == 0 && closed {
		return c.add(p)
	}
	before := len(c.buf)
	c.buf = append(c.buf, p...)
	if closed {
		if err := c.closeFrame(); err != nil {
			c.buf = c.buf[:before]
			return err
		}
	}
	return nil
}

// closeFrame makes a frame of what is in buf.
func (c *Cache) closeFrame() error {
	if err := c.add(c.buf); err != nil {
		return err
	}
	if cap(c.buf) > keptFrame {
		c.buf = nil
	}
	c.buf = c.buf[:0]
	return nil
}

// add makes a frame of events that follow those that have one.
func (c *Cache) add(events []byte) error {
	if err := c.addFrame(c.body, events); err != nil {
		return err
	}
	c.spilled += int64(len(events))
	return nil
}

func (c *Cache) addFrame(b *body.File, events []byte) error {
	count, _, err := event.Survey(events)
	if err != nil {
		return fmt.Errorf("binlog cache: %w", err)
	}
	k := takePacker()
	defer k.giveBack()
	z, err := k.encoder(c.opt.Large.Compress())
	if err != nil {
		return fmt.Errorf("binlog cache: %w", err)
	}
	frame, h := body.AppendFrame(k.stored[:0], z, b.Status().Chain, events, count)
	k.stored = frame
	if err := b.Write(frame, h, c.opt.Large.After()); err != nil {
		return fmt.Errorf("binlog cache: %w", err)
	}
	c.countDisk(int64(len(frame)))
	c.opt.Large.Changed(b)
	return nil
}

// truncateLarge is Truncate in large mode. The frame that the mark lies in is read back: its
// events before the mark begin the next frame.
func (c *Cache) truncateLarge(m Mark) {
	if c.failed != nil {
		m = min(m, c.wanted)
	}
	at := int64(m)
	if at >= c.spilled { // not if it has failed before
		c.buf = c.buf[:at-c.spilled]
		return
	}
	c.buf = c.buf[:0]
	f, before, _ := c.body.Holds(at)
	if kept := at - f.Before; kept > 0 {
		events, err := c.frame(f, before)
		if err != nil {
			c.failed, c.wanted, c.limit = err, m, -1
			return
		}
		c.buf = append(c.buf, events[:kept]...)
	}
	c.failed, c.limit = nil, 0
	c.read = nil
	c.body.Truncate(f.Number)
	c.spilled = f.Before
	c.opt.Large.Changed(c.body)
}

// readFrames is readFile in large mode.
func (c *Cache) readFrames(p []byte, off int64) error {
	if c.failed != nil {
		return c.failed
	}
	for len(p) > 0 {
		f, before, ok := c.body.Holds(off)
		if !ok {
			return fmt.Errorf("binlog cache: %w: no frame has byte %d", body.ErrCorrupt, off)
		}
		events, err := c.frame(f, before)
		if err != nil {
			return err
		}
		n := copy(p, events[off-f.Before:])
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// frame returns the events of a frame, which comes behind one with the checksum before. They
// are valid until the next call.
func (c *Cache) frame(f body.Frame, before uint32) ([]byte, error) {
	if len(c.read) > 0 && c.readNumber == f.Number {
		return c.read, nil
	}
	k := takePacker()
	defer k.giveBack()
	z, err := k.decoder()
	if err != nil {
		return nil, fmt.Errorf("binlog cache: %w", err)
	}
	into := c.read[:0]
	c.read = nil
	var events []byte
	if k.stored, events, err = c.body.ReadFrame(f, before, z, k.stored, into); err != nil {
		return nil, fmt.Errorf("binlog cache: %w", err)
	}
	if f.Codec == entry.Plain {
		events = append(into, events...) // the packer has them
	}
	c.read, c.readNumber = events, f.Number
	return events, nil
}

// dropLarge ends the large mode and empties the cache. The body is dropped unless it has been
// taken into the log. An error is that of removing the file, which the next start does then.
func (c *Cache) dropLarge() error {
	b := c.body
	c.large = large{}
	c.spilled = 0
	if cap(c.buf) > c.opt.Size {
		c.buf = nil
	}
	if b.Status().State == body.Taken {
		c.opt.Stats.Files.Add(-1)
		return nil
	}
	return c.drop(b)
}

// drop gives up a body and removes its file.
func (c *Cache) drop(b *body.File) error {
	b.End(body.Dropped)
	err := c.remove(b.Name)
	c.opt.Large.End(b)
	return err
}

func (c *Cache) remove(name string) error {
	c.opt.Stats.Files.Add(-1)
	return c.opt.FS.Remove(name)
}

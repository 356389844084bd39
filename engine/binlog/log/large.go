package log

import (
	"errors"
	"fmt"
	"path"

	"github.com/triremedb/trireme/engine/binlog/body"
	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/storage/file"
)

// Bodies has the bodies of large transactions that are not in the log yet, each in a file.
type Bodies interface {
	// Take returns the name, in Options.FS, of the file that holds the whole body at b.Offset,
	// verified and synced. What lies before the body does not matter. From then on nobody else
	// touches the file, until Taken. An error that wraps ErrNoBody says that the body is not
	// there; file.ErrNoSpace is passed on, and any other error halts the log.
	//
	// It is called while the end of the log is being changed, and must not change it.
	Take(b *entry.LargeBody) (name string, err error)
	// Taken follows a Take that returned a name. moved: the body is in the log, and nothing is
	// left under the name. Else the file is where it was, and only what lies before the body, or
	// behind it, may have changed.
	Taken(b *entry.LargeBody, moved bool)
}

const (
	// largeAlign is what the place of a body is a multiple of: the size of a page.
	largeAlign = 4096
	// largeOffsetMax bounds the space before a body, above what the longest record needs.
	largeOffsetMax = 128 << 20
)

// fileEnd is the length of the file that the body lies in.
func fileEnd(b *entry.LargeBody) int64 { return int64(b.Offset) + b.Stored }

// inspectLarge takes from the first bytes of the data of an entry of kind Large what they say of
// the body, and says what is wrong with them, or "".
func (c *content) inspectLarge(length int, head []byte) string {
	if c.count != 1 || entry.Codec(head[1]) != entry.Plain || !c.rotate || c.version < entry.LargeVersion {
		return "its envelope is malformed"
	}
	b, err := entry.ParseLargeBody(head[entry.EnvelopeSize:min(len(head), headSize)])
	if err != nil {
		return "it does not describe a body"
	}
	if b.Offset%largeAlign != 0 || int64(b.Offset) < headerSize+recordHeader+int64(length) || b.Offset > largeOffsetMax {
		return fmt.Sprintf("its body cannot begin at byte %d", b.Offset)
	}
	c.large = &b
	return ""
}

// appendLarge adds the entry of a large transaction and its body, as a file of their own. The
// file with the body becomes that file; nothing is read or written but what comes before the body,
// unless the file cannot be renamed.
//
// The file has its name once it is durable whole. So what holds for the records of other files
// once a sync mark covers them holds for this one from the beginning: the mark for the whole
// file is written with the header.
//
// Errors: ErrNoBody and file.ErrNoSpace, with which the log is as it was. Any other halts it.
//
// REQUIRES: nothing is buffered.
func (l *Log) appendLarge(e *Entry, c *content) error {
	if l.opt.Bodies == nil {
		return fmt.Errorf("%w: entry %d", ErrNoBody, e.Index)
	}
	name, err := l.opt.Bodies.Take(c.large)
	if errors.Is(err, ErrNoBody) {
		return fmt.Errorf("entry %d: %w", e.Index, err)
	}
	if err != nil {
		return l.failed(fmt.Sprintf("the body of entry %d", e.Index), err)
	}
	t := taking{l: l, entry: e, name: name, s: &segment{large: c.large, firstTime: c.time}}
	err = t.run(c)
	l.opt.Bodies.Taken(c.large, t.moved)
	return err
}

// taking is the way of a body into the log.
type taking struct {
	l      *Log
	entry  *Entry
	name   string   // of the file with the body
	s      *segment // the file that it becomes
	end    place    // where it ends
	mark   mark
	copied bool // the body was copied, since the file could not be renamed
	moved  bool // the file under name is gone
}

// run takes the body in. Once the new file has its name, everything before it is durable, as with
// any rotation.
func (t *taking) run(c *content) error {
	l := t.l
	if err := l.syncAll(); err != nil {
		return err
	}
	old := l.lastFile()
	t.s.header = l.nextHeader(old, c.version)
	t.s.end, t.s.next = fileEnd(t.s.large), t.entry.Index+1
	if err := t.install(t.head(c)); err != nil {
		if errors.Is(err, ErrNoBody) {
			return err
		}
		return l.failed("new file "+t.s.name(), err)
	}
	f, err := l.fs.Open(l.path(t.s.name()), file.OpenOptions{})
	if err != nil {
		return l.halt(err)
	}
	if err := seal(l.f, l.tail.offset); err != nil {
		f.Close()
		err = fmt.Errorf("closing %s: %w", old.name(), err)
		if errors.Is(err, file.ErrNoSpace) && t.undo() == nil {
			return err
		}
		return l.halt(err)
	}
	l.f.Close() // its bytes are durable
	l.f, l.allocated, l.marked, l.markLoose = f, t.s.end, t.mark, false
	t.publish(c)
	if t.copied {
		// If it stays, Bodies finds a body that nobody needs.
		_ = l.fs.Remove(t.name)
		t.moved = true
	}
	if err := l.noteSynced(); err != nil {
		return l.halt(fmt.Errorf("sync mark: %w", err))
	}
	return nil
}

// head returns what comes before the body: the header block with a mark for the whole file, the
// record, and zeros.
func (t *taking) head(c *content) []byte {
	s, e := t.s, t.entry
	b := make([]byte, headerSize, s.large.Offset)
	s.header.encode(b)
	t.mark = mark{sequence: 1, offset: s.end, index: s.next}
	t.mark.encode(b[t.mark.at():], s.number)
	b, crc := appendRecord(b, e, s.chainBefore)
	b = append(b, e.Data...)
	t.end = s.start().after(record{crc: crc, length: len(e.Data), index: e.Index, term: e.Term}, *c)
	return b[:s.large.Offset]
}

// install writes head before the body and gives the file its name in the log, both durably. A
// file that cannot be renamed is copied. A full disk leaves the file where it was.
func (t *taking) install(head []byte) error {
	l := t.l
	f, err := l.fs.Open(t.name, file.OpenOptions{})
	if err != nil {
		return err
	}
	defer f.Close()
	if err := t.writeHead(f, head); err != nil {
		return err
	}
	err = l.fs.Rename(t.name, l.path(t.s.name()))
	t.moved = err == nil
	if err != nil && !errors.Is(err, file.ErrNoSpace) {
		// Perhaps the files of the log are on another file system.
		err = t.copy(f)
		t.copied = err == nil
	}
	if err == nil {
		err = fatal(l.fs.SyncDir(l.opt.Dir))
	}
	return err
}

// writeHead writes head into the file with the body, durably, and makes the file end with the
// body.
func (t *taking) writeHead(f file.File, head []byte) error {
	size, err := f.Size()
	if err == nil && size < t.s.end {
		err = fmt.Errorf("%w: %s has %d bytes, it should have %d", ErrNoBody, t.name, size, t.s.end)
	}
	if err == nil && size > t.s.end {
		err = f.Truncate(t.s.end)
	}
	if err == nil {
		_, err = f.WriteAt(head, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	return err
}

// copy makes the file of the log from f, with the same bytes. If it fails there is none.
func (t *taking) copy(f file.File) error {
	fs, name := t.l.fs, t.l.path(t.s.name())
	temp := name + tempSuffix
	to, err := fs.Open(temp, file.OpenOptions{Create: true})
	if err != nil {
		return err
	}
	err = copyBytes(to, f, t.s.end)
	if cerr := to.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = fs.Rename(temp, name)
	}
	if err != nil {
		_ = fs.Remove(temp) // if it stays, the next start removes it
	}
	return err
}

// copyBytes makes to a copy of the first size bytes of from, durably.
func copyBytes(to, from file.File, size int64) error {
	if err := to.Truncate(0); err != nil {
		return err
	}
	if err := to.Allocate(0, size); err != nil { // before bytes are copied in vain
		return err
	}
	b := make([]byte, min(bufferSize, size))
	for off := int64(0); off < size; off += int64(len(b)) {
		b = b[:min(int64(len(b)), size-off)]
		if _, err := from.ReadAt(b, off); err != nil {
			return err
		}
		if _, err := to.WriteAt(b, off); err != nil {
			return err
		}
	}
	return to.Sync()
}

// undo takes the new file out of the log again, durably: the file before it is to stay the last
// one.
func (t *taking) undo() error {
	l := t.l
	if t.copied {
		return l.unlink(t.s)
	}
	if err := l.fs.Rename(l.path(t.s.name()), t.name); err != nil {
		return err
	}
	t.moved = false
	if err := l.fs.SyncDir(path.Dir(t.name)); err != nil {
		return err
	}
	return l.fs.SyncDir(l.opt.Dir)
}

// publish shows the entry to readers and takes down that it is durable.
func (t *taking) publish(c *content) {
	l, s, e, p := t.l, t.s, t.entry, t.s.start()
	l.mu.Lock()
	s.note(p, e.Term)
	l.files = append(l.files, s)
	l.cache.push(e.Index, &recent{data: e.Data, term: e.Term, typ: e.Type, offset: p.offset, number: p.number, chain: p.chain, time: c.time})
	l.tail = t.end
	l.limitPoints()
	l.mu.Unlock()
	l.setSynced()
	l.stats.rotations.Add(1)
	l.stats.entries.Add(1)
	l.stats.bytes.Add(s.end - headerSize)
	l.stats.large.Add(1)
	if t.copied {
		l.stats.largeCopied.Add(1)
	}
}

// verifyBody reads and checks what lies behind the record of a large transaction. Error:
// *CorruptError, or the file's.
//
// REQUIRES: verify.
func (s *segment) verifyBody(f file.File) error {
	if s.large == nil {
		return nil
	}
	b := make([]byte, min(bufferSize, s.large.Offset))
	if _, err := f.ReadAt(b[:headerSize+recordHeader], 0); err != nil {
		return err
	}
	from := headerSize + recordHeader + int64(decodeRecord(b[headerSize:]).length)
	for off := from; off < int64(s.large.Offset); off += int64(len(b)) {
		b = b[:min(int64(len(b)), int64(s.large.Offset)-off)]
		if _, err := f.ReadAt(b, off); err != nil {
			return err
		}
		if !allZero(b) {
			return &CorruptError{File: s.name(), Offset: off, Index: s.first, What: "there are bytes where zeros belong, before the body"}
		}
	}
	return damaged(s.number, s.first, s.large, body.Verify(f, s.large))
}

// damaged turns the error of a reader of a file's body into a *CorruptError, if it is damage.
func damaged(file, index uint64, b *entry.LargeBody, err error) error {
	if !errors.Is(err, body.ErrCorrupt) {
		return err
	}
	return &CorruptError{File: FileName(file), Offset: int64(b.Offset), Index: index, What: err.Error()}
}

// Body is the file of a large transaction in the log, open for reading: an io.ReaderAt for
// body.NewReader. It stays readable when the file is purged or taken back.
type Body struct {
	entry.LargeBody
	Index uint64 // of the entry

	l *Log
	s *segment
	f file.File
}

// OpenBody opens the body of a large transaction. The entry is verified; the reader verifies the
// body, and reports damage with [Body.Damaged].
//
// Errors: ErrNoBody if the entry is of another kind, ErrCompacted, ErrUnavailable; a
// *CorruptError halts the log.
func (l *Log) OpenBody(index uint64) (*Body, error) {
	for {
		l.mu.RLock()
		if err := l.readable(index, index+1); err != nil {
			l.mu.RUnlock()
			return nil, err
		}
		taken, live := l.taken, l.segmentOf(index)
		s := *live
		l.mu.RUnlock()
		if s.large == nil {
			return nil, fmt.Errorf("%w: entry %d is no large transaction", ErrNoBody, index)
		}
		b, err := l.openBody(&s)
		again, err := l.doubt(taken, err)
		if !again && err == nil {
			b.l, b.s = l, live
			return b, nil
		}
		if b != nil {
			b.Close()
		}
		if !again {
			return nil, err
		}
	}
}

// openBody opens a file and reads its record.
func (l *Log) openBody(s *segment) (*Body, error) {
	f, err := l.fs.Open(l.path(s.name()), file.OpenOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	sc := scanner{f: f, name: s.name(), at: s.start(), end: s.end, window: l.takeWindow()}
	defer func() { l.giveWindow(sc.window) }()
	r, c, err := sc.next(true)
	if err == nil && c.large == nil {
		err = sc.bad("it is no large transaction")
	}
	if err != nil {
		f.Close()
		return nil, sc.known(err)
	}
	return &Body{LargeBody: *c.large, Index: r.index, f: f}, nil
}

// ReadAt implements io.ReaderAt. The body begins at Offset.
func (b *Body) ReadAt(p []byte, off int64) (int, error) { return b.f.ReadAt(p, off) }

// Verify reads the body and checks it, for who copies it unread. Error: *CorruptError, which does not halt the log, or the file's.
func (b *Body) Verify() error {
	return damaged(b.s.number, b.Index, &b.LargeBody, body.Verify(b.f, &b.LargeBody))
}

// Damaged is told what a reader of the body met. If that is damage (body.ErrCorrupt), and the
// file is in the log still, the log halts. It returns the error, which then is a *CorruptError.
func (b *Body) Damaged(err error) error {
	b.l.mu.RLock()
	here := b.l.segment(b.s.number) == b.s && b.s.large != nil
	b.l.mu.RUnlock()
	var damage *CorruptError
	if !here || !errors.As(damaged(b.s.number, b.Index, &b.LargeBody, err), &damage) {
		return err
	}
	b.l.halt(damage)
	return damage
}

// Close releases the file.
func (b *Body) Close() error { return b.f.Close() }

package log

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/storage/file"
)

const (
	// bufferSize is how much of records is gathered for one write.
	bufferSize = 1 << 20
	// directSize is from which length on data is written from where it lies.
	directSize = 256 << 10
	// fillStep is how much reserved space is written at a time.
	fillStep = 128 << 10
	// markGroups and markTime are how many groups a sync mark covers at most, and how
	// old the one before may be when a group is made durable.
	markGroups = 8
	markTime   = 100 * time.Millisecond
)

// Append adds entries to the end of the log, in the file but not yet durable.
// Entries that are there already, with the same term, are left alone; at the first
// one with another term the old tail is taken back, durably, before anything is
// written. The log keeps the entries' Data.
//
// The body of a large transaction comes from Options.Bodies. Its entry is durable at once.
//
// Errors: ErrInvalid and ErrNewerFormat, file.ErrNoSpace: nothing was added, and the
// log goes on; a conflicting tail may be gone. ErrNoBody: the entries before the large
// transaction were added. So were, if the disk is full, those up to the last large
// transaction whose turn came, and perhaps itself. ErrCommitted and any other halt the log.
func (l *Log) Append(entries []Entry) error {
	l.turn.Lock()
	defer l.turn.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	entries, at, err := l.fresh(entries)
	if err != nil || len(entries) == 0 {
		return err
	}
	if err := l.validate(entries, at); err != nil {
		return err
	}
	if at.index != l.tail.index {
		if at.index <= l.Committed() {
			return l.halt(fmt.Errorf("%w: entry %d of term %d, committed is %d", ErrCommitted, at.index, entries[0].Term, l.Committed()))
		}
		if err := l.truncate(at); err != nil {
			return err
		}
	}
	return l.write(entries)
}

// fresh leaves out the entries that the log has or has purged, and returns where the
// rest belongs.
func (l *Log) fresh(entries []Entry) ([]Entry, place, error) {
	for len(entries) > 0 {
		index := entries[0].Index
		if index == l.tail.index {
			return entries, l.tail, nil
		}
		term, err := l.Term(index)
		switch {
		case errors.Is(err, ErrUnavailable):
			return nil, place{}, fmt.Errorf("%w: index %d, the log ends at %d", ErrInvalid, index, l.tail.index-1)
		case err != nil && !errors.Is(err, ErrCompacted):
			return nil, place{}, err
		case err == nil && index >= l.FirstIndex() && term != entries[0].Term:
			at, err := l.locate(index)
			return entries, at, err
		}
		entries = entries[1:]
	}
	return nil, place{}, nil
}

// validate checks that the entries can follow at and each other.
func (l *Log) validate(entries []Entry, at place) error {
	for i := range entries {
		e := &entries[i]
		c, problem := inspect(e.Type, e.Term, len(e.Data), e.Data)
		if problem == "" {
			problem = at.follows(e.Index, e.Term, c)
		}
		if problem != "" {
			return fmt.Errorf("%w: entry %d of term %d: %s", ErrInvalid, e.Index, e.Term, problem)
		}
		if c.rotate && c.version > l.opt.Newest {
			return fmt.Errorf("entry %d opens a new file: %w", e.Index, newerFormat(uint32(c.version), l.opt.Newest))
		}
		at = at.after(record{length: len(e.Data), index: e.Index, term: e.Term}, c)
	}
	return nil
}

// write adds entries that were validated. If the disk is full the log ends again
// where it ended before, or where a large transaction begins or ends.
func (l *Log) write(entries []Entry) error {
	before := l.tail
	err := l.writeAll(entries, &before)
	clear(l.run)
	l.buf, l.run = l.buf[:0], l.run[:0]
	if err == nil || l.Err() != nil {
		return err
	}
	if l.tail != before || l.scrap {
		// Records lie behind the end that nobody was told of.
		if terr := l.truncate(before); terr != nil {
			return terr
		}
	}
	return err
}

// writeAll lays out records and writes them, a new file where one begins. An error
// other than a full disk or a missing body halts the log. kept is set to the place up to
// which the entries stay whatever comes behind them.
func (l *Log) writeAll(entries []Entry, kept *place) error {
	at := l.tail
	full := l.lastFile().large != nil // the open file takes nothing
	for i := range entries {
		e := &entries[i]
		c, _ := inspect(e.Type, e.Term, len(e.Data), e.Data)
		if c.rotate || full {
			if err := l.flush(at); err != nil {
				return err
			}
			if err := l.nextFile(e, &c, kept); err != nil {
				return err
			}
			at, full = l.tail, c.large != nil
			if full {
				continue
			}
		}
		if len(l.buf) > 0 && len(l.buf)+recordHeader+len(e.Data) > bufferSize {
			if err := l.flush(at); err != nil {
				return err
			}
		}
		l.run = append(l.run, recent{data: e.Data, term: e.Term, typ: e.Type, offset: at.offset,
			number: at.number, chain: at.chain, time: c.time})
		var crc uint32
		l.buf, crc = appendRecord(l.buf, e, at.chain)
		at = at.after(record{crc: crc, length: len(e.Data), index: e.Index, term: e.Term}, c)
		if len(e.Data) < directSize {
			l.buf = append(l.buf, e.Data...)
			continue
		}
		if err := l.writeDirect(e.Data, at); err != nil {
			return err
		}
	}
	return l.flush(at)
}

// nextFile opens the file that begins with an entry: the whole of it if the entry is a
// large transaction.
func (l *Log) nextFile(e *Entry, c *content, kept *place) error {
	if c.large != nil {
		// What its place in the log has cost, or its body, is not thrown away for another
		// entry's sake.
		*kept = l.tail
		err := l.appendLarge(e, c)
		*kept = l.tail
		return err
	}
	version := uint8(0)
	if c.rotate {
		version = c.version
	}
	return l.rotate(version)
}

// writeDirect writes what is buffered and behind it data, which ends at at.
func (l *Log) writeDirect(data []byte, at place) error {
	if err := l.reserve(at.offset); err != nil {
		return err
	}
	start := at.offset - int64(len(data))
	if err := l.writeAt(l.buf, start-int64(len(l.buf))); err != nil {
		return err
	}
	l.buf = l.buf[:0]
	if err := l.writeAt(data, start); err != nil {
		return err
	}
	l.publish(at)
	return nil
}

// flush writes the buffered records, which end at at, and shows them to readers.
func (l *Log) flush(at place) error {
	if len(l.buf) == 0 {
		return nil
	}
	if err := l.reserve(at.offset); err != nil {
		return err
	}
	start := at.offset - int64(len(l.buf))
	l.fill(at.offset)
	if err := l.writeAt(l.buf, start); err != nil {
		return err
	}
	l.buf = l.buf[:0]
	l.publish(at)
	return nil
}

// fill adds zeros to what is buffered, which ends at end, where it is the first to be
// written there. A file system keeps a record of which reserved space was written, so
// that the sync after a first write has to write more than the data.
func (l *Log) fill(end int64) {
	if end <= l.filled || l.opt.Preallocate < 0 || len(l.buf) >= fillStep {
		return
	}
	l.filled = min((end+fillStep-1)/fillStep*fillStep, l.allocated)
	n := len(l.buf)
	l.buf = slices.Grow(l.buf, int(l.filled-end))[:n+int(l.filled-end)]
	clear(l.buf[n:])
}

func (l *Log) writeAt(b []byte, off int64) error {
	l.dirty, l.scrap = true, true
	if _, err := l.f.WriteAt(b, off); err != nil {
		return l.failed("write", err)
	}
	l.allocated = max(l.allocated, off+int64(len(b)))
	return nil
}

// failed passes on that the disk is full and halts the log for any other error.
func (l *Log) failed(what string, err error) error {
	if errors.Is(err, file.ErrNoSpace) {
		return fmt.Errorf("binlog: %s: %w", what, err)
	}
	return l.halt(fmt.Errorf("%s: %w", what, err))
}

// reserve makes the open file reach to end at least.
func (l *Log) reserve(end int64) error {
	step := l.opt.Preallocate
	if end <= l.allocated || step < 0 {
		return nil
	}
	l.filled = min(l.filled, l.allocated)
	to := (end + step - 1) / step * step
	err := l.f.Allocate(l.allocated, to-l.allocated)
	if errors.Is(err, file.ErrNoSpace) {
		to = end
		err = l.f.Allocate(l.allocated, to-l.allocated)
	}
	if err != nil {
		return l.failed("preallocation", err)
	}
	l.allocated = to
	return nil
}

// publish shows the records of l.run, which end at at, to readers.
func (l *Log) publish(at place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.files[len(l.files)-1]
	index := at.index - uint64(len(l.run))
	term := l.tail.term
	for i := range l.run {
		r := &l.run[i]
		p := place{file: s.number, offset: r.offset, index: index, number: r.number, term: term, chain: r.chain}
		s.note(p, r.term)
		if index == s.first {
			s.firstTime = r.time
		}
		l.cache.push(index, r)
		term = r.term
		index++
	}
	l.stats.entries.Add(int64(len(l.run)))
	l.stats.bytes.Add(at.offset - l.tail.offset)
	clear(l.run)
	l.run = l.run[:0]
	s.end, s.next = at.offset, at.index
	l.tail = at
	l.scrap = false
}

// note adds to the indexes of the file what the record at p, of this term, says.
func (s *segment) note(p place, term uint64) {
	if term != p.term {
		s.began = append(s.began, termStart{p.index, term})
	}
	s.points.add(p)
}

// Sync makes everything durable that was appended before. Error: any halts the log.
func (l *Log) Sync() error {
	l.turn.Lock()
	defer l.turn.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	return l.syncAll()
}

// syncAll ends a group: one sync covers what was written since the last one. The sync
// mark that it allows is written now and then, as it is a second place on the disk for the
// next sync, and durable with the group after it at the latest.
func (l *Log) syncAll() error {
	if !l.dirty {
		return nil
	}
	if err := l.syncFile(); err != nil {
		return err
	}
	l.setSynced()
	if err := l.noteSynced(); err != nil {
		return l.halt(fmt.Errorf("sync mark: %w", err))
	}
	now := l.env.Monotonic()
	if l.unmarked++; l.marked.offset != 0 && l.unmarked < markGroups && now-l.markedAt < markTime {
		return nil
	}
	l.unmarked, l.markedAt = 0, now
	// Without a new mark recovery is less sharp, no more: not worth failing for.
	if err := l.writeMark(l.synced); err != nil && !errors.Is(err, file.ErrNoSpace) {
		return l.halt(fmt.Errorf("sync mark: %w", err))
	}
	return nil
}

// setSynced takes down that everything in the files is durable.
func (l *Log) setSynced() {
	l.synced, l.dirty = l.tail, false
	l.mu.Lock()
	l.syncedTo = l.tail.index - 1
	l.mu.Unlock()
}

// writeMark writes the mark for at into the open file.
func (l *Log) writeMark(at place) error {
	if at.file != l.tail.file || at.offset == max(l.marked.offset, headerSize) {
		return nil
	}
	m := mark{sequence: l.marked.sequence + 1, offset: at.offset, index: at.index}
	var b [markSize]byte
	m.encode(b[:], at.file)
	_, err := l.f.WriteAt(b[:], m.at())
	l.markLoose = true
	if err == nil {
		l.marked = m
	}
	return err
}

func (l *Log) syncFile() error {
	start := l.env.Monotonic()
	if err := l.f.Sync(); err != nil {
		return l.halt(fmt.Errorf("sync: %w", err))
	}
	l.markLoose = false
	l.stats.synced(l.env.Monotonic() - start)
	return nil
}

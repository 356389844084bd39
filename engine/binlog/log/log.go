package log

import (
	"errors"
	"fmt"
	"path"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
)

// Log is an open log. All methods are safe for concurrent use; those that change it
// take turns.
type Log struct {
	env  env.Env
	fs   file.FS
	opt  Options
	turn *env.Mutex // held by whoever changes the end of the log; taken before mu
	// purging is held by whoever removes files from the beginning.
	purging *env.Mutex

	// Of the open file, the last one. Guarded by turn.
	f         file.File
	allocated int64 // the file's size
	filled    int64 // up to where it was written, with zeros behind the end
	synced    place // everything before is durable
	dirty     bool  // something was written since
	scrap     bool  // bytes behind the end may have been written
	marked    mark  // the newest one that was written
	markLoose bool  // it may not be durable
	unmarked  int   // groups that became durable since
	markedAt  time.Duration
	side      sideMark
	buf       []byte // records on their way to the file
	run       []recent

	torn *TornEnd // never changes once the log is open
	// unreadable is why the log begins later than its files do; nil: it does not. It never changes either.
	unreadable error
	failure    atomic.Pointer[HaltError]
	stats      counters

	// mu guards all below. Nothing parks while it is held.
	mu        sync.RWMutex
	closed    bool
	files     []*segment // ascending, never empty
	tail      place      // the end of what is written
	committed uint64
	syncedTo  uint64 // index of the last durable entry
	cache     cache
	cursors   [cursorsMax]place // where readers of the disk stopped; file 0: none
	cursor    int
	seeks     uint64   // searches on disk so far
	windows   [][]byte // for searches on disk
	// taken counts how often entries or files were taken away; a reader of the
	// disk that meets trouble looks whether they were those it read.
	taken uint64
	// doomed are purged files whose removal failed, oldest first.
	doomed []*segment
}

// segment is a file of the log.
type segment struct {
	header
	end       int64  // behind the last record
	next      uint64 // index behind the last entry
	firstTime int64  // wall clock of the first entry, microseconds since 1970; 0: unknown
	// large describes the body that fills the file behind its one record; nil: it is not the
	// file of a large transaction. It never changes but when that record is taken back.
	large *entry.LargeBody
	// began are the terms that begin in the file, ascending. Those before cut are
	// not known without reading the file.
	began  []termStart
	cut    bool
	points points
}

func (s *segment) name() string { return FileName(s.number) }

// start is the boundary before the first record.
func (s *segment) start() place {
	return place{file: s.number, offset: headerSize, index: s.first, number: s.numberBefore,
		term: s.termBefore, chain: s.chainBefore}
}

func (o *Options) path(name string) string { return path.Join(o.Dir, name) }

func (l *Log) path(name string) string { return l.opt.path(name) }

// Err is the error that halted the log, or nil.
func (l *Log) Err() error {
	if h := l.failure.Load(); h != nil {
		return h
	}
	return nil
}

// halt stops the log for good and returns the error that did. That is never
// file.ErrNoSpace, with which the caller would try again.
func (l *Log) halt(cause error) error {
	l.failure.CompareAndSwap(nil, &HaltError{Cause: fatal(cause)})
	return l.failure.Load()
}

// TornEnd is the end that was cut off when the log was opened, or nil.
func (l *Log) TornEnd() *TornEnd { return l.torn }

// Unreadable is why files at the log's beginning are left out, which only [Options.Salvage] does; nil: none are.
func (l *Log) Unreadable() error { return l.unreadable }

// usable says whether the log takes changes.
func (l *Log) usable() error {
	l.mu.RLock()
	closed := l.closed
	l.mu.RUnlock()
	if closed {
		return ErrClosed
	}
	return l.Err()
}

// FirstIndex is the index of the first entry that is there, or will be.
func (l *Log) FirstIndex() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.files[0].first
}

// LastIndex is the index of the last entry, FirstIndex - 1 if there is none.
func (l *Log) LastIndex() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.tail.index - 1
}

// SyncedIndex is the index of the last entry that is durable.
func (l *Log) SyncedIndex() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.syncedTo
}

// LastNumber is the number of the last transaction in the log.
func (l *Log) LastNumber() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.tail.number
}

// Tail describes the file that entries are appended to.
type Tail struct {
	Last    uint64 // index of the last entry in the log
	Size    int64  // in bytes, without preallocated space
	Version uint8  // of its format
	// Agreed: the file stays, since it is the first one or its first entry is committed.
	Agreed bool
}

// Tail describes the file that entries are appended to.
func (l *Log) Tail() Tail {
	l.mu.RLock()
	defer l.mu.RUnlock()
	s := l.files[len(l.files)-1]
	return Tail{Last: l.tail.index - 1, Size: l.tail.offset, Version: s.version, Agreed: len(l.files) == 1 || s.first <= l.committed}
}

// LastTerm is the term of the last entry.
func (l *Log) LastTerm() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.tail.term
}

// Committed is the index that SetCommitted was last called with.
func (l *Log) Committed() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.committed
}

// SetCommitted says that entries up to index are committed: they are never taken
// back. It only rises.
//
// REQUIRES: the entries that are committed are those in this log. A follower's commit
// index may be ahead of it, with other entries at the end here than those that are
// committed: then index is what was appended since.
func (l *Log) SetCommitted(index uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.committed = max(l.committed, min(index, l.tail.index-1))
}

// Term is the term of entry index, from FirstIndex - 1 to LastIndex. Error:
// ErrCompacted, ErrUnavailable. Only for entries before more than 160 changes of
// term in one file does it read the disk.
func (l *Log) Term(index uint64) (uint64, error) {
	l.mu.RLock()
	if err := l.check(index); err != nil {
		l.mu.RUnlock()
		return 0, err
	}
	term, ok := l.termOf(index)
	l.mu.RUnlock()
	if ok {
		return term, nil
	}
	p, err := l.locate(index + 1)
	return p.term, err
}

// check says whether index lies between FirstIndex - 1 and LastIndex.
//
// REQUIRES: l.mu.
func (l *Log) check(index uint64) error {
	if index+1 < l.files[0].first {
		return fmt.Errorf("%w: %d, the first is %d", ErrCompacted, index, l.files[0].first)
	}
	if index >= l.tail.index {
		return fmt.Errorf("%w: %d, the last is %d", ErrUnavailable, index, l.tail.index-1)
	}
	return nil
}

// termOf is the term of entry index if memory has it.
//
// REQUIRES: l.mu; check.
func (l *Log) termOf(index uint64) (term uint64, ok bool) {
	s := l.segmentOf(index)
	if index < s.first {
		return s.termBefore, true
	}
	i := sort.Search(len(s.began), func(i int) bool { return s.began[i].index > index })
	if i > 0 {
		return s.began[i-1].term, true
	}
	return s.termBefore, !s.cut
}

// segmentOf is the file that holds entry index or, behind the end, the last one.
//
// REQUIRES: l.mu.
func (l *Log) segmentOf(index uint64) *segment {
	i := sort.Search(len(l.files), func(i int) bool { return l.files[i].first > index })
	return l.files[max(i, 1)-1]
}

// Identity tells an entry from all others that were ever at its index: its term, and the checksum of its record, which goes through
// all records before as well. Logs that have an entry with the same identity are the same up to there.
type Identity struct {
	Term     uint64
	Checksum uint32
}

// Identity returns that of entry index. Not ok: memory does not have it, or there is no such entry.
func (l *Log) Identity(index uint64) (id Identity, ok bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.check(index) != nil {
		return Identity{}, false
	}
	p, ok := l.boundary(index + 1)
	return Identity{p.term, p.chain}, ok
}

// FindIdentity is Identity for any entry that is there; it may read the file. Error: ErrCompacted, ErrUnavailable.
func (l *Log) FindIdentity(index uint64) (Identity, error) {
	p, err := l.locate(index + 1)
	return Identity{p.term, p.chain}, err
}

// Number is the number of the last transaction up to and with entry index, from
// FirstIndex - 1 to LastIndex. Error: ErrCompacted, ErrUnavailable.
func (l *Log) Number(index uint64) (uint64, error) {
	p, err := l.locate(index + 1)
	return p.number, err
}

// StartAt is what a log needs to begin behind entry index. File is the one that the
// next entry lies in.
func (l *Log) StartAt(index uint64) (Start, error) {
	p, err := l.locate(index + 1)
	start := Start{Index: index, Term: p.term, Number: p.number, Checksum: p.chain, File: p.file}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if s := l.segment(p.file); err == nil && s != nil {
		start.Version = s.version
		if s.large != nil && p.index > s.first {
			start.File++ // nothing follows in the file of a large transaction
		}
	}
	return start, err
}

// Close makes everything durable, writes the sync mark for it and releases the
// files. Calls that wait for the log get ErrClosed.
func (l *Log) Close() error {
	l.turn.Lock()
	defer l.turn.Unlock()
	if err := l.usable(); errors.Is(err, ErrClosed) {
		return err
	}
	err := l.Err()
	if err == nil {
		err = l.trim()
	}
	if err == nil {
		err = l.settle()
	}
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	if cerr := l.closeFiles(); err == nil {
		err = cerr
	}
	return err
}

func (l *Log) closeFiles() (err error) {
	if l.side.f != nil {
		err = l.side.f.Close()
	}
	if l.f != nil {
		err = errors.Join(err, l.f.Close())
	}
	return err
}

// trim gives preallocated space back.
func (l *Log) trim() error {
	if l.allocated <= l.tail.offset {
		return nil
	}
	if err := l.f.Truncate(l.tail.offset); err != nil {
		return l.halt(err)
	}
	l.allocated, l.dirty = l.tail.offset, true
	return nil
}

// lastFile is the open file.
func (l *Log) lastFile() *segment {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.files[len(l.files)-1]
}

// settle makes everything durable, and the sync mark for it.
func (l *Log) settle() error {
	if err := l.syncAll(); err != nil {
		return err
	}
	if err := l.noteSynced(); err != nil {
		return l.halt(fmt.Errorf("sync mark: %w", err))
	}
	if err := l.writeMark(l.synced); err != nil && !errors.Is(err, file.ErrNoSpace) {
		return l.halt(err)
	}
	if !l.markLoose {
		return nil
	}
	return l.syncFile()
}

// Package extsort sorts more entries than fit into memory.
//
// A [Sorter] takes entries of a key and a value, in any order, and gives them back
// in the order of their keys as bytes; entries with equal keys come in any order.
// It holds about Options.Memory bytes: what is beyond goes to runs, sorted stretches
// of a temporary file, which are merged when the entries are read, in several
// passes if there are more runs than the memory has room to read at a time.
//
// The temporary file is unlinked as soon as it is open, so that a process that dies
// leaves nothing behind. After a power failure its name may come back: whoever
// owns the directory removes what it finds there at start.
//
// Nothing in the file is synced. Blocks carry a checksum, and a bad one is an
// error, never a wrong order.
//
// A Sorter belongs to one task. It does not compare but by bytes, and does not
// remove duplicates.
package extsort

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
)

// Limits.
const (
	// MinMemory is the least memory that a sorter works with, in bytes.
	MinMemory = 256 << 10
	// MaxEntry is the largest sum of an entry's key and value, in bytes.
	MaxEntry = 16 << 10

	defaultMemory = 64 << 20
	maxMemory     = 4 << 30 // an item names an entry by 32 bits
	chunkBytes    = 64 << 10
	itemBytes     = 24
)

// Errors.
var (
	// ErrTooLarge: an entry exceeds [MaxEntry].
	ErrTooLarge = errors.New("extsort: entry is too large")
	// ErrCorrupt: the temporary file does not hold what was written to it.
	ErrCorrupt = errors.New("extsort: temporary file is damaged")

	errDone = errors.New("extsort: entry added after Finish")
)

// Options configure a sorter. FS and Env are required.
type Options struct {
	FS  file.FS
	Env env.Env
	// Dir is the directory of the temporary file; it is made if it is missing.
	Dir    string
	Memory int64 // in bytes; 0: 64 MiB
}

// Stats says what a sorter has done.
type Stats struct {
	Entries int64
	Runs    int   // written to the file by sorting
	Merges  int   // runs written by merging others
	Bytes   int64 // written to the file
}

// item is an entry in memory.
type item struct {
	prefix uint64 // the key's first bytes, big-endian
	keyLen uint32
	valLen uint32
	at     uint32 // offset in the chunks, which have chunkBytes each
}

// Sorter sorts entries: calls of Add, then Finish, then Next until it says that
// there are no more, and Close in any case.
type Sorter struct {
	opt    Options
	stats  Stats
	chunks [][]byte // all of chunkBytes
	used   int      // chunks
	fill   int      // bytes used of the last one
	items  []item
	limit  int // items or chunks beyond which a run is written, in bytes
	block  int // size of a block of the file

	file  *runFile
	runs  []run
	done  bool
	pos   int // of Next, if all is in memory
	merge *merger
}

// New returns an empty sorter.
func New(opt Options) *Sorter {
	if opt.Memory == 0 {
		opt.Memory = defaultMemory
	}
	opt.Memory = min(max(opt.Memory, MinMemory), maxMemory)
	return &Sorter{
		opt: opt, limit: int(opt.Memory),
		block: int(min(max(opt.Memory/256, MaxEntry+chunkHeader+2*binary.MaxVarintLen32), 256<<10)),
	}
}

// Stats returns what was done so far.
func (s *Sorter) Stats() Stats { return s.stats }

// memory is what the entries in memory take.
func (s *Sorter) memory() int { return s.used*chunkBytes + len(s.items)*itemBytes }

// Add adds an entry, and copies it. Errors: [ErrTooLarge], file.ErrNoSpace and
// others of the file; the sorter is of no use then, but for Close.
func (s *Sorter) Add(key, value []byte) error {
	n := len(key) + len(value)
	switch {
	case s.done:
		return errDone
	case n > MaxEntry:
		return fmt.Errorf("%w: %d bytes, at most %d are possible", ErrTooLarge, n, MaxEntry)
	}
	if s.used == 0 || s.fill+n > chunkBytes {
		if s.memory()+chunkBytes > s.limit && len(s.items) > 0 {
			if err := s.spill(); err != nil {
				return err
			}
		}
		if s.used == len(s.chunks) {
			s.chunks = append(s.chunks, make([]byte, chunkBytes))
		}
		s.used++
		s.fill = 0
	}
	if len(s.items) == cap(s.items) { // append would double it
		s.items = slices.Grow(s.items, min(len(s.items)+1024, s.limit/itemBytes/8+1024))
	}
	c := s.chunks[s.used-1]
	s.items = append(s.items, item{
		prefix: prefixOf(key), keyLen: uint32(len(key)), valLen: uint32(len(value)),
		at: uint32((s.used-1)*chunkBytes + s.fill),
	})
	s.fill += copy(c[s.fill:], key)
	s.fill += copy(c[s.fill:], value)
	s.stats.Entries++
	return nil
}

func prefixOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

func (s *Sorter) entry(it *item) (key, value []byte) {
	c := s.chunks[it.at/chunkBytes][it.at%chunkBytes:]
	return c[:it.keyLen:it.keyLen], c[it.keyLen : it.keyLen+it.valLen : it.keyLen+it.valLen]
}

// sort sorts what is in memory.
func (s *Sorter) sort() {
	slices.SortFunc(s.items, func(a, b item) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		ka, _ := s.entry(&a)
		kb, _ := s.entry(&b)
		return bytes.Compare(ka, kb)
	})
}

// spill writes what is in memory as a run.
func (s *Sorter) spill() error {
	if s.file == nil {
		f, err := createRunFile(s.opt)
		if err != nil {
			return err
		}
		s.file = f
	}
	s.sort()
	w := s.newWriter()
	for i := range s.items {
		key, value := s.entry(&s.items[i])
		if err := w.add(key, value); err != nil {
			return err
		}
	}
	r, err := w.finish()
	if err != nil {
		return err
	}
	s.runs = append(s.runs, r)
	s.stats.Runs++
	s.items, s.used, s.fill = s.items[:0], 0, 0
	return nil
}

func (s *Sorter) newWriter() *runWriter {
	return &runWriter{s: s, f: s.file, at: s.file.end, from: s.file.end, buf: make([]byte, chunkHeader, s.block)}
}

// Finish ends the adding. It sorts, or merges runs until the rest can be merged
// while the entries are read.
func (s *Sorter) Finish() error {
	if s.done {
		return nil
	}
	s.done = true
	if s.file == nil {
		s.sort()
		return nil
	}
	if len(s.items) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.chunks, s.items = nil, nil // room for the blocks that the merge reads
	for width := max(2, s.limit/s.block-1); len(s.runs) > width; {
		if err := s.pass(width); err != nil {
			return err
		}
	}
	m, err := newMerger(s.file, s.runs, s.block)
	s.merge = m
	return err
}

// pass merges groups of runs into runs of a new file.
func (s *Sorter) pass(width int) error {
	old, runs := s.file, s.runs
	f, err := createRunFile(s.opt)
	if err != nil {
		return err
	}
	defer old.close()
	s.file, s.runs = f, nil
	for len(runs) > 0 {
		n := min(width, len(runs))
		if err := s.mergeRuns(old, runs[:n]); err != nil {
			return err
		}
		runs = runs[n:]
	}
	return nil
}

func (s *Sorter) mergeRuns(from *runFile, runs []run) error {
	m, err := newMerger(from, runs, s.block)
	if err != nil {
		return err
	}
	w := s.newWriter()
	for {
		key, value, ok, err := m.next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := w.add(key, value); err != nil {
			return err
		}
	}
	r, err := w.finish()
	if err != nil {
		return err
	}
	s.runs = append(s.runs, r)
	s.stats.Merges++
	return nil
}

// Next returns the next entry, valid until the next call; ok is false at the end.
//
// REQUIRES: Finish has returned nil.
func (s *Sorter) Next() (key, value []byte, ok bool, err error) {
	if s.merge != nil {
		return s.merge.next()
	}
	if s.pos == len(s.items) {
		return nil, nil, false, nil
	}
	key, value = s.entry(&s.items[s.pos])
	s.pos++
	return key, value, true, nil
}

// Close gives memory and file back. It may be called more than once.
func (s *Sorter) Close() error {
	s.done = true
	s.chunks, s.items, s.merge, s.runs = nil, nil, nil, nil
	s.pos = 0
	f := s.file
	s.file = nil
	if f == nil {
		return nil
	}
	return f.close()
}

package log

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/triremedb/trireme/engine/storage/file"
)

// readChunk is how much of a file one read takes if the caller wants that much.
const readChunk = 1 << 20

// Read returns entries from lo on, up to hi - 1: at least one, and no more than fit
// maxBytes (and MaxRead), where each counts RecordOverhead and its data. The slice is
// the caller's, the data is shared and must not change. Entries that are not in memory
// are read from the disk and their checksums verified.
//
// Errors: ErrCompacted, ErrUnavailable; a *CorruptError halts the log.
func (l *Log) Read(lo, hi, maxBytes uint64) ([]Entry, error) {
	return l.read(lo, hi, maxBytes, MaxData)
}

// ReadSmall is Read for a caller that cannot wait long. Error: ErrLarge if the data of the
// first entry are not in memory and longer than largest.
func (l *Log) ReadSmall(lo, hi, maxBytes uint64, largest int) ([]Entry, error) {
	return l.read(lo, hi, maxBytes, largest)
}

func (l *Log) read(lo, hi, maxBytes uint64, largest int) ([]Entry, error) {
	if lo >= hi {
		return nil, nil
	}
	budget := int64(min(maxBytes, MaxRead))
	for {
		l.mu.RLock()
		if err := l.readable(lo, hi); err != nil {
			l.mu.RUnlock()
			return nil, err
		}
		if l.cache.has(lo) {
			entries := l.readCache(lo, hi, budget)
			l.mu.RUnlock()
			return entries, nil
		}
		taken := l.taken
		s := *l.segmentOf(lo)
		l.mu.RUnlock()
		l.stats.diskReads.Add(1)
		entries, err := l.readDisk(taken, &s, lo, min(hi, s.next), budget, largest)
		if again, err := l.doubt(taken, err); !again {
			return entries, err
		}
	}
}

// readable says whether the entries from lo to hi - 1 are there.
//
// REQUIRES: l.mu; lo < hi.
func (l *Log) readable(lo, hi uint64) error {
	switch {
	case l.closed:
		return ErrClosed
	case lo < l.files[0].first:
		return fmt.Errorf("%w: %d, the first is %d", ErrCompacted, lo, l.files[0].first)
	case hi > l.tail.index:
		return fmt.Errorf("%w: %d, the last is %d", ErrUnavailable, hi-1, l.tail.index-1)
	}
	return nil
}

// doubt judges what a reader of the disk met. If files or entries were taken away
// meanwhile, it looks again; else damage halts the log.
func (l *Log) doubt(taken uint64, err error) (again bool, _ error) {
	l.mu.RLock()
	changed := l.taken != taken
	l.mu.RUnlock()
	var damage *CorruptError
	if !changed && errors.As(err, &damage) {
		l.halt(damage)
	}
	return changed, err
}

// readCache is Read for entries in memory.
//
// REQUIRES: l.mu.
func (l *Log) readCache(lo, hi uint64, budget int64) []Entry {
	end := lo
	for ; end < min(hi, l.cache.next); end++ {
		budget -= RecordOverhead + int64(len(l.cache.at(end).data))
		if budget < 0 && end > lo {
			break
		}
	}
	entries := make([]Entry, 0, end-lo)
	for i := lo; i < end; i++ {
		r := l.cache.at(i)
		entries = append(entries, Entry{Index: i, Term: r.term, Type: r.typ, Data: r.data[:len(r.data):len(r.data)]})
	}
	return entries
}

// readDisk reads entries of one file.
func (l *Log) readDisk(taken uint64, s *segment, lo, hi uint64, budget int64, largest int) ([]Entry, error) {
	f, err := l.fs.Open(l.path(s.name()), file.OpenOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	at, err := l.seek(f, taken, s, func(p place) bool { return p.index > lo })
	if err != nil {
		return nil, err
	}
	r := diskReader{f: f, s: s, at: at, hi: hi, budget: budget, largest: largest}
	for r.at.index < hi && !r.full {
		if err := r.chunk(); err != nil {
			return nil, err
		}
	}
	l.remember(taken, r.at)
	return r.entries, nil
}

// diskReader reads entries of a file in large pieces; the data of the entries of one
// piece share its memory.
type diskReader struct {
	f       file.File
	s       *segment
	at      place
	hi      uint64
	budget  int64
	largest int // data of the first entry
	entries []Entry
	full    bool
}

// chunk reads one piece and takes the whole records in it.
func (r *diskReader) chunk() error {
	size := min(max(r.budget, 4<<10), readChunk, r.s.end-r.at.offset)
	if r.s.large != nil {
		size = min(size, int64(r.s.large.Offset)-r.at.offset) // not the body
	}
	b, err := r.read(size)
	if err != nil {
		return err
	}
	if need := recordHeader + int64(decodeRecord(b).length); need > size {
		// One record takes more than a piece.
		if len(r.entries) > 0 && need > r.budget {
			r.full = true
			return nil
		}
		if need > min(recordHeader+MaxData, r.s.end-r.at.offset) {
			return r.corrupt("its length leads behind the end")
		}
		if len(r.entries) == 0 && need > recordHeader+int64(r.largest) {
			return ErrLarge
		}
		if b, err = r.read(need); err != nil {
			return err
		}
	}
	for len(b) >= recordHeader && r.at.index < r.hi && !r.full {
		length := decodeRecord(b).length
		if length > len(b)-recordHeader {
			break
		}
		need := recordHeader + int64(length)
		if len(r.entries) > 0 && need > r.budget {
			r.full = true
			return nil
		}
		if err := r.take(b[:need:need]); err != nil {
			return err
		}
		r.budget -= need
		r.full = r.budget <= 0
		b = b[need:]
	}
	return nil
}

func (r *diskReader) read(n int64) ([]byte, error) {
	if n < recordHeader {
		return nil, r.corrupt("the file ends")
	}
	b := make([]byte, n)
	if _, err := r.f.ReadAt(b, r.at.offset); err == io.EOF {
		return nil, r.corrupt("the file ends")
	} else if err != nil {
		return nil, err
	}
	return b, nil
}

// take verifies the record and adds its entry.
func (r *diskReader) take(b []byte) error {
	rec := decodeRecord(b)
	data := b[recordHeader:]
	if crc := crc32.Update(r.at.chain, castagnoli, b[4:]); crc != rec.crc {
		return r.corrupt(fmt.Sprintf("the checksum is %08x, the bytes give %08x", rec.crc, crc))
	}
	c, problem := inspect(rec.typ, rec.term, rec.length, data)
	if problem == "" {
		problem = r.at.follows(rec.index, rec.term, c)
	}
	if problem != "" {
		return r.corrupt(problem)
	}
	r.entries = append(r.entries, Entry{Index: rec.index, Term: rec.term, Type: rec.typ, Data: data})
	r.at = r.at.after(rec, c)
	return nil
}

func (r *diskReader) corrupt(what string) error {
	return corrupt(r.s.name(), &badRecord{r.at, what})
}

// locate returns the boundary before entry index, from FirstIndex to LastIndex + 1.
func (l *Log) locate(index uint64) (place, error) {
	for {
		l.mu.RLock()
		if err := l.check(index - 1); err != nil {
			l.mu.RUnlock()
			return place{}, err
		}
		if p, ok := l.boundary(index); ok {
			l.mu.RUnlock()
			return p, nil
		}
		taken := l.taken
		s := *l.segmentOf(index)
		l.mu.RUnlock()
		p, err := l.find(taken, &s, func(p place) bool { return p.index > index })
		if again, err := l.doubt(taken, err); !again {
			return p, err
		}
	}
}

// boundary is locate by what is in memory.
//
// REQUIRES: l.mu; check.
func (l *Log) boundary(index uint64) (place, bool) {
	s := l.segmentOf(index)
	switch {
	case index == l.tail.index:
		return l.tail, true
	case index == s.first:
		return s.start(), true
	case !l.cache.has(index):
		return place{}, false
	}
	r := l.cache.at(index)
	term, ok := l.termOf(index - 1)
	return place{file: s.number, offset: r.offset, index: index, number: r.number, term: term, chain: r.chain}, ok
}

// find opens a file and seeks in it.
func (l *Log) find(taken uint64, s *segment, behind func(place) bool) (place, error) {
	f, err := l.fs.Open(l.path(s.name()), file.OpenOptions{ReadOnly: true})
	if err != nil {
		return place{}, err
	}
	defer f.Close()
	return l.seek(f, taken, s, behind)
}

// seek returns the last boundary in the file that is not behind what is looked for,
// and takes down boundaries on the way, unless entries have been taken away since taken was
// read. behind is monotone.
func (l *Log) seek(f file.File, taken uint64, s *segment, behind func(place) bool) (place, error) {
	l.mu.Lock()
	at := s.start()
	if known := l.segment(s.number); known != nil {
		l.seeks++
		known.points.used = l.seeks
		at = known.points.last(at, behind)
	}
	for _, c := range l.cursors {
		if c.file == s.number && c.index > at.index && !behind(c) {
			at = c
		}
	}
	l.mu.Unlock()
	sc := scanner{f: f, name: s.name(), at: at, end: s.end, window: l.takeWindow()}
	defer func() { l.giveWindow(sc.window) }()
	var passed points
	for sc.at.offset < s.end {
		before := sc.at
		if _, _, err := sc.next(false); err != nil {
			return place{}, sc.known(err)
		}
		if behind(sc.at) {
			l.learn(taken, s, &passed)
			return before, nil
		}
		passed.add(sc.at)
	}
	l.learn(taken, s, &passed)
	return sc.at, nil
}

// windowsMax is how many windows are kept for the next searches.
const windowsMax = 4

// takeWindow returns an empty window that was used before, or nil.
func (l *Log) takeWindow() (w []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.windows); n > 0 {
		w, l.windows = l.windows[n-1], l.windows[:n-1]
	}
	return w
}

func (l *Log) giveWindow(w []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cap(w) > 0 && len(l.windows) < windowsMax {
		l.windows = append(l.windows, w[:0])
	}
}

// learn adds boundaries to those known of a file.
func (l *Log) learn(taken uint64, s *segment, passed *points) {
	if len(passed.list) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.segment(s.number)
	if known == nil || l.taken != taken {
		return
	}
	for _, p := range passed.list {
		if p.index < known.next {
			known.points.add(p)
		}
	}
	l.limitPoints()
}

// segment is the file of this number, or nil.
//
// REQUIRES: l.mu.
func (l *Log) segment(number uint64) *segment {
	if i := number - l.files[0].number; number >= l.files[0].number && i < uint64(len(l.files)) {
		return l.files[i]
	}
	return nil
}

// limitPoints drops the boundaries of the file that needed them longest ago, if too
// many closed files have some.
//
// REQUIRES: l.mu.
func (l *Log) limitPoints() {
	indexed, oldest := 0, -1
	for i, s := range l.files[:len(l.files)-1] {
		if len(s.points.list) == 0 {
			continue
		}
		indexed++
		if oldest < 0 || s.points.used < l.files[oldest].points.used {
			oldest = i
		}
	}
	if indexed > indexedMax {
		l.files[oldest].points = points{}
	}
}

// remember takes down where a reader stopped; it will likely go on there.
func (l *Log) remember(taken uint64, p place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken != taken { // it may be in the middle of what was written there since
		return
	}
	l.cursors[l.cursor%cursorsMax] = p
	l.cursor++
}

package log

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/triremedb/trireme/engine/storage/file"
)

// rotate closes the open file and begins the next one. Once the next one has its
// name, everything before it is durable, so that recovery takes nothing in a file that
// another one follows for torn.
//
// The new file has the format version that its first entry asks for, or that of the file
// before if it is newer.
//
// REQUIRES: nothing is buffered.
func (l *Log) rotate(version uint8) error {
	if err := l.syncAll(); err != nil {
		return err
	}
	old := l.lastFile()
	h := l.nextHeader(old, version)
	f, err := createFile(&l.opt, &h)
	if err != nil {
		return l.failed("new file "+FileName(h.number), err)
	}
	if err := seal(l.f, l.tail.offset); err != nil {
		f.Close()
		err = fmt.Errorf("closing %s: %w", old.name(), err)
		if errors.Is(err, file.ErrNoSpace) {
			if uerr := l.unlink(&segment{header: h}); uerr == nil {
				return err
			}
		}
		return l.halt(err)
	}
	l.f.Close() // its bytes are durable
	l.f, l.allocated, l.marked, l.markLoose = f, headerSize, mark{}, false
	s := &segment{header: h, end: headerSize, next: h.first}
	l.mu.Lock()
	l.files = append(l.files, s)
	l.tail = s.start()
	l.limitPoints()
	l.mu.Unlock()
	l.synced = l.tail
	l.stats.rotations.Add(1)
	return nil
}

// nextHeader is the header of the file that follows old, the last one.
func (l *Log) nextHeader(old *segment, version uint8) header {
	return header{version: max(version, old.version), group: l.opt.Group, number: old.number + 1, first: l.tail.index, termBefore: l.tail.term,
		numberBefore: l.tail.number, sizeBefore: l.tail.offset, chainBefore: l.tail.chain,
		terms: old.began[max(0, len(old.began)-maxTerms):], termCount: uint32(len(old.began))}
}

// createFile makes a file that holds its header only. It has its name, durably, or
// there is none.
func createFile(opt *Options, h *header) (file.File, error) {
	name := opt.path(FileName(h.number))
	temp := name + tempSuffix
	f, err := opt.FS.Open(temp, file.OpenOptions{Create: true})
	if err != nil {
		return nil, err
	}
	b := make([]byte, headerSize)
	h.encode(b)
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt(b, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = opt.FS.Rename(temp, name)
	}
	if err != nil {
		_ = opt.FS.Remove(temp) // if it stays, the next start removes it
		return nil, err
	}
	if err := opt.FS.SyncDir(opt.Dir); err != nil {
		return nil, fatal(err)
	}
	f, err = opt.FS.Open(name, file.OpenOptions{})
	return f, fatal(err)
}

// fatal takes from an error that it is about a full disk: the caller cannot go back.
func fatal(err error) error {
	if errors.Is(err, file.ErrNoSpace) {
		return errors.New(err.Error())
	}
	return err
}

// seal makes a closed file of an open one: no marks, no preallocated space. If the disk
// is full it is as it was, but perhaps for a mark.
func seal(f file.File, end int64) error {
	var zeros [2 * sectorSize]byte
	if _, err := f.WriteAt(zeros[:], markOffset); err != nil {
		return err
	}
	if err := f.Truncate(end); err != nil {
		return fatal(err)
	}
	return fatal(f.Sync())
}

// truncate takes back everything from at on: newer files first, the newest at the
// beginning, each removal durable before the next; then the end of the file, durable
// before anything is written behind it. A crash in between leaves a longer log.
//
// REQUIRES: nothing from at on is committed.
func (l *Log) truncate(at place) error {
	err := l.takeBack(at)
	if err != nil {
		return l.halt(fmt.Errorf("taking back entries from %d on: %w", at.index, err))
	}
	l.stats.truncations.Add(1)
	return nil
}

func (l *Log) takeBack(at place) error {
	keep, newer, at := l.forget(at)
	if err := l.lowerSide(at); err != nil {
		return err
	}
	for i := len(newer) - 1; i > 0; i-- {
		if err := l.unlink(newer[i]); err != nil {
			return err
		}
	}
	if len(newer) > 0 {
		if err := l.reopen(keep); err != nil {
			return err
		}
	}
	if len(newer) > 0 || l.marked.offset > at.offset {
		// The mark may not point behind the end, nor may the file that is the last
		// one from now on be without any.
		if err := l.writeMark(at); err != nil {
			return err
		}
		if err := l.f.Sync(); err != nil {
			return err
		}
	}
	if len(newer) > 0 {
		if err := l.unlink(newer[0]); err != nil {
			return err
		}
	}
	if err := l.f.Truncate(at.offset); err != nil {
		return err
	}
	l.allocated = at.offset
	if err := l.f.Sync(); err != nil {
		return err
	}
	l.scrap, l.markLoose = false, false
	l.setSynced()
	return l.noteSynced()
}

// forget takes the entries from at on out of memory. It returns the file that is the
// last one then, those behind it, and at as the end of that file.
func (l *Log) forget(at place) (keep *segment, newer []*segment, end place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.files)
	for n > 1 && l.files[n-1].first >= at.index {
		n--
	}
	keep, newer = l.files[n-1], append([]*segment(nil), l.files[n:]...)
	clear(l.files[n:])
	l.files = l.files[:n]
	if at.file != keep.number {
		at.file, at.offset = keep.number, newer[0].sizeBefore
	}
	keep.end, keep.next = at.offset, at.index
	if keep.next == keep.first {
		keep.large = nil
	}
	keep.points.truncate(at.index)
	for len(keep.began) > 0 && keep.began[len(keep.began)-1].index >= at.index {
		keep.began = keep.began[:len(keep.began)-1]
	}
	for i, c := range l.cursors {
		if c.index > at.index || c.file > at.file {
			l.cursors[i] = place{}
		}
	}
	l.cache.truncate(at.index)
	l.tail = at
	l.syncedTo = min(l.syncedTo, at.index-1)
	l.taken++
	return keep, newer, at
}

// reopen makes a closed file the open one.
func (l *Log) reopen(s *segment) error {
	f, err := l.fs.Open(l.path(s.name()), file.OpenOptions{})
	if err != nil {
		return err
	}
	l.f.Close()
	l.f, l.marked = f, mark{}
	if l.allocated, err = f.Size(); err != nil {
		return err
	}
	if s.cut {
		return l.learnTerms(s)
	}
	return nil
}

// learnTerms finds all terms that begin in a file: its successor needs the newest
// ones in its header.
func (l *Log) learnTerms(s *segment) error {
	sc := scanner{f: l.f, name: s.name(), at: s.start(), end: s.end}
	var began []termStart
	for sc.at.offset < s.end {
		before := sc.at
		r, _, err := sc.next(false)
		if err != nil {
			return err
		}
		if r.term != before.term {
			began = append(began, termStart{r.index, r.term})
		}
	}
	l.mu.Lock()
	s.began, s.cut = began, false
	l.mu.Unlock()
	return nil
}

// unlink removes a file, durably. One that is gone may be so since an attempt that failed.
func (l *Log) unlink(s *segment) error {
	if err := l.fs.Remove(l.path(s.name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return l.fs.SyncDir(l.opt.Dir)
}

package log

import (
	"crypto/sha256"
	"fmt"
	"io"
	"time"

	"github.com/triremedb/trireme/engine/storage/file"
)

// FileInfo is a file of the log as the log knows it.
type FileInfo struct {
	Name        string
	Number      uint64
	Size        int64  // behind the last record
	FirstIndex  uint64 // of its first entry, which may not be there yet
	LastIndex   uint64 // FirstIndex - 1: it has none
	FirstNumber uint64 // of the first transaction in it, or behind it
	LastNumber  uint64 // FirstNumber - 1: it has none
	Version     uint8  // of its format
	Large       bool   // it holds a large transaction and nothing else
	// Closed: another file follows and all entries are committed. The file never
	// changes again and is the same on all members.
	Closed bool
}

// Files lists the files, oldest first.
func (l *Log) Files() []FileInfo {
	l.mu.RLock()
	defer l.mu.RUnlock()
	infos := make([]FileInfo, len(l.files))
	for i, s := range l.files {
		last := l.tail.number
		if i+1 < len(l.files) {
			last = l.files[i+1].numberBefore
		}
		infos[i] = FileInfo{Name: s.name(), Number: s.number, Size: s.end, FirstIndex: s.first, LastIndex: s.next - 1,
			FirstNumber: s.numberBefore + 1, LastNumber: last, Version: s.version, Large: s.large != nil, Closed: l.isClosed(i)}
	}
	return infos
}

// Newest returns the number of the newest file and the index of its first entry, which
// may not be there yet.
func (l *Log) Newest() (number, first uint64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	s := l.files[len(l.files)-1]
	return s.number, s.first
}

// isClosed reports whether file i has its last contents.
//
// REQUIRES: l.mu.
func (l *Log) isClosed(i int) bool {
	return i+1 < len(l.files) && l.files[i].next-1 <= l.committed
}

// HashFile returns the SHA-256 of a closed file, which is the same on all members.
func (l *Log) HashFile(number uint64) (sum [sha256.Size]byte, err error) {
	l.mu.RLock()
	s := l.segment(number)
	closed := s != nil && l.isClosed(int(number-l.files[0].number))
	l.mu.RUnlock()
	if !closed {
		return sum, fmt.Errorf("binlog: %s is no closed file", FileName(number))
	}
	f, err := l.fs.Open(l.path(FileName(number)), file.OpenOptions{ReadOnly: true})
	if err != nil {
		return sum, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, size)); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	return sum, nil
}

// Retention says which files may go. The zero value keeps all.
type Retention struct {
	// Keep is the first index that is needed: by the engine, and by members that
	// are not cut loose. Files that hold it or anything behind it stay.
	Keep uint64
	// MaxAge is binlog_expire_logs_seconds: a file goes when everything in it is
	// older. 0: no limit.
	MaxAge time.Duration
	// MaxBytes is how much all files may take. 0: no limit.
	MaxBytes int64
}

// Purge removes the oldest files as far as a limit asks for it, and returns their
// names. Only closed files go, whole, oldest first, each removal durable before the
// next. The age of a file is counted from the clock in the entry that opens the next.
//
// An error leaves the log in use; the next call goes on.
func (l *Log) Purge(r Retention) (removed []string, err error) {
	l.purging.Lock()
	defer l.purging.Unlock()
	if err := l.usable(); err != nil {
		return nil, err
	}
	l.pick(r)
	for {
		l.mu.RLock()
		if len(l.doomed) == 0 {
			l.mu.RUnlock()
			return removed, nil
		}
		s := l.doomed[0]
		l.mu.RUnlock()
		if err := l.unlink(s); err != nil {
			return removed, fmt.Errorf("binlog: purge: %w", err)
		}
		l.mu.Lock()
		l.doomed = l.doomed[1:]
		l.mu.Unlock()
		removed = append(removed, s.name())
		l.stats.purged.Add(1)
	}
}

// pick takes files that may go out of the log.
func (l *Log) pick(r Retention) {
	now := l.env.Now().UnixMicro()
	l.mu.Lock()
	defer l.mu.Unlock()
	var total int64
	for _, s := range l.files {
		total += s.end
	}
	n := 0
	for ; l.isClosed(n) && l.files[n].next <= r.Keep; n++ {
		until := l.files[n+1].firstTime
		old := r.MaxAge > 0 && until != 0 && now-until > r.MaxAge.Microseconds()
		if !old && (r.MaxBytes <= 0 || total <= r.MaxBytes) {
			break
		}
		total -= l.files[n].end
	}
	if n == 0 {
		return
	}
	l.doomed = append(l.doomed, l.files[:n]...)
	l.files = append([]*segment(nil), l.files[n:]...)
	l.cache.purge(l.files[0].first)
	l.taken++
}

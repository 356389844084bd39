package log

import (
	"fmt"

	"github.com/triremedb/trireme/engine/storage/file"
)

// VerifyFile reads a file of the log and checks every record in it, and the body of a large
// transaction, up to the end as it is when the call begins. Error: *CorruptError, which does not halt the log.
func (l *Log) VerifyFile(number uint64) error {
	for {
		l.mu.RLock()
		live := l.segment(number)
		if live == nil {
			l.mu.RUnlock()
			return fmt.Errorf("%w: %s", ErrCompacted, FileName(number))
		}
		taken, s := l.taken, *live
		next := l.segment(number + 1)
		l.mu.RUnlock()
		err := l.verifyFile(&s, next)
		l.mu.RLock()
		changed := l.taken != taken
		l.mu.RUnlock()
		if !changed || err == nil {
			return err
		}
	}
}

func (l *Log) verifyFile(s, next *segment) error {
	f, err := l.fs.Open(l.path(s.name()), file.OpenOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer f.Close()
	onDisk, m, err := readSegment(f, s.number, &l.opt)
	if err != nil {
		return err
	}
	if next == nil {
		if _, err := verify(f, s, s.end); err != nil {
			return err
		}
		return s.verifyBody(f)
	}
	if !m.blank || onDisk.end != s.end {
		return &CorruptError{File: s.name(), Offset: s.end, What: "a closed file has a sync mark, or another length than it should have"}
	}
	if err := s.verifyBefore(f, next); err != nil {
		return err
	}
	return s.verifyBody(f)
}

package log

import (
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/file"
)

// VerifyFile reads a file of the log and checks every record in it, up to the end as it
// is when the call begins. Error: *CorruptError, which does not halt the log.
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
		_, err := verify(f, s, s.end)
		return err
	}
	if !m.blank || onDisk.end != s.end {
		return &CorruptError{File: s.name(), Offset: s.end, What: "a closed file has a sync mark, or another length than it should have"}
	}
	return s.verifyBefore(f, next)
}

// Cut is for an operator whose member has a damaged log and no other member to be
// provisioned from. It removes the entries from index on from a log that is not open,
// acknowledged or not; what is before must be good. The member may have told others that
// it holds what is lost: it must not vote until its log has grown past that again.
func Cut(opt Options, index uint64) error {
	opt = opt.withDefaults()
	numbers, err := list(&opt)
	if err == nil {
		err = contiguous(&opt, numbers)
	}
	if err != nil {
		return err
	}
	if len(numbers) == 0 {
		return fmt.Errorf("%w: %s", ErrNoLog, opt.Dir)
	}
	l := newLog(opt)
	o := opening{l: l}
	if err := o.loadUntil(numbers, index); err != nil {
		return err
	}
	n := len(l.files)
	at := l.files[n-1].start()
	l.f, err = opt.FS.Open(l.path(l.files[n-1].name()), file.OpenOptions{})
	if err != nil {
		return err
	}
	defer func() { l.f.Close() }()
	sc := scanner{f: l.f, name: l.files[n-1].name(), at: at, end: o.marks[n-1].size}
	for sc.at.index < index {
		if _, _, err := sc.next(true); err != nil {
			return sc.known(err)
		}
	}
	for _, number := range numbers[n:] {
		l.files = append(l.files, &segment{header: header{number: number, first: sc.at.index + 1}})
	}
	l.marked = mark{sequence: o.marks[n-1].sequence, offset: sc.end}
	l.allocated, l.tail = sc.end, sc.at
	return l.takeBack(sc.at)
}

// loadUntil reads the headers of the files that begin at index or before it.
func (o *opening) loadUntil(numbers []uint64, index uint64) error {
	for _, n := range numbers {
		s, m, err := o.readHeader(n)
		if err != nil && len(o.l.files) > 0 {
			return nil // it goes
		}
		if err != nil {
			return err
		}
		if s.first > index {
			break
		}
		o.l.files, o.marks = append(o.l.files, s), append(o.marks, m)
	}
	if len(o.l.files) == 0 {
		return errors.New("binlog: the first entry of the log lies behind the cut")
	}
	return nil
}

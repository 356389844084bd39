package log

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/triremedb/trireme/engine/storage/file"
)

// scanWindow is how much of a file a scanner reads at a time.
const scanWindow = 64 << 10

// scanner walks over the records of a file, in bounded memory whatever their length. Of the body
// of a large transaction it reads nothing but what lies in the record's window.
type scanner struct {
	f    file.File
	name string
	at   place // where the next record begins
	end  int64 // what lies from here on does not count

	window []byte
	start  int64 // of the window
	full   bool  // the record before is that of a large transaction: nothing follows in the file
}

// badRecord says that there is no record at a place.
type badRecord struct {
	at   place
	what string
}

func (e *badRecord) Error() string { return e.what }

// corrupt is the error for a bad record where there was a good one once.
func corrupt(name string, bad *badRecord) error {
	return &CorruptError{File: name, Offset: bad.at.offset, Index: bad.at.index, What: bad.what}
}

// known turns a bad record into damage: there must be a good one.
func (s *scanner) known(err error) error {
	var bad *badRecord
	if errors.As(err, &bad) {
		return corrupt(s.name, bad)
	}
	return err
}

// view returns n bytes at off, up to a window's length, without copying if it can.
func (s *scanner) view(off int64, n int) ([]byte, error) {
	if off >= s.start && off+int64(n) <= s.start+int64(len(s.window)) {
		return s.window[off-s.start:][:n], nil
	}
	if cap(s.window) == 0 {
		s.window = make([]byte, scanWindow)
	}
	s.window = s.window[:min(int64(scanWindow), s.end-off)]
	s.start = off
	read, err := s.f.ReadAt(s.window, off)
	s.window = s.window[:read]
	if read >= n {
		return s.window[:n], nil
	}
	if err == nil || err == io.EOF {
		err = s.bad("the file ends")
	}
	return nil, err
}

func (s *scanner) bad(format string, args ...any) error {
	return &badRecord{s.at, fmt.Sprintf(format, args...)}
}

// next passes over one record and returns it. With verify it reads the data and
// checks the checksum. Errors: *badRecord, or the file's.
func (s *scanner) next(verify bool) (record, content, error) {
	r, c, err := s.peek()
	if err != nil {
		return r, c, err
	}
	if verify {
		crc, err := s.checksum(r)
		if err != nil {
			return r, c, err
		}
		if crc != r.crc {
			return r, c, s.bad("the checksum is %08x, the bytes give %08x", r.crc, crc)
		}
	}
	s.at, s.full = s.at.after(r, c), c.large != nil
	return r, c, nil
}

// peek reads the header and the envelope of the next record.
func (s *scanner) peek() (r record, c content, err error) {
	if s.full && s.end > s.at.offset {
		return r, c, s.bad("there are bytes behind the body of a large transaction")
	}
	if s.end-s.at.offset < recordHeader {
		return r, c, s.bad("the file ends")
	}
	b, err := s.view(s.at.offset, recordHeader)
	if err != nil {
		return r, c, err
	}
	if allZero(b) {
		return r, c, s.bad("there are zeros")
	}
	r = decodeRecord(b)
	if r.length < 0 || r.length > MaxData || int64(r.length) > s.end-s.at.offset-recordHeader {
		return r, c, s.bad("it ends behind the file, if its length of %d bytes is true", r.length)
	}
	head, err := s.view(s.at.offset+recordHeader, min(r.length, headSize))
	if err != nil {
		return r, c, err
	}
	c, problem := inspect(r.typ, r.term, r.length, head)
	if problem == "" {
		problem = s.at.follows(r.index, r.term, c)
	}
	switch {
	case problem != "":
		return r, c, s.bad("%s", problem)
	case c.rotate && s.at.offset != headerSize:
		return r, c, s.bad("it should begin a new file")
	case c.large != nil && fileEnd(c.large) > s.end:
		return r, c, s.bad("the file has %d bytes, it should have %d", s.end, fileEnd(c.large))
	}
	return r, c, nil
}

// checksum computes the checksum of the record at s.at.
func (s *scanner) checksum(r record) (uint32, error) {
	crc := s.at.chain
	off := s.at.offset + 4
	for rest := recordHeader - 4 + r.length; rest > 0; {
		n := min(rest, scanWindow)
		if have := s.start + int64(len(s.window)) - off; off >= s.start && have > 0 {
			n = min(n, int(have)) // what is in the window already
		}
		b, err := s.view(off, n)
		if err != nil {
			return 0, err
		}
		crc = crc32.Update(crc, castagnoli, b)
		off += int64(n)
		rest -= n
	}
	return crc, nil
}

// verify reads and checks all records of a file up to end, where one must end, and
// returns the boundary there. It does not read the body of a large transaction. Error: *CorruptError, or the file's.
func verify(f file.File, s *segment, end int64) (place, error) {
	sc := scanner{f: f, name: s.name(), at: s.start(), end: end}
	for sc.at.offset < end {
		if _, _, err := sc.next(true); err != nil {
			return sc.at, sc.known(err)
		}
	}
	return sc.at, nil
}

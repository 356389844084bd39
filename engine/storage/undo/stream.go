package undo

import (
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
)

// stream is one stream in memory. The fields mirror the home page; see the package
// comment for who moves what.
type stream struct {
	u     *Manager
	space *space.Space
	index int // of the space
	home  uint32
	seg   uint32
	log   Log

	// The owner's side.
	last uint32
	tail pos // where the next log begins; the running log's top is in log

	// The purge side. first is the first page of the chain; stored is the head on
	// the home page, skipped how many logs were purged since it was stored.
	first   uint32
	stored  pos
	skipped int

	// Guarded by Manager.mu.
	number  int
	owned   bool
	purging bool
	damaged bool // set aside; see Manager.SetAside
	history int  // committed logs that are not purged
	next    Head // the oldest of them, if history > 0
}

func (s *stream) id(no uint32) page.ID { return s.space.ID(no) }

func newStream(u *Manager, index int, home uint32) *stream {
	s := &stream{u: u, space: u.spaces[index], index: index, home: home}
	s.log.s = s
	return s
}

// homeStart is where the first log of an empty stream begins.
func (s *stream) homeStart() pos { return pos{page: s.home, off: offHomeEntries} }

// createStream makes an empty stream in the tablespace.
func (u *Manager) createStream(index int) (*stream, error) {
	sp := u.spaces[index]
	m := u.getMtr()
	defer u.putMtr(m)
	if err := m.Begin(); err != nil {
		return nil, err
	}
	defer m.Commit()
	dir, err := m.Get(sp.ID(dirPage), mtr.X)
	if err != nil {
		return nil, err
	}
	count := le.Uint32(dir.Data[offDirCount:])
	if count >= uint32(dirCapacity) {
		return nil, ErrTooManyTransactions
	}
	seg, err := sp.CreateSegment(m)
	if err != nil {
		return nil, err
	}
	home, p, err := newPage(m, sp, seg, page.None, page.TypeUndoStream)
	if err != nil {
		// An empty segment that cannot be freed either is a leak of 192 bytes.
		_, _ = sp.FreeSegmentStep(m, seg)
		return nil, err
	}
	s := newStream(u, index, home)
	s.seg, s.first, s.last = seg, home, home
	s.tail, s.stored = s.homeStart(), s.homeStart()
	var b [offHomeEntries - page.OffOwner]byte
	le.PutUint64(b[:], uint64(seg))
	le.PutUint32(b[offSegment-page.OffOwner:], seg)
	le.PutUint32(b[offLast-page.OffOwner:], home)
	le.PutUint32(b[offFirst-page.OffOwner:], home)
	putPos(b[offHead-page.OffOwner:], s.stored)
	m.Write(p, page.OffOwner, b[:])
	m.WriteU32(dir, offDirHomes+4*int(count), home)
	m.WriteU32(dir, offDirCount, count+1)
	return s, nil
}

func putPos(b []byte, at pos) {
	le.PutUint32(b, at.page)
	le.PutUint16(b[4:], at.off)
}

func getPos(b []byte) pos { return pos{page: le.Uint32(b), off: le.Uint16(b[4:])} }

// newPage allocates a page and gives it its type: both or nothing.
func newPage(m *mtr.Mtr, sp *space.Space, seg, near uint32, t page.Type) (uint32, mtr.Page, error) {
	no, err := sp.AllocPage(m, seg, near)
	if err != nil {
		return 0, mtr.Page{}, err
	}
	p, err := m.GetNew(sp.ID(no), t)
	if err != nil {
		// Cannot fail for a page that this mini-transaction allocated.
		_ = sp.FreePage(m, seg, no)
		return 0, mtr.Page{}, err
	}
	return no, p, nil
}

// extend links a new page behind the last one and moves the log's top there.
//
// Crash: the page is part of the chain or free. A last page without entries is
// where the scan finds the tail.
func (s *stream) extend(l *Log) error {
	m := s.u.getMtr()
	defer s.u.putMtr(m)
	if err := m.Begin(); err != nil {
		return err
	}
	defer m.Commit()
	home, err := m.Get(s.id(s.home), mtr.X)
	if err != nil {
		return err
	}
	tail, err := m.Get(s.id(s.last), mtr.X)
	if err != nil {
		return err
	}
	no, p, err := newPage(m, s.space, s.seg, s.last, page.TypeUndo)
	if err != nil {
		return err
	}
	var b [offEntries - page.OffOwner]byte
	le.PutUint64(b[:], uint64(s.seg))
	le.PutUint32(b[offPrev-page.OffOwner:], s.last)
	le.PutUint64(b[offBase-page.OffOwner:], l.count)
	m.Write(p, page.OffOwner, b[:])
	m.WriteU32(tail, offNext, no)
	m.WriteU32(home, offLast, no)
	s.last = no
	l.top = pos{page: no, off: offEntries}
	l.pages++
	s.u.running.Add(1)
	return nil
}

// stepBack moves the top from the beginning of the last page to the end of the
// page before it, and frees the last page. It does nothing if the top is not at a
// page's beginning.
//
// REQUIRES: l.count > 0, so that there is a page before.
func (l *Log) stepBack(m *mtr.Mtr) error {
	s := l.s
	if l.top.page == s.home || l.top.off > offEntries {
		return nil
	}
	if err := m.Begin(); err != nil {
		return err
	}
	defer m.Commit()
	home, err := m.Get(s.id(s.home), mtr.X)
	if err != nil {
		return err
	}
	last, err := m.Get(s.id(s.last), mtr.X)
	if err != nil {
		return err
	}
	prevNo := le.Uint32(last.Data[offPrev:])
	prev, err := m.Get(s.id(prevNo), mtr.X)
	if err != nil {
		return err
	}
	from := firstEntry(prev.Data)
	if prevNo == l.start.page {
		from = int(l.start.off)
	}
	if from == 0 || le.Uint32(prev.Data[offNext:]) != s.last {
		return corrupt(s.id(prevNo), "undo page before the last one: next", uint64(s.last), uint64(le.Uint32(prev.Data[offNext:])))
	}
	end, _, err := endOfEntries(prev.Data, from, nil)
	if err != nil {
		return err
	}
	if err := s.space.FreePage(m, s.seg, s.last); err != nil {
		return err
	}
	m.WriteU32(prev, offNext, 0)
	m.WriteU32(home, offLast, prevNo)
	s.last = prevNo
	l.top = pos{page: prevNo, off: uint16(end)}
	if l.pages > 0 { // a log that Open found has taken none of those that it had
		l.pages--
		s.u.running.Add(-1)
	}
	return nil
}

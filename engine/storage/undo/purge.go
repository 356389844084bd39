package undo

import (
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// Head is the oldest committed log of a stream, given out for purge.
type Head struct {
	logHeader
	s     *stream
	start pos
	// passed: the records are purged, and pages of them may be gone; what Purged does
	// besides has failed.
	passed bool
}

// TrxID is the transaction that wrote the log.
func (h *Head) TrxID() uint64 { return h.trx }

// CSN is the number with which it committed.
func (h *Head) CSN() uint64 { return h.csn }

// Records is the number of records in the log.
func (h *Head) Records() uint64 { return h.records }

// InsertOnly reports whether no record of the log has anything to purge.
func (h *Head) InsertOnly() bool { return h.flags&InsertOnly != 0 }

// NextCommitted takes the oldest committed log whose CSN is at most limit. Several
// may be out at once, each of another stream: within a stream the next log comes
// after [Manager.Purged]. Logs of different streams may come in any order close
// to that of their CSNs.
func (u *Manager) NextCommitted(limit uint64) (*Head, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.heads) == 0 || u.heads[0].csn > limit {
		return nil, false
	}
	h := u.heads.pop()
	h.s.purging = true
	return h, true
}

// GiveBack returns a log that could not be purged now; NextCommitted will give it
// out again from its first record.
func (u *Manager) GiveBack(h *Head) {
	u.mu.Lock()
	h.s.purging = false
	u.heads.push(h)
	u.mu.Unlock()
}

// SetAside is GiveBack for a log of which a page is damaged: neither it nor what
// follows in its stream is given out again, and the stream gets no new owner. The
// next start tries again.
func (u *Manager) SetAside(h *Head) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := h.s
	if s.damaged {
		return
	}
	s.damaged = true // and purging stays set: nobody resets it
	u.aside++
	if !s.owned {
		u.removeFree(s)
	}
}

// Each calls fn for the log's records, oldest first. The payload is a copy that is
// valid during the call; no latch is held. It ends with fn's first error.
func (h *Head) Each(fn func(Record) error) error {
	if h.passed {
		return nil
	}
	u := h.s.u
	buf := u.getBuffer()
	defer u.putBuffer(buf)
	m := u.getMtr()
	defer u.putMtr(m)
	at := pos{page: h.start.page, off: h.start.off + headerEntry}
	var number uint64
	for hops := h.s.space.SizePages(); ; hops-- {
		if hops == 0 {
			return corrupt(h.s.id(at.page), "chain of undo pages is a circle", 0, 0)
		}
		if err := h.s.copyPage(m, at.page, buf); err != nil {
			return err
		}
		last := at.page == h.end.page
		for off := int(at.off); !last || off < int(h.end.off); {
			e, ok := entryAt(buf, off)
			if !ok || e.kind == kindHeader || last && e.kind == kindEnd {
				return corrupt(h.s.id(at.page), "undo entry at offset", uint64(off), uint64(peek(buf, off)))
			}
			if e.kind == kindEnd {
				break
			}
			rec := Record{Ptr: makePtr(h.s.index, pos{at.page, uint16(off)}, e.kind == kindInsert), Number: number, Payload: e.data}
			if err := fn(rec); err != nil {
				return err
			}
			number++
			off = e.end()
		}
		if last {
			break
		}
		at = pos{page: le.Uint32(buf[offNext:]), off: offEntries}
	}
	if number != h.records {
		return corrupt(h.s.id(h.start.page), "records of an undo log", h.records, number)
	}
	return nil
}

// copyPage copies a page of the stream.
func (s *stream) copyPage(m *mtr.Mtr, no uint32, buf []byte) error {
	m.BeginRead()
	defer m.Commit()
	p, err := m.Get(s.id(no), mtr.S)
	if err != nil {
		return err
	}
	if firstEntry(p.Data) == 0 {
		return corrupt(s.id(no), "page type in an undo stream", uint64(page.TypeUndo), uint64(page.GetType(p.Data)))
	}
	copy(buf, p.Data)
	return nil
}

// storeEvery is how many logs of one page are purged before the head on the home
// page follows. After a crash up to that many are purged again.
const storeEvery = 32

// Purged says that everything in the log has been purged: no snapshot needs it.
// The stream's next log can be taken after it, and pages that were passed are
// freed, each in a mini-transaction. After an error NextCommitted gives the log out
// again, without records, for another try; or it is set aside, if a page is damaged.
//
// Purge may see a log again after a crash, so it must be able to do so; see
// [Manager.Patch] for what is not repeatable by nature.
//
// REQUIRES: the task holds no latch.
func (u *Manager) Purged(h *Head) error {
	err := u.purged(h)
	if err != nil {
		h.passed = true
		if Damaged(err) {
			u.SetAside(h)
		} else {
			u.GiveBack(h)
		}
	}
	return err
}

func (u *Manager) purged(h *Head) error {
	s := h.s
	m := u.getMtr()
	defer u.putMtr(m)
	u.mu.Lock()
	more := s.history > 1
	u.mu.Unlock()
	head := h.end
	var next Head
	if more {
		var err error
		if next, err = s.logAt(m, h.end); err != nil {
			return err
		}
		head = next.start
	}
	s.skipped++
	if head.page != s.stored.page || s.skipped >= storeEvery {
		if err := s.storeHead(m, head); err != nil {
			return err
		}
	}
	u.pool.Env().Yield()
	return u.finishPurge(m, h, next, more)
}

// finishPurge makes the stream's next log available, or resets an empty stream.
func (u *Manager) finishPurge(m *mtr.Mtr, h *Head, next Head, more bool) error {
	s := h.s
	u.mu.Lock()
	if !more && s.history > 1 { // committed meanwhile
		u.mu.Unlock()
		var err error
		if next, err = s.logAt(m, h.end); err != nil {
			return err
		}
		u.mu.Lock()
		more = true
	}
	s.history--
	// Last of all: who sees no history left finds the tablespaces at rest.
	defer u.history.Add(-1)
	if more {
		s.next = next
		s.purging = false
		u.heads.push(&s.next)
		u.mu.Unlock()
		return nil
	}
	if s.owned || !s.wasteful() {
		s.purging = false
		u.mu.Unlock()
		return nil
	}
	u.removeFree(s)
	s.owned = true
	u.mu.Unlock()
	// A failure leaves the stream as it was; what halted the engine shows elsewhere.
	_ = u.reset(s)
	u.mu.Lock()
	s.purging = false
	u.giveFree(s)
	u.mu.Unlock()
	return nil
}

func (u *Manager) removeFree(s *stream) {
	for i, f := range u.free {
		if f == s {
			u.free = append(u.free[:i], u.free[i+1:]...)
			return
		}
	}
}

// wasteful reports whether an empty stream is worth a reset.
func (s *stream) wasteful() bool {
	return s.tail.page != s.home || s.tail.off > page.Size/2
}

// logAt finds the committed log that begins at or behind from.
func (s *stream) logAt(m *mtr.Mtr, from pos) (Head, error) {
	m.BeginRead()
	defer m.Commit()
	for hops := s.space.SizePages(); hops > 0; hops-- {
		mark := m.Mark()
		p, err := m.Get(s.id(from.page), mtr.S)
		if err != nil {
			return Head{}, err
		}
		e, ok := entryAt(p.Data, int(from.off))
		if ok && e.kind == kindHeader {
			h := Head{s: s, start: from, logHeader: getLogHeader(e.data)}
			if h.flags&Committed == 0 {
				return Head{}, corrupt(s.id(from.page), "undo log is not committed", uint64(Committed), uint64(h.flags))
			}
			return h, nil
		}
		next := le.Uint32(p.Data[offNext:])
		if !ok || e.kind != kindEnd || next == page.None || firstEntry(p.Data) == 0 {
			return Head{}, corrupt(s.id(from.page), "undo log header at offset", uint64(from.off), uint64(peek(p.Data, int(from.off))))
		}
		m.ReleaseTo(mark)
		from = pos{page: next, off: offEntries}
	}
	return Head{}, corrupt(s.id(from.page), "chain of undo pages is a circle", 0, 0)
}

// storeHead moves the head on the home page and frees the pages before it.
//
// Crash: the head moves in one mini-transaction, each page leaves the chain in
// one; pages that are left between first and head are freed by the scan.
func (s *stream) storeHead(m *mtr.Mtr, head pos) error {
	if err := m.Begin(); err != nil {
		return err
	}
	home, err := m.Get(s.id(s.home), mtr.X)
	if err != nil {
		m.Commit()
		return err
	}
	var b [6]byte
	putPos(b[:], head)
	m.Write(home, offHead, b[:])
	m.Commit()
	s.stored, s.skipped = head, 0
	for s.first != head.page {
		if err := s.freeFirst(m); err != nil {
			return err
		}
	}
	return nil
}

// freeFirst takes the first page, which the head has passed, from the chain.
func (s *stream) freeFirst(m *mtr.Mtr) error {
	if err := m.Begin(); err != nil {
		return err
	}
	defer m.Commit()
	home, err := m.Get(s.id(s.home), mtr.X)
	if err != nil {
		return err
	}
	first, err := m.Get(s.id(s.first), mtr.X)
	if err != nil {
		return err
	}
	next := le.Uint32(first.Data[offNext:])
	if next == page.None || firstEntry(first.Data) == 0 {
		return corrupt(s.id(s.first), "undo page without a next one before the head", uint64(s.stored.page), 0)
	}
	if s.first != s.home {
		if err := s.space.FreePage(m, s.seg, s.first); err != nil {
			return err
		}
	}
	m.WriteU32(home, offFirst, next)
	s.first = next
	return nil
}

// reset makes an empty stream its home page again, from the start.
//
// Crash: one mini-transaction takes the stream from empty to empty. Before it the
// head is stored, so that at most one page beside home is in the chain.
//
// REQUIRES: both sides of the stream; no log in it.
func (u *Manager) reset(s *stream) error {
	m := u.getMtr()
	defer u.putMtr(m)
	if s.first != s.tail.page {
		if err := s.storeHead(m, s.tail); err != nil {
			return err
		}
	}
	if err := m.Begin(); err != nil {
		return err
	}
	defer m.Commit()
	home, err := m.Get(s.id(s.home), mtr.X)
	if err != nil {
		return err
	}
	if s.tail.page != s.home {
		if err := s.space.FreePage(m, s.seg, s.tail.page); err != nil {
			return err
		}
	}
	start := s.homeStart()
	if s.last != s.home {
		m.WriteU32(home, offNext, page.None)
	}
	var b [offHead + 6 - offLast]byte
	le.PutUint32(b[:], s.home)
	le.PutUint32(b[offFirst-offLast:], s.home)
	putPos(b[offHead-offLast:], start)
	m.Write(home, offLast, b[:])
	m.WriteU16(home, offHomeEntries, kindEnd)
	s.first, s.last, s.tail, s.stored, s.skipped = s.home, s.home, start, start, 0
	return nil
}

// headHeap orders streams by the CSN of their oldest log, then by number.
type headHeap []*Head

func (h headHeap) less(i, j int) bool {
	if h[i].csn != h[j].csn {
		return h[i].csn < h[j].csn
	}
	return h[i].s.number < h[j].s.number
}

func (h *headHeap) push(x *Head) {
	*h = append(*h, x)
	a := *h
	for i := len(a) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.less(i, up) {
			break
		}
		a[i], a[up] = a[up], a[i]
		i = up
	}
}

func (h *headHeap) pop() *Head {
	a := *h
	top, last := a[0], len(a)-1
	a[0], a[last] = a[last], nil
	a = a[:last]
	*h = a
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(a) {
			return top
		}
		if child+1 < len(a) && a.less(child+1, child) {
			child++
		}
		if !a.less(child, i) {
			return top
		}
		a[i], a[child] = a[child], a[i]
		i = child
	}
}

package undo

import (
	"fmt"

	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
)

// Open finds the streams of the undo tablespaces and what is in them: for each
// stream the committed logs from the head on, then the active log or none, and
// the tail. It finishes what a crash interrupted. Errors: *page.CorruptError, or
// those of reading.
//
// REQUIRES: redo has been applied; nobody else uses the tablespaces.
func Open(opt Options) (*Manager, error) {
	if len(opt.Spaces) == 0 || len(opt.Spaces) > MaxSpaces {
		return nil, fmt.Errorf("undo: %d undo tablespaces; 1 to %d are possible", len(opt.Spaces), MaxSpaces)
	}
	if opt.MaxStreams <= 0 {
		opt.MaxStreams = DefaultMaxStreams
	}
	u := &Manager{
		pool: opt.Pool, spaces: opt.Spaces, max: min(opt.MaxStreams, MaxStreams),
		idle: make([]bool, len(opt.Spaces)), perDir: make([]int, len(opt.Spaces)),
	}
	m := mtr.New(opt.Pool)
	for i, sp := range opt.Spaces {
		homes, err := readDirectory(m, sp)
		if err != nil {
			return nil, err
		}
		for _, home := range homes {
			s := newStream(u, i, home)
			s.number = len(u.streams)
			if err := s.load(m, opt.OnCommitted); err != nil {
				return nil, err
			}
			u.streams = append(u.streams, s)
		}
		u.perDir[i] = len(homes)
		u.made += len(homes)
	}
	u.putMtr(m)
	// Streams of low number are taken first.
	for i := len(u.streams) - 1; i >= 0; i-- {
		if s := u.streams[i]; !s.owned {
			u.free = append(u.free, s)
		}
	}
	return u, u.tidy()
}

// readDirectory returns the home pages of a tablespace's streams.
func readDirectory(m *mtr.Mtr, sp *space.Space) ([]uint32, error) {
	m.BeginRead()
	defer m.Commit()
	p, err := m.Get(sp.ID(dirPage), mtr.S)
	if err != nil {
		return nil, err
	}
	return decodeDirectory(p.Data, sp.SizePages())
}

func decodeDirectory(p []byte, size uint32) ([]uint32, error) {
	id := page.GetID(p)
	if t := page.GetType(p); t != page.TypeUndoHeader || string(p[offDirMagic:offDirMagic+8]) != dirMagic {
		return nil, corrupt(id, "type or magic of the directory of undo streams", uint64(page.TypeUndoHeader), uint64(t))
	}
	count := le.Uint32(p[offDirCount:])
	if count > uint32(dirCapacity) {
		return nil, corrupt(id, "number of undo streams", uint64(dirCapacity), uint64(count))
	}
	homes := make([]uint32, count)
	seen := make(map[uint32]bool, count)
	for i := range homes {
		no := le.Uint32(p[offDirHomes+4*i:])
		if no <= dirPage || no >= size || seen[no] {
			return nil, corrupt(id, "home page of an undo stream", uint64(size), uint64(no))
		}
		homes[i], seen[no] = no, true
	}
	return homes, nil
}

// load reads a stream from its home page on.
func (s *stream) load(m *mtr.Mtr, onCommitted func(trxID, csn uint64) error) error {
	if err := s.loadHome(m); err != nil {
		return err
	}
	active, csn := false, uint64(0)
	at := s.stored
	for hops := s.space.SizePages(); ; {
		e, next, err := s.entryOrNext(m, at)
		if err != nil {
			return err
		}
		if e.kind == kindEnd && next == page.None {
			break
		}
		if e.kind == kindEnd {
			at = pos{page: next, off: offEntries}
		} else {
			h := getLogHeader(e.data)
			if active = h.flags&Committed == 0; active {
				s.log.trxID, s.log.start = h.trx, at
				break
			}
			ahead := h.end.page != at.page || int(h.end.off) >= int(at.off)+headerEntry+minEntrySize
			if !ahead || h.csn < csn || h.records == 0 {
				return corrupt(s.id(at.page), "header of a committed undo log", csn, h.csn)
			}
			if err := s.loadCommitted(at, h, onCommitted); err != nil {
				return err
			}
			csn = h.csn
			if h.end.page == at.page {
				at = h.end
				continue
			}
			at = h.end
		}
		if hops--; hops == 0 {
			return corrupt(s.id(at.page), "chain of undo pages is a circle", 0, 0)
		}
	}
	if active {
		return s.loadActive(m)
	}
	s.tail = at
	if at.page != s.last {
		return corrupt(s.id(s.home), "last page of an undo stream", uint64(at.page), uint64(s.last))
	}
	return nil
}

func (s *stream) loadHome(m *mtr.Mtr) error {
	m.BeginRead()
	defer m.Commit()
	p, err := m.Get(s.id(s.home), mtr.S)
	if err != nil {
		return err
	}
	if t := page.GetType(p.Data); t != page.TypeUndoStream {
		return corrupt(s.id(s.home), "type of an undo stream's home page", uint64(page.TypeUndoStream), uint64(t))
	}
	s.seg = le.Uint32(p.Data[offSegment:])
	s.last, s.first = le.Uint32(p.Data[offLast:]), le.Uint32(p.Data[offFirst:])
	s.stored = getPos(p.Data[offHead:])
	size := s.space.SizePages()
	if max(s.last, s.first, s.stored.page) >= size || min(s.last, s.first, s.stored.page) <= dirPage {
		return corrupt(s.id(s.home), "page of an undo stream", uint64(size), uint64(max(s.last, s.first, s.stored.page)))
	}
	return nil
}

// entryOrNext reads the log header or terminator at a place, and the next page.
// The entry's data is a copy.
func (s *stream) entryOrNext(m *mtr.Mtr, at pos) (entry, uint32, error) {
	m.BeginRead()
	defer m.Commit()
	if at.page >= s.space.SizePages() || at.page <= dirPage {
		return entry{}, 0, corrupt(s.id(s.home), "page of an undo stream", uint64(s.space.SizePages()), uint64(at.page))
	}
	p, err := m.Get(s.id(at.page), mtr.S)
	if err != nil {
		return entry{}, 0, err
	}
	first := firstEntry(p.Data)
	e, ok := entryAt(p.Data, int(at.off))
	if first == 0 || int(at.off) < first || !ok || e.kind != kindEnd && e.kind != kindHeader {
		return entry{}, 0, corrupt(s.id(at.page), "undo log header at offset", uint64(at.off), uint64(peek(p.Data, int(at.off))))
	}
	e.data = append([]byte(nil), e.data...)
	return e, le.Uint32(p.Data[offNext:]), nil
}

func (s *stream) loadCommitted(at pos, h logHeader, onCommitted func(trxID, csn uint64) error) error {
	if s.history++; s.history == 1 {
		s.next = Head{s: s, start: at, logHeader: h}
		s.u.heads.push(&s.next)
	}
	s.u.history.Add(1)
	if onCommitted != nil {
		return onCommitted(h.trx, h.csn)
	}
	return nil
}

// loadActive makes the stream's owner the log that has no commit: its top is at
// the end of the last page.
func (s *stream) loadActive(m *mtr.Mtr) error {
	m.BeginRead()
	defer m.Commit()
	p, err := m.Get(s.id(s.last), mtr.S)
	if err != nil {
		return err
	}
	l := &s.log
	from, base := offEntries, le.Uint64(p.Data[offBase:])
	if s.last == l.start.page {
		from, base = int(l.start.off)+headerEntry, 0
	} else if page.GetType(p.Data) != page.TypeUndo {
		return corrupt(s.id(s.last), "type of an undo stream's last page", uint64(page.TypeUndo), uint64(page.GetType(p.Data)))
	}
	end, records, err := endOfEntries(p.Data, from, func(e entry) error {
		if e.kind == kindHeader {
			return corrupt(s.id(s.last), "undo log behind one that is not committed", 0, uint64(e.off))
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.top, l.count = pos{page: s.last, off: uint16(end)}, base+uint64(records)
	l.changes, l.committed = true, false
	if l.count == 0 {
		return corrupt(s.id(l.start.page), "undo log without records", 1, 0)
	}
	s.owned, s.tail = true, l.start
	s.u.active = append(s.u.active, l)
	return nil
}

// tidy frees pages that a crash left before a head, and resets empty streams.
func (u *Manager) tidy() error {
	for _, s := range u.streams {
		if s.first != s.stored.page {
			m := u.getMtr()
			err := s.storeHead(m, s.stored)
			u.putMtr(m)
			if err != nil {
				return err
			}
		}
		if s.history == 0 && !s.owned && s.wasteful() {
			if err := u.reset(s); err != nil {
				return err
			}
		}
	}
	return nil
}

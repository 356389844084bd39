package space

import (
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// plan is one change of a space's book-keeping in the making. It holds copies of
// the structures that the change touches, whose pages stay latched; commit writes
// what differs, abandon forgets it. So a change that fails half-way has changed
// nothing, and one of several allocations is all or nothing.
type plan struct {
	s    *Space
	m    *mtr.Mtr
	mark int

	p0  mtr.Page
	was header // as stored
	h   header

	exts  []*extent // loaded descriptors
	spare []*extent
	fresh []uint32 // descriptor pages (their numbers) that do not exist yet

	seg     uint32 // segment whose inode is loaded; 0 is none
	in      inode
	inPage  mtr.Page
	inOff   int
	newDir  int    // directory entry to be set, or -1
	newPage uint32 // inode page to be made, for newDir
}

// extent is a loaded descriptor. Extents of a fresh descriptor page have no page yet.
type extent struct {
	no    uint32
	d     desc
	page  mtr.Page
	off   int
	fresh bool
}

// begin latches page 0 and starts a plan.
func (p *plan) begin(s *Space, m *mtr.Mtr) error {
	mark := m.Mark()
	p0, err := m.Get(page.ID{Space: s.no}, mtr.X)
	if err != nil {
		return err
	}
	h, err := s.header(p0.Data)
	if err != nil {
		m.ReleaseTo(mark)
		return err
	}
	p.s, p.m, p.mark, p.p0, p.was, p.h = s, m, mark, p0, h, h
	p.spare = append(p.spare, p.exts...)
	p.exts, p.fresh, p.seg, p.newDir = p.exts[:0], p.fresh[:0], 0, -1
	return nil
}

// abandon drops the latches that the plan took, and passes the error on.
func (p *plan) abandon(err error) error {
	p.m.ReleaseTo(p.mark)
	return err
}

func (p *plan) corrupt(no uint32, problem string, expected, found uint64) error {
	return corrupt(p.s.no, no, problem, expected, found)
}

// extent loads the descriptor of extent no.
func (p *plan) extent(no uint32) (*extent, error) {
	for _, e := range p.exts {
		if e.no == no {
			return e, nil
		}
	}
	if no >= p.h.extents() {
		return nil, p.corrupt(0, "extent beyond the size", uint64(p.h.extents()), uint64(no))
	}
	at, off := descAt(no)
	e := p.newExtent()
	*e = extent{no: no, off: off}
	for _, f := range p.fresh {
		e.fresh = e.fresh || f == at
	}
	if !e.fresh {
		var err error
		if e.page, err = p.descPage(at); err != nil {
			p.exts = p.exts[:len(p.exts)-1]
			p.spare = append(p.spare, e)
			return nil, err
		}
		e.d = getDesc(e.page.Data[off:])
		if e.d.state > extOwned {
			return nil, p.corrupt(at, "extent state", extOwned, uint64(e.d.state))
		}
	}
	return e, nil
}

// newExtent adds an empty entry to the loaded descriptors.
func (p *plan) newExtent() *extent {
	var e *extent
	if n := len(p.spare); n > 0 {
		e, p.spare = p.spare[n-1], p.spare[:n-1]
	} else {
		e = new(extent)
	}
	p.exts = append(p.exts, e)
	return e
}

func (p *plan) descPage(no uint32) (mtr.Page, error) {
	if no == 0 {
		return p.p0, nil
	}
	pg, err := p.m.Get(page.ID{Space: p.s.no, No: no}, mtr.X)
	if err != nil {
		return pg, err
	}
	if t := page.GetType(pg.Data); t != page.TypeExtents {
		return pg, p.corrupt(no, "page type", uint64(page.TypeExtents), uint64(t))
	}
	return pg, nil
}

// push puts an extent at the front of a list.
func (p *plan) push(l *list, e *extent) error {
	if l.first != none {
		f, err := p.extent(l.first)
		if err != nil {
			return err
		}
		f.d.prev = e.no
	}
	e.d.prev, e.d.next = none, l.first
	l.first = e.no
	l.count++
	return nil
}

// remove takes an extent off the list that it is on.
func (p *plan) remove(l *list, e *extent) error {
	if l.count == 0 || (e.d.prev == none) != (l.first == e.no) {
		at, _ := descAt(e.no)
		return p.corrupt(at, "extent is not on its list", uint64(l.first), uint64(e.no))
	}
	if e.d.prev == none {
		l.first = e.d.next
	} else {
		prev, err := p.extent(e.d.prev)
		if err != nil {
			return err
		}
		prev.d.next = e.d.next
	}
	if e.d.next != none {
		next, err := p.extent(e.d.next)
		if err != nil {
			return err
		}
		next.d.prev = e.d.prev
	}
	l.count--
	if (l.count == 0) != (l.first == none) {
		return p.corrupt(0, "length of a list of extents", uint64(l.count), uint64(l.first))
	}
	e.d.prev, e.d.next = none, none
	return nil
}

// segment loads the inode of a segment that exists.
func (p *plan) segment(seg uint32) error {
	if p.seg == seg && seg != 0 {
		return nil
	}
	if seg == 0 || seg > p.h.segLimit {
		return p.corrupt(0, "segment number", uint64(p.h.segLimit), uint64(seg))
	}
	if err := p.slot(seg); err != nil {
		return err
	}
	if p.in.state != 1 {
		return p.corrupt(p.inPage.ID().No, "segment is not in use", uint64(seg), uint64(p.in.number))
	}
	return nil
}

// slot loads the inode slot of a segment number that has been used.
func (p *plan) slot(seg uint32) error {
	dir, off := inodeIndex(seg)
	pg := p.p0
	if dir >= 0 {
		var err error
		if pg, err = p.inodePage(dir); err != nil {
			return err
		}
	}
	in := getInode(pg.Data[off:])
	if !in.sane(seg, p.h.extents()) {
		return p.corrupt(pg.ID().No, "segment inode contradicts itself", uint64(seg), uint64(in.number))
	}
	p.seg, p.in, p.inPage, p.inOff = seg, in, pg, off
	return nil
}

func (p *plan) inodePage(dir int) (mtr.Page, error) {
	no := le.Uint32(p.p0.Data[offDirectory+4*dir:])
	if no == 0 || no >= p.h.size || no%groupPages == 0 {
		return mtr.Page{}, p.corrupt(0, "inode directory entry", uint64(p.h.size), uint64(no))
	}
	pg, err := p.m.Get(page.ID{Space: p.s.no, No: no}, mtr.X)
	if err != nil {
		return pg, err
	}
	if t := page.GetType(pg.Data); t != page.TypeInodes {
		return pg, p.corrupt(no, "page type", uint64(page.TypeInodes), uint64(t))
	}
	return pg, nil
}

// commit writes the plan's changes. It fails only if the buffer pool has no room
// for a new page of book-keeping; then nothing is changed but pages beyond the size.
func (p *plan) commit() error {
	if p.h.size != p.was.size {
		p.m.LogSpaceResize(p.s.no, p.h.size)
	}
	for _, no := range p.fresh {
		pg, err := p.m.GetNew(page.ID{Space: p.s.no, No: no}, page.TypeExtents)
		if err != nil {
			return p.abandon(err)
		}
		for _, e := range p.exts {
			if at, _ := descAt(e.no); at == no {
				e.page = pg
			}
		}
	}
	if p.newDir >= 0 {
		pg, err := p.m.GetNew(page.ID{Space: p.s.no, No: p.newPage}, page.TypeInodes)
		if err != nil {
			return p.abandon(err)
		}
		p.inPage = pg
	}
	p.store()
	return nil
}

// store writes what differs from the pages.
func (p *plan) store() {
	var b [inodeSize]byte
	// Page 0 is always changed, so that it cannot be released before the pages
	// that are latched under it.
	p.h.put(b[:])
	if p.h != p.was {
		p.put(p.p0, offState, b[:headerSize])
	} else {
		p.m.Write(p.p0, offState, b[:1])
	}
	if p.newDir >= 0 {
		le.PutUint32(b[:], p.newPage)
		p.put(p.p0, offDirectory+4*p.newDir, b[:4])
	}
	for _, e := range p.exts {
		e.d.put(b[:])
		p.put(e.page, e.off, b[:descSize])
	}
	if p.seg != 0 {
		p.in.put(b[:])
		p.put(p.inPage, p.inOff, b[:])
	}
	if p.h.size != p.was.size {
		p.s.size.Store(p.h.size)
	}
}

// mergeGap is how many equal bytes between two changes are cheaper to write than
// to start a second op of redo.
const mergeGap = 8

// put makes the page's bytes at off equal to b, writing only what differs.
func (p *plan) put(pg mtr.Page, off int, b []byte) {
	old := pg.Data[off : off+len(b)]
	for i := 0; i < len(b); {
		if b[i] == old[i] {
			i++
			continue
		}
		end := i + 1 // one past the last byte that differs
		for j := end; j < len(b) && j-end < mergeGap; j++ {
			if b[j] != old[j] {
				end = j + 1
			}
		}
		p.m.Write(pg, off+i, b[i:end])
		i = end
	}
}

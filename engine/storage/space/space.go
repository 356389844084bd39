package space

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// Use says what pages are taken for.
//
// Each space keeps some room in its file that ordinary work cannot take: 4 pages
// while it is tiny, then one extent and one more for each 8, up to
// Options.ReserveExtents. When the disk is full, statements fail while rollback
// and purge, which may need pages to undo them, still find some.
type Use uint8

const (
	Ordinary Use = iota // leaves the reserve alone
	Rollback            // rollback, purge, and the structure changes they need
)

// Space hands out the pages of one tablespace. All methods are safe for
// concurrent use; those that take a mini-transaction latch page 0 in it until it
// commits, those that do not must be called without any latch.
//
// A failed call has changed nothing and holds no latch that was not held before.
// Errors, apart from those named: *page.CorruptError where the book-keeping
// contradicts itself, and the buffer pool's.
type Space struct {
	reg     *Registry
	no      uint32
	size    atomic.Uint32 // as of the newest plan that was carried out
	growing *env.Mutex    // held while the file changes its size
	cutting atomic.Bool   // a ShrinkPrepare awaits its ShrinkFinish
	plan    plan          // used under page 0's X latch
}

func newSpace(r *Registry, no, size uint32) *Space {
	s := &Space{reg: r, no: no, growing: env.NewMutex(r.opt.Env)}
	s.size.Store(size)
	return s
}

// No is the number of the tablespace.
func (s *Space) No() uint32 { return s.no }

// ID names a page of the space.
func (s *Space) ID(no uint32) page.ID { return page.ID{Space: s.no, No: no} }

// SizePages is the logical size: pages below it are in use or free for use. It
// counts mini-transactions that have not committed yet.
func (s *Space) SizePages() uint32 { return s.size.Load() }

// CreateSegment makes an empty segment. Errors: [ErrTooManySegments], [ErrNoSpace].
func (s *Space) CreateSegment(m *mtr.Mtr) (seg uint32, err error) {
	p := &s.plan
	if err := p.begin(s, m); err != nil {
		return 0, err
	}
	if err := p.createSegment(); err != nil {
		return 0, p.abandon(err)
	}
	if err := p.keepReserve(); err != nil {
		return 0, p.abandon(err)
	}
	return p.seg, p.commit()
}

// AllocPage gives the segment a page. Its content is stale: the caller fills it
// through GetNew. near is a page to be close to (the one read before it), or
// page.None. Error: [ErrNoSpace].
func (s *Space) AllocPage(m *mtr.Mtr, seg, near uint32) (no uint32, err error) {
	var nos [1]uint32
	err = s.AllocPages(m, seg, near, Ordinary, nos[:])
	return nos[0], err
}

// AllocPageReserved is AllocPage for rollback and purge: it may take the reserve.
func (s *Space) AllocPageReserved(m *mtr.Mtr, seg, near uint32) (no uint32, err error) {
	var nos [1]uint32
	err = s.AllocPages(m, seg, near, Rollback, nos[:])
	return nos[0], err
}

// AllocPages fills nos with pages for the segment: all of them, or none and an
// error. Each page but the first is placed near the one before it.
//
// REQUIRES: at most MaxAlloc pages.
func (s *Space) AllocPages(m *mtr.Mtr, seg, near uint32, use Use, nos []uint32) error {
	if len(nos) > MaxAlloc {
		panic(fmt.Sprintf("space: AllocPages of %d pages; the limit is %d", len(nos), MaxAlloc))
	}
	p := &s.plan
	if err := p.begin(s, m); err != nil {
		return err
	}
	for i := range nos {
		no, err := p.alloc(seg, near)
		if err != nil {
			return p.abandon(err)
		}
		nos[i], near = no, no
	}
	if use == Ordinary {
		if err := p.keepReserve(); err != nil {
			return p.abandon(err)
		}
	}
	return p.commit()
}

// MaxAlloc bounds the pages of one AllocPages, and with it its redo.
const MaxAlloc = 256

// FreePage takes a page from the segment. The page must not be used any more; the
// call does not touch its content. Freeing a page that the same mini-transaction
// allocated fails only if a page of book-keeping cannot be read.
func (s *Space) FreePage(m *mtr.Mtr, seg, no uint32) error {
	p := &s.plan
	if err := p.begin(s, m); err != nil {
		return err
	}
	if err := p.free(seg, no); err != nil {
		return p.abandon(err)
	}
	return p.commit()
}

// FreeSegmentStep frees some of the segment's pages, at most 32 extents of them,
// and the segment itself with the last: then done is true and its number may be
// given to another segment.
func (s *Space) FreeSegmentStep(m *mtr.Mtr, seg uint32) (done bool, err error) {
	p := &s.plan
	if err := p.begin(s, m); err != nil {
		return false, err
	}
	done, err = p.freeSegment(seg)
	if err != nil {
		return false, p.abandon(err)
	}
	return done, p.commit()
}

// ClearSegmentStep frees some of the segment's pages as FreeSegmentStep does, but neither the segment
// nor the page keep, which is one of its first [FragmentPages], or 0 for none. done is true with
// the last.
func (s *Space) ClearSegmentStep(m *mtr.Mtr, seg, keep uint32) (done bool, err error) {
	p := &s.plan
	if err := p.begin(s, m); err != nil {
		return false, err
	}
	done, err = p.clearSegment(seg, keep)
	if err != nil {
		return false, p.abandon(err)
	}
	return done, p.commit()
}

// growTo makes the file at least need pages long. A full disk gives [ErrNoSpace].
func (s *Space) growTo(need uint32) error {
	s.growing.Lock()
	defer s.growing.Unlock()
	h, err := s.reg.acquire(s.no)
	if err != nil {
		return err
	}
	defer s.reg.release(h)
	return s.reg.extend(h, need, growTarget(h.pages.Load(), need))
}

// growTarget is the size to which a file of have pages grows when need are
// needed: page by page at first, then by whole extents, then a few at a time.
func growTarget(have, need uint32) uint32 {
	step := uint32(1)
	switch {
	case need <= ExtentPages:
	case have < 32*ExtentPages:
		step = ExtentPages
	case have < 256*ExtentPages:
		step = 4 * ExtentPages
	default:
		step = min(have/ExtentPages/64, 64) * ExtentPages
	}
	return uint32(min((uint64(need)+uint64(step)-1)/uint64(step)*uint64(step), maxExtents*ExtentPages))
}

// EnsureFree grows the file so that a segment can be given that many pages without
// further growth. It keeps nobody else from taking them: for a guarantee, allocate
// before the first change of the mini-transaction. Error: [ErrNoSpace].
//
// REQUIRES: the task holds no latch.
func (s *Space) EnsureFree(n int) error {
	h, err := s.readHeader()
	if err != nil {
		return err
	}
	ext := h.extents()
	if ext == 1 && uint64(h.size)+uint64(n) <= tinyPages {
		return s.growTo(h.size + uint32(n) + tinyReserve)
	}
	need := (uint64(n)+ExtentPages-1)/ExtentPages + 1
	if uint64(ext)+need > maxExtents {
		return ErrNoSpace
	}
	want := uint32(need) + reserveExtents(ext+uint32(need), s.reg.opt.ReserveExtents)
	if h.free.count >= want {
		return nil
	}
	return s.growTo(min((ext+want-h.free.count), maxExtents) * ExtentPages)
}

// readHeader reads page 0's changing part.
func (s *Space) readHeader() (h header, err error) {
	m := mtr.New(s.reg.pool)
	m.BeginRead()
	defer m.Commit()
	p0, err := m.Get(s.ID(0), mtr.S)
	if err != nil {
		return h, err
	}
	return s.header(p0.Data)
}

// header checks a latched page 0, and its size against the file's: a rotten size
// must not become a huge file.
func (s *Space) header(p0 []byte) (header, error) {
	h, err := readHeader(p0, s.no, s.reg.opt.Database)
	if err != nil {
		return h, err
	}
	f, err := s.reg.acquire(s.no)
	if err != nil {
		return h, err
	}
	defer s.reg.release(f)
	if n := f.pages.Load(); n < h.size {
		return h, corrupt(s.no, 0, "file is shorter than its header says (pages)", uint64(h.size), uint64(n))
	}
	return h, nil
}

// Stats describes a space, in pages.
type Stats struct {
	Size     uint32 // logical
	File     uint32 // physical
	Free     uint32 // below Size, and in no segment's extent
	Segments uint32 // count
}

// Stats reads the space's size and free pages.
//
// REQUIRES: the task holds no latch.
func (s *Space) Stats() (Stats, error) {
	h, err := s.readHeader()
	if err != nil {
		return Stats{}, err
	}
	f, err := s.reg.acquire(s.no)
	if err != nil {
		return Stats{}, err
	}
	defer s.reg.release(f)
	free := h.free.count*ExtentPages + h.fragFree
	if h.size < ExtentPages {
		free -= ExtentPages - h.size
	}
	return Stats{Size: h.size, File: f.pages.Load(), Free: free, Segments: h.segUsed}, nil
}

// SegmentPages returns how many pages a segment uses, and how many it holds with
// the unused ones of its extents.
//
// REQUIRES: the task holds no latch.
func (s *Space) SegmentPages(seg uint32) (used, held uint32, err error) {
	m := mtr.New(s.reg.pool)
	m.BeginRead()
	defer m.Commit()
	in, err := s.readInode(m, seg)
	if err != nil {
		return 0, 0, err
	}
	used, held = in.pages()
	return used, held, nil
}

// readInode reads a segment's inode in a reading mini-transaction.
func (s *Space) readInode(m *mtr.Mtr, seg uint32) (inode, error) {
	p0, err := m.Get(s.ID(0), mtr.S)
	if err != nil {
		return inode{}, err
	}
	h, err := s.header(p0.Data)
	if err != nil {
		return inode{}, err
	}
	if seg == 0 || seg > h.segLimit {
		return inode{}, corrupt(s.no, 0, "segment number", uint64(h.segLimit), uint64(seg))
	}
	dir, off := inodeIndex(seg)
	pg := p0
	if dir >= 0 {
		no := le.Uint32(p0.Data[offDirectory+4*dir:])
		if no == 0 || no >= h.size {
			return inode{}, corrupt(s.no, 0, "inode directory entry", uint64(h.size), uint64(no))
		}
		if pg, err = m.Get(s.ID(no), mtr.S); err != nil {
			return inode{}, err
		}
	}
	in := getInode(pg.Data[off:])
	if !in.sane(seg, h.extents()) || in.state != 1 {
		return in, corrupt(s.no, pg.ID().No, "segment inode contradicts itself", uint64(seg), uint64(in.number))
	}
	return in, nil
}

// IsNoSpace reports whether an error means that the disk or the tablespace is
// full: the statement fails, the engine goes on.
func IsNoSpace(err error) bool { return errors.Is(err, file.ErrNoSpace) }

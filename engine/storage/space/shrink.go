package space

import (
	"fmt"

	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// cutStepExtents bounds the extents that one ShrinkPrepare cuts.
const cutStepExtents = 256

// Cut is a prepared shrink: the size that was logged.
type Cut struct {
	Pages uint32 // that the space became smaller by
	size  uint32
	valid bool
}

// ShrinkPrepare takes free extents off the end of the space and logs the smaller
// size. It moves nothing. Once the redo of m is durable, [Space.ShrinkFinish] cuts
// the file; it must be called even if Pages is 0. Until then another
// ShrinkPrepare cuts nothing.
func (s *Space) ShrinkPrepare(m *mtr.Mtr) (Cut, error) {
	if !s.cutting.CompareAndSwap(false, true) {
		return Cut{}, nil
	}
	p := &s.plan
	if err := p.begin(s, m); err != nil {
		s.cutting.Store(false)
		return Cut{}, err
	}
	if err := p.cut(); err != nil {
		s.cutting.Store(false)
		return Cut{}, p.abandon(err)
	}
	c := Cut{Pages: p.was.size - p.h.size, size: p.h.size, valid: true}
	if c.Pages == 0 {
		return c, p.abandon(nil)
	}
	return c, p.commit()
}

// cut makes the space smaller by the free extents at its end.
func (p *plan) cut() error {
	for range cutStepExtents {
		n := p.h.extents()
		if n == 1 {
			return p.cutPages()
		}
		e, err := p.extent(n - 1)
		if err != nil {
			return err
		}
		switch {
		case e.d.state == extFree:
			err = p.remove(&p.h.free, e)
		case e.d.state == extShared && e.no%groupExts == 0 && e.d.used == 1:
			// Nothing but the descriptors of extents that are gone.
			if p.h.fragFree < ExtentPages-1 {
				return p.corrupt(0, "count of free single pages", ExtentPages-1, uint64(p.h.fragFree))
			}
			p.h.fragFree -= ExtentPages - 1
			err = p.remove(&p.h.frag, e)
		default:
			return nil
		}
		if err != nil {
			return err
		}
		e.d = desc{}
		p.h.size -= ExtentPages
	}
	return nil
}

// cutPages makes a space of one extent end after its last used page.
func (p *plan) cutPages() error {
	e, err := p.extent(0)
	if err != nil {
		return err
	}
	if e.d.used&1 == 0 {
		return p.corrupt(0, "page 0 is free", 1, 0)
	}
	for p.h.size > 1 && e.d.used>>(p.h.size-1)&1 == 0 {
		p.h.size--
	}
	return nil
}

// ShrinkFinish cuts the file to what the space and its reserve need.
//
// REQUIRES: the redo of the mini-transaction given to ShrinkPrepare is durable;
// the task holds no latch.
func (s *Space) ShrinkFinish(c Cut) error {
	if !c.valid {
		return nil
	}
	defer s.cutting.Store(false)
	m := mtr.New(s.reg.pool)
	m.BeginRead()
	defer m.Commit()
	// Under page 0's latch nobody relies on room that is being cut.
	p0, err := m.Get(s.ID(0), mtr.S)
	if err != nil {
		return err
	}
	h, err := s.header(p0.Data)
	if err != nil {
		return err
	}
	need := max(c.size, h.size, h.fileNeed(s.reg.opt.ReserveExtents))
	return s.truncate(growTarget(need, need))
}

// truncate cuts the file to the given number of pages.
func (s *Space) truncate(to uint32) error {
	s.growing.Lock()
	defer s.growing.Unlock()
	f, err := s.reg.acquire(s.no)
	if err != nil {
		return err
	}
	defer s.reg.release(f)
	was := f.pages.Load()
	if was <= to {
		return nil
	}
	f.pages.Store(to) // from here on, stale pages beyond it are not written any more
	if err := s.reg.written.cut(s.no, to); err != nil {
		f.pages.Store(was)
		return err
	}
	if err := f.f.Truncate(int64(to) * page.Size); err != nil {
		f.pages.Store(was)
		return fmt.Errorf("space: cutting tablespace %d: %w", s.no, err)
	}
	return nil
}

// Shrink cuts free pages off the end of the file and returns how many. It waits
// for the redo log.
//
// REQUIRES: the task holds no latch.
func (s *Space) Shrink() (released int, err error) {
	m := mtr.New(s.reg.pool)
	for {
		if err := m.Begin(); err != nil {
			return released, err
		}
		c, err := s.ShrinkPrepare(m)
		lsn := m.Commit()
		if err != nil || !c.valid {
			return released, err
		}
		if err := s.reg.pool.Log().FlushTo(lsn); err != nil {
			return released, err
		}
		if err := s.ShrinkFinish(c); err != nil {
			return released, err
		}
		if released += int(c.Pages); c.Pages < cutStepExtents*ExtentPages {
			return released, nil
		}
	}
}

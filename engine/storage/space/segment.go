package space

import "slices"

// freeStepExtents bounds the extents that one FreeSegmentStep frees.
const freeStepExtents = 32

// createSegment takes an inode slot and loads it as a new segment's.
func (p *plan) createSegment() error {
	seg := p.h.segFree
	if seg != 0 {
		if err := p.slot(seg); err != nil {
			return err
		}
		if p.in.state != 0 || p.in.nextFree > p.h.segLimit {
			return p.corrupt(p.inPage.ID().No, "free inode slot is in use", 0, uint64(seg))
		}
		p.h.segFree = p.in.nextFree
	} else if err := p.newSlot(); err != nil {
		return err
	}
	p.in = inode{number: p.seg, state: 1, partial: list{first: none}, full: list{first: none}}
	p.h.segUsed++
	return nil
}

// newSlot takes an inode slot that was never used, on a new inode page if need be.
func (p *plan) newSlot() error {
	if p.h.segLimit >= maxSegments {
		return ErrTooManySegments
	}
	seg := p.h.segLimit + 1
	dir, off := inodeIndex(seg)
	pg := p.p0
	if dir >= 0 && le.Uint32(p.p0.Data[offDirectory+4*dir:]) == 0 {
		no, err := p.allocShared(0)
		if err != nil {
			return err
		}
		p.newDir, p.newPage = dir, no
	} else if dir >= 0 {
		var err error
		if pg, err = p.inodePage(dir); err != nil {
			return err
		}
	}
	p.h.segLimit = seg
	p.seg, p.inPage, p.inOff = seg, pg, off
	return nil
}

// freeSegment frees a bounded part of the segment, full extents first.
func (p *plan) freeSegment(seg uint32) (done bool, err error) {
	if err := p.segment(seg); err != nil {
		return false, err
	}
	if done, err = p.freeExtents(seg); err != nil || !done {
		return false, err
	}
	return true, p.freeInode()
}

// clearSegment is freeSegment of all but the segment itself and one of its single pages, or 0.
func (p *plan) clearSegment(seg, keep uint32) (done bool, err error) {
	if err := p.segment(seg); err != nil {
		return false, err
	}
	if keep != 0 && !slices.Contains(p.in.slots[:], keep) {
		return false, p.corrupt(keep, "page to be kept is not a single one of the segment", uint64(seg), 0)
	}
	if done, err = p.freeExtents(seg); err != nil || !done {
		return false, err
	}
	return true, p.freeSlots(keep)
}

// freeExtents frees a bounded number of the loaded segment's extents; done says that none is left.
func (p *plan) freeExtents(seg uint32) (done bool, err error) {
	for range freeStepExtents {
		l := &p.in.full
		if l.count == 0 {
			if l = &p.in.partial; l.count == 0 {
				return true, nil
			}
		}
		e, err := p.extent(l.first)
		if err != nil {
			return false, err
		}
		if e.d.state != extOwned || e.d.owner != seg || e.d.full() != (l == &p.in.full) {
			return false, p.corrupt(0, "extent on a segment's list", uint64(seg), uint64(e.d.owner))
		}
		if l == &p.in.partial {
			free := uint32(ExtentPages - e.d.usedCount())
			if p.in.partialFree < free {
				return false, p.corrupt(p.inPage.ID().No, "segment's count of free pages", uint64(free), uint64(p.in.partialFree))
			}
			p.in.partialFree -= free
		}
		if err := p.remove(l, e); err != nil {
			return false, err
		}
		if err := p.giveBack(e); err != nil {
			return false, err
		}
	}
	return false, nil
}

// freeSlots frees the loaded segment's single pages but one, or 0.
func (p *plan) freeSlots(keep uint32) error {
	for i, no := range p.in.slots {
		if no == 0 || no == keep {
			continue
		}
		if no >= p.h.size {
			return p.corrupt(no, "segment's page is beyond the size", uint64(p.h.size), uint64(no))
		}
		e, err := p.extent(no / ExtentPages)
		if err != nil {
			return err
		}
		if e.d.state != extShared || e.d.used>>(no%ExtentPages)&1 == 0 {
			return p.corrupt(no, "segment's page is not a single one", extShared, uint64(e.d.state))
		}
		if p.in.fragCount == 0 {
			return p.corrupt(p.inPage.ID().No, "segment's count of single pages", 1, 0)
		}
		p.in.slots[i] = 0
		p.in.fragCount--
		if err := p.freeShared(e, no); err != nil {
			return err
		}
	}
	return nil
}

// freeInode frees the loaded segment's single pages and its inode slot.
func (p *plan) freeInode() error {
	if err := p.freeSlots(0); err != nil {
		return err
	}
	if p.h.segUsed == 0 {
		return p.corrupt(0, "count of segments", 1, 0)
	}
	p.in = inode{number: p.seg, nextFree: p.h.segFree, partial: list{first: none}, full: list{first: none}}
	p.h.segFree = p.seg
	p.h.segUsed--
	return nil
}

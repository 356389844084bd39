package space

import (
	"errors"

	"github.com/triremedb/trireme/engine/storage/page"
)

// tinyPages is the size up to which a space grows page by page and reserves
// pages; beyond it, a segment may need a whole extent next.
const tinyPages = FragmentPages - tinyReserve

// tinyReserve is the reserve of a tiny space in pages: enough to split a leaf of
// a tree of that size and to raise its root.
const tinyReserve = 4

// reserveExtents is how many extents a space of n extents keeps back, at most most.
func reserveExtents(n uint32, most int) uint32 { return min(1+n/8, uint32(most)) }

// alloc gives the segment a page, near another if that makes sense.
func (p *plan) alloc(seg, near uint32) (uint32, error) {
	if err := p.segment(seg); err != nil {
		return 0, err
	}
	if near >= p.h.size {
		near = page.None
	}
	if p.in.partial.count+p.in.full.count == 0 && p.in.fragCount < FragmentPages {
		return p.allocSlot(near)
	}
	no, err := p.allocOwned(near)
	if errors.Is(err, ErrNoSpace) && p.in.fragCount < FragmentPages {
		return p.allocSlot(near) // no whole extent is left, single pages may be
	}
	return no, err
}

// allocSlot takes a single page for the loaded segment.
func (p *plan) allocSlot(near uint32) (uint32, error) {
	slot := -1
	for i, no := range p.in.slots {
		if no == 0 {
			slot = i
			break
		}
	}
	if slot < 0 {
		return 0, p.corrupt(p.inPage.ID().No, "segment's count of single pages", FragmentPages, uint64(p.in.fragCount))
	}
	no, err := p.allocShared(near)
	if err != nil {
		return 0, err
	}
	p.in.slots[slot] = no
	p.in.fragCount++
	return no, nil
}

// allocShared takes a single page of a shared extent.
func (p *plan) allocShared(near uint32) (uint32, error) {
	e, from, err := p.sharedExtent(near)
	if err != nil {
		return 0, err
	}
	bit := e.d.freeBit(from)
	if bit < 0 || p.h.fragFree == 0 {
		at, _ := descAt(e.no)
		return 0, p.corrupt(at, "full extent on the list of shared ones", 0, uint64(e.no))
	}
	no := e.no*ExtentPages + uint32(bit)
	if no >= p.h.size {
		if no != p.h.size {
			return 0, p.corrupt(0, "used pages beyond the size", uint64(p.h.size), uint64(no))
		}
		if err := p.s.growTo(no + 1); err != nil {
			return 0, err
		}
		p.h.size = no + 1
	}
	e.d.used |= 1 << uint(bit)
	p.h.fragFree--
	if e.d.full() {
		return no, p.remove(&p.h.frag, e)
	}
	return no, nil
}

// sharedExtent returns a shared extent with a free page, and the bit from which to
// look for it.
func (p *plan) sharedExtent(near uint32) (*extent, int, error) {
	if near != page.None {
		e, err := p.extent(near / ExtentPages)
		if err != nil {
			return nil, 0, err
		}
		if e.d.state == extShared && !e.d.full() {
			return e, int(near % ExtentPages), nil
		}
	}
	if p.h.frag.first != none {
		e, err := p.extent(p.h.frag.first)
		if err == nil && e.d.state != extShared {
			err = p.corrupt(0, "extent on the list of shared ones", extShared, uint64(e.d.state))
		}
		return e, 0, err
	}
	e, err := p.takeExtent(none)
	if err != nil {
		return nil, 0, err
	}
	if e.d.state == extShared { // it holds its own descriptor page
		return e, 0, nil
	}
	e.d = desc{state: extShared}
	p.h.fragFree += ExtentPages
	return e, 0, p.push(&p.h.frag, e)
}

// allocOwned takes a page of one of the segment's extents, or of a new one.
func (p *plan) allocOwned(near uint32) (uint32, error) {
	e, from, err := p.ownedExtent(near)
	if err != nil {
		return 0, err
	}
	if e == nil {
		next := none
		if near != page.None {
			next = near/ExtentPages + 1
		}
		if e, err = p.takeOwned(next); err != nil {
			return 0, err
		}
	}
	bit := e.d.freeBit(from)
	if bit < 0 || e.d.owner != p.seg || e.d.state != extOwned || p.in.partialFree == 0 {
		at, _ := descAt(e.no)
		return 0, p.corrupt(at, "extent on a segment's list of partly used ones", uint64(p.seg), uint64(e.d.owner))
	}
	e.d.used |= 1 << uint(bit)
	p.in.partialFree--
	if e.d.full() {
		if err := p.remove(&p.in.partial, e); err != nil {
			return 0, err
		}
		if err := p.push(&p.in.full, e); err != nil {
			return 0, err
		}
	}
	return e.no*ExtentPages + uint32(bit), nil
}

// ownedExtent returns an extent of the segment with a free page and the bit to
// look from: that of near, the one after it, any; nil if there is none.
func (p *plan) ownedExtent(near uint32) (*extent, int, error) {
	if p.in.partial.count == 0 {
		return nil, 0, nil
	}
	if near != page.None {
		first := near / ExtentPages
		for no := first; no <= first+1 && no < p.h.extents(); no++ {
			e, err := p.extent(no)
			if err != nil {
				return nil, 0, err
			}
			if e.d.state == extOwned && e.d.owner == p.seg && !e.d.full() {
				if no == first {
					return e, int(near % ExtentPages), nil
				}
				return e, 0, nil
			}
		}
	}
	e, err := p.extent(p.in.partial.first)
	return e, 0, err
}

// takeOwned gives the segment another extent.
func (p *plan) takeOwned(hint uint32) (*extent, error) {
	e, err := p.takeExtent(hint)
	if err != nil {
		return nil, err
	}
	if e.d.state == extShared {
		// A new descriptor page took its first page; the next one is whole.
		if e, err = p.takeExtent(none); err != nil {
			return nil, err
		}
	}
	e.d = desc{state: extOwned, owner: p.seg}
	p.in.partialFree += ExtentPages
	return e, p.push(&p.in.partial, e)
}

// takeExtent takes a free extent, hint if that is one, off the free list, or
// makes the space larger. A new extent that begins with its own descriptor page
// comes back as a shared one on the frag list.
func (p *plan) takeExtent(hint uint32) (*extent, error) {
	if hint < p.h.extents() {
		e, err := p.extent(hint)
		if err != nil {
			return nil, err
		}
		if e.d.state == extFree {
			return e, p.remove(&p.h.free, e)
		}
	}
	if p.h.free.first == none {
		return p.addExtent()
	}
	e, err := p.extent(p.h.free.first)
	if err != nil {
		return nil, err
	}
	if e.d.state != extFree {
		return nil, p.corrupt(0, "extent on the free list", extFree, uint64(e.d.state))
	}
	return e, p.remove(&p.h.free, e)
}

// addExtent makes the space one extent larger.
func (p *plan) addExtent() (*extent, error) {
	no := p.h.extents()
	if no >= maxExtents {
		return nil, ErrNoSpace
	}
	if err := p.s.growTo((no + 1) * ExtentPages); err != nil {
		return nil, err
	}
	p.h.size = (no + 1) * ExtentPages
	if no%groupExts != 0 {
		e, err := p.extent(no)
		if err == nil {
			e.d = desc{}
		}
		return e, err
	}
	p.fresh = append(p.fresh, no*ExtentPages)
	e, err := p.extent(no)
	if err != nil {
		return nil, err
	}
	e.d = desc{state: extShared, used: 1}
	p.h.fragFree += ExtentPages - 1
	return e, p.push(&p.h.frag, e)
}

// keepReserve makes sure that the file holds the reserve beside what the plan
// takes.
func (p *plan) keepReserve() error {
	return p.s.growTo(p.h.fileNeed(p.s.reg.opt.ReserveExtents))
}

// fileNeed is how many pages the file must have to hold the space and its reserve
// of at most the given number of extents.
func (h *header) fileNeed(most int) uint32 {
	n := h.extents()
	if n == 1 && h.size <= tinyPages {
		// Free pages of extent 0 below the size; those beyond it come with growth.
		below := int(h.fragFree) - (ExtentPages - int(h.size))
		return h.size + uint32(max(0, tinyReserve-below))
	}
	if want := reserveExtents(n, most); want > h.free.count {
		return min(n+want-h.free.count, maxExtents) * ExtentPages
	}
	return h.size
}

// free takes a page from the segment.
func (p *plan) free(seg, no uint32) error {
	if err := p.segment(seg); err != nil {
		return err
	}
	if no == 0 || no >= p.h.size {
		return p.corrupt(no, "page to be freed is beyond the size", uint64(p.h.size), uint64(no))
	}
	e, err := p.extent(no / ExtentPages)
	if err != nil {
		return err
	}
	bit := uint64(1) << (no % ExtentPages)
	switch {
	case e.d.used&bit == 0:
		return p.corrupt(no, "page to be freed is free", uint64(seg), 0)
	case e.d.state == extShared:
		return p.freeSlot(e, no)
	case e.d.state == extOwned && e.d.owner == seg:
		return p.freeOwned(e, bit)
	}
	return p.corrupt(no, "page to be freed belongs to another segment", uint64(seg), uint64(e.d.owner))
}

// freeSlot gives a single page of the loaded segment back.
func (p *plan) freeSlot(e *extent, no uint32) error {
	for i := range p.in.slots {
		if p.in.slots[i] == no && p.in.fragCount > 0 {
			p.in.slots[i] = 0
			p.in.fragCount--
			return p.freeShared(e, no)
		}
	}
	return p.corrupt(no, "page to be freed belongs to another segment", uint64(p.seg), 0)
}

// freeShared gives a page of a shared extent back, and the extent if it was its last.
func (p *plan) freeShared(e *extent, no uint32) error {
	if e.d.full() {
		if err := p.push(&p.h.frag, e); err != nil {
			return err
		}
	}
	e.d.used &^= 1 << (no % ExtentPages)
	p.h.fragFree++
	if e.d.used != 0 {
		return nil
	}
	if err := p.remove(&p.h.frag, e); err != nil {
		return err
	}
	if p.h.fragFree < ExtentPages {
		return p.corrupt(0, "count of free single pages", ExtentPages, uint64(p.h.fragFree))
	}
	p.h.fragFree -= ExtentPages
	return p.giveBack(e)
}

// freeOwned gives a page of one of the loaded segment's extents back.
func (p *plan) freeOwned(e *extent, bit uint64) error {
	if e.d.full() {
		if err := p.remove(&p.in.full, e); err != nil {
			return err
		}
		if err := p.push(&p.in.partial, e); err != nil {
			return err
		}
	}
	e.d.used &^= bit
	p.in.partialFree++
	if e.d.used != 0 {
		return nil
	}
	if err := p.remove(&p.in.partial, e); err != nil {
		return err
	}
	if p.in.partialFree < ExtentPages {
		return p.corrupt(p.inPage.ID().No, "segment's count of free pages", ExtentPages, uint64(p.in.partialFree))
	}
	p.in.partialFree -= ExtentPages
	return p.giveBack(e)
}

// giveBack puts an extent that is on no list on the free list.
func (p *plan) giveBack(e *extent) error {
	e.d = desc{state: extFree}
	return p.push(&p.h.free, e)
}

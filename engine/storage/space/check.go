package space

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// Finding is something that is wrong with a space.
type Finding struct {
	Page    page.ID
	Segment uint32 // 0 if none is concerned
	Problem string
}

func (f Finding) String() string {
	if f.Segment == 0 {
		return fmt.Sprintf("page %v: %s", f.Page, f.Problem)
	}
	return fmt.Sprintf("page %v, segment %d: %s", f.Page, f.Segment, f.Problem)
}

// Check is a consistency check of a space: of its own book-keeping first, then of
// what the owners of segments reach against what is allocated to them. The second
// half is exact only if nobody changes the space meanwhile. It keeps about 40
// bytes per extent.
type Check struct {
	s      *Space
	m      *mtr.Mtr
	report func(Finding)

	h        header
	exts     []desc
	listed   []uint64          // bit per extent: seen on a list
	expected []uint64          // per shared extent: pages that somebody holds
	owners   map[uint32]uint32 // single page -> segment; 0 is the space itself
	reached  []uint64          // per extent: pages given to Reach
}

// maxListFindings bounds what is reported about one walk over a broken list.
const maxListFindings = 3

// NewCheck checks the book-keeping, reports what is wrong, and returns the check
// for Reach and Finish. The error is one of reading; damage is a finding.
//
// REQUIRES: the task holds no latch.
func (s *Space) NewCheck(report func(Finding)) (*Check, error) {
	c := &Check{s: s, m: mtr.New(s.reg.pool), report: report, owners: map[uint32]uint32{}}
	c.m.BeginRead()
	defer c.m.Commit()
	return c, c.scan()
}

func (c *Check) scan() error {
	p0, err := c.m.Get(c.s.ID(0), mtr.S)
	if err == nil {
		c.h, err = c.s.header(p0.Data)
	}
	if damage := (*page.CorruptError)(nil); errors.As(err, &damage) {
		c.finding(0, 0, "%v", damage)
		c.h = header{}
		return nil
	}
	if err != nil {
		return err
	}
	n := c.h.extents()
	c.exts = make([]desc, n)
	c.listed = make([]uint64, n/64+1)
	c.expected = make([]uint64, n)
	c.reached = make([]uint64, n)
	if err := c.readExtents(p0); err != nil {
		return err
	}
	c.own(0)
	c.walk("free", c.h.free, extFree, 0)
	c.walk("shared", c.h.frag, extShared, 0)
	if err := c.segments(p0); err != nil {
		return err
	}
	c.compare()
	return nil
}

func (c *Check) finding(no, seg uint32, format string, args ...any) {
	c.report(Finding{Page: c.s.ID(no), Segment: seg, Problem: fmt.Sprintf(format, args...)})
}

// readExtents loads all descriptors.
func (c *Check) readExtents(p0 mtr.Page) error {
	for first := uint32(0); first < uint32(len(c.exts)); first += groupExts {
		pg, no := p0, first*ExtentPages
		if first > 0 {
			c.own(no)
			var ok bool
			var err error
			if pg, ok, err = c.read(no, page.TypeExtents); err != nil {
				return err
			} else if !ok {
				continue
			}
		}
		for i := first; i < min(first+groupExts, uint32(len(c.exts))); i++ {
			_, off := descAt(i)
			c.exts[i] = getDesc(pg.Data[off:])
		}
		if first > 0 {
			c.m.Release(pg)
		}
	}
	return nil
}

// read latches a page of the space; ok is false if it is damaged.
func (c *Check) read(no uint32, t page.Type) (pg mtr.Page, ok bool, err error) {
	pg, err = c.m.Get(c.s.ID(no), mtr.S)
	damage := (*page.CorruptError)(nil)
	switch {
	case errors.As(err, &damage), errors.Is(err, ErrBeyondEnd):
		c.finding(no, 0, "%v", err)
		return pg, false, nil
	case err != nil:
		return pg, false, err
	case page.GetType(pg.Data) != t:
		c.finding(no, 0, "page type is %v instead of %v", page.GetType(pg.Data), t)
		c.m.Release(pg)
		return pg, false, nil
	}
	return pg, true, nil
}

// own notes a single page that the space itself uses.
func (c *Check) own(no uint32) { c.hold(no, 0) }

// hold notes that somebody holds a single page.
func (c *Check) hold(no, seg uint32) {
	if no >= c.h.size {
		c.finding(no, seg, "single page is beyond the size of %d pages", c.h.size)
		return
	}
	if other, taken := c.owners[no]; taken {
		c.finding(no, seg, "single page belongs to segment %d too", other)
		return
	}
	c.owners[no] = seg
	c.expected[no/ExtentPages] |= 1 << (no % ExtentPages)
}

// walk follows a list and returns how many free pages its extents have.
func (c *Check) walk(name string, l list, state uint8, seg uint32) (free uint32) {
	prev, count, bad := none, uint32(0), 0
	for no := l.first; no != none; no = c.exts[no].next {
		if no >= uint32(len(c.exts)) || c.listed[no/64]>>(no%64)&1 != 0 {
			c.finding(0, seg, "list of %s extents leads to extent %d, which is on a list already or does not exist", name, no)
			return free
		}
		c.listed[no/64] |= 1 << (no % 64)
		d := &c.exts[no]
		if d.prev != prev || d.state != state || state == extOwned && d.owner != seg {
			if bad++; bad <= maxListFindings {
				c.finding(no*ExtentPages, seg, "extent %d on the list of %s extents: state %d, owner %d, previous %d; expected %d, %d, %d",
					no, name, d.state, d.owner, int32(d.prev), state, seg, int32(prev))
			}
		}
		free += uint32(ExtentPages - d.usedCount())
		prev = no
		count++
	}
	if count != l.count {
		c.finding(0, seg, "list of %s extents has %d entries; its head says %d", name, count, l.count)
	}
	return free
}

// segments checks all inodes.
func (c *Check) segments(p0 mtr.Page) error {
	used, free := uint32(0), make([]bool, c.h.segLimit+1)
	next := make([]uint32, c.h.segLimit+1)
	pg, dir, ok := p0, -1, true
	for seg := uint32(1); seg <= c.h.segLimit; seg++ {
		at, off := inodeIndex(seg)
		if at != dir {
			if dir >= 0 && ok {
				c.m.Release(pg)
			}
			dir = at
			no := le.Uint32(p0.Data[offDirectory+4*at:])
			if ok = no != 0; !ok {
				c.finding(0, seg, "inode directory has no page for the segment")
				continue
			}
			c.own(no)
			var err error
			if pg, ok, err = c.read(no, page.TypeInodes); err != nil {
				return err
			}
		}
		if !ok {
			continue
		}
		in := getInode(pg.Data[off:])
		switch {
		case !in.sane(seg, uint32(len(c.exts))):
			c.finding(pg.ID().No, seg, "segment inode contradicts itself")
		case in.state == 0:
			free[seg], next[seg] = true, in.nextFree
		default:
			used++
			c.segment(pg.ID().No, seg, &in)
		}
	}
	if used != c.h.segUsed {
		c.finding(0, 0, "%d segments; the header says %d", used, c.h.segUsed)
	}
	for seg := c.h.segFree; seg != 0; seg = next[seg] {
		if seg > c.h.segLimit || !free[seg] {
			c.finding(0, seg, "slot on the list of free segments is not free, or on it twice")
			return nil
		}
		free[seg] = false
	}
	for seg := range free {
		if free[seg] {
			c.finding(0, uint32(seg), "free segment slot is on no list")
		}
	}
	return nil
}

// segment checks one segment's extents and single pages.
func (c *Check) segment(no, seg uint32, in *inode) {
	if free := c.walk("partly used", in.partial, extOwned, seg); free != in.partialFree {
		c.finding(no, seg, "%d free pages in its extents; the inode says %d", free, in.partialFree)
	}
	if free := c.walk("full", in.full, extOwned, seg); free != 0 {
		c.finding(no, seg, "%d free pages in extents on its list of full ones", free)
	}
	slots := uint32(0)
	for _, at := range in.slots {
		if at != 0 {
			c.hold(at, seg)
			slots++
		}
	}
	if slots != in.fragCount {
		c.finding(no, seg, "%d single pages; the inode says %d", slots, in.fragCount)
	}
}

// compare holds the descriptors against what the lists and inodes claim.
func (c *Check) compare() {
	var fragFree uint32
	for i := range c.exts {
		d, no := &c.exts[i], uint32(i)*ExtentPages
		onList := c.listed[i/64]>>(i%64)&1 != 0
		wantList := true
		switch d.state {
		case extFree:
			if d.used != 0 {
				c.finding(no, 0, "free extent has %d used pages", d.usedCount())
			}
		case extShared:
			wantList = !d.full()
			if wantList {
				fragFree += uint32(ExtentPages - d.usedCount())
			}
			if diff := d.used ^ c.expected[i]; diff != 0 {
				at := no + uint32(bits.TrailingZeros64(diff))
				c.finding(at, c.owners[at], "%d single pages are in use without an owner or owned but free; this is the first", bits.OnesCount64(diff))
			}
		case extOwned:
			if d.used == 0 {
				c.finding(no, d.owner, "extent of a segment has no used page")
			}
		default:
			c.finding(no, 0, "extent state %d below the size", d.state)
			continue
		}
		if onList != wantList {
			c.finding(no, d.owner, "extent %d: on a list is %v, should be %v", i, onList, wantList)
		}
		if d.state != extShared && c.expected[i] != 0 {
			c.finding(no, d.owner, "single pages lie in an extent that is not shared")
		}
	}
	if fragFree != c.h.fragFree {
		c.finding(0, 0, "%d free single pages; the header says %d", fragFree, c.h.fragFree)
	}
}

// Reach notes that the owner of a segment uses a page, and reports if it is not
// allocated to that segment or was reached before.
func (c *Check) Reach(seg, no uint32) {
	if no >= c.h.size {
		c.finding(no, seg, "reachable page is beyond the size of %d pages", c.h.size)
		return
	}
	ext, bit := no/ExtentPages, uint64(1)<<(no%ExtentPages)
	d := &c.exts[ext]
	owner, single := c.owners[no]
	if d.state == extOwned {
		owner = d.owner
	}
	switch {
	case c.reached[ext]&bit != 0:
		c.finding(no, seg, "page is reachable twice")
	case d.used&bit == 0 || d.state == extFree || d.state == extShared && !single:
		c.finding(no, seg, "reachable page is not allocated")
	case owner != seg:
		c.finding(no, seg, "reachable page belongs to segment %d", owner)
	}
	c.reached[ext] |= bit
}

// Finish reports the pages that are allocated to segments and were not reached.
func (c *Check) Finish() {
	for i := range c.exts {
		d := &c.exts[i]
		for lost := d.used &^ c.reached[i]; lost != 0; lost &= lost - 1 {
			no := uint32(i)*ExtentPages + uint32(bits.TrailingZeros64(lost))
			seg := d.owner
			if d.state != extOwned {
				if seg = c.owners[no]; seg == 0 {
					continue // the space's own, or reported as nobody's already
				}
			}
			c.finding(no, seg, "page is allocated but not reachable")
		}
	}
}

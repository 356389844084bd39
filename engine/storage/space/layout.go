package space

import (
	"encoding/binary"
	"math/bits"

	"github.com/triremedb/trireme/engine/storage/page"
)

// ExtentPages is the number of pages in an extent.
const ExtentPages = 64

// FragmentPages is how many single pages a segment takes before whole extents.
const FragmentPages = 32

// FormatVersion is the file format that this code writes and the newest it reads.
const FormatVersion = 1

// Layout of page 0. Identity fields lie in the first sector.
const (
	offMagic   = page.HeaderSize // 8 bytes
	offFormat  = 40              // u32
	offSpaceNo = 44              // u32
	offDBID    = 48              // 16 bytes
	offState   = 64              // headerSize bytes: see header

	offExtents = 512 // on every descriptor page
	descSize   = 24
	groupExts  = 512 // extents per descriptor page
	groupPages = groupExts * ExtentPages

	offInodes    = offExtents + groupExts*descSize // page 0 only
	inodeSize    = 192
	inodesInline = 8
	offDirectory = offInodes + inodesInline*inodeSize
	dirEntries   = (page.Size - offDirectory) / 4

	inodesPerPage = (page.Size - page.HeaderSize) / inodeSize
	maxSegments   = inodesInline + dirEntries*inodesPerPage
)

const fileMagic = "TRMSPACE"

// none ends a list of extents. Extent 0 is a valid number.
const none = ^uint32(0)

// maxExtents keeps page numbers within 32 bits.
const maxExtents = 1<<26 - 1

var le = binary.LittleEndian

// list heads a list of extents that are linked through their descriptors.
type list struct {
	first uint32
	count uint32
}

func getList(b []byte) list { return list{le.Uint32(b), le.Uint32(b[4:])} }
func (l list) put(b []byte) { le.PutUint32(b, l.first); le.PutUint32(b[4:], l.count) }
func (l list) sane(n uint32) bool {
	if l.count == 0 {
		return l.first == none
	}
	return l.first < n && l.count <= n
}

// header is the changing part of page 0.
//
//	0  size      pages below it are in use or on a list
//	4  fragFree  free pages in the extents on the frag list (bits, also beyond size)
//	8  free      extents that belong to nobody
//	16 frag      shared extents with free pages
//	24 segLimit  inode slots ever used
//	28 segFree   head of the list of free inode slots below segLimit; 0 ends it
//	32 segUsed   segments
type header struct {
	size     uint32
	fragFree uint32
	free     list
	frag     list
	segLimit uint32
	segFree  uint32
	segUsed  uint32
}

const headerSize = 36

func getHeader(p []byte) header {
	b := p[offState : offState+headerSize]
	return header{
		size: le.Uint32(b), fragFree: le.Uint32(b[4:]),
		free: getList(b[8:]), frag: getList(b[16:]),
		segLimit: le.Uint32(b[24:]), segFree: le.Uint32(b[28:]), segUsed: le.Uint32(b[32:]),
	}
}

func (h *header) put(b []byte) {
	le.PutUint32(b, h.size)
	le.PutUint32(b[4:], h.fragFree)
	h.free.put(b[8:])
	h.frag.put(b[16:])
	le.PutUint32(b[24:], h.segLimit)
	le.PutUint32(b[28:], h.segFree)
	le.PutUint32(b[32:], h.segUsed)
}

// extents is the number of extents that have descriptors in use.
func (h *header) extents() uint32 { return (h.size + ExtentPages - 1) / ExtentPages }

// sane reports whether the fields can belong together.
func (h *header) sane() bool {
	n := h.extents()
	return h.size > 0 && n <= maxExtents && (h.size < ExtentPages || h.size%ExtentPages == 0) &&
		h.free.sane(n) && h.frag.sane(n) &&
		h.fragFree <= h.frag.count*ExtentPages &&
		h.segLimit <= maxSegments && h.segFree <= h.segLimit && h.segUsed <= h.segLimit
}

// Extent states. An extent at or beyond the size is extNone.
const (
	extNone   = 0
	extFree   = 1 // on the free list
	extShared = 2 // single pages; on the frag list unless full
	extOwned  = 3 // a segment's; on one of its two lists
)

// desc describes one extent.
//
//	0  owner  segment number, if extOwned
//	4  state
//	8  prev   neighbours in the list that the extent is on
//	12 next
//	16 used   one bit per page
type desc struct {
	owner uint32
	state uint8
	prev  uint32
	next  uint32
	used  uint64
}

// descAt is where extent ext is described: its page and the offset in it.
func descAt(ext uint32) (no uint32, off int) {
	return ext / groupExts * groupPages, offExtents + int(ext%groupExts)*descSize
}

func getDesc(b []byte) desc {
	return desc{le.Uint32(b), b[4], le.Uint32(b[8:]), le.Uint32(b[12:]), le.Uint64(b[16:])}
}

func (d *desc) put(b []byte) {
	le.PutUint32(b, d.owner)
	le.PutUint32(b[4:], uint32(d.state))
	le.PutUint32(b[8:], d.prev)
	le.PutUint32(b[12:], d.next)
	le.PutUint64(b[16:], d.used)
}

func (d *desc) full() bool     { return d.used == ^uint64(0) }
func (d *desc) usedCount() int { return bits.OnesCount64(d.used) }

// freeBit returns a free page of the extent, the first from bit from on if there
// is one, else the first of all; -1 if all are used.
func (d *desc) freeBit(from int) int {
	free := ^d.used
	if free == 0 {
		return -1
	}
	if high := free >> uint(from) << uint(from); high != 0 {
		return bits.TrailingZeros64(high)
	}
	return bits.TrailingZeros64(free)
}

// inode describes one segment.
//
//	0  number       the segment's own number
//	4  state        0 free, 1 used
//	8  nextFree     next free slot, if free
//	12 partialFree  free pages in the extents on the partial list
//	16 partial      extents with free pages
//	24 full         extents without
//	32 fragCount    slots in use
//	64 slots        the single pages; 0 is none
type inode struct {
	number      uint32
	state       uint32
	nextFree    uint32
	partialFree uint32
	partial     list
	full        list
	fragCount   uint32
	slots       [FragmentPages]uint32
}

const offSlots = 64

// inodeIndex is where a segment's inode is: in page 0 (dir < 0), or in the page
// that the directory entry dir names; off is the offset in that page.
func inodeIndex(seg uint32) (dir, off int) {
	i := int(seg - 1)
	if i < inodesInline {
		return -1, offInodes + i*inodeSize
	}
	i -= inodesInline
	return i / inodesPerPage, page.HeaderSize + i%inodesPerPage*inodeSize
}

func getInode(b []byte) (in inode) {
	in.number, in.state, in.nextFree = le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:])
	in.partialFree = le.Uint32(b[12:])
	in.partial, in.full = getList(b[16:]), getList(b[24:])
	in.fragCount = le.Uint32(b[32:])
	for i := range in.slots {
		in.slots[i] = le.Uint32(b[offSlots+4*i:])
	}
	return in
}

func (in *inode) put(b []byte) {
	clear(b[:offSlots])
	le.PutUint32(b, in.number)
	le.PutUint32(b[4:], in.state)
	le.PutUint32(b[8:], in.nextFree)
	le.PutUint32(b[12:], in.partialFree)
	in.partial.put(b[16:])
	in.full.put(b[24:])
	le.PutUint32(b[32:], in.fragCount)
	for i, no := range in.slots {
		le.PutUint32(b[offSlots+4*i:], no)
	}
}

// sane reports whether a segment's inode can belong to a space of n extents.
func (in *inode) sane(seg, n uint32) bool {
	return in.number == seg && in.state <= 1 && in.partial.sane(n) && in.full.sane(n) &&
		uint64(in.partialFree) <= uint64(in.partial.count)*ExtentPages &&
		in.partialFree >= in.partial.count && in.fragCount <= FragmentPages
}

// used is the number of pages that the segment holds; held counts the free pages
// of its extents too.
func (in *inode) pages() (used, held uint32) {
	held = in.fragCount + (in.partial.count+in.full.count)*ExtentPages
	return held - in.partialFree, held
}

// putIdentity fills in what page 0 says about the file, for good.
func putIdentity(p []byte, no uint32, db DatabaseID) {
	copy(p[offMagic:], fileMagic)
	le.PutUint32(p[offFormat:], FormatVersion)
	le.PutUint32(p[offSpaceNo:], no)
	copy(p[offDBID:], db[:])
}

// newHeader is the header of a space that holds page 0 only.
func newHeader() header {
	return header{size: 1, fragFree: ExtentPages - 1, free: list{first: none}, frag: list{first: 0, count: 1}}
}

// firstDesc describes extent 0 of a new space.
func firstDesc() desc { return desc{state: extShared, prev: none, next: none, used: 1} }

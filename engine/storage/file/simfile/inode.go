package simfile

import (
	"math/rand/v2"
	"sort"
)

// inode is a file, or a directory (which holds nothing but its kind).
//
// cur is what reads see and disk what the medium surely holds. They differ at
// most in the chunks that are dirty, and in the sectors that a failed Sync lost.
type inode struct {
	dir   bool
	named bool // has a name in the current tree
	open  int  // open handles

	cur      chunks
	size     int64
	disk     chunks
	diskSize int64

	seq    uint64 // number of the newest change
	synced uint64 // changes up to this one are on disk, unless lost
	// dirty chunks, each with the number of its newest change.
	dirty map[int]uint64
	// lost[i] are the sectors of chunk i that a failed Sync dropped and nothing
	// has written since.
	lost map[int]uint32
	// bad are the sectors that cannot be read until they are written again.
	bad map[int64]bool
	// pending are the changes after synced, oldest first, for crash images to
	// choose from. Empty while overflow is set.
	pending      []change
	pendingBytes int64
	// overflow: there were too many changes to keep since the last Sync. Images
	// then choose between the content on disk and the current one only.
	overflow bool
}

// maxPending bounds the bytes of pending, each change with some overhead.
const (
	maxPending     = 64 << 20
	changeOverhead = 128
)

// change is one unsynced change of a file.
type change struct {
	seq  uint64
	kind changeKind
	off  int64
	n    int64
	data []byte // of a write; nil means n zeros
	size int64  // of the file after it
}

type changeKind uint8

const (
	changeWrite  changeKind = iota // n bytes at off
	changeShrink                   // n bytes from off on are cut off
	changeGrow                     // only the size
)

// clean reports whether nothing is unsynced.
func (ino *inode) clean() bool {
	return len(ino.dirty) == 0 && len(ino.pending) == 0 && !ino.overflow
}

func (ino *inode) write(p []byte, off int64) {
	n := int64(len(p))
	if n == 0 {
		return
	}
	var data []byte
	if !allZero(p) {
		data = append(data, p...)
	}
	ino.seq++
	ino.cur.writeAt(data, off, n)
	ino.touch(off, n)
	ino.size = max(ino.size, off+n)
	ino.record(change{kind: changeWrite, off: off, n: n, data: data})
}

// loseWrite is a write that is seen and never gets to the disk, or, with by, not to its place.
func (ino *inode) loseWrite(p []byte, off, by int64) {
	n := int64(len(p))
	if n == 0 {
		return
	}
	ino.seq++
	ino.cur.writeAt(p, off, n)
	ino.touch(off, n)
	ino.size = max(ino.size, off+n)
	ino.record(change{kind: changeGrow})
	if ino.lost == nil {
		ino.lost = map[int]uint32{}
	}
	for s := off / SectorSize; s <= (off+n-1)/SectorSize; s++ {
		ino.lost[int(s/sectorsPerChunk)] |= 1 << (s % sectorsPerChunk)
	}
	if to := off + by; by != 0 && to >= 0 && to < ino.size {
		p = p[:min(n, ino.size-to)]
		ino.cur.writeAt(p, to, int64(len(p)))
		ino.disk.writeAt(p, to, int64(len(p)))
	}
}

// unreadable reports whether a call meets a sector that cannot be read. A write makes those
// good that it covers.
func (ino *inode) unreadable(off, n int64, read bool) bool {
	if len(ino.bad) == 0 || n <= 0 {
		return false
	}
	for s := off / SectorSize; s <= (off+n-1)/SectorSize; s++ {
		if ino.bad[s] && (read || s*SectorSize < off || (s+1)*SectorSize > off+n && off+n < ino.size) {
			return true
		}
	}
	for s := off / SectorSize; !read && s <= (off+n-1)/SectorSize; s++ {
		delete(ino.bad, s)
	}
	return false
}

// resize sets the size.
func (ino *inode) resize(size int64) {
	if size == ino.size {
		return
	}
	ino.seq++
	c := change{kind: changeGrow}
	if size < ino.size {
		c = change{kind: changeShrink, off: size, n: ino.size - size}
		ino.cur.cut(size)
		ino.touch(c.off, c.n)
	}
	ino.size = size
	ino.record(c)
}

// touch marks the bytes as changed by the newest change.
func (ino *inode) touch(off, n int64) {
	if ino.dirty == nil {
		ino.dirty = map[int]uint64{}
	}
	for first, end := off/SectorSize, (off+n-1)/SectorSize+1; first < end; {
		i := int(first / sectorsPerChunk)
		next := min(end, int64(i+1)*sectorsPerChunk)
		if i >= len(ino.cur) && i >= len(ino.disk) {
			return // zeros on zeros up to the end
		}
		ino.dirty[i] = ino.seq
		if mask := ino.lost[i]; mask != 0 {
			for s := first; s < next; s++ {
				mask &^= 1 << (s % sectorsPerChunk)
			}
			ino.lost[i] = mask
		}
		first = next
	}
}

func (ino *inode) record(c change) {
	if ino.overflow {
		return
	}
	c.seq, c.size = ino.seq, ino.size
	ino.pending = append(ino.pending, c)
	ino.pendingBytes += int64(len(c.data)) + changeOverhead
	if ino.pendingBytes > maxPending {
		ino.pending, ino.pendingBytes, ino.overflow = nil, 0, true
	}
}

// syncPoint is what one Sync has to bring to disk: the file as it was when it
// was called.
type syncPoint struct {
	seq    uint64
	size   int64
	chunks []syncChunk
}

type syncChunk struct {
	at   int
	data *chunk // nil: zeros
	lost uint32
}

// beginSync captures the unsynced chunks, in order.
func (ino *inode) beginSync() syncPoint {
	p := syncPoint{seq: ino.seq, size: ino.size}
	for _, i := range ino.dirtyChunks() {
		c := syncChunk{at: i, lost: ino.lost[i]}
		if i < len(ino.cur) {
			c.data = ino.cur[i]
		}
		c.data.freeze()
		p.chunks = append(p.chunks, c)
	}
	return p
}

func (ino *inode) dirtyChunks() []int {
	list := make([]int, 0, len(ino.dirty))
	for i := range ino.dirty {
		list = append(list, i)
	}
	sort.Ints(list)
	return list
}

// endSync puts a captured state on disk, unless a later Sync was faster.
func (ino *inode) endSync(p syncPoint) {
	if p.seq <= ino.synced {
		return
	}
	for _, c := range ino.pending {
		if c.kind == changeShrink && c.seq <= p.seq {
			ino.disk.cut(c.off) // also what a failed Sync left there
		}
	}
	for _, c := range p.chunks {
		to := c.data
		if lost := c.lost | ino.lost[c.at]; lost != 0 {
			from := to
			if from == nil {
				from = &zeroChunk
			}
			to = merge(from, ino.disk.at(c.at), lost)
			to.freeze()
		}
		ino.disk.set(c.at, to)
	}
	ino.diskSize = p.size
	ino.forget(p.seq)
}

// forget drops the record of changes up to seq.
func (ino *inode) forget(seq uint64) {
	ino.synced = seq
	for i, newest := range ino.dirty {
		if newest <= seq {
			delete(ino.dirty, i)
		}
	}
	drop := sort.Search(len(ino.pending), func(i int) bool { return ino.pending[i].seq > seq })
	for _, c := range ino.pending[:drop] {
		ino.pendingBytes -= int64(len(c.data)) + changeOverhead
	}
	ino.pending = append([]change(nil), ino.pending[drop:]...)
	if ino.overflow && ino.seq == seq {
		ino.overflow = false
	}
}

// failSync is a Sync that the medium failed: each captured sector is on disk or
// lost, drawn at random, and no longer counts as unsynced.
func (ino *inode) failSync(p syncPoint, rng *rand.Rand) {
	if p.seq <= ino.synced {
		return
	}
	odds := rng.IntN(3) // of 2: none, about half or all of the sectors are kept
	for _, c := range p.chunks {
		from := c.data
		if from == nil {
			from = &zeroChunk
		}
		var kept uint32
		for s := range sectorsPerChunk {
			if rng.IntN(2) < odds {
				kept |= 1 << s
			}
		}
		kept &^= c.lost
		to := merge(ino.disk.at(c.at), from, kept)
		to.freeze()
		ino.disk.set(c.at, to)
		if ino.lost == nil {
			ino.lost = map[int]uint32{}
		}
		ino.lost[c.at] |= ^kept
	}
	if rng.IntN(2) < odds {
		ino.diskSize = p.size
		ino.disk.cut(p.size)
	}
	ino.forget(p.seq)
	if ino.diskSize != ino.size {
		// The size is still to be written: unlike data it is not dropped.
		ino.seq++
		kind := changeGrow
		if ino.size < ino.diskSize {
			kind = changeShrink
		}
		ino.record(change{kind: kind, off: ino.size, n: max(0, ino.diskSize-ino.size)})
	}
}

package btree

import (
	"encoding/binary"
	"slices"
)

// moveCost is about what the redo of one move takes, in bytes.
const moveCost = 14

// liveRecord packs a record for sorting by place: offset, size, slot.
func liveRecord(off, size, slot int) uint64 {
	return uint64(off)<<32 | uint64(size)<<16 | uint64(slot)
}

// compact puts the records together, without that of slot except (-1: none), so
// that all garbage is in the gap. Where the records lie in long stretches it moves
// these, which costs little redo; otherwise it rewrites the page.
func (e *editor) compact(v *vitals, except int) {
	b := e.builder()
	live := b.live[:0]
	bytes := 0
	for i := range v.count {
		if i != except {
			s, _, val := e.entry(i)
			size := recHeader + len(s) + len(val)
			live = append(live, liveRecord(e.slot(i).off(), size, i))
			bytes += size
		}
	}
	slices.Sort(live)
	moves, at := 0, 0
	for _, r := range live {
		if off := int(r >> 32); off != at {
			moves++
			at = off
		}
		at += int(uint16(r >> 16))
	}
	if moves*moveCost < bytes/2 {
		e.slide(v, live)
	} else {
		e.rebuild(v, except)
	}
	v.garbage, v.hole, v.holeLen = 0, 0, 0
}

// slide moves the records, given in the order of their places, to the start of
// the heap.
func (e *editor) slide(v *vitals, live []uint64) {
	b := e.builder()
	slots := b.img[slotPos(v.count-1):] // as the directory will be
	copy(slots, e.p[slotPos(v.count-1):])
	at := bodyStart + e.prefixLen() // where the next record goes
	src, dst, n := at, at, 0        // the stretch being collected
	for _, r := range live {
		off, size, i := int(r>>32), int(uint16(r>>16)), int(uint16(r))
		if off != src+n {
			if n > 0 {
				e.c.Move(dst, src, n)
			}
			src, dst, n = off, at, 0
		}
		s := e.slot(i)
		pos := (v.count - 1 - i) * slotSize
		binary.BigEndian.PutUint64(slots[pos:], uint64(makeSlot(s.hint(), at, s.suffixLen())))
		n += size
		at += size
	}
	if n > 0 {
		e.c.Move(dst, src, n)
	}
	v.top = at
	if v.count > 0 {
		e.writeDiff(slotPos(v.count-1), slots)
	}
}

// rebuild writes the page anew.
func (e *editor) rebuild(v *vitals, except int) {
	b := e.builder()
	b.start(e.level(), e.prefix())
	for i := range v.count {
		if i == except {
			b.addHollow(e.builder().key[:e.slot(i).suffixLen()])
			continue
		}
		s, f, val := e.entry(i)
		b.add(nil, s, f, val)
	}
	b.finish(e.skipLimit(v))
	b.copyHeader(e.node)
	b.store(e.c)
	v.top = b.top
}

// skipLimit is how many bytes may be skipped in all keys, that of the insert under
// way included.
func (e *editor) skipLimit(v *vitals) int {
	if e.soon == nil || v.count <= e.first() {
		return e.skip()
	}
	return min(commonLen(e.soon, e.suffix(e.first())), maxSkip)
}

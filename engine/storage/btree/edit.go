package btree

import (
	"encoding/binary"
	"sync"
)

// changer changes the bytes of one page. In production it also logs the change;
// nothing else in this package writes to a page.
type changer interface {
	Write(off int, b []byte)
	Move(dst, src, n int)
}

// editor changes a node in place. It may be pointed at one node after another.
type editor struct {
	node
	c     changer
	buf   *builder // working memory while one change lasts, if it needs any
	soon  []byte   // suffix of the key that is about to be inserted
	tiny  [16]byte
	small [512]byte
}

// builders keeps working memory. What is in it before does not matter.
var builders = sync.Pool{New: func() any { return new(builder) }}

func (e *editor) builder() *builder {
	if e.buf == nil {
		e.buf = builders.Get().(*builder)
	}
	return e.buf
}

// done gives the working memory back. Every change of the node ends with it.
func (e *editor) done() {
	if e.buf != nil {
		builders.Put(e.buf)
		e.buf = nil
	}
}

// room is n bytes of working memory; the next call may return the same.
func (e *editor) room(n int) []byte {
	if n <= len(e.small) {
		return e.small[:n]
	}
	return e.builder().rec[:n]
}

// vitals are the header fields that inserts and removals change.
type vitals struct {
	count, top, last, dir  int
	garbage, hole, holeLen int
}

func (e *editor) vitals() vitals {
	return vitals{
		count: e.count(), top: e.top(), last: e.u16(offLast), dir: int(int16(e.u16(offDir))),
		garbage: e.garbage(), hole: e.u16(offHole), holeLen: e.u16(offHoleLen),
	}
}

func (v *vitals) encode(b *[14]byte) {
	for i, x := range [...]int{v.count, v.top, v.last, v.dir, v.garbage, v.hole, v.holeLen} {
		binary.LittleEndian.PutUint16(b[2*i:], uint16(x))
	}
}

// setVitals writes what differs from the page, as one write.
func (e *editor) setVitals(v *vitals) {
	b := (*[14]byte)(e.tiny[:])
	v.encode(b)
	e.writeDiff(offCount, b[:])
}

// writeDiff writes b at off but for the bytes at both ends that are there already.
func (e *editor) writeDiff(off int, b []byte) {
	old := e.p[off : off+len(b)]
	from := commonLen(old, b)
	if from == len(b) {
		return
	}
	to := len(b)
	for old[to-1] == b[to-1] {
		to--
	}
	e.c.Write(off+from, b[from:to])
}

// fits reports whether an entry with a key of keyLen bytes (prefix included) and
// a value of valueLen bytes has room.
func (n node) fits(keyLen, valueLen int) bool {
	return entryCost(keyLen-n.prefixLen(), valueLen) <= n.free()
}

// fitsUpdate reports whether the value of entry i may become valueLen bytes long.
func (n node) fitsUpdate(i, valueLen int) bool {
	return valueLen-len(n.value(i)) <= n.free()
}

// insert puts an entry before slot i.
//
// REQUIRES: key belongs at i, fits; key and value do not alias the page.
func (e *editor) insert(i int, key []byte, flags byte, value []byte) {
	suffix := key[e.prefixLen():]
	e.adjustSkip(i, suffix)
	v := e.vitals()
	e.soon = suffix
	off := e.place(&v, recHeader+len(suffix)+len(value), 1, -1)
	e.soon = nil
	e.writeRecord(off, suffix, flags, value)
	if n := v.count - i; n > 0 {
		e.c.Move(slotPos(v.count), slotPos(v.count-1), n*slotSize)
	}
	hint := uint32(0)
	if skip := e.skip(); len(suffix) >= skip {
		hint = hintOf(suffix[skip:])
	}
	e.writeSlot(i, makeSlot(hint, off, len(suffix)))
	v.noteInsert(i)
	v.count++
	e.setVitals(&v)
	e.done()
}

// noteInsert keeps track of runs of inserts; it is called before the entry counts.
// A new page may start with the run of the page that it was split off.
func (v *vitals) noteInsert(i int) {
	const longest = 1 << 14
	switch {
	case v.last == noLast && i == v.count && v.dir >= 0, v.last != noLast && i == v.last+1:
		v.dir = min(max(v.dir, 0)+1, longest)
	case v.last == noLast && i == 0, i == v.last:
		v.dir = max(min(v.dir, 0)-1, -longest)
	default:
		v.dir = 0
	}
	v.last = i
}

func (e *editor) writeSlot(i int, s slot) {
	binary.BigEndian.PutUint64(e.tiny[:8], uint64(s))
	e.c.Write(slotPos(i), e.tiny[:8])
}

func (e *editor) writeRecord(off int, suffix []byte, flags byte, value []byte) {
	b := e.room(recHeader + len(suffix) + len(value))
	b[0], b[1], b[2] = flags, byte(len(value)), byte(len(value)>>8)
	copy(b[recHeader+copy(b[recHeader:], suffix):], value)
	e.c.Write(off, b)
}

// place finds room for a record of size bytes and slots further slots. It
// compacts the page if it must; then the record of slot except is dropped.
func (e *editor) place(v *vitals, size, slots, except int) int {
	gap := slotPos(v.count+slots-1) - v.top
	if gap >= 0 && v.holeLen >= size {
		off := v.hole
		v.hole += size
		v.holeLen -= size
		v.garbage -= size
		if v.holeLen == 0 {
			v.hole = 0
		}
		return off
	}
	if gap < size {
		e.compact(v, except)
	}
	off := v.top
	v.top += size
	return off
}

// release gives the bytes of a record back to the heap.
func (v *vitals) release(off, size int) {
	switch {
	case off+size == v.top:
		v.top = off
		if v.holeLen > 0 && v.hole+v.holeLen == v.top {
			v.top = v.hole
			v.garbage -= v.holeLen
			v.hole, v.holeLen = 0, 0
		}
		return
	case v.holeLen > 0 && off+size == v.hole:
		v.hole = off
		v.holeLen += size
	case v.holeLen > 0 && v.hole+v.holeLen == off:
		v.holeLen += size
	case size > v.holeLen:
		v.hole, v.holeLen = off, size
	}
	v.garbage += size
}

// remove takes entry i out.
func (e *editor) remove(i int) {
	v := e.vitals()
	s, _, val := e.entry(i)
	v.release(e.slot(i).off(), recHeader+len(s)+len(val))
	if n := v.count - 1 - i; n > 0 {
		e.c.Move(slotPos(v.count-2), slotPos(v.count-1), n*slotSize)
	}
	v.count--
	switch {
	case v.count == 0:
		v.top = bodyStart + e.prefixLen()
		v.garbage, v.hole, v.holeLen = 0, 0, 0
		v.last, v.dir = noLast, 0
	case v.last == noLast:
	case i < v.last:
		v.last--
	case i == v.last:
		v.last, v.dir = noLast, 0
	}
	e.setVitals(&v)
}

// truncate drops the entries from slot i on, which have been copied elsewhere.
// Their records become garbage; the next insert that needs it compacts the page.
//
// REQUIRES: i > 0, i <= count.
func (e *editor) truncate(i int) {
	v := e.vitals()
	if i == v.count {
		return
	}
	for j := i; j < v.count; j++ {
		s, _, val := e.entry(j)
		v.garbage += recHeader + len(s) + len(val)
	}
	v.count = i
	if v.last != i-1 || v.dir < 0 {
		v.last, v.dir = noLast, 0
	}
	e.setVitals(&v)
}

// update replaces flags and value of entry i.
//
// REQUIRES: fitsUpdate; value does not alias the page.
func (e *editor) update(i int, flags byte, value []byte) {
	s := e.slot(i)
	suffix, oldFlags, old := e.entry(i)
	off := s.off()
	grow := len(value) - len(old)
	v := e.vitals()
	size := recHeader + len(suffix) + len(old)
	if grow > 0 && (off+size != v.top || slotPos(v.count-1)-v.top < grow) {
		e.relocate(i, flags, value)
		return
	}
	if flags != oldFlags || grow != 0 {
		e.tiny = [16]byte{flags, byte(len(value)), byte(len(value) >> 8)}
		e.writeDiff(off, e.tiny[:recHeader])
	}
	valueOff := off + recHeader + len(suffix)
	if grow == 0 {
		e.writeDiff(valueOff, value)
		return
	}
	if len(value) > 0 {
		e.writeDiff(valueOff, value)
	}
	if grow > 0 {
		v.top += grow
	} else {
		v.release(valueOff+len(value), -grow)
	}
	e.setVitals(&v)
}

// relocate is update for a record that cannot grow where it is.
func (e *editor) relocate(i int, flags byte, value []byte) {
	s := e.slot(i)
	suffix, _, old := e.entry(i)
	size := recHeader + len(suffix) + len(old)
	suffix = append(e.builder().key[:0], suffix...)
	v := e.vitals()
	v.release(s.off(), size)
	off := e.place(&v, size+len(value)-len(old), 0, i)
	e.writeRecord(off, suffix, flags, value)
	// The hint comes from the page: compaction may have changed it.
	e.writeSlot(i, makeSlot(e.slot(i).hint(), off, len(suffix)))
	e.setVitals(&v)
	e.done()
}

// patch overwrites bytes of a value.
func (e *editor) patch(i, off int, b []byte) {
	s := e.slot(i)
	if off+len(b) > len(e.value(i)) {
		panic("btree: patch beyond the end of the value")
	}
	e.writeDiff(s.off()+recHeader+s.suffixLen()+off, b)
}

func (e *editor) setFlags(i int, flags byte) {
	off := e.slot(i).off()
	if e.p[off] != flags {
		e.tiny[0] = flags
		e.c.Write(off, e.tiny[:1])
	}
}

// adjustSkip makes the skipped bytes common to all keys with that of the insert
// of suffix at slot i. They only ever get fewer, so the hints of a page are
// rewritten at most maxSkip times between two rebuilds.
func (e *editor) adjustSkip(i int, suffix []byte) {
	first, n, skip := e.first(), e.count(), e.skip()
	if i < first {
		return // slot 0 of an inner node has no key
	}
	if n <= first {
		// Keys that follow will differ in the last bytes, most likely.
		e.setSkip(min(max(len(suffix)-2, 0), maxSkip), suffix)
		return
	}
	now := commonLen(suffix, e.p[offSkipBytes:offSkipBytes+skip])
	if now == skip {
		return
	}
	e.setSkip(now, suffix)
	b := e.room((n - first) * slotSize)
	for j := first; j < n; j++ {
		s := e.slot(j)
		hint := hintOf(e.suffix(j)[now:])
		binary.BigEndian.PutUint64(b[(n-1-j)*slotSize:], uint64(makeSlot(hint, s.off(), s.suffixLen())))
	}
	if len(b) > 0 {
		e.c.Write(slotPos(n-1), b)
	}
}

// setSkip writes the skip length and the skipped bytes, the first of suffix.
func (e *editor) setSkip(n int, suffix []byte) {
	if e.skip() != n {
		e.tiny[0] = byte(n)
		e.c.Write(offSkip, e.tiny[:1])
	}
	if n > 0 {
		e.writeDiff(offSkipBytes, append(e.tiny[:0], suffix[:n]...))
	}
}

func (e *editor) setMaxTrx(id uint64) {
	binary.LittleEndian.PutUint64(e.tiny[:8], id)
	e.writeDiff(offMaxTrx, e.tiny[:8])
}

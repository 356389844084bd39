package btree

import (
	"encoding/binary"

	"github.com/triremedb/trireme/engine/storage/page"
)

// builder assembles a node from scratch, aside; store then writes it over a page.
// Entries come in key order.
type builder struct {
	img  [page.Size]byte
	rec  [page.Size]byte // working memory of editor
	key  [MaxKey]byte    // likewise
	top  int
	n    int
	plen int

	hollowKey []byte
	live      [maxSlots]uint64 // working memory of compact
}

// start begins a node with the given prefix.
func (b *builder) start(level int, prefix []byte) {
	clear(b.img[:bodyStart])
	b.img[offLevel] = byte(level)
	binary.LittleEndian.PutUint16(b.img[offPrefixLen:], uint16(len(prefix)))
	copy(b.img[bodyStart:], prefix)
	b.plen, b.top, b.n = len(prefix), bodyStart+len(prefix), 0
	binary.LittleEndian.PutUint16(b.img[offLast:], noLast)
}

// add appends the entry whose key is head+tail after the builder's prefix.
//
// REQUIRES: it fits.
func (b *builder) add(head, tail []byte, flags byte, value []byte) {
	off := b.top
	b.img[off] = flags
	binary.LittleEndian.PutUint16(b.img[off+1:], uint16(len(value)))
	at := off + recHeader
	at += copy(b.img[at:], head)
	at += copy(b.img[at:], tail)
	at += copy(b.img[at:], value)
	b.top = at
	b.put(makeSlot(0, off, len(head)+len(tail)))
}

// addHollow appends a slot without a record: its key is suffix; the caller sets
// its offset later. At most one a node.
//
// REQUIRES: suffix stays as it is until finish.
func (b *builder) addHollow(suffix []byte) {
	b.hollowKey = suffix
	b.put(makeSlot(0, hollow, len(suffix)))
}

// hollow is the offset of a slot whose record is still to come.
const hollow = 0

func (b *builder) put(s slot) {
	binary.BigEndian.PutUint64(b.img[slotPos(b.n):], uint64(s))
	b.n++
}

// addFrom appends entry i of src with its key cut to the builder's prefix.
//
// REQUIRES: the key has the prefix; src is not the page to which the result goes
// unless it is stored at the end as a whole.
func (b *builder) addFrom(src node, i int) {
	suffix, flags, value := src.entry(i)
	head, tail := cutKey(src.prefix(), suffix, b.plen)
	b.add(head, tail, flags, value)
}

// addChildFrom is addFrom that keeps slot 0 of an inner node without a key.
func (b *builder) addChildFrom(src node, i int) {
	if i < src.first() {
		b.add(nil, nil, 0, src.value(i))
		return
	}
	b.addFrom(src, i)
}

// cutKey drops the first n bytes of head+tail.
func cutKey(head, tail []byte, n int) (h, t []byte) {
	if n <= len(head) {
		return head[n:], tail
	}
	return nil, tail[min(n-len(head), len(tail)):]
}

func (b *builder) node() node { return node{&b.img} }

// suffix is the key of slot i, a hollow one included.
func (b *builder) suffix(i int) []byte {
	s := b.node().slot(i)
	if s.off() == hollow {
		return b.hollowKey
	}
	return b.node().suffix(i)
}

// finish computes the skipped bytes, at most limit of them, and the hints.
func (b *builder) finish(limit int) {
	n := b.node()
	binary.LittleEndian.PutUint16(b.img[offCount:], uint16(b.n))
	binary.LittleEndian.PutUint16(b.img[offTop:], uint16(b.top))
	first := n.first()
	skip := 0
	switch {
	case b.n == first+1:
		s := b.suffix(first)
		skip = min(max(len(s)-2, 0), limit)
		copy(b.img[offSkipBytes:], s[:skip])
	case b.n > first+1:
		s := b.suffix(first)
		skip = min(commonLen(s, b.suffix(b.n-1)), limit)
		copy(b.img[offSkipBytes:], s[:skip])
	}
	b.img[offSkip] = byte(skip)
	for i := first; i < b.n; i++ {
		s := n.slot(i)
		hint := hintOf(b.suffix(i)[skip:])
		binary.BigEndian.PutUint64(b.img[slotPos(i):], uint64(makeSlot(hint, s.off(), s.suffixLen())))
	}
}

// copyHeader takes over what belongs to the page rather than to its entries.
func (b *builder) copyHeader(from node) {
	copy(b.img[offLeafSeg:offCount], from.p[offLeafSeg:offCount])
	copy(b.img[offLast:offGarbage], from.p[offLast:offGarbage])
}

func (b *builder) setMaxTrx(id uint64) { binary.LittleEndian.PutUint64(b.img[offMaxTrx:], id) }

// setRun sets the slot of the last insert and the length of its run.
func (b *builder) setRun(last, run int) {
	binary.LittleEndian.PutUint16(b.img[offLast:], uint16(last))
	binary.LittleEndian.PutUint16(b.img[offDir:], uint16(run))
}

func (b *builder) setSegments(leaf, inner uint32) {
	binary.LittleEndian.PutUint32(b.img[offLeafSeg:], leaf)
	binary.LittleEndian.PutUint32(b.img[offInnerSeg:], inner)
}

// load takes a whole node as it is.
func (b *builder) load(from node) {
	b.plen, b.top, b.n = from.prefixLen(), from.top(), from.count()
	copy(b.img[page.HeaderSize:b.top], from.p[page.HeaderSize:b.top])
	slots := slotPos(b.n - 1)
	copy(b.img[slots:], from.p[slots:])
}

// store writes the node over a page.
func (b *builder) store(c changer) {
	c.Write(page.HeaderSize, b.img[page.HeaderSize:b.top])
	if b.n > 0 {
		c.Write(slotPos(b.n-1), b.img[slotPos(b.n-1):])
	}
}

package btree

import (
	"bytes"

	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// Cursor stands on an entry of a tree, or between two, and holds the latch of one
// leaf. It belongs to one mini-transaction and is reused without allocating.
//
// A cursor must be told to Leave before its mini-transaction commits; Return
// takes it back to where it was, cheaply if nothing has changed there. At most one
// cursor of a mini-transaction may stand on a leaf.
//
// Key, Value and what At returns are valid until the cursor moves, the leaf
// changes or the latch is dropped.
type Cursor struct {
	t *Tree
	m *mtr.Mtr

	page  mtr.Page // the leaf
	n     node
	i     int // slot; -1: before the first, count: after the last entry of the leaf
	mode  mtr.Mode
	state cursorState
	kept  bool // the leaf was changed, or held before: its latch stays until the commit
	steps int  // leaves gone forward without a break

	lo, hi   []byte // bounds of the leaf: lo <= key < hi
	hiOpen   bool
	par      parent
	last     lastLeaf
	plo, phi []byte // bounds of par
	phiOpen  bool
	descents uint32

	keyBuf []byte // what Key returned
	posBuf []byte // position after Leave; search key of a step
	at     place
	frame  uint32
	vers   uint64

	ed editor
	pc pageChanger

	ahead [prefetchPages]page.ID
}

type cursorState uint8

const (
	unset   cursorState = iota
	latched             // on c.page
	left                // after Leave
)

// place is what a cursor that has left remembers besides the slot.
type place uint8

const (
	onKey   place = iota // posBuf is the key
	atStart              // before every entry
	atEnd                // after every entry of its leaf; posBuf is the leaf's bound unless open
	atTail               // after every entry
)

// NewCursor returns a cursor that works in m.
func (t *Tree) NewCursor(m *mtr.Mtr) *Cursor {
	c := &Cursor{}
	c.Init(t, m)
	return c
}

// Init makes c a cursor of t in m; its buffers are kept. The cursor must not hold
// a leaf.
func (c *Cursor) Init(t *Tree, m *mtr.Mtr) {
	if c.state == latched {
		panic("btree: Init of a cursor that holds a leaf")
	}
	c.t, c.m, c.state = t, m, unset
	c.pc.m = m
	c.ed.c = &c.pc
}

// Tree is the tree that the cursor belongs to.
func (c *Cursor) Tree() *Tree { return c.t }

// Mtr is the mini-transaction that the cursor works in.
func (c *Cursor) Mtr() *mtr.Mtr { return c.m }

// Reset drops the leaf, if any, and forgets the position. Like Leave it leaves a
// changed leaf to the commit.
func (c *Cursor) Reset() { c.drop() }

// drop gives up the latch; a changed leaf keeps it until the commit.
func (c *Cursor) drop() {
	if c.state == latched && !c.kept {
		c.m.Release(c.page)
	}
	c.state, c.kept = unset, false
}

// SeekLeaf goes to the leaf to which key belongs and there to the first entry not
// below key, and reports whether that is key. If all entries of the leaf are below
// key the cursor stands at the leaf's end and is not Valid, although the next leaf
// may have entries: this is the place for inserting key.
func (c *Cursor) SeekLeaf(key []byte, mode mtr.Mode) (exact bool, err error) {
	c.drop()
	if !c.again(key, mode) {
		if err := c.descend(atKey, key, mode); err != nil {
			return false, err
		}
	}
	c.state, c.steps = latched, 0
	c.i, exact = c.n.search(key)
	return exact, nil
}

// Seek goes to the first entry not below key and reports whether that is key. The
// cursor is not Valid if there is none.
func (c *Cursor) Seek(key []byte, mode mtr.Mode) (exact bool, err error) {
	if exact, err = c.SeekLeaf(key, mode); err != nil || exact || c.i < c.n.count() {
		return exact, err
	}
	return false, c.NextLeaf()
}

// SeekBefore goes to the last entry below key (inclusive: not above it). The
// cursor is not Valid if there is none.
func (c *Cursor) SeekBefore(key []byte, mode mtr.Mode, inclusive bool) error {
	c.drop()
	a := beforeKey
	if inclusive {
		a = atKey
	}
	if err := c.descend(a, key, mode); err != nil {
		return err
	}
	c.state, c.steps = latched, 0
	i, exact := c.n.search(key)
	c.i = i
	if exact && inclusive {
		return nil
	}
	return c.Prev()
}

// First goes to the first entry of the tree.
func (c *Cursor) First(mode mtr.Mode) error {
	c.drop()
	if err := c.descend(atFirst, nil, mode); err != nil {
		return err
	}
	c.state, c.steps, c.i = latched, 0, 0
	if c.n.count() == 0 {
		return c.NextLeaf()
	}
	return nil
}

// Last goes to the last entry of the tree.
func (c *Cursor) Last(mode mtr.Mode) error {
	c.drop()
	if err := c.descend(atLast, nil, mode); err != nil {
		return err
	}
	c.state, c.steps, c.i = latched, 0, c.n.count()
	return c.Prev()
}

// Valid reports whether the cursor stands on an entry.
func (c *Cursor) Valid() bool {
	return c.state == latched && uint(c.i) < uint(c.n.count())
}

// Held reports whether the cursor holds a leaf.
func (c *Cursor) Held() bool { return c.state == latched }

// Key is the entry's key, in the cursor's own buffer.
//
// REQUIRES: Valid; so do Value and Flags.
func (c *Cursor) Key() []byte {
	c.keyBuf = c.n.appendKey(c.keyBuf[:0], c.i)
	return c.keyBuf
}

// AppendKey appends the key of entry i of the leaf.
func (c *Cursor) AppendKey(dst []byte, i int) []byte { return c.n.appendKey(dst, i) }

// Value is the entry's value; it aliases the page.
func (c *Cursor) Value() []byte { return c.n.value(c.i) }

// Flags is the entry's flags byte.
func (c *Cursor) Flags() byte { return c.n.flags(c.i) }

// LeafLen is the number of entries in the leaf. With Pos, SetPos, At and Prefix it
// lets a scan work through a leaf in one loop, followed by NextLeaf.
func (c *Cursor) LeafLen() int { return c.n.count() }

// Pos is the cursor's position in the leaf, 0 to LeafLen-1 if Valid.
func (c *Cursor) Pos() int { return c.i }

// SetPos moves the cursor within the leaf: -1 to LeafLen.
func (c *Cursor) SetPos(i int) { c.i = i }

// Prefix is what all keys of the leaf start with.
func (c *Cursor) Prefix() []byte { return c.n.prefix() }

// At returns entry i of the leaf: its key after Prefix, its flags and its value.
// The slices alias the page.
func (c *Cursor) At(i int) (suffix []byte, flags byte, value []byte) { return c.n.entry(i) }

// Search finds, in the leaf, the first position not below key. Like SeekLeaf, it
// answers for keys within Bounds only.
func (c *Cursor) Search(key []byte) (pos int, exact bool) { return c.n.search(key) }

// Bounds are the limits of the keys that belong to the leaf: lo <= key < hi, hi
// nil: no limit. They are valid until the cursor moves.
func (c *Cursor) Bounds() (lo, hi []byte) {
	if c.hiOpen {
		return c.lo, nil
	}
	return c.lo, c.hi
}

// Next moves to the next entry; at the end the cursor is not Valid.
//
// REQUIRES: the leaf is held and, if it is to be left, not changed through it; the
// same goes for Prev, NextLeaf and PrevLeaf.
func (c *Cursor) Next() error {
	c.i++
	if c.i < c.n.count() {
		return nil
	}
	return c.NextLeaf()
}

// Prev moves to the previous entry; at the start the cursor is not Valid.
func (c *Cursor) Prev() error {
	c.i--
	if c.i >= 0 {
		return nil
	}
	return c.PrevLeaf()
}

// NextLeaf moves to the first entry of the next leaf that has any. If there is
// none the cursor stays after its last entry and is not Valid.
func (c *Cursor) NextLeaf() error {
	c.mustBeLatched()
	for {
		if c.hiOpen {
			c.i = c.n.count()
			return nil
		}
		if err := c.stepRight(); err != nil {
			return err
		}
		if c.i < c.n.count() {
			return nil
		}
	}
}

// PrevLeaf moves to the last entry of the previous leaf that has any. If there is
// none the cursor stays before its first entry and is not Valid.
func (c *Cursor) PrevLeaf() error {
	c.mustBeLatched()
	for {
		if len(c.lo) == 0 {
			c.i = -1
			return nil
		}
		if err := c.stepLeft(); err != nil {
			return err
		}
		if c.i >= 0 {
			return nil
		}
	}
}

func (c *Cursor) mustBeLatched() {
	if c.state != latched {
		panic("btree: the cursor holds no leaf")
	}
}

// stepRight goes to the leaf right of this one, or to wherever what was right of
// it has got to meanwhile: to the first entry not below the old leaf's upper bound.
func (c *Cursor) stepRight() error {
	c.letGo()
	if ok, err := c.sibling(1); err != nil {
		return err
	} else if ok {
		c.state, c.i = latched, 0
		return c.checkProgress(c.lo, c.hi, c.hiOpen)
	}
	c.posBuf = append(c.posBuf[:0], c.hi...)
	if err := c.descend(atKey, c.posBuf, c.mode); err != nil {
		return err
	}
	c.state = latched
	c.i, _ = c.n.search(c.posBuf)
	return c.checkProgress(c.posBuf, c.hi, c.hiOpen)
}

// stepLeft goes to the last entry below the leaf's lower bound, like stepRight.
func (c *Cursor) stepLeft() error {
	c.letGo()
	c.steps = 0
	if ok, err := c.sibling(-1); err != nil {
		return err
	} else if ok {
		c.state, c.i = latched, c.n.count()-1
		return c.checkProgress(c.lo, c.hi, false)
	}
	c.posBuf = append(c.posBuf[:0], c.lo...)
	if err := c.descend(beforeKey, c.posBuf, c.mode); err != nil {
		return err
	}
	c.state = latched
	i, _ := c.n.search(c.posBuf)
	c.i = i - 1
	return c.checkProgress(c.lo, c.posBuf, false)
}

// letGo drops the leaf for the sake of a neighbour.
func (c *Cursor) letGo() {
	if c.kept {
		panic("btree: cursor leaves a changed leaf before the commit")
	}
	c.m.Release(c.page)
	c.state, c.last = unset, lastLeaf{}
}

// checkProgress makes sure that a scan does not go round in circles on separators
// out of order: below must be below above.
func (c *Cursor) checkProgress(below, above []byte, open bool) error {
	if open || bytes.Compare(below, above) < 0 {
		return nil
	}
	err := corrupt(c.page.Data, "separators out of order above index page", 0, 0)
	c.drop()
	return err
}

// sibling goes to the neighbouring leaf under the same parent, if there is one
// and the parent has not changed since the cursor saw it.
func (c *Cursor) sibling(step int) (ok bool, err error) {
	p := &c.par
	pool := c.t.pool
	if !p.known || !pool.Validate(p.frame, p.version) {
		return false, nil
	}
	var n node
	mark := c.m.Mark()
	if buffer.OptimisticReads {
		data, frame, version, ok := pool.Optimistic(p.id)
		if !ok || frame != p.frame || version != p.version {
			return false, nil
		}
		n = nodeOf(data)
	} else {
		pg, err := c.m.Get(p.id, mtr.S)
		if err != nil {
			return false, nil // freed since; the descent from the root will tell
		}
		defer c.m.Release(pg)
		if pg.Frame != p.frame || pool.Version(pg.Frame) != p.version {
			return false, nil
		}
		n = nodeOf(pg.Data)
		mark = c.m.Mark()
	}
	s := p.slot + step
	if s < 0 || s >= n.count() {
		return false, nil
	}
	id := c.t.id(n.child(s))
	open := step > 0 && s+1 >= n.count() && c.phiOpen
	c.posBuf = c.outerBound(c.posBuf[:0], n, s, step)
	c.prefetch(n, s, step)
	if !pool.Validate(p.frame, p.version) {
		return false, nil
	}
	if buffer.OptimisticReads {
		c.t.env.Yield()
	}
	pg, err := c.m.Get(id, c.mode)
	if !pool.Validate(p.frame, p.version) {
		c.m.ReleaseTo(mark)
		return false, nil
	}
	if err == nil {
		err = c.t.checkPage(nodeOf(pg.Data), 0)
	}
	if err != nil {
		c.m.ReleaseTo(mark)
		return false, err
	}
	c.page, c.n, p.slot, c.hiOpen = pg, nodeOf(pg.Data), s, open
	c.kept = c.m.Mark() == mark
	c.last = lastLeaf{tree: c.t, id: id}
	if step > 0 {
		c.lo, c.hi, c.posBuf = c.hi, c.posBuf, c.lo
	} else {
		c.hi, c.lo, c.posBuf = c.lo, c.posBuf, c.hi
	}
	return true, nil
}

// outerBound appends the far bound of the child in slot s, seen in the direction
// of step.
func (c *Cursor) outerBound(dst []byte, n node, s, step int) []byte {
	switch {
	case step > 0 && s+1 < n.count():
		return n.appendKey(dst, s+1)
	case step > 0:
		return append(dst, c.phi...)
	case s > 0:
		return n.appendKey(dst, s)
	default:
		return append(dst, c.plo...)
	}
}

// A scan that has passed prefetchAfter leaves asks for the next prefetchPages
// children of the parent, each time it has used up half of them.
const (
	prefetchAfter = 4
	prefetchPages = 16
)

// prefetch asks the pool for the leaves after slot s.
func (c *Cursor) prefetch(n node, s, step int) {
	if step < 0 {
		return
	}
	c.steps++
	if c.steps < prefetchAfter || (c.steps-prefetchAfter)%(prefetchPages/2) != 0 {
		return
	}
	k := 0
	for i := s + 1; i < n.count() && k < prefetchPages; i++ {
		if no := n.child(i); no != page.None {
			c.ahead[k] = c.t.id(no)
			k++
		}
	}
	if k > 0 && c.t.pool.Validate(c.par.frame, c.par.version) {
		c.t.pool.Prefetch(c.ahead[:k])
	}
}

// Leave remembers the position and drops the latch. If the leaf was changed its
// latch is kept, by the mini-transaction, until the commit.
func (c *Cursor) Leave() {
	c.mustBeLatched()
	switch {
	case uint(c.i) < uint(c.n.count()):
		c.at = onKey
		c.posBuf = c.n.appendKey(c.posBuf[:0], c.i)
	case c.i < 0 && len(c.lo) == 0:
		c.at = atStart
	case c.hiOpen:
		c.at = atTail
	default:
		c.at = atEnd
		c.posBuf = append(c.posBuf[:0], c.hi...)
	}
	c.frame = c.page.Frame
	c.vers = c.t.pool.Version(c.frame)
	if !c.t.pool.Validate(c.frame, c.vers) {
		c.vers++ // held in X: the version it will have once it is released
	}
	c.drop()
	c.state = left
}

// Return latches the leaf again and goes to where the cursor was. same says that
// it stands on the entry with the same key or, if it was on none, that the leaf is
// unchanged. Otherwise the cursor is on the first entry after where it was, or not
// Valid if there is none. Flags and value of the entry may have changed in any case.
//
// REQUIRES: Leave was the last call.
func (c *Cursor) Return(mode mtr.Mode) (same bool, err error) {
	if c.state != left {
		panic("btree: Return without Leave")
	}
	if c.t.pool.Validate(c.frame, c.vers) || c.par.known && c.t.pool.Validate(c.par.frame, c.par.version) {
		if ok, same := c.returnToLeaf(mode); ok {
			return same, nil
		}
	}
	switch c.at {
	case atStart:
		return false, c.First(mode)
	case atTail:
		if err = c.Last(mode); err == nil {
			c.i = c.n.count()
		}
		return false, err
	default:
		// Not posBuf itself: a step to the next leaf uses it.
		c.keyBuf = append(c.keyBuf[:0], c.posBuf...)
		exact, err := c.Seek(c.keyBuf, mode)
		return exact && c.at == onKey, err
	}
}

// returnToLeaf is Return where the leaf is still the one for the position.
func (c *Cursor) returnToLeaf(mode mtr.Mode) (ok, same bool) {
	c.t.env.Yield()
	mark := c.m.Mark()
	p, err := c.m.Get(c.last.id, mode)
	if err != nil {
		return false, false // the way from the root will meet the error, if it is one
	}
	unchanged := p.Frame == c.frame && c.t.pool.Version(p.Frame) == c.vers
	if !unchanged && !(c.par.known && c.t.pool.Validate(c.par.frame, c.par.version)) {
		c.m.ReleaseTo(mark)
		return false, false
	}
	n := nodeOf(p.Data)
	if c.t.checkPage(n, 0) != nil {
		c.m.ReleaseTo(mark)
		return false, false
	}
	i, exact := c.i, true
	if !unchanged {
		if c.at == onKey {
			i, exact = n.search(c.posBuf)
		}
		if c.at != onKey || i == n.count() {
			c.m.ReleaseTo(mark)
			return false, false
		}
	}
	c.page, c.n, c.i, c.mode, c.state = p, n, i, mode, latched
	c.kept = c.m.Mark() == mark
	return true, exact
}

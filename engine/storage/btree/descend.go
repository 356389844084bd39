package btree

import (
	"bytes"

	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// aim says which leaf a descent is after.
type aim uint8

const (
	atKey     aim = iota // the leaf to which the key belongs
	beforeKey            // the leaf to which the last key below belongs
	atFirst
	atLast
)

// optimisticTries is how often a descent starts without latches before it takes
// them; latchEvery makes a cursor take them now and then all the same, since only
// latching tells the buffer pool that inner nodes are in use.
const (
	optimisticTries = 3
	latchEvery      = 64
)

// choose returns the slot to go down through. The result is a valid slot number
// even for senseless bytes.
func (n node) choose(a aim, key []byte) int {
	var i int
	switch a {
	case atKey:
		i = n.route(key)
	case beforeKey:
		i = n.routeBefore(key)
	case atFirst:
		i = 0
	default:
		i = n.count() - 1
	}
	return min(max(i, 0), maxSlots-2)
}

// parent is the node above a leaf as a descent saw it: the slot holds while the
// frame has the version.
type parent struct {
	id      page.ID
	frame   uint32
	version uint64
	slot    int
	known   bool
}

// lastLeaf is the leaf where the cursor is or was, whose bounds and parent it knows. It outlives the latch: as long as
// the parent has the same version the leaf is where its keys are.
type lastLeaf struct {
	tree *Tree // nil: none
	id   page.ID
}

// again latches the leaf where the cursor was last, if the key belongs there. Those who work
// through a tree in the order of its keys, a mini-transaction a row, save most descents by it.
// key must not alias the cursor's bounds.
//
// REQUIRES: no leaf is held.
func (c *Cursor) again(key []byte, mode mtr.Mode) bool {
	p := &c.par
	if c.last.tree != c.t || !p.known || bytes.Compare(key, c.lo) < 0 || !c.hiOpen && bytes.Compare(key, c.hi) >= 0 {
		return false
	}
	if (c.descents+1)%latchEvery == 0 || !c.t.pool.Validate(p.frame, p.version) {
		return false
	}
	c.descents++
	c.t.env.Yield() // for simulations: here others may change the structure
	mark := c.m.Mark()
	pg, err := c.m.Get(c.last.id, mode)
	if err != nil {
		return false // the way from the root will meet the error, if it is one
	}
	if n := nodeOf(pg.Data); c.t.pool.Validate(p.frame, p.version) && c.t.checkPage(n, 0) == nil {
		c.page, c.n, c.mode, c.kept = pg, n, mode, c.m.Mark() == mark
		return true
	}
	c.m.ReleaseTo(mark)
	return false
}

// above is what a descent holds of the node that it comes from: its latch, or its
// version.
type above struct {
	page    mtr.Page
	frame   uint32
	version uint64
	latched bool
	is      bool
}

// descend latches the leaf that a and key name and sets the cursor's leaf, bounds
// and parent. key must not alias the cursor's bounds.
func (c *Cursor) descend(a aim, key []byte, mode mtr.Mode) error {
	c.descents++
	optimistic := buffer.OptimisticReads && c.descents%latchEvery != 0
	for try := 0; ; try++ {
		ok, err := c.attempt(a, key, mode, optimistic && try < optimisticTries)
		if err != nil || ok {
			return err
		}
		c.t.env.Yield()
	}
}

// attempt is one descent; ok is false if it must be started again.
func (c *Cursor) attempt(a aim, key []byte, mode mtr.Mode, optimistic bool) (ok bool, err error) {
	t := c.t
	var up above
	defer c.leaveAbove(&up)
	c.lo, c.hi, c.hiOpen = c.lo[:0], c.hi[:0], true
	c.par.known, c.last = false, lastLeaf{}
	id, level := t.root, -1
	for {
		if optimistic && level != 0 && !(level < 0 && t.flat.Load()) {
			down, again := c.stepOptimistic(a, key, &id, &level, &up)
			if again {
				return false, nil
			}
			if down {
				continue
			}
		}
		want := mtr.S
		if level == 0 || level < 0 && t.flat.Load() {
			want = mode
		}
		if up.is && !up.latched {
			t.env.Yield() // for simulations: here others may change the structure
		}
		mark := c.m.Mark()
		p, err := c.m.Get(id, want)
		if err != nil {
			// A page number read from a node that has changed since may lead anywhere.
			if up.is && !up.latched && !t.pool.Validate(up.frame, up.version) {
				return false, nil
			}
			return false, err
		}
		if up.is && !up.latched && !t.pool.Validate(up.frame, up.version) {
			c.m.ReleaseTo(mark)
			return false, nil
		}
		n := nodeOf(p.Data)
		if err := t.checkPage(n, level); err != nil {
			c.m.ReleaseTo(mark)
			return false, err
		}
		if level < 0 {
			t.noteRoot(n.level())
		}
		if n.level() == 0 {
			if want != mode {
				c.m.ReleaseTo(mark)
				return false, nil // the root turned out to be a leaf
			}
			c.page, c.n, c.mode, c.kept = p, n, mode, c.m.Mark() == mark
			c.last = lastLeaf{tree: t, id: id}
			return true, nil
		}
		if want == mtr.X {
			c.m.ReleaseTo(mark)
			return false, nil // the root is no leaf any more
		}
		s := n.choose(a, key)
		child := n.child(s)
		if child == page.None || s >= n.count() {
			err := corrupt(p.Data, "child pointer in slot", 0, uint64(s))
			c.m.ReleaseTo(mark)
			return false, err
		}
		c.noteBounds(n, s)
		c.leaveAbove(&up)
		up = above{page: p, frame: p.Frame, version: t.pool.Version(p.Frame), latched: true, is: true}
		c.par = parent{id: id, frame: up.frame, version: up.version, slot: s, known: true}
		id.No, level = child, n.level()-1
	}
}

// stepOptimistic goes one level down without latching. down is false if the node
// must be latched; again is true if the descent must be started again.
func (c *Cursor) stepOptimistic(a aim, key []byte, id *page.ID, level *int, up *above) (down, again bool) {
	pool := c.t.pool
	data, frame, version, ok := pool.Optimistic(*id)
	if !ok {
		return false, false
	}
	n := nodeOf(data)
	l := n.level()
	if l == 0 || *level >= 0 && l != *level {
		return false, false // a root that is a leaf, a node in change, or a bad page: latch and see
	}
	s := n.choose(a, key)
	child := n.child(s)
	count := n.count()
	c.noteBounds(n, s)
	if !pool.Validate(frame, version) {
		return false, true
	}
	if up.is && !up.latched && !pool.Validate(up.frame, up.version) {
		return false, true
	}
	if child == page.None || s >= count || l > MaxLevel {
		return false, true // latched, this will become an error
	}
	c.leaveAbove(up)
	*up = above{frame: frame, version: version, is: true}
	c.par = parent{id: *id, frame: frame, version: version, slot: s, known: true}
	id.No, *level = child, l-1
	return true, false
}

// noteBounds narrows the cursor's bounds to those of the child in slot s, and
// keeps those of the node as the parent's.
func (c *Cursor) noteBounds(n node, s int) {
	c.plo, c.lo = c.lo, c.plo
	c.phi, c.hi = c.hi, c.phi
	c.phiOpen = c.hiOpen
	if s > 0 {
		c.lo = n.appendKey(c.lo[:0], s)
	} else {
		c.lo = append(c.lo[:0], c.plo...)
	}
	if s+1 < n.count() {
		c.hi, c.hiOpen = n.appendKey(c.hi[:0], s+1), false
	} else {
		c.hi = append(c.hi[:0], c.phi...)
	}
}

// leaveAbove drops the latch of the node above, if there is one.
func (c *Cursor) leaveAbove(up *above) {
	if up.latched {
		c.m.Release(up.page)
	}
	*up = above{}
}

// noteRoot remembers whether the root is a leaf.
func (t *Tree) noteRoot(level int) {
	if flat := level == 0; t.flat.Load() != flat {
		t.flat.Store(flat)
	}
}

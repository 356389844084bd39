package btree

import (
	"sync"

	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// work is the working memory of one structure change. Only who holds the tree's
// smo mutex has one, so the inner nodes stand still around it: nobody else
// changes them.
type work struct {
	t        *Tree
	m        *mtr.Mtr
	path     []step
	parent   change
	node     change
	other    change
	left     builder
	right    builder
	keyA     []byte
	keyB     []byte
	sep      []byte
	leafSeg  uint32
	innerSeg uint32
	cautious bool // reckon with the longest separators
}

// change is a page that is being changed.
type change struct {
	page mtr.Page
	pc   pageChanger
	ed   editor
}

// step is one node on the way from the root to a leaf, as it was seen in passing.
type step struct {
	no     uint32
	slot   int // of the child that the way goes on through; inner nodes
	level  int
	count  int
	free   int
	prefix int // its length
	lo, hi []byte
	hiOpen bool
	sepMax int // a separator for splitting this node is no longer than that
}

var works = sync.Pool{New: func() any { return new(work) }}

// begin takes the tree's structure mutex.
func (t *Tree) begin() *work {
	t.smo.Lock()
	w := works.Get().(*work)
	w.t, w.cautious = t, false
	if w.m == nil || w.m.Pool() != t.pool {
		w.m = mtr.New(t.pool)
	}
	return w
}

// end gives the mutex back.
func (w *work) end() {
	t := w.t
	w.t = nil
	works.Put(w)
	t.smo.Unlock()
}

// get latches a node in X and makes it ready to be changed through c.
func (w *work) get(c *change, no uint32, level int) error {
	p, err := w.m.Get(w.t.id(no), mtr.X)
	if err != nil {
		return err
	}
	if err := w.t.checkPage(nodeOf(p.Data), level); err != nil {
		return err
	}
	// The node is about to be taken apart: it had better be what it seems.
	if err := ValidateNode(p.Data); err != nil {
		return corrupt(p.Data, err.Error(), 0, 0)
	}
	w.bind(c, p)
	return nil
}

func (w *work) bind(c *change, p mtr.Page) {
	c.page, c.pc = p, pageChanger{m: w.m, p: p}
	c.ed.node, c.ed.c = nodeOf(p.Data), &c.pc
}

// newNode allocates a page for a node on the level near another one and binds c
// to it, empty. After an error nothing has changed.
func (w *work) newNode(c *change, level int, near uint32, reserved bool) error {
	seg := w.segment(level)
	alloc := w.t.space.AllocPage
	if reserved {
		alloc = w.t.space.AllocPageReserved
	}
	no, err := alloc(w.m, seg, near)
	if err != nil {
		return err
	}
	p, err := w.m.GetNew(w.t.id(no), page.TypeIndex)
	if err != nil {
		if ferr := w.t.space.FreePage(w.m, seg, no); ferr != nil {
			return ferr
		}
		return err
	}
	w.m.SetOwner(p, w.t.index)
	w.bind(c, p)
	return nil
}

// segment is the segment of the nodes on a level other than the root.
func (w *work) segment(level int) uint32 {
	if level == 0 {
		return w.leafSeg
	}
	return w.innerSeg
}

// findPath goes down to the leaf of key; see findLeaf.
func (w *work) findPath(key []byte, look func(leaf node)) error {
	return w.findLeaf(atKey, key, look)
}

// findLeaf goes down to a leaf in a reading mini-transaction, latch by latch, and
// notes the nodes on the way. For the leaf it also calls look, under the latch.
func (w *work) findLeaf(a aim, key []byte, look func(leaf node)) error {
	w.m.BeginRead()
	defer w.m.Commit()
	w.path = w.path[:0]
	id, level := w.t.root, -1
	var up mtr.Page
	for {
		p, err := w.m.Get(id, mtr.S)
		if err != nil {
			return err
		}
		n := nodeOf(p.Data)
		if err := w.t.checkPage(n, level); err != nil {
			return err
		}
		if len(w.path) == 0 {
			w.leafSeg, w.innerSeg = n.leafSeg(), n.innerSeg()
		} else {
			w.m.Release(up)
		}
		s := w.push(id.No, n)
		if n.level() == 0 {
			if look != nil {
				look(n)
			}
			return nil
		}
		s.slot = n.choose(a, key)
		child := n.child(s.slot)
		if child == page.None || s.slot >= n.count() {
			return corrupt(p.Data, "child pointer in slot", 0, uint64(s.slot))
		}
		w.noteBounds(n)
		up, id.No, level = p, child, n.level()-1
	}
}

// push appends a step for the node; its bounds are in place already (noteBounds),
// but for the root.
func (w *work) push(no uint32, n node) *step {
	k := len(w.path)
	if k < cap(w.path) {
		w.path = w.path[:k+1]
	} else {
		w.path = append(w.path, step{})
	}
	s := &w.path[k]
	if k == 0 {
		s.lo, s.hi, s.hiOpen = s.lo[:0], s.hi[:0], true
	}
	s.no, s.level, s.count, s.free, s.prefix = no, n.level(), n.count(), n.free(), n.prefixLen()
	s.sepMax = 0
	for i := range s.count {
		s.sepMax = max(s.sepMax, s.prefix+n.slot(i).suffixLen())
	}
	return s
}

// noteBounds puts the bounds of the next step after the last one, whose node is n.
func (w *work) noteBounds(n node) {
	k := len(w.path)
	if k == cap(w.path) {
		w.path = append(w.path, step{})[:k]
	}
	s, next := &w.path[k-1], &w.path[: k+1 : k+1][k]
	childBounds(n, s.slot, s, next)
}

// childBounds computes the bounds of the child in slot i of n, whose own are those
// of s.
func childBounds(n node, i int, s, child *step) {
	if i > 0 {
		child.lo = n.appendKey(child.lo[:0], i)
	} else {
		child.lo = append(child.lo[:0], s.lo...)
	}
	if child.hiOpen = i+1 >= n.count() && s.hiOpen; child.hiOpen {
		child.hi = child.hi[:0]
	} else if i+1 < n.count() {
		child.hi = n.appendKey(child.hi[:0], i+1)
	} else {
		child.hi = append(child.hi[:0], s.hi...)
	}
}

// bestPrefix is the longest prefix that a node with the bounds may have.
func bestPrefix(lo, hi []byte, hiOpen bool) []byte {
	if hiOpen {
		return nil
	}
	return lo[:commonLen(lo, hi)]
}

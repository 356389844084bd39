package btree

import (
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// PeekNext appends the key of the entry after the cursor's leaf, while the leaf
// stays latched; a nil key says that there is none. ok is false if a node above
// was busy: waiting for it here could be a deadlock, so the caller lets go of the
// leaf and starts over.
//
// REQUIRES: the cursor holds a leaf.
func (c *Cursor) PeekNext(dst []byte) (key []byte, ok bool, err error) {
	c.mustBeLatched()
	if c.hiOpen {
		return nil, true, nil
	}
	c.posBuf = append(c.posBuf[:0], c.hi...)
	for {
		mark := c.m.Mark()
		n, hi, ok, err := c.t.peekLeaf(c.m, c.posBuf)
		if err != nil || !ok {
			c.m.ReleaseTo(mark)
			return nil, false, err
		}
		if n.count() > 0 {
			key = n.appendKey(dst, 0)
			c.m.ReleaseTo(mark)
			return key, true, nil
		}
		c.m.ReleaseTo(mark)
		if hi == nil {
			return nil, true, nil
		}
		c.posBuf = append(c.posBuf[:0], hi...)
	}
}

// peekLeaf latches the leaf of key in S, inner nodes only if they are free, and
// returns it with its upper bound, nil if it has none. The path stays latched: it
// is short, and nobody was waited for. The caller releases what m holds then.
func (t *Tree) peekLeaf(m *mtr.Mtr, key []byte) (leaf node, hi []byte, ok bool, err error) {
	id, level := t.root, -1
	for {
		var p mtr.Page
		if level == 0 {
			p, err = m.Get(id, mtr.S) // to the right of the caller's leaf
		} else {
			p, ok, err = m.TryGet(id, mtr.S)
			if !ok && err == nil {
				return node{}, nil, false, nil
			}
		}
		if err != nil {
			return node{}, nil, false, err
		}
		n := nodeOf(p.Data)
		if err := t.checkPage(n, level); err != nil {
			return node{}, nil, false, err
		}
		if n.level() == 0 {
			return n, hi, true, nil
		}
		s := n.choose(atKey, key)
		child := n.child(s)
		if child == page.None || s >= n.count() {
			return node{}, nil, false, corrupt(p.Data, "child pointer in slot", 0, uint64(s))
		}
		if s+1 < n.count() {
			hi = n.appendKey(nil, s+1)
		}
		id.No, level = child, n.level()-1
	}
}

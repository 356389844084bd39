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
	mark := c.m.Mark()
	key, ok, err = c.HoldNext(dst)
	c.m.ReleaseTo(mark)
	return key, ok, err
}

// HoldNext is PeekNext, but what it has looked at stays latched in S until the
// mini-transaction ends: the entry stays the next one.
//
// REQUIRES: the cursor holds a leaf, and does not move before the commit.
func (c *Cursor) HoldNext(dst []byte) (key []byte, ok bool, err error) {
	c.mustBeLatched()
	if c.hiOpen {
		return nil, true, nil
	}
	c.posBuf = append(c.posBuf[:0], c.hi...)
	for {
		n, hi, ok, err := c.t.peekLeaf(c.m, c.posBuf)
		if err != nil || !ok {
			return nil, false, err
		}
		if n.count() > 0 {
			return n.appendKey(dst, 0), true, nil
		}
		if hi == nil {
			return nil, true, nil
		}
		c.posBuf = append(c.posBuf[:0], hi...)
	}
}

// peekLeaf latches the leaf of key in S, inner nodes only if they are free, and
// returns it with its upper bound, nil if it has none. The caller releases what m
// holds if it fails.
func (t *Tree) peekLeaf(m *mtr.Mtr, key []byte) (leaf node, hi []byte, ok bool, err error) {
	id, level := t.root, -1
	var up mtr.Page
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
		if up.Data != nil {
			m.Release(up)
		}
		up = p
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

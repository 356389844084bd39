package btree

// Shares of a page's capacity, in percent. Two nodes are merged if together they
// take no more than mergeFill, so that the next inserts do not split them again;
// after a merge the parent is looked at if it takes less than thin.
const (
	mergeFill = 70
	thin      = 40
)

// Shrink merges the leaf to which key belongs with a neighbour under the same
// parent if they fit well into one page, and goes on upwards where that leaves a
// thin node. An empty leaf goes away even if its neighbour is full. If the root is
// left with one child, it takes over the child's content. Errors are those of
// reading and of the space; the tree is sound after them.
//
// REQUIRES: the task holds no latch and has no writing mini-transaction open.
func (t *Tree) Shrink(key []byte) error {
	w := t.begin()
	defer w.end()
	merged := false // the leaf
	for level := 0; ; {
		if err := w.findPath(key, nil); err != nil {
			return err
		}
		if root := &w.path[0]; root.level > 0 && root.count == 1 {
			if err := w.collapseRoot(); err != nil {
				return err
			}
			continue
		}
		d := len(w.path) - 1 - level
		if d <= 0 {
			return nil
		}
		up := &w.path[d-1]
		if up.count == 1 {
			level++ // no neighbour before the parent has one
			continue
		}
		done, err := w.mergeAt(d)
		if err != nil || !done {
			return err
		}
		switch {
		case level > 0 && !merged:
			level = 0
		case up.free*100 > capacity*(100-thin) || up.count == 2:
			merged = true
			level++
		default:
			return nil
		}
	}
}

// mergeAt merges node d of the path with its right neighbour, or else its left.
func (w *work) mergeAt(d int) (done bool, err error) {
	up := &w.path[d-1]
	for _, slot := range [2]int{up.slot, up.slot - 1} {
		if slot < 0 || slot+1 >= up.count {
			continue
		}
		if err := w.m.Begin(); err != nil {
			return false, err
		}
		done, err = w.mergePair(up, slot)
		w.m.Commit()
		if done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// mergePair merges the children in slots slot and slot+1 of up into the former, if
// they fit.
func (w *work) mergePair(up *step, slot int) (done bool, err error) {
	if err := w.get(&w.parent, up.no, up.level); err != nil {
		return false, err
	}
	p := w.parent.ed.node
	leftNo, rightNo := p.child(slot), p.child(slot+1)
	if err := w.get(&w.node, leftNo, up.level-1); err != nil {
		return false, err
	}
	if err := w.get(&w.other, rightNo, up.level-1); err != nil {
		return false, err
	}
	l, r := w.node.ed.node, w.other.ed.node
	var lb, rb step
	childBounds(p, slot, up, &lb)
	childBounds(p, slot+1, up, &rb)
	prefix := bestPrefix(lb.lo, rb.hi, rb.hiOpen)
	sep := rb.lo
	limit := capacity * mergeFill / 100
	if l.count() == 0 || r.count() == 0 {
		limit = capacity
	}
	if !w.fitTogether(l, r, prefix, sep, limit) {
		return false, nil
	}
	if err := w.t.space.FreePage(w.m, w.segment(up.level-1), rightNo); err != nil {
		return false, err
	}
	maxTrx := max(l.maxTrx(), r.maxTrx())
	if r.count() > 0 || l.prefixLen() > len(prefix) {
		w.join(l, r, prefix, sep)
		w.left.setMaxTrx(maxTrx)
		w.left.store(&w.node.pc)
	} else if l.maxTrx() < maxTrx {
		w.node.ed.setMaxTrx(maxTrx)
	}
	w.parent.ed.remove(slot + 1)
	return true, nil
}

// fitTogether reports whether the entries of both nodes under the prefix take at
// most limit. sep is the separator between the nodes.
func (w *work) fitTogether(l, r node, prefix, sep []byte, limit int) bool {
	size := len(prefix)
	for _, n := range [2]node{l, r} {
		more := n.prefixLen() - len(prefix)
		for i := range n.count() {
			if n.level() > 0 && i == 0 {
				size += entryCost(0, 4)
				continue
			}
			size += n.cost(i) + more
		}
	}
	if l.level() > 0 {
		size += len(sep) - len(prefix)
	}
	return size <= limit
}

// join builds the merged node in w.left.
func (w *work) join(l, r node, prefix, sep []byte) {
	b := &w.left
	b.start(l.level(), prefix)
	for i := range l.count() {
		b.addChildFrom(l, i)
	}
	for i := range r.count() {
		if l.level() > 0 && i == 0 {
			b.add(nil, sep[len(prefix):], 0, r.value(0))
			continue
		}
		b.addFrom(r, i)
	}
	b.finish(maxSkip)
}

// collapseRoot moves the content of the root's only child into the root.
func (w *work) collapseRoot() error {
	if err := w.m.Begin(); err != nil {
		return err
	}
	defer w.m.Commit()
	root := &w.path[0]
	if err := w.get(&w.parent, root.no, root.level); err != nil {
		return err
	}
	childNo := w.parent.ed.child(0)
	if err := w.get(&w.node, childNo, root.level-1); err != nil {
		return err
	}
	child := w.node.ed.node
	if err := w.t.space.FreePage(w.m, w.segment(root.level-1), childNo); err != nil {
		return err
	}
	b := &w.left
	b.load(child)
	b.setSegments(w.leafSeg, w.innerSeg)
	b.store(&w.parent.pc)
	w.t.noteRoot(root.level - 1)
	return nil
}

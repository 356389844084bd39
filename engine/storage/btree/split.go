package btree

import (
	"github.com/triremedb/trireme/engine/storage/page"
)

// MakeRoom splits nodes until the leaf to which key belongs has room for an entry
// of key with a value of valueLen bytes; if key is there, for its new value. By
// the time the caller is back at the leaf another task may have used the room, so
// callers loop. Errors: [ErrTooLarge], those of the space (no page could be had;
// the tree is as good as before) and of reading.
//
// REQUIRES: the task holds no latch and has no writing mini-transaction open.
func (t *Tree) MakeRoom(key []byte, valueLen int) error { return t.makeRoom(key, valueLen, false) }

// MakeRoomReserved is MakeRoom for rollback and purge: it may use pages that are
// kept for them when the disk is full.
func (t *Tree) MakeRoomReserved(key []byte, valueLen int) error {
	return t.makeRoom(key, valueLen, true)
}

func (t *Tree) makeRoom(key []byte, valueLen int, reserved bool) error {
	if len(key) > MaxKey || len(key)+valueLen > MaxEntry {
		return ErrTooLarge
	}
	w := t.begin()
	defer w.end()
	for range splitLimit {
		fits := false
		err := w.findPath(key, func(leaf node) { fits = leaf.hasRoom(key, valueLen) })
		if err != nil || fits {
			return err
		}
		if err := w.splitOne(key, valueLen, reserved); err != nil {
			return err
		}
	}
	return &page.CorruptError{ID: t.root, Problem: "index gets no room by splitting", Expected: 1, Found: splitLimit}
}

// splitLimit bounds the splits of one MakeRoom. A sound tree needs one a level,
// and another one each time that others use up the room first.
const splitLimit = 4 * MaxLevel

// hasRoom reports whether the leaf has room for the entry or the entry's new value.
func (n node) hasRoom(key []byte, valueLen int) bool {
	if i, exact := n.search(key); exact {
		return n.fitsUpdate(i, valueLen)
	}
	return n.fits(len(key), valueLen)
}

// splitOne makes one split towards room for key: of the highest node on the path
// that has to be split first because its parent has room for the new separator.
// So each mini-transaction changes a parent, a node and a new one, whatever the
// height of the tree, and leaves a sound tree behind.
//
// It always makes progress: a split inner node has room for the longest separator
// on both sides (see planInner), so that the split below can follow; and the split
// of the leaf leaves room for the entry (see planLeaf).
func (w *work) splitOne(key []byte, valueLen int, reserved bool) error {
	i := len(w.path) - 1
	for i > 0 {
		sepMax := max(w.path[i].sepMax, len(key))
		if w.cautious {
			sepMax = MaxKey
		}
		up := &w.path[i-1]
		if entryCost(sepMax-up.prefix, 4) <= up.free {
			break
		}
		i--
	}
	if err := w.m.Begin(); err != nil {
		return err
	}
	defer w.m.Commit()
	if i == 0 {
		return w.growRoot(reserved)
	}
	return w.split(i, key, valueLen, reserved)
}

// growRoot moves the root's content to a new page and makes the root its parent.
// The root's page number stays.
func (w *work) growRoot(reserved bool) error {
	root := &w.path[0]
	if root.level == MaxLevel {
		return &page.CorruptError{ID: w.t.root, Problem: "level of the root", Expected: MaxLevel, Found: MaxLevel + 1}
	}
	if err := w.get(&w.parent, root.no, root.level); err != nil {
		return err
	}
	r := w.parent.ed.node
	if err := w.newNode(&w.node, root.level, root.no, reserved); err != nil {
		return err
	}
	b := &w.left
	b.load(r)
	b.setSegments(0, 0)
	b.store(&w.node.pc)

	var buf [4]byte
	b.start(root.level+1, nil)
	b.setSegments(w.leafSeg, w.innerSeg)
	b.add(nil, nil, 0, childValue(&buf, w.node.page.ID().No))
	b.finish(maxSkip)
	b.store(&w.parent.pc)
	w.t.flat.Store(false)
	return nil
}

// cut is a way to split a node: the entries from at on go to the right.
type cut struct {
	at  int
	sep []byte // lower bound of the right node
}

// split divides node i of the path and puts the separator into its parent.
func (w *work) split(i int, key []byte, valueLen int, reserved bool) error {
	up, s := &w.path[i-1], &w.path[i]
	if err := w.get(&w.parent, up.no, up.level); err != nil {
		return err
	}
	if err := w.get(&w.node, s.no, s.level); err != nil {
		return err
	}
	n := w.node.ed.node
	if s.level == 0 && n.hasRoom(key, valueLen) {
		return nil // somebody has removed something
	}
	if s.level == 0 && w.repack(s, key, valueLen) {
		return nil
	}
	var c cut
	if s.level == 0 {
		c = w.planLeaf(n, key, valueLen)
	} else {
		c = w.planInner(n, s.slot)
	}
	if !w.parent.ed.fits(len(c.sep), 4) {
		w.cautious = true // a longer key has come in since; next time reckon with any
		return nil
	}
	if err := w.newNode(&w.other, s.level, s.no, reserved); err != nil {
		return err
	}
	w.divide(n, s, up.slot, c)
	return nil
}

// divide carries out a split into w.other.
func (w *work) divide(n node, s *step, slot int, c cut) {
	v := w.node.ed.vitals()
	var buf [4]byte
	run := v.dir
	if c.at == 0 {
		// The new page takes the left end, which is still empty; nothing moves.
		w.left.start(s.level, bestPrefix(s.lo, c.sep, false))
		w.left.finish(maxSkip)
		w.left.setRun(noLast, run)
		w.left.setMaxTrx(n.maxTrx())
		w.left.store(&w.other.pc)
		w.parent.ed.patch(slot, 0, childValue(&buf, w.other.page.ID().No))
		w.parent.ed.insert(slot+1, c.sep, 0, childValue(&buf, s.no))
		return
	}
	w.right.start(s.level, bestPrefix(c.sep, s.hi, s.hiOpen))
	if s.level > 0 {
		// The first key moves up.
		w.right.add(nil, nil, 0, n.value(c.at))
	}
	for i := c.at + w.right.n; i < n.count(); i++ {
		w.right.addFrom(n, i)
	}
	w.right.finish(maxSkip)
	if c.at >= n.count()-1 {
		w.right.setRun(noLast, run)
	}
	w.right.setMaxTrx(n.maxTrx())
	w.right.store(&w.other.pc)

	prefix := bestPrefix(s.lo, c.sep, false)
	if (len(prefix)-n.prefixLen())*(c.at-1) < capacity/16 {
		w.node.ed.truncate(c.at)
	} else {
		w.left.start(s.level, prefix)
		for i := range c.at {
			w.left.addChildFrom(n, i)
		}
		w.left.finish(maxSkip)
		if v.dir > 0 && v.last == c.at-1 {
			w.left.setRun(v.last, run)
		}
		w.left.setMaxTrx(n.maxTrx())
		w.left.store(&w.node.pc)
	}
	w.parent.ed.insert(slot+1, c.sep, 0, childValue(&buf, w.other.page.ID().No))
}

// repack gives a leaf the longest prefix that its bounds allow by now, if that
// makes room enough for a while without a split.
func (w *work) repack(s *step, key []byte, valueLen int) bool {
	n := w.node.ed.node
	prefix := bestPrefix(s.lo, s.hi, s.hiOpen)
	more := len(prefix) - n.prefixLen()
	if more <= 0 || n.count() < 2 {
		return false
	}
	if gain := more * (n.count() - 1); gain < capacity/8 || n.free()+gain < entryCost(len(key), valueLen) {
		return false
	}
	v := w.node.ed.vitals()
	b := &w.left
	b.start(0, prefix)
	for i := range n.count() {
		b.addFrom(n, i)
	}
	b.finish(maxSkip)
	b.setRun(v.last, v.dir)
	b.setMaxTrx(n.maxTrx())
	b.store(&w.node.pc)
	return true
}

// Runs of inserts from which on a split expects more of the same kind: at the end
// of a leaf, and between others.
const (
	runAtEnd  = 3
	runInside = 8
)

// planLeaf chooses where to split a leaf for key, whose entry does not fit or
// shall grow.
//
// Think of the leaf as if the entry were in it already, as entry i of m. A split
// before entry k, 0 < k < m, is sound if either side fits a page. One is: let L
// and R be what the entries before and after i take, p the prefix, so that
// p+L+R <= capacity and min(L, R) <= (capacity-p)/2. The entry takes c <=
// MaxEntry+slotSize+recHeader-p. Put with the smaller side it makes p+min(L,R)+c
// <= capacity/2 + MaxEntry + slotSize + recHeader, which is below capacity; the
// other side fits as it did before. (The new prefixes are no shorter than p, and a
// side of at least one entry never grows by a longer prefix.) The split that
// keeps the larger side smallest is at least as good as that one, hence sound.
// Splits for runs are taken only if they are sound, too.
func (w *work) planLeaf(n node, key []byte, valueLen int) cut {
	i, exact := n.search(key)
	count := n.count()
	costs := virtual{n: n, i: i, exact: exact, cost: entryCost(len(key)-n.prefixLen(), valueLen)}
	limit := capacity - n.prefixLen()
	k := costs.balanced()
	if v := w.node.ed.vitals(); !exact {
		want := 0
		switch {
		case v.dir >= runAtEnd && i == count && v.last == count-1:
			want = count // everything stays, the entry starts the right node
		case v.dir <= -runAtEnd && i == 0 && v.last == 0:
			want = 1
		case v.dir >= runInside && i == v.last+1:
			want = i + 1
		case v.dir <= -runInside && i == v.last:
			want = i
		}
		if l, r := costs.sides(want); want > 0 && want < costs.len() && l <= limit && r <= limit {
			k = want
		}
	}
	return cut{at: costs.real(k), sep: w.separatorAt(costs, key, k)}
}

// separatorAt is the separator for a split before entry k of the leaf with key.
func (w *work) separatorAt(v virtual, key []byte, k int) []byte {
	w.keyA = v.appendKey(w.keyA[:0], k-1, key)
	w.keyB = v.appendKey(w.keyB[:0], k, key)
	w.sep = append(w.sep[:0], separator(w.keyA, w.keyB)...)
	return w.sep
}

// virtual is a leaf seen as if an entry of the given cost were in slot i already,
// in place of the one there (exact) or before it.
type virtual struct {
	n     node
	i     int
	exact bool
	cost  int
}

func (v virtual) len() int {
	if v.exact {
		return v.n.count()
	}
	return v.n.count() + 1
}

// real is the slot of entry k of the leaf as it is; for the entry that is not there
// yet, the slot where it would go.
func (v virtual) real(k int) int {
	if !v.exact && k > v.i {
		return k - 1
	}
	return k
}

func (v virtual) costOf(k int) int {
	if k == v.i {
		return v.cost
	}
	return v.n.cost(v.real(k))
}

func (v virtual) appendKey(dst []byte, k int, key []byte) []byte {
	if k == v.i {
		return append(dst, key...)
	}
	return v.n.appendKey(dst, v.real(k))
}

// sides are the sums of the costs before and from entry k on.
func (v virtual) sides(k int) (left, right int) {
	for j := range v.len() {
		if j < k {
			left += v.costOf(j)
		} else {
			right += v.costOf(j)
		}
	}
	return left, right
}

// balanced is the split that keeps the larger side smallest.
func (v virtual) balanced() int {
	_, total := v.sides(0)
	left, best, bestMax := 0, 1, total
	for k := 1; k < v.len(); k++ {
		left += v.costOf(k - 1)
		if larger := max(left, total-left); larger < bestMax {
			best, bestMax = k, larger
		}
	}
	return best
}

// planInner chooses where to split an inner node through whose slot the path goes
// on: in the middle by bytes, or, when children are added at the right end, so that
// the left node stays full.
//
// A separator of MaxKey bytes takes c = MaxKey+4+slotSize+recHeader, so a node
// that lacks room for one has more than three entries and can be split. Either
// side takes at most (capacity+c)/2, which leaves c free.
func (w *work) planInner(n node, slot int) cut {
	count := n.count()
	v := w.node.ed.vitals()
	at := 0
	if v.dir >= runAtEnd && v.last == count-1 && slot == count-1 {
		at = count - 1
	} else {
		at = virtual{n: n, i: -1, exact: true}.balanced()
	}
	w.sep = n.appendKey(w.sep[:0], at)
	return cut{at: at, sep: w.sep}
}

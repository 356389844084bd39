package btree

import "github.com/triremedb/trireme/engine/storage/mtr"

// estimateLeaves is how many leaves Estimate counts before it extrapolates.
const estimateLeaves = 8

// Estimate says how many entries, delete-marked ones included, there are from lo
// on and below hi; nil for hi means no limit. The number is exact if they lie on
// few leaves. Otherwise it is computed from the nodes along both borders: the
// children between the borders on each level, times the fan-out below, times the
// entries that the first leaves had on average.
func (t *Tree) Estimate(lo, hi []byte) (rows int64, exact bool, err error) {
	if hi != nil && string(lo) >= string(hi) {
		return 0, true, nil
	}
	w := works.Get().(*work)
	defer works.Put(w)
	w.t = t
	if w.m == nil || w.m.Pool() != t.pool {
		w.m = mtr.New(t.pool)
	}
	w.m.BeginRead()
	rows, average, exact, err := t.countLeaves(w.m, lo, hi)
	w.m.Commit()
	if exact || err != nil {
		return rows, exact, err
	}
	left, err := w.border(atKey, lo)
	if err != nil {
		return 0, false, err
	}
	a := atKey
	if hi == nil {
		a = atLast
	}
	right, err := w.border(a, hi)
	if err != nil {
		return 0, false, err
	}
	if len(left) == len(right) {
		rows = max(rows, int64(float64(leavesBetween(left, right)-1)*average))
	}
	return rows, false, nil
}

// countLeaves counts the entries of the range on its first leaves; exact if that
// was all. average is the number of entries that these leaves have.
func (t *Tree) countLeaves(m *mtr.Mtr, lo, hi []byte) (rows int64, average float64, exact bool, err error) {
	var c Cursor
	c.Init(t, m)
	defer c.Reset()
	if _, err := c.SeekLeaf(lo, mtr.S); err != nil {
		return 0, 0, false, err
	}
	from := c.Pos()
	before := from
	for range estimateLeaves {
		if hi != nil && (c.hiOpen || string(hi) <= string(c.hi)) {
			to, _ := c.n.search(hi)
			return rows + int64(max(to-from, 0)), 0, true, nil
		}
		rows += int64(c.LeafLen() - from)
		if c.hiOpen {
			return rows, 0, true, nil
		}
		if err := c.stepRight(); err != nil {
			return 0, 0, false, err
		}
		from = c.Pos()
	}
	return rows, float64(rows+int64(before)) / estimateLeaves, false, nil
}

// spot is where a border passes through an inner node.
type spot struct {
	no          uint32
	slot, count int
}

// border returns the inner nodes on the way to a leaf, from the root down.
func (w *work) border(a aim, key []byte) ([]spot, error) {
	if err := w.findLeaf(a, key, nil); err != nil {
		return nil, err
	}
	var spots []spot
	for i := range w.path {
		if s := &w.path[i]; s.level > 0 {
			spots = append(spots, spot{s.no, s.slot, s.count})
		}
	}
	return spots, nil
}

// leavesBetween estimates the number of leaves from one border to the other, both
// included.
func leavesBetween(left, right []spot) int64 {
	leaves := 0.0
	parted := false
	for d := range left {
		l, r := left[d], right[d]
		between := 0
		switch {
		case parted || l.no != r.no:
			parted = true
			between = l.count - 1 - l.slot + r.slot
		case l.slot != r.slot:
			parted = true
			between = max(r.slot-l.slot-1, 0)
		}
		below := 1.0 // leaves under one child
		for k := d + 1; k < len(left); k++ {
			below *= float64(left[k].count+right[k].count) / 2
		}
		leaves += float64(between) * below
	}
	return int64(leaves) + 2
}

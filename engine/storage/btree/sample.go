package btree

import (
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// Leaf is a leaf under its latch, as Sample shows it.
type Leaf struct{ n node }

// Len is the number of entries, delete-marked ones included.
func (l Leaf) Len() int { return l.n.count() }

// AppendKey appends the key of entry i.
func (l Leaf) AppendKey(dst []byte, i int) []byte { return l.n.appendKey(dst, i) }

// Sample shows leaves at so many places, spread evenly over the tree and in its order. A
// leaf is shown once, so that there are fewer in a small tree.
func (t *Tree) Sample(places int, look func(leaf Leaf)) error {
	w := works.Get().(*work)
	defer works.Put(w)
	w.t = t
	if w.m == nil || w.m.Pool() != t.pool {
		w.m = mtr.New(t.pool)
	}
	last := page.None
	for i := range places {
		no, err := w.sample((float64(i)+0.5)/float64(places), last, look)
		if err != nil {
			return err
		}
		last = no
	}
	return nil
}

// sample shows the leaf that lies a share of the way through the tree, unless it was the
// last one.
func (w *work) sample(share float64, last uint32, look func(leaf Leaf)) (no uint32, err error) {
	w.m.BeginRead()
	defer w.m.Commit()
	id, level := w.t.root, -1
	var up mtr.Page
	for first := true; ; first = false {
		p, err := w.m.Get(id, mtr.S)
		if err != nil {
			return 0, err
		}
		n := nodeOf(p.Data)
		if err := w.t.checkPage(n, level); err != nil {
			return 0, err
		}
		if !first {
			w.m.Release(up)
		}
		if n.level() == 0 {
			if id.No != last {
				look(Leaf{n})
			}
			return id.No, nil
		}
		at := share * float64(n.count())
		slot := min(max(int(at), 0), n.count()-1)
		if slot < 0 {
			return 0, corrupt(p.Data, "child pointer in slot", 0, 0)
		}
		share = min(max(at-float64(slot), 0), 1)
		child := n.child(slot)
		if child == page.None {
			return 0, corrupt(p.Data, "child pointer in slot", 0, uint64(slot))
		}
		up, id.No, level = p, child, n.level()-1
	}
}

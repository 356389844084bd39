package btree

import (
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// Finding is one thing that Check found wrong.
type Finding struct {
	Index   uint64
	Page    uint32
	Level   int // of the node; -1 if not even that is known
	Problem string
}

func (f Finding) String() string {
	return fmt.Sprintf("index %d, page %d, level %d: %s", f.Index, f.Page, f.Level, f.Problem)
}

// Summary counts what Check saw.
type Summary struct {
	Entries int64 // in leaves
	Marked  int64 // of them, with bit 0 of the flags set (delete mark)
	Leaves  int64
	Inner   int64 // nodes above the leaves
	Height  int   // levels
	Bytes   int64 // used in leaves
}

// Check walks the whole tree and reports what is wrong: pages that are not nodes
// of this tree or of the wrong level, broken accounts, keys out of order or out of
// bounds, wrong prefixes and hints. reach, if not nil, is told every page reached and
// the segment that must own it; space.Check compares that with its books.
// The tree may be in use: readers and changes of leaves go on, structure changes
// wait while the leaves of one parent are looked at. stop, if not nil, is asked
// between two parents whether to give up. The error is stop's, or one of reading that
// says nothing about the tree.
func (t *Tree) Check(report func(Finding), reach func(seg, no uint32), stop func() error) (Summary, error) {
	k := &checker{t: t, report: report, reach: reach}
	for !k.done {
		w := t.begin()
		k.w = w
		w.m.BeginRead()
		err := k.family()
		w.m.Commit()
		w.end()
		if err == nil && stop != nil {
			err = stop()
		}
		if err != nil {
			return k.sum, err
		}
	}
	return k.sum, nil
}

// checker goes through the tree from left to right, one parent of leaves at a time.
type checker struct {
	t      *Tree
	w      *work
	report func(Finding)
	reach  func(seg, no uint32)
	segs   [2]uint32 // of the leaves, of the others
	sum    Summary
	from   []byte // everything below has been checked
	begun  bool
	done   bool
	copies [][]byte // of the inner nodes on the way, by depth
	bounds [MaxLevel + 2]step
}

// family checks the nodes on the way to from that begin there, and the leaves
// under the last of them, and moves from behind them.
func (k *checker) family() error {
	no, level := k.t.root.No, -1
	k.bounds[0] = step{hiOpen: true}
	for d := 0; ; d++ {
		b := &k.bounds[d]
		fresh := !k.begun || string(b.lo) == string(k.from)
		n, ok, err := k.node(no, level, d, b, fresh)
		if err != nil {
			return err
		}
		if !ok || n.level() == 0 {
			k.advance(b)
			return nil
		}
		if n.level() == 1 {
			if err := k.leaves(n, b); err != nil {
				return err
			}
			k.advance(b)
			return nil
		}
		s := n.route(k.from)
		childBounds(n, s, b, &k.bounds[d+1])
		no, level = n.child(s), n.level()-1
	}
}

func (k *checker) advance(b *step) {
	k.begun = true
	k.done = b.hiOpen
	k.from = append(k.from[:0], b.hi...)
}

func (k *checker) leaves(parent node, b *step) error {
	var cb step
	for s := range parent.count() {
		childBounds(parent, s, b, &cb)
		if _, _, err := k.node(parent.child(s), 0, len(k.bounds)-1, &cb, true); err != nil {
			return err
		}
	}
	return nil
}

// node reads one node and checks it if it is fresh. ok is false if it cannot be
// used. The node returned is a copy.
func (k *checker) node(no uint32, level, depth int, b *step, fresh bool) (n node, ok bool, err error) {
	complain := func(problem string) {
		k.report(Finding{Index: k.t.index, Page: no, Level: level, Problem: problem})
	}
	if no == page.None {
		complain("pointer to no page")
		return node{}, false, nil
	}
	p, err := k.w.m.Get(k.t.id(no), mtr.S)
	if err != nil {
		if fresh && depth > 0 {
			k.tell(no, level)
		}
		var bad *page.CorruptError
		if errors.As(err, &bad) {
			complain(err.Error())
			return node{}, false, nil
		}
		return node{}, false, err
	}
	copied := append(k.copyAt(depth)[:0], p.Data...)
	k.copies[depth] = copied
	k.w.m.Release(p)
	n = nodeOf(copied)
	if err := k.t.checkPage(n, level); err != nil {
		complain(err.Error())
		return node{}, false, nil
	}
	if err := ValidateNode(copied); err != nil {
		complain(err.Error())
		return node{}, false, nil
	}
	level = n.level()
	if depth == 0 {
		k.segs = [2]uint32{n.leafSeg(), n.innerSeg()}
	}
	if fresh {
		k.tell(no, level)
		n.checkKeys(b.lo, b.hi, b.hiOpen, complain)
		k.count(n, depth)
	}
	return n, true, nil
}

// tell passes on that a page was reached.
func (k *checker) tell(no uint32, level int) {
	switch {
	case k.reach == nil:
	case level == 0 && no != k.t.root.No:
		k.reach(k.segs[0], no)
	default:
		k.reach(k.segs[1], no)
	}
}

func (k *checker) copyAt(depth int) []byte {
	for len(k.copies) <= depth {
		k.copies = append(k.copies, nil)
	}
	return k.copies[depth]
}

func (k *checker) count(n node, depth int) {
	if n.level() > 0 {
		k.sum.Inner++
		if depth == 0 {
			k.sum.Height = n.level() + 1
		}
		return
	}
	k.sum.Height = max(k.sum.Height, 1)
	k.sum.Leaves++
	k.sum.Entries += int64(n.count())
	k.sum.Bytes += int64(n.used())
	for i := range n.count() {
		k.sum.Marked += int64(n.flags(i) & 1)
	}
}

package btree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/buffer"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// ErrTooLarge says that an entry exceeds [MaxKey] or [MaxEntry].
var ErrTooLarge = errors.New("btree: entry too large for an index page")

// Space gives pages to the tree; *space.Space is one.
type Space interface {
	No() uint32
	CreateSegment(m *mtr.Mtr) (seg uint32, err error)
	AllocPage(m *mtr.Mtr, seg, near uint32) (no uint32, err error)
	AllocPageReserved(m *mtr.Mtr, seg, near uint32) (no uint32, err error)
	FreePage(m *mtr.Mtr, seg, no uint32) error
	FreeSegmentStep(m *mtr.Mtr, seg uint32) (done bool, err error)
	ClearSegmentStep(m *mtr.Mtr, seg, keep uint32) (done bool, err error)
}

// Tree is one index. All methods are safe for concurrent use, unless they say
// otherwise.
type Tree struct {
	pool  *buffer.Pool
	env   env.Env
	space Space
	index uint64
	root  page.ID
	smo   *env.Mutex // held by whoever changes the tree's structure
	// flat hints that the root is a leaf.
	flat atomic.Bool
}

// Create makes an empty tree in m and returns the number of its root page, which
// stays the same for good. index is stored as owner in all of the tree's pages.
// After an error nothing was changed, except that a segment may have been made
// and not removed: the caller drops the tablespace or tries again.
func Create(m *mtr.Mtr, sp Space, index uint64) (root uint32, err error) {
	leafSeg, err := sp.CreateSegment(m)
	if err != nil {
		return 0, err
	}
	innerSeg, err := sp.CreateSegment(m)
	if err != nil {
		return 0, errors.Join(err, dropSegment(m, sp, leafSeg))
	}
	root, err = sp.AllocPage(m, innerSeg, page.None)
	if err == nil {
		var p mtr.Page
		if p, err = m.GetNew(page.ID{Space: sp.No(), No: root}, page.TypeIndex); err == nil {
			m.SetOwner(p, index)
			b := builders.Get().(*builder)
			b.start(0, nil)
			b.setSegments(leafSeg, innerSeg)
			b.finish(0)
			b.store(&pageChanger{m: m, p: p})
			builders.Put(b)
			return root, nil
		}
	}
	return 0, errors.Join(err, dropSegment(m, sp, innerSeg), dropSegment(m, sp, leafSeg))
}

// dropSegment frees a segment of at most one page.
func dropSegment(m *mtr.Mtr, sp Space, seg uint32) error {
	_, err := sp.FreeSegmentStep(m, seg)
	return err
}

// Open returns the tree with the given root. It reads nothing.
func Open(pool *buffer.Pool, sp Space, index uint64, root uint32) *Tree {
	return &Tree{
		pool: pool, env: pool.Env(), space: sp, index: index,
		root: page.ID{Space: sp.No(), No: root},
		smo:  env.NewMutex(pool.Env()),
	}
}

// Index is the number of the index.
func (t *Tree) Index() uint64 { return t.index }

// Root is the number of the root page.
func (t *Tree) Root() uint32 { return t.root.No }

// Segments returns the segments of the leaves and of the other nodes, for
// statistics. It latches the root in m.
func (t *Tree) Segments(m *mtr.Mtr) (leaf, inner uint32, err error) {
	p, err := m.Get(t.root, mtr.S)
	if err != nil {
		return 0, 0, err
	}
	n := nodeOf(p.Data)
	if err := t.checkPage(n, -1); err != nil {
		return 0, 0, err
	}
	return n.leafSeg(), n.innerSeg(), nil
}

// DropStep frees a piece of the tree's pages in m, so that each mini-transaction
// stays small; done is true with the last, the root. Nobody may use the tree
// meanwhile or after. It may be continued after a crash; the mini-transaction
// that sees done must make the caller forget the root.
//
// REQUIRES: m holds no page.
func DropStep(m *mtr.Mtr, sp Space, index uint64, root uint32) (done bool, err error) {
	t := &Tree{index: index}
	p, err := m.Get(page.ID{Space: sp.No(), No: root}, mtr.X)
	if err != nil {
		return false, err
	}
	n := nodeOf(p.Data)
	if err := t.checkPage(n, -1); err != nil {
		return false, err
	}
	if seg := n.leafSeg(); seg != noSegment {
		freed, err := sp.FreeSegmentStep(m, seg)
		if err == nil && freed {
			m.WriteU32(p, offLeafSeg, noSegment)
		}
		return false, err
	}
	return sp.FreeSegmentStep(m, n.innerSeg())
}

// IsEmpty reports whether the tree is as Create makes it: its root is a leaf without entries. One of
// more levels is not, though it may have no entries either.
func (t *Tree) IsEmpty(m *mtr.Mtr) (bool, error) {
	m.BeginRead()
	defer m.Commit()
	n, err := t.readRoot(m)
	return err == nil && n.level() == 0 && n.count() == 0, err
}

// readRoot latches the root in S.
func (t *Tree) readRoot(m *mtr.Mtr) (node, error) {
	p, err := m.Get(t.root, mtr.S)
	if err != nil {
		return node{}, err
	}
	n := nodeOf(p.Data)
	return n, t.checkPage(n, -1)
}

// Discard frees the pages of a tree whose root is a leaf, all but that: a load that did not come to
// its end has left them. It does nothing to a tree of more levels. Others may use the tree, but for a
// load. It goes in small mini-transactions, and may be called again after an error or a crash.
func (t *Tree) Discard() error {
	w := t.begin()
	defer w.end()
	w.m.BeginRead()
	n, err := t.readRoot(w.m)
	var flat bool
	var leaf, inner uint32
	if err == nil {
		flat, leaf, inner = n.level() == 0, n.leafSeg(), n.innerSeg()
	}
	w.m.Commit()
	if !flat || leaf == noSegment {
		return err
	}
	// The root gets no child meanwhile: only a structure change would give it one.
	if err := t.clear(w.m, leaf, 0); err != nil {
		return err
	}
	return t.clear(w.m, inner, t.root.No)
}

// clear frees the pages of a segment but one.
func (t *Tree) clear(m *mtr.Mtr, seg, keep uint32) error {
	for done := false; !done; {
		if err := m.Begin(); err != nil {
			return err
		}
		var err error
		done, err = t.space.ClearSegmentStep(m, seg, keep)
		m.Commit()
		if err != nil {
			return err
		}
	}
	return nil
}

// noSegment marks the leaf segment of a tree that is being dropped as gone.
const noSegment = ^uint32(0)

// checkPage looks whether a latched page is a node of this tree on the level
// (-1: any), and whether its accounts allow changing it.
func (t *Tree) checkPage(n node, level int) error {
	p := n.p[:]
	count, top := n.u16(offCount), n.top()
	switch {
	case page.GetType(p) != page.TypeIndex:
		return corrupt(p, "page is not an index page", uint64(page.TypeIndex), uint64(page.GetType(p)))
	case page.GetOwner(p) != t.index:
		return corrupt(p, "page belongs to another index", t.index, page.GetOwner(p))
	case n.level() > MaxLevel || level >= 0 && n.level() != level:
		return corrupt(p, "level of index page", uint64(max(level, 0)), uint64(n.level()))
	case count > maxSlots || top > page.Size-count*slotSize || top-bodyStart < n.u16(offPrefixLen)+n.garbage():
		return corrupt(p, "heap of index page (entries<<16|top)", 0, uint64(count)<<16|uint64(top))
	case n.level() > 0 && count == 0:
		return corrupt(p, "inner index page without children", 1, 0)
	}
	return nil
}

func corrupt(p []byte, problem string, expected, found uint64) error {
	return &page.CorruptError{ID: page.GetID(p), Problem: problem, Expected: expected, Found: found}
}

func (t *Tree) id(no uint32) page.ID { return page.ID{Space: t.root.Space, No: no} }

func (t *Tree) String() string { return fmt.Sprintf("index %d at %v", t.index, t.root) }

// pageChanger changes a page through a mini-transaction.
type pageChanger struct {
	m *mtr.Mtr
	p mtr.Page
}

func (c *pageChanger) Write(off int, b []byte) { c.m.Write(c.p, off, b) }
func (c *pageChanger) Move(dst, src, n int)    { c.m.Move(c.p, dst, src, n) }

// childValue is the value of an inner entry.
func childValue(buf *[4]byte, no uint32) []byte {
	binary.LittleEndian.PutUint32(buf[:], no)
	return buf[:]
}

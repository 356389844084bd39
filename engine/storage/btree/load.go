package btree

import (
	"bytes"
	"errors"
	"slices"

	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
)

// Errors of loading.
var (
	// ErrNotEmpty: the tree to be loaded has entries.
	ErrNotEmpty = errors.New("btree: bulk load into an index that is not empty")
	// ErrUnsorted: a key is not above the one before it.
	ErrUnsorted = errors.New("btree: bulk load with keys out of order")
)

// Loader fills an empty tree with sorted entries. Pages are written once, from left
// to right, each level as its nodes fill up; memory is bounded by one node a level
// and the entries that may still join it. Nobody else may use the tree meanwhile.
// If loading ends without Finish, the tree is still empty and the pages written
// belong to its segments until it is dropped, loaded again or [Tree.Discard] is
// called.
type Loader struct {
	// Unlogged keeps the content of the pages out of the redo log; Finish syncs the
	// tablespace before the root refers to them. Set before the first Add.
	Unlogged bool
	// MaxTrx goes into the header of every leaf.
	MaxTrx uint64

	t        *Tree
	m        *mtr.Mtr
	b        *builder
	limit    int
	levels   []*loadLevel
	leafSeg  uint32
	innerSeg uint32
	started  bool
	err      error
}

// loadLevel collects the entries of the next node of one level.
type loadLevel struct {
	level   int
	entries []loadEntry
	buf     []byte // keys and values, one after another
	lo      []byte // lower bound of the node
	costs   int    // sum of the entries' costs, keys in full
	cut     int    // the node may end after that many entries
	cutHi   []byte // its upper bound then
	near    uint32 // page written last
}

type loadEntry struct {
	off, keyLen, valueLen int
	flags                 byte
}

// NewLoader returns a loader that fills pages to fill percent, 10 to 100.
func (t *Tree) NewLoader(fill int) *Loader {
	fill = min(max(fill, 10), 100)
	return &Loader{t: t, m: mtr.New(t.pool), b: new(builder), limit: capacity * fill / 100}
}

// start looks at the root, and frees what an earlier load has left.
func (l *Loader) start() error {
	if err := l.look(); err != nil {
		return err
	}
	if err := l.t.Discard(); err != nil {
		return err
	}
	l.started = true
	l.levels = append(l.levels, &loadLevel{near: l.t.root.No})
	return nil
}

// look finds the segments of the tree, which must be empty.
func (l *Loader) look() error {
	l.m.BeginRead()
	defer l.m.Commit()
	n, err := l.t.readRoot(l.m)
	if err != nil {
		return err
	}
	if n.level() > 0 || n.count() > 0 {
		return ErrNotEmpty
	}
	l.leafSeg, l.innerSeg = n.leafSeg(), n.innerSeg()
	return nil
}

// Add appends an entry. After an error the loader is of no more use.
func (l *Loader) Add(key []byte, flags byte, value []byte) error {
	if l.err == nil && !l.started {
		l.err = l.start()
	}
	if l.err != nil {
		return l.err
	}
	if len(key) > MaxKey || len(key)+len(value) > MaxEntry {
		return ErrTooLarge
	}
	if v := l.levels[0]; len(v.entries) > 0 && bytes.Compare(key, v.key(len(v.entries)-1)) <= 0 {
		l.err = ErrUnsorted
		return l.err
	}
	l.err = l.add(0, key, flags, value)
	return l.err
}

func (v *loadLevel) key(i int) []byte {
	e := &v.entries[i]
	return v.buf[e.off : e.off+e.keyLen]
}

func (v *loadLevel) value(i int) []byte {
	e := &v.entries[i]
	return v.buf[e.off+e.keyLen : e.off+e.keyLen+e.valueLen]
}

// size is what the entries take as one node with a prefix of plen bytes.
func (v *loadLevel) size(plen int) int {
	keyed := len(v.entries)
	if v.level > 0 {
		keyed--
	}
	return v.costs - (keyed-1)*plen
}

func (v *loadLevel) append(key []byte, flags byte, value []byte) {
	cost := entryCost(len(key), len(value))
	if v.level > 0 && len(v.entries) == 0 {
		cost -= len(key) // slot 0 has no key
	}
	v.costs += cost
	v.entries = append(v.entries, loadEntry{len(v.buf), len(key), len(value), flags})
	v.buf = append(append(v.buf, key...), value...)
}

// add gives a level its next entry and writes a node if that is full.
//
// The prefix of a node follows from its bounds, and the upper one from the next
// node's first key. So the loader notes after which entry the node may end, and
// ends it there once not even the prefix of the bounds known so far, the longest
// possible, would let the next entry in.
func (l *Loader) add(level int, key []byte, flags byte, value []byte) error {
	if level == len(l.levels) {
		l.levels = append(l.levels, &loadLevel{level: level, near: l.t.root.No})
	}
	v := l.levels[level]
	if n := len(v.entries); n > 0 {
		hi := key
		if level == 0 {
			hi = separator(v.key(n-1), key)
		}
		atLeast := 1 // entries that always fit: one in a leaf, two children
		if level > 0 {
			atLeast = 2
		}
		if n <= atLeast || v.size(commonLen(v.lo, hi)) <= l.limit {
			v.cut, v.cutHi = n, append(v.cutHi[:0], hi...)
		}
	}
	v.append(key, flags, value)
	if v.cut > 0 && v.size(commonLen(v.lo, key)) > l.limit {
		return l.end(v)
	}
	return nil
}

// end writes the node that ends at the cut; what is behind it starts the next one.
func (l *Loader) end(v *loadLevel) error {
	if err := l.write(v, v.cut, v.cutHi, false); err != nil {
		return err
	}
	// What is left comes in again as if new, which may end further nodes.
	rest := slices.Clone(v.entries[v.cut:])
	base := rest[0].off
	buf := slices.Clone(v.buf[base:])
	v.lo, v.cutHi = v.cutHi, v.lo
	v.entries, v.buf, v.costs, v.cut = v.entries[:0], v.buf[:0], 0, 0
	for _, e := range rest {
		key := buf[e.off-base:][:e.keyLen]
		value := buf[e.off-base+e.keyLen:][:e.valueLen]
		if err := l.add(v.level, key, e.flags, value); err != nil {
			return err
		}
	}
	return nil
}

// build assembles the first n entries of the level as a node.
func (l *Loader) build(v *loadLevel, n int, prefix []byte) {
	b := l.b
	b.start(v.level, prefix)
	for i := range n {
		e := &v.entries[i]
		if i == 0 && v.level > 0 {
			b.add(nil, nil, e.flags, v.value(i))
			continue
		}
		b.add(nil, v.key(i)[len(prefix):], e.flags, v.value(i))
	}
	b.finish(maxSkip)
	if v.level == 0 {
		b.setMaxTrx(l.MaxTrx)
	}
}

// write puts the first n entries of the level, bounded by hi, on a new page, and
// the page into the level above.
func (l *Loader) write(v *loadLevel, n int, hi []byte, hiOpen bool) error {
	l.build(v, n, bestPrefix(v.lo, hi, hiOpen))
	if err := l.m.Begin(); err != nil {
		return err
	}
	seg := l.leafSeg
	if v.level > 0 {
		seg = l.innerSeg
	}
	no, err := l.t.space.AllocPage(l.m, seg, v.near)
	if err == nil && l.Unlogged {
		l.m.Commit()
		err = l.m.BeginUnlogged()
	}
	if err == nil {
		err = l.fill(no)
	}
	if l.m.Active() {
		l.m.Commit()
	}
	if err != nil {
		return err
	}
	v.near = no
	var buf [4]byte
	return l.add(v.level+1, v.lo, 0, childValue(&buf, no))
}

func (l *Loader) fill(no uint32) error {
	p, err := l.m.GetNew(l.t.id(no), page.TypeIndex)
	if err != nil {
		return err
	}
	l.m.SetOwner(p, l.t.index)
	l.b.store(&pageChanger{m: l.m, p: p})
	return nil
}

// Finish writes what is left and puts the tree together.
func (l *Loader) Finish() error {
	if l.err == nil && !l.started {
		l.err = l.start()
	}
	for i := 0; l.err == nil && i < len(l.levels); i++ {
		v := l.levels[i]
		for l.err == nil && v.size(0) > capacity {
			l.err = l.end(v)
		}
		if l.err != nil {
			break
		}
		if i == len(l.levels)-1 {
			l.err = l.finishRoot(v)
			break
		}
		l.err = l.write(v, len(v.entries), nil, true)
	}
	return l.err
}

// finishRoot writes the top level into the root page.
func (l *Loader) finishRoot(v *loadLevel) error {
	if len(l.levels) > 1 && l.Unlogged {
		if err := l.t.pool.FlushSpace(l.t.root.Space); err != nil {
			return err
		}
	}
	l.build(v, len(v.entries), nil)
	l.b.setSegments(l.leafSeg, l.innerSeg)
	if err := l.m.Begin(); err != nil {
		return err
	}
	defer l.m.Commit()
	p, err := l.m.Get(l.t.root, mtr.X)
	if err != nil {
		return err
	}
	l.b.store(&pageChanger{m: l.m, p: p})
	l.t.noteRoot(v.level)
	return nil
}

package lock

import (
	"bytes"
	"cmp"
	"sync"
	"sync/atomic"
)

// span is a range of keys: its owner has a granted lock of its mode on each entry of
// the index that lies in [low, end), except on what the owner has inserted there
// itself, which it holds anyway. It says nothing of keys at which no entry is; an
// entry that someone else inserts there is cut out ([Table.InheritOnInsert]).
//
// The spans are a treap by (index, low), in which each node knows the one with the
// greatest end below it.
type span struct {
	owner    *Owner
	index    uint64
	low, end []byte // an empty end is that of the index
	mode     Mode
	prio     uint32
	seq      uint32 // orders spans with one low

	left, right, up *span
	max             *span // of the subtree, by end

	ownPrev, ownNext *span // guarded by the owner's mutex

	lowRoom, endRoom [16]byte // for short keys
}

// spanSlot has the spans of some indexes. Its mutex comes after those of shards and
// before those of owners. Whoever changes what is locked on a key, or looks at it, has
// the mutex of the key's shard too.
type spanSlot struct {
	n    atomic.Int32 // number of spans; none is the usual case
	mu   sync.Mutex
	root *span
	rng  uint64
	seq  uint32
	some []*span // scratch
	_    [64]byte
}

const spanSlots = 128 // power of two

func (t *Table) slotOf(index uint64) *spanSlot {
	return &t.spans[fold(index, 0x9E3779B97F4A7C15)&(spanSlots-1)]
}

// spansOn returns the slot of the index if there may be spans in it, else nil. Spans
// have no place for the supremum.
//
// REQUIRES: the mutex of the key's shard, so that no span comes to cover the key.
func (t *Table) spansOn(index uint64, key []byte) *spanSlot {
	if len(key) == 0 {
		return nil
	}
	if s := t.slotOf(index); s.n.Load() != 0 {
		return s
	}
	return nil
}

// covers reports whether the span covers an entry with the key.
func (p *span) covers(index uint64, key []byte) bool {
	return p.index == index && bytes.Compare(p.low, key) <= 0 && (len(p.end) == 0 || bytes.Compare(key, p.end) < 0)
}

func (p *span) before(q *span) bool {
	return cmp.Or(cmp.Compare(p.index, q.index), bytes.Compare(p.low, q.low), cmp.Compare(p.seq, q.seq)) < 0
}

// compareEnds compares ends of spans, of which an empty one is above all others.
func compareEnds(a, b []byte) int {
	switch {
	case len(a) == 0 && len(b) == 0:
		return 0
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return bytes.Compare(a, b)
}

// endsBefore reports whether p ends before q does, spans of lower indexes first.
func (p *span) endsBefore(q *span) bool {
	if p.index != q.index {
		return p.index < q.index
	}
	return compareEnds(p.end, q.end) < 0
}

// pull computes max from the children.
func (p *span) pull() {
	p.max = p
	if l := p.left; l != nil && p.max.endsBefore(l.max) {
		p.max = l.max
	}
	if r := p.right; r != nil && p.max.endsBefore(r.max) {
		p.max = r.max
	}
}

// ended repairs max from p upwards, after p's end or p's children have changed.
func (p *span) ended() {
	for ; p != nil; p = p.up {
		p.pull()
	}
}

// grown is ended where the end has become greater.
func (p *span) grown() {
	for q := p; q != nil; q = q.up {
		if q.max != p && !q.max.endsBefore(p) {
			return
		}
		q.max = p
	}
}

// insert adds a span. REQUIRES: s.mu, as all methods of spanSlot do.
func (s *spanSlot) insert(p *span) {
	s.rng ^= s.rng << 13
	s.rng ^= s.rng >> 7
	s.rng ^= s.rng << 17
	s.seq++
	p.prio, p.seq = uint32(s.rng>>32), s.seq
	p.left, p.right, p.up, p.max = nil, nil, nil, p
	at := &s.root
	for *at != nil {
		p.up = *at
		if p.before(*at) {
			at = &(*at).left
		} else {
			at = &(*at).right
		}
	}
	*at = p
	for p.up != nil && p.up.prio < p.prio {
		s.lift(p)
	}
	p.ended()
}

// remove takes a span out.
func (s *spanSlot) remove(p *span) {
	for p.left != nil || p.right != nil {
		if p.right == nil || p.left != nil && p.left.prio > p.right.prio {
			s.lift(p.left)
		} else {
			s.lift(p.right)
		}
	}
	*s.link(p) = nil
	p.up.ended()
	p.up = nil
}

// link is where the tree refers to the span.
func (s *spanSlot) link(p *span) **span {
	switch {
	case p.up == nil:
		return &s.root
	case p.up.left == p:
		return &p.up.left
	}
	return &p.up.right
}

// lift makes p the parent of its parent.
func (s *spanSlot) lift(p *span) {
	q := p.up
	*s.link(q) = p
	p.up = q.up
	if q.left == p {
		q.left = p.right
		if q.left != nil {
			q.left.up = q
		}
		p.right = q
	} else {
		q.right = p.left
		if q.right != nil {
			q.right.up = q
		}
		p.left = q
	}
	q.up = p
	q.pull()
	p.pull()
}

// near collects the spans of the index that overlap [from, to] or touch it, in the
// order of their lows; an empty to is the index's end.
func (s *spanSlot) near(index uint64, from, to []byte) []*span {
	s.some = s.root.near(s.some[:0], index, from, to)
	return s.some
}

func (p *span) near(list []*span, index uint64, from, to []byte) []*span {
	if p == nil || p.max.index < index || p.max.index == index && compareEnds(p.max.end, from) < 0 && len(from) > 0 {
		return list
	}
	list = p.left.near(list, index, from, to)
	if p.index > index || p.index == index && len(to) > 0 && bytes.Compare(p.low, to) > 0 {
		return list
	}
	if p.index == index && (len(from) == 0 || compareEnds(p.end, from) >= 0) {
		list = append(list, p)
	}
	return p.right.near(list, index, from, to)
}

// over collects the spans that cover an entry with the key.
func (s *spanSlot) over(index uint64, key []byte) []*span {
	list := s.near(index, key, key)
	n := 0
	for _, p := range list {
		if p.covers(index, key) {
			list[n] = p
			n++
		}
	}
	return list[:n]
}

// setLow and setEnd change a span that is in no tree, or whose place stays.
func (p *span) setLow(low []byte) {
	if p.low == nil {
		p.low = p.lowRoom[:0]
	}
	p.low = append(p.low[:0], low...)
}

func (p *span) setEnd(end []byte) {
	if p.end == nil {
		p.end = p.endRoom[:0]
	}
	p.end = append(p.end[:0], end...)
}

func (p *span) bytes() int64 {
	n := spanBytes
	for _, b := range [...][]byte{p.low, p.end} {
		if cap(b) > len(p.lowRoom) {
			n += int64(cap(b))
		}
	}
	return n
}

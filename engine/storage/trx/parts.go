package trx

import "sync"

// partCount is the number of parts of the system's lists; a power of two.
const partCount = 8

// part is a part of the lists of open snapshots and of running transactions: with
// one list for all, the short transactions of many tasks would do little else
// than pass its cache lines around. Tasks choose their part by [Options.Part].
type part struct {
	mu        sync.Mutex // guards the following
	views     View       // ring of the open views, ascending by CSN
	openViews int
	trxs      link // ring of the transactions that have not ended, newest first
	count     int
	free      *Trx // linked by next

	_ [64]byte
}

// link is the place of a transaction in a part's ring.
type link struct {
	prev, next *link
	t          *Trx
}

func (p *part) init() {
	p.views.prev, p.views.next = &p.views, &p.views
	p.trxs.prev, p.trxs.next = &p.trxs, &p.trxs
}

// take returns an object for a transaction and puts it into the ring.
func (p *part) take(s *System) *Trx {
	p.mu.Lock()
	t := p.free
	if t != nil {
		p.free = t.nextFree
	} else {
		t = &Trx{sys: s, part: p}
		t.view.part = p
		t.link.t = t
	}
	l := &t.link
	l.prev, l.next = &p.trxs, p.trxs.next
	l.prev.next, l.next.prev = l, l
	p.count++
	p.mu.Unlock()
	return t
}

// give takes an ended transaction out of the ring and keeps its object.
func (p *part) give(t *Trx) {
	p.mu.Lock()
	l := &t.link
	l.prev.next, l.next.prev = l.next, l.prev
	l.prev, l.next = nil, nil
	t.nextFree, p.free = p.free, t
	p.count--
	p.mu.Unlock()
}

// open puts a view behind after. REQUIRES: mu, as for close and oldest.
func (p *part) open(v, after *View) {
	v.open = true
	v.prev, v.next = after, after.next
	v.prev.next, v.next.prev = v, v
	p.openViews++
}

func (p *part) close(v *View) {
	v.open = false
	v.prev.next, v.next.prev = v.next, v.prev
	v.prev, v.next = nil, nil
	p.openViews--
}

// oldest is the least CSN of the part's open views, or csn if that is less.
func (p *part) oldest(csn uint64) uint64 {
	if first := p.views.next; first != &p.views {
		return min(first.CSN, csn)
	}
	return csn
}

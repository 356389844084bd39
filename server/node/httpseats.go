package node

import (
	"container/list"
	"sync"
)

// seats are so many at a time, of one source at most three quarters. They never keep out who comes: if his
// source has all that it may have, he gets the seat of the one of it that has sat for the longest; if all
// are taken, one of the source that has the most. So a flood from an address pushes out itself, and who comes
// from behind the same address (a proxy, a node of Kubernetes) gets his turn between. A seat that is held
// is not given away.
type seats struct {
	most int

	mu    sync.Mutex
	taken list.List      // of *seat, the longest first
	from  map[string]int // how many of a source are taken
}

// seat is one of seats.
type seat struct {
	of     *seats
	at     *list.Element // nil: it is given back
	source string
	held   int
	evict  func()
}

func newSeats(most int) *seats { return &seats{most: most, from: make(map[string]int)} }

// take takes a seat; evict is called, at most once, when another one gets it, and must not wait. nil: those that could
// be given away are held.
func (s *seats) take(source string, evict func()) *seat {
	s.mu.Lock()
	defer s.mu.Unlock()
	if full := s.taken.Len() >= s.most; full || s.from[source] >= max(1, s.most*3/4) {
		victim := s.victim(source, full)
		if victim == nil {
			return nil
		}
		victim.end()
		victim.evict()
	}
	one := &seat{of: s, source: source, evict: evict}
	one.at = s.taken.PushBack(one)
	s.from[source]++
	return one
}

// victim is whose seat a newcomer of a source gets: the longest taken one of the source, or of the one that has the most.
func (s *seats) victim(source string, full bool) *seat {
	var own, other *seat
	for e := s.taken.Front(); e != nil; e = e.Next() {
		one, _ := e.Value.(*seat)
		switch {
		case one.held > 0:
		case one.source != source:
			if other == nil || s.from[one.source] > s.from[other.source] {
				other = one
			}
		case own == nil:
			own = one
		}
	}
	if full && other != nil && s.from[other.source] > s.from[source] {
		return other
	}
	return own
}

// end gives a seat back that has not been.
//
// REQUIRES: mu is held.
func (o *seat) end() {
	if o.at != nil {
		o.of.taken.Remove(o.at)
		o.at = nil
		if o.of.from[o.source]--; o.of.from[o.source] == 0 {
			delete(o.of.from, o.source)
		}
	}
}

// leave gives the seat back, and may be called again. After it evict is not called.
func (o *seat) leave() {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	o.end()
}

// hold keeps the seat from being given away until release is called, once.
func (o *seat) hold() (release func()) {
	o.add(+1)
	return func() { o.add(-1) }
}

func (o *seat) add(n int) {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	o.held += n
}

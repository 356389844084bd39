package json

import (
	"iter"
	"strconv"
)

// A Path is a parsed path expression such as $.name[0]. It is immutable and safe for concurrent use.
type Path struct {
	legs  []leg
	multi bool // may match several places
}

type legKind uint8

const (
	legMember    legKind = iota // .key
	legAnyMember                // .*
	legCell                     // [from]
	legRange                    // [from to to]
	legAnyCell                  // [*]
	legDeep                     // **: the place itself and everything below it
)

type leg struct {
	kind     legKind
	key      []byte
	from, to cell
}

// A cell is an array index, counted from the start or back from the last element.
type cell struct {
	index   uint32
	fromEnd bool
}

// in returns the index in an array of count elements: below 0 when it lies before the first, count or more when after the
// last.
func (c cell) in(count int) int {
	if c.fromEnd {
		return count - 1 - int(c.index)
	}
	return int(c.index)
}

// MultiMatch reports whether the path holds a wildcard or a range and so may match several places.
func (p *Path) MultiMatch() bool { return p.multi }

// Len returns the number of legs; 0 for "$".
func (p *Path) Len() int { return len(p.legs) }

// EndsWithCell reports whether the last leg is a single array cell.
func (p *Path) EndsWithCell() bool {
	return len(p.legs) > 0 && p.legs[len(p.legs)-1].kind == legCell
}

// Limits are what following a path into several places needs of others: it may take as many steps as there are values
// in the document and legs in the path, and memory for each. A nil *Limits has none.
type Limits struct {
	// Stop is asked now and then, and ends it with its error; nil: nothing does.
	Stop func() error
	// Account counts bytes that are taken or, negative, given back; nil does not count.
	Account func(delta int64) error
}

// Get returns the value that a path of one place names. Of one that may match several it is First without limits. It
// allocates nothing unless the path contains **.
//
// As in MySQL, a value that is no array counts as an array of itself where a cell or range is asked for.
func (p *Path) Get(v Value) (Value, bool) {
	if p.multi {
		found, ok, _ := p.First(v, nil)
		return found, ok
	}
	for i := range p.legs {
		var ok bool
		if v, ok = p.legs[i].step(v); !ok {
			return missing, false
		}
	}
	return v, v.Exists()
}

// First returns the first value that the path matches in v. Errors are those of the limits.
func (p *Path) First(v Value, l *Limits) (found Value, ok bool, err error) {
	if !p.multi {
		found, ok = p.Get(v)
		return found, ok, nil
	}
	found = missing
	err = p.Each(v, l, func(m Value) bool {
		found = m
		return false
	})
	return found, found.Exists(), err
}

// step follows a leg that matches one place.
func (l *leg) step(v Value) (Value, bool) {
	if l.kind == legMember {
		return v.Member(l.key)
	}
	if !v.IsArray() {
		return v, l.from.in(1) == 0
	}
	return v.Index(l.from.in(v.Len()))
}

// Each calls f with every value that the path matches in v, in document order, each place once, until f returns false.
// Errors are those of the limits.
func (p *Path) Each(v Value, l *Limits, f func(Value) bool) (err error) {
	w := walker{visit: f, firstDeep: -1, err: &err}
	if l != nil {
		w.limits = *l
	}
	for i, g := range p.legs {
		switch {
		case g.kind == legDeep && w.firstDeep < 0:
			w.firstDeep = len(p.legs) - i - 1
		case g.kind == legDeep, w.firstDeep >= 0 && (g.kind == legCell || g.kind == legRange):
			w.dedupe = true
		}
	}
	w.walk(v, p.legs)
	if w.counted > 0 {
		_ = w.limits.Account(-w.counted) // what is given back is never refused
	}
	return err
}

// All are the values that Each finds, one at a time. What ends it is put into err.
func (p *Path) All(v Value, l *Limits, err *error) iter.Seq[Value] {
	return func(yield func(Value) bool) { *err = p.Each(v, l, yield) }
}

// A walker follows a path into several places.
type walker struct {
	visit  func(Value) bool
	limits Limits
	// firstDeep is how many legs are behind the first **, which leads to each place in one way. dedupe says that what
	// follows can lead to one place in several: another **, or a cell, for a value is the first element of itself.
	firstDeep int
	dedupe    bool
	seen      map[visited]struct{}
	steps     int
	counted   int64  // of seen
	err       *error // of the limits; a pointer, so that visit does not escape to the heap
}

// A Place identifies a value within a document in memory.
type Place struct {
	rest int // what of the memory lies behind its first byte
	tag  byte
}

// Place returns where the value is.
func (v Value) Place() Place { return Place{rest: cap(v.data), tag: v.tag} }

// visited is a place that was reached with so many legs left.
type visited struct {
	at   Place
	legs int
}

const (
	stepsBetweenStops = 1 << 12 // some tenths of a millisecond
	visitedBytes      = 64      // what an entry takes
	visitedCounted    = 1 << 10 // how many are counted at once
)

// step counts a step, and reports whether there may be one more.
func (w *walker) step() bool {
	if w.steps++; w.steps%stepsBetweenStops == 0 && w.limits.Stop != nil && *w.err == nil {
		*w.err = w.limits.Stop()
	}
	return *w.err == nil
}

// enter reports whether v is reached with so many legs left for the first time.
func (w *walker) enter(v Value, legs int) bool {
	at := visited{at: v.Place(), legs: legs}
	if _, dup := w.seen[at]; dup {
		return false
	}
	if w.seen == nil {
		w.seen = make(map[visited]struct{})
	}
	if len(w.seen)%visitedCounted == visitedCounted-1 && w.limits.Account != nil {
		if *w.err = w.limits.Account(visitedCounted * visitedBytes); *w.err != nil {
			return false
		}
		w.counted += visitedCounted * visitedBytes
	}
	w.seen[at] = struct{}{}
	return true
}

// walk returns false once visit has, or it was stopped.
func (w *walker) walk(v Value, legs []leg) bool {
	if !w.step() {
		return false
	}
	if !v.Exists() {
		return true
	}
	if len(legs) == 0 {
		if w.dedupe && !w.enter(v, 0) {
			return *w.err == nil
		}
		return w.visit(v)
	}
	l, rest := &legs[0], legs[1:]
	switch l.kind {
	case legMember, legCell:
		e, ok := l.step(v)
		return !ok || w.walk(e, rest)
	case legAnyMember:
		return !v.IsObject() || w.children(v, 0, v.Len(), rest)
	case legAnyCell:
		return !v.IsArray() || w.children(v, 0, v.Len(), rest)
	case legRange:
		return w.cells(v, l, rest)
	}
	return w.deep(v, rest, 0)
}

// children walks on from children lo to hi-1.
func (w *walker) children(v Value, lo, hi int, rest []leg) bool {
	c := v.open()
	for i := lo; i < hi; i++ {
		if e, ok := c.value(i); ok && !w.walk(e, rest) {
			return false
		}
	}
	return true
}

func (w *walker) cells(v Value, l *leg, rest []leg) bool {
	count := 1
	if v.IsArray() {
		count = v.Len()
	}
	lo, hi := max(l.from.in(count), 0), min(l.to.in(count), count-1)
	switch {
	case lo > hi:
		return true
	case !v.IsArray():
		return w.walk(v, rest)
	}
	return w.children(v, lo, hi+1, rest)
}

// deep walks on from v and from everything below it.
func (w *walker) deep(v Value, rest []leg, level int) bool {
	if len(rest) != w.firstDeep && !w.enter(v, len(rest)) {
		return *w.err == nil // a second ** leads here again
	}
	if !w.walk(v, rest) {
		return false
	}
	if !v.IsContainer() || level > MaxDepth {
		return true
	}
	c := v.open()
	for i := range c.count {
		if e, ok := c.value(i); ok && !w.deep(e, rest, level+1) {
			return false
		}
	}
	return true
}

// String returns the path in MySQL's normal form.
func (p *Path) String() string { return string(p.appendTo(nil)) }

func (p *Path) appendTo(dst []byte) []byte {
	dst = append(dst, '$')
	for _, l := range p.legs {
		switch l.kind {
		case legMember:
			dst = append(dst, '.')
			if isIdentifier(l.key) {
				dst = append(dst, l.key...)
			} else {
				dst = appendQuoted(dst, l.key)
			}
		case legAnyMember:
			dst = append(dst, ".*"...)
		case legCell:
			dst = append(l.from.appendTo(append(dst, '[')), ']')
		case legRange:
			dst = l.from.appendTo(append(dst, '['))
			dst = append(l.to.appendTo(append(dst, " to "...)), ']')
		case legAnyCell:
			dst = append(dst, "[*]"...)
		case legDeep:
			dst = append(dst, "**"...)
		}
	}
	return dst
}

func (c cell) appendTo(dst []byte) []byte {
	if !c.fromEnd {
		return strconv.AppendUint(dst, uint64(c.index), 10)
	}
	dst = append(dst, "last"...)
	if c.index > 0 {
		dst = strconv.AppendUint(append(dst, '-'), uint64(c.index), 10)
	}
	return dst
}

package turn

import (
	"container/heap"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// shortWork is how long a piece of work goes on whoever else is at work, unless SetShort says something else.
	shortWork = 5 * time.Millisecond
	// quantum is how long a piece of work has a place while others wait for one.
	quantum = 5 * time.Millisecond
	// lease is for how long a place is kept for work that does not say it goes on: it waits for a lock or a disk.
	lease = 4 * quantum
	// A turn that lasted longer than mostTurn was a wait for the greater part: only so much of it counts as work.
	mostTurn = longest
	// A place more is given if passes of those that have one last no longer than quickPass, one less if they last slowPass: short
	// work waits as long.
	quickPass  = 300 * time.Microsecond
	slowPass   = time.Millisecond
	mostPlaces = 1024
	// When somebody has waited in widenTicks ticks one after the other, Go is told of more processors; when nobody has for calmTicks of
	// calmTick each, all is as it was.
	widenTicks = 20
	calmTick   = 100 * time.Millisecond
	calmTicks  = 10
	// patience is the longest wait: what waits may have others wait for it.
	patience = 10 * time.Second
)

// Processors gives a process' processors to those at work: short work has them at once, and work that goes on for longer waits for one
// of few places, so that short work never waits behind hundreds of others. A place is had for a quantum while others wait for one. The
// next has the owner whose work has had places for the shortest time, as in start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996);
// an owner's own take turns.
//
// There are as many places as processors, and more as long as those that have them find the processors free when they let
// others go first: work that waits for disks. Work that keeps a place without a word, for it waits for a lock, loses it
// after a while and waits for another when it goes on: nobody with a place can keep others from one for good.
//
// What has a place may go on for 10 ms and more without letting others go first, and Go's scheduler knows no priorities. While work
// waits for a place, Go therefore is told of more processors than there are: short work finds one that nobody uses, and the system, which
// shares out the real ones by time, lets it go first. See docs/decisions/0051-long-statements-take-turns.md.
//
// Its methods are safe for concurrent use.
type Processors struct {
	least, most int // places
	widen       func() (processors int)
	restore     func()
	patience    time.Duration
	short       atomic.Int64 // duration; 0: no work waits for a place

	passes, passed atomic.Int64 // of those that have places, since the last tick: how many, and how long

	mu      sync.Mutex // guards what follows, and the state of owners and work
	widened bool
	calm    int // ticks since somebody has waited
	busy    int // ticks in which somebody has, since there was one in which nobody did
	places  int
	held    []*Work
	waiting owners
	count   int           // work that waits
	floor   time.Duration // Owner.used of who was given a place last, and of who had used most when nobody waited
	top     time.Duration // the greatest Owner.used
	ticking bool
	ticker  *time.Timer
	waits   uint64        // that have ended
	waited  time.Duration // in them
}

// NewProcessors returns the processors that Go uses. They are the process': another of them is for tests.
func NewProcessors() *Processors {
	n := runtime.GOMAXPROCS(0)
	p := &Processors{least: n, most: mostPlaces, places: n, widen: machine.widen, restore: machine.restore, patience: patience}
	p.ticker = time.AfterFunc(time.Hour, p.tick)
	p.ticker.Stop()
	p.SetShort(shortWork)
	return p
}

// Still returns processors with so many places, whatever happens: for tests of who waits. With 0 all work waits that is not short.
func Still(places int) *Processors {
	p := NewProcessors()
	p.least, p.most, p.places = places, places, places
	p.widen, p.restore = func() int { return places }, func() {}
	return p
}

// SetShort says how long work is short; 0: none waits for a place.
func (p *Processors) SetShort(d time.Duration) { p.short.Store(int64(d)) }

// ProcessorStats are how work stands that is not short.
type ProcessorStats struct {
	Places, Held, Waiting int
	Waits                 uint64        // that have ended
	Waited                time.Duration // in them
}

// Stats returns how things stand.
func (p *Processors) Stats() ProcessorStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return ProcessorStats{Places: p.places, Held: len(p.held), Waiting: p.count, Waits: p.waits, Waited: p.waited}
}

// Owner is whose work it is. Its zero value is ready.
type Owner struct {
	used  time.Duration // for which its work has had places
	works []*Work       // that wait, in their order
	index int           // in Processors.waiting, if it has any
}

// Work is what one task does for an owner. Only that task may use it, but for Interrupt and Waits. UseProcessors comes before all else, then
// each piece of work has its Begin and End.
type Work struct {
	turn  Turn
	p     *Processors
	owner *Owner
	own   Owner         // if it has no other
	did   time.Duration // since Begin

	renewed atomic.Int64 // when it last said that it goes on, while it has a place
	holds   atomic.Bool  // changed under Processors.mu

	// Guarded by Processors.mu.
	since   time.Duration // when it got its place, or began to wait for one
	waits   bool
	granted chan struct{} // of capacity 1
}

// UseProcessors says whose places there are to wait for; nil: there are none, and Pass lets others go first and no more.
func (w *Work) UseProcessors(p *Processors) { w.p = p }

// Begin begins a piece of work. An owner of nil is one by itself.
func (w *Work) Begin(owner *Owner) {
	if owner == nil {
		owner = &w.own
	}
	w.Pause()
	w.turn, w.owner, w.did = Turn{}, owner, 0
}

// Pause gives back the work's place, if it has one: it is about to wait for something else.
func (w *Work) Pause() {
	if w.p != nil && w.holds.Load() {
		w.p.mu.Lock()
		w.p.drop(w, time.Since(start))
		w.p.grant()
		w.p.mu.Unlock()
	}
}

// End ends a piece of work.
func (w *Work) End() {
	w.Pause()
	w.owner = nil
}

// Expect says that work goes on for so long before its next Pass. If it is not short any more then, it waits for a place now, as Pass
// does, and keeps it meanwhile; of what was expected only what it does counts then. It reports whether it has waited. Outside of a piece of
// work it does nothing.
func (w *Work) Expect(d time.Duration, may func() time.Duration) (waited bool) {
	p := w.p
	if p == nil || w.owner == nil || p.short.Load() == 0 {
		return false
	}
	now := time.Since(start)
	did := w.did
	if w.did += d; w.did < time.Duration(p.short.Load()) {
		return false
	}
	w.did = did
	if !w.holds.Load() || !p.goesOn(w, now) {
		waited = p.wait(w, now, may)
	}
	if waited {
		w.turn.Begin()
	}
	w.renewed.Store(int64(time.Since(start) + d))
	return waited
}

// Pass lets others go first if the turn is over. Work that is not short waits for a place, as long as may says that it may: 0 or less, not at
// all (and Interrupt ends the wait). It reports whether it has waited.
func (w *Work) Pass(may func() time.Duration) (waited bool) {
	now := time.Since(start)
	did := now - w.turn.began
	if w.turn.began == 0 || did < max(Length, w.turn.length) {
		w.turn.passAt(now)
		return false
	}
	p := w.p
	if p == nil || p.short.Load() == 0 {
		w.turn.passAt(now)
		return false
	}
	did = min(did, mostTurn)
	w.did += did
	if w.holds.Load() {
		if p.goesOn(w, now) {
			p.passes.Add(1)
			p.passed.Add(int64(w.turn.passAt(now)))
			w.renewed.Store(int64(time.Since(start)))
			return false
		}
	} else if w.did < time.Duration(p.short.Load()) {
		w.turn.passAt(now)
		return false
	}
	if !p.wait(w, now, may) {
		w.turn.passAt(now)
		return false
	}
	w.turn.Begin()
	return true
}

// goesOn reports whether work that has a place may keep it: nobody waits, or its quantum is not over. What nobody waits for is free.
func (p *Processors) goesOn(w *Work, now time.Duration) bool {
	w.renewed.Store(int64(now))
	p.mu.Lock()
	defer p.mu.Unlock()
	if !w.holds.Load() {
		return false
	}
	if p.count == 0 && len(p.held) <= p.places {
		w.since = now
		return true
	}
	return now-w.since < quantum
}

// wait gives work a place, and reports whether it had to wait for one or for the end of the wait.
func (p *Processors) wait(w *Work, now time.Duration, may func() time.Duration) bool {
	p.mu.Lock()
	if w.owner == nil { // before the first Begin
		w.owner = &w.own
	}
	p.drop(w, now)
	if p.count == 0 && len(p.held) < p.places {
		p.give(w, now)
		p.mu.Unlock()
		return false
	}
	left := min(may(), p.patience)
	if left <= 0 {
		p.mu.Unlock()
		return false
	}
	p.enqueue(w, now)
	p.grant()
	p.mu.Unlock()
	defer time.AfterFunc(left, w.Interrupt).Stop()
	<-w.granted
	return true
}

// Waits reports whether the work waits for a place. Any task may call it.
func (w *Work) Waits() bool {
	if w.p == nil {
		return false
	}
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	return w.waits
}

// Interrupt ends a wait for a place; the work goes on without. Any task may call it.
func (w *Work) Interrupt() {
	p := w.p
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !w.waits {
		return
	}
	o := w.owner
	i := slices.Index(o.works, w)
	o.works = slices.Delete(o.works, i, i+1)
	if len(o.works) == 0 {
		heap.Remove(&p.waiting, o.index)
	}
	p.left(w)
	w.granted <- struct{}{}
}

// The methods below want the mutex to be held.

// enqueue lets work wait.
func (p *Processors) enqueue(w *Work, now time.Duration) {
	if w.granted == nil {
		w.granted = make(chan struct{}, 1)
	}
	w.waits, w.since = true, now
	if p.count == 0 { // who has worked while others did not owes them nothing
		p.floor = max(p.floor, p.top)
	}
	p.count++
	o := w.owner
	if o.works = append(o.works, w); len(o.works) == 1 {
		// Who was away has not saved up for it.
		o.used = max(o.used, p.floor)
		heap.Push(&p.waiting, o)
	}
	if !p.ticking || p.calm > 0 {
		p.ticking, p.calm = true, 0
		p.passes.Store(0)
		p.passed.Store(0)
		p.ticker.Reset(quantum)
	}
}

// left counts that work is in no queue any more.
func (p *Processors) left(w *Work) {
	w.waits = false
	p.count--
	p.waits++
	p.waited += time.Since(start) - w.since
}

// grant gives the places that are free.
func (p *Processors) grant() {
	for p.count > 0 && len(p.held) < p.places {
		o := p.waiting[0]
		w := o.works[0]
		o.works = slices.Delete(o.works, 0, 1)
		p.floor = max(p.floor, o.used)
		p.left(w)
		p.give(w, time.Since(start)) // before it awakes: it may end at once
		w.granted <- struct{}{}
		if len(o.works) == 0 {
			heap.Pop(&p.waiting)
		}
	}
}

// give gives work a place. A quantum is counted at once, for who has more than one place.
func (p *Processors) give(w *Work, now time.Duration) {
	w.since = now
	w.renewed.Store(int64(now))
	w.holds.Store(true)
	p.held = append(p.held, w)
	p.use(w.owner, quantum)
}

// drop takes the place of work that may have one.
func (p *Processors) drop(w *Work, now time.Duration) {
	if !w.holds.Load() {
		return
	}
	i := slices.Index(p.held, w)
	p.held = slices.Delete(p.held, i, i+1)
	p.use(w.owner, now-w.since-quantum)
	w.holds.Store(false) // at last: the task that finds it so forgets whose work it was
}

// use counts what an owner's work has had, which may change its place among those that wait.
func (p *Processors) use(o *Owner, d time.Duration) {
	o.used += d
	p.top = max(p.top, o.used)
	if len(o.works) > 0 {
		heap.Fix(&p.waiting, o.index)
	}
}

// tick takes the places of those that say nothing and finds how many there are to be, as long as somebody waits and a while longer.
func (p *Processors) tick() {
	p.mu.Lock()
	now := time.Since(start)
	for _, w := range slices.Clone(p.held) {
		if renewed := time.Duration(w.renewed.Load()); now-renewed >= lease {
			p.drop(w, max(renewed, w.since+quantum)) // it may have worked without a word
		}
	}
	if n := p.passes.Swap(0); n > 0 {
		switch each := time.Duration(p.passed.Swap(0) / n); {
		case each < quickPass && p.count > 0 && !p.widened: // widened, a pass finds a processor that there is not
			p.places = min(p.places+1, p.most)
		case each > slowPass:
			p.places = max(p.places-1, p.least)
		}
	}
	p.grant()
	next, change := quantum, func() {}
	if p.count > 0 {
		p.calm = 0
		if p.busy++; p.busy >= widenTicks && !p.widened {
			p.widened, p.places = true, p.least
			change = func() {
				n := p.widen()
				p.mu.Lock()
				p.least = n
				p.mu.Unlock()
			}
		}
	} else {
		next, p.busy = calmTick, 0
		if p.calm++; p.calm > calmTicks {
			next, p.ticking, p.places = 0, false, p.least
			if p.widened {
				p.widened = false
				change = p.restore
			}
		}
	}
	p.mu.Unlock()
	change() // Go may collect garbage first: nobody waits for it with the mutex
	if next > 0 {
		p.ticker.Reset(next)
	}
}

// owners are those with work that waits, a heap by what they have had.
type owners []*Owner

func (h owners) Len() int           { return len(h) }
func (h owners) Less(i, j int) bool { return h[i].used < h[j].used }
func (h owners) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *owners) Push(x any) {
	o := x.(*Owner)
	o.index = len(*h)
	*h = append(*h, o)
}
func (h *owners) Pop() any {
	last := len(*h) - 1
	o := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return o
}

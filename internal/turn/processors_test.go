package turn

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func forever() time.Duration { return math.MaxInt64 }

// spin computes for about a while.
func spin(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
	}
}

// crowd lets pieces of work of owners go on until the function that it returns is called. That tells how long each was at work.
func crowd(p *Processors, list []*Owner) (end func() []time.Duration) {
	var over atomic.Bool
	var all sync.WaitGroup
	did := make([]time.Duration, len(list))
	for i, o := range list {
		all.Go(func() {
			var w Work
			w.UseProcessors(p)
			w.Begin(o)
			defer w.End()
			for !over.Load() {
				began := time.Since(start)
				spin(50 * time.Microsecond)
				if w.holds.Load() {
					did[i] += time.Since(start) - began
				}
				w.Pass(forever)
			}
		})
	}
	return func() []time.Duration {
		over.Store(true)
		all.Wait()
		return did
	}
}

// calm waits until Go is told of no more processors than there are, for the sake of the tests before, and returns how many.
func calm(t *testing.T) int {
	t.Helper()
	eventually(t, "no test has waited for a place", func() bool {
		machine.mu.Lock()
		defer machine.mu.Unlock()
		return machine.asked == 0
	})
	return runtime.GOMAXPROCS(0)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 10_000 {
		if ok() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("not within 10 s: %s", what)
}

// TestPlaces has a hundred pieces of work: only as many as there are places have one, and a short one waits for none.
func TestPlaces(t *testing.T) {
	p := Still(2)
	end := crowd(p, make([]*Owner, 100))
	eventually(t, "most wait", func() bool { return p.Stats().Waiting > 50 })
	for range 100 {
		if s := p.Stats(); s.Held > s.Places {
			t.Errorf("%d have one of %d places", s.Held, s.Places)
		}
		var short Work
		short.UseProcessors(p)
		short.Begin(nil)
		spin(2 * Length)
		short.Pass(forever)
		spin(2 * Length)
		if short.Pass(forever) {
			t.Error("a short piece of work has waited")
		}
		short.End()
	}
	end()
	if s := p.Stats(); s.Held != 0 || s.Waiting != 0 || s.Waits == 0 || s.Waited < 50*quantum/2 || // more than 50 waited for two places
		len(p.waiting) != 0 {
		t.Errorf("at the end: %+v", s)
	}
}

// TestOwners lets one owner have 40 pieces of work and another one: each has about half of the places' time.
func TestOwners(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := Still(1)
	p.SetShort(time.Millisecond)
	many, one := new(Owner), new(Owner)
	list := []*Owner{one}
	for range 40 {
		list = append(list, many)
	}
	end := crowd(p, list)
	eventually(t, "1000 waits", func() bool { return p.Stats().Waits > 1000 })
	did := end()
	var others time.Duration
	for _, d := range did[1:] {
		others += d
	}
	if did[0]*4 < others {
		t.Errorf("one had %v, and 40 of another owner %v", did[0], others)
	}
}

// TestWiden lets work wait for a place: Go is told of more processors meanwhile, and of as many as before when all is calm.
func TestWiden(t *testing.T) {
	was := calm(t)
	p := NewProcessors()
	end := crowd(p, make([]*Owner, 100))
	eventually(t, "more processors", func() bool { return runtime.GOMAXPROCS(0) > was })
	end()
	relax(p)
	eventually(t, "as many as before", func() bool { return runtime.GOMAXPROCS(0) == was })
}

// relax lets nobody have waited for a while.
func relax(p *Processors) {
	p.mu.Lock()
	p.calm = calmTicks
	p.mu.Unlock()
}

// TestAlone lets an owner work alone for long, and then others come: it does not wait until they have had as much.
func TestAlone(t *testing.T) {
	p := Still(1)
	alone := new(Owner)
	var w Work
	w.UseProcessors(p)
	w.Begin(alone)
	for !w.holds.Load() {
		spin(Length)
		w.Pass(forever)
	}
	w.since -= time.Hour // as if
	spin(2 * longest)
	w.Pass(forever)
	w.End()
	p.mu.Lock()
	if alone.used > time.Minute {
		t.Errorf("it has had %v", alone.used)
	}
	alone.used += time.Hour // of a time in which others waited
	p.top = alone.used
	p.mu.Unlock()
	other := new(Owner)
	end := crowd(p, []*Owner{other, other, other, alone})
	defer end()
	eventually(t, "all wait", func() bool { return p.Stats().Waits > 20 })
	p.mu.Lock()
	defer p.mu.Unlock()
	if other.used < time.Hour {
		t.Errorf("the others began with %v, who was there before has had %v", other.used, alone.used)
	}
}

// TestNoBegin: work that waits before its first Begin, as a connection does that has just been let in, has an owner all the same.
func TestNoBegin(t *testing.T) {
	p := Still(1)
	end := crowd(p, make([]*Owner, 20))
	defer end()
	eventually(t, "most wait", func() bool { return p.Stats().Waiting > 10 })
	var w Work
	w.UseProcessors(p)
	w.turn.began, w.did = time.Since(start)-time.Second, time.Second
	if !w.Pass(func() time.Duration { return time.Millisecond }) {
		t.Error("it has not waited")
	}
	w.End()
}

// TestSilent has places taken by work that says nothing any more: others have them after a while, and it waits for another then.
func TestSilent(t *testing.T) {
	p := Still(2)
	silent := make([]Work, p.least)
	for i := range silent {
		w := &silent[i]
		w.UseProcessors(p)
		w.Begin(nil)
		for !w.holds.Load() {
			spin(Length)
			w.Pass(forever)
		}
	}
	end := crowd(p, make([]*Owner, 200))
	eventually(t, "their places are taken", func() bool {
		for i := range silent {
			if silent[i].holds.Load() {
				return false
			}
		}
		return p.Stats().Waiting > 10
	})
	spin(2 * longest)
	if !silent[0].Pass(forever) {
		t.Error("who had lost its place has not waited for another")
	}
	end()
	for i := range silent {
		silent[i].End()
	}
	if s := p.Stats(); s.Held != 0 {
		t.Errorf("at the end: %+v", s)
	}
}

// TestInterrupt ends waits: by Interrupt, by the time, and before they begin.
func TestInterrupt(t *testing.T) {
	p := Still(2)
	held := make([]Work, p.least)
	now := time.Since(start)
	p.mu.Lock()
	for i := range held {
		held[i].UseProcessors(p)
		held[i].Begin(nil)
		p.give(&held[i], now+time.Hour) // it is kept
	}
	p.mu.Unlock()
	wait := func(w *Work, may func() time.Duration) bool {
		w.UseProcessors(p)
		w.Begin(nil)
		w.turn.began, w.did = time.Since(start)-time.Second, time.Second
		return w.Pass(may)
	}
	if wait(new(Work), func() time.Duration { return 0 }) {
		t.Error("who may not wait has waited")
	}
	if !wait(new(Work), func() time.Duration { return time.Millisecond }) {
		t.Error("who may wait a while has not")
	}
	var w Work
	done := make(chan bool)
	go func() { done <- wait(&w, forever) }()
	eventually(t, "it waits", func() bool { return p.Stats().Waiting == 1 })
	if !w.Waits() {
		t.Error("it does not say that it waits")
	}
	w.Interrupt()
	if !<-done || w.Waits() || w.holds.Load() {
		t.Error("after Interrupt it waits, has not waited, or has a place")
	}
	w.Interrupt() // nothing happens
	w.End()
	for i := range held {
		held[i].End()
	}
	if s := p.Stats(); s.Held != 0 || s.Waiting != 0 {
		t.Errorf("at the end: %+v", s)
	}
}

// TestExpect: work that says that it will take long waits for a place, keeps it for as long, and what says that it will not does not wait.
func TestExpect(t *testing.T) {
	p := Still(2)
	end := crowd(p, make([]*Owner, 100))
	defer end()
	eventually(t, "most wait", func() bool { return p.Stats().Waiting > 50 })
	var none, short, long Work
	for _, w := range []*Work{&none, &short, &long} {
		w.UseProcessors(p)
	}
	short.Begin(nil)
	long.Begin(nil)
	if none.Expect(time.Hour, forever) {
		t.Error("what has not begun has waited")
	}
	if short.Expect(shortWork/2, forever) || !short.Expect(shortWork/2, forever) || !long.Expect(10*lease, forever) {
		t.Error("short work has waited, or long work has not")
	}
	time.Sleep(3 * lease)
	if !long.holds.Load() {
		t.Error("work that has said how long it takes has lost its place meanwhile")
	}
	short.End()
	long.End()
	if long.Expect(time.Hour, forever) {
		t.Error("what has ended has waited")
	}
}

// TestEndBesideTick: work that says nothing loses its place, and ends without a look at who takes it: the race detector is what can fail here.
func TestEndBesideTick(t *testing.T) {
	p := Still(1)
	var silent Work
	silent.UseProcessors(p)
	silent.Begin(new(Owner))
	silent.Expect(shortWork, forever)
	if !silent.holds.Load() {
		t.Fatal("it has no place")
	}
	end := crowd(p, make([]*Owner, 2))
	defer end()
	eventually(t, "its place is taken", func() bool { return !silent.holds.Load() })
	silent.End()
	silent.Begin(new(Owner))
	silent.End()
}

// TestMorePlaces has work that waits for something else most of the time: there come to be more places.
func TestMorePlaces(t *testing.T) {
	p := NewProcessors()
	p.SetShort(time.Millisecond)
	var over atomic.Bool
	var all sync.WaitGroup
	for range 50 * p.least {
		all.Go(func() {
			var w Work
			w.UseProcessors(p)
			w.Begin(nil)
			defer w.End()
			for !over.Load() {
				time.Sleep(2 * time.Millisecond)
				w.Pass(forever)
			}
		})
	}
	eventually(t, "more places than processors", func() bool { return p.Stats().Places > 2*p.least })
	over.Store(true)
	all.Wait()
	relax(p)
	eventually(t, "as many places as at first", func() bool { return p.Stats().Places == p.least })
}

// TestTick looks at what becomes of places, by how long those that have one let others go first.
func TestTick(t *testing.T) {
	for _, c := range []struct {
		name    string
		passes  time.Duration
		waits   bool
		widened bool
		from    int
		want    int
	}{
		{"free processors", 100 * time.Microsecond, true, false, 2, 3},
		{"free processors, and nobody waits", 100 * time.Microsecond, false, false, 2, 2},
		{"processors that there are not", 100 * time.Microsecond, true, true, 2, 2},
		{"neither", 500 * time.Microsecond, true, false, 3, 3},
		{"busy processors", 2 * time.Millisecond, true, false, 3, 2},
		{"busy processors, and no more places than these", 2 * time.Millisecond, true, false, 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Still(2)
			p.most, p.places, p.widened = 10, c.from, c.widened
			list := make([]Work, c.from+2)
			for i := range list {
				list[i].UseProcessors(p)
				list[i].Begin(nil)
			}
			p.mu.Lock()
			now := time.Since(start)
			for i := range c.from {
				p.give(&list[i], now)
			}
			if c.waits {
				p.enqueue(&list[c.from], now)
				p.enqueue(&list[c.from+1], now)
			}
			p.ticker.Stop()
			p.passes.Store(3)
			p.passed.Store(int64(3 * c.passes))
			p.mu.Unlock()
			p.tick()
			p.ticker.Stop()
			if s := p.Stats(); s.Places != c.want || s.Held > c.from+1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestSilentPays: who has lost a place without a word has had a quantum at least: it may have worked.
func TestSilentPays(t *testing.T) {
	p := Still(1)
	var w Work
	w.UseProcessors(p)
	w.Begin(nil)
	p.mu.Lock()
	p.give(&w, time.Since(start)-lease)
	p.mu.Unlock()
	p.tick()
	if w.holds.Load() || w.own.used < quantum {
		t.Errorf("it has a place: %v; it has had %v", w.holds.Load(), w.own.used)
	}
}

// TestPatience: a wait ends after a while, since others may wait for who waits.
func TestPatience(t *testing.T) {
	p := Still(0)
	p.patience = 10 * time.Millisecond
	var w Work
	w.UseProcessors(p)
	w.Begin(nil)
	done := make(chan bool)
	w.turn.began, w.did = time.Since(start)-time.Second, time.Second
	go func() { done <- w.Pass(forever) }()
	select {
	case ok := <-done:
		if !ok || w.holds.Load() {
			t.Error("it has not waited, or has a place")
		}
	case <-time.After(5 * time.Second):
		t.Error("it waits for ever")
		w.Interrupt()
		<-done
	}
	w.End()
}

func BenchmarkPass(b *testing.B) {
	for _, c := range []struct {
		name string
		p    *Processors
	}{{"turn", nil}, {"place", NewProcessors()}} {
		b.Run(c.name, func(b *testing.B) {
			var w Work
			w.UseProcessors(c.p)
			w.Begin(nil)
			for b.Loop() {
				w.turn.began = time.Since(start) - Length - mostTurn
				w.Pass(forever)
			}
			w.End()
		})
	}
}

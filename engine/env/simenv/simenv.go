// Package simenv is the deterministic [env.Env] of tests: tasks run one at a
// time in an order drawn from a seed, on a virtual clock that moves only when
// every task waits.
//
// Each task is a coroutine. It pauses inside Park, ParkFor and Yield; the scheduler,
// on the goroutine of Run, then draws the next runnable task. Every decision goes
// into a running hash: two runs with the same seed and program have the same
// [Sim.TraceHash].
//
// Invariant: at most one task runs at any moment, so code under simulation never
// contends for a sync.Mutex (see package env for the rule that makes it so).
package simenv

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"math/rand/v2"
	"runtime"
	"sort"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/env"
)

// Sim is a simulated environment. Make it with [New] and enter it with [Sim.Run].
type Sim struct {
	rng      *rand.Rand
	now      time.Duration
	epoch    time.Time
	trace    uint64
	steps    uint64
	nextTask uint64

	runnable []*task
	timers   timerHeap
	timerSeq uint64
	current  *task
	tasks    map[uint64]*task
	stopping bool
	failure  any

	// YieldOdds is the chance, one in YieldOdds, that a Yield really switches
	// tasks. 1 switches every time; 0 never does.
	YieldOdds uint64
	// StepLimit stops a run that makes more scheduling decisions than this, with
	// a panic that lists the tasks; 0 means no limit.
	StepLimit uint64
}

type task struct {
	id   uint64
	name string
	// A task is a coroutine: resume runs it until it calls pause, or ends.
	resume func() (struct{}, bool)
	pause  func(struct{}) bool
}

var _ env.Env = (*Sim)(nil)

// New returns a simulation driven by seed.
func New(seed uint64) *Sim {
	return &Sim{
		rng:       rand.New(rand.NewPCG(seed, 0x7472697265_6d65)),
		epoch:     time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
		tasks:     map[uint64]*task{},
		YieldOdds: 4,
	}
}

// Run executes main as the first task and drives the simulation until main
// returns. Tasks that still wait then are ended at their next wait: their deferred
// calls run. A panic in any task is raised again from Run, as is a deadlock. Run
// may be called again; clock and trace go on.
func (s *Sim) Run(main func()) {
	mainDone := false
	s.Go("main", func() {
		defer func() { mainDone = true }()
		main()
	})
	for !mainDone && s.failure == nil {
		s.step()
	}
	s.endTasks()
	if failure := s.failure; failure != nil {
		s.failure = nil
		panic(failure)
	}
}

// step lets one task run until it pauses or ends.
func (s *Sim) step() {
	for len(s.runnable) == 0 {
		if !s.advance() {
			s.failure = "simenv: every task waits and no timer is set\n" + s.describe()
			return
		}
	}
	s.steps++
	if s.StepLimit != 0 && s.steps > s.StepLimit {
		s.failure = fmt.Sprintf("simenv: more than %d steps\n%s", s.StepLimit, s.describe())
		return
	}
	i := s.rng.IntN(len(s.runnable))
	t := s.runnable[i]
	last := len(s.runnable) - 1
	s.runnable[i] = s.runnable[last]
	s.runnable[last] = nil
	s.runnable = s.runnable[:last]
	s.mix(t.id)
	s.current = t
	t.resume()
	s.current = nil
}

// advance moves the clock to the next timer and fires it.
func (s *Sim) advance() bool {
	if len(s.timers) == 0 {
		return false
	}
	e := heap.Pop(&s.timers).(*timer)
	s.now = max(s.now, e.due)
	e.fire()
	return true
}

// endTasks ends what still waits: each task's next or current wait exits its
// goroutine, which runs its deferred calls.
func (s *Sim) endTasks() {
	s.stopping = true
	for len(s.tasks) > 0 {
		ids := make([]uint64, 0, len(s.tasks))
		for id := range s.tasks {
			ids = append(ids, id)
		}
		sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
		t := s.tasks[ids[0]]
		s.current = t
		ended := make(chan struct{})
		go func() { // a goroutine that exits takes along the one that has resumed it
			defer close(ended)
			t.resume()
		}()
		<-ended
		s.current = nil
	}
	s.runnable, s.timers, s.stopping = nil, nil, false
}

// describe lists the tasks, and the stacks of all goroutines, theirs among them.
func (s *Sim) describe() string {
	var b strings.Builder
	for id := uint64(1); id <= s.nextTask; id++ {
		if t := s.tasks[id]; t != nil {
			fmt.Fprintf(&b, "  task %d %q\n", t.id, t.name)
		}
	}
	stacks := make([]byte, 1<<20)
	b.Write(stacks[:runtime.Stack(stacks, true)])
	return b.String()
}

// Trace mixes an event into the trace hash.
func (s *Sim) Trace(event string) {
	h := fnv.New64a()
	h.Write([]byte(event))
	s.mix(h.Sum64())
}

// TraceHash is the hash of all scheduling decisions and traced events so far.
func (s *Sim) TraceHash() uint64 { return s.trace }

// Steps is the number of scheduling decisions so far.
func (s *Sim) Steps() uint64 { return s.steps }

func (s *Sim) mix(v uint64) {
	s.trace = (s.trace^v)*0x9E3779B97F4A7C15 + uint64(s.now)
	s.trace ^= s.trace >> 29
}

// Now implements [env.Env].
func (s *Sim) Now() time.Time { return s.epoch.Add(s.now) }

// Monotonic implements [env.Env].
func (s *Sim) Monotonic() time.Duration { return s.now }

// Uint64 implements [env.Env].
func (s *Sim) Uint64() uint64 { return s.rng.Uint64() }

// Go implements [env.Env].
func (s *Sim) Go(name string, fn func()) {
	s.nextTask++
	t := &task{id: s.nextTask, name: name}
	s.tasks[t.id] = t
	s.runnable = append(s.runnable, t)
	s.Trace(name)
	t.resume, _ = iter.Pull(func(pause func(struct{}) bool) {
		t.pause = pause
		defer func() {
			if r := recover(); r != nil && s.failure == nil {
				buf := make([]byte, 64<<10)
				buf = buf[:runtime.Stack(buf, false)]
				s.failure = fmt.Sprintf("task %q: %v\n%s", t.name, r, buf)
			}
			delete(s.tasks, t.id)
		}()
		if !s.stopping {
			fn()
		}
	})
}

// Yield implements [env.Env].
func (s *Sim) Yield() {
	if s.current == nil || s.YieldOdds == 0 || s.rng.Uint64N(s.YieldOdds) != 0 {
		return
	}
	s.runnable = append(s.runnable, s.current)
	s.switchOut(s.current)
}

// switchOut lets the scheduler go on and waits to be resumed.
func (s *Sim) switchOut(t *task) {
	if s.stopping {
		runtime.Goexit()
	}
	t.pause(struct{}{})
	if s.stopping {
		runtime.Goexit()
	}
}

// NewParker implements [env.Env].
func (s *Sim) NewParker() env.Parker { return &parker{sim: s} }

type parker struct {
	sim     *Sim
	token   bool
	waiting *task
	timer   *timer
	timeout bool
}

func (p *parker) Park() { p.park(0, false) }

func (p *parker) ParkFor(d time.Duration) bool { return p.park(d, true) }

// park waits for the token, at most d if limited.
func (p *parker) park(d time.Duration, limited bool) bool {
	s := p.sim
	if p.token {
		p.token = false
		s.Yield()
		return true
	}
	if limited && d <= 0 {
		return false
	}
	if p.waiting != nil {
		panic("simenv: two tasks in one Parker")
	}
	t := s.current
	if t == nil {
		panic("simenv: Park outside a task")
	}
	p.waiting, p.timeout = t, false
	if limited {
		p.timer = s.after(d, func() {
			p.timer, p.timeout, p.waiting = nil, true, nil
			s.runnable = append(s.runnable, t)
		})
	}
	s.switchOut(t)
	return !p.timeout
}

func (p *parker) Unpark() {
	t := p.waiting
	if t == nil {
		p.token = true
		return
	}
	if p.timer != nil {
		heap.Remove(&p.sim.timers, p.timer.at)
		p.timer = nil
	}
	p.waiting = nil
	p.sim.runnable = append(p.sim.runnable, t)
}

func (p *parker) Drain() { p.token = false }

type timer struct {
	due  time.Duration
	seq  uint64 // timers due at once fire in the order in which they were set
	at   int    // index in the heap
	fire func()
}

func (s *Sim) after(d time.Duration, fn func()) *timer {
	s.timerSeq++
	due := s.now + d
	if due < s.now {
		due = math.MaxInt64
	}
	t := &timer{due: due, seq: s.timerSeq, fire: fn}
	heap.Push(&s.timers, t)
	return t
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	return h[i].due < h[j].due || h[i].due == h[j].due && h[i].seq < h[j].seq
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.at = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	old := *h
	n := len(old) - 1
	t := old[n]
	old[n] = nil
	*h = old[:n]
	return t
}

// Package simenv is the deterministic [env.Env] of tests: tasks run one at a
// time in an order drawn from a seed, on a virtual clock that moves only when
// every task waits.
//
// Each task runs in a coroutine. It pauses inside Park, ParkFor and Yield; the scheduler,
// on the goroutine of Run, then draws the next runnable task. Every decision goes
// into a running hash: two runs with the same seed and program have the same
// [Sim.TraceHash].
//
// A [Host] is a machine of the simulation: its tasks can be made to stand still together, and
// its clock can be wrong.
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
	"slices"
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
	idle     []*worker
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
	host *Host // nil: of no machine, such as the test itself
	fn   func()
	w    *worker // from its first step on
}

// worker is a coroutine that runs one task after the other: tasks are many and short, and
// a new coroutine would have to grow its stack each time.
type worker struct {
	resume func() (struct{}, bool) // runs it until it calls pause, or ends
	pause  func(struct{}) bool
	stop   func()
	t      *task
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
	s.resume(t)
}

// resume lets a task run until it pauses or ends.
func (s *Sim) resume(t *task) {
	if t.w == nil {
		t.w = s.takeWorker()
		t.w.t = t
	}
	s.current = t
	t.w.resume()
	s.current = nil
}

// takeWorker returns an idle worker, or a new one.
func (s *Sim) takeWorker() *worker {
	if last := len(s.idle) - 1; last >= 0 {
		w := s.idle[last]
		s.idle = s.idle[:last]
		return w
	}
	w := &worker{}
	w.resume, w.stop = iter.Pull(func(pause func(struct{}) bool) {
		w.pause = pause
		for more := true; more; {
			s.runTask(w.t)
			w.t = nil
			s.idle = append(s.idle, w)
			more = pause(struct{}{})
		}
	})
	return w
}

// runTask runs a task to its end. A panic in it ends the simulation. Once that ends it says nothing: what deferred calls find
// then was left in the middle of something.
func (s *Sim) runTask(t *task) {
	defer func() {
		if r := recover(); r != nil && s.failure == nil && !s.stopping {
			buf := make([]byte, 64<<10)
			buf = buf[:runtime.Stack(buf, false)]
			s.failure = fmt.Sprintf("task %q: %v\n%s", t.name, r, buf)
		}
		delete(s.tasks, t.id)
	}()
	if !s.stopping {
		t.fn()
	}
}

// ready makes a task runnable, or lets it wait until its host goes on.
func (s *Sim) ready(t *task) {
	if t.host != nil && t.host.paused {
		t.host.held = append(t.host.held, t)
		return
	}
	s.runnable = append(s.runnable, t)
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
		if t.w == nil { // it has not begun
			delete(s.tasks, t.id)
			continue
		}
		ended := make(chan struct{})
		go func() { // a goroutine that exits takes along the one that has resumed it
			defer close(ended)
			s.resume(t)
		}()
		<-ended
		s.current = nil
	}
	for _, w := range s.idle {
		w.stop()
	}
	s.runnable, s.timers, s.idle, s.stopping = nil, nil, nil, false
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
func (s *Sim) Go(name string, fn func()) { s.spawn(nil, name, fn) }

func (s *Sim) spawn(h *Host, name string, fn func()) {
	s.nextTask++
	t := &task{id: s.nextTask, name: name, host: h, fn: fn}
	s.tasks[t.id] = t
	s.ready(t)
	s.Trace(name)
}

// Yield implements [env.Env].
func (s *Sim) Yield() {
	if s.current == nil || s.YieldOdds == 0 || s.rng.Uint64N(s.YieldOdds) != 0 {
		return
	}
	s.ready(s.current)
	s.switchOut(s.current)
}

// switchOut lets the scheduler go on and waits to be resumed.
func (s *Sim) switchOut(t *task) {
	if s.stopping {
		runtime.Goexit()
	}
	t.w.pause(struct{}{})
	if s.stopping {
		runtime.Goexit()
	}
}

// NewParker implements [env.Env].
func (s *Sim) NewParker() env.Parker { return &parker{sim: s} }

type parker struct {
	sim     *Sim
	host    *Host // whose clock it waits by; nil: the simulation's
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
		p.timer = s.after(p.host, d, func() {
			p.timer, p.timeout, p.waiting = nil, true, nil
			s.ready(t)
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
		p.sim.cancel(p.timer)
		p.timer = nil
	}
	p.waiting = nil
	p.sim.ready(t)
}

func (p *parker) Drain() { p.token = false }

type timer struct {
	host *Host
	due  time.Duration // of one that stands still: what was left
	seq  uint64        // timers due at once fire in the order in which they were set
	at   int           // index in the heap
	fire func()
}

func (s *Sim) after(h *Host, d time.Duration, fn func()) *timer {
	s.timerSeq++
	due := s.now + h.lasts(d)
	if due < s.now {
		due = math.MaxInt64
	}
	t := &timer{host: h, due: due, seq: s.timerSeq, fire: fn}
	heap.Push(&s.timers, t)
	return t
}

// cancel takes back a timer that has not fired.
func (s *Sim) cancel(t *timer) {
	if t.at >= 0 {
		heap.Remove(&s.timers, t.at)
		return
	}
	h := t.host
	h.stopped = slices.DeleteFunc(h.stopped, func(o *timer) bool { return o == t })
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

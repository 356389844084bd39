package table_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// group is what the workload's sessions commit through: the log of a group that
// takes entries at once and agrees to them later, or not. Most transactions release
// their locks as soon as they are in the log.
//
// When entries fail, what depends on them is rolled back, and then they are, newest
// first. Every other transaction goes on, and finds what it has locked as it was:
// this is what shows that nothing is missing in what transactions depend on.
type group struct {
	w    *workload
	gate gate
	rng  *rand.Rand // guarded by the history's mutex

	actors []*actor // guarded by the gate, closed

	pending []*pendingTrx // guarded by the history's mutex, like index
	index   uint64

	finished, failed, dependents, bystanders int
}

// pendingTrx is a transaction in the log.
type pendingTrx struct {
	t     *trx.Trx
	at    trx.Position
	state rows // after it
}

// gate lets one task stop all others between two operations.
type gate struct {
	env    env.Env
	mu     sync.Mutex
	closed bool
	inside int
}

func (g *gate) enter() {
	for {
		g.mu.Lock()
		if !g.closed {
			g.inside++
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		env.Sleep(g.env, 50*time.Microsecond)
	}
}

func (g *gate) leave() {
	g.mu.Lock()
	g.inside--
	g.mu.Unlock()
}

func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	for g.inside > 0 {
		g.mu.Unlock()
		env.Sleep(g.env, 50*time.Microsecond)
		g.mu.Lock()
	}
	g.mu.Unlock()
}

func (g *gate) open() {
	g.mu.Lock()
	g.closed = false
	g.mu.Unlock()
}

// propose puts the session's transaction into the log. The session has no
// transaction any more.
func (g *group) propose(s *session, own writes) {
	h := g.w.h
	h.mu.Lock()
	defer h.mu.Unlock()
	t := s.Trx()
	if !t.HasChanges() {
		g.w.r.e.Trx.End(t)
		return
	}
	if len(g.pending) == 0 || g.rng.IntN(3) > 0 {
		g.index++ // else it shares the entry of the one before
	}
	p := &pendingTrx{t: t, at: trx.Position{Index: g.index, Term: 1}, state: own.over(g.newest())}
	g.pending = append(g.pending, p)
	t.StartCommit()
	if g.rng.IntN(5) > 0 {
		g.w.r.e.Trx.ReleaseLocks(t, p.at)
	}
}

// newest is the state after everything in the log. REQUIRES: the history's mutex.
func (g *group) newest() rows {
	if n := len(g.pending); n > 0 {
		return g.pending[n-1].state
	}
	return g.w.h.states[g.w.h.last]
}

// boundary returns an index of pending at which an entry begins, or its length.
func (g *group) boundary(i int) int {
	for i > 0 && i < len(g.pending) && g.pending[i].at == g.pending[i-1].at {
		i--
	}
	return i
}

// agree finishes some of the oldest entries.
func (g *group) agree() error {
	h, sys := g.w.h, g.w.r.e.Trx
	h.mu.Lock()
	defer h.mu.Unlock()
	n := g.boundary(g.rng.IntN(len(g.pending) + 1))
	if n == 0 {
		return nil
	}
	var items []trx.Commit
	for i, p := range g.pending[:n] {
		items = append(items, trx.Commit{Trx: p.t, CSN: h.last + 1 + uint64(i)})
		h.states[items[i].CSN] = p.state
	}
	h.last += uint64(n)
	if err := sys.CommitGroup(items, g.pending[n-1].at); err != nil {
		return err
	}
	for _, c := range items {
		sys.End(c.Trx)
	}
	g.pending = g.pending[n:]
	g.finished += n
	return nil
}

// fail lets the newest entries fail, from a random one on.
func (g *group) fail(worker *table.Worker) error {
	g.gate.close()
	defer g.gate.open()
	h := g.w.h
	h.mu.Lock()
	defer h.mu.Unlock()
	from := g.boundary(g.rng.IntN(len(g.pending) + 1))
	if from == len(g.pending) {
		return nil
	}
	index := g.pending[from].at.Index
	for _, a := range g.actors {
		t := a.Trx()
		switch {
		case t == nil || t.State() != trx.Active:
		case t.DependsOn() < index:
			g.bystanders++
		default:
			worker.Use(t)
			if err := worker.Rollback(); err != nil {
				return fmt.Errorf("rollback of a dependent: %w", err)
			}
			a.doomed = true
			g.dependents++
		}
	}
	for i := len(g.pending) - 1; i >= from; i-- {
		t := g.pending[i].t
		worker.Use(t)
		if err := worker.Rollback(); err != nil {
			return fmt.Errorf("rollback of one in doubt: %w", err)
		}
		g.w.r.e.Trx.End(t)
		g.failed++
	}
	g.pending = g.pending[:from]
	g.index = index - 1 // other entries come there
	return nil
}

// run lets entries be finished and fail until the sessions are done and the log is
// through.
func (g *group) run(over func() bool) error {
	g.w.h.mu.Lock()
	rng := rand.New(rand.NewPCG(g.rng.Uint64(), 1))
	g.w.h.mu.Unlock()
	worker := g.w.r.e.NewWorker()
	for {
		done := over()
		var err error
		if rng.IntN(6) == 0 {
			err = g.fail(worker)
		} else {
			err = g.agree()
		}
		if err != nil {
			return err
		}
		if g.w.h.mu.Lock(); done && len(g.pending) == 0 {
			g.w.h.mu.Unlock()
			return nil
		}
		g.w.h.mu.Unlock()
		env.Sleep(g.w.env, time.Duration(rng.IntN(2000))*time.Microsecond)
	}
}

// simulateEarly is simulate with a group.
func simulateEarly(t *testing.T, seed uint64) (err error) {
	sim := simenv.New(seed)
	sim.YieldOdds = 2
	sim.StepLimit = 20_000_000
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	sim.Run(func() {
		r := newRig(t, sim, simfile.New(sim, seed), 64)
		w := &workload{r: r, env: sim, keys: 12 + int64(seed%5)*12, sessions: 3 + int(seed%4), rounds: 40, crowded: seed%3 == 0}
		w.group = &group{w: w, gate: gate{env: sim}, rng: rand.New(rand.NewPCG(seed, 3))}
		if err = w.execute(seed); err == nil {
			r.close()
		}
		g := w.group
		t.Logf("seed %d: %d finished, %d failed with %d dependents beside %d others; %d rollbacks, %d deadlocks",
			seed, g.finished, g.failed, g.dependents, g.bystanders, w.aborts.Load(), r.e.Locks.Stats().Deadlocks)
	})
	return err
}

func TestEarlyReleaseSimulated(t *testing.T) {
	first, n := uint64(1), (*seedsFlag+2)/3
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	for seed := first; seed < first+n; seed++ {
		if err := simulateEarly(t, seed); err != nil {
			t.Fatalf("%v\nrepeat: go test ./engine/storage/table -run TestEarlyReleaseSimulated -table.seed=%d", err, seed)
		}
	}
}

func TestEarlyReleaseReal(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	e := env.Real()
	r := newRig(t, e, simfile.New(e, seed), 64)
	w := &workload{r: r, env: e, keys: 40, sessions: 6, rounds: 60}
	w.group = &group{w: w, gate: gate{env: e}, rng: rand.New(rand.NewPCG(seed, 3))}
	if err := w.execute(seed); err != nil {
		t.Fatalf("%v\nrepeat: go test ./engine/storage/table -run TestEarlyReleaseReal -table.seed=%d", err, seed)
	}
	t.Logf("%d finished, %d failed with %d dependents beside %d others", w.group.finished, w.group.failed, w.group.dependents, w.group.bystanders)
	r.close()
}

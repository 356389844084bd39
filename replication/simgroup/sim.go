package simgroup

import (
	cryptorand "crypto/rand"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
)

// Result is what a run was.
type Result struct {
	Problem string // empty: none
	Trace   uint64 // equal for equal seeds
	Steps   uint64
	Writes  int
	Lost    int // whose outcome the client does not know
	Reads   int
	Numbers uint64 // transactions acknowledged up to
	Traced  int    // transactions in the logs at the end that are part of a trace
	Spans   int    // of transactions that were applied
	Large   uint64 // large transactions, by those that lead at the end
	Ahead   uint64 // of them applied ahead, by those that run at the end
}

func (r Result) String() string {
	s := fmt.Sprintf("trace %016x, %d steps, %d writes, %d outcomes unknown, %d reads, transaction %d, %d traced, %d spans, %d large, %d applied ahead",
		r.Trace, r.Steps, r.Writes, r.Lost, r.Reads, r.Numbers, r.Traced, r.Spans, r.Large, r.Ahead)
	if r.Problem != "" {
		s += ": " + r.Problem
	}
	return s
}

// Run runs a simulation. Runs must not overlap: Raft draws its election timeouts
// from crypto/rand, which is replaced meanwhile.
func Run(opt Options) Result {
	w := simulated(opt, (*world).run)
	return Result{Problem: w.problem, Trace: w.sim.TraceHash(), Steps: w.sim.Steps(), Writes: w.history.writes, Lost: w.history.lost,
		Reads: w.history.reads, Numbers: w.history.acked, Traced: w.traced, Spans: len(w.spans), Large: w.large, Ahead: w.ahead}
}

// simulated runs a script in a world of its own.
func simulated(opt Options, script func(*world)) (w *world) {
	s := simenv.New(opt.Seed)
	s.StepLimit = 10_000_000
	was := cryptorand.Reader
	cryptorand.Reader = seeded(opt.Seed)
	w = newWorld(opt, s)
	defer func() {
		cryptorand.Reader = was
		if r := recover(); r != nil {
			w.problem = fmt.Sprintf("panic: %v", r)
		}
	}()
	s.Run(func() { script(w) })
	return w
}

func seeded(seed uint64) io.Reader {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	return rand.NewChaCha8(key)
}

func (w *world) run() {
	if err := w.founders(); err != nil {
		w.failf("%v", err)
		return
	}
	w.net.SetDefaultFaults(goodNetwork)
	if err := w.setup(); err != nil {
		w.failf("setting up: %v", err)
		return
	}
	tasks := env.NewGroup(w.sim)
	for i := range 2 + w.rng.IntN(5) {
		seed := w.rng.Uint64()
		tasks.Go("client", func() { w.client(i+1, seed) })
	}
	for i := range 2 {
		seed := w.rng.Uint64()
		if w.opt.Plain {
			tasks.Go("reader", func() { w.reader(seed) })
		} else {
			tasks.Go("watcher", func() { w.watcher(i+1, seed) })
		}
	}
	seed := w.rng.Uint64()
	w.calm = w.opt.Strikes || !w.opt.Plain && w.opt.Seed%3 == 0
	if !w.calm && !w.opt.Harmless {
		tasks.Go("nemesis", func() { w.nemesis(seed) })
	}
	if !w.opt.Harmless && (w.calm || !w.opt.Plain && w.opt.Seed%3 == 2) {
		seed := w.rng.Uint64()
		tasks.Go("striker", func() { w.striker(seed) })
	}
	if !w.opt.Plain {
		seed := w.rng.Uint64()
		tasks.Go("indexer", func() { w.indexer(seed) })
		seed = w.rng.Uint64()
		tasks.Go("definer", func() { w.definer(seed) })
	}
	w.within(w.opt.Duration, func() bool { return w.problem != "" })
	w.stop = true
	if w.problem == "" {
		w.heal()
		over := false
		w.sim.Go("wait", func() { tasks.Wait(); over = true })
		if w.within(2*time.Minute, func() bool { return over && w.harms == 0 }) {
			w.settle()
			if w.opt.lie != nil {
				w.opt.lie(w)
			}
			w.check()
			w.quiet()
		} else {
			w.failf("a client waits for ever: %s\n%s", w.standing(), stacks("simgroup.(*world)"))
		}
	}
	for _, n := range w.up() {
		if s, err := n.node.Stats(); err == nil {
			w.large += s.Commit.Large
			w.ahead += s.Apply.AheadTransactions
		}
	}
	for _, n := range w.made {
		n.halt(haltKill)
	}
}

// stacks returns the stacks of tasks in which a function occurs.
func stacks(function string) string {
	buf := make([]byte, 16<<20)
	var out []string
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, function) {
			out = append(out, g)
		}
	}
	return strings.Join(out, "\n\n")
}

package simgroup

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/group"
)

var (
	seeds     = flag.Int("sim.n", race.Fewer(4, 2), "number of seeds to run")
	firstSeed = flag.Uint64("sim.seed", 1, "first seed")
	fixed     = flag.Bool("sim.fixed", false, "nobody joins or leaves")
	strikes   = flag.Bool("sim.strikes", false, "all harm is done by strikes")
	procs     = flag.Int("sim.procs", 1, "number of processes that share the seeds")
	stride    = flag.Uint64("sim.stride", 1, "from one seed to the next")
	verbose   = flag.Bool("sim.v", false, "print each run's result, and with one seed the nodes' logs")
)

func TestSimulate(t *testing.T) {
	if n := min(*procs, *seeds); n > 1 {
		share(t, n)
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a third less time for many seeds
	for i := range uint64(*seeds) {
		seed := *firstSeed + i**stride
		opt := Options{Seed: seed, Fixed: *fixed, Strikes: *strikes}
		if *verbose && *seeds == 1 {
			opt.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
		}
		r := Run(opt)
		if *verbose {
			fmt.Printf("seed %d: %v\n", seed, r)
		}
		if r.Problem != "" {
			t.Errorf("seed %d: %v\nagain: make simulate SEEDS=1 FIRST_SEED=%d", seed, r, seed)
		}
	}
}

// share runs the seeds in several processes: lives in one process would draw from one source of
// randomness.
func share(t *testing.T, n int) {
	var all sync.WaitGroup
	for i := range n {
		lives := (*seeds - i + n - 1) / n
		cmd := exec.Command(os.Args[0], "-test.run=^TestSimulate$", "-test.timeout=0", fmt.Sprintf("-sim.n=%d", lives),
			fmt.Sprintf("-sim.seed=%d", *firstSeed+uint64(i)), fmt.Sprintf("-sim.stride=%d", n),
			fmt.Sprintf("-sim.fixed=%v", *fixed), fmt.Sprintf("-sim.strikes=%v", *strikes),
			fmt.Sprintf("-sim.v=%v", *verbose))
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		out := &prefixed{}
		cmd.Stdout, cmd.Stderr = out, out
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it ends with this process, of whatever
		all.Go(func() {
			runtime.LockOSThread() // which is what the signal goes by
			if err := cmd.Run(); err != nil {
				t.Errorf("process %d of %d: %v\n%s", i+1, n, err, out.rest.String())
			}
		})
	}
	all.Wait()
}

// prefixed passes on the lines about seeds as they come, and keeps the others.
type prefixed struct {
	line []byte
	rest bytes.Buffer
}

func (p *prefixed) Write(b []byte) (int, error) {
	p.line = append(p.line, b...)
	for {
		i := bytes.IndexByte(p.line, '\n')
		if i < 0 {
			return len(b), nil
		}
		if line := p.line[:i+1]; *verbose && bytes.HasPrefix(line, []byte("seed ")) {
			_, _ = os.Stdout.Write(line)
		} else {
			p.rest.Write(line)
		}
		p.line = p.line[i+1:]
	}
}

// TestSimulateAgain runs seeds that found something once: 30020, a member that came back so
// late that it did not know the leader, whom its answers did not reach; 30366, a leader that
// removed itself and was stopped before the others knew; 30234, two members too far behind
// that gave each other their data for ever; 31201, an old leader whose proposals in doubt lay
// behind entries without transactions, and which applied the group's before it gave them up;
// 71, a lock held while waiting for a commit; 10120, a member that was removed while it was
// down, and whom those that had restarted since did not tell; 1267, a member that was given its
// data, and got and acknowledged more by the log before they were put in place; 1892, a lease
// of a new term over what was still served of an old one.
func TestSimulateAgain(t *testing.T) {
	seeds := []uint64{71, 1267, 1892, 10120, 30020, 30234, 30366, 31201}
	for _, seed := range seeds[:race.Fewer(len(seeds), 2)] {
		if r := Run(Options{Seed: seed, Plain: true}); r.Problem != "" {
			t.Errorf("seed %d: %v", seed, r)
		}
	}
}

// Groups that begin with an older program go on with the newer one, and traces travel then, if all are
// upgraded before the life ends; in others they do from the beginning on. What the logs still have at the
// end may be a few transactions of which none is part of a trace, so the lives are counted together.
func TestTraces(t *testing.T) {
	live := func(seed uint64) Result {
		r := Run(Options{Seed: seed})
		if r.Problem != "" {
			t.Errorf("seed %d: %v", seed, r)
		}
		return r
	}
	inLogs := 0
	for seed := uint64(2); seed <= race.Fewer(uint64(12), 2); seed++ {
		if seed%3 == 1 {
			continue
		}
		r := live(seed)
		if r.Spans == 0 {
			t.Errorf("seed %d: no span of an applied transaction: %v", seed, r)
		}
		inLogs += r.Traced
	}
	if inLogs == 0 {
		t.Error("no transaction in the logs is part of a trace")
	}
	if race.Enabled {
		return
	}
	const lives = 21
	for i := range uint64(lives) { // of groups that begin with an older program; the first was the one when it was last looked for
		if r := live(1 + 3*((13+i)%lives)); r.Traced > 0 && r.Spans > 0 {
			return
		}
	}
	t.Errorf("none of %d lives that begin with an older program carries traces", lives)
}

// A run is a function of its seed.
func TestDeterministic(t *testing.T) {
	for seed := uint64(1); seed <= race.Fewer(uint64(3), 1); seed++ { // of each kind of harm
		if a, b := Run(Options{Seed: seed}), Run(Options{Seed: seed}); a != b {
			t.Errorf("seed %d: %v, and again: %v", seed, a, b)
		}
	}
}

// Where the clocks of machines stand still leaders need no lease: they ask a majority, and nothing
// that they answer is stale. With the lease two of these lives have a stale read.
func TestNoLease(t *testing.T) {
	seeds := []uint64{15, 25, 1, 2, 3, 4, 5, 6}
	for _, seed := range seeds[:race.Fewer(len(seeds), 2)] {
		if r := Run(Options{Seed: seed, StoppedClocks: true, Strikes: true, Fixed: true, NoLease: true}); r.Problem != "" {
			t.Errorf("seed %d: %v", seed, r)
		}
	}
}

// A group that is broken on purpose is noticed, in one of so many lives, which goes well if it is not broken.
func TestSabotage(t *testing.T) {
	cases := []struct {
		name  string
		seeds uint64
		opt   Options // Seed is where to begin, if not with 1: one that noticed it when it was last looked for
		want  string  // one of these texts, parted by |, in the problem
	}{
		{"answers before it has synced", 60, Options{Seed: 2, Sabotage: group.AnswerUnsynced}, ""},
		{"leaves out an entry", 60, Options{Sabotage: group.SkipEntry}, ""},
		{"an old leader answers reads", 60, Options{Seed: 3, Sabotage: group.StaleRead}, ""},
		{"readers do not wait for the commits that they saw", 60, Options{Sabotage: group.AnswerEarly}, ""},
		{"a leader answers reads behind its followers", 60, Options{Seed: 7, Sabotage: group.ReadBehind}, ""},
		{"a refusal counts as proof", 200, Options{Seed: 2, Sabotage: group.RefusalIsProof}, ""},
		{"the commit index is not stored", 60, Options{Sabotage: group.ForgetCommit, Strikes: true}, ""},
		{"received data replace what was acknowledged meanwhile", 60, Options{Seed: 9, Sabotage: group.ReplaceUnasked, Fixed: true, Overtaken: true}, ""},
		{"clocks stand still with a guest, and the lease with them", 200, Options{Seed: 78, StoppedClocks: true, Strikes: true, Fixed: true},
			"had been acknowledged, or seen there, before|-realtime: "}, // a stale read, which the history of lists tells, too
	}
	for _, c := range cases[:race.Fewer(len(cases), 2)] {
		t.Run(c.name, func(t *testing.T) {
			first := max(c.opt.Seed, 1)
			for i := range c.seeds {
				c.opt.Seed = (first-1+i)%c.seeds + 1
				if r := Run(c.opt); r.Problem != "" {
					if !slices.ContainsFunc(strings.Split(c.want, "|"), func(text string) bool { return strings.Contains(r.Problem, text) }) {
						t.Fatalf("seed %d: not what was broken: %v", c.opt.Seed, r.Problem)
					}
					t.Logf("noticed in seed %d: %v", c.opt.Seed, r.Problem)
					if c.opt.Sabotage != group.NoSabotage {
						c.opt.Sabotage = group.NoSabotage
						if r := Run(c.opt); r.Problem != "" {
							t.Errorf("seed %d: the same life of a group that is not broken: %v", c.opt.Seed, r.Problem)
						}
					}
					return
				}
			}
			t.Errorf("%d lives went well", c.seeds)
		})
	}
}

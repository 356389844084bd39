package simgroup

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"testing"

	"github.com/triremedb/trireme/replication/group"
)

var (
	seeds     = flag.Int("sim.n", 4, "number of seeds to run")
	firstSeed = flag.Uint64("sim.seed", 1, "first seed")
	fixed     = flag.Bool("sim.fixed", false, "nobody joins or leaves")
	verbose   = flag.Bool("sim.v", false, "print each run's result, and with one seed the nodes' logs")
)

func TestSimulate(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a third less time for many seeds
	for seed := *firstSeed; seed < *firstSeed+uint64(*seeds); seed++ {
		opt := Options{Seed: seed, Fixed: *fixed}
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
	for _, seed := range []uint64{71, 1267, 1892, 10120, 30020, 30234, 30366, 31201} {
		if r := Run(Options{Seed: seed, Plain: true}); r.Problem != "" {
			t.Errorf("seed %d: %v", seed, r)
		}
	}
}

// Groups that begin with an older program go on with the newer one, and traces travel then; in
// others they do from the beginning on.
func TestTraces(t *testing.T) {
	carried := map[bool]int{}
	for seed := uint64(1); seed <= 6; seed++ {
		r := Run(Options{Seed: seed})
		if r.Problem != "" {
			t.Errorf("seed %d: %v", seed, r)
		}
		if r.Traced > 0 && r.Spans > 0 {
			carried[seed%3 == 1]++
		}
	}
	if carried[true] == 0 || carried[false] < 4 {
		t.Errorf("traces were carried in %d lives of 2 that begin with an older program, and in %d of the 4 others", carried[true], carried[false])
	}
}

// A run is a function of its seed.
func TestDeterministic(t *testing.T) {
	for seed := uint64(1); seed <= 2; seed++ {
		if a, b := Run(Options{Seed: seed}), Run(Options{Seed: seed}); a != b {
			t.Errorf("seed %d: %v, and again: %v", seed, a, b)
		}
	}
}

// A group that is broken on purpose is noticed.
func TestSabotage(t *testing.T) {
	for name, s := range map[string]group.Sabotage{"answers before it has synced": group.AnswerUnsynced,
		"leaves out an entry": group.SkipEntry, "an old leader answers reads": group.StaleRead} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 60; seed++ {
				if r := Run(Options{Seed: seed, Sabotage: s}); r.Problem != "" {
					t.Logf("noticed in seed %d: %v", seed, r.Problem)
					return
				}
			}
			t.Error("60 runs went well")
		})
	}
}

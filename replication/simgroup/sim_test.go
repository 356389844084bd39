package simgroup

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"testing"
)

var (
	seeds     = flag.Int("sim.n", 20, "number of seeds to run")
	firstSeed = flag.Uint64("sim.seed", 1, "first seed")
	fixed     = flag.Bool("sim.fixed", false, "nobody joins or leaves")
	verbose   = flag.Bool("sim.v", false, "print each run's result, and with one seed the nodes' logs")
)

func TestSimulate(t *testing.T) {
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

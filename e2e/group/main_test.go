package group_test

import (
	"flag"
	"os"
	"testing"
	"time"
)

var (
	duration = flag.Duration("e2e.duration", 12*time.Second, "how long faults and load go on in each test")
	seed     = flag.Uint64("e2e.seed", 0, "of the load and the faults; 0: from the clock")
	only     = flag.String("e2e.round", "", "the one kind of round to run, by name; empty: all kinds")
	keepDir  = flag.String("e2e.dir", "", "directory to use and to leave behind; empty: a temporary one")
)

func TestMain(m *testing.M) {
	if text := os.Getenv(nodeVariable); text != "" {
		os.Exit(runNode(text))
	}
	os.Exit(m.Run())
}

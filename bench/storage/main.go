// Command storage measures the storage engine beside bbolt and pebble on the same
// rows, in one run, and writes a report of ratios.
//
//	go -C bench run ./storage            # full size
//	go -C bench run ./storage -quick     # a minute, for CI
//
// # What is measured
//
// A table of 1,000,000 rows of 200 bytes in memory: point reads and scans beside
// bbolt, batches of random inserts beside bbolt and pebble, none of them synced.
// Then, each in a process of its own, memory: the Go heap with a 4 GiB pool, and a
// mixed load on data four times as large as the pool.
//
// # How
//
// Contenders take turns (A B A B), and what counts is the median of the rounds'
// ratios: machines are shared and noisy. A round in which other processes took the
// processors away is repeated, within limits. Ratios by CPU time are given beside
// them; they count the background work of both sides.
// Values in bbolt and pebble are our own clustered records, made and decoded by the
// same code as ours, so that what differs is the way to the bytes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
	"time"
)

// config is what the flags say.
type config struct {
	rows     int
	rounds   int
	slice    time.Duration // length of one contender's turn
	mixed    time.Duration // of the mixed load, after its warm-up
	poolHeap int64         // pool of the heap measurement, bytes
	dir      string
	report   string
	only     string
	profile  string
	part     string // set in child processes
	strict   bool
}

// reportName is where the report goes, in the module's directory.
const reportName = "report/storage.md"

// parts are the measurements by the names that -only takes, in order.
var parts = []struct {
	name string
	run  func(*config, *report) error
}{
	{"read", measureReads},
	{"insert", measureInserts},
	{"allocs", measureAllocs},
	{"heap", measureHeap},
	{"larger", measureLarger},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "storage:", err)
		os.Exit(1)
	}
}

func parseFlags() *config {
	c := &config{}
	quick := flag.Bool("quick", false, "a small run: 100,000 rows, short turns")
	flag.IntVar(&c.rows, "rows", 1_000_000, "rows of the table")
	flag.IntVar(&c.rounds, "rounds", 15, "calm rounds of which the median counts")
	flag.DurationVar(&c.slice, "slice", 300*time.Millisecond, "length of one contender's turn")
	flag.DurationVar(&c.mixed, "mixed", 60*time.Second, "length of the mixed load after its warm-up")
	flag.Int64Var(&c.poolHeap, "heappool", 4<<30, "buffer pool of the heap measurement, bytes")
	flag.StringVar(&c.dir, "dir", "", "directory for data, about 4 GiB, removed afterwards (default: the temporary one)")
	flag.StringVar(&c.report, "report", reportName, "report to write; empty: none; a quick run writes none unless named")
	flag.StringVar(&c.only, "only", "", "one part: read, insert, allocs, heap or larger")
	flag.StringVar(&c.profile, "profile", "", "prefix of CPU profiles of our own turns")
	flag.StringVar(&c.part, "part", "", "internal: run a part in this process and print its figures")
	flag.BoolVar(&c.strict, "strict", false, "exit with an error if a target is missed")
	flag.Parse()
	if *quick {
		if c.report == reportName { // the report is of a full run
			c.report = ""
		}
		c.rows, c.rounds = 100_000, 5
		c.slice, c.mixed = 200*time.Millisecond, 8*time.Second
	}
	return c
}

func run() error {
	c := parseFlags()
	dir, err := os.MkdirTemp(c.dir, "trireme-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c.dir = dir
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stop
		os.RemoveAll(dir)
		os.Exit(1)
	}()
	if c.part != "" {
		return runChild(c)
	}
	r := newReport(c)
	for _, p := range parts {
		if c.only != "" && c.only != p.name {
			continue
		}
		if err := p.run(c, r); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if err := r.finish(); err != nil {
		return err
	}
	if c.strict && r.missed() > 0 {
		return errors.New("targets were missed")
	}
	return nil
}

// profiled runs one turn of ours under the CPU profiler, if profiles are wanted.
// Of several turns of a name the last one's profile stays.
func (c *config) profiled(name string, turn func() error) error {
	if c.profile == "" {
		return turn()
	}
	f, err := os.Create(c.profile + name + ".prof")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return turn()
}

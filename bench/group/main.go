// Command group measures a group of three nodes beside a group of three etcd members
// on the same machine, in one run, and writes a report.
//
//	go -C bench run ./group            # full size, about a quarter of an hour
//	go -C bench run ./group -quick     # a minute or two, for CI
//
// # What is measured
//
// Commits of one 200-byte row beside puts of 200 bytes, by 1 to 256 clients: rate,
// latency, CPU time. What a transaction takes in the log, with and without
// compression. How fast a recorded log is applied. A row that all change. How long
// nobody can write after the leader was killed or stands still, while leadership is
// handed over, and when a follower dies or comes back. How long a new member takes to
// get its data.
//
// # How
//
// Each server is a process of its own, this program with -role; one more process, the
// one that was started, has all clients. All talk gRPC over loopback, a request and
// its answer at a time. Both groups are durable as they are by default.
//
// Contenders take turns (A B A B), and what counts is the median of the rounds'
// ratios: machines are shared and noisy, and seven busy processes are more than most
// have processors. A round in which other processes took much of them is repeated,
// within limits.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// config is what the flags say.
type config struct {
	rounds    int
	slice     time.Duration // length of one contender's turn
	failovers int
	hangs     int
	transfers int
	windows   int // times that a follower is killed and comes back
	provision int64
	dir       string
	report    string
	only      string
	profile   string
	strict    bool
	verbose   bool

	role roleFlags // of a server process
}

// reportName is where the report goes, in the module's directory.
const reportName = "report/group.md"

// parts are the measurements by the names that -only takes, in order.
var parts = []struct {
	name string
	run  func(*config, *report) error
}{
	{"commit", measureCommits},
	{"log", measureLog},
	{"hot", measureHotRow},
	{"failover", measureFailover},
	{"busy", measureBusyFailover},
	{"hang", measureHang},
	{"transfer", measureTransfer},
	{"follower", measureFollower},
	{"provision", measureProvision},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "group:", err)
		os.Exit(1)
	}
}

func parseFlags() *config {
	c := &config{}
	quick := flag.Bool("quick", false, "a small run: short turns, few trials, little data")
	flag.IntVar(&c.rounds, "rounds", 9, "calm rounds of which the median counts")
	flag.DurationVar(&c.slice, "slice", 2*time.Second, "length of one contender's turn")
	flag.IntVar(&c.failovers, "failovers", 50, "times that the leader is killed")
	flag.IntVar(&c.hangs, "hangs", 10, "times that the leader stands still")
	flag.IntVar(&c.transfers, "transfers", 20, "times that leadership is handed over")
	flag.IntVar(&c.windows, "windows", 10, "times that a follower is killed and comes back")
	flag.Int64Var(&c.provision, "provision", 1<<30, "bytes of rows that a new member is given")
	flag.StringVar(&c.dir, "dir", "", "directory for data, about 10 GiB, removed afterwards (default: the temporary one)")
	flag.StringVar(&c.report, "report", reportName, "report to write; empty: none; a quick run writes none unless named")
	flag.StringVar(&c.only, "only", "", "one part: commit, log, hot, failover, busy, hang, transfer, follower or provision")
	flag.StringVar(&c.profile, "profile", "", "prefix of CPU profiles of the leader and of the clients")
	flag.BoolVar(&c.strict, "strict", false, "exit with an error if a target is missed")
	flag.BoolVar(&c.verbose, "v", false, "show what the nodes log")
	c.role.define()
	flag.Parse()
	if *quick {
		if c.report == reportName { // the report is of a full run
			c.report = ""
		}
		c.rounds, c.slice = 2, 500*time.Millisecond
		c.failovers, c.hangs, c.transfers, c.windows = 5, 2, 5, 2
		c.provision = 64 << 20
	}
	return c
}

func run() error {
	c := parseFlags()
	if c.role.name != "" {
		return serve(&c.role)
	}
	dir, err := os.MkdirTemp(c.dir, "trireme-bench-")
	if err != nil {
		return err
	}
	if c.dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stop
		killAll()
		os.RemoveAll(dir)
		os.Exit(1)
	}()
	r := newReport(c)
	for _, p := range parts {
		if c.only != "" && c.only != p.name {
			continue
		}
		err := p.run(c, r)
		if err != nil {
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

// Command mixed sends short statements on time beside sessions that run long queries one after
// the other, on this database and on MariaDB in one run, and reports how long the short ones
// take and how much of the long ones is done.
//
//	go -C bench run ./mixed            # a report
//	go -C bench run ./mixed -quick     # few rows, short turns, no report
//
// It needs Debian's package mariadb-server. Both servers run on this machine with the same buffer
// pool, both with every commit on disk before it is acknowledged.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/bench/contenders"
	"github.com/triremedb/trireme/bench/reportfile"
)

type config struct {
	quick   bool
	rows    int
	clients int
	rate    int // short statements per second, of all clients
	seconds int
	pool    int // MiB
	report  string
	binary  string
	only    string
}

// longs is how many sessions run long queries in the turns.
var longs = []int{0, 1, 2, 4, 8}

// result is what a turn has shown.
type result struct {
	server         string
	long           int
	reads, writes  latencies
	queries        float64 // long ones per minute
	failed         int
	firstOfFailure string
}

func main() {
	var c config
	flag.BoolVar(&c.quick, "quick", false, "few rows, short turns, no report")
	flag.IntVar(&c.rows, "rows", 500_000, "rows of the table")
	flag.IntVar(&c.clients, "clients", 8, "clients with short statements; half of them write")
	flag.IntVar(&c.rate, "rate", 1000, "short statements per second, of all clients")
	flag.IntVar(&c.seconds, "seconds", 15, "length of a turn")
	flag.IntVar(&c.pool, "pool", 1024, "buffer pool in MiB")
	flag.StringVar(&c.report, "report", "report/mixed.md", "file to write; empty: none")
	flag.StringVar(&c.binary, "trireme", "", "binary of the server; empty: build it")
	flag.StringVar(&c.only, "only", "", "run one contender only: trireme or mariadb")
	flag.Parse()
	if c.quick {
		c.rows, c.seconds, c.report = min(c.rows, 50_000), min(c.seconds, 3), ""
	}
	err := c.check()
	if err == nil {
		err = c.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mixed:", err)
		os.Exit(1)
	}
}

func (c *config) check() error {
	if c.rows < 1000 || c.clients < 2 || c.rate < c.clients || c.seconds < 1 {
		return errors.New("-rows must be 1000 at least, -clients 2, -seconds 1, and -rate as many as there are clients")
	}
	return nil
}

func (c *config) run() (err error) {
	dir, err := os.MkdirTemp("", "bench-mixed-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	list, err := contenders.Start(contenders.Options{Dir: dir, Binary: c.binary, Pool: c.pool}, c.only)
	defer func() { err = errors.Join(err, list.Stop()) }()
	if err != nil {
		return err
	}
	for _, s := range list {
		if err := load(s, c.rows); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	var results []result
	for _, n := range longs {
		for _, s := range list {
			r, err := c.turn(s, n)
			if err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			fmt.Fprintln(os.Stderr, r.row())
			results = append(results, r)
		}
	}
	text := c.text(list, results)
	fmt.Print(text)
	if c.report == "" || c.only != "" {
		return nil
	}
	return reportfile.Write(c.report, text)
}

// text is the report.
func (c *config) text(list contenders.List, results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Short statements beside long ones, and beside MariaDB\n\nWritten by `go -C bench run ./mixed`. A table of %d rows of about 200 bytes, buffer pool %d MiB. %d clients read and write single\n"+
		"rows, %d statements per second in all, each on its time whatever it has to wait for; other sessions run this one after the other:\n\n    %s\n\n"+
		"%d processors, %s. Turns of %d s; all of a turn's statements count.\n\n", c.rows, c.pool, c.clients, c.rate, longQuery, runtime.NumCPU(), runtime.Version(), c.seconds)
	for _, s := range list {
		fmt.Fprintf(&b, "- %s: %s\n", s.Name, s.Version)
	}
	b.WriteString("\n| Sessions with long queries | | reads: median | p99 | longest | writes: median | p99 | longest | long queries/min | failed |\n" +
		"| --: | --- | --: | --: | --: | --: | --: | --: | --: | --: |\n")
	for i := range results {
		b.WriteString(results[i].row() + "\n")
	}
	return b.String()
}

func (r *result) row() string {
	failed := fmt.Sprint(r.failed)
	if r.failed > 0 {
		failed += ": " + r.firstOfFailure
	}
	part := func(l latencies) string {
		return fmt.Sprintf("%v | %v | %v", l.quantile(0.5), l.quantile(0.99), l.quantile(1))
	}
	return fmt.Sprintf("| %d | %s | %s | %s | %.0f | %s |", r.long, r.server, part(r.reads), part(r.writes), r.queries, failed)
}

func (c *config) length() time.Duration { return time.Duration(c.seconds) * time.Second }

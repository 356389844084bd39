// Command mixed sends short statements on time beside sessions that run long queries, or large
// transactions, one after the other, on this database and on MariaDB or Galera in one run, and
// reports how long the short ones take and how much of the long ones is done.
//
//	go -C bench run ./mixed            # single servers: trireme, mariadb
//	go -C bench run ./mixed -nodes 3   # groups: trireme, galera
//	go -C bench run ./mixed -quick     # few rows, short turns, no report
//
// It needs Debian's package mariadb-server, for a group galera-4. Both servers run on this machine with
// the same buffer pool, both with every commit on disk before it is acknowledged.
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
	nodes   int
	pool    int // MiB
	report  string
	binary  string
	only    string
}

// company is what runs beside the short statements.
type company struct {
	name     string
	sessions int
	text     string
}

var companies = []company{{"nothing", 0, ""}, {"1 session, long queries", 1, longQuery}, {"2 sessions, long queries", 2, longQuery},
	{"4 sessions, long queries", 4, longQuery}, {"8 sessions, long queries", 8, longQuery},
	{"1 session, large transactions", 1, largeUpdate}}

// groupCompanies are those of groups: queries are run where the short statements are.
var groupCompanies = []company{companies[0], companies[2], companies[5]}

// result is what a turn has shown.
type result struct {
	server         string
	beside         string
	reads, writes  latencies
	long           float64 // long statements per minute
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
	flag.IntVar(&c.nodes, "nodes", 1, "nodes of each contender; from 2 on the other one is Galera")
	flag.IntVar(&c.pool, "pool", 1024, "buffer pool in MiB")
	flag.StringVar(&c.report, "report", "report/mixed.md", "file to write, for groups with -group before its ending; empty: none")
	flag.StringVar(&c.binary, "trireme", "", "binary of the server; empty: build it")
	flag.StringVar(&c.only, "only", "", "run one contender only: trireme or mariadb")
	flag.Parse()
	if c.quick {
		c.rows, c.seconds, c.report = min(c.rows, 50_000), min(c.seconds, 3), ""
	}
	if c.nodes > 1 {
		companies = groupCompanies
		c.report = strings.Replace(c.report, ".md", "-group.md", 1)
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
	var names []string
	results := make([][]result, len(companies))
	for _, only := range []string{"trireme", "mariadb"} { // one after the other: an idle group takes processors too
		if c.only == "" || c.only == only {
			name, err := c.measure(dir, only, results)
			if err != nil {
				return fmt.Errorf("%s: %w", only, err)
			}
			names = append(names, name)
		}
	}
	text := c.text(names, results)
	fmt.Print(text)
	if c.report == "" || c.only != "" {
		return nil
	}
	return reportfile.Write(c.report, text)
}

// measure takes the turns of one contender, and says what it is.
func (c *config) measure(dir, only string, results [][]result) (name string, err error) {
	list, err := contenders.Start(contenders.Options{Dir: dir, Binary: c.binary, Nodes: c.nodes, Pool: c.pool}, only)
	defer func() { err = errors.Join(err, list.Stop()) }()
	if err != nil {
		return "", err
	}
	s := list[0]
	if err := load(s, c.rows); err != nil {
		return "", err
	}
	for i, beside := range companies {
		r, err := c.turn(s, beside)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(os.Stderr, r.row())
		results[i] = append(results[i], r)
	}
	return s.Name + ": " + s.Version, nil
}

// text is the report.
func (c *config) text(names []string, results [][]result) string {
	var b strings.Builder
	flags, what := "", "MariaDB"
	if c.nodes > 1 {
		flags, what = fmt.Sprintf(" -nodes %d", c.nodes), fmt.Sprintf("Galera, %d nodes each", c.nodes)
	}
	fmt.Fprintf(&b, "# Short statements beside long ones, and beside %s\n\nWritten by `go -C bench run ./mixed%s`. A table of %d rows of about 200 bytes, buffer pool %d MiB. %d clients read and write single\n"+
		"rows, %d statements per second in all, each on its time whatever it has to wait for. Other sessions run one of these again and again:\n\n    %s\n    %s\n\n"+
		"%d processors, %s. Turns of %d s; all of a turn's statements count.\n\n", what, flags, c.rows, c.pool, c.clients, c.rate, longQuery, largeUpdate,
		runtime.NumCPU(), runtime.Version(), c.seconds)
	for _, name := range names {
		fmt.Fprintf(&b, "- %s\n", name)
	}
	b.WriteString("\n| Beside | | reads: median | p99 | longest | writes: median | p99 | longest | long ones/min | failed |\n" +
		"| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: |\n")
	for _, rs := range results {
		for i := range rs {
			b.WriteString(rs[i].row() + "\n")
		}
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
	return fmt.Sprintf("| %s | %s | %s | %s | %.0f | %s |", r.beside, r.server, part(r.reads), part(r.writes), r.long, failed)
}

func (c *config) length() time.Duration { return time.Duration(c.seconds) * time.Second }

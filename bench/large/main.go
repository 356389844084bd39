// Command large commits large transactions beside small ones, on this database and on MariaDB
// or Galera in one run, one contender after the other, and reports what they cost.
//
//	go -C bench run ./large            # single servers: trireme, mariadb
//	go -C bench run ./large -nodes 3   # groups: trireme, galera
//	go -C bench run ./large -quick     # small transactions, no report: minutes
//
// It needs Debian's package mariadb-server, for a group galera-4. Both servers run on this
// machine with the same buffer pool, both with every commit on disk before it is acknowledged,
// and both log of a changed row its key and the columns that were changed
// (binlog_row_image=MINIMAL). With the default sizes three nodes need about 25 GiB on the disk
// of the temporary directory.
//
// A large transaction is an UPDATE of as many rows of random bytes as give the binlog its size,
// and COMMIT. What is measured:
//
//   - Latency: clients change single rows at a given rate, whatever they have waited for before,
//     beside a large transaction of each size. Requests count from when they should have been
//     sent, in three windows: before, while the statement runs, and from 100 ms before COMMIT
//     until 1 s after its OK.
//   - Throughput: clients commit short transactions as fast as they can while a session commits
//     a large one every few seconds. The baseline is the same load with ROLLBACK in the place of
//     COMMIT: copying, logging and streaming run as well. The seconds from each ROLLBACK until
//     one second after its end, when the next statement begins, are left out of it, since taking
//     back is work that COMMIT does not have.
//   - Lag, of groups: how long after COMMIT's OK an UPDATE of all rows of a table is to be
//     seen on every follower by sessions that read what the node has, and how long a small row
//     that the leader writes every 50 ms.
//   - Memory: how much each process grew above what it had before, with a buffer pool that
//     loading has filled.
//
// A MariaDB that can rename a large transaction's file to the next binlog
// (binlog_large_commit_threshold, from 11.7 on) is measured twice, without and with it. What a
// contender cannot do is reported with its error.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/bench/contenders"
	"github.com/triremedb/trireme/bench/reportfile"
)

type config struct {
	quick   bool
	sizes   []int // MiB of binlog
	rounds  int
	clients int
	rate    int // requests per second, of all clients
	rows    int // of the table that clients change
	quiet   time.Duration

	seconds int // of throughput
	steady  int // MiB of the transactions beside it
	every   time.Duration

	lagRows int
	limit   time.Duration
	nodes   int
	pool    int // MiB
	report  string
	binary  string
	only    string
	keep    bool
}

func main() {
	var c config
	const usual, quick = "32,128,512,1024", "8,32"
	sizes := usual
	flag.BoolVar(&c.quick, "quick", false, "small transactions and short turns, no report")
	flag.StringVar(&sizes, "sizes", sizes, "sizes of large transactions in MiB of binlog")
	flag.IntVar(&c.rounds, "rounds", 3, "large transactions of each size, and measurements of the lag")
	flag.IntVar(&c.clients, "clients", 8, "clients with small transactions")
	flag.IntVar(&c.rate, "rate", 400, "single-row transactions per second, of all clients, where latency is measured")
	flag.IntVar(&c.rows, "rows", 200_000, "rows of the table that clients change")
	flag.DurationVar(&c.quiet, "quiet", 3*time.Second, "how long clients are alone before a large transaction")
	flag.IntVar(&c.seconds, "seconds", 60, "how long throughput is measured")
	flag.IntVar(&c.steady, "steady", 512, "size of the transactions beside it, in MiB of binlog")
	flag.DurationVar(&c.every, "every", 5*time.Second, "how often they commit; later if the statement takes longer")
	flag.IntVar(&c.lagRows, "lag-rows", 1_000_000, "rows of the table whose UPDATE is to be seen on followers")
	flag.DurationVar(&c.limit, "limit", 15*time.Minute, "how long a statement, or a follower, may take")
	flag.IntVar(&c.nodes, "nodes", 1, "nodes of each contender; from 2 on the other one is Galera")
	flag.IntVar(&c.pool, "pool", 1024, "buffer pool in MiB")
	flag.StringVar(&c.report, "report", "report/large.md",
		"file to write, for groups with -group before its ending; empty: none")
	flag.StringVar(&c.binary, "trireme", "", "binary of the server; empty: build it")
	flag.StringVar(&c.binary, "binary", "", "the same as -trireme")
	flag.StringVar(&c.only, "only", "", "run one contender only: trireme or mariadb")
	flag.BoolVar(&c.keep, "keep", false, "keep the servers' directory")
	flag.Parse()
	if c.quick {
		if sizes == usual {
			sizes = quick
		}
		c.rounds, c.report = 1, ""
		c.rows, c.quiet, c.pool = min(c.rows, 20_000), min(c.quiet, time.Second), min(c.pool, 256)
		c.seconds, c.steady, c.lagRows = min(c.seconds, 16), min(c.steady, 16), min(c.lagRows, 50_000)
	}
	if c.nodes > 1 {
		c.report = strings.Replace(c.report, ".md", "-group.md", 1)
	}
	err := c.check(sizes)
	if err == nil {
		err = c.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "large:", err)
		os.Exit(1)
	}
}

func (c *config) check(sizes string) error {
	for _, text := range strings.Split(sizes, ",") {
		mib, err := strconv.Atoi(text)
		if err != nil || mib < 1 {
			return fmt.Errorf("-sizes: %q is no number of MiB", text)
		}
		c.sizes = append(c.sizes, mib)
	}
	if c.rows < 1000 || c.clients < 1 || c.rate < c.clients || c.rounds < 1 || c.lagRows < 1000 {
		return errors.New("-rows and -lag-rows must be 1000 at least, -rounds 1, and -rate as many as there are clients")
	}
	if c.seconds < 2 || c.steady < 1 || c.every <= 0 {
		return errors.New("-seconds must be 2 at least, -steady 1 MiB, and -every more than nothing")
	}
	if c.only == "trireme" {
		return nil
	}
	return contenders.Missing(c.nodes)
}

// result is what one contender has shown.
type result struct {
	name, version string
	latency       []latency // by size
	throughput    throughput
	lag           lag
	memory        memory
}

func (c *config) run() error {
	dir, err := os.MkdirTemp("", "bench-large-")
	if err != nil {
		return err
	}
	if !c.keep {
		defer os.RemoveAll(dir)
	}
	var results []*result
	for _, only := range []string{"trireme", "mariadb"} { // one after the other: an idle group takes processors too
		if c.only != "" && c.only != only {
			continue
		}
		renames, err := c.measure(&results, dir, only, false)
		if err == nil && renames {
			_, err = c.measure(&results, dir, only, true)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", only, err)
		}
	}
	picture := ""
	if c.report != "" && c.only == "" {
		picture = reportfile.Picture(c.report)
		if err := reportfile.Write(picture, plot(results)); err != nil {
			return err
		}
		picture = filepath.Base(picture)
	}
	text := c.text(results, picture)
	fmt.Print(text)
	if picture == "" {
		return nil
	}
	return reportfile.Write(c.report, text)
}

// measure does everything on one contender. If it can rename large transactions' files it does
// so only if it is told to; renames reports whether it can.
func (c *config) measure(results *[]*result, dir, only string, rename bool) (renames bool, err error) {
	dir, err = os.MkdirTemp(dir, only)
	if err != nil {
		return false, err
	}
	o := contenders.Options{Dir: dir, Binary: c.binary, Nodes: c.nodes, Pool: c.pool, Keep: c.keep}
	list, err := contenders.Start(o, only)
	defer func() {
		if err := list.Stop(); err != nil { // what was measured stays valid
			fmt.Fprintf(os.Stderr, "%s: %v\n", only, err)
		}
		if !c.keep {
			_ = os.RemoveAll(dir)
		}
	}()
	if err != nil {
		return false, err
	}
	t := &turn{config: c, server: list[0], name: list[0].Name}
	defer t.close()
	if err := t.open(); err != nil {
		return false, err
	}
	if renames, err = t.chooseCommit(rename); err != nil {
		return false, err
	}
	r := &result{name: t.name, version: list[0].Version}
	if err := t.load(); err != nil {
		return false, err
	}
	r.memory.idle = t.server.RSS()
	for _, mib := range c.sizes {
		watch := t.watch(fmt.Sprintf("%d MiB", mib))
		r.latency = append(r.latency, t.latency(mib))
		r.memory.phases = append(r.memory.phases, watch())
	}
	watch := t.watch(fmt.Sprintf("%d MiB, again and again", c.steady))
	r.throughput = t.throughput()
	r.memory.phases = append(r.memory.phases, watch())
	if c.nodes > 1 {
		watch := t.watch(fmt.Sprintf("%d rows", c.lagRows))
		r.lag = t.lag()
		r.memory.phases = append(r.memory.phases, watch())
	}
	if !t.server.Leads() {
		r.version += "; another node has become the leader meanwhile: what is said of leader and followers is not valid"
	}
	*results = append(*results, r)
	return renames, nil
}

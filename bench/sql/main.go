// Command sql runs sysbench against this database and MariaDB in one run, taking turns,
// and reports transactions per second as a ratio, with the latencies of both.
//
//	go -C bench run ./sql            # single servers: trireme, mariadb
//	go -C bench run ./sql -nodes 3   # groups: trireme, galera; written to at the leader
//	go -C bench run ./sql -quick     # a few minutes
//
// It needs Debian's packages sysbench and mariadb-server, for a group galera-4. Both servers run on this
// machine with the same buffer pool, both with every commit on disk before it is
// acknowledged (sync_binlog=1, innodb_flush_log_at_trx_commit=1, the binlog on).
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/triremedb/trireme/bench/contenders"
	"github.com/triremedb/trireme/bench/reportfile"
)

type config struct {
	quick     bool
	tables    int
	rows      int
	seconds   int
	rounds    int
	threads   []int
	workloads []string
	pool      int // MiB
	report    string
	dir       string
	binary    string
	profiles  string
	keep      bool
	only      string
	nodes     int
}

// groupTargets are targets for groups of several nodes, and what is measured of them.
var groupTargets = map[string]float64{"oltp_write_only": 2, "oltp_read_write": 1.5}

var groupOrder = []string{"oltp_write_only", "oltp_read_write"}

// targets are ratios of transactions per second to MariaDB's.
var targets = map[string]float64{
	"oltp_point_select": 1.5, "oltp_read_only": 1.3, "oltp_read_write": 1.5, "oltp_write_only": 1.5,
	"oltp_update_index": 1.5, "oltp_update_non_index": 0, "oltp_insert": 1.5, "oltp_delete": 0,
	"select_random_points": 0, "select_random_ranges": 0,
}

var order = []string{"oltp_point_select", "oltp_read_only", "select_random_points", "select_random_ranges", "oltp_update_index",
	"oltp_update_non_index", "oltp_write_only", "oltp_read_write", "oltp_insert", "oltp_delete"}

func main() {
	var c config
	threads, workloads := "1,8,32", ""
	flag.BoolVar(&c.quick, "quick", false, "short turns and small tables")
	flag.IntVar(&c.tables, "tables", 4, "tables")
	flag.IntVar(&c.rows, "rows", 200_000, "rows of each table")
	flag.IntVar(&c.seconds, "seconds", 10, "length of a turn")
	flag.IntVar(&c.rounds, "rounds", 3, "turns of each server and number of threads")
	flag.StringVar(&threads, "threads", threads, "numbers of threads")
	flag.StringVar(&workloads, "workloads", workloads, "sysbench's scripts; empty: those that have a target and some more")
	flag.IntVar(&c.nodes, "nodes", 1, "nodes of each contender; from 2 on the other one is Galera")
	flag.IntVar(&c.pool, "pool", 1024, "buffer pool in MiB")
	flag.StringVar(&c.report, "report", "report/sql.md", "file to write, for groups with -group before its ending; empty: none")
	flag.StringVar(&c.binary, "trireme", "", "binary of the server; empty: build it")
	flag.StringVar(&c.only, "only", "", "run one contender only: trireme or mariadb")
	flag.StringVar(&c.profiles, "profiles", "", "directory for CPU profiles of this database, of 5 s each")
	flag.BoolVar(&c.keep, "keep", false, "keep the servers' directory")
	flag.Parse()
	if c.quick {
		c.rows, c.seconds, c.rounds = min(c.rows, 50_000), min(c.seconds, 4), min(c.rounds, 1)
	}
	for _, t := range strings.Split(threads, ",") {
		n, err := strconv.Atoi(t)
		if err != nil || n < 1 {
			fail(fmt.Errorf("-threads: %q is no number of threads", t))
		}
		c.threads = append(c.threads, n)
	}
	if c.nodes > 1 {
		order, targets = groupOrder, groupTargets
		c.report = strings.Replace(c.report, ".md", "-group.md", 1)
	}
	if c.workloads = order; workloads != "" {
		c.workloads = strings.Split(workloads, ",")
	}
	if err := c.run(); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "sql:", err)
	os.Exit(1)
}

func (c *config) run() (err error) {
	if c.dir, err = os.MkdirTemp("", "bench-sql-"); err != nil {
		return err
	}
	if !c.keep {
		defer os.RemoveAll(c.dir)
	}
	servers, err := contenders.Start(contenders.Options{Dir: c.dir, Binary: c.binary, Nodes: c.nodes, Pool: c.pool, Keep: c.keep, Profiles: c.profiles}, c.only)
	defer func() { err = errors.Join(err, servers.Stop()) }()
	if err != nil {
		return err
	}
	m, err := c.measure(servers)
	if err != nil {
		return err
	}
	fmt.Print(m.text(""))
	if c.report == "" || c.quick || c.only != "" {
		return nil
	}
	picture := reportfile.Picture(c.report)
	if err := reportfile.Write(picture, m.plot()); err != nil {
		return err
	}
	return reportfile.Write(c.report, m.text(filepath.Base(picture)))
}

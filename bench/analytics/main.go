// Command analytics runs queries over millions of rows on this database and MariaDB in
// one run, taking turns, and reports the ratio of their times.
//
//	go -C bench run ./analytics          # two million rows: some minutes
//	go -C bench run ./analytics -quick   # 300,000 rows
//
// It needs Debian's package mariadb-server. Both servers run on this machine with the
// same buffer pool, which holds all data, and the same memory for a statement; MariaDB
// is told to join by hashing, which it does not do by itself. A query's results are
// compared before its times count.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/triremedb/trireme/bench/contenders"
	"github.com/triremedb/trireme/bench/reportfile"
)

type config struct {
	quick    bool
	rows     int
	rounds   int
	pool     int // MiB
	memory   int // MiB for a statement
	report   string
	binary   string
	profiles string
	only     *regexp.Regexp
	keep     bool
}

func main() {
	var c config
	var only string
	flag.BoolVar(&c.quick, "quick", false, "few rows, no report")
	flag.IntVar(&c.rows, "rows", 2_000_000, "rows of the large table; the joined ones have half of it each")
	flag.IntVar(&c.rounds, "rounds", 5, "runs of each query on each server")
	flag.IntVar(&c.pool, "pool", 1024, "buffer pool in MiB")
	flag.IntVar(&c.memory, "memory", 64, "MariaDB's memory for a statement in MiB; this database's is 64")
	flag.StringVar(&c.report, "report", "report/analytics.md", "file to write, with plots beside it; empty: none")
	flag.StringVar(&c.binary, "trireme", "", "binary of the server; empty: build it")
	flag.StringVar(&only, "queries", "", "run the queries whose names match this expression, and write no report")
	flag.StringVar(&c.profiles, "profiles", "", "directory for CPU profiles of this database, of 5 s each")
	flag.BoolVar(&c.keep, "keep", false, "keep the servers' directory")
	flag.Parse()
	if c.quick {
		c.rows, c.rounds = min(c.rows, 300_000), min(c.rounds, 3)
	}
	err := c.check(only)
	if err == nil {
		err = c.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "analytics:", err)
		os.Exit(1)
	}
}

func (c *config) check(only string) (err error) {
	if c.rows < 1000 || c.rounds < 1 {
		return errors.New("-rows must be 1000 at least, and -rounds 1")
	}
	if only != "" || c.quick {
		c.report = ""
	}
	c.only, err = regexp.Compile(only)
	return err
}

func (c *config) run() (err error) {
	dir, err := os.MkdirTemp("", "bench-analytics-")
	if err != nil {
		return err
	}
	if !c.keep {
		defer os.RemoveAll(dir)
	}
	servers, err := contenders.Start(contenders.Options{Dir: dir, Binary: c.binary, Pool: c.pool, Keep: c.keep, Profiles: c.profiles}, "")
	defer func() { err = errors.Join(err, servers.Stop()) }()
	if err != nil {
		return err
	}
	m, err := c.measure(servers)
	if err != nil {
		return err
	}
	fmt.Print(m.text(""))
	if c.report == "" {
		return nil
	}
	return m.write(c.report)
}

// write writes the report, and its plot beside it.
func (m *measured) write(name string) error {
	picture := reportfile.Picture(name)
	if err := reportfile.Write(picture, m.plot()); err != nil {
		return err
	}
	return reportfile.Write(name, m.text(filepath.Base(picture)))
}

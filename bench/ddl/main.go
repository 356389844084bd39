// Command ddl changes the definition of a table beside reads and writes of it, on this
// database and on MariaDB or Galera in one run, and reports how long the change takes, how long
// a client had to wait meanwhile, and how many were served.
//
//	go -C bench run ./ddl            # single servers: trireme, mariadb
//	go -C bench run ./ddl -nodes 3   # groups: trireme, galera
//	go -C bench run ./ddl -quick     # 100,000 rows, no report
//
// It needs Debian's package mariadb-server, for a group galera-4. Both servers run on this machine with
// the same buffer pool, both with every commit on disk before it is acknowledged.
//
// Clients write and read single rows by primary key at a given rate, whatever they have waited
// for before: a request that is held up for a second is one that took a second, and so are those
// which would have been sent meanwhile. A change is made by a session of its own, with no
// ALGORITHM and no LOCK: as people type it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
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
	rate    int           // requests per second, of all clients
	quiet   time.Duration // before each change
	nodes   int
	pool    int // MiB
	report  string
	binary  string
	only    string
	keep    bool
}

// change is what is done to the table, in this order.
type change struct{ name, text string }

var changes = []change{
	{"add a column", "ALTER TABLE ddl.t ADD COLUMN extra INT NOT NULL DEFAULT 7"},
	{"add an index", "ALTER TABLE ddl.t ADD INDEX k (k)"},
	{"add a unique index", "ALTER TABLE ddl.t ADD UNIQUE INDEX u (k, id)"},
	{"another type", "ALTER TABLE ddl.t MODIFY n BIGINT NOT NULL"},
	{"add a check", "ALTER TABLE ddl.t ADD CONSTRAINT counted CHECK (n >= 0)"},
	{"add a foreign key", "ALTER TABLE ddl.t ADD CONSTRAINT kind FOREIGN KEY (kind) REFERENCES ddl.kinds (id)"},
	{"drop an index", "ALTER TABLE ddl.t DROP INDEX u"},
	{"FORCE", "ALTER TABLE ddl.t FORCE"},
}

func main() {
	var c config
	flag.BoolVar(&c.quick, "quick", false, "few rows, no report")
	flag.IntVar(&c.rows, "rows", 1_000_000, "rows of the table")
	flag.IntVar(&c.clients, "clients", 8, "clients; half of them write")
	flag.IntVar(&c.rate, "rate", 400, "requests per second, of all clients")
	flag.DurationVar(&c.quiet, "quiet", 3*time.Second, "how long clients are alone before a change and after it")
	flag.IntVar(&c.nodes, "nodes", 1, "nodes of each contender; from 2 on the other one is Galera")
	flag.IntVar(&c.pool, "pool", 1024, "buffer pool in MiB")
	flag.StringVar(&c.report, "report", "report/ddl.md", "file to write, for groups with -group before its ending; empty: none")
	flag.StringVar(&c.binary, "trireme", "", "binary of the server; empty: build it")
	flag.StringVar(&c.only, "only", "", "run one contender only: trireme or mariadb")
	flag.BoolVar(&c.keep, "keep", false, "keep the servers' directory")
	flag.Parse()
	if c.quick {
		c.rows, c.report = min(c.rows, 100_000), ""
	}
	if c.nodes > 1 {
		c.report = strings.Replace(c.report, ".md", "-group.md", 1)
	}
	err := c.check()
	if err == nil {
		err = c.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ddl:", err)
		os.Exit(1)
	}
}

func (c *config) check() error {
	if c.rows < 1000 || c.clients < 2 || c.rate < c.clients {
		return errors.New("-rows must be 1000 at least, -clients 2, and -rate as many as there are clients")
	}
	return nil
}

func (c *config) run() (err error) {
	dir, err := os.MkdirTemp("", "bench-ddl-")
	if err != nil {
		return err
	}
	if !c.keep {
		defer os.RemoveAll(dir)
	}
	var m measured
	m.c = *c
	for _, only := range []string{"trireme", "mariadb"} { // one after the other: an idle group takes processors too
		if c.only == "" || c.only == only {
			if err := c.measure(&m, dir, only); err != nil {
				return fmt.Errorf("%s: %w", only, err)
			}
		}
	}
	text := m.text()
	fmt.Print(text)
	if c.report == "" || c.only != "" {
		return nil
	}
	return reportfile.Write(c.report, text)
}

// measure makes all changes on one contender.
func (c *config) measure(m *measured, dir, only string) (err error) {
	list, err := contenders.Start(contenders.Options{Dir: dir, Binary: c.binary, Nodes: c.nodes, Pool: c.pool, Keep: c.keep}, only)
	defer func() { err = errors.Join(err, list.Stop()) }()
	if err != nil {
		return err
	}
	s := list[0]
	m.servers = append(m.servers, s.Name+": "+s.Version)
	if err := load(s, c.rows); err != nil {
		return err
	}
	for i, ch := range changes {
		took, seen, err := c.change(s, ch)
		if err != nil {
			return fmt.Errorf("%s: %w", ch.name, err)
		}
		fmt.Fprintf(os.Stderr, "%-8s %-20s %v\n", s.Name, ch.name, took.Round(time.Millisecond))
		if len(m.results) == i {
			m.results = append(m.results, nil)
		}
		m.results[i] = append(m.results[i], result{s.Name, took, seen})
	}
	return nil
}

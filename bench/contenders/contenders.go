// Package contenders starts the servers that benchmarks of SQL compare: this database, and
// MariaDB or Galera with the same memory, on this machine, each so that it loses nothing
// which it has acknowledged.
package contenders

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/e2e/servers"
)

// Options say how servers are started.
type Options struct {
	Dir    string // for their data and logs; MariaDB's data have one of their own
	Binary string // of this database; empty: build it
	Nodes  int    // of each; 0 is 1. From 2 on the other one is Galera.
	Pool   int    // buffer pool, MiB
	Keep   bool   // keep MariaDB's data

	Profiles string // directory for CPU profiles of this database's leader; empty: none
}

// Server is a running database. A group is used through its leader, Galera through its
// first node.
type Server struct {
	Name, Version  string
	Port           int
	User, Password string

	dsn       func(schema string) string
	followers []func(schema string) string
	processes []*servers.Process // the leader's, or the first node's, and then the others'
	leads     func() bool        // nil: all nodes are alike
	stop      func() error
}

// List is servers in the order of their turns.
type List []*Server

const (
	startLimit = time.Minute
	stopLimit  = 30 * time.Second
	password   = "benchmark"
)

// Start starts this database and the other one, or one of them if only is "trireme" or
// "mariadb". An interrupt stops them and ends the program. The list is to be stopped, also
// after an error.
func Start(o Options, only string) (list List, err error) {
	o.Nodes = max(o.Nodes, 1)
	other := startMariaDB
	if o.Nodes > 1 {
		other = startGalera
	}
	for _, c := range []struct {
		name  string
		start func(Options) (*Server, error)
	}{{"trireme", startTrireme}, {"mariadb", other}} {
		if only != "" && only != c.name {
			continue
		}
		s, err := c.start(o)
		if err != nil {
			return list, fmt.Errorf("%s: %w", c.name, err)
		}
		list = append(list, s)
		if s.Version, err = servers.Version(s.DSN("")); err != nil {
			return list, err
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("there is no contender %q: trireme or mariadb", only)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		_ = list.Stop()
		os.Exit(1)
	}()
	return list, nil
}

// Stop stops all servers.
func (l List) Stop() error {
	var errs []error
	for _, s := range l {
		errs = append(errs, s.stop())
	}
	return errors.Join(errs...)
}

// DSN returns the data source name of a schema, for the driver "mysql".
func (s *Server) DSN(schema string) string { return s.dsn(schema) }

// Followers returns the data source names of a schema on the other nodes, whose sessions
// read what the node has: they wait for nothing that the leader has committed.
func (s *Server) Followers(schema string) (list []string) {
	for _, dsn := range s.followers {
		list = append(list, dsn(schema))
	}
	return list
}

// Leads reports whether the node that is used still leads its group.
func (s *Server) Leads() bool { return s.leads == nil || s.leads() }

// SQL runs a statement.
func (s *Server) SQL(text string) error {
	db, err := sql.Open("mysql", s.DSN(""))
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec(text)
	return err
}

// rowsPerInsert is how many rows are loaded with a statement.
const rowsPerInsert = 1000

// Fill inserts rows into a table, of which row writes the values, without parentheses.
func Fill(db *sql.DB, table string, rows int, row func(b *strings.Builder, id int)) error {
	var b strings.Builder
	for id := 0; id < rows; {
		b.Reset()
		b.WriteString("INSERT INTO " + table + " VALUES ")
		for end := min(id+rowsPerInsert, rows); id < end; id++ {
			b.WriteByte('(')
			row(&b, id)
			b.WriteString("),")
		}
		if _, err := db.Exec(b.String()[:b.Len()-1]); err != nil {
			return err
		}
	}
	return nil
}

// CPU is the CPU time that the server has used, on all its nodes.
func (s *Server) CPU() (sum time.Duration) {
	for _, p := range s.processes {
		sum += p.CPU()
	}
	return sum
}

// RSS is the resident memory of each node's process in bytes, the leader's first.
func (s *Server) RSS() (list []int64) {
	for _, p := range s.processes {
		list = append(list, p.RSS())
	}
	return list
}

// Missing says what has to be installed for the other contender.
func Missing(nodes int) error { return servers.FindMariaDB(nodes > 1) }

func startTrireme(o Options) (*Server, error) {
	settings := []string{"--max-connections=500", "--log-level=warn",
		fmt.Sprintf("--innodb-buffer-pool-size=%dM", o.Pool), "--innodb-redo-log-capacity=512M"}
	if o.Profiles != "" {
		settings = append(settings, "--http-pprof=ON")
	}
	g, err := servers.Launch(servers.Options{Binary: o.Binary, Dir: o.Dir, Nodes: o.Nodes, Password: password, Settings: settings}, startLimit)
	if err != nil {
		return nil, err
	}
	n, err := g.Leader(startLimit)
	if err != nil {
		g.Kill()
		return nil, err
	}
	s := &Server{Name: "trireme", Port: n.Port, User: "root", Password: password,
		dsn: func(schema string) string { return n.DSN(schema, nil) },
		leads: func() bool {
			now, err := g.Leader(startLimit)
			return err == nil && now == n
		},
		stop: func() error { return g.Stop(stopLimit) }}
	s.processes = []*servers.Process{n.Process()}
	for _, other := range g.Nodes {
		if other != n {
			s.processes = append(s.processes, other.Process())
			s.followers = append(s.followers, func(schema string) string { return other.ReadDSN(schema, local) })
		}
	}
	if o.Profiles != "" {
		p, err := startProfiler(n, o.Profiles)
		if err != nil {
			return nil, errors.Join(err, s.stop())
		}
		s.stop = func() error { return errors.Join(p.stop(), g.Stop(stopLimit)) }
	}
	return s, nil
}

// local has sessions read what their node has.
func local(c *mysql.Config) {
	c.Params = map[string]string{"trireme_read_consistency": "'LOCAL'"}
}

func settings(o Options) []string {
	return []string{"--max-connections=500", fmt.Sprintf("--innodb-buffer-pool-size=%dM", o.Pool), "--innodb-log-file-size=512M",
		"--innodb-flush-log-at-trx-commit=1", "--log-bin", "--sync-binlog=1", "--binlog-format=ROW", "--binlog-row-image=MINIMAL"}
}

func startMariaDB(o Options) (*Server, error) {
	m, err := servers.StartMariaDB(filepath.Join(o.Dir, "mariadb.log"), startLimit, append(settings(o), "--server-id=1")...)
	if err != nil {
		return nil, err
	}
	return mariadb(o, "mariadb", []*servers.MariaDB{m}), nil
}

func startGalera(o Options) (*Server, error) {
	nodes, err := servers.StartGalera(o.Dir, startLimit, o.Nodes, settings(o)...)
	if err != nil {
		return nil, err
	}
	return mariadb(o, "galera", nodes), nil
}

func mariadb(o Options, name string, nodes []*servers.MariaDB) *Server {
	first := nodes[0]
	s := &Server{Name: name, Port: first.Port, User: "root", dsn: func(schema string) string { return first.DSN(schema, nil) }}
	for i, m := range nodes {
		s.processes = append(s.processes, m.Process)
		if i > 0 { // wsrep_sync_wait is 0 unless it is set
			s.followers = append(s.followers, func(schema string) string { return m.DSN(schema, nil) })
		}
	}
	s.stop = func() error {
		var errs []error
		for _, m := range slices.Backward(nodes) {
			errs = append(errs, m.Stop(stopLimit))
			if !o.Keep {
				m.Remove()
			}
		}
		return errors.Join(errs...)
	}
	return s
}

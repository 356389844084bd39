package main

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// server is a running database.
type server struct {
	name, version  string
	port           int
	user, password string
	dsn            string
	processes      []*servers.Process
	stop           func() error
}

const (
	startLimit = time.Minute
	stopLimit  = 30 * time.Second
)

func (s *server) sql(text string) error {
	db, err := sql.Open("mysql", s.dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec(text)
	return err
}

// settle gives background work of the turn before a moment.
func (s *server) settle() { time.Sleep(500 * time.Millisecond) }

// cpu is the CPU time that the server has used, on all its nodes.
func (s *server) cpu() (sum time.Duration) {
	for _, p := range s.processes {
		sum += p.CPU()
	}
	return sum
}

// startTrireme starts a group.
func (c *config) startTrireme() (*server, error) {
	g, err := servers.Launch(servers.Options{Binary: c.binary, Dir: c.dir, Nodes: c.nodes, Password: "benchmark", Settings: []string{
		"--max-connections=500", "--log-level=warn",
		fmt.Sprintf("--innodb-buffer-pool-size=%dM", c.pool), "--innodb-redo-log-capacity=512M"}}, startLimit)
	if err != nil {
		return nil, err
	}
	n, err := g.Leader(startLimit)
	if err != nil {
		g.Kill()
		return nil, err
	}
	s := &server{name: "trireme", port: n.Port, user: "root", password: "benchmark", dsn: n.DSN("", nil),
		stop: func() error { return g.Stop(stopLimit) }}
	for _, n := range g.Nodes {
		s.processes = append(s.processes, n.Process())
	}
	return s, nil
}

// mariadbSettings are those of a server that loses nothing which it has acknowledged.
func (c *config) mariadbSettings() []string {
	return []string{"--max-connections=500", fmt.Sprintf("--innodb-buffer-pool-size=%dM", c.pool), "--innodb-log-file-size=512M",
		"--innodb-flush-log-at-trx-commit=1", "--log-bin", "--sync-binlog=1", "--binlog-format=ROW", "--binlog-row-image=MINIMAL"}
}

func (c *config) startMariaDB() (*server, error) {
	m, err := servers.StartMariaDB(filepath.Join(c.dir, "mariadb.log"), startLimit, append(c.mariadbSettings(), "--server-id=1")...)
	if err != nil {
		return nil, err
	}
	return c.mariadb("mariadb", []*servers.MariaDB{m}), nil
}

func (c *config) startGalera() (*server, error) {
	nodes, err := servers.StartGalera(c.dir, startLimit, c.nodes, c.mariadbSettings()...)
	if err != nil {
		return nil, err
	}
	return c.mariadb("galera", nodes), nil
}

// mariadb is a server, or a cluster that is used through its first node.
func (c *config) mariadb(name string, nodes []*servers.MariaDB) *server {
	s := &server{name: name, port: nodes[0].Port, user: "root", dsn: nodes[0].DSN("", nil)}
	for _, m := range nodes {
		s.processes = append(s.processes, m.Process)
	}
	s.stop = func() error {
		var errs []error
		for _, m := range slices.Backward(nodes) {
			errs = append(errs, m.Stop(stopLimit))
			if !c.keep {
				m.Remove()
			}
		}
		return errors.Join(errs...)
	}
	return s
}

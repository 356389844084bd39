package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// server is a running database.
type server struct {
	name, version  string
	port           int
	user, password string
	dsn            string
	process        *servers.Process
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

func (s *server) askVersion() error {
	db, err := sql.Open("mysql", s.dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.QueryRow("SELECT VERSION()").Scan(&s.version)
}

// settle gives background work of the turn before a moment.
func (s *server) settle() { time.Sleep(500 * time.Millisecond) }

// cpu is the CPU time that the server has used.
func (s *server) cpu() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.PID()))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// startTrireme starts a group of one.
func (c *config) startTrireme() (*server, error) {
	var err error
	binary := c.binary
	if binary == "" {
		if binary, err = servers.Build(c.dir); err != nil {
			return nil, err
		}
	}
	g, err := servers.New(servers.Options{Binary: binary, Dir: c.dir, Password: "benchmark", Settings: []string{
		"--max-connections=500", "--log-level=warn",
		fmt.Sprintf("--innodb-buffer-pool-size=%dM", c.pool), "--innodb-redo-log-capacity=512M"}})
	if err != nil {
		return nil, err
	}
	if err := g.Start(startLimit); err != nil {
		g.Kill()
		return nil, fmt.Errorf("trireme: %w\n%s", err, g.Nodes[0].LastWords())
	}
	n := g.Nodes[0]
	return &server{name: "trireme", port: n.Port, user: "root", password: "benchmark", dsn: n.DSN("", nil), process: n.Process(),
		stop: func() error { return g.Stop(stopLimit) }}, nil
}

func (c *config) startMariaDB() (*server, error) {
	m, err := servers.StartMariaDB(filepath.Join(c.dir, "mariadb.log"), startLimit, "--max-connections=500",
		fmt.Sprintf("--innodb-buffer-pool-size=%dM", c.pool), "--innodb-log-file-size=512M", "--innodb-flush-log-at-trx-commit=1",
		"--log-bin", "--sync-binlog=1", "--binlog-format=ROW", "--binlog-row-image=MINIMAL", "--server-id=1")
	if err != nil {
		return nil, err
	}
	return &server{name: "mariadb", port: m.Port, user: "root", dsn: m.DSN("", nil), process: m.Process, stop: func() error {
		err := m.Stop(stopLimit)
		if !c.keep {
			m.Remove()
		}
		return err
	}}, nil
}

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// server is a running database.
type server struct {
	name, version, dsn string
	process            *servers.Process
	stop               func() error
}

const (
	startLimit = time.Minute
	stopLimit  = 30 * time.Second
)

// start starts both servers, this database first. stop ends those that run.
func (c *config) start(dir string) (list []*server, stop func() error, err error) {
	stop = func() (err error) {
		for _, s := range list {
			err = errors.Join(err, s.stop())
		}
		return err
	}
	for _, start := range []func(dir string) (*server, error){c.startTrireme, c.startMariaDB} {
		s, err := start(dir)
		if err != nil {
			return list, stop, err
		}
		list = append(list, s)
		if s.version, err = servers.Version(s.dsn); err != nil {
			return list, stop, err
		}
	}
	return list, stop, nil
}

// startTrireme starts a group of one.
func (c *config) startTrireme(dir string) (*server, error) {
	g, err := servers.Launch(servers.Options{Binary: c.binary, Dir: dir, Settings: []string{
		"--log-level=warn", fmt.Sprintf("--innodb-buffer-pool-size=%dM", c.pool), "--innodb-redo-log-capacity=512M"}}, startLimit)
	if err != nil {
		return nil, err
	}
	n := g.Nodes[0]
	return &server{name: "trireme", dsn: n.DSN("", nil), process: n.Process(), stop: func() error { return g.Stop(stopLimit) }}, nil
}

func (c *config) startMariaDB(dir string) (*server, error) {
	m, err := servers.StartMariaDB(filepath.Join(dir, "mariadb.log"), startLimit,
		fmt.Sprintf("--innodb-buffer-pool-size=%dM", c.pool), "--innodb-log-file-size=512M", "--innodb-flush-log-at-trx-commit=1",
		"--log-bin", "--sync-binlog=1", "--binlog-format=ROW", "--server-id=1")
	if err != nil {
		return nil, err
	}
	return &server{name: "mariadb", dsn: m.DSN("", nil), process: m.Process, stop: func() error {
		err := m.Stop(stopLimit)
		if !c.keep {
			m.Remove()
		}
		return err
	}}, nil
}

// settle gives the background work of loading a moment.
func (s *server) settle() { time.Sleep(2 * time.Second) }

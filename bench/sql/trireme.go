package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

const password = "benchmark"

// startTrireme starts a group of one.
func (c *config) startTrireme() (*server, error) {
	binary := c.binary
	if binary == "" {
		binary = filepath.Join(c.dir, "trireme-server")
		build := exec.Command("go", "build", "-o", binary, "./cmd/trireme")
		build.Dir = ".."
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	peers, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &server{name: "trireme", port: port, user: "root", password: password}
	s.cmd = exec.Command(binary, "server", "--datadir="+filepath.Join(c.dir, "trireme"), "--bind-address=127.0.0.1",
		fmt.Sprintf("--port=%d", port), "--read-only-port=-1", fmt.Sprintf("--peer-port=%d", peers), "--http-port=-1",
		"--initial-root-password="+password, "--max-connections=500", "--log-level=warn",
		fmt.Sprintf("--innodb-buffer-pool-size=%dM", c.pool), "--innodb-redo-log-capacity=512M")
	return s, s.launch(c.dir)
}

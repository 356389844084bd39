package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/client"
	"github.com/triremedb/trireme/e2e/servers/ports"
	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/node"
)

// patience is how long anything may take that has to happen in the end.
const patience = 2 * time.Minute

// address is the gRPC port of a node that all tests share.
var address string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "trireme-client")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	nodes, err := startGroup(dir, 1)
	if err != nil {
		panic(err)
	}
	defer stop(nodes[0])
	address = nodes[0].GRPCAddr()
	db, err := client.Open(context.Background(), client.Options{Addrs: []string{address}, User: "root", Password: "secret", Patience: patience})
	if err == nil {
		for _, text := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, note VARCHAR(100), price DECIMAL(10,2))",
			"CREATE TABLE shop.account (id INT PRIMARY KEY, balance INT NOT NULL)", "INSERT INTO shop.account VALUES (1, 100), (2, 0)"} {
			if _, err = db.Exec(context.Background(), text); err != nil {
				break
			}
		}
	}
	if err != nil {
		panic(err)
	}
	defer db.Close()
	return m.Run()
}

// founded are the members' own addresses, by the directory of their group.
var founded = map[string][]string{}

// programs are the gRPC ports of members, by their own addresses.
var programs = map[string]string{}

// startGroup starts nodes that found a group.
func startGroup(dir string, n int, more ...string) ([]*node.Node, error) {
	var addrs []string
	for range n {
		port, err := ports.Free()
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", port))
	}
	founded[dir] = addrs
	nodes, errs := make([]*node.Node, n), make([]error, n)
	var starting sync.WaitGroup
	for i := range n {
		starting.Go(func() { nodes[i], errs[i] = start(fmt.Sprintf("%s/node%d", dir, i), addrs, addrs[i], more...) })
	}
	starting.Wait()
	for i, n := range nodes {
		if n != nil {
			_, programs[addrs[i]], _ = net.SplitHostPort(n.GRPCAddr())
		}
	}
	return nodes, errors.Join(errs...)
}

func start(dir string, founders []string, self string, more ...string) (*node.Node, error) {
	cfg, err := config.Load(config.Sources{Args: append([]string{"--datadir=" + dir, "--bind-address=127.0.0.1", "--port=0", "--read-only-port=-1", "--http-port=-1",
		"--grpc-port=0", "--report-host=127.0.0.1", "--founders=" + strings.Join(founders, ","), "--peer-address=" + self, "--peer-bind=127.0.0.1",
		"--peer-port=" + self[strings.LastIndexByte(self, ':')+1:], "--peer-allow-plaintext", "--initial-root-password=secret",
		"--innodb-buffer-pool-size=16M", "--innodb-redo-log-capacity=16M", "--max-connections=1000"}, more...)})
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	if os.Getenv("NODE_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return node.Open(cfg, log)
}

func stop(n *node.Node) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := n.Stop(ctx); err != nil {
		panic(err)
	}
}

func open(t *testing.T, addrs ...string) *client.DB {
	t.Helper()
	if len(addrs) == 0 {
		addrs = []string{address}
	}
	db, err := client.Open(context.Background(), client.Options{Addrs: addrs, User: "root", Password: "secret", Schema: "shop", Patience: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

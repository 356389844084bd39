package node_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
)

// A node that stops is not ready while the statements of its clients end: its ports are closed.
func TestStoppingIsNotReady(t *testing.T) {
	m, _ := leaderOf(t, group(t, 1))
	db := open(t, m.MainAddr())
	go func() { _, _ = db.Exec("SELECT SLEEP(600)") }()
	eventually(t, "the statement runs", func() (err error) {
		var n int
		if err = db.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE info = 'SELECT SLEEP(600)'").Scan(&n); err == nil && n != 1 {
			err = fmt.Errorf("%d run", n)
		}
		return err
	})
	if code, text := m.get("/readyz"); code != 200 {
		t.Fatal(code, text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stopped := make(chan error, 1)
	node := m.Node
	go func() { stopped <- node.Stop(ctx) }()
	eventually(t, "it closes its port", func() error {
		nc, err := net.Dial("tcp", node.MainAddr())
		if err == nil {
			_ = nc.Close()
			return errors.New("it is open")
		}
		return nil
	})
	if code, text := m.get("/readyz"); code != 503 || text != "the node is stopping\n" {
		t.Error(code, text)
	}
	cancel()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	m.Node = nil
}

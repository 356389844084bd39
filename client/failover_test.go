package client_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/client"
	"github.com/triremedb/trireme/server/node"
)

// writer is a client that writes rows numbered from 0 on.
type writer struct {
	name  string
	write func(ctx context.Context, n int) error
	acked atomic.Int64
	err   atomic.Value
}

// TestLeaderLeaves: clients write by all ways that there are while leaders stop, one after the
// other, and come back. They go on by themselves; what was acknowledged is there, once.
func TestLeaderLeaves(t *testing.T) {
	dir := t.TempDir()
	nodes, err := startGroup(dir, 3)
	if err != nil {
		t.Fatal(err)
	}
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.GRPCAddr())
	}
	defer func() {
		for _, n := range nodes {
			if n != nil {
				stop(n)
			}
		}
	}()
	db, err := client.Open(ctx, client.Options{Addrs: addrs, User: "root", Password: "secret", Patience: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range []string{"CREATE DATABASE log", "CREATE TABLE log.t (id BIGINT PRIMARY KEY AUTO_INCREMENT, who VARCHAR(20), n INT)",
		"CREATE TABLE log.last (who VARCHAR(20) PRIMARY KEY, n INT)"} {
		if _, err := db.Exec(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	std, err := sql.Open("trireme", "trireme://root:secret@"+strings.Join(addrs, ",")+"/log?patience="+patience.String())
	if err != nil {
		t.Fatal(err)
	}
	defer std.Close()
	prepared := db.Prepare("INSERT INTO log.t (who, n) VALUES (?, ?)")
	writers := []*writer{
		{name: "exec", write: func(ctx context.Context, n int) error {
			_, err := db.Exec(ctx, "INSERT INTO log.t (who, n) VALUES ('exec', ?)", n)
			return err
		}},
		{name: "prepared", write: func(ctx context.Context, n int) error {
			_, err := prepared.Exec(ctx, "prepared", n)
			return err
		}},
		{name: "tx", write: func(ctx context.Context, n int) error {
			_, err := db.RunTx(ctx, nil, func(tx *client.Tx) error {
				if _, err := tx.Exec(ctx, "INSERT INTO log.t (who, n) VALUES (?, ?)", "tx", n); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, "REPLACE INTO log.last VALUES (?, ?)", "tx", n)
				return err
			})
			return err
		}},
		{name: "sql", write: func(ctx context.Context, n int) error {
			_, err := std.ExecContext(ctx, "INSERT INTO t (who, n) VALUES (?, ?)", "sql", n)
			return err
		}},
	}
	working, end := context.WithCancel(ctx)
	defer end()
	var tasks sync.WaitGroup
	for _, w := range writers {
		tasks.Go(func() {
			for n := 0; working.Err() == nil; n++ {
				if err := w.write(ctx, n); err != nil {
					w.err.Store(err)
					return
				}
				w.acked.Store(int64(n + 1))
			}
		})
	}
	// advance waits until every writer has had so many rows more acknowledged.
	advance := func(more int64) {
		t.Helper()
		for _, w := range writers {
			for goal, until := w.acked.Load()+more, time.Now().Add(patience); w.acked.Load() < goal; time.Sleep(time.Millisecond) {
				if err := w.err.Load(); err != nil || time.Now().After(until) {
					t.Fatalf("%s has got no further than row %d: %v", w.name, w.acked.Load(), err)
				}
			}
		}
	}
	for round := range 3 {
		advance(20)
		i, n := leader(t, nodes)
		if round == 1 { // without time for what runs
			cut, cancel := context.WithCancel(ctx)
			cancel()
			_ = n.Stop(cut)
		} else {
			stop(n)
		}
		nodes[i] = nil
		advance(20)
		if nodes[i], err = restart(dir, i); err != nil {
			t.Fatal(err)
		}
	}
	end()
	tasks.Wait()
	for _, w := range writers {
		if err := w.err.Load(); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
		var all, different int64
		if err := db.QueryRow(ctx, "SELECT COUNT(*), COUNT(DISTINCT n) FROM log.t WHERE who = ?", w.name).Scan(&all, &different); err != nil {
			t.Fatal(err)
		}
		if acked := w.acked.Load(); all != acked || different != acked {
			t.Errorf("%s: %d rows were acknowledged, %d are there, %d of them different", w.name, acked, all, different)
		}
	}
}

func leader(t *testing.T, nodes []*node.Node) (int, *node.Node) {
	t.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		for i, n := range nodes {
			if n.Leads() {
				return i, n
			}
		}
	}
	t.Fatal(errors.New("nobody leads"))
	return 0, nil
}

// restart starts a node of a group again, on the ports that it had among the members.
func restart(dir string, i int) (*node.Node, error) {
	founders := founded[dir]
	return start(fmt.Sprintf("%s/node%d", dir, i), founders, founders[i], "--grpc-port="+programs[founders[i]])
}

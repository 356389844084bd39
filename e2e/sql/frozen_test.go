package sql

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/triremedb/trireme/client"
	"github.com/triremedb/trireme/e2e/servers"
)

// program writes rows numbered from 0 on.
type program struct {
	write func(n int) error
	acked atomic.Int64
	err   atomic.Value
}

// next waits until the program has got some rows further, and returns how long that took.
func (p *program) next(t *testing.T, name string) time.Duration {
	t.Helper()
	began := time.Now()
	for goal := p.acked.Load() + 6; p.acked.Load() < goal; time.Sleep(time.Millisecond) {
		if err := p.err.Load(); err != nil || time.Since(began) > patience {
			t.Fatalf("%s has got no further than row %d: %v", name, p.acked.Load(), err)
		}
	}
	return time.Since(began)
}

// TestFrozenProcess: the leader's process stands still, and then a follower's; their kernels go on. Programs go on at other
// members, by all ways that there are; what was acknowledged is there once when the process runs again.
func TestFrozenProcess(t *testing.T) {
	t.Parallel()
	g := newGroup(t, servers.Options{})
	db, idle := openClient(t, g), openClient(t, g)
	ctx := context.Background()
	for _, text := range []string{"CREATE DATABASE ice", "CREATE TABLE ice.t (id BIGINT PRIMARY KEY AUTO_INCREMENT, who VARCHAR(20), n INT)"} {
		if _, err := db.Exec(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := idle.Exec(ctx, "INSERT INTO ice.t (who, n) VALUES ('idle', 0)"); err != nil {
		t.Fatal(err)
	}
	o := client.Options{User: "root", Password: servers.Password, Patience: patience}
	for _, n := range g.Nodes {
		o.Addrs = append(o.Addrs, fmt.Sprintf("127.0.0.1:%d", n.GRPC))
	}
	std := sql.OpenDB(client.NewConnector(o, nil))
	defer std.Close()
	const insert = "INSERT INTO ice.t (who, n) VALUES (?, ?)"
	programs := map[string]*program{
		"exec": {write: func(n int) error { _, err := db.Exec(ctx, insert, "exec", n); return err }},
		"sql":  {write: func(n int) error { _, err := std.ExecContext(ctx, insert, "sql", n); return err }},
		"tx": {write: func(n int) error {
			_, err := db.RunTx(ctx, nil, func(tx *client.Tx) error { _, err := tx.Exec(ctx, insert, "tx", n); return err })
			return err
		}},
		"read": {write: func(int) error { // of all members in turns
			var n int
			return db.Reader(client.Local()).QueryRow(ctx, "SELECT 1").Scan(&n)
		}},
	}
	var tasks sync.WaitGroup
	var over atomic.Bool
	for _, p := range programs {
		tasks.Go(func() {
			for n := 0; !over.Load(); n++ {
				if err := p.write(n); err != nil {
					p.err.Store(err)
					return
				}
				p.acked.Store(int64(n + 1))
			}
		})
	}
	all := func(what string) {
		t.Helper()
		var waits sync.WaitGroup
		for name, p := range programs {
			waits.Go(func() { t.Logf("%s, %s: %v", what, name, p.next(t, name).Round(10*time.Millisecond)) })
		}
		waits.Wait()
	}
	all("before")
	lead := leader(t, g)
	lead.Signal(syscall.SIGSTOP)
	began := time.Now()
	var others sync.WaitGroup
	others.Go(func() {
		if _, err := idle.Exec(ctx, "INSERT INTO ice.t (who, n) VALUES ('idle', 1)"); err != nil {
			t.Errorf("a program that was idle: %v", err)
		}
		t.Logf("the leader stands still, idle before: %v", time.Since(began).Round(10*time.Millisecond))
	})
	others.Go(func() {
		fresh := openClient(t, g)
		if _, err := fresh.Exec(ctx, "INSERT INTO ice.t (who, n) VALUES ('fresh', 0)"); err != nil {
			t.Errorf("a new program: %v", err)
		}
		t.Logf("the leader stands still, a new program: %v", time.Since(began).Round(10*time.Millisecond))
	})
	all("the leader stands still")
	others.Wait()
	lead.Signal(syscall.SIGCONT)
	await(t, g)
	all("it runs again")
	now := leader(t, g)
	for _, n := range g.Nodes {
		if n != now {
			n.Signal(syscall.SIGSTOP)
			all("a follower stands still")
			n.Signal(syscall.SIGCONT)
			break
		}
	}
	over.Store(true)
	tasks.Wait()
	for name, p := range programs {
		if err := p.err.Load(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "read" {
			continue
		}
		var rows, different int64
		if err := db.QueryRow(ctx, "SELECT COUNT(*), COUNT(DISTINCT n) FROM ice.t WHERE who = ?", name).Scan(&rows, &different); err != nil {
			t.Fatal(err)
		}
		if acked := p.acked.Load(); rows != acked || different != acked {
			t.Errorf("%s: %d rows were acknowledged, %d are there, %d of them different", name, acked, rows, different)
		}
	}
}

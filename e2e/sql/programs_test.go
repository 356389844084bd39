package sql

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/client"
	"github.com/triremedb/trireme/e2e/servers"
)

// TestPrograms: programs write over gRPC, each row with a number, while one leader after the other is
// killed. They hear of no error; each row is there once.
func TestPrograms(t *testing.T) {
	g := newGroup(t, servers.Options{})
	ctx := context.Background()
	db := openClient(t, g)
	for _, text := range []string{"CREATE DATABASE programs", "CREATE TABLE programs.t (id BIGINT PRIMARY KEY AUTO_INCREMENT, who INT, n INT, KEY (who))"} {
		if _, err := db.Exec(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	working, end := context.WithCancel(ctx)
	defer end()
	var tasks sync.WaitGroup
	var acked [8]atomic.Int64
	for who := range acked {
		tasks.Go(func() {
			for n := 0; working.Err() == nil; n++ {
				var err error
				if who%2 == 0 {
					_, err = db.Exec(ctx, "INSERT INTO programs.t (who, n) VALUES (?, ?)", who, n)
				} else {
					_, err = db.RunTx(ctx, nil, func(tx *client.Tx) error {
						_, err := tx.Exec(ctx, "INSERT INTO programs.t (who, n) VALUES (?, ?)", who, n)
						return err
					})
				}
				if err != nil {
					t.Errorf("program %d, row %d: %v", who, n, err)
					return
				}
				acked[who].Store(int64(n + 1))
			}
		})
	}
	kills := 0
	for until := time.Now().Add(*duration); time.Now().Before(until) && !t.Failed(); kills++ {
		before := acked[0].Load() + acked[1].Load()
		for wait := time.Now().Add(patience); acked[0].Load()+acked[1].Load() < before+20 && !t.Failed(); time.Sleep(time.Millisecond) {
			if time.Now().After(wait) {
				t.Fatal("programs do not go on")
			}
		}
		leader, err := g.Leader(patience)
		if err != nil {
			t.Fatal(err)
		}
		leader.Kill()
		time.Sleep(300 * time.Millisecond)
		start(t, leader)
		await(t, g)
	}
	end()
	tasks.Wait()
	t.Logf("%d leaders were killed", kills)
	for who := range acked {
		var all, different int64
		if err := db.QueryRow(ctx, "SELECT COUNT(*), COUNT(DISTINCT n) FROM programs.t WHERE who = ?", who).Scan(&all, &different); err != nil {
			t.Fatal(err)
		}
		if n := acked[who].Load(); all != n || different != n {
			t.Errorf("program %d: %d rows were acknowledged, %d are there, %d of them different", who, n, all, different)
		}
	}
}

package session_test

import (
	"context"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/internal/race"
)

// TestUpsertsOfOneRow has many sessions insert one row or change it, by its primary key and
// by another unique one: they come one after the other, and none is a deadlock's victim.
func TestUpsertsOfOneRow(t *testing.T) {
	for _, x := range []struct{ name, table, sql, want string }{
		{"UpdateByPrimaryKey", "id INT PRIMARY KEY, n INT", "INSERT INTO t VALUES (1, 1) ON DUPLICATE KEY UPDATE n = n + 1", "n\n160\n"},
		{"UpdateByUniqueKey", "id INT PRIMARY KEY AUTO_INCREMENT, u INT UNIQUE, n INT",
			"INSERT INTO t (u, n) VALUES (1, 1) ON DUPLICATE KEY UPDATE n = n + 1", "n\n160\n"},
		{"ReplaceByPrimaryKey", "id INT PRIMARY KEY, n INT", "REPLACE INTO t VALUES (1, 7)", "n\n7\n"},
		{"ReplaceByUniqueKey", "id INT PRIMARY KEY AUTO_INCREMENT, u INT UNIQUE, n INT", "REPLACE INTO t (u, n) VALUES (1, 7)", "n\n7\n"},
	} {
		t.Run(x.name, func(t *testing.T) {
			for seed := range race.Fewer(uint64(8), 2) {
				sim := simenv.New(seed)
				sim.StepLimit = 1_000_000
				sim.Run(func() {
					r := sessiontest.Start(t, sessiontest.Options{Env: sim, Early: seed%2 == 1})
					r.CreateSchema("test")
					in := session.ConnectionInfo{Schema: "test"}
					r.Exec(r.Open(in), "CREATE TABLE t ("+x.table+")")
					g := env.NewGroup(sim)
					for range 32 {
						s := r.Open(in)
						g.Go("upsert", func() {
							for range 5 {
								if err := s.Query(context.Background(), x.sql, sessiontest.Discard); err != nil {
									t.Errorf("seed %d: %v", seed, err)
								}
							}
						})
					}
					g.Wait()
					if got := r.Text(r.Open(in), "SELECT n FROM t"); got != x.want {
						t.Errorf("seed %d: %s", seed, got)
					}
					r.Close()
				})
				if t.Failed() {
					return
				}
			}
		})
	}
}

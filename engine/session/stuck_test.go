package session_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
)

// TestStuck: a transaction that cannot be rolled back, for the disk gives no pages, ends its session, and is
// rolled back when the disk gives them again, though its client has left meanwhile.
func TestStuck(t *testing.T) {
	sim := simenv.New(1)
	sim.StepLimit = 20_000_000
	sim.Run(func() {
		fs := simfile.New(sim, 1)
		r := sessiontest.Start(t, sessiontest.Options{Env: sim, FS: fs, BufferPool: 2 << 20})
		defer r.Close()
		one, other := r.Open(session.ConnectionInfo{}), r.Open(session.ConnectionInfo{})
		for _, text := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, n INT, pad VARCHAR(1000))",
			"SET SESSION cte_max_recursion_depth = 10000",
			"INSERT INTO d.t WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 8000) SELECT i, 0, REPEAT('x', 1000) FROM s",
		} {
			r.Exec(other, text)
		}
		r.Exec(one, "BEGIN")
		r.Exec(one, "UPDATE d.t SET n = 7")
		broken := fs.Inject(simfile.Fault{Ops: simfile.OpRead, Err: syscall.EIO})
		if text := r.Text(one, "ROLLBACK"); !strings.Contains(text, "1105") || !strings.Contains(text, "connect again") {
			t.Errorf("ROLLBACK without a disk: %s", text)
		}
		if !one.Gone() {
			t.Error("the session goes on")
		}
		if err := one.Close(); err == nil {
			t.Error("its end says nothing")
		}
		env.Sleep(sim, 3*time.Second)
		broken.Stop()
		if text := r.Text(other, "SELECT n FROM d.t WHERE id = 1 FOR UPDATE NOWAIT"); !strings.Contains(text, "3572") {
			t.Errorf("a row is free before it is rolled back: %s", text)
		}
		env.Sleep(sim, time.Minute)
		r.Exec(other, "UPDATE d.t SET n = n + 1 WHERE id = 1")
		if text := r.Text(other, "SELECT SUM(n) FROM d.t"); !strings.Contains(text, "1") || strings.Contains(text, "7") {
			t.Errorf("there is %s", text)
		}
		r.Exec(other, "ALTER TABLE d.t ADD COLUMN x INT")
	})
}

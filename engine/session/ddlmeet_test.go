package session_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestDefinitionsMeet: statements that change definitions of the same names wait for each other, also beside who uses
// the names: none is told of a deadlock.
func TestDefinitionsMeet(t *testing.T) {
	for _, c := range []struct {
		name  string
		texts []string // client i begins with the i-th
	}{
		{"truncate", []string{"TRUNCATE t"}},
		{"drop and create", []string{"DROP TABLE IF EXISTS t", "CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)"}},
		{"rename", []string{"RENAME TABLE t TO x, u TO t, x TO u", "RENAME TABLE u TO x, t TO u, x TO t"}},
		{"drop of several", []string{"DROP TABLE IF EXISTS t, u", "DROP TABLE IF EXISTS u, t", "CREATE TABLE IF NOT EXISTS u (id INT PRIMARY KEY)",
			"CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY)"}},
		{"views", []string{"CREATE OR REPLACE VIEW v AS SELECT * FROM t", "DROP VIEW IF EXISTS v, w", "CREATE OR REPLACE VIEW w AS SELECT * FROM v",
			"DROP VIEW IF EXISTS w, v"}},
		{"a view and its table", []string{"CREATE OR REPLACE VIEW a AS SELECT * FROM t", "RENAME TABLE t TO x, a TO y, y TO a, x TO t"}},
		{"all", []string{"TRUNCATE t", "ALTER TABLE t COMMENT 'x'", "RENAME TABLE t TO x, x TO t", "CREATE TABLE IF NOT EXISTS w LIKE t", "DROP TABLE IF EXISTS w",
			"ALTER TABLE t ADD COLUMN k INT, ALGORITHM=COPY", "ALTER TABLE t DROP COLUMN k, ALGORITHM=COPY"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulated(t, func(r *sessiontest.Rig, sim *simenv.Sim) {
				s := r.Open(session.ConnectionInfo{Schema: "test"})
				r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY)")
				r.Exec(s, "CREATE TABLE u (id INT PRIMARY KEY)")
				began := sim.Monotonic()
				var clients []*task
				for i := range 4 {
					s, c, texts := r.Open(session.ConnectionInfo{Schema: "test"}), new(task), c.texts
					clients = append(clients, c)
					sim.Go("client", func() {
						for j := range 30 {
							text := texts[(i+j)%len(texts)]
							if got := r.Text(s, text); strings.Contains(got, "error 1213") || strings.Contains(got, "error 1205") {
								c.text += fmt.Sprintf("%s: %s", text, got)
							}
							if i == 0 {
								r.Text(s, "INSERT INTO t SELECT COALESCE(MAX(id), 0) + 1 FROM u")
							}
						}
						c.done = true
					})
				}
				for _, c := range clients {
					if got := c.await(r); got != "" {
						t.Error(got)
					}
				}
				if took := sim.Monotonic() - began; took > time.Minute {
					t.Errorf("they took %v", took)
				}
			})
		})
	}
}

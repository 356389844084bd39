package session_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
)

// discard is a ResultWriter that keeps nothing.
type discard struct{}

func (discard) Columns([]session.ResultColumn) error { return nil }
func (discard) Rows(*types.Batch) error              { return nil }
func (discard) Done(session.Outcome) error           { return nil }

// TestRebuildBesideChanges: tables are rebuilt while sessions change their rows. Each
// transaction changes a table that is not rebuilt in the same way; both have the same rows
// at the end, and nobody met an error but deadlocks.
func TestRebuildBesideChanges(t *testing.T) {
	for _, early := range []bool{false, true} {
		t.Run(fmt.Sprintf("early=%v", early), func(t *testing.T) { rebuildBesideChanges(t, early) })
	}
}

// rebuildRows is how many rows the tables of TestRebuildBesideChanges have to begin with.
var rebuildRows = race.Fewer(3000, 600)

func rebuildBesideChanges(t *testing.T, early bool) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	r := sessiontest.New(t, sessiontest.Options{Early: early})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	for _, table := range []string{"t", "model"} {
		r.Exec(s, "CREATE TABLE "+table+" (id INT NOT NULL AUTO_INCREMENT, u INT NOT NULL, v VARCHAR(40), w BIGINT, g INT AS (w % 7), PRIMARY KEY (id), UNIQUE KEY u (u), KEY v (v))")
	}
	var rows []string
	for i := range rebuildRows {
		rows = append(rows, fmt.Sprintf("(%d, %d, 'text %d', %d)", i+1, i+1, i, i*i))
	}
	for _, table := range []string{"t", "model"} {
		r.Exec(s, "INSERT INTO "+table+" (id, u, v, w) VALUES "+strings.Join(rows, ","))
	}
	const writers = 4
	var stop atomic.Bool
	var tasks sync.WaitGroup
	for n := range writers {
		c := r.Open(session.ConnectionInfo{Schema: "test"})
		rng := rand.New(rand.NewPCG(seed, uint64(n)+1))
		tasks.Go(func() {
			for !stop.Load() {
				if err := changeBoth(c, rng); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	changes := []string{"MODIFY v VARCHAR(60) CHARACTER SET latin1", "MODIFY v TEXT, DROP KEY v", "MODIFY v VARCHAR(40) CHARACTER SET utf8mb4, ADD KEY v (v)", "FORCE", "MODIFY w DECIMAL(20,0)", "MODIFY w BIGINT",
		"DROP PRIMARY KEY, ADD PRIMARY KEY (u), ADD UNIQUE KEY i (id), DROP KEY u", "DROP PRIMARY KEY, ADD PRIMARY KEY (id), ADD UNIQUE KEY u (u), DROP KEY i", "MODIFY u BIGINT NOT NULL", "MODIFY u INT NOT NULL",
		"CONVERT TO CHARACTER SET utf8mb4", "DROP PRIMARY KEY, ADD PRIMARY KEY (u, id), ADD UNIQUE KEY i (id), DROP KEY u, ADD UNIQUE KEY u (u)",
		"DROP PRIMARY KEY, ADD PRIMARY KEY (id), DROP KEY i"}
	for _, c := range changes {
		if got := r.Text(s, "ALTER TABLE t "+c+", LOCK=NONE"); !strings.HasPrefix(got, "ok") {
			t.Errorf("seed %d: %s: %s", seed, c, got)
		}
		if rng.IntN(3) == 0 {
			compareTables(t, r, s, fmt.Sprintf("seed %d, %s", seed, c))
		}
	}
	stop.Store(true)
	tasks.Wait()
	r.Exec(s, "INSERT INTO t (u, v, w) VALUES (-1, NULL, NULL)")
	r.Exec(s, "INSERT INTO model (u, v, w) VALUES (-1, NULL, NULL)")
	compareTables(t, r, s, fmt.Sprintf("seed %d, the end", seed))
	if got := r.Text(s, "CHECK TABLE t"); !strings.Contains(got, "OK") {
		t.Errorf("seed %d: %s", seed, got)
	}
	if got := r.Text(s, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'test'"); !strings.HasSuffix(strings.TrimSpace(got), "2") {
		t.Errorf("something is left: %s", got)
	}
}

// compareTables compares t with the model in one snapshot.
func compareTables(t *testing.T, r *sessiontest.Rig, s *session.Session, when string) {
	t.Helper()
	r.Exec(s, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
	defer r.Exec(s, "COMMIT")
	const columns = "id, u, v, w, g"
	a, b := r.Text(s, "SELECT "+columns+" FROM t ORDER BY id"), r.Text(s, "SELECT "+columns+" FROM model ORDER BY id")
	if a == b {
		return
	}
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			t.Fatalf("%s: %d rows and %d; %q instead of %q", when, len(x), len(y), x[i], y[i])
		}
	}
	t.Fatalf("%s: %d rows instead of %d", when, len(x), len(y))
}

// changeBoth changes both tables in one transaction, which a deadlock may end.
func changeBoth(c *session.Session, rng *rand.Rand) error {
	run := func(text string) error { return c.Query(context.Background(), text, discard{}) }
	number := func() int { return 1 + rng.IntN(rebuildRows*7/6) }
	var list []string
	for range 1 + rng.IntN(3) {
		a, b := number(), number()
		switch rng.IntN(6) {
		case 0:
			list = append(list, fmt.Sprintf("DELETE FROM %%s WHERE id = %d", a))
		case 1:
			list = append(list, fmt.Sprintf("INSERT IGNORE INTO %%s (id, u, v, w) VALUES (%d, %d, 'new', %d)", a, b, a+b))
		case 2: // unique keys change hands
			list = append(list, fmt.Sprintf("UPDATE %%s SET u = -u - 5000 WHERE u = %d", a), fmt.Sprintf("UPDATE %%s SET u = %d WHERE u = %d", a, b),
				fmt.Sprintf("UPDATE %%s SET u = %d WHERE u = %d", b, -a-5000))
		case 3: // another primary key
			list = append(list, fmt.Sprintf("UPDATE IGNORE %%s SET id = %d WHERE id = %d", a, b))
		default:
			list = append(list, fmt.Sprintf("UPDATE %%s SET v = 'v %d', w = %d WHERE id = %d", b, b, a))
		}
	}
	err := run("BEGIN")
	for _, text := range list {
		for _, table := range []string{"t", "model"} {
			if err == nil {
				err = run(fmt.Sprintf(text, table))
			}
		}
	}
	end := "COMMIT"
	if rng.IntN(5) == 0 {
		end = "ROLLBACK"
	}
	if err == nil {
		err = run(end)
	}
	var e *sqlerr.Error
	if errors.As(err, &e) && (e.Number == 1213 || e.Number == 1205) {
		return run("ROLLBACK")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", list, err)
	}
	return nil
}

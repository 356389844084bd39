package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// simulated runs fn on a node in a simulation.
func simulated(t *testing.T, fn func(r *sessiontest.Rig, sim *simenv.Sim)) {
	t.Helper()
	sim := simenv.New(1)
	sim.Run(func() {
		r := sessiontest.Start(t, sessiontest.Options{Env: sim, Early: true})
		r.CreateSchema("test")
		fn(r, sim)
		if !t.Failed() {
			r.Close()
		}
	})
}

// task runs a text in a session beside the test.
type task struct {
	done bool
	text string
}

func background(r *sessiontest.Rig, s *session.Session, sql string) *task {
	c := new(task)
	r.Env.Go("client", func() {
		c.text = r.Text(s, sql)
		c.done = true
	})
	env.Sleep(r.Env, 20*time.Millisecond)
	return c
}

func (c *task) await(r *sessiontest.Rig) string {
	for range 1000 {
		if c.done {
			return c.text
		}
		env.Sleep(r.Env, 100*time.Millisecond)
	}
	return "blocked"
}

// TestDoubtfulDefinition: a change of definitions that fails because of rows whose
// transaction is in doubt says so when that is committed, and not if it is lost.
func TestDoubtfulDefinition(t *testing.T) {
	for _, lost := range []bool{false, true} {
		simulated(t, func(r *sessiontest.Rig, sim *simenv.Sim) {
			s, other := r.Open(session.ConnectionInfo{Schema: "test"}), r.Open(session.ConnectionInfo{Schema: "test"})
			r.Exec(s, "CREATE TABLE parent (id INT PRIMARY KEY)")
			r.Exec(s, "CREATE TABLE child (id INT PRIMARY KEY, p INT)")
			r.Exec(s, "INSERT INTO parent VALUES (1)")
			r.Exec(s, "INSERT INTO child VALUES (1, 1)")
			ended := false
			r.Log.Doubt = func() error {
				for !ended {
					env.Sleep(sim, time.Millisecond)
				}
				r.Log.Doubt = nil
				if lost {
					return errors.New("the entry is lost")
				}
				return nil
			}
			writer := background(r, other, "DELETE FROM parent")
			alter := background(r, s, "ALTER TABLE child ADD FOREIGN KEY (p) REFERENCES parent (id)")
			if alter.done {
				t.Errorf("told before the commit it depends on: %s", alter.text)
			}
			ended = true
			writer.await(r)
			want := "error 1452"
			if lost {
				want = "error 3101"
			}
			if text := alter.await(r); !strings.Contains(text, want) {
				t.Errorf("lost %v: %s", lost, text)
			}
		})
	}
}

// TestConfirmed: what comes of locks or definitions alone is told by who leads only.
func TestConfirmed(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, _ *simenv.Sim) {
		s := r.Open(session.ConnectionInfo{Schema: "test"})
		r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY)")
		r.Exec(s, "CREATE TABLE u (id INT PRIMARY KEY, n INT, t INT, FOREIGN KEY (t) REFERENCES t (id))")
		r.Exec(s, "INSERT INTO u VALUES (1, 1, NULL)")
		for _, text := range []string{"SELECT id INTO @v FROM t WHERE id = 7 FOR UPDATE", "SELECT id INTO @v FROM t FOR UPDATE",
			"CREATE TABLE t (id INT)", "DROP TABLE missing", "CREATE DATABASE test",
			"INSERT INTO u VALUES (1, 1, NULL)", "INSERT INTO u VALUES (1, 1, NULL), (2, 2, NULL)", "INSERT IGNORE INTO u VALUES (1, 2, NULL)",
			"INSERT INTO u VALUES (1, 2, NULL) ON DUPLICATE KEY UPDATE n = 1", "INSERT INTO u VALUES (2, 2, 7)", "INSERT IGNORE INTO u VALUES (2, 2, 7)",
			"INSERT INTO u SELECT id, id, id FROM t", "UPDATE u SET t = 7", "UPDATE u SET n = 1", "DELETE FROM u WHERE n = 9",
			"BEGIN; INSERT INTO u VALUES (1, 1, NULL)"} {
			r.ReadPoint = func(session.ReadOptions) error { return sessiontest.ErrNotLeader }
			for _, found := range []bool{false, true} {
				one := r.Open(session.ConnectionInfo{Schema: "test", MultiStatements: true, FoundRows: found})
				if got := r.Text(one, text); !strings.Contains(got, "error 1053 (08S01)") {
					t.Errorf("%s: %s", text, got)
				}
			}
			r.ReadPoint = nil
			if got := r.Text(s, strings.TrimPrefix(text, "BEGIN; ")); strings.Contains(got, "error 1053") {
				t.Errorf("%s: %s", text, got)
			}
		}
	})
}

// TestReadPointEnds: KILL, the statement's time limit and the end of the lead end a wait for the
// read point, each with its own error.
func TestReadPointEnds(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, sim *simenv.Sim) {
		s := r.Open(session.ConnectionInfo{Schema: "test"})
		r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY)")
		r.Exec(s, "SET max_execution_time = 100")
		for _, c := range []struct {
			what string
			end  func()
			want string
		}{
			{"a time limit", func() { env.Sleep(sim, time.Second) }, "error 3024"},
			{"KILL QUERY", s.Interrupt, "error 1317"},
			{"another leads", r.Manager.StepDown, "error 1053"},
		} {
			r.ReadPoint = func(o session.ReadOptions) error {
				if o.Ended() {
					t.Errorf("%s: the wait is over before it has begun", c.what)
				}
				if c.end(); o.Ended() {
					return sessiontest.ErrReadEnded
				}
				return nil
			}
			got := r.Text(s, "SELECT * FROM t")
			if r.ReadPoint = nil; !strings.Contains(got, c.want) {
				t.Errorf("%s: %s", c.what, got)
			}
		}
		ends := func(o session.ReadOptions) error {
			if env.Sleep(sim, 200*time.Millisecond); o.Ended() {
				return sessiontest.ErrReadEnded
			}
			return nil
		}
		reader := r.Open(session.ConnectionInfo{Schema: "test", ReadOnly: true})
		r.Exec(reader, "SET trireme_read_consistency = STRONG, max_execution_time = 100")
		r.ReadPoint = ends
		began := sim.Monotonic()
		if got := r.Text(reader, "SELECT * FROM t"); !strings.Contains(got, "error 3024") || sim.Monotonic()-began > 300*time.Millisecond {
			t.Errorf("a time limit on the port for reads, after %v: %s", sim.Monotonic()-began, got)
		}
		if got := r.Text(reader, "SELECT WAIT_FOR_EXECUTED_GTID_SET('aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee:99999', 10)"); !strings.Contains(got, "error 3024") {
			t.Errorf("a wait for what does not come, with a time limit: %s", got)
		}
		r.ReadPoint = nil
		r.Exec(reader, "SELECT * FROM t")
		r.ReadPoint = ends
		if err := reader.Use("test"); err != nil {
			t.Errorf("another database, after a query with a time limit: %v", err)
		}
		r.ReadPoint = nil
	})
}

// TestReadPointOnce: what a transaction has been shown before its first row says nothing about
// when its snapshot was taken, and what is about this node alone waits for nobody.
func TestReadPointOnce(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, _ *simenv.Sim) {
		s := r.Open(session.ConnectionInfo{Schema: "test"})
		r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY)")
		reader := r.Open(session.ConnectionInfo{Schema: "test", ReadOnly: true})
		r.Exec(reader, "SET trireme_read_consistency = STRONG")
		asked := 0
		r.ReadPoint = func(session.ReadOptions) error { asked++; return nil }
		check := func(text string, want int) {
			t.Helper()
			asked = 0
			if r.Exec(reader, text); asked != want {
				t.Errorf("%s asked %d times, not %d", text, asked, want)
			}
		}
		for _, text := range []string{"SELECT 1", "SHOW PROCESSLIST", "SHOW VARIABLES LIKE 'port'", "SHOW STATUS", "SHOW WARNINGS", "BEGIN",
			"SELECT MEMBER_HOST FROM performance_schema.replication_group_members", "SHOW COLLATION"} {
			check(text, 0)
		}
		check("SHOW TABLES", 1)
		check("EXPLAIN SELECT * FROM t", 1)
		check("SELECT * FROM t", 1)
		check("SELECT * FROM t", 0) // by the same snapshot
		check("SHOW TABLES", 0)
		check("COMMIT", 0)
		check("SELECT * FROM t", 1)
		known := r.ReadPoint
		stale := errors.New("this member lags")
		r.ReadPoint = func(session.ReadOptions) error { asked++; return stale }
		for _, text := range []string{"SELECT * FROM t", "SELECT * FROM t WHERE id = 1", "SELECT a.id FROM t a JOIN t b USING (id)", "EXPLAIN SELECT * FROM t", "SHOW TABLES"} {
			asked = 0
			if err := reader.Query(context.Background(), text, discard{}); !errors.Is(err, stale) && !strings.Contains(fmt.Sprint(err), stale.Error()) || asked != 1 {
				t.Errorf("%s asked %d times of a member that lags: %v", text, asked, err)
			}
			asked = 0
			if got := r.Prepared(reader, text); !strings.Contains(got, stale.Error()) || asked != 1 {
				t.Errorf("%s, prepared, asked %d times of a member that lags: %s", text, asked, got)
			}
		}
		r.ReadPoint = known
		asked = 0
		if err := reader.Use("test"); err != nil || asked != 1 {
			t.Error(err, asked)
		}
		asked = 0
		if got := r.Prepared(reader, "SHOW COLUMNS FROM t"); !strings.Contains(got, "id") || asked != 1 {
			t.Error(got, asked)
		}
		asked = 0
		if got := r.Prepared(reader, "SELECT * FROM t"); asked != 2 { // its columns, its rows
			t.Error(got, asked)
		}
	})
}

// TestReadPointRefused: a read that nobody can say the point of may be tried again, in the
// same transaction; while it waits, the process list says so.
func TestReadPointRefused(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, sim *simenv.Sim) {
		s, watch := r.Open(session.ConnectionInfo{Schema: "test"}), r.Open(session.ConnectionInfo{Schema: "test"})
		r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY)")
		r.Exec(s, "SET transaction_isolation = 'READ-COMMITTED'") // each read asks
		r.Exec(s, "BEGIN")
		r.Exec(s, "INSERT INTO t VALUES (1)")
		for _, text := range []string{"SELECT * FROM t", "SELECT * FROM t WHERE id = 1", "SELECT * FROM t FOR UPDATE"} {
			r.ReadPoint = func(session.ReadOptions) error {
				env.Sleep(sim, time.Second)
				return fmt.Errorf("asking: %w", sessiontest.ErrNoQuorum)
			}
			c := background(r, s, text)
			for _, p := range r.Manager.Processes() {
				if p.Info == text && p.State != "Waiting for read point" {
					t.Errorf("%s: %q", text, p.State)
				}
			}
			if got := c.await(r); !strings.Contains(got, "error 1205 (HY000): No majority") {
				t.Errorf("%s: %s", text, got)
			}
			r.ReadPoint = nil
			for _, p := range r.Manager.Processes() {
				if p.State != "" {
					t.Errorf("%q", p.State)
				}
			}
			if got := r.Text(s, text); got != "id\n1\n" {
				t.Errorf("%s: %s", text, got)
			}
		}
		r.Exec(s, "COMMIT")
		if got := r.Text(watch, "SELECT * FROM t"); got != "id\n1\n" {
			t.Error(got)
		}
	})
}

// TestReplacedEngine: a transaction that ends with the node's data is not taken for one that
// goes on.
func TestReplacedEngine(t *testing.T) {
	for _, next := range []string{"USE test", "SHOW TABLES", "SELECT * FROM t", "COMMIT", "SAVEPOINT a", "CREATE TABLE u (id INT)"} {
		simulated(t, func(r *sessiontest.Rig, _ *simenv.Sim) {
			s := r.Open(session.ConnectionInfo{Schema: "test"})
			r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY)")
			r.Exec(s, "BEGIN")
			r.Exec(s, "INSERT INTO t VALUES (1)")
			r.Replace("test")
			if got := r.Text(s, next); !strings.Contains(got, "error 1053 (08S01)") && !strings.Contains(got, "error 3101 (40000)") {
				t.Errorf("%s: %s", next, got)
			}
			if s.Status()&session.StatusInTransaction != 0 {
				t.Errorf("%s: the transaction goes on", next)
			}
			r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY)")
			r.Exec(s, "INSERT INTO t VALUES (2)")
		})
	}
}

// TestStates: the process list says what a statement waits for.
func TestStates(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, sim *simenv.Sim) {
		r.CreateSchema("other")
		var list []*session.Session
		for range 6 {
			list = append(list, r.Open(session.ConnectionInfo{Schema: "test"}))
		}
		watch := list[5]
		r.Exec(watch, "CREATE TABLE t (id INT PRIMARY KEY, n INT)")
		r.Exec(watch, "CREATE TABLE u (id INT PRIMARY KEY, n INT)")
		r.Exec(watch, "INSERT INTO t VALUES (1, 1), (2, 2)")
		r.Exec(watch, "INSERT INTO u VALUES (1, 1)")
		r.Exec(list[0], "BEGIN")
		r.Exec(list[0], "UPDATE t SET n = 2 WHERE id = 1")
		committed := false
		r.Log.Doubt = func() error {
			r.Log.Doubt = nil
			for !committed {
				env.Sleep(sim, time.Millisecond)
			}
			return nil
		}
		texts := []string{"UPDATE t SET n = 3 WHERE id = 1", "ALTER TABLE t ADD COLUMN a INT", "UPDATE u SET n = 2", "SELECT n FROM u FOR UPDATE"}
		var tasks []*task
		for i, text := range texts {
			tasks = append(tasks, background(r, list[i+1], text))
		}
		want := map[string]string{texts[0]: "Waiting for row lock", texts[1]: "Waiting for table metadata lock", texts[2]: "waiting for handler commit",
			texts[3]: "waiting for handler commit"}
		for _, p := range r.Manager.Processes() {
			if p.State != want[p.Info] {
				t.Errorf("%s: %q", p.Info, p.State)
			}
		}
		committed = true
		r.Exec(list[0], "COMMIT")
		for i, c := range tasks {
			if got := c.await(r); strings.Contains(got, "error") || got == "blocked" {
				t.Errorf("%s: %s", texts[i], got)
			}
		}
		long := "SELECT ID, LENGTH(INFO) > 100 FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID() /* " + strings.Repeat("x", 200) + " */"
		if got := r.Text(watch, long); !strings.Contains(got, "| 1\n") {
			t.Error(got)
		}
		// What SHOW PROCESSLIST shows of a statement is its first 100 characters.
		slow := background(r, list[0], "SELECT SLEEP(1) /* "+strings.Repeat("ä", 200)+" */")
		if got := r.Text(watch, "SHOW PROCESSLIST"); !strings.Contains(got, "User sleep | SELECT SLEEP(1) /* "+strings.Repeat("ä", 81)+"\n") {
			t.Error(got)
		}
		slow.await(r)
	})
}

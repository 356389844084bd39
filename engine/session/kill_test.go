package session_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// clock calls a hook when a session asks for the time, as it does at a statement's start.
type clock struct {
	env.Env
	hook func()
}

func (c *clock) Now() time.Time {
	if fn := c.hook; fn != nil {
		c.hook = nil
		fn()
	}
	return c.Env.Now()
}

// TestKillAtStart: a KILL QUERY that comes before the statement has begun its work ends it.
func TestKillAtStart(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		c := &clock{Env: sim}
		r := sessiontest.Start(t, sessiontest.Options{Env: c})
		r.CreateSchema("test")
		s, other := r.Open(session.ConnectionInfo{Schema: "test"}), r.Open(session.ConnectionInfo{Schema: "test"})
		r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, n INT)")
		r.Exec(s, "INSERT INTO t VALUES (1, 1)")
		r.Exec(s, "SET lock_wait_timeout = 5, innodb_lock_wait_timeout = 5")
		r.Exec(other, "BEGIN")
		r.Exec(other, "UPDATE t SET n = 2")
		for _, begin := range []string{"SET autocommit = 1", "BEGIN"} {
			for _, text := range []string{"UPDATE t SET n = 3 WHERE id = 1", "DELETE FROM t", "ALTER TABLE t ADD COLUMN a INT"} {
				r.Exec(s, begin)
				c.hook = s.Interrupt
				if got := r.Text(s, text); !strings.Contains(got, "error 1317") {
					t.Errorf("%s: %s", text, got)
				}
				r.Exec(s, "ROLLBACK")
			}
		}
		r.Exec(other, "ROLLBACK")
		r.Exec(s, "UPDATE t SET n = 3 WHERE id = 1")
		if !t.Failed() {
			r.Close()
		}
	})
}

// TestKillAtEnd: a KILL QUERY that comes when its statement ends never ends the one after it.
func TestKillAtEnd(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	s := r.Open(session.ConnectionInfo{})
	ask, killed := make(chan struct{}), make(chan struct{})
	go func() {
		for range ask {
			s.Interrupt()
			killed <- struct{}{}
		}
		close(killed)
	}()
	for i := range 20000 {
		ask <- struct{}{}
		_ = s.Query(context.Background(), "DO 1", sessiontest.Discard) // killed, or not
		<-killed
		if err := s.Query(context.Background(), "SELECT SLEEP(0)", sessiontest.Discard); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if got := r.Text(s, "SELECT SLEEP(0) AS killed"); got != "killed\n0\n" {
			t.Fatalf("round %d: %s", i, got)
		}
	}
	close(ask)
	<-killed
}

// TestKillWhileBound: rows of INSERT whose constants take long to fold are left when the statement is killed, and what
// is folded of them is not many times as long as the statement.
func TestKillWhileBound(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	s, other := r.Open(session.ConnectionInfo{MultiStatements: true}), r.Open(session.ConnectionInfo{})
	r.Exec(s, "CREATE DATABASE d; USE d; CREATE TABLE t (a LONGTEXT)")
	slow := ", (REGEXP_LIKE('" + strings.Repeat("a", 500) + "', '(a|b|ab)*(a|ba){100}c'))"
	said := make(chan string, 1)
	go func() { said <- r.Text(s, "INSERT INTO t VALUES (1)"+strings.Repeat(slow, 20_000)) }()
	time.Sleep(2 * time.Second) // it is being bound now
	text := ""
	for until := time.Now().Add(15 * time.Second); text == "" && time.Now().Before(until); {
		r.Exec(other, fmt.Sprintf("KILL QUERY %d", s.ID())) // which does nothing before the statement has begun
		select {
		case text = <-said:
		case <-time.After(100 * time.Millisecond):
		}
	}
	if !strings.Contains(text, "error 1317") {
		t.Fatalf("%q", text)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	many := strings.Repeat("(REPEAT('a', 1000000)), ", 500)
	got := r.Text(s, "INSERT INTO t VALUES "+many+"(1, 2)")
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; !strings.Contains(got, "error 1136") || took > 64<<20 {
		t.Errorf("%s, %d bytes", got, took)
	}
}

// TestChangeUserBesideKill: who is killed, and who is told that the node does not lead any more, may be becoming
// another account's at that moment.
func TestChangeUserBesideKill(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	killer := r.Open(session.ConnectionInfo{User: "u1", Host: "h", AccountUser: "u1", AccountHost: "%", ReadOnly: true}) // which StepDown spares
	other := r.Open(session.ConnectionInfo{User: "u0", Host: "h", AccountUser: "u0", AccountHost: "%", Disconnect: func() {}})
	done, stepped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stepped)
		for {
			select {
			case <-done:
				return
			default:
			}
			r.Manager.StepDown()
			if err := r.Manager.Kill(other.ID(), true); err != nil {
				t.Error(err)
			}
		}
	}()
	go func() {
		defer close(done)
		for i := range 200 {
			name := fmt.Sprintf("u%d", i%2)
			if err := other.ChangeUser(session.ConnectionInfo{User: name, Host: "h", AccountUser: name, AccountHost: "%"}); err != nil {
				t.Error(err)
			}
			other.SetMultiStatements(i%2 == 0)
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		r.Exec(killer, fmt.Sprintf("KILL QUERY %d", other.ID()))
	}
	<-stepped
}

// TestAccountsInTurn: statements about accounts that come at the same time run one after the
// other; none waits for longer than the others take.
func TestAccountsInTurn(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, sim *simenv.Sim) {
		if _, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{}); err != nil {
			t.Fatal(err)
		}
		began := sim.Monotonic()
		var tasks []*task
		for i := range 8 {
			s := r.Open(session.ConnectionInfo{User: "root", Host: "localhost", AccountUser: "root", AccountHost: "%"})
			c := new(task)
			tasks = append(tasks, c)
			sim.Go("client", func() {
				c.text = r.Text(s, fmt.Sprintf("CREATE USER u%d", i)) + r.Text(s, fmt.Sprintf("GRANT SELECT ON *.* TO u%d", i))
				c.done = true
			})
		}
		for i, c := range tasks {
			if got := c.await(r); got != "ok\nok\n" {
				t.Errorf("%d: %s", i, got)
			}
		}
		if took := sim.Monotonic() - began; took > 10*time.Second { // the lock timeout is 50 s
			t.Errorf("they took %v", took)
		}
	})
}

// TestDefinitionWaitOnce: a text that waits in vain for a table's definition waits once, also where it would be compiled
// again with its literals in place, and KILL ends the wait for good.
func TestDefinitionWaitOnce(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, sim *simenv.Sim) {
		s, reader, alter := r.Open(session.ConnectionInfo{Schema: "test"}), r.Open(session.ConnectionInfo{Schema: "test"}), r.Open(session.ConnectionInfo{Schema: "test"})
		r.Exec(reader, "CREATE TABLE t (id INT PRIMARY KEY, c VARCHAR(10))")
		r.Exec(reader, "BEGIN")
		r.Exec(reader, "SELECT * FROM t")
		waiter := background(r, alter, "ALTER TABLE t ADD COLUMN a INT") // who comes later waits behind it
		r.Exec(s, "SET lock_wait_timeout = 2")
		for _, text := range []string{"SELECT * FROM t WHERE id = 1", "UPDATE t SET c = 'x' WHERE id = 1", "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')"} {
			began := sim.Monotonic()
			if got := r.Text(s, text); !strings.Contains(got, "error 1205") || sim.Monotonic()-began > 3*time.Second {
				t.Errorf("%s, after %v: %s", text, sim.Monotonic()-began, got)
			}
			r.Exec(s, "BEGIN")
			began = sim.Monotonic()
			if got := r.Text(s, text); !strings.Contains(got, "error 1205") || sim.Monotonic()-began > 3*time.Second {
				t.Errorf("%s in a transaction, after %v: %s", text, sim.Monotonic()-began, got)
			}
			r.Exec(s, "ROLLBACK")
			c := background(r, s, text)
			began = sim.Monotonic()
			s.Interrupt()
			if got := c.await(r); !strings.Contains(got, "error 1317") || sim.Monotonic()-began > time.Second {
				t.Errorf("%s killed, after %v: %s", text, sim.Monotonic()-began, got)
			}
		}
		r.Exec(reader, "COMMIT")
		waiter.await(r)
	})
}

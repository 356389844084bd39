package session_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// doubtful is a transaction that has moved 10 from account 1 to account 2 and is in doubt until end.
type doubtful struct {
	writer *task
	ended  bool
	lost   bool
}

// startDoubtful makes the accounts, with 100 each, and the transaction.
func startDoubtful(r *sessiontest.Rig, s *session.Session) *doubtful {
	r.Exec(s, "CREATE TABLE account (id INT PRIMARY KEY, v INT)")
	r.Exec(s, "CREATE TABLE header (id INT PRIMARY KEY, n INT)")
	r.Exec(s, "CREATE TABLE line (id INT PRIMARY KEY)")
	r.Exec(s, "INSERT INTO account VALUES (1, 100), (2, 100)")
	r.Exec(s, "INSERT INTO header VALUES (1, 0)")
	d := new(doubtful)
	r.Log.Doubt = func() error {
		r.Log.Doubt = nil
		for !d.ended {
			env.Sleep(r.Env, time.Millisecond)
		}
		if d.lost { // those that have built on it are rolled back first
			if err := r.Txns.Suspend(sessiontest.ErrNotLeader); err != nil {
				return err
			}
			r.Txns.Resume()
			return errors.New("the entry is lost")
		}
		return nil
	}
	other := r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(other, "BEGIN")
	r.Exec(other, "UPDATE account SET v = v - 10 WHERE id = 1")
	r.Exec(other, "UPDATE account SET v = v + 10 WHERE id = 2")
	r.Exec(other, "INSERT INTO line VALUES (1), (2)")
	r.Exec(other, "UPDATE header SET n = 2")
	d.writer = background(r, other, "COMMIT")
	return d
}

func (d *doubtful) end(r *sessiontest.Rig) {
	d.ended = true
	d.writer.await(r)
}

// A plain read of a transaction shows what its own changes are built on, and waits for that; one
// that has changed nothing reads on.
func TestReadBesideOwnChange(t *testing.T) {
	for _, c := range []struct{ level, lost, want string }{
		{"REPEATABLE READ", "", "201"}, {"READ COMMITTED", "", "201"}, {"READ COMMITTED", "lost", "error 1053"}, {"REPEATABLE READ", "lost", "error 1053"},
	} {
		for _, text := range []string{"SELECT SUM(v) FROM account", "SELECT v + (SELECT v FROM account WHERE id = 2) FROM account WHERE id = 1",
			"SELECT a.v + b.v FROM account a JOIN account b WHERE a.id = 1 AND b.id = 2"} {
			simulated(t, func(r *sessiontest.Rig, _ *simenv.Sim) {
				s := r.Open(session.ConnectionInfo{Schema: "test"})
				d := startDoubtful(r, s)
				r.Exec(s, "SET transaction_isolation = '"+strings.ReplaceAll(c.level, " ", "-")+"'")
				if got := r.Text(s, text); !strings.Contains(got, "200") {
					t.Errorf("%s without a change: %s", text, got)
				}
				r.Exec(s, "BEGIN")
				r.Exec(s, "UPDATE account SET v = v + 1 WHERE id = 1")
				read := background(r, s, text)
				if read.done {
					t.Errorf("%s, %s: answered in between: %s", c.level, text, read.text)
				}
				d.lost = c.lost != ""
				d.end(r)
				if got := read.await(r); !strings.Contains(got, c.want) {
					t.Errorf("%s, %s, %s: %s", c.level, text, c.lost, got)
				}
				if in := s.Status()&session.StatusInTransaction != 0; in == d.lost {
					t.Errorf("%s, %s, %s: in a transaction: %v", c.level, text, c.lost, in)
				}
			})
		}
	}
}

// What is read within one statement that changes rows goes together, too.
func TestReadWithinOwnChange(t *testing.T) {
	for _, level := range []string{"REPEATABLE-READ", "READ-COMMITTED"} {
		simulated(t, func(r *sessiontest.Rig, _ *simenv.Sim) {
			s := r.Open(session.ConnectionInfo{Schema: "test"})
			d := startDoubtful(r, s)
			r.Exec(s, "SET transaction_isolation = '"+level+"'")
			update := background(r, s, "UPDATE header SET n = n * 10 + (SELECT COUNT(*) FROM line WHERE line.id > header.id - 1)")
			d.end(r)
			update.await(r)
			if got := r.Text(s, "SELECT n FROM header"); got != "n\n22\n" {
				t.Errorf("%s: %s: %s", level, update.text, got)
			}
		})
	}
}

// A read that waits for what the transaction has built on is ended by KILL and by its time limit; the
// transaction goes on, and may read again.
func TestReadBesideOwnChangeEnded(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, sim *simenv.Sim) {
		s := r.Open(session.ConnectionInfo{Schema: "test"})
		d := startDoubtful(r, s)
		r.Exec(s, "BEGIN")
		r.Exec(s, "UPDATE account SET v = v + 1 WHERE id = 1")
		killed := background(r, s, "SELECT SUM(v) FROM account")
		s.Interrupt()
		env.Sleep(sim, 100*time.Millisecond)
		if !killed.done || !strings.Contains(killed.text, "error 1317") {
			t.Errorf("killed: %v %s", killed.done, killed.text)
		}
		r.Exec(s, "SET max_execution_time = 100")
		limited := background(r, s, "SELECT SUM(v) FROM account")
		env.Sleep(sim, 200*time.Millisecond)
		if !limited.done || !strings.Contains(limited.text, "error 3024") {
			t.Errorf("with a time limit: %v %s", limited.done, limited.text)
		}
		r.Exec(s, "SET max_execution_time = 0")
		d.end(r)
		if got := r.Text(s, "SELECT SUM(v) FROM account"); got != "SUM(v)\n201\n" {
			t.Error(got)
		}
		r.Exec(s, "COMMIT")
	})
}

package session_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestAddForeignKeyBesideDelete: a parent that another session deletes while keys are added
// does not count, although the check of the key before has read when it was there.
func TestAddForeignKeyBesideDelete(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		r := sessiontest.Start(t, sessiontest.Options{Env: sim, Early: true})
		r.CreateSchema("test")
		in := session.ConnectionInfo{Schema: "test"}
		s, deleter := r.Open(in), r.Open(in)
		for _, sql := range []string{"CREATE TABLE p (id INT PRIMARY KEY)", "CREATE TABLE q (id INT PRIMARY KEY)",
			"CREATE TABLE c (p INT, q INT, KEY (p), KEY (q))", "INSERT INTO p VALUES (1)", "INSERT INTO q VALUES (1)", "INSERT INTO c VALUES (1, 1)"} {
			r.Exec(s, sql)
		}
		r.Exec(deleter, "BEGIN")
		r.Exec(deleter, "DELETE FROM q")
		g := env.NewGroup(sim)
		var err error
		g.Go("add", func() {
			err = s.Query(context.Background(), "ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p (id), ADD FOREIGN KEY (q) REFERENCES q (id)", sessiontest.Discard)
		})
		env.Sleep(sim, 1e9)
		r.Exec(deleter, "COMMIT")
		g.Wait()
		if err == nil || !strings.Contains(err.Error(), "1452") {
			t.Errorf("a key without its parent: %v", err)
		}
		r.Close()
	})
}

// TestNewChildBesideDelete: a table that comes to refer to another one while a statement deletes
// rows of that keeps those to which it refers.
func TestNewChildBesideDelete(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		r := sessiontest.Start(t, sessiontest.Options{Env: sim})
		r.CreateSchema("test")
		in := session.ConnectionInfo{Schema: "test"}
		deleter, holder, s := r.Open(in), r.Open(in), r.Open(in)
		r.Exec(s, "CREATE TABLE p (id INT PRIMARY KEY)")
		for from := 0; from < 6000; from += 1000 {
			var rows []string
			for id := from; id < from+1000; id++ {
				rows = append(rows, fmt.Sprintf("(%d)", id))
			}
			r.Exec(s, "INSERT INTO p VALUES "+strings.Join(rows, ","))
		}
		r.Exec(holder, "BEGIN")
		r.Exec(holder, "SELECT * FROM p WHERE id = 4000 FOR UPDATE")
		g := env.NewGroup(sim)
		var err error
		g.Go("delete", func() { err = deleter.Query(context.Background(), "DELETE FROM p", sessiontest.Discard) })
		g.Go("child", func() {
			env.Sleep(sim, 1e9)
			r.Exec(s, "CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id))")
			r.Exec(s, "INSERT INTO c VALUES (5500)")
			r.Exec(holder, "COMMIT")
		})
		g.Wait()
		if err == nil || !strings.Contains(err.Error(), "1451") {
			t.Errorf("deleting a row to which another refers: %v", err)
		}
		r.Close()
	})
}

package session_test

import (
	"context"
	"errors"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// TestAwayIsNoDenial: whichever look at the node finds it away, a client is told that, and never that its
// account may not do what it asks for.
func TestAwayIsNoDenial(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	if _, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{User: "root", Host: "%"}); err != nil {
		t.Fatal(err)
	}
	s := r.Open(session.ConnectionInfo{User: "root", Host: "localhost", AccountUser: "root", AccountHost: "%"})
	for _, sql := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)", "CREATE VIEW d.v AS SELECT * FROM d.t"} {
		r.Exec(s, sql)
	}
	told := 0
	for _, sql := range []string{"SELECT * FROM d.t", "SELECT * FROM d.v", "INSERT INTO d.t VALUES (1) ON DUPLICATE KEY UPDATE a = 1",
		"UPDATE d.t SET a = 1 WHERE a = 1", "SHOW COLUMNS FROM d.t", "SHOW CREATE TABLE d.t", "SHOW GRANTS", "SHOW TABLES FROM d", "USE d",
		"CREATE TABLE IF NOT EXISTS d.u (a INT)", "SET GLOBAL max_connections = 100", "LOCK TABLES d.t WRITE", "UNLOCK TABLES", "KILL 4711"} {
		for at := range 12 {
			looks := 0
			r.Away = func() (err error) {
				if looks == at {
					err = sessiontest.ErrAway
				}
				looks++
				return err
			}
			err := s.Query(context.Background(), sql, discard{})
			r.Away = nil
			var e *sqlerr.Error
			if looks <= at || err == nil || !errors.As(err, &e) {
				continue
			}
			told++
			switch e.Number {
			case 1044, 1045, 1142, 1143, 1227, 1356:
				t.Errorf("%s, away at look %d: %v", sql, at, err)
			}
		}
	}
	if told == 0 {
		t.Error("no statement failed")
	}
}

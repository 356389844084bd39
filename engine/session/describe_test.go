package session_test

import (
	"context"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestDescribe: a statement that is prepared again, here or by another session, has the
// columns that its tables have by then.
func TestDescribe(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	r.CreateSchema("other")
	a, b := r.Open(session.ConnectionInfo{Schema: "test"}), r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(a, "CREATE TABLE t (a INT)")
	r.Exec(a, "CREATE TABLE other.t (x INT, y INT, z INT)")
	columns := func(s *session.Session, want int) {
		t.Helper()
		p, err := s.Prepare(context.Background(), "SELECT * FROM t WHERE 1 = ?")
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Columns) != want || p.Params != 1 {
			t.Errorf("%d columns, %d parameters; want %d and 1", len(p.Columns), p.Params, want)
		}
		p.Close()
	}
	columns(a, 1)
	columns(a, 1)
	columns(b, 1)
	r.Exec(a, "ALTER TABLE t ADD COLUMN b INT")
	columns(b, 2)
	columns(a, 2)
	if err := b.Use("other"); err != nil {
		t.Fatal(err)
	}
	columns(b, 3)
	r.Exec(a, "DROP TABLE t")
	if _, err := a.Prepare(context.Background(), "SELECT * FROM t WHERE 1 = ?"); err == nil {
		t.Error("a table that is not there was prepared")
	}
}

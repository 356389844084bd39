package session_test

import (
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestSlowLog: statements that take long_query_time are counted, and told of if slow_query_log is
// on, without values.
func TestSlowLog(t *testing.T) {
	var told []session.SlowStatement
	r := sessiontest.New(t, sessiontest.Options{Slow: func(s session.SlowStatement) { told = append(told, s) }})
	s := r.Open(session.ConnectionInfo{User: "ann", Host: "10.0.0.7"})
	count := func(want string) {
		t.Helper()
		if got := r.Text(s, "SHOW GLOBAL STATUS LIKE 'Slow_queries'"); !strings.Contains(got, "Slow_queries | "+want+"\n") {
			t.Errorf("%q, want %s", got, want)
		}
	}
	r.Exec(s, "CREATE DATABASE d")
	r.Exec(s, "USE d")
	r.Exec(s, "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20))")
	r.Exec(s, "INSERT INTO t VALUES (1, 'secret'), (2, 'secret'), (3, 'other')")
	count("0")
	r.Exec(s, "SET long_query_time = 0") // counts itself: it was in force when the statement ended
	r.Text(s, "SELECT a FROM t WHERE b = 'secret'")
	count("2")
	if len(told) != 0 {
		t.Errorf("told of while the log is off: %v", told)
	}
	r.Exec(s, "SET GLOBAL slow_query_log = ON")
	told = nil
	r.Text(s, "SELECT a FROM t WHERE b = 'secret'")
	r.Exec(s, "UPDATE t SET b = 'hidden' WHERE a <= 2")
	r.Text(s, "INSERT INTO t VALUES (1, 'secret')")
	r.Text(s, "SELEC 'secret'")
	if len(told) != 4 {
		t.Fatalf("told of %+v", told)
	}
	for i, want := range []session.SlowStatement{
		{Text: "SELECT `a` FROM `t` WHERE `b` = ?", RowsSent: 2, RowsRead: 3},
		{Text: "UPDATE `t` SET `b` = ? WHERE `a` <= ?", RowsRead: 2, RowsAffected: 2},
		{Text: "INSERT INTO `t` VALUES (...)", Error: 1062},
	} {
		got := told[i]
		if got.Took <= 0 || got.Session != s.ID() {
			t.Errorf("%+v", got)
		}
		want.Session, want.Took, want.User, want.Host, want.Schema = got.Session, got.Took, "ann", "10.0.0.7", "d"
		if got != want {
			t.Errorf("told of %+v, want %+v", got, want)
		}
	}
	for _, x := range told {
		if strings.Contains(x.Text, "secret") || strings.Contains(x.Text, "hidden") {
			t.Errorf("a value is told: %q", x.Text)
		}
	}
	r.Exec(s, "SET min_examined_row_limit = 3")
	told = nil
	r.Text(s, "SELECT b FROM t WHERE a = 1")
	r.Text(s, "SELECT b FROM t")
	if len(told) != 1 || told[0].RowsRead != 3 {
		t.Errorf("with min_examined_row_limit: %+v", told)
	}
	r.Exec(s, "SET long_query_time = 100")
	told = nil
	r.Text(s, "SELECT b FROM t")
	if len(told) != 0 {
		t.Errorf("%+v", told)
	}
}

package session_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestLogQueriesNotUsingIndexes: with log_queries_not_using_indexes the slow log tells of statements that read all of a
// table, how fast they ever were, and does not count them as slow.
func TestLogQueriesNotUsingIndexes(t *testing.T) {
	var told []session.SlowStatement
	r := sessiontest.New(t, sessiontest.Options{Slow: func(s session.SlowStatement) { told = append(told, s) }})
	s := r.Open(session.ConnectionInfo{User: "ann"})
	r.Exec(s, "CREATE DATABASE d")
	r.Exec(s, "USE d")
	r.Exec(s, "CREATE TABLE t (a INT PRIMARY KEY, b INT, KEY (b))")
	r.Exec(s, "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
	r.Exec(s, "SET GLOBAL slow_query_log = ON")
	statements := []string{"SELECT * FROM t", "SELECT a FROM t WHERE a + 1 = 2", "SELECT @n := a FROM t", "SELECT (SELECT MAX(x.a + y.b) FROM t x, t y)", "UPDATE t SET b = 1 WHERE a + 1 = 2",
		"SELECT * FROM t WHERE a = 1", "SELECT * FROM t WHERE b > 1 AND b < 3", "UPDATE t SET b = 3 WHERE a = 3", "INSERT INTO t VALUES (4, 4)", "SELECT 1", "SET @x = 1"}
	const scans = 5 // of them
	for _, q := range statements {
		r.Text(s, q)
	}
	if len(told) != 0 {
		t.Errorf("told of while it is off: %+v", told)
	}
	r.Exec(s, "SET GLOBAL log_queries_not_using_indexes = ON")
	told = nil
	for _, q := range statements {
		r.Text(s, q)
		r.Text(s, q) // from the plan cache
	}
	if len(told) != 2*scans {
		t.Errorf("told of %d: %+v", len(told), told)
	}
	for _, x := range told {
		if !x.Scans {
			t.Errorf("%+v", x)
		}
	}
	if got := r.Text(s, "SHOW GLOBAL STATUS LIKE 'Slow_queries'"); !strings.Contains(got, "Slow_queries | 0\n") {
		t.Error(got)
	}
	r.Exec(s, "SET min_examined_row_limit = 100")
	told = nil
	if r.Text(s, "SELECT * FROM t"); len(told) != 0 {
		t.Errorf("below min_examined_row_limit: %+v", told)
	}
}

// TestPrintAllDeadlocks: with innodb_print_all_deadlocks each deadlock is told of.
func TestPrintAllDeadlocks(t *testing.T) {
	var mu sync.Mutex
	var told []session.Deadlock
	r := sessiontest.New(t, sessiontest.Options{Deadlock: func(d session.Deadlock) {
		mu.Lock()
		told = append(told, d)
		mu.Unlock()
	}})
	a, b := r.Open(session.ConnectionInfo{User: "ann"}), r.Open(session.ConnectionInfo{User: "ann"})
	r.Exec(a, "CREATE DATABASE d")
	r.Exec(a, "CREATE TABLE d.t (a INT PRIMARY KEY, b INT)")
	r.Exec(a, "INSERT INTO d.t VALUES (1, 1), (2, 2)")
	deadlock := func() {
		t.Helper()
		r.Exec(a, "BEGIN")
		r.Exec(b, "BEGIN")
		r.Exec(a, "UPDATE d.t SET b = 3 WHERE a = 1")
		r.Exec(b, "UPDATE d.t SET b = 3 WHERE a = 2")
		answer := make(chan string)
		go func() { answer <- r.Text(a, "UPDATE d.t SET b = 3 WHERE a = 2") }()
		both := r.Text(b, "UPDATE d.t SET b = 3 WHERE a = 1")
		r.Exec(b, "ROLLBACK")
		both += <-answer
		r.Exec(a, "ROLLBACK")
		if strings.Count(both, "error 1213") != 1 {
			t.Fatal(both)
		}
	}
	deadlock()
	if len(told) != 0 {
		t.Errorf("told of while it is off: %+v", told)
	}
	r.Exec(a, "SET GLOBAL innodb_print_all_deadlocks = ON")
	deadlock()
	if len(told) != 1 || told[0].User != "ann" || !strings.HasPrefix(told[0].Text, "UPDATE `d`") || !strings.Contains(told[0].Cycle, "ROLL BACK TRANSACTION") {
		t.Errorf("told of %+v", told)
	}
}

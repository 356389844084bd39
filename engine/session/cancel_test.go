package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestStopWithinStatement: a node that stops leaves what a statement has done to its next start. The client is told that the transaction
// is over, not what was wrong with the statement, and the session is of no more use.
func TestStopWithinStatement(t *testing.T) {
	for _, begin := range []string{"BEGIN", "SET autocommit = 1"} {
		for how, text := range map[string]string{
			"it fails":       "INSERT INTO t SELECT IF(n < 4000, n, 1) FROM (WITH RECURSIVE n (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM n WHERE n < 4000) SELECT n FROM n) d",
			"to a savepoint": "ROLLBACK TO SAVEPOINT s",
		} {
			if how == "to a savepoint" && begin != "BEGIN" {
				continue
			}
			t.Run(fmt.Sprint(begin, ", ", how), func(t *testing.T) {
				r := sessiontest.Start(t, sessiontest.Options{RollbackLater: 100})
				s := r.Open(session.ConnectionInfo{MultiStatements: true})
				r.Exec(s, "CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1); SET cte_max_recursion_depth = 1000000")
				r.Exec(s, begin)
				if how == "to a savepoint" {
					r.Exec(s, "SAVEPOINT s")
					r.Exec(s, "INSERT INTO t SELECT n FROM (WITH RECURSIVE n (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM n WHERE n < 4000) SELECT n FROM n) d")
				}
				r.Txns.Cancel()
				if got := r.Text(s, text); !strings.Contains(got, "error 1053 (08S01)") {
					t.Errorf("the client is told %s", got)
				}
				got := r.Text(s, "COMMIT")
				if !s.Gone() && !strings.Contains(got, "error") {
					t.Errorf("COMMIT after it: %s", got)
				}
				other := r.Open(session.ConnectionInfo{Schema: "d"})
				if got := r.Text(other, "SELECT COUNT(*) AS n FROM t"); got != "n\n1\n" {
					t.Errorf("rows are committed: %s", got)
				}
				r.Leaves = true
				r.Restart()
				r.Leaves = false
				r.Engine.AwaitRollback(func() bool { return false })
				s = r.Open(session.ConnectionInfo{Schema: "d"})
				if got := r.Text(s, "SELECT COUNT(*) AS n FROM t FOR UPDATE"); got != "n\n1\n" {
					t.Errorf("rows are left: %s", got)
				}
				r.Close()
			})
		}
	}
}

package session_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/txn"
)

// rebuildRig is a node with a table t of some rows, and a way to do something in the middle
// of a rebuild: when the copy of its rows is about to be committed.
type rebuildRig struct {
	*sessiontest.Rig
	s, other *session.Session
}

const rebuiltRows = 2000

func newRebuildRig(t *testing.T) *rebuildRig {
	r := &rebuildRig{Rig: sessiontest.New(t, sessiontest.Options{})}
	r.CreateSchema("test")
	r.s = r.Open(session.ConnectionInfo{Schema: "test"})
	r.other = r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(r.s, "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(60))")
	var rows []string
	for i := range rebuiltRows {
		rows = append(rows, fmt.Sprintf("(%d, 'some text of the row with number %d')", i%100, i))
	}
	r.Exec(r.s, "INSERT INTO t (a, b) VALUES "+strings.Join(rows, ","))
	return r
}

// during lets fn run in the middle of the next rebuild.
func (r *rebuildRig) during(fn func()) {
	var done atomic.Bool
	r.Log.Refuse = func(t *txn.Txn) error {
		if !t.Schema && t.Size() > 16<<10 && done.CompareAndSwap(false, true) {
			fn()
		}
		return nil
	}
}

// beside lets another session run a text in the middle of the next rebuild, and others go on
// meanwhile, which it must not keep from anything; whether it waits already or not. The answer comes
// when the rebuild is over.
func (r *rebuildRig) beside(text string, others func()) <-chan string {
	third := r.Open(session.ConnectionInfo{Schema: "test"})
	answer := make(chan string, 1)
	r.during(func() {
		go func() { answer <- r.Text(third, text) }()
		for range 20 {
			others()
			time.Sleep(time.Millisecond)
		}
	})
	return answer
}

// clean checks that nothing is left of a rebuild that failed, and that the table is in use.
func (r *rebuildRig) clean(t *testing.T, rows int) {
	t.Helper()
	r.Log.Refuse = nil
	if got := r.Text(r.other, "SHOW TABLES"); got != "Tables_in_test\nt\n" {
		t.Errorf("tables: %s", got)
	}
	if found, err := r.Manager.CleanUp(t.Context()); found != 0 || err != nil {
		t.Errorf("%d tables are left, %v", found, err)
	}
	if got := r.Text(r.other, "SELECT COUNT(*) FROM t"); got != fmt.Sprintf("COUNT(*)\n%d\n", rows) {
		t.Errorf("rows: %s, want %d", got, rows)
	}
	for _, text := range []string{"UPDATE t SET a = a + 1 WHERE id = 7", "ALTER TABLE t MODIFY a BIGINT", "ALTER TABLE t MODIFY a INT", "CHECK TABLE t"} {
		if got := r.Text(r.other, text); strings.HasPrefix(got, "error") {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func (r *rebuildRig) want(t *testing.T, s *session.Session, text, answer string) {
	t.Helper()
	if got := r.Text(s, text); !strings.HasPrefix(got, answer) {
		t.Errorf("%s: %s, want %s", text, got, answer)
	}
}

func TestRebuildFails(t *testing.T) {
	for _, c := range []struct {
		name, text, answer string
		during             []string
		rows               int
	}{
		{"a row that does not fit comes in", "ALTER TABLE t MODIFY a TINYINT", "error 1264", []string{"INSERT INTO t (a) VALUES (1000)"}, rebuiltRows + 1},
		{"a row no longer fits", "ALTER TABLE t MODIFY a TINYINT", "error 1264", []string{"UPDATE t SET a = 1000 WHERE id = 5"}, rebuiltRows},
		{"NULL", "ALTER TABLE t MODIFY a INT NOT NULL", "error 1138", []string{"UPDATE t SET a = NULL WHERE id = 5"}, rebuiltRows},
		{"a duplicate", "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id), ADD UNIQUE KEY (b)", "error 1062", []string{"UPDATE t SET b = 'x' WHERE id IN (5, 6)"}, rebuiltRows},
		{"too many changes", "ALTER TABLE t MODIFY a BIGINT", "error 1799", []string{"UPDATE t SET a = a + 1"}, rebuiltRows},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRebuildRig(t)
			r.Exec(r.s, "SET GLOBAL innodb_online_alter_log_max_size = 65536")
			r.during(func() {
				for _, text := range c.during {
					r.want(t, r.other, text, "ok")
				}
			})
			r.want(t, r.s, c.text, c.answer)
			r.Exec(r.s, "SET GLOBAL innodb_online_alter_log_max_size = DEFAULT")
			r.clean(t, c.rows)
		})
	}
}

// What repairs itself before the end is no error.
func TestRebuildForgets(t *testing.T) {
	r := newRebuildRig(t)
	r.during(func() {
		r.Exec(r.other, "INSERT INTO t (a) VALUES (1000)")
		r.Exec(r.other, "UPDATE t SET a = 1000 WHERE id = 5")
		r.Exec(r.other, "DELETE FROM t WHERE a = 1000")
		r.Exec(r.other, "BEGIN")
		r.Exec(r.other, "UPDATE t SET a = 1000 WHERE id = 6")
		r.Exec(r.other, "ROLLBACK")
	})
	r.want(t, r.s, "ALTER TABLE t MODIFY a TINYINT", "ok: 2000 affected")
	r.clean(t, rebuiltRows-1)
	// The number of a row that is gone is not given out again.
	r.Exec(r.other, "INSERT INTO t (a) VALUES (1)")
	r.want(t, r.other, "SELECT MAX(id) FROM t", "MAX(id)\n2002\n")
}

// KILL ends it, and the connection goes on.
func TestRebuildKilled(t *testing.T) {
	r := newRebuildRig(t)
	r.during(func() { r.Exec(r.other, fmt.Sprintf("KILL QUERY %d", r.s.ID())) })
	r.want(t, r.s, "ALTER TABLE t MODIFY a BIGINT", "error 1317")
	r.clean(t, rebuiltRows)
	r.want(t, r.s, "ALTER TABLE t MODIFY a BIGINT", "ok")
}

// Readers and writers come and go, but who has used the table in a transaction is waited for;
// not for longer than lock_wait_timeout says.
func TestRebuildWaits(t *testing.T) {
	r := newRebuildRig(t)
	r.Exec(r.s, "SET lock_wait_timeout = 1")
	r.during(func() {
		r.Exec(r.other, "BEGIN")
		r.Exec(r.other, "UPDATE t SET a = 5 WHERE id = 5")
	})
	r.want(t, r.s, "ALTER TABLE t MODIFY a BIGINT", "error 1205")
	r.Exec(r.other, "COMMIT")
	r.clean(t, rebuiltRows)
}

// Other changes of the definition wait until the rebuild is over, while reads and writes go on.
func TestRebuildAndOtherChanges(t *testing.T) {
	for _, text := range []string{"ALTER TABLE t ADD COLUMN c INT DEFAULT 3", "ALTER TABLE t MODIFY b TEXT", "TRUNCATE TABLE t", "DROP TABLE t",
		"RENAME TABLE t TO u", "CREATE INDEX i ON t (a)", "DROP SCHEMA test"} {
		t.Run(text, func(t *testing.T) {
			r := newRebuildRig(t)
			var answer <-chan string
			answer = r.beside(text, func() {
				r.want(t, r.other, "UPDATE t SET a = a + 1 WHERE id = 5", "ok")
				r.want(t, r.other, "SELECT COUNT(*) FROM t", "COUNT(*)\n2000")
				if len(answer) > 0 {
					t.Error("it has not waited")
				}
			})
			r.want(t, r.s, "ALTER TABLE t MODIFY a BIGINT", "ok: 2000 affected")
			if got := <-answer; !strings.HasPrefix(got, "ok") {
				t.Errorf("%s: %s", text, got)
			}
		})
	}
}

// Foreign keys stay what they are, of the table and of those that refer to it.
func TestRebuildForeignKeys(t *testing.T) {
	r := newRebuildRig(t)
	r.Exec(r.s, "CREATE TABLE child (id INT PRIMARY KEY, t INT, FOREIGN KEY (t) REFERENCES t (id) ON DELETE CASCADE)")
	r.Exec(r.s, "INSERT INTO child VALUES (1, 1), (2, 2), (3, 3)")
	r.during(func() {
		r.Exec(r.other, "DELETE FROM t WHERE id = 1")
		r.Exec(r.other, "INSERT INTO child VALUES (4, 4)")
	})
	r.want(t, r.s, "ALTER TABLE t MODIFY b TEXT", "ok: 2000 affected")
	var rows []string
	for i := range 3000 {
		rows = append(rows, fmt.Sprintf("(%d, %d)", 100+i, 10+i%1000))
	}
	r.Exec(r.s, "INSERT INTO child VALUES "+strings.Join(rows, ","))
	r.during(func() {
		r.Exec(r.other, "DELETE FROM t WHERE id = 2")
		r.Exec(r.other, "UPDATE child SET t = 7 WHERE id = 4")
	})
	r.want(t, r.s, "ALTER TABLE child MODIFY id BIGINT", "ok: 3003 affected")
	r.want(t, r.s, "SELECT * FROM child WHERE id < 100 ORDER BY id", "id | t\n3 | 3\n4 | 7\n")
	r.want(t, r.s, "INSERT INTO child VALUES (5, 1)", "error 1452")
	r.want(t, r.s, "DELETE FROM t WHERE id = 3", "ok")
	r.want(t, r.s, "SELECT COUNT(*) FROM child WHERE id < 100", "COUNT(*)\n1\n")
}

// Old snapshots of the table do not see the new one as it never was.
func TestRebuildOldSnapshot(t *testing.T) {
	r := newRebuildRig(t)
	r.Exec(r.other, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
	r.want(t, r.s, "ALTER TABLE t MODIFY a BIGINT", "ok")
	r.want(t, r.other, "SELECT COUNT(*) FROM t", "error 1412")
}

// Indexes that come with other changes keep nobody from a large table.
func TestIndexesWithOtherChanges(t *testing.T) {
	r := newRebuildRig(t)
	for range 4 {
		r.Exec(r.s, "INSERT INTO t (a, b) SELECT a, b FROM t")
	}
	during := 0
	r.during(func() {
		r.want(t, r.other, "INSERT INTO t (a, b) VALUES (-5, 'new')", "ok")
		r.want(t, r.other, "SELECT COUNT(*) FROM t", "COUNT(*)\n32001")
		during++
	})
	r.want(t, r.s, "ALTER TABLE t ADD COLUMN c INT DEFAULT 7, ADD INDEX i (c, a), ADD UNIQUE INDEX u (id, b), RENAME COLUMN b TO d", "ok: 32000 affected")
	if during == 0 {
		t.Error("nobody came in between")
	}
	r.want(t, r.s, "SELECT c, d FROM t FORCE INDEX (i) WHERE c = 7 AND a = -5", "c | d\n7 | new\n")
	r.want(t, r.s, "SELECT COUNT(*) FROM t FORCE INDEX (u)", "COUNT(*)\n32001")
	r.want(t, r.s, "ALTER TABLE t ADD COLUMN e INT DEFAULT 7, ADD INDEX j (e), ALGORITHM=INPLACE", "ok")
	if got := r.Text(r.s, "CHECK TABLE t"); !strings.Contains(got, "OK") {
		t.Error(got)
	}
}

package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// Rows are found by keys of all kinds, which change while the table is rebuilt: such that a
// collation calls equal, prefixes, floating point numbers, times. Rows of older definitions
// and with long values are among them.
func TestRebuildKeys(t *testing.T) {
	for _, c := range []struct{ key, kind, value, alter, change string }{
		{"k", "VARCHAR(40)", "'key %d'", "MODIFY k VARCHAR(40) COLLATE utf8mb4_bin NOT NULL", "UPDATE t SET k = UPPER(k) WHERE n < 50"},
		{"k", "VARCHAR(40) COLLATE utf8mb4_bin", "'key %d'", "MODIFY k VARCHAR(40) NOT NULL", "UPDATE t SET k = UPPER(k) WHERE n < 50"},
		{"k(6)", "VARCHAR(40)", "'%05d-and more of it'", "MODIFY k TEXT NOT NULL", "UPDATE t SET k = CONCAT(IF(n < 30, 'z', ''), k, 'tail') WHERE n < 50 AND n % 10 = 0"},
		{"k", "DOUBLE", "%de-1", "MODIFY k DOUBLE NOT NULL, FORCE", "UPDATE t SET k = -k WHERE n < 50"},
		{"n, k", "ENUM('a','b','c')", "ELT(%d %% 3 + 1, 'a', 'b', 'c')", "MODIFY k ENUM('c','b','a','d') NOT NULL", "UPDATE t SET k = 'c' WHERE n < 50"},
		{"k", "TIMESTAMP(3)", "FROM_UNIXTIME(1700000000 + %d)", "MODIFY k DATETIME(3) NOT NULL", "UPDATE t SET k = DATE_SUB(k, INTERVAL 1 YEAR) WHERE n < 50"},
		{"k", "VARBINARY(30)", "CONCAT(X'00ff', %d)", "MODIFY k VARBINARY(60) NOT NULL, FORCE", "UPDATE t SET k = CONCAT(k, X'00') WHERE n < 50"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			r := &rebuildRig{Rig: sessiontest.New(t, sessiontest.Options{Early: true})}
			r.CreateSchema("test")
			r.s, r.other = r.Open(session.ConnectionInfo{Schema: "test"}), r.Open(session.ConnectionInfo{Schema: "test"})
			r.Exec(r.s, "CREATE TABLE t (k "+c.kind+" NOT NULL, n INT, pad VARCHAR(100), x TEXT, d INT, PRIMARY KEY ("+c.key+"), KEY f ((n * 2)))")
			var rows []string
			for i := range 2000 {
				rows = append(rows, fmt.Sprintf("("+c.value+", %d, 'some padding of the row %d', NULL, 1)", i, i, i))
			}
			r.Exec(r.s, "INSERT INTO t VALUES "+strings.Join(rows, ","))
			r.Exec(r.s, "ALTER TABLE t ADD COLUMN late VARCHAR(10) DEFAULT 'given', ALGORITHM=INSTANT")
			r.Exec(r.s, "ALTER TABLE t DROP COLUMN d")
			r.during(func() {
				for _, text := range []string{c.change, "UPDATE t SET x = REPEAT('L', 30000) WHERE n BETWEEN 100 AND 105", "DELETE FROM t WHERE n BETWEEN 200 AND 210",
					"BEGIN", "UPDATE t SET late = 'other' WHERE n = 300", "SAVEPOINT a", "DELETE FROM t WHERE n < 400", "ROLLBACK TO a", "COMMIT"} {
					r.want(t, r.other, text, "ok")
				}
			})
			const all = "SELECT n, HEX(CAST(k AS BINARY)), LENGTH(x), late FROM t ORDER BY n"
			r.want(t, r.s, "ALTER TABLE t "+c.alter+", ALGORITHM=COPY", "ok: 2000 affected")
			got := r.Text(r.s, all)
			// The same without anybody beside it.
			r.Log.Refuse = nil
			r.Exec(r.s, "RENAME TABLE t TO done")
			r.Exec(r.s, "CREATE TABLE t (k "+c.kind+" NOT NULL, n INT, x TEXT, late VARCHAR(10) DEFAULT 'given', PRIMARY KEY ("+c.key+"))")
			for i := range rows {
				rows[i] = fmt.Sprintf("("+c.value+", %d)", i, i)
			}
			r.Exec(r.s, "INSERT INTO t (k, n) VALUES "+strings.Join(rows, ","))
			for _, text := range []string{c.change, "UPDATE t SET x = REPEAT('L', 30000) WHERE n BETWEEN 100 AND 105", "DELETE FROM t WHERE n BETWEEN 200 AND 210",
				"UPDATE t SET late = 'other' WHERE n = 300"} {
				r.Exec(r.s, text)
			}
			if want := r.Text(r.s, all); got != want {
				t.Errorf("%d bytes of rows instead of %d:\n%.2000s", len(got), len(want), got)
			}
			if got := r.Text(r.s, "CHECK TABLE done"); !strings.Contains(got, "OK") {
				t.Error(got)
			}
		})
	}
}

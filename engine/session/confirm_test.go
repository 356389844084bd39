package session_test

import (
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// pointRead is a read, what is applied while it waits for its read point, and what it shows then.
type pointRead struct{ text, apply, want string }

var pointReads = []pointRead{
	{"SELECT * FROM old", "INSERT INTO old VALUES (2)", "2"},
	{"SELECT * FROM old", "ALTER TABLE old ADD COLUMN c INT DEFAULT 77", "77"},
	{"SELECT * FROM new", "CREATE TABLE new SELECT 5 AS five", "five"},
}

// pointDefinitions show definitions and accounts.
var pointDefinitions = []pointRead{
	{"EXPLAIN SELECT * FROM newer", "CREATE TABLE newer (id INT)", "newer"},
	{"SHOW TABLES", "CREATE TABLE a1 (id INT)", "a1"},
	{"SHOW COLUMNS FROM a2", "CREATE TABLE a2 (seen INT)", "seen"},
	{"DESCRIBE a3", "CREATE TABLE a3 (seen INT)", "seen"},
	{"SHOW INDEX FROM a4", "CREATE TABLE a4 (id INT, KEY seen (id))", "seen"},
	{"SHOW TABLE STATUS LIKE 'a5'", "CREATE TABLE a5 (id INT)", "a5"},
	{"SHOW CREATE TABLE a6", "CREATE TABLE a6 (seen INT)", "seen"},
	{"SHOW CREATE VIEW a7", "CREATE VIEW a7 AS SELECT 1 AS seen", "seen"},
	{"SHOW DATABASES", "CREATE DATABASE b1", "b1"},
	{"SHOW CREATE DATABASE b2", "CREATE DATABASE b2", "b2"},
	{"SHOW TABLES IN b3", "CREATE DATABASE b3", "Tables_in_b3"},
	{"SELECT TABLE_NAME FROM information_schema.TABLES", "CREATE TABLE a8 (id INT)", "a8"},
	{"SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS", "CREATE TABLE a9 (id INT, UNIQUE seen (id))", "seen"},
	{"SELECT * FROM information_schema.COLUMNS AS c JOIN old WHERE TABLE_NAME = 'c1'", "CREATE TABLE c1 (seen INT)", "seen"},
	{"SHOW GRANTS FOR seen", "CREATE USER seen", "GRANT USAGE"},
	{"SHOW CREATE USER seen2", "CREATE USER seen2", "CREATE USER `seen2`"},
	{"SELECT GRANTEE FROM information_schema.USER_PRIVILEGES", "CREATE USER seen3", "seen3"},
	{"CHECKSUM TABLE c2", "CREATE TABLE c2 (id INT)", "test.c2 | "},
	{"CHECK TABLE c3", "CREATE TABLE c3 (id INT)", "OK"},
	{"LOCK TABLES c4 READ; UNLOCK TABLES", "CREATE TABLE c4 (id INT)", "ok"},
	{"USE b4", "CREATE DATABASE b4", "ok"},
}

// A read that is to miss nothing finds tables, too, as they are by then, and is in nobody's way while it waits: on
// the port for reads all, on the other one what reads no rows.
func TestReadPointBeforeTables(t *testing.T) {
	for _, readOnly := range []bool{true, false} {
		simulated(t, func(r *sessiontest.Rig, _ *simenv.Sim) { readsBeforeTables(t, r, readOnly) })
	}
}

func readsBeforeTables(t *testing.T, r *sessiontest.Rig, readOnly bool) {
	s, info := asRoot(t, r)
	r.Exec(s, "CREATE TABLE old (id INT PRIMARY KEY)")
	r.Exec(s, "INSERT INTO old VALUES (1)")
	info.ReadOnly = readOnly
	reader := r.Open(info)
	r.Exec(reader, "SET trireme_read_consistency = STRONG")
	reads := pointDefinitions
	if readOnly {
		reads = append(pointReads[:len(pointReads):len(pointReads)], reads...)
	}
	for _, read := range reads {
		asked := 0
		r.ReadPoint = func(session.ReadOptions) error {
			if asked++; asked == 1 {
				r.ReadPoint = nil
				r.Exec(s, read.apply)
			}
			return nil
		}
		if got := r.Text(reader, read.text); !strings.Contains(got, read.want) || strings.Contains(got, "error ") || strings.Contains(got, "Error") {
			t.Errorf("read-only %v, %s: %s", readOnly, read.text, got)
		}
		if r.ReadPoint = nil; asked != 1 {
			t.Errorf("read-only %v, %s asked %d times", readOnly, read.text, asked)
		}
	}
}

// asRoot opens a session of the first account of a group that has accounts.
func asRoot(t *testing.T, r *sessiontest.Rig) (*session.Session, session.ConnectionInfo) {
	t.Helper()
	if _, err := r.Manager.Bootstrap(t.Context(), session.BootstrapOptions{}); err != nil {
		t.Fatal(err)
	}
	info := session.ConnectionInfo{Schema: "test", User: "root", AccountUser: "root", AccountHost: "%", MultiStatements: true}
	return r.Open(info), info
}

// TestUnchangedConfirmed: that there is nothing to change is told by who leads only, also where the new leader has
// told the node since what its reads have to see, or the node leads again.
func TestUnchangedConfirmed(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, _ *simenv.Sim) {
		s, info := asRoot(t, r)
		for _, text := range []string{"CREATE TABLE t (id INT PRIMARY KEY, n INT, KEY n (n))", "CREATE VIEW v AS SELECT 1 AS one", "CREATE USER u", "CREATE ROLE ro",
			"GRANT SELECT ON test.* TO u", "GRANT ro TO u"} {
			r.Exec(s, text)
		}
		for _, text := range []string{"DROP TABLE IF EXISTS missing", "DROP TABLE IF EXISTS v", "DROP VIEW IF EXISTS missing", "DROP DATABASE IF EXISTS missing",
			"CREATE TABLE IF NOT EXISTS t (id INT)", "CREATE DATABASE IF NOT EXISTS test", "ALTER TABLE t", "ALTER TABLE t DROP INDEX IF EXISTS missing",
			"DROP USER IF EXISTS missing", "CREATE USER IF NOT EXISTS u", "ALTER USER IF EXISTS missing IDENTIFIED BY 'x'", "ALTER USER u ACCOUNT UNLOCK",
			"GRANT SELECT ON test.* TO u", "GRANT ro TO u", "REVOKE IF EXISTS ALL ON test.* FROM missing IGNORE UNKNOWN USER", "SET DEFAULT ROLE NONE TO u",
			"CREATE TABLE t (id INT)", "CREATE USER u", "ALTER TABLE missing ADD COLUMN a INT"} {
			want := r.Text(s, text)
			for _, again := range []bool{false, true} {
				asked := 0
				r.ReadPoint = func(session.ReadOptions) error {
					if asked++; asked == 2 { // the first is before it looks
						if err := r.Demote(); err != nil {
							t.Error(err)
						}
						if again {
							r.Txns.Resume()
						}
					}
					return nil
				}
				one := r.Open(info)
				got := r.Text(one, text)
				r.Txns.Resume()
				r.ReadPoint, r.ReadOnly = nil, false
				if !strings.Contains(got, "error 1053 (08S01)") {
					t.Errorf("%s, as a leader again: %v: %s", text, again, got)
				}
				if got := r.Text(s, text); got != want {
					t.Errorf("%s: %s, and then %s", text, want, got)
				}
			}
		}
	})
}

// A view without tables is a definition that a read depends on.
func TestReadPointOfView(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, _ *simenv.Sim) {
		s := r.Open(session.ConnectionInfo{Schema: "test"})
		r.Exec(s, "CREATE VIEW v AS SELECT 1 AS one")
		for _, text := range []string{"SELECT * FROM v", "EXPLAIN ANALYZE SELECT * FROM v"} {
			asked := 0
			r.ReadPoint = func(session.ReadOptions) error { asked++; return nil }
			if r.Exec(s, text); asked != 1 {
				t.Errorf("%s asked %d times", text, asked)
			}
			r.ReadPoint = nil
		}
	})
}

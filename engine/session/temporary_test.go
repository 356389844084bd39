package session_test

import (
	"context"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestTemporaryTables: who may make temporary tables needs no other privilege for them, and gets none on others'; their space is the
// session's, and they go with what the session begins anew with.
func TestTemporaryTables(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	if _, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{User: "root", Host: "%"}); err != nil {
		t.Fatal(err)
	}
	info := func(user string, reads bool) session.ConnectionInfo {
		return session.ConnectionInfo{User: user, Host: "localhost", AccountUser: user, AccountHost: "%", Schema: "d", ReadOnly: reads}
	}
	root := r.Open(session.ConnectionInfo{User: "root", Host: "localhost", AccountUser: "root", AccountHost: "%"})
	for _, text := range []string{"CREATE DATABASE d", "CREATE TABLE d.p (id INT PRIMARY KEY)", "INSERT INTO d.p VALUES (1), (2)", "CREATE TABLE d.q (id INT)",
		"CREATE VIEW d.v AS SELECT * FROM d.p", "CREATE USER app", "GRANT SELECT ON d.p TO app"} {
		r.Exec(root, text)
	}
	run := func(s *session.Session, text, want string) {
		t.Helper()
		if got := r.Text(s, text); !strings.Contains(got, want) {
			t.Errorf("%s: %s", text, got)
		}
	}
	app := r.Open(info("app", false))
	run(app, "CREATE TEMPORARY TABLE x (a INT)", "error 1044")
	r.Exec(root, "GRANT CREATE TEMPORARY TABLES ON d.* TO app")
	for _, reads := range []bool{false, true} {
		app = r.Open(info("app", reads))
		for _, c := range [][2]string{
			{"CREATE TEMPORARY TABLE x (a INT, KEY (a))", "ok"}, {"INSERT INTO x VALUES (1), (2)", "2 affected"}, {"UPDATE x SET a = a + 1", "2 affected"}, {"SELECT a FROM x FOR UPDATE", "a\n2\n3\n"},
			{"ALTER TABLE x ADD b INT", "2 affected"}, {"CREATE INDEX i ON x (b)", "2 affected"}, {"SHOW COLUMNS FROM x", "b | int"}, {"SHOW INDEX FROM x", "x | 1 | i"}, {"SHOW CREATE TABLE x", "CREATE TEMPORARY TABLE `x`"},
			{"EXPLAIN SELECT * FROM x", "SIMPLE | x"}, {"BEGIN", "ok"}, {"DELETE FROM x", "2 affected"}, {"ROLLBACK", "ok"}, {"SELECT COUNT(*) FROM x", "2"}, {"TRUNCATE TABLE x", "ok"}, {"SELECT COUNT(*) FROM x", "0"},
			{"CREATE TEMPORARY TABLE p SELECT * FROM p", "2 affected"}, {"DELETE FROM p", "2 affected"}, {"DROP TABLE p", "ok"},
			{"CREATE TEMPORARY TABLE y LIKE q", "error 1142"}, {"CREATE TEMPORARY TABLE y SELECT * FROM q", "error 1142"}, {"SELECT * FROM v", "error 1142"},
			{"SELECT table_name FROM information_schema.tables WHERE table_name = 'x'", ""},
		} {
			run(app, c[0], c[1])
		}
		if refused := "error 1142"; reads {
			run(app, "DELETE FROM p", "error 1")
		} else {
			run(app, "DELETE FROM p", refused)
		}
		run(app, "SELECT COUNT(*) FROM p", "2")
		if n := r.Manager.TemporaryFiles().Used(); n == 0 {
			t.Error("no bytes are counted")
		}
		if err := app.Reset(); err != nil {
			t.Error(err)
		}
		run(app, "SELECT * FROM x", "error 1142") // which is no temporary table any more
		if n := r.Manager.TemporaryFiles().Used(); n != 0 {
			t.Errorf("%d bytes are counted yet", n)
		}
	}

	run(app, "CREATE TEMPORARY TABLE x (a INT)", "ok")
	r.Exec(root, "CREATE DATABASE secret")
	run(app, "ALTER TABLE x RENAME TO secret.x", "error 1044")
	if err := app.ChangeUser(info("app", true)); err != nil {
		t.Error(err)
	}
	run(app, "SELECT * FROM x", "error 1142")

	app = r.Open(info("app", false))
	run(app, "SET max_tmp_session_space_usage = 5000000", "ok")
	run(app, "CREATE TEMPORARY TABLE x (a INT AUTO_INCREMENT PRIMARY KEY, b LONGTEXT)", "ok")
	run(app, "INSERT INTO x (b) VALUES ('x')", "1 affected")
	run(app, "INSERT INTO x (b) SELECT REPEAT('x', 1000000) FROM p a JOIN p b JOIN p c", "error 1114 (HY000): The table '(temporary)' is full")
	run(app, "SELECT COUNT(*) FROM x", "1")
	run(app, "DROP TABLE x", "ok")

	// What others have planned stays theirs.
	for range 2 {
		run(root, "SELECT COUNT(*) FROM d.p", "2")
	}
	run(app, "CREATE TEMPORARY TABLE p (z INT)", "ok")
	for range 2 {
		run(app, "SELECT COUNT(*) FROM d.p", "0")
		run(root, "SELECT COUNT(*) FROM d.p", "2")
	}
	if err := app.Close(); err != nil {
		t.Error(err)
	}
	if n := r.Manager.TemporaryFiles().Used(); n != 0 {
		t.Errorf("%d bytes are counted yet", n)
	}
}

package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestResourceLimits: what an account may use in an hour, and how many sessions it may have, count; the errors are MySQL's.
func TestResourceLimits(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, sim *simenv.Sim) {
		if _, err := r.Manager.Bootstrap(t.Context(), session.BootstrapOptions{}); err != nil {
			t.Fatal(err)
		}
		info := func(user string) session.ConnectionInfo {
			return session.ConnectionInfo{User: user, Host: "h", AccountUser: user, AccountHost: "%"}
		}
		refused := func(user, want string) {
			t.Helper()
			if _, err := r.Manager.Open(info(user)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, not %s", user, err, want)
			}
		}
		root := r.Open(info("root"))
		for _, text := range []string{"CREATE DATABASE s", "CREATE TABLE s.t (id INT PRIMARY KEY)", "CREATE USER q WITH MAX_QUERIES_PER_HOUR 3", "CREATE USER e WITH MAX_QUERIES_PER_HOUR 3", "CREATE USER u WITH MAX_UPDATES_PER_HOUR 2",
			"CREATE USER c WITH MAX_CONNECTIONS_PER_HOUR 2", "CREATE USER n WITH MAX_USER_CONNECTIONS 2", "CREATE USER g, chief", "GRANT ALL ON s.* TO q, u", "GRANT CONNECTION_ADMIN ON *.* TO chief"} {
			r.Exec(root, text)
		}
		const questions = "error 1226 (42000): User 'q' has exceeded the 'max_questions' resource (current value: 3)\n"
		q := r.Open(info("q"))
		for i, want := range []string{"1\n1\n", "1\n1\n", "ok\n", questions, questions} {
			if got := r.Text(q, []string{"SELECT 1", "SELECT 1", "SET @x = 1", "SELECT 1", "INSERT INTO s.t VALUES (1)"}[i]); got != want {
				t.Errorf("%d: %s", i, got)
			}
		}
		if got := r.Prepared(q, "SELECT 1"); got != questions {
			t.Errorf("prepared: %s", got)
		}
		if got := r.Text(r.Open(info("q")), "SELECT 1"); got != questions {
			t.Errorf("another session: %s", got)
		}
		e := r.Open(info("e"))
		for i, text := range []string{"PREPARE p FROM 'SELECT 1'", "EXECUTE p", "EXECUTE p", "EXECUTE p"} { // which counts once
			if got := r.Text(e, text); strings.Contains(got, "error 1226") != (i == 3) {
				t.Errorf("%d: %s", i, got)
			}
		}
		const updates = "error 1226 (42000): User 'u' has exceeded the 'max_updates' resource (current value: 2)\n"
		u := r.Open(info("u"))
		for i, want := range []string{"ok: 1 affected\n", "COUNT(*)\n1\n", "ok: 1 affected\n", updates, "COUNT(*)\n2\n"} {
			if got := r.Text(u, []string{"INSERT INTO s.t VALUES (1)", "SELECT COUNT(*) FROM s.t", "INSERT INTO s.t VALUES (2)", "INSERT INTO s.t VALUES (3)", "SELECT COUNT(*) FROM s.t"}[i]); got != want {
				t.Errorf("%d: %s", i, got)
			}
		}
		r.Open(info("c"))
		r.Open(info("c"))
		const connections = "User 'c' has exceeded the 'max_connections_per_hour' resource (current value: 2)"
		refused("c", connections)
		first := r.Open(info("n"))
		r.Open(info("n"))
		refused("n", "User 'n' has exceeded the 'max_user_connections' resource (current value: 2)")
		if err := first.ChangeUser(info("g")); err != nil {
			t.Error(err)
		}
		again := r.Open(info("n"))
		if err := again.Close(); err != nil {
			t.Error(err)
		}
		r.Open(info("n"))
		r.Exec(root, "SET GLOBAL max_user_connections = 1")
		refused("g", "User g already has more than 'max_user_connections' active connections")
		r.Open(info("chief"))
		r.Open(info("chief"))
		r.Exec(root, "SET GLOBAL max_user_connections = 0")
		r.Exec(root, "FLUSH USER_RESOURCES")
		r.Open(info("c"))
		r.Open(info("c"))
		refused("c", connections)
		env.Sleep(sim, time.Hour)
		r.Open(info("c"))
		r.Exec(q, "SELECT 1")
	})
}

// TestSecretsAreHidden: a statement that sets a password is not shown whole to who sees the process list.
func TestSecretsAreHidden(t *testing.T) {
	for _, c := range [...]struct{ text, want string }{
		{"ALTER USER u IDENTIFIED BY 'it''s'", "ALTER USER u IDENTIFIED <secret>"},
		{"/* it's */ create user u identified/**/with x by \"s\"", "/* it's */ create user u identified <secret>"},
		{"SET\n/**/ PASSWORD FOR u = 's'", "SET\n/**/ PASSWORD <secret>"},
		{"SELECT 1; SET PASSWORD = 's'", "SELECT 1; SET PASSWORD <secret>"},
		{"PREPARE p FROM 'ALTER USER u IDENTIFIED BY \"s\"'", "PREPARE p FROM 'ALTER USER u IDENTIFIED <secret>"},
		{"SELECT password FROM t", "SELECT password FROM t"}, {"SELECT 'passwor", "SELECT 'passwor"}, {"SELECT 1", "SELECT 1"},
	} {
		if got := session.HideSecrets(c.text); got != c.want {
			t.Errorf("%s: %s", c.text, got)
		}
	}
}

// TestSecretOfRunningStatement: so it is in the process list.
func TestSecretOfRunningStatement(t *testing.T) {
	r, _, open := rightsRig(t, "CREATE DATABASE s", "CREATE TABLE s.t (id INT PRIMARY KEY)", "CREATE USER u", "GRANT ALL ON s.* TO u")
	s := open("u")
	// What runs sees itself.
	if got := r.Text(s, "SELECT INFO FROM information_schema.PROCESSLIST WHERE 'IDENTIFIED BY ''word''' <> 'x'"); strings.Contains(got, "word") || !strings.Contains(got, "<secret>") {
		t.Errorf("%s", got)
	}
}

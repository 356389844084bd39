package session_test

import (
	"context"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestUpgrade: the system tables of a group that has begun with an older version serve as they are until a leader adds what
// is new, and keep what they have.
func TestUpgrade(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	if _, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{User: "root", Host: "%"}); err != nil {
		t.Fatal(err)
	}
	root := r.Open(session.ConnectionInfo{User: "root", Host: "localhost", AccountUser: "root", AccountHost: "%"})
	r.Exec(root, "CREATE USER app IDENTIFIED BY 'p' PASSWORD EXPIRE INTERVAL 3 DAY COMMENT 'x'")
	shown := r.Text(root, "SHOW CREATE TABLE mysql.user")
	account := r.Text(root, "SHOW CREATE USER app")
	for _, text := range []string{"DROP TABLE mysql.password_history", "DROP TABLE mysql.component",
		"ALTER TABLE mysql.user DROP COLUMN Password_reuse_history, DROP COLUMN Password_reuse_time, DROP COLUMN Password_require_current"} {
		r.Exec(root, text)
	}
	r.Restart()
	root = r.Open(session.ConnectionInfo{User: "root", Host: "localhost", AccountUser: "root", AccountHost: "%"})
	if got := r.Text(root, "SHOW CREATE USER app"); got != account {
		t.Errorf("before the upgrade: %s", got)
	}
	if got := r.Text(root, "GRANT SELECT ON *.* TO app"); !strings.Contains(got, "older version") {
		t.Errorf("what the tables have no place for would be lost: %s", got)
	}
	for range 2 {
		if err := r.Manager.Upgrade(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.Text(root, "SHOW CREATE TABLE mysql.user"); got != shown {
		t.Errorf("%s\nis not\n%s", got, shown)
	}
	if got := r.Text(root, "SHOW CREATE USER app"); got != account {
		t.Errorf("after the upgrade: %s", got)
	}
	r.Exec(root, "ALTER USER app IDENTIFIED BY 'q' PASSWORD HISTORY 2")
	if got := r.Text(root, "SHOW CREATE USER app"); !strings.Contains(got, "PASSWORD HISTORY 2") {
		t.Error(got)
	}
	if got := r.Text(root, "ALTER USER app IDENTIFIED BY 'q'"); !strings.Contains(got, "3638") {
		t.Error(got)
	}
}

package session_test

import (
	"context"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestTemporarySpace: a statement whose temporary files would be larger than they may be ends, what it has written is given
// back, and nobody raises the limit that an administrator has set.
func TestTemporarySpace(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	if _, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{User: "root", Host: "%"}); err != nil {
		t.Fatal(err)
	}
	open := func(user string) *session.Session {
		return r.Open(session.ConnectionInfo{User: user, Host: "localhost", AccountUser: user, AccountHost: "%"})
	}
	root := open("root")
	for _, text := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, x CHAR(200) NOT NULL)",
		"INSERT INTO d.t (x) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT SHA2(i, 512) FROM n",
		"CREATE USER app", "GRANT SELECT ON d.* TO app", "SET GLOBAL max_tmp_session_space_usage = 1048576"} {
		r.Exec(root, text)
	}
	app := open("app")
	r.Exec(app, "SET SESSION trireme_statement_memory = 1048576")
	sorts := "SELECT COUNT(*) FROM (SELECT a.x FROM d.t a JOIN d.t b ON b.id <= 20 ORDER BY a.x, b.x LIMIT 19999) s"
	for _, c := range []struct {
		s    *session.Session
		text string
		want string
	}{
		{app, sorts, "error 1114 (HY000): The table '(temporary)' is full: temporary files of this session may take 1048576 bytes (max_tmp_session_space_usage). " +
			"Raise it, or have the statement keep less."},
		{app, "SELECT COUNT(*) FROM d.t", "1000"},
		{app, "SET SESSION max_tmp_session_space_usage = 2000000", "error 1227"},
		{app, "SET SESSION max_tmp_session_space_usage = 0", "warnings"}, // which is the least
		{root, "SET GLOBAL max_tmp_session_space_usage = DEFAULT", "ok"},
		{root, "SET GLOBAL trireme_tmp_account_space_usage = 1048576", "ok"},
		{app, "SET SESSION max_tmp_session_space_usage = DEFAULT", "ok"},
		{app, sorts, "temporary files of this account may take 1048576 bytes (trireme_tmp_account_space_usage)"},
		{root, "SET GLOBAL trireme_tmp_account_space_usage = 0", "ok"},
		{root, "SET GLOBAL max_tmp_total_space_usage = 1048576", "ok"},
		{app, sorts, "temporary files of this node may take 1048576 bytes (max_tmp_total_space_usage)"},
		{root, "SET GLOBAL max_tmp_total_space_usage = 0", "ok"},
		{app, sorts, "19999"},
	} {
		if got := r.Text(c.s, c.text); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.text, got)
		}
		if n := r.Manager.TemporaryFiles().Used(); n != 0 {
			t.Errorf("%s: %d bytes are counted when it is over", c.text, n)
		}
	}
	if n := r.Manager.TemporaryFiles().Refused(); n != 3 {
		t.Errorf("%d were refused", n)
	}
}

package session_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// endsSoon fails the test if fn has not returned after a minute, in which it is done many times over.
func endsSoon(t *testing.T, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s does not end", what)
	}
}

// Accounts that change themselves, and others, at the same time wait for each other at most, never for themselves.
func TestAccountChangesBesideEachOther(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	if _, err := r.Manager.Bootstrap(t.Context(), session.BootstrapOptions{}); err != nil {
		t.Fatal(err)
	}
	root := r.Open(session.ConnectionInfo{User: "root", AccountUser: "root", AccountHost: "%", MultiStatements: true})
	r.Exec(root, "CREATE USER u IDENTIFIED BY 'Abc.12345', v IDENTIFIED BY 'Abc.12345'; CREATE ROLE x; GRANT x TO u")
	statements := map[string][]string{
		"u": {"SET PASSWORD = 'Abc.12345'", "ALTER USER USER() IDENTIFIED BY 'Abc.12345'", "SET DEFAULT ROLE x TO u", "SET PASSWORD TO RANDOM"},
		"v": {"SET PASSWORD = 'Abc.12345'", "SHOW GRANTS", "ALTER USER USER() IDENTIFIED BY 'Abc.12346' RETAIN CURRENT PASSWORD"},
		"root": {"GRANT SELECT ON *.* TO v", "REVOKE SELECT ON *.* FROM v", "ALTER USER u PASSWORD EXPIRE NEVER", "CREATE USER w", "DROP USER w",
			"ALTER USER v ACCOUNT LOCK", "ALTER USER v ACCOUNT UNLOCK", "SET PASSWORD FOR v = 'Abc.12345'"},
	}
	endsSoon(t, "a change of an account", func() {
		var all sync.WaitGroup
		for range 3 {
			for user, list := range statements {
				s := r.Open(session.ConnectionInfo{User: user, AccountUser: user, AccountHost: "%"})
				all.Go(func() {
					for n := range 40 {
						got := r.Text(s, list[n%len(list)])
						for _, may := range []string{"ok", "error 1396", "error 1205", "error 1213", "error 1227", "error 1044", "error 3118", "Grants for", "generated password"} {
							if strings.Contains(got, may) {
								got = ""
							}
						}
						if got != "" {
							t.Errorf("%s: %s: %s", user, list[n%len(list)], got)
						}
					}
				})
			}
		}
		all.Wait()
	})
}

// Logins do not wait for who changes the system tables, for however long.
func TestLoginsBesideAccountChanges(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	if _, err := r.Manager.Bootstrap(t.Context(), session.BootstrapOptions{}); err != nil {
		t.Fatal(err)
	}
	root := r.Open(session.ConnectionInfo{User: "root", AccountUser: "root", AccountHost: "%"})
	other := r.Open(session.ConnectionInfo{User: "root", AccountUser: "root", AccountHost: "%"})
	for i, lock := range []string{"LOCK TABLES mysql.user WRITE", "LOCK TABLES mysql.user WRITE, mysql.tables_priv WRITE"} {
		r.Exec(root, fmt.Sprintf("CREATE USER a%d", i)) // what is known of the accounts is old
		r.Exec(root, lock)
		endsSoon(t, "a login", func() {
			if _, ok, err := r.Manager.MatchAccount(fmt.Sprintf("a%d", i), "h", "1.2.3.4"); !ok || err != nil {
				t.Errorf("beside %s: %v, %v", lock, ok, err)
			}
			if got := r.Text(other, "SELECT CURRENT_USER()"); !strings.Contains(got, "root@%") {
				t.Errorf("beside %s: %s", lock, got)
			}
		})
		r.Exec(root, "UNLOCK TABLES")
	}
}

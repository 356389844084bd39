package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/server/auth"
	"github.com/triremedb/trireme/server/mysqlwire"
	"github.com/triremedb/trireme/server/users"
)

// TestAccountsNotYet: a client that comes before the group's accounts are here is told so, and not that its
// password is wrong; one who is not known among those that are here is unknown.
func TestAccountsNotYet(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	n := &Node{sessions: r.Manager, stopping: make(chan struct{})}
	a := &accounts{n: n, wait: time.Millisecond}
	refused := func(text string) {
		t.Helper()
		_, known, err := a.Account("root", "localhost", "127.0.0.1")
		var told *sqlerr.Error
		if known || !errors.As(err, &told) || told.Number != 1053 || told.Message != text {
			t.Errorf("%v, %v; want %q", known, err, text)
		}
	}
	refused("This member does not have the group's accounts yet: connect again later")
	a.wait = time.Hour
	close(n.stopping)
	refused("Server shutdown in progress")
	if _, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{User: "root", Host: "%"}); err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]bool{"root": true, "nobody": false} {
		if _, known, err := a.Account(user, "localhost", "127.0.0.1"); known != want || err != nil {
			t.Errorf("%s: %v, %v", user, known, err)
		}
	}
}

// TestConfirm: whom a member has let in that did not know the accounts as they are is refused where the session goes, with what
// that member would have said.
func TestConfirm(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	if _, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{User: "root", Host: "%"}); err != nil {
		t.Fatal(err)
	}
	n := &Node{sessions: r.Manager, stopping: make(chan struct{})}
	n.accounts = accounts{n: n, wait: time.Millisecond}
	var err error
	if n.auth, err = auth.New(auth.Options{Source: &n.accounts}); err != nil {
		t.Fatal(err)
	}
	root := r.Open(session.ConnectionInfo{User: "root", Host: "localhost", AccountUser: "root", AccountHost: "%"})
	r.Exec(root, "CREATE USER app IDENTIFIED BY 'old'")
	admitted := func(older bool) *mysqlwire.Handover {
		acct, known, err := n.accounts.known("app", "localhost", "127.0.0.1")
		if err != nil || !known {
			t.Fatal(known, err)
		}
		h := &mysqlwire.Handover{User: "app", Host: "localhost", Address: "127.0.0.1", AccountUser: "app", AccountHost: "%", Credential: acct.Credential()}
		if older {
			h.Credential = nil
		}
		return h
	}
	before, older := admitted(false), admitted(true)
	for _, c := range []struct {
		statement  string
		own, older sqlerr.Code // what becomes of a client that was let in before the statement
	}{
		{"DO 1", 0, 0},
		{"ALTER USER app ACCOUNT LOCK", 3118, 3118},
		{"ALTER USER app ACCOUNT UNLOCK", 0, 0},
		{"ALTER USER app REQUIRE SSL", 1045, 1045},
		{"ALTER USER app REQUIRE NONE", 0, 0},
		{"CREATE USER app@localhost IDENTIFIED BY 'other'", 1045, 1045}, // which is who comes now
		{"DROP USER app@localhost", 0, 0},
		{"ALTER USER app PASSWORD EXPIRE", 1862, 1862},
		{"ALTER USER app IDENTIFIED BY 'new'", 1045, 0},
		{"DROP USER app", 1045, 1045},
	} {
		r.Exec(root, c.statement)
		for h, want := range map[*mysqlwire.Handover]sqlerr.Code{before: c.own, older: c.older} {
			err, got := n.confirm(h), sqlerr.Code(0)
			var told *sqlerr.Error
			if errors.As(err, &told) {
				got = told.Number
			} else if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("%s, credential %t: %v, want %d", c.statement, h == before, err, want)
			}
		}
	}

	// A client that can change an expired password comes in, and its session does no more than that.
	r.Exec(root, "CREATE USER app IDENTIFIED BY 'old' PASSWORD EXPIRE")
	h := admitted(false)
	h.Resets = true
	if err := n.confirm(h); err != nil || !h.Expired {
		t.Errorf("expired %v, %v", h.Expired, err)
	}
	r.Exec(root, "ALTER USER app IDENTIFIED BY 'new' RETAIN CURRENT PASSWORD")
	h = admitted(false)
	r.Exec(root, "ALTER USER app DISCARD OLD PASSWORD")
	var told *sqlerr.Error
	if err := n.confirm(h); !errors.As(err, &told) || told.Number != 1045 {
		t.Errorf("let in by a password that is discarded: %v", err)
	}
}

// What an event advises where root does not get its password depends on whether root is there.
func TestRootCure(t *testing.T) {
	for want, err := range map[string]error{"Put a password": nil, "Make the account root@% again": errors.New("there is none")} {
		got := rootCure(func() (users.Session, error) { return closing{}, err })
		if !strings.HasPrefix(got, want) {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// closing is a session that does nothing.
type closing struct{ users.Session }

func (closing) Close() error { return nil }

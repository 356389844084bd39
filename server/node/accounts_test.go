package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/types"
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
		var told *types.Error
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

package sqlapi

import (
	"context"
	"encoding/base64"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/server/auth"
)

// oneAccount is a source of one account, which changes.
type oneAccount struct {
	mu sync.Mutex
	of *auth.Account
}

func (a *oneAccount) Account(string, string, string) (auth.Account, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil {
		return auth.Account{}, false, nil
	}
	return *a.of, true, nil
}

func (a *oneAccount) set(of *auth.Account) {
	a.mu.Lock()
	a.of = of
	a.mu.Unlock()
}

// calling is the context of a call from this machine.
func calling(user, password string) context.Context {
	conn := &connection{host: "localhost", address: "127.0.0.1"}
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: from, AuthInfo: conn})
	text := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
	return metadata.NewIncomingContext(ctx, metadata.Pairs("authorization", "Basic "+text))
}

// TestSessionsOfStreamAreLogins: each session of a stream that stands begins as a new connection does: by the account
// as it is then, and not as it was when the stream began. Sessions that stand go on.
func TestSessionsOfStreamAreLogins(t *testing.T) {
	native := func(password string) *auth.Account {
		return &auth.Account{User: "app", Host: "%", Plugin: auth.Native, Hash: priv.HashNative([]byte(password))}
	}
	source := &oneAccount{of: native("secret")}
	a, err := auth.New(auth.Options{Source: source, DelayMax: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	d, _ := newDoor(t, func(o *Options) { o.Auth = a })
	ctx := calling("app", "secret")
	w := connectAs(t, d, func() (*caller, error) { return d.identify(ctx) })
	next := uint64(0)
	opens := func() sqlerr.Code {
		t.Helper()
		next++
		return sqlerr.Code(w.ask(next, opening(&pb.SqlOpen{})).GetError().GetNumber())
	}
	if n := opens(); n != 0 {
		t.Fatalf("error %d", n)
	}
	both := native("new")
	both.Second = native("secret").Hash
	locked, expired, required := native("secret"), native("secret"), native("secret")
	locked.Locked, expired.Expired, required.Require = true, true, auth.Requirement{Kind: "ANY"}
	for _, c := range []struct {
		what string
		of   *auth.Account
		want sqlerr.Code
	}{
		{"locked", locked, sqlerr.AccountHasBeenLocked}, {"as before", native("secret"), 0},
		{"expired", expired, sqlerr.MustChangePasswordLogin},
		{"REQUIRE SSL", required, sqlerr.AccessDeniedError}, {"another password", native("new"), sqlerr.AccessDeniedError},
		{"another password that leaves the one of before", both, 0}, {"dropped", nil, sqlerr.AccessDeniedError},
		{"made anew", native("other"), sqlerr.AccessDeniedError}, {"as before", native("secret"), 0},
	} {
		source.set(c.of)
		if n := opens(); n != c.want {
			t.Errorf("%s: error %d instead of %d", c.what, n, c.want)
		}
		if r := w.ask(1, text("DO 1")); r.GetError() != nil {
			t.Errorf("%s: the session that stands: %v", c.what, r)
		}
	}
	// An account that is more specific by now is that of the sessions from now on.
	special := native("secret")
	special.Host = "127.0.0.1"
	source.set(special)
	if n := opens(); n != 0 {
		t.Fatalf("error %d", n)
	}
	for session, want := range map[uint64]string{1: "app@%", next: "app@127.0.0.1"} {
		r := w.ask(session, text("SELECT CURRENT_USER()"))
		if columns := r.GetResult().GetBatch().GetColumns(); len(columns) != 1 || string(columns[0].Bytes) != want {
			t.Errorf("session %d is of %v instead of %s", session, columns, want)
		}
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
}

package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// login logs in and returns the error that the client is told, its number first; empty: none.
func login(t *testing.T, a *Authenticator, user, password string) (number sqlerr.Code, text string) {
	t.Helper()
	_, err := a.Prove(context.Background(), user, "h", "1.1.1.1", password, &Channel{})
	var e *sqlerr.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatal(err)
	}
	if e != nil {
		return e.Number, e.Message
	}
	return 0, ""
}

// TestTries has the answers of MySQL 9.7.
func TestTries(t *testing.T) {
	now := time.Unix(1, 0)
	src := source{}
	a, err := New(Options{Source: src, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	rule := func(most, days int, unlocked int64) {
		src["app@%"] = Account{User: "app", Host: "%", Plugin: Native, Hash: priv.HashNative([]byte("x")), Tries: Tries{most, days, unlocked}}
	}
	want := func(password string, number sqlerr.Code, text string) {
		t.Helper()
		if n, got := login(t, a, "app", password); n != number || !strings.Contains(got, text) {
			t.Errorf("%q: %d %s", password, n, got)
		}
	}
	blocked := "Account is blocked for 2 day(s) (2 day(s) remaining) due to 3 consecutive failed logins."
	rule(3, 2, 0)
	want("bad", 1045, "")
	want("", 1045, "")
	want("x", 0, "") // which begins the count anew
	want("bad", 1045, "")
	want("bad", 1045, "")
	want("bad", 3955, blocked)
	want("x", 3955, blocked)
	want("bad", 3955, blocked)
	now = now.Add(25 * time.Hour)
	want("x", 3955, "(1 day(s) remaining)")
	now = now.Add(23 * time.Hour)
	want("x", 0, "")
	for range 3 {
		_, _ = login(t, a, "app", "bad")
	}
	want("x", 3955, "")
	rule(3, 2, 1) // ALTER USER .. ACCOUNT UNLOCK
	want("x", 0, "")
	for range 3 {
		_, _ = login(t, a, "app", "bad")
	}
	src["renamed@%"] = src["app@%"] // takes its stamp along
	if n, _ := login(t, a, "renamed", "x"); n != 3955 {
		t.Errorf("renamed: %d", n)
	}
	rule(3, 2, 2) // made anew by the name
	want("x", 0, "")
	rule(1, -1, 1)
	want("bad", 3955, "Account is blocked for unlimited day(s) (unlimited day(s) remaining) due to 1 consecutive failed logins.")
	now = now.Add(10000 * time.Hour)
	want("x", 3955, "unlimited")
	rule(1, 0, 1)
	want("bad", 1045, "")
	want("x", 0, "")
	if n, _ := login(t, a, "nobody", "x"); n != 1045 {
		t.Error(n)
	}
}

// TestSecondPassword: both open the account, also by the digests in memory, until the second one is discarded.
func TestSecondPassword(t *testing.T) {
	salt := []byte("abcdefghijklmnopqrst")
	src := source{}
	a, err := New(Options{Source: src})
	if err != nil {
		t.Fatal(err)
	}
	set := func(plugin, first, second string) *Account {
		hash := func(p string) string {
			switch {
			case p == "":
				return ""
			case plugin == Native:
				return priv.HashNative([]byte(p))
			}
			return priv.HashSHA2([]byte(p), salt)
		}
		x := Account{User: "app", Host: "%", Plugin: plugin, Hash: hash(first), Second: hash(second)}
		src["app@%"] = x
		return &x
	}
	opens := func(want string) {
		t.Helper()
		for _, p := range []string{"old", "new", "newer", ""} {
			if n, _ := login(t, a, "app", p); (n == 0) != (p != "" && strings.Contains(want+" ", p+" ")) {
				t.Errorf("%q: %d", p, n)
			}
		}
	}
	for _, plugin := range []string{SHA2, Native} {
		set(plugin, "old", "")
		opens("old")
		x := set(plugin, "new", "old")
		if plugin == SHA2 && a.Remembers(x) {
			t.Error("an answer by a password that is not in memory would be taken for a guess")
		}
		opens("new old")
		if plugin == SHA2 && !a.Remembers(x) {
			t.Error("both are in memory")
		}
		opens("new old")
		one := x.Credential()
		if y := set(plugin, "new", ""); string(y.Credential()) == string(one) {
			t.Error("who has come by the old password is not told apart")
		}
		opens("new")
		set(plugin, "newer", "new")
		opens("newer new")
	}
}

// TestGuessesOfOneNetwork: a host that has a network of IPv6 is one that guesses.
func TestGuessesOfOneNetwork(t *testing.T) {
	a, err := New(Options{Source: source{}, FreeFailures: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		a.Failed("root", fmt.Sprintf("2001:db8::%x", i+1))
		a.Failed("root", fmt.Sprintf("192.0.2.%d", i+1))
	}
	for address, waits := range map[string]bool{"2001:db8::ffff": true, "2001:db8:0:1::1": false, "192.0.2.1": false, "::ffff:192.0.2.1": false} {
		if d := a.Delay("root", address); d > 100*time.Millisecond != waits {
			t.Errorf("%s: %v", address, d)
		}
	}
}

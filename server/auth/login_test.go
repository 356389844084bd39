package auth

import (
	"context"
	"errors"
	"testing"

	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
)

func TestLogin(t *testing.T) {
	salt := []byte("abcdefghijklmnopqrst")
	a, err := New(Options{DelayMax: 1, Source: source{
		"app@%":    {User: "app", Host: "%", Plugin: SHA2, Hash: priv.HashSHA2([]byte("secret"), salt)},
		"old@%":    {User: "old", Host: "%", Plugin: Native, Hash: priv.HashNative([]byte("secret"))},
		"open@%":   {User: "open", Host: "%", Plugin: SHA2},
		"tls@%":    {User: "tls", Host: "%", Plugin: SHA2, Require: Requirement{Kind: "ANY"}},
		"locked@%": {User: "locked", Host: "%", Plugin: SHA2, Locked: true},
		"late@%":   {User: "late", Host: "%", Plugin: SHA2, Expired: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		user, password string
		tls            bool
		number         sqlerr.Code
	}{
		{"app", "secret", false, 0}, {"app", "secret", false, 0}, {"app", "Secret", false, 1045}, {"app", "", false, 1045},
		{"old", "secret", false, 0}, {"old", "x", false, 1045}, {"open", "", false, 0}, {"open", "x", false, 1045},
		{"tls", "", false, 1045}, {"tls", "", true, 0}, {"locked", "", false, 3118}, {"late", "", false, 1862},
		{"nobody", "", false, 1045}, {"nobody", "x", false, 1045}, {"app", "secret", false, 0},
	} {
		ch := Channel{}
		if c.tls {
			ch.Cipher = "TLS_AES_128_GCM_SHA256"
		}
		acct, err := a.Login(context.Background(), nil, c.user, "h", "1.1.1.1", c.password, &ch)
		var e *sqlerr.Error
		switch {
		case c.number == 0 && (err != nil || acct.User != c.user):
			t.Errorf("%s with %q: %v", c.user, c.password, err)
		case c.number != 0 && (!errors.As(err, &e) || e.Number != c.number):
			t.Errorf("%s with %q: %v", c.user, c.password, err)
		}
	}
}

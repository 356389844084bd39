package mysqlwire

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/server/auth"
)

// TestGuessesAtOnce: a client that has many connections prove passwords at the same time gets no more tries than one that has one: guesses count
// as soon as they are known to be wrong, and the right password opens nothing that is closed by then.
func TestGuessesAtOnce(t *testing.T) {
	for name, cached := range map[string]bool{"digest in memory": true, "no digest": false} {
		t.Run(name, func(t *testing.T) {
			tried := testAccounts["app"]
			tried.User, tried.Tries = "tried", auth.Tries{Most: 3, Days: 1, Unlocked: 1}
			all := maps.Clone(testAccounts)
			all["tried"] = tried
			r := serve(t, func(o *Options, _ *fake) {
				var err error
				if o.Auth, err = auth.New(auth.Options{Source: all, DelayMax: time.Millisecond}); err != nil {
					t.Fatal(err)
				}
			})
			if cached {
				if err := r.db(t, func(c *mysql.Config) { c.User = "tried" }).Ping(); err != nil {
					t.Fatal(err)
				}
			}
			// begin sends an answer by a password, and reads what the server says first.
			begin := func(password string) (*rawClient, []byte) {
				c := dialRaw(t, r.addr)
				c.send(appendResponse(nil, &response{capabilities: rawCaps | capLenencAuthData, user: "tried", plugin: PluginSHA2,
					auth: answerTo(PluginSHA2, password, c.g.nonce[:])}))
				return c, c.read()
			}
			wantFull := func(p []byte) {
				t.Helper()
				if len(p) != 2 || p[0] != headerMoreData || p[1] != sha2FullAuth {
					t.Fatalf("%q is no request for the password", p)
				}
			}
			if cached {
				for range 3 {
					_, p := begin("wrong") // and it never goes on
					wantFull(p)
				}
				if _, p := begin("secret"); p[0] != headerErr || parseError(p).Number != sqlerr.UserAccessDeniedForUserAccountBlockedByPasswordLock {
					t.Errorf("the right one: %q", p)
				}
				return
			}
			var waiting []*rawClient
			for range 4 {
				c, p := begin("whatever")
				wantFull(p)
				waiting = append(waiting, c)
			}
			finish := func(c *rawClient, password string) sqlerr.Code {
				c.send([]byte{sha2AskKey})
				key := c.read()
				c.send(encryptFor(t, key[1:], password, c.g.nonce[:]))
				if p := c.read(); p[0] == headerErr {
					return parseError(p).Number
				}
				return 0
			}
			for i, want := range []sqlerr.Code{sqlerr.AccessDeniedError, sqlerr.AccessDeniedError, sqlerr.UserAccessDeniedForUserAccountBlockedByPasswordLock} {
				if n := finish(waiting[i], "wrong"); n != want {
					t.Errorf("guess %d: error %d", i, n)
				}
			}
			if n := finish(waiting[3], "secret"); n != sqlerr.UserAccessDeniedForUserAccountBlockedByPasswordLock {
				t.Errorf("the right one: error %d", n)
			}
		})
	}
}

// encryptFor is a password as clients without TLS send it, for the server's key.
func encryptFor(t *testing.T, key []byte, password string, nonce []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(key)
	if block == nil {
		t.Fatalf("the key is %q", key)
	}
	pub, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	plain := append([]byte(password), 0)
	for i := range plain {
		plain[i] ^= nonce[i%len(nonce)]
	}
	b, err := rsa.EncryptOAEP(sha1.New(), rand.Reader, pub.(*rsa.PublicKey), plain, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

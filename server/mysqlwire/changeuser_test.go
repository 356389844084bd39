package mysqlwire

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // mysql_native_password is made of it
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/server/auth"
)

// answerTo is what a client answers to a nonce.
func answerTo(plugin, password string, nonce []byte) []byte {
	if plugin == PluginNative {
		first := sha1.Sum([]byte(password))
		second := sha1.Sum(first[:])
		third := sha1.Sum(append(append([]byte(nil), nonce...), second[:]...))
		subtle.XORBytes(first[:], first[:], third[:])
		return first[:]
	}
	first := sha256.Sum256([]byte(password))
	second := sha256.Sum256(first[:])
	third := sha256.Sum256(append(second[:], nonce...))
	subtle.XORBytes(first[:], first[:], third[:])
	return first[:]
}

// changeUser sends COM_CHANGE_USER and goes through what the server asks; the error's number, or 0. The nonce is
// the one that the client knows, and is changed when the server sends another.
func (c *rawClient) changeUser(user, plugin, password string) sqlerr.Code {
	c.t.Helper()
	answer := answerTo(plugin, password, c.g.nonce[:])
	b := append([]byte{byte(comChangeUser)}, user+"\x00"...)
	b = append(append(b, byte(len(answer))), answer...)
	c.command(append(b, "\x00\x21\x00"+plugin+"\x00"...)...)
	for range 5 {
		p := c.read()
		switch {
		case p[0] == headerErr:
			return parseError(p).Number
		case p[0] == headerOK:
			return 0
		case p[0] == headerMoreData && p[1] == sha2FastOK:
		default:
			_, nonce, ok := parseAuthSwitch(p)
			if !ok {
				c.t.Fatalf("%q", p)
			}
			copy(c.g.nonce[:], nonce)
			c.send(answerTo(plugin, password, nonce))
		}
	}
	c.t.Fatal("it never ends")
	return 0
}

// becomes sends COM_CHANGE_USER for a user without a password, and answers the request to prove it.
func (c *rawClient) becomes(user string) {
	c.t.Helper()
	c.command(append([]byte{byte(comChangeUser)}, user+"\x00\x00db\x00\xff\x00"+PluginSHA2+"\x00"...)...)
	if p := c.read(); p[0] != headerEOF {
		c.t.Errorf("change user: %q", p)
	}
	c.send(nil)
}

// TestChangeUserAndGone: a client that leaves while it is asked is no error of a statement.
func TestChangeUserAndGone(t *testing.T) {
	var log logged
	r := serve(t, func(o *Options, _ *fake) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	c := dialRaw(t, r.addr)
	c.login(0)
	c.command([]byte("\x11empty\x00\x00\x00\x21\x00" + PluginSHA2 + "\x00")...)
	c.read()
	_ = c.nc.Close()
	for until := time.Now().Add(patience); r.sessions() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the session stays")
		}
	}
	if text := log.String(); text != "" {
		t.Error(text)
	}
}

// logged is a log that tasks write.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestChangeUserIsAsked: COM_CHANGE_USER is answered by a request to prove it, with a nonce of its own, whatever it has
// brought. Oracle's library brings nothing and waits for that: it is neither refused nor counted as a wrong password.
func TestChangeUserIsAsked(t *testing.T) {
	tried := testAccounts["app"]
	tried.User, tried.Tries = "tried", auth.Tries{Most: 2, Days: 1, Unlocked: 1}
	all := maps.Clone(testAccounts)
	all["tried"] = tried
	r := serve(t, func(o *Options, _ *fake) {
		var err error
		if o.Auth, err = auth.New(auth.Options{Source: all, DelayMax: time.Millisecond}); err != nil {
			t.Fatal(err)
		}
	})
	// Their digests are in memory then: a client without TLS sends no password.
	for _, user := range []string{"app", "tried"} {
		if err := r.db(t, func(c *mysql.Config) { c.User = user }).Ping(); err != nil {
			t.Fatal(err)
		}
	}
	c := dialRaw(t, r.addr)
	c.login(0)
	greeted := c.g.nonce
	known := map[string]bool{string(greeted[:]): true}
	// change sends COM_CHANGE_USER with a proof, and then what answers the request; the error's number, or 0.
	change := func(user, plugin, proof, password string) sqlerr.Code {
		t.Helper()
		b := append([]byte{byte(comChangeUser)}, user+"\x00"...)
		b = append(append(b, byte(len(proof))), proof...)
		c.command(append(b, "\x00\x21\x00"+plugin+"\x00"...)...)
		p := c.read()
		asked, nonce, ok := parseAuthSwitch(p)
		if want := all[user].Plugin; !ok || asked != want || len(nonce) != nonceSize || known[string(nonce)] {
			t.Fatalf("%s with %q: the answer is %q", user, proof, p)
		}
		known[string(nonce)] = true
		if password == "" {
			c.send(nil)
		} else {
			c.send(answerTo(asked, password, nonce))
		}
		for {
			switch p := c.read(); {
			case p[0] == headerErr:
				return parseError(p).Number
			case p[0] == headerOK:
				return 0
			case p[0] != headerMoreData || p[1] != sha2FastOK:
				t.Fatalf("%s with %q: %q", user, proof, p)
			}
		}
	}
	for _, k := range []struct{ user, plugin, proof, password string }{
		{"tried", PluginSHA2, "", "secret"}, {"tried", PluginSHA2, "", "secret"}, {"tried", PluginSHA2, "", "secret"},
		{"app", PluginSHA2, "\x00", "secret"},
		{"app", PluginSHA2, string(answerTo(PluginSHA2, "secret", greeted[:])), "secret"},
		{"app", PluginNative, "", "secret"}, {"native", PluginSHA2, "", "secret"}, {"native", PluginNative, "", "secret"},
		{"empty", PluginSHA2, "", ""}, {"empty", PluginNative, "", ""}, {"empty", PluginSHA2, "what nobody looks at", ""},
	} {
		if n := change(k.user, k.plugin, k.proof, k.password); n != 0 {
			t.Fatalf("%+v: error %d", k, n)
		}
	}
	if n := change("tried", PluginSHA2, "", ""); n != sqlerr.AccessDeniedError {
		t.Errorf("without its password: error %d", n)
	}
}

// TestChangeUserThroughMember: who is relayed may become somebody else as at the leader's own port, again and
// again, also if the member that relays tells nothing of its nonce.
func TestChangeUserThroughMember(t *testing.T) {
	for name, change := range map[string]func(*Handover){"told": func(*Handover) {}, "untold": func(h *Handover) { h.Nonce = nil }} {
		t.Run(name, func(t *testing.T) {
			var announced *Handover
			leader := serve(t, func(o *Options, _ *fake) {
				o.Redeem = func([]byte) *Handover { return announced }
			})
			follower := serve(t, func(o *Options, _ *fake) {
				o.Forward = func(_ context.Context, h *Handover) (*Target, error) {
					change(h)
					announced = h
					return &Target{Member: 7, Addr: leader.addr, Ticket: []byte("t")}, nil
				}
			})
			// The digest of the password has to be known: a client without TLS sends no password itself.
			if err := leader.db(t, nil).Ping(); err != nil {
				t.Fatal(err)
			}
			for _, plugin := range []string{PluginNative, PluginSHA2} {
				user := map[string]string{PluginNative: "native", PluginSHA2: "app"}[plugin]
				for _, addr := range []string{leader.addr, follower.addr} {
					c := dialRaw(t, addr)
					c.login(0)
					for range 2 {
						if n := c.changeUser(user, plugin, "secret"); n != 0 {
							t.Fatalf("%s, the leader's own port %v: error %d", plugin, addr == leader.addr, n)
						}
					}
					if plugin == PluginSHA2 {
						continue // a wrong one asks for the password itself
					}
					if n := c.changeUser(user, plugin, "wrong"); n != 1045 {
						t.Errorf("%s, a wrong password: error %d", plugin, n)
					}
				}
			}
		})
	}
}

package mysqlwire

import (
	"context"
	"crypto/sha1" //nolint:gosec // mysql_native_password is made of it
	"crypto/sha256"
	"crypto/subtle"
	"testing"

	"github.com/triremedb/trireme/engine/sqlerr"
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

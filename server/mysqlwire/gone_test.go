package mysqlwire

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// TestGoneSessionsEnd: the connection of a session that is of no more use ends with the answer after which it is not, here
// and where it is relayed: a client that sends nothing more would keep what its transaction has locked.
func TestGoneSessionsEnd(t *testing.T) {
	leader, follower := relays(t, nil)
	for _, addr := range []string{leader.addr, follower.addr} {
		for text, want := range map[string]sqlerr.Code{"release": 0, "stuck": 1105} {
			c := dialRaw(t, addr)
			c.login(0)
			c.command(append([]byte{byte(comQuery)}, text...)...)
			if want != 0 {
				c.wantError(want)
			} else if p := c.read(); p[0] != headerOK {
				t.Errorf("%s: %q", text, p)
			}
			_ = c.nc.SetDeadline(time.Now().Add(patience / 12))
			if !c.ended() {
				t.Fatalf("%s: the connection stays", text)
			}
			eventually(t, "the session has ended", func() bool { return leader.sessions() == 0 })
		}
	}
}

// TestGoneWithTheLead: who ends because the node leads no more is told so, also before DropWriters comes to it.
func TestGoneWithTheLead(t *testing.T) {
	var deposed atomic.Bool
	r := serve(t, func(o *Options, _ *fake) { o.Serves = func() bool { return !deposed.Load() } })
	c := dialRaw(t, r.addr)
	c.login(0)
	c.command(byte(comPing)) // its answer is after the server's look at a connection that has just signed in
	if p := c.read(); p[0] != headerOK {
		t.Fatalf("% x", p)
	}
	deposed.Store(true)
	c.command(append([]byte{byte(comQuery)}, "release"...)...)
	c.read()
	c.seq = 0
	c.wantError(1053)
}

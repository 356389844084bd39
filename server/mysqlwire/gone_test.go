package mysqlwire

import (
	"fmt"
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

// TestKillOfWhoDoesNotRead: a connection whose client takes nothing of its result ends soon after a KILL, not after net_write_timeout,
// and gives back what its session has.
func TestKillOfWhoDoesNotRead(t *testing.T) {
	r := serve(t, nil)
	for _, stuck := range []bool{false, true} {
		c := dialRaw(t, r.addr)
		c.login(0)
		id := uint64(c.g.id)
		c.command([]byte("\x03wide 1000000")...)
		var victim *conn
		eventually(t, "the server waits for its client", func() bool {
			for _, of := range r.s.all() {
				if since := of.writeSince.Load(); of.id == id && since != 0 {
					victim = of
					return !stuck || of.s.clock.Load()+1-since > 1
				}
			}
			return false
		})
		began := time.Now()
		killer := dialRaw(t, r.addr)
		killer.login(0)
		killer.command(fmt.Appendf(nil, "\x03kill %d", id)...)
		if p := killer.read(); p[0] != headerOK {
			t.Fatalf("%q", p)
		}
		eventually(t, "the session is closed", func() bool { return r.sessions() == 1 })
		if took := time.Since(began); took > 20*time.Second { // of net_write_timeout's minute, on a busy machine
			t.Errorf("it took %v", took)
		}
		if !victim.killed.Load() {
			t.Error("it ended before")
		}
		_ = killer.nc.Close()
		eventually(t, "all are gone", func() bool { return r.sessions() == 0 })
	}
}

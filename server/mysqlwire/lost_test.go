package mysqlwire

import (
	"crypto/tls"
	"sync/atomic"
	"testing"
	"time"
)

// TestLostClient: a statement ends soon whose client is gone, at each door, unless that is not wanted.
func TestLostClient(t *testing.T) {
	leader, follower := relays(t, nil)
	for name, addr := range map[string]string{"main": leader.addr, "reads": leader.ro, "relayed": follower.addr} {
		c := dialRaw(t, addr)
		c.login(0)
		c.command(append([]byte{byte(comQuery)}, "sleep"...)...)
		eventually(t, name+": it sleeps", func() bool { return leader.waiting.Load() == 1 })
		c.command(byte(comQuit)) // what comes after the statement does not hide the end
		_ = c.nc.Close()
		eventually(t, name+": the session has ended", func() bool { return leader.sessions() == 0 && leader.waiting.Load() == 0 })
	}
}

// TestLostClientByTLS is the same with TLS, where the end is a message in the connection.
func TestLostClientByTLS(t *testing.T) {
	r := serve(t, nil)
	c := dialRaw(t, r.addr)
	resp := &response{capabilities: rawCaps | capLenencAuthData | capSSL, user: "empty", plugin: PluginSHA2}
	c.send(appendResponse(nil, resp)[:32])
	s := tls.Client(c.nc, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test
	if err := s.Handshake(); err != nil {
		t.Fatal(err)
	}
	raw := c.nc
	c.nc = s
	c.r.src = s
	c.send(appendResponse(nil, resp))
	if p := c.read(); p[0] != headerOK {
		t.Fatalf("%q", p)
	}
	c.command(append([]byte{byte(comQuery)}, "sleep"...)...)
	eventually(t, "it sleeps", func() bool { return r.waiting.Load() == 1 })
	_ = raw.Close()
	eventually(t, "the session has ended", func() bool { return r.sessions() == 0 })
}

// TestLostClientMayStay: with 0 statements go on, and again end when that is changed.
func TestLostClientMayStay(t *testing.T) {
	var every atomic.Int64
	r := serve(t, func(o *Options, _ *fake) { o.ClientCheck = func() time.Duration { return time.Duration(every.Load()) } })
	c := dialRaw(t, r.addr)
	c.login(0)
	c.command(append([]byte{byte(comQuery)}, "sleep"...)...)
	eventually(t, "it sleeps", func() bool { return r.waiting.Load() == 1 })
	_ = c.nc.Close()
	time.Sleep(300 * time.Millisecond)
	if r.sessions() != 1 {
		t.Error("it has ended")
	}
	every.Store(int64(10 * time.Millisecond))
	eventually(t, "the session has ended", func() bool { return r.sessions() == 0 })
}

// TestPresentClientStays: who is there is left alone, also if it has sent more than was read.
func TestPresentClientStays(t *testing.T) {
	r := serve(t, func(o *Options, f *fake) {
		f.gate = make(chan struct{})
		o.ClientCheck = func() time.Duration { return time.Millisecond }
	})
	c := dialRaw(t, r.addr)
	c.login(0)
	c.command(append([]byte{byte(comQuery)}, "gate"...)...)
	c.command(byte(comPing))
	eventually(t, "it waits", func() bool { return r.waiting.Load() == 1 })
	time.Sleep(100 * time.Millisecond)
	close(r.gate)
	c.seq = 1
	for range 1003 { // columns and rows of the statement
		c.read()
	}
}

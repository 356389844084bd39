package mysqlwire

import "testing"

// TestOKWithoutSessionTrack: the text of an OK packet has its length before it, which
// Connector/J among others relies on.
func TestOKWithoutSessionTrack(t *testing.T) {
	r := serve(t, nil)
	c := dialRaw(t, r.addr)
	c.login(0)
	c.command([]byte("\x03insert")...)
	if p, want := c.read(), "\x00\x03\x4d\x02\x00\x02\x00\x0aRecords: 3"; string(p) != want {
		t.Errorf("%q\n%q", p, want)
	}
}

package mysqlwire

import (
	"strings"
	"testing"
)

// TestUnsent: a client that stops in the middle of a packet or of a file is told to go after net_read_timeout; one
// that sends no command is only idle.
func TestUnsent(t *testing.T) {
	r := serve(t, nil)
	stalled := func(send string, caps capability) (*rawClient, *conn) {
		t.Helper()
		before := map[*conn]bool{}
		for _, c := range r.s.all() {
			before[c] = true
		}
		c := dialRaw(t, r.addr)
		c.login(caps)
		if _, err := c.nc.Write([]byte(send)); err != nil {
			t.Fatal(err)
		}
		for _, of := range r.s.all() {
			if !before[of] {
				return c, of
			}
		}
		t.Fatal("there is no connection")
		return nil, nil
	}
	for name, send := range map[string]string{"a header": "\x06\x00", "a packet": "\x06\x00\x00\x00\x03que", "a long one": "\xff\xff\xff\x00\x03que",
		"a file":           "\x0a\x00\x00\x00\x03load file",
		"a frame's header": "\x0a\x00\x00\x00", "a frame": "\x0a\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00\x03que"} {
		caps := capLocalFiles
		if strings.Contains(name, "frame") {
			caps = capCompress
		}
		c, of := stalled(send, caps)
		if name == "a file" {
			c.seq = 1
			if p := c.read(); p[0] != headerLocalFile {
				t.Fatalf("%q", p)
			}
		}
		eventually(t, "it waits for more of "+name, func() bool { return of.readSince.Load() != 0 })
		of.sweep(r.s.clock.Load() + 29)
		if of.ending.Load() != nil {
			t.Errorf("%s: ended early", name)
		}
		of.sweep(r.s.clock.Load() + 40)
		if told := of.ending.Load(); told == nil || told.Number != 1159 || !c.ended() {
			t.Errorf("%s: %v", name, told)
		}
	}
	c, of := stalled("\x01\x00\x00\x00\x0e", 0)
	c.seq = 1
	c.read()
	eventually(t, "it is idle", func() bool { return of.idleSince.Load() != 0 })
	if of.readSince.Load() != 0 {
		t.Error("who is idle counts as who stops in the middle")
	}
}

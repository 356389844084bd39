package auth

import (
	"net"
	"testing"
)

func TestCrowd(t *testing.T) {
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 1} }
	c := NewCrowd(8)
	var leave []func()
	enter := func(ip string, want bool) {
		t.Helper()
		out := c.Enter(at(ip))
		if (out != nil) != want {
			t.Errorf("%s: %v", ip, out != nil)
		}
		if out != nil {
			leave = append(leave, out)
		}
	}
	for range 6 {
		enter("2001:db8::1", true)
	}
	enter("2001:db8::ffff", false) // the same network
	enter("2001:db8:0:1::1", true)
	enter("10.0.0.1", true)
	enter("10.0.0.2", false)
	leave[0]()
	leave[0]()
	enter("::ffff:10.0.0.1", true)
	enter("10.0.0.1", false)
	for _, out := range leave {
		out()
	}
	if c.all != 0 || len(c.from) != 0 {
		t.Error(c.all, c.from)
	}
	if Network(nil) != "" || Network(&net.UnixAddr{Name: "x"}) != "" {
		t.Error("an address of this machine")
	}
}

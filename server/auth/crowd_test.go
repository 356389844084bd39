package auth

import (
	"net"
	"testing"
)

// TestCrowdLeavesRoom: sources that take all they can leave something for the next one.
func TestCrowdLeavesRoom(t *testing.T) {
	c := NewCrowd(64)
	for _, source := range []struct {
		name string
		want int
	}{{"a", 48}, {"b", 12}, {"c", 3}, {"d", 1}} {
		taken := 0
		for c.EnterFrom(source.name) != nil {
			taken++
		}
		if taken != source.want {
			t.Errorf("%s has %d of 64, want %d", source.name, taken, source.want)
		}
	}
	c = NewCrowd(64)
	// Four that take what they can, and give back what they have had for the longest.
	places := map[string][]func(){}
	for range 1000 {
		for _, name := range []string{"a", "b", "c", "d"} {
			if len(places[name]) > 0 {
				places[name][0]()
				places[name] = places[name][1:]
			}
			for {
				leave := c.EnterFrom(name)
				if leave == nil {
					break
				}
				places[name] = append(places[name], leave)
			}
		}
	}
	if c.EnterFrom("e") == nil {
		t.Error("nothing is left for the next one")
	}
}

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

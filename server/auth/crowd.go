package auth

import (
	"net"
	"net/netip"
	"sync"
)

// Crowd counts those who are on the way in, or at work: so many at a time, and fewer of one source, so that who
// knocks there without end does not keep out all others. A source has at most three times what is free: alone
// it gets three quarters, the next one three quarters of the rest; and of k that come again and again each
// gets 3/(3k+1), so that something stays free.
type Crowd struct {
	most int

	mu   sync.Mutex
	all  int
	from map[string]int
}

// NewCrowd returns an empty crowd of at most so many.
func NewCrowd(most int) *Crowd { return &Crowd{most: most, from: make(map[string]int)} }

// Enter counts one in from an address, and returns how it is counted out, once; nil: there is no room.
func (c *Crowd) Enter(a net.Addr) (leave func()) { return c.EnterFrom(Network(a)) }

// EnterFrom is Enter for a source of any kind: an account, say.
func (c *Crowd) EnterFrom(source string) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.from[source] >= 3*(c.most-c.all) {
		return nil
	}
	c.all++
	c.from[source]++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all--
		if c.from[source]--; c.from[source] <= 0 {
			delete(c.from, source)
		}
	})
}

// Len is how many there are.
func (c *Crowd) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// Network is the address of the other side, of IPv6 the network that one host has (/64); empty: this
// machine's sockets.
func Network(a net.Addr) string {
	if a == nil {
		return ""
	}
	of, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return ""
	}
	return networkOf(of.Addr())
}

func networkOf(address netip.Addr) string {
	address = address.Unmap()
	if address.Is4() {
		return address.String()
	}
	network, err := address.WithZone("").Prefix(64)
	if err != nil {
		return ""
	}
	return network.String()
}

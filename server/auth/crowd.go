package auth

import (
	"net"
	"net/netip"
	"sync"
)

// Crowd counts those who are on the way in: so many at a time, and fewer of one address, so that who knocks
// there without end does not keep out all others.
type Crowd struct {
	most, mostFrom int

	mu   sync.Mutex
	all  int
	from map[string]int
}

// NewCrowd returns an empty crowd. Of most three quarters may come from one address.
func NewCrowd(most int) *Crowd {
	return &Crowd{most: most, mostFrom: most * 3 / 4, from: make(map[string]int)}
}

// Enter counts one in, and returns how it is counted out, once; nil: there is no room.
func (c *Crowd) Enter(a net.Addr) (leave func()) {
	address := Network(a)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= c.most || c.from[address] >= c.mostFrom {
		return nil
	}
	c.all++
	c.from[address]++
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all--
		if c.from[address]--; c.from[address] <= 0 {
			delete(c.from, address)
		}
	})
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
	address := of.Addr().Unmap()
	if address.Is4() {
		return address.String()
	}
	network, err := address.WithZone("").Prefix(64)
	if err != nil {
		return ""
	}
	return network.String()
}

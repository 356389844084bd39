package mysqlwire

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// dialFrom connects from an address of this machine.
func dialFrom(t *testing.T, from, addr string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	nc, err := d.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = nc.SetDeadline(time.Now().Add(patience))
	return nc
}

// greeted reads what the server says first; the number of its error, or 0.
func greeted(t *testing.T, nc net.Conn) uint16 {
	t.Helper()
	var seq uint8
	r := packetReader{src: nc, seq: &seq, max: maxHandshake}
	p, err := r.next()
	if err != nil {
		t.Fatal(err)
	}
	if p[0] == headerErr {
		return parseError(p).Number
	}
	return 0
}

// TestNewcomersOfOneAddress: a host that fills all the places it may have leaves some for
// others, and has them back when its connections are gone.
func TestNewcomersOfOneAddress(t *testing.T) {
	r := serve(t, nil)
	var flood []net.Conn
	defer func() {
		for _, nc := range flood {
			_ = nc.Close()
		}
	}()
	for i := range maxFrom {
		nc := dialFrom(t, "127.0.0.1", r.addr)
		flood = append(flood, nc)
		if n := greeted(t, nc); n != 0 {
			t.Fatalf("connection %d: error %d", i, n)
		}
	}
	for _, addr := range []string{r.addr, r.ro} {
		nc := dialFrom(t, "127.0.0.1", addr)
		if n := greeted(t, nc); n != 1040 {
			t.Errorf("one more of the same address: error %d", n)
		}
		_ = nc.Close()
	}
	mysql.RegisterDialContext("other", func(ctx context.Context, addr string) (net.Conn, error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
		return d.DialContext(ctx, "tcp", addr)
	})
	other := r.db(t, func(c *mysql.Config) { c.Net = "other" })
	if err := other.Ping(); err != nil {
		t.Error("from another address:", err)
	}
	for _, nc := range flood {
		_ = nc.Close()
	}
	eventually(t, "the places are free again", func() bool {
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		return r.s.newcomers == 0 && len(r.s.from) == 0
	})
	if err := r.db(t, nil).Ping(); err != nil {
		t.Error("after the flood:", err)
	}
}

type addressed struct {
	net.Conn
	addr net.Addr
}

func (a addressed) RemoteAddr() net.Addr { return a.addr }

func TestAddressOf(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7": "192.0.2.7", "::ffff:192.0.2.7": "192.0.2.7", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::1": "2001:db8:1:2::/64", "::1": "::/64",
	} {
		nc := addressed{addr: &net.TCPAddr{IP: net.ParseIP(text), Port: 4711}}
		if got := addressOf(nc); got != want {
			t.Errorf("%s: %q instead of %q", text, got, want)
		}
	}
	if got := addressOf(addressed{addr: &net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0", Port: 1}}); got != "fe80::/64" {
		t.Errorf("%q", got)
	}
	if got := addressOf(addressed{addr: &net.UnixAddr{Name: "@", Net: "unix"}}); got != "" {
		t.Errorf("%q", got)
	}
}

package mysqlwire

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/triremedb/trireme/engine/sqlerr"
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
func greeted(t *testing.T, nc net.Conn) sqlerr.Code {
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
	// Who says nothing makes room for who logs in, the oldest first.
	if err := r.db(t, nil).Ping(); err != nil {
		t.Error("beside those that say nothing:", err)
	}
	if _, err := flood[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest that has said nothing: %v", err)
	}
	flood[0] = dialFrom(t, "127.0.0.1", r.addr)
	eventually(t, "all places are taken", func() bool {
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		return r.s.newcomers.len() == maxFrom
	})
	for _, nc := range flood { // they want TLS, and begin none
		if _, err := nc.Write(append([]byte{32, 0, 0, 1}, []byte{0, 0x8a, 0, 0, 0, 0, 0, 1, 45, 31: 0}...)); err != nil {
			t.Fatal(err)
		}
	}
	spoken := func() int {
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		return r.s.newcomers.spoken.Len()
	}
	eventually(t, "all have spoken", func() bool { return spoken() == maxFrom })
	r.s.mu.Lock()
	for c := range r.s.conns { // as if just now, however slow the machine is
		c.accepted = time.Now().Add(time.Hour)
	}
	r.s.mu.Unlock()
	for _, addr := range []string{r.addr, r.ro} {
		nc := dialFrom(t, "127.0.0.1", addr)
		if n := greeted(t, nc); n != 1040 {
			t.Errorf("one more of the same address: error %d", n)
		}
		_ = nc.Close()
	}
	r.s.mu.Lock()
	for c := range r.s.conns {
		c.accepted = time.Now().Add(-newcomerTime)
	}
	r.s.mu.Unlock()
	if err := r.db(t, nil).Ping(); err != nil {
		t.Error("beside those that begin no TLS in time:", err)
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
		return r.s.newcomers.len() == 0 && len(r.s.newcomers.from) == 0
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

// sockets is how many sockets this process has open; -1 where nobody says.
func sockets() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	n := 0
	for _, f := range list {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// TestPasswordFlood: clients that guess, and clients that never finish what they begin, leave
// nothing behind, and do not keep out those of the same name who come from elsewhere.
func TestPasswordFlood(t *testing.T) {
	r := serve(t, func(o *Options, _ *fake) { o.ConnectTimeout = time.Second })
	mysql.RegisterDialContext("elsewhere", func(ctx context.Context, addr string) (net.Conn, error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.3")}}
		return d.DialContext(ctx, "tcp", addr)
	})
	elsewhere := func(c *mysql.Config) { c.Net = "elsewhere" }
	eventually(t, "a first login", func() bool { return r.db(t, elsewhere).Ping() == nil })
	goroutines, open := runtime.NumGoroutine(), sockets()

	login := appendResponse(nil, &response{capabilities: rawCaps | capLenencAuthData, user: "app", auth: make([]byte, 32), plugin: PluginSHA2})
	packet := func(seq byte, p []byte) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(p))|uint32(seq)<<24), p...)
	}
	type kind struct {
		name  string
		bytes []byte
		stay  bool // the client does not close
	}
	kinds := []kind{
		{"nothing", nil, false},
		{"nothing, and stays", nil, true},
		{"half a header", []byte{1, 0}, true},
		{"a header", []byte{200, 0, 0, 1}, true},
		{"half a packet", packet(1, login)[:40], true},
		{"half a packet, and gone", packet(1, login)[:40], false},
		{"a wrong password", packet(1, login), true},
		{"a wrong password, and gone", packet(1, login), false},
		{"an unknown user", packet(1, appendResponse(nil, &response{capabilities: rawCaps | capLenencAuthData, user: "nobody", plugin: PluginNative})), true},
		{"TLS that does not come", packet(1, []byte{0, 0x8a, 0, 0, 0, 0, 0, 1, 45, 31: 0}), true},
		{"TLS that is none", append(packet(1, []byte{0, 0x8a, 0, 0, 0, 0, 0, 1, 45, 31: 0}), "GET / HTTP/1.1\r\n\r\n"...), true},
		{"another protocol", []byte("GET / HTTP/1.1\r\n\r\n"), true},
	}
	for name, hello := range helloes(t) {
		kinds = append(kinds, kind{name, append(packet(1, []byte{0, 0x8a, 0, 0, 0, 0, 0, 1, 45, 31: 0}), hello...), true})
	}
	var flood sync.WaitGroup
	for range 8 {
		flood.Add(1)
		go func() {
			defer flood.Done()
			var stay []net.Conn
			for range 3 {
				for _, k := range kinds {
					nc, err := net.Dial("tcp", r.addr)
					if err != nil {
						t.Errorf("%s: %v", k.name, err)
						continue
					}
					_ = nc.SetDeadline(time.Now().Add(patience))
					_, _ = nc.Write(k.bytes)
					if !k.stay {
						_ = nc.Close()
						continue
					}
					stay = append(stay, nc)
				}
			}
			for _, nc := range stay { // until the server has had enough
				if _, err := io.Copy(io.Discard, nc); errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("a connection stays")
				}
				_ = nc.Close()
			}
		}()
	}
	for range 20 {
		db := r.db(t, elsewhere)
		if err := db.Ping(); err != nil {
			t.Errorf("login from elsewhere: %v", err)
		}
		_ = db.Close()
	}
	for range 5 { // in turn: guesses, each given up when the server wants more
		nc := dialFrom(t, "127.0.0.4", r.addr)
		if n := greeted(t, nc); n != 0 {
			t.Fatalf("error %d", n)
		}
		_, _ = nc.Write(packet(1, login))
		_, _ = io.ReadFull(nc, make([]byte, headerSize+2))
		_ = nc.Close()
	}
	flood.Wait()
	for _, from := range []string{"127.0.0.1", "127.0.0.4"} {
		eventually(t, "who guesses is slowed down", func() bool { return r.s.opt.Auth.Delay("app", from) > 0 })
	}
	if d := r.s.opt.Auth.Delay("app", "127.0.0.3"); d != 0 {
		t.Errorf("others wait for %v", d)
	}
	eventually(t, "no connection is left", func() bool {
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		return r.s.newcomers.len() == 0 && len(r.s.newcomers.from) == 0 && r.s.reserved == 0 && r.s.admitted <= 1
	})
	eventually(t, "no task is left", func() bool { return runtime.NumGoroutine() <= goroutines })
	eventually(t, "no socket is left", func() bool { return sockets() <= open })
	if err := r.db(t, nil).Ping(); err != nil {
		t.Error("the right password after the wrong ones:", err)
	}
}

// TestNoRoom: who comes while descriptors are kept for files is told that there are too many connections.
func TestNoRoom(t *testing.T) {
	var room atomic.Bool
	r := serve(t, func(o *Options, _ *fake) { o.HasRoom = func(net.Conn, int) bool { return room.Load() } })
	for _, want := range []int{1040, 0} {
		nc := dialFrom(t, "127.0.0.1", r.addr)
		if n := greeted(t, nc); int(n) != want {
			t.Errorf("error %d, want %d", n, want)
		}
		_ = nc.Close()
		room.Store(true)
	}
}

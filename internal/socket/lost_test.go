//go:build linux

package socket

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

// TestLost: the end of a connection is seen, also behind what was not read, and nothing else is taken for it.
func TestLost(t *testing.T) {
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(t.TempDir(), "s")} {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for name, end := range map[string]func(net.Conn){
			"closed": func(c net.Conn) { _ = c.Close() },
			"reset": func(c net.Conn) {
				if tcp, ok := c.(*net.TCPConn); ok {
					_ = tcp.SetLinger(0)
				}
				_ = c.Close()
			},
		} {
			there, err := net.Dial(network, l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			here, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if Lost(here) || Lost(there) {
				t.Errorf("%s, %s: at its beginning", network, name)
			}
			if _, err := there.Write([]byte("not read")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			if Lost(here) {
				t.Errorf("%s, %s: while there is something to be read", network, name)
			}
			end(there)
			for until := time.Now().Add(10 * time.Second); !Lost(here); time.Sleep(time.Millisecond) {
				if time.Now().After(until) {
					t.Fatalf("%s, %s: it is not seen", network, name)
				}
			}
			_ = here.Close()
			if Lost(here) {
				t.Errorf("%s, %s: closed here", network, name)
			}
		}
	}
	left, right := net.Pipe()
	defer right.Close()
	if Lost(left) {
		t.Error("of which nobody knows")
	}
}

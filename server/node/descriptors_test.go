package node

import (
	"io"
	"net"
	"testing"

	"github.com/triremedb/trireme/internal/socket"
)

// TestClientDescriptors: clients leave the descriptors that files need, and get half of those that are few.
func TestClientDescriptors(t *testing.T) {
	for _, test := range []struct{ limit, openFiles, want uint64 }{
		{1 << 20, 4000, 1<<20 - 4256}, {1024, 4000, 512}, {1024, 100, 668}, {300, 4000, 150}, {16, 10, 8},
	} {
		if got := clientDescriptors(test.limit, test.openFiles); got != test.want {
			t.Errorf("of %d descriptors, with %d open files, clients get those below %d; want %d", test.limit, test.openFiles, got, test.want)
		}
	}
}

// TestRoomy: connections for which there is no room are closed, and those after them are taken.
func TestRoomy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	refused := 0
	r := &roomy{l, func(c net.Conn) bool {
		if n := socket.Number(c); n <= 2 || uint64(n) >= socket.Numbers() {
			t.Errorf("the connection's descriptor is %d of %d", n, socket.Numbers())
		}
		refused++
		return refused > 2
	}}
	var clients []net.Conn
	for range 3 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients = append(clients, c)
	}
	c, err := r.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, gone := range clients[:2] {
		if _, err := gone.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("a connection that there was no room for: %v", err)
		}
	}
	if c.RemoteAddr().String() != clients[2].LocalAddr().String() {
		t.Errorf("%v was taken", c.RemoteAddr())
	}
}

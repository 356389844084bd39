//go:build monitoring

package monitoring

import (
	"io"
	"net"
	"sync"
	"testing"
)

// relay stands between a member's port for members and the others, so that a test can cut it off from
// them, and not from Prometheus and clients.
type relay struct {
	l  net.Listener
	to string

	mu          sync.Mutex
	cut         bool
	connections map[net.Conn]bool
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{l: l, connections: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = l.Close()
		r.pull()
	})
	return r
}

// serve lets members through to an address.
func (r *relay) serve(to string) {
	r.to = to
	go func() {
		for {
			c, err := r.l.Accept()
			if err != nil {
				return // the test is over
			}
			go r.pass(c)
		}
	}()
}

// pass carries what is said over a connection.
func (r *relay) pass(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", r.to)
	if err != nil {
		return
	}
	defer to.Close()
	defer r.forget(from, to)
	if !r.open(from, to) {
		return
	}
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
}

func (r *relay) open(list ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range list {
		r.connections[c] = true
	}
	return !r.cut
}

func (r *relay) forget(list ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range list {
		delete(r.connections, c)
	}
}

// pull ends all connections, and lets none through from now on.
func (r *relay) pull() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = true
	for c := range r.connections {
		_ = c.Close()
	}
}

// plug lets connections through again.
func (r *relay) plug() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = false
}

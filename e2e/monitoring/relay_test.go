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
	swallows    bool // what is larger than swallowed, and all behind it on the connection
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
		_, _ = io.Copy(&path{r: r, to: to}, from)
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
}

// swallowed is from what size on packets are lost on a path with a small MTU, in bytes.
const swallowed = 600

// path is one direction of a connection.
type path struct {
	r    *relay
	to   net.Conn
	lost bool
}

// Write implements io.Writer.
func (p *path) Write(b []byte) (int, error) {
	p.r.mu.Lock()
	p.lost = p.lost || p.r.swallows && len(b) > swallowed
	p.r.mu.Unlock()
	if p.lost {
		return len(b), nil
	}
	return p.to.Write(b)
}

// swallow lets larger packets be lost on the way in, or not any more.
func (r *relay) swallow(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.swallows = on
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

package group_test

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// network is between the nodes of a cluster: a relay for each ordered pair of nodes, which the
// one dials to reach the other. Clients do not pass here.
type network struct {
	t  *testing.T
	mu sync.Mutex
	// changed tells of every change of what follows.
	changed *sync.Cond
	closed  bool
	relays  map[link]*relay
	all     sync.WaitGroup
}

// link is a direction between two nodes.
type link struct{ from, to uint64 }

func (l link) back() link { return link{l.to, l.from} }

// cut is how a link is cut.
type cut uint8

const (
	whole cut = iota
	// silent: bytes, and the end of a connection, stay where they are until the link is healed,
	// as while a network loses packets. A connection comes about only while both
	// directions are whole.
	silent
	// rejected: connections are reset and new ones refused, as by a firewall that rejects. The
	// process behind it lives.
	rejected
)

// relay carries the connections that one node dials to another.
type relay struct {
	at, target string
	cut        cut
	listener   net.Listener // nil: connections are refused
	conns      map[net.Conn]bool
}

func newNetwork(t *testing.T) *network {
	w := &network{t: t, relays: map[link]*relay{}}
	w.changed = sync.NewCond(&w.mu)
	return w
}

// add lets a node reach another which listens on a port of 127.0.0.1.
func (w *network) add(l link, port string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.relays[l] = &relay{at: net.JoinHostPort(relayAddr(l.from, l.to), port), target: net.JoinHostPort("127.0.0.1", port), conns: map[net.Conn]bool{}}
	w.listen(l)
}

// listen begins to accept connections. The lock is held.
func (w *network) listen(l link) {
	r := w.relays[l]
	if r.listener != nil || w.closed {
		return
	}
	listener, err := net.Listen("tcp", r.at)
	if err != nil {
		w.t.Errorf("the relay from node %d to node %d: %v", l.from, l.to, err)
		return
	}
	r.listener = listener
	w.all.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			w.all.Go(func() { w.carry(c, l, r) })
		}
	})
}

func (w *network) close() {
	w.mu.Lock()
	w.closed = true
	for _, r := range w.relays {
		r.reject()
	}
	w.changed.Broadcast()
	w.mu.Unlock()
	w.all.Wait()
}

// reject ends all connections and refuses new ones.
func (r *relay) reject() {
	if r.listener != nil {
		_ = r.listener.Close()
		r.listener = nil
	}
	for c := range r.conns {
		reset(c)
	}
}

// reset ends a connection with a reset.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// set cuts links, or heals them. What rejects does so in both directions: a connection has both.
func (w *network) set(how cut, links ...link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range links {
		directions := []link{l}
		if how == rejected {
			directions = append(directions, l.back())
		}
		for _, l := range directions {
			if r := w.relays[l]; r != nil {
				w.change(l, r, how)
			}
		}
	}
	w.changed.Broadcast()
}

func (w *network) change(l link, r *relay, how cut) {
	r.cut = how
	if how == rejected {
		r.reject()
	} else {
		w.listen(l)
	}
}

// heal makes all links whole.
func (w *network) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for l, r := range w.relays {
		w.change(l, r, whole)
	}
	w.changed.Broadcast()
}

// pass waits until none of the links is silent; false: the connection is over.
func (w *network) pass(links ...link) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.closed && slices.ContainsFunc(links, func(l link) bool { return w.relays[l].cut == silent }) {
		w.changed.Wait()
	}
	return !w.closed && !slices.ContainsFunc(links, func(l link) bool { return w.relays[l].cut == rejected })
}

// keep notes a connection of the relay, so that it is ended when the link rejects.
func (w *network) keep(r *relay, c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || r.cut == rejected {
		return false
	}
	r.conns[c] = true
	return true
}

func (w *network) forget(r *relay, c net.Conn) {
	_ = c.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(r.conns, c)
}

// carry carries a connection until it ends.
func (w *network) carry(dialer net.Conn, l link, r *relay) {
	if !w.keep(r, dialer) || !w.pass(l, l.back()) {
		reset(dialer)
		w.forget(r, dialer)
		return
	}
	defer w.forget(r, dialer)
	target, err := net.DialTimeout("tcp", r.target, patience)
	if err != nil {
		reset(dialer) // nobody listens
		return
	}
	defer w.forget(r, target)
	if !w.keep(r, target) {
		return
	}
	servers.Relay(dialer, target, func() bool { return w.pass(l) }, func() bool { return w.pass(l.back()) })
}

// between are the links from each of one side to each of the other.
func between(one, other []*node) (links []link) {
	for _, a := range one {
		for _, b := range other {
			if a != b {
				links = append(links, link{a.ID, b.ID})
			}
		}
	}
	return links
}

// A node's names lead to its own relays; a link that is silent holds what is sent, in its
// direction only, and one that rejects ends connections and refuses new ones.
func TestNetwork(t *testing.T) {
	w := newNetwork(t)
	defer w.close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	there, back := link{3, 4}, link{4, 3}
	w.add(there, port)
	w.add(back, port)
	dial := func() (net.Conn, error) {
		d := net.Dialer{Resolver: namesOf(3)}
		return d.DialContext(context.Background(), "tcp", relayName(4, port))
	}
	a, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	if got, want := a.RemoteAddr().String(), net.JoinHostPort("127.77.3.4", port); got != want {
		t.Errorf("node 3 finds node 4 at %s, not at %s", got, want)
	}
	b, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	send := func(c net.Conn, s string) {
		t.Helper()
		if _, err := c.Write([]byte(s)); err != nil {
			t.Error(err)
		}
	}
	receive := func(c net.Conn, want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
			t.Errorf("%q arrived, %v; not %q", got, err, want)
		}
	}
	w.set(silent, there)
	send(a, "held")
	send(b, "one")
	receive(a, "one")
	_ = b.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := b.Read(make([]byte, 9)); err == nil {
		t.Errorf("%d bytes passed a silent link", n)
	}
	_ = b.SetReadDeadline(time.Time{})
	w.heal()
	receive(b, "held")
	w.set(rejected, back)
	if _, err := a.Read(make([]byte, 9)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a connection that was rejected ends with %v", err)
	}
	if c, err := dial(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialing over a link that rejects: %v, %v", c, err)
	}
	w.heal()
	c, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

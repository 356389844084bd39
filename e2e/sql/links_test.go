package sql

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// links is the network between the nodes of a group: each is known to the others by an
// address of its own (127.0.77.i), on which a relay listens for its main port and its
// peer port. From whom a connection comes the kernel tells: which process has the socket.
//
// A link leads from one node to another, whoever dialed. On one that is cut, bytes, and
// the end of a connection, stay where they are until it is healed, as they do while a
// network loses packets; nothing is refused. A connection comes about only while both
// directions are whole. The nodes' clients do not pass here.
type links struct {
	t  *testing.T
	g  *servers.Group
	mu sync.Mutex
	// changed tells of every change of what follows.
	changed *sync.Cond
	cut     map[link]bool
	slow    map[link]time.Duration // for each piece of a stream, of up to 64 KiB
	closed  bool

	listeners []net.Listener
	all       sync.WaitGroup
}

// link is a direction between two nodes, counted from 0.
type link struct{ from, to int }

// newLinkedGroup starts three nodes behind links.
func newLinkedGroup(t *testing.T) (*servers.Group, *links) {
	t.Helper()
	l := &links{t: t, cut: map[link]bool{}, slow: map[link]time.Duration{}}
	l.changed = sync.NewCond(&l.mu)
	host := func(i int) string { return fmt.Sprintf("127.0.77.%d", i+1) }
	g, err := servers.New(servers.Options{Binary: binary, Dir: t.TempDir(), Nodes: 3, Host: host})
	if err != nil {
		t.Fatal(err)
	}
	l.g = g
	for i, n := range g.Nodes {
		for _, port := range []int{n.Port, n.Peers} {
			listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host(i), port))
			if err != nil {
				t.Fatal(err)
			}
			l.listeners = append(l.listeners, listener)
			l.all.Go(func() { l.serve(listener, i, port) })
		}
	}
	t.Cleanup(l.close)
	servers.Start(t, g)
	return g, l
}

func (l *links) close() {
	l.mu.Lock()
	l.closed = true
	l.changed.Broadcast()
	l.mu.Unlock()
	for _, listener := range l.listeners {
		_ = listener.Close()
	}
	l.all.Wait()
}

// set cuts these links, and heals all others.
func (l *links) set(cut ...link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.cut)
	clear(l.slow)
	for _, c := range cut {
		l.cut[c] = true
	}
	l.changed.Broadcast()
}

// slowDown makes all links of a node slow.
func (l *links) slowDown(node int, by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for other := range l.g.Nodes {
		l.slow[link{node, other}], l.slow[link{other, node}] = by, by
	}
}

// pass waits until all of the links are whole, and as long as the first takes; false
// means that the test is over.
func (l *links) pass(over ...link) bool {
	l.mu.Lock()
	for !l.closed && slices.ContainsFunc(over, func(k link) bool { return l.cut[k] }) {
		l.changed.Wait()
	}
	closed, slow := l.closed, l.slow[over[0]]
	l.mu.Unlock()
	if slow > 0 {
		time.Sleep(slow)
	}
	return !closed
}

func (l *links) serve(listener net.Listener, to, port int) {
	for {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		l.all.Go(func() { l.relay(c, to, port) })
	}
}

func (l *links) relay(dialer net.Conn, to, port int) {
	defer dialer.Close()
	from, ok := l.owner(dialer)
	if !ok {
		return // it has gone already
	}
	if !l.pass(link{from, to}, link{to, from}) {
		return
	}
	target, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), patience)
	if err != nil {
		return // nobody listens: the dialer's connection ends
	}
	defer target.Close()
	servers.Relay(dialer, target, func() bool { return l.pass(link{from, to}) }, func() bool { return l.pass(link{to, from}) })
}

// owner finds the node whose process has the other end of a connection.
func (l *links) owner(c net.Conn) (node int, ok bool) {
	var pids []int
	for _, n := range l.g.Nodes {
		pid := 0
		if p := n.Process(); p != nil {
			pid = p.PID()
		}
		pids = append(pids, pid)
	}
	return servers.Owner(c, pids)
}

// The links carry bytes, hold them while they are cut, in one direction or both, and give
// them on when they are healed.
func TestLinks(t *testing.T) {
	l := &links{t: t, cut: map[link]bool{}, slow: map[link]time.Duration{}}
	l.changed = sync.NewCond(&l.mu)
	a, b := net.Pipe()
	c, d := net.Pipe()
	l.all.Go(func() { servers.Carry(b, c, func() bool { return l.pass(link{0, 1}) }) })
	send := func(s string) { // a pipe's bytes are taken before its writer goes on
		if _, err := a.Write([]byte(s)); err != nil {
			t.Error(err)
		}
	}
	receive := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(d, got); err != nil || string(got) != want {
			t.Errorf("%q arrived, %v; not %q", got, err, want)
		}
	}
	l.set(link{1, 0}) // the other direction
	send("one")
	receive("one")
	l.set(link{0, 1})
	send("two")
	_ = d.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := d.Read(make([]byte, 9)); err == nil {
		t.Errorf("%d bytes passed a cut link", n)
	}
	_ = d.SetReadDeadline(time.Time{})
	l.set()
	receive("two")
	_ = a.Close()
	if _, err := d.Read(make([]byte, 9)); err != io.EOF {
		t.Errorf("the end of a connection comes as %v", err)
	}
	l.close()
}

package transport

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// middlebox is between a node and those that dial it. It takes what dialers send at once, and passes
// it on when, and as fast as, the test says; what goes the other way it passes on.
type middlebox struct {
	lis  net.Listener
	to   string
	rate atomic.Int64 // bytes a second; 0: as they come
	// small is whether a connection is deaf from the first piece on that is longer than a small packet.
	small atomic.Bool

	mu    sync.Mutex
	conns []*midConn
}

// smallPacket is more than a hello or a heartbeat has.
const smallPacket = 512

// midConn is a connection; of one that is deaf nothing of what the dialer sends is passed on.
type midConn struct {
	deaf    atomic.Bool
	open    atomic.Bool
	lengths *lengths
}

func startMiddlebox(t *testing.T, to string) *middlebox {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &middlebox{lis: lis, to: to}
	t.Cleanup(func() { lis.Close() })
	go func() {
		for {
			in, err := lis.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			t.Cleanup(func() { in.Close(); out.Close() })
			c := &midConn{lengths: newLengths()}
			c.open.Store(true)
			m.mu.Lock()
			m.conns = append(m.conns, c)
			m.mu.Unlock()
			go m.pass(c, in, out, true)
			go m.pass(c, out, in, false)
		}
	}()
	return m
}

// pass carries one direction; there is the one from the dialer.
func (m *middlebox) pass(c *midConn, from, to net.Conn, there bool) {
	b := make([]byte, 1<<10)
	defer to.Close()
	defer c.open.Store(false)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if there && n > smallPacket && m.small.Load() {
			c.deaf.Store(true)
		}
		if there && c.deaf.Load() {
			continue
		}
		if rate := m.rate.Load(); there && rate > 0 {
			time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
		}
		if there {
			c.lengths.pass(b[:n])
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// living are the connections that stand.
func (m *middlebox) living() (open []*midConn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.conns {
		if c.open.Load() {
			open = append(open, c)
		}
	}
	return open
}

// deafness counts the connections that a node gave up since nothing arrived.
type deafness struct {
	slog.Handler
	count atomic.Int64
}

func (d *deafness) Enabled(context.Context, slog.Level) bool { return true }
func (d *deafness) WithAttrs([]slog.Attr) slog.Handler       { return d }
func (d *deafness) WithGroup(string) slog.Handler            { return d }

func (d *deafness) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if strings.Contains(a.Value.String(), errDeaf.Error()) {
			d.count.Add(1)
		}
		return true
	})
	return nil
}

// through starts two nodes of which the first sends to the second through a middlebox.
func through(t *testing.T, limit time.Duration) (a, b *node, m *middlebox, deaf *deafness) {
	deaf = &deafness{Handler: slog.DiscardHandler}
	b = startNode(t, 2, func(o *Options) { o.LinkTimeout = limit })
	a = startNode(t, 1, func(o *Options) { o.LinkTimeout, o.Logger = limit, slog.New(deaf) })
	m = startMiddlebox(t, b.net.Addr())
	a.net.AddPeer(2, m.lis.Addr().String())
	b.net.AddPeer(1, a.net.Addr())
	a.waitFor("connection", func() bool { return a.connected[2] > 0 })
	return a, b, m, deaf
}

// TestDeafConnection: a connection on which only the direction of the dialer is dead is given up
// when something was sent on it, control or entries, and the next one carries on.
func TestDeafConnection(t *testing.T) {
	const limit = 600 * time.Millisecond
	a, b, m, deaf := through(t, limit)
	for i := range 2 {
		time.Sleep(limit) // what was sent arrives
		a.waitFor("two connections", func() bool { return len(m.living()) == 2 })
		conns := m.living()
		before, index := deaf.count.Load(), uint64(1000*(i+1))
		conns[0].deaf.Store(true) // the older one: the first, and then that of the other kind
		time.Sleep(2 * limit)
		if deaf.count.Load() > before {
			t.Fatal("a connection on which nothing is sent was given up")
		}
		began := time.Now()
		send := func() {
			index++
			a.net.Send([]*raftpb.Message{heartbeat(1, 2, index), appendMsg(1, 2, index, []byte("x"))})
			time.Sleep(10 * time.Millisecond)
		}
		for deaf.count.Load() == before && time.Since(began) < patience {
			send()
		}
		took := time.Since(began)
		t.Logf("given up after %v", took)
		if took < limit/2 {
			t.Errorf("given up after %v already", took)
		}
		last := index
		for b.kindsAfter(last) < 2 && time.Since(began) < patience {
			send()
		}
		if n := b.kindsAfter(last); n < 2 {
			t.Fatalf("messages of %d kinds arrive afterwards", n)
		}
	}
}

// kindsAfter is of how many kinds the messages are that have come with greater numbers.
func (n *node) kindsAfter(number uint64) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	kinds := map[raftpb.MessageType]bool{}
	for _, m := range n.received {
		if max(m.GetCommit(), m.GetIndex()) > number {
			kinds[m.GetType()] = true
		}
	}
	return len(kinds)
}

// TestSlowConnection: an append that takes many times the limit on a slow network does not make
// its connection a deaf one, be the transport's own buffers as large as they are.
func TestSlowConnection(t *testing.T) {
	a, b, m, deaf := through(t, 2*time.Second)
	m.rate.Store(100_000 / 8)
	a.net.Send([]*raftpb.Message{appendMsg(1, 2, 1, make([]byte, 100<<10))})
	b.waitFor("the append", func() bool { return len(b.received) > 0 })
	if n := deaf.count.Load(); n > 0 {
		t.Errorf("%d connections were given up", n)
	}
}

// TestBusyReceiver: a peer that reads no more, since it has enough to do, does not make the
// connection a deaf one.
func TestBusyReceiver(t *testing.T) {
	const limit = 600 * time.Millisecond
	a, b, _, deaf := through(t, limit)
	b.mu.Lock() // Receive waits
	for i := range uint64(100) {
		a.net.Send([]*raftpb.Message{appendMsg(1, 2, i, make([]byte, 100<<10))})
		time.Sleep(4 * limit / 100)
	}
	b.mu.Unlock()
	b.waitFor("the appends", func() bool { return len(b.received) > 0 })
	time.Sleep(2 * limit)
	if n := deaf.count.Load(); n > 0 {
		t.Errorf("%d connections were given up", n)
	}
}

// TestOnlySmallPacketsArrive: where the path to a peer loses larger packets it says for how long nothing has arrived on the connection for entries,
// across the connections that are made meanwhile, and heartbeats go on arriving.
func TestOnlySmallPacketsArrive(t *testing.T) {
	const limit = 600 * time.Millisecond
	a, b, m, deaf := through(t, limit)
	index := uint64(0)
	send := func(bytes int) {
		index++
		a.net.Send([]*raftpb.Message{heartbeat(1, 2, index), appendMsg(1, 2, index, make([]byte, bytes))})
		time.Sleep(10 * time.Millisecond)
	}
	undelivered := func() time.Duration { return a.net.Status()[0].Undelivered }
	for range 100 {
		send(100 << 10)
	}
	if d := undelivered(); d != 0 {
		t.Fatalf("undelivered for %v on a network that is well", d)
	}
	m.small.Store(true)
	began := time.Now()
	for undelivered() < 4*limit && time.Since(began) < patience {
		send(100 << 10)
	}
	took := time.Since(began)
	if n := deaf.count.Load(); took < 3*limit || took > 4*limit+patience/2 || n < 2 {
		t.Errorf("after %v and %d connections nothing has arrived for %v", took, n, undelivered())
	}
	before := index
	for range 10 {
		send(100 << 10)
	}
	b.waitFor("heartbeats", func() bool {
		return len(b.received) > 0 && b.received[len(b.received)-1].GetType() == raftpb.MsgHeartbeat && b.received[len(b.received)-1].GetCommit() >= before
	})
	m.small.Store(false)
	for began = time.Now(); undelivered() > 0 && time.Since(began) < patience; {
		send(100 << 10)
	}
	if d := undelivered(); d != 0 {
		t.Errorf("the path is well, and nothing has arrived for %v", d)
	}
}

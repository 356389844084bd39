package client

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/triremedb/trireme/internal/socket"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// A process may stand still while its kernel does not: it was stopped, its container is frozen, it gets
// no processor. TCP goes on to acknowledge what is sent to it and accepts connections for it, so that
// neither keepalive probes nor the user timeout of the kernel notice.
//
// While calls wait for a node, a watch looks eight times in the silence (2 s) whether its connection
// has brought any bytes. At the second silent look it asks the node's health service, which a process
// that runs answers at once, whatever its statements do. At the seventh it asks the other
// members who leads. If one says that it does, and the next look is silent too, the node is given up: the calls
// end with the error of a lost connection.
//
// The rules against false alarms:
//
//   - A leader is never given up for being slow: it has to have lost its leadership.
//   - Looks are counted, not time: a program that itself stood still for long has missed one look. What the node has
//     answered meanwhile is read before a whole look is over after the answer of another member.
//   - Any byte is a sign of life, not only an answer: a large result may keep the answer waiting.
//   - Nothing is sent while no call waits, nor for calls that take less than two looks.

// silence is how long a node may be silent, or leave data unacknowledged, before another one is
// asked. A group elects a new leader in less.
const silence = 2 * time.Second

// Looks of a watch.
const (
	looks   = 8 // in the silence
	probeAt = 2 // the silent look at which the node is asked
)

// errSilent is why a node was given up.
var errSilent = errors.New("it is silent, and another member leads")

// life is what a node's watch knows of it.
type life struct {
	heard    atomic.Uint64 // reads of its connections that brought bytes
	waiting  atomic.Int64  // calls that wait for it
	watching atomic.Bool
	probing  atomic.Bool
}

// connection counts what it hears. It also hides from gRPC that it is one of TCP: gRPC would set a
// limit of silence of its own.
type connection struct {
	net.Conn
	heard *atomic.Uint64
}

// Read implements net.Conn.
func (c connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Add(1)
	}
	return n, err
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	return socket.Dialer(silence).DialContext(ctx, "tcp", addr)
}

func (n *node) dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := n.db.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return connection{conn, &n.heard}, nil
}

// wait notes that a call waits for the node, until waited.
func (n *node) wait() {
	n.waiting.Add(1)
	if !n.watching.Load() && n.watching.CompareAndSwap(false, true) {
		go n.watch()
	}
}

func (n *node) waited() { n.waiting.Add(-1) }

// calling is the context of a call with one answer, which ends when the node is given up. done is
// to be called after it.
func (n *node) calling(ctx context.Context) (_ context.Context, done func()) {
	n.wait()
	ctx, cancel := context.WithCancel(n.db.outgoing(ctx))
	stop := context.AfterFunc(n.over, cancel)
	return ctx, func() {
		stop()
		cancel()
		n.waited()
	}
}

// watch looks at the node until no call waits for it.
func (n *node) watch() {
	tick := time.NewTicker(n.db.silence / looks)
	defer tick.Stop()
	heard, silent := n.heard.Load(), 0
	var leader *node // that has said so in this silence
	for {
		select {
		case <-tick.C:
		case <-n.over.Done():
			return
		}
		if n.waiting.Load() == 0 {
			n.watching.Store(false)
			if n.waiting.Load() == 0 || !n.watching.CompareAndSwap(false, true) {
				return // or another watch has begun
			}
		}
		if h := n.heard.Load(); h != heard {
			heard, silent, leader = h, 0, nil
			continue
		}
		silent++
		switch {
		case silent == probeAt:
			n.probe()
		case silent >= looks && leader != nil:
			n.giveUp(leader)
			return
		case silent >= looks-1:
			leader = n.db.ledBy(n)
			tick.Reset(n.db.silence / looks) // a whole look for what has come meanwhile
		}
	}
}

// probe asks the node whether it runs, unless that question is still open. Whatever it answers is heard. Until then the
// probe counts as a call that waits, so that the watch goes on though callers give up sooner.
func (n *node) probe() {
	if !n.probing.CompareAndSwap(false, true) {
		return
	}
	n.wait()
	go func() {
		defer n.waited()
		defer n.probing.Store(false)
		ctx, cancel := context.WithTimeout(n.over, 4*n.db.silence)
		defer cancel()
		_, _ = healthpb.NewHealthClient(n.conn).Check(ctx, &healthpb.HealthCheckRequest{})
	}()
}

// ledBy asks the nodes other than n at the same time, and those that they take for the leader: it may have joined since
// the program asked for the members. It returns the one that says that it leads; nil: none does.
func (db *DB) ledBy(n *node) *node {
	ctx, cancel := context.WithTimeout(context.Background(), db.silence/2)
	defer cancel()
	type answer struct {
		of *node
		r  *pb.SqlNodeResponse // nil: there is none
	}
	answers := make(chan answer)
	asked, missing := map[string]bool{n.addr: true}, 0
	ask := func(addr string) {
		other, err := db.node(addr)
		if err != nil || asked[addr] {
			return
		}
		asked[addr] = true
		missing++
		go func() {
			r, err := other.ask(db.outgoing(ctx))
			if err != nil {
				r = nil
			}
			select {
			case answers <- answer{other, r}:
			case <-ctx.Done():
			}
		}()
	}
	for _, addr := range db.candidates() {
		ask(addr)
	}
	for ; missing > 0; missing-- {
		select {
		case a := <-answers:
			switch {
			case a.r == nil:
			case a.r.Leads:
				return a.of
			case a.r.Leader != "":
				ask(a.r.Leader)
			}
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// giveUp ends the connection to the node, and with it what waits. A new connection is begun for when it runs again.
func (n *node) giveUp(leader *node) {
	db := n.db
	db.mu.Lock()
	if db.nodes[n.addr] == n {
		delete(db.nodes, n.addr)
	}
	if db.leader == n.addr {
		db.leader = leader.addr
	}
	db.mu.Unlock()
	n.mu.Lock()
	streams := append([]*stream(nil), n.streams...)
	n.mu.Unlock()
	for _, st := range streams {
		st.end(lost(errSilent))
	}
	n.end()
	go n.conn.Close() // gRPC waits for up to 5 s to write its last words to a peer that reads nothing
	if again, err := db.node(n.addr); err == nil {
		again.conn.Connect()
	}
}

// close ends what waits for the node, and its connection.
func (n *node) close() error {
	n.end()
	return n.conn.Close()
}

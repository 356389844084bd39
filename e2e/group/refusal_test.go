package group_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
	"github.com/triremedb/trireme/replication/group"
)

// proxies stand between the nodes of a cluster: the others reach a node only through its proxy.
// The clients do not pass here.
type proxies struct {
	c   *cluster
	all sync.WaitGroup

	mu     sync.Mutex
	alone  *node // whose proxy is closed, and whom the others' proxies let not pass; nil: nobody
	closed bool
	lis    map[*node]net.Listener
	conns  map[net.Conn]passage
}

// passage is a connection from one node to another.
type passage struct{ from, to *node }

// newProxiedCluster founds a group whose nodes reach each other through proxies.
func newProxiedCluster(t *testing.T, electionTicks int, s group.Sabotage) (*cluster, *proxies) {
	c := makeCluster(t, s)
	p := &proxies{c: c, lis: map[*node]net.Listener{}, conns: map[net.Conn]passage{}}
	var founders []group.Member
	for range 3 {
		n := c.newNode()
		n.Advertise, n.ElectionTicks = freeAddr(t), electionTicks
		founders = append(founders, group.Member{ID: n.ID, Addr: n.Advertise})
		p.listen(n)
	}
	t.Cleanup(p.close)
	c.launch(founders)
	return c, p
}

func (p *proxies) listen(n *node) {
	lis, err := net.Listen("tcp", n.Advertise)
	if err != nil {
		p.c.failf("the proxy of node %d: %v", n.ID, err)
		return
	}
	p.mu.Lock()
	p.lis[n] = lis
	p.mu.Unlock()
	p.all.Go(func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			p.all.Go(func() { p.relay(conn, n) })
		}
	})
}

// relay carries one connection to a node.
func (p *proxies) relay(in net.Conn, to *node) {
	defer in.Close()
	members := p.c.members()
	var pids []int
	for _, n := range members {
		pid := 0
		if proc := p.c.process(n); proc != nil {
			pid = proc.cmd.Process.Pid
		}
		pids = append(pids, pid)
	}
	which, ok := servers.Owner(in, pids)
	if !ok {
		return
	}
	out, err := net.Dial("tcp", to.Listen)
	if err != nil || !p.enter(in, passage{members[which], to}) {
		return
	}
	defer p.leave(in)
	defer out.Close()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = in.Close(), out.Close()
		})
	}
	both.Wait()
}

func (p *proxies) enter(c net.Conn, w passage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.alone != nil && (w.from == p.alone || w.to == p.alone) {
		return false
	}
	p.conns[c] = w
	return true
}

func (p *proxies) leave(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// isolate closes a node's proxy, whose address refuses connections from then on, and breaks
// the connections of the node.
func (p *proxies) isolate(n *node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alone = n
	_ = p.lis[n].Close()
	for c, w := range p.conns {
		if w.from == n || w.to == n {
			_ = c.Close()
		}
	}
}

// rejoin ends that.
func (p *proxies) rejoin(n *node) {
	p.mu.Lock()
	p.alone = nil
	p.mu.Unlock()
	p.listen(n)
}

func (p *proxies) close() {
	p.mu.Lock()
	p.closed = true
	for _, lis := range p.lis {
		_ = lis.Close()
	}
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.all.Wait()
}

// refuseAlive lets the leader's address refuse connections while the leader lives and clients
// read from it, until another leads and for a while after.
func refuseAlive(r *run, p *proxies) (reads int) {
	l := r.leader()
	if l == nil {
		return 0
	}
	var readers sync.WaitGroup
	var mu sync.Mutex
	over := false
	for range 2 {
		readers.Go(func() {
			for {
				answered := r.readFrom(l, request{Consistency: group.Strong, Limit: 50 * time.Millisecond})
				mu.Lock()
				if answered {
					reads++
				}
				end := over
				mu.Unlock()
				if end || r.failed() != "" {
					return
				}
			}
		})
	}
	r.avoid(l)
	time.Sleep(upTo(r.rng, 200*time.Millisecond))
	p.isolate(l)
	r.nextBut(l)
	time.Sleep(upTo(r.rng, time.Second))
	p.rejoin(l)
	r.avoid(nil)
	mu.Lock()
	over = true
	mu.Unlock()
	readers.Wait()
	return reads
}

// trials runs refuseAlive under load and returns what must never be.
func trials(t *testing.T, electionTicks int, s group.Sabotage, limit time.Duration) string {
	c, p := newProxiedCluster(t, electionTicks, s)
	c.found()
	number := uint64(time.Now().UnixNano())
	r := &run{cluster: c, load: startLoad(c, number), rng: newRand(number)}
	count, reads := 0, 0
	for begin := time.Now(); c.failed() == "" && (count < 4 || time.Since(begin) < limit); count++ {
		reads += refuseAlive(r, p)
		if c.failed() == "" {
			r.checkAll(false)
		}
	}
	r.load.stop()
	t.Logf("%d ticks: in %d trials the old leader answered %d strong reads", electionTicks, count, reads)
	return c.failed()
}

// No strong read is stale while a leader lives whose address refuses connections.
func TestRefusedAlive(t *testing.T) {
	for _, ticks := range []int{10, 60} {
		if problem := trials(t, ticks, group.NoSabotage, *duration/2); problem != "" {
			t.Errorf("%d ticks: %s", ticks, problem)
		}
	}
}

// Were a refusal proof, it would be noticed.
func TestRefusalIsProof(t *testing.T) {
	problem := trials(t, 60, group.RefusalIsProof, patience)
	if t.Logf("noticed: %s", problem); problem == "" {
		t.Error("nothing is noticed")
	}
}

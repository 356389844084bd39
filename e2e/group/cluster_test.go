package group_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/replication/group"
)

// cluster is a group of processes.
type cluster struct {
	t    *testing.T
	dir  string
	id   [16]byte
	http *http.Client
	net  *network // between the nodes; nil: they reach each other directly
	// sabotage breaks the nodes on purpose; then they may complain.
	large    bool // transactions, many of them
	sabotage group.Sabotage

	mu    sync.Mutex
	nodes []*node // all that ever were members
	fault string
}

// node is a member and its place on disk, whether its process runs or not.
type node struct {
	setup
	log  string
	proc *process // nil: down. Guarded by cluster.mu
	gone bool     // left the group. Guarded by cluster.mu
}

// newCluster founds a group and starts its nodes.
func newCluster(t *testing.T, nodes int, s group.Sabotage) *cluster {
	return foundCluster(t, nodes, s, nil)
}

// newNetworked founds a group whose nodes reach each other over a network of the test.
func newNetworked(t *testing.T, nodes int) *cluster {
	return foundCluster(t, nodes, group.NoSabotage, newNetwork(t))
}

func foundCluster(t *testing.T, nodes int, s group.Sabotage, w *network) *cluster {
	c := makeCluster(t, s)
	c.net = w
	var founders []group.Member
	for range nodes {
		n := c.newNode()
		founders = append(founders, group.Member{ID: n.ID, Addr: n.addr()})
	}
	c.launch(founders)
	return c
}

// makeCluster makes a cluster without nodes.
func makeCluster(t *testing.T, s group.Sabotage) *cluster {
	return &cluster{t: t, sabotage: s, dir: workDir(t), id: [16]byte{0xe2, 0xe0},
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
}

// launch starts the nodes that found the group.
func (c *cluster) launch(founders []group.Member) {
	c.t.Cleanup(c.close)
	for _, n := range c.nodes {
		n.Founders = founders
		c.start(n)
	}
}

func (c *cluster) newNode() *node {
	id := uint64(len(c.nodes) + 1)
	n := &node{log: filepath.Join(c.dir, fmt.Sprintf("node%d.log", id)),
		setup: setup{Sabotage: c.sabotage, Large: c.large, Group: c.id, ID: id, Dir: filepath.Join(c.dir, fmt.Sprintf("node%d", id)), Listen: freeAddr(c.t)}}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.net != nil {
		_, port, _ := net.SplitHostPort(n.Listen)
		n.Advertise = relayName(id, port)
		for _, other := range c.nodes {
			_, its, _ := net.SplitHostPort(other.Listen)
			c.net.add(link{n.ID, other.ID}, its)
			c.net.add(link{other.ID, n.ID}, port)
		}
	}
	c.nodes = append(c.nodes, n)
	return n
}

// close kills what is left, and looks for what processes say when they go wrong.
func (c *cluster) close() {
	c.mu.Lock()
	nodes := c.nodes
	c.mu.Unlock()
	for _, n := range nodes {
		c.kill(n)
	}
	if c.net != nil {
		c.net.close()
	}
	for _, n := range nodes {
		text, _ := os.ReadFile(n.log)
		for _, bad := range []string{"DATA RACE", "panic:", "this node stops"} {
			if bad == "this node stops" && n.gone {
				continue // as it should
			}
			if c.sabotage == group.NoSabotage && bytes.Contains(text, []byte(bad)) {
				c.t.Errorf("node %d: %q in its log", n.ID, bad)
			}
		}
	}
	if c.t.Failed() {
		for _, n := range nodes {
			c.t.Logf("node %d said last:\n%s", n.ID, tail(n.log, 40))
		}
	}
}

// failf notes the first thing that must never be.
func (c *cluster) failf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault == "" {
		c.fault = fmt.Sprintf(format, args...)
	}
}

func (c *cluster) failed() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault
}

func (c *cluster) start(n *node) {
	if c.process(n) != nil {
		return
	}
	p, err := startProcess(&n.setup, n.log)
	if err != nil {
		c.failf("node %d does not start: %v", n.ID, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n.proc = p
}

// take takes the process out of the node: nobody sends it anything any more.
func (c *cluster) take(n *node) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := n.proc
	n.proc = nil
	return p
}

func (c *cluster) process(n *node) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return n.proc
}

func (c *cluster) kill(n *node) {
	if p := c.take(n); p != nil {
		p.kill()
	}
}

func (c *cluster) stop(n *node) {
	if p := c.take(n); p != nil {
		if err := p.stop(); err != nil {
			c.failf("node %d: stopping: %v", n.ID, err)
		}
	}
}

// members are the nodes that have not left the group.
func (c *cluster) members() (nodes []*node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		if !n.gone {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// readable are the members, and those that have left and still run.
func (c *cluster) readable() (nodes []*node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		if !n.gone || n.proc != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// ask sends a request to a node. Errors are those of post; what the node says is in
// the answer.
func (c *cluster) ask(n *node, q request, limit time.Duration) (*answer, error) {
	p := c.process(n)
	if p == nil {
		return nil, errNotSent
	}
	a, err := post(c.http, p.addr, &q, limit)
	if err == nil && a.Fault != "" {
		c.failf("node %d: %s", n.ID, a.Fault)
	}
	return a, err
}

// must sends a request and demands that all goes well.
func (c *cluster) must(n *node, q request) *answer {
	a, err := c.ask(n, q, patience)
	if err == nil && a.Error != "" {
		err = fmt.Errorf("%s", a.Error)
	}
	if err != nil {
		c.failf("node %d: %s: %v", n.ID, q.Do, err)
		return &answer{}
	}
	return a
}

// found makes the tables and the accounts, and returns when all members have them. The
// leader may change meanwhile: then the next one goes on.
func (c *cluster) found() (number uint64) {
	if !c.eventually(func() bool {
		n := c.writable(nil)
		if n == nil {
			return false
		}
		a, err := c.ask(n, request{Do: "setup"}, patience)
		if err != nil || a.Error != "" {
			return false
		}
		number = a.Number
		return true
	}) {
		c.failf("the accounts are not made: %s", c.standing())
	}
	for _, n := range c.members() {
		c.must(n, request{Do: "read", Consistency: group.AtLeast, Number: number, Limit: patience})
	}
	return number
}

// leader waits for a node, other than the given ones, that takes writes.
func (c *cluster) leader(but ...*node) *node {
	var found *node
	if !c.eventually(func() bool {
		found = c.writable(but)
		return found != nil
	}) {
		c.failf("nobody leads: %s", c.standing())
	}
	return found
}

// writable asks all members at once, as some may stand still.
func (c *cluster) writable(but []*node) *node {
	asked := slices.DeleteFunc(c.members(), func(n *node) bool { return slices.Contains(but, n) })
	answers := make(chan *node, len(asked))
	for _, n := range asked {
		go func() {
			if a, err := c.ask(n, request{Do: "status"}, answerTime); err != nil || !a.Status.Writable {
				n = nil
			}
			answers <- n
		}()
	}
	for range asked {
		if n := <-answers; n != nil {
			return n
		}
	}
	return nil
}

// follower is a member that does not lead.
func (c *cluster) follower(leader *node, pick int) *node {
	var others []*node
	for _, n := range c.members() {
		if n != leader {
			others = append(others, n)
		}
	}
	return others[pick%len(others)]
}

// standing is how everybody stands, for messages.
func (c *cluster) standing() string {
	var b strings.Builder
	for _, n := range c.members() {
		a, err := c.ask(n, request{Do: "status"}, answerTime)
		if err != nil {
			fmt.Fprintf(&b, "\n  node %d: %v", n.ID, err)
			continue
		}
		fmt.Fprintf(&b, "\n  %+v %+v", a.Status, a.Members)
	}
	return b.String()
}

// eventually waits for a condition, or that something goes wrong.
func (c *cluster) eventually(cond func() bool) bool {
	return eventually(func() bool { return c.failed() != "" || cond() })
}

// eventually waits for a condition.
func eventually(cond func() bool) bool {
	for until := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if cond() {
			return true
		}
		if time.Now().After(until) {
			return false
		}
	}
}

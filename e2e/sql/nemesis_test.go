package sql

import (
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// nemesis does harm to a group of three behind links.
type nemesis struct {
	t *testing.T
	g *servers.Group
	l *links
	r *rand.Rand
}

// newNemesis starts a group and its nemesis.
func newNemesis(t *testing.T, r *rand.Rand) *nemesis {
	t.Helper()
	g, l := newLinkedGroup(t)
	return &nemesis{t: t, g: g, l: l, r: r}
}

func (n *nemesis) upTo(d time.Duration) time.Duration { return time.Duration(n.r.Int64N(int64(d))) }

// harms are what it does. Each ends with all processes running; links may be cut.
var harms = []struct {
	name string
	do   func(*nemesis)
}{
	{"kill the leader", (*nemesis).killLeader},
	{"kill all within a second", (*nemesis).killAll},
	{"pause some", (*nemesis).pauseSome},
	{"cut", (*nemesis).cut},
	{"kill all while links are cut", (*nemesis).killCut},
}

// harm does each harm in turn, in an order that is drawn, until the time is up. The group is
// whole behind it.
func (n *nemesis) harm(until time.Time) {
	for {
		for _, i := range n.r.Perm(len(harms)) {
			if time.Now().After(until) {
				await(n.t, n.g)
				return
			}
			n.t.Log(harms[i].name)
			harms[i].do(n)
			time.Sleep(n.upTo(1500 * time.Millisecond))
			n.l.set()
			if n.r.IntN(3) > 0 { // or the next harm comes while this one is being mended
				await(n.t, n.g)
			}
		}
	}
}

// down kills nodes, each within a time, and starts them in another order.
func (n *nemesis) down(within time.Duration, nodes ...*servers.Node) {
	var all sync.WaitGroup
	for _, node := range nodes {
		late := n.upTo(within)
		all.Go(func() { time.Sleep(late); node.Kill() })
	}
	all.Wait()
	for _, i := range n.r.Perm(len(nodes)) {
		time.Sleep(n.upTo(700 * time.Millisecond))
		start(n.t, nodes[i])
	}
}

func (n *nemesis) killLeader() { n.down(time.Millisecond, leader(n.t, n.g)) }

func (n *nemesis) killAll() { n.down(time.Second, n.g.Nodes...) }

// pauseSome stops one process, or more, for a while each.
func (n *nemesis) pauseSome() {
	var all sync.WaitGroup
	for _, i := range n.r.Perm(3)[:1+n.r.IntN(3)] {
		node, late, d := n.g.Nodes[i], n.upTo(300*time.Millisecond), 500*time.Millisecond+n.upTo(2*time.Second)
		all.Go(func() {
			time.Sleep(late)
			node.Signal(syscall.SIGSTOP)
			time.Sleep(d)
			node.Signal(syscall.SIGCONT)
		})
	}
	all.Wait()
}

// cut cuts links in one of the ways that there are.
func (n *nemesis) cut() {
	c := cuts[n.r.IntN(len(cuts))]
	if c.links == nil {
		c = cuts[0]
	}
	first := leader(n.t, n.g).Number - 1
	a, b := (first+1)%3, (first+2)%3
	if n.r.IntN(2) == 0 {
		a, b = b, a
	}
	n.l.set(c.links(first, a, b)...)
}

func (n *nemesis) killCut() {
	n.cut()
	n.killAll()
}

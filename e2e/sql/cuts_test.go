package sql

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// cuts are what is done to the network, given who leads.
var cuts = []struct {
	name string
	// links are those that are cut, of a leader and the two others.
	links func(leader, a, b int) []link
	// slow is a node that becomes slow.
	slow func(leader, a, b int) int
	// goOn are the nodes whose clients get answers all the same.
	goOn func(leader, a, b int) []int
}{
	{name: "leader alone",
		links: func(l, a, b int) []link { return []link{{l, a}, {a, l}, {l, b}, {b, l}} },
		goOn:  func(_, a, b int) []int { return []int{a, b} }},
	{name: "one follower alone",
		links: func(l, a, b int) []link { return []link{{l, a}, {a, l}, {b, a}, {a, b}} },
		goOn:  func(l, _, b int) []int { return []int{l, b} }},
	{name: "leader and one follower cannot reach each other",
		links: func(l, a, _ int) []link { return []link{{l, a}, {a, l}} },
		goOn:  func(_, _, b int) []int { return []int{b} }},
	{name: "leader is heard, but hears nothing",
		links: func(l, a, b int) []link { return []link{{a, l}, {b, l}} }},
	{name: "leader hears, but is not heard",
		links: func(l, a, b int) []link { return []link{{l, a}, {l, b}} },
		goOn:  func(_, a, b int) []int { return []int{a, b} }},
	{name: "one follower is not heard",
		links: func(l, a, b int) []link { return []link{{a, l}, {a, b}} },
		goOn:  func(l, _, b int) []int { return []int{l, b} }},
	{name: "leader slow", slow: func(l, _, _ int) int { return l }},
	{name: "one follower slow", slow: func(_, a, _ int) int { return a },
		goOn: func(l, _, b int) []int { return []int{l, b} }},
	{name: "nobody reaches anybody",
		links: func(l, a, b int) []link { return []link{{l, a}, {a, l}, {l, b}, {b, l}, {a, b}, {b, a}} }},
}

// Under cuts of the network between the nodes, whole and in one direction, the bank's
// money neither comes nor goes and no acknowledged transfer is lost; who is with a
// majority goes on; and all go on when the network is whole again.
func TestCuts(t *testing.T) {
	g, l := newLinkedGroup(t)
	r := plan(t)
	b := newBank(t, g, r)
	began := time.Now()
	for time.Since(began) < *duration {
		for _, i := range r.Perm(len(cuts)) {
			if time.Since(began) >= *duration {
				break
			}
			c := cuts[i]
			first := leader(t, g)
			others := []int{first.Number % 3, (first.Number + 1) % 3}
			r.Shuffle(2, func(i, j int) { others[i], others[j] = others[j], others[i] })
			t.Logf("%v: %s; node %d leads, then %d, %d", time.Since(began).Round(time.Millisecond), c.name, first.Number, others[0]+1, others[1]+1)
			if c.links != nil {
				l.set(c.links(first.Number-1, others[0], others[1])...)
			}
			if c.slow != nil {
				l.slowDown(c.slow(first.Number-1, others[0], others[1]), 30*time.Millisecond)
			}
			if c.goOn != nil {
				var nodes []*servers.Node
				for _, n := range c.goOn(first.Number-1, others[0], others[1]) {
					nodes = append(nodes, g.Nodes[n])
				}
				b.goesOn(nodes...)
			}
			time.Sleep(time.Duration(r.IntN(2500)) * time.Millisecond)
			l.set()
			if r.IntN(2) == 0 { // or the next cut comes while this one is being healed
				b.goesOn(g.Nodes...)
			}
		}
	}
	l.set()
	b.end()
}

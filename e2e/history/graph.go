package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// edge leads to a point, and says why.
type edge struct {
	to   int
	kind string // ww, wr, rw, rt; empty: from a transaction's snapshot to its commit
}

// The points of transaction i.
func (c *checker) snapshot(i int) int {
	if c.level == Serializable {
		return i
	}
	return 2 * i
}

func (c *checker) commit(i int) int {
	if c.level == Serializable {
		return i
	}
	return 2*i + 1
}

func (c *checker) owner(point int) int {
	if c.level == Serializable {
		return point
	}
	return point / 2
}

// graph has the edges of every point.
func (c *checker) graph() [][]edge {
	g := make([][]edge, 2*len(c.txns))
	add := func(from, to int, kind string) {
		if from != to {
			g[from] = append(g[from], edge{to, kind})
		}
	}
	if c.level == RepeatableRead {
		for i := range c.txns {
			add(c.snapshot(i), c.commit(i), "")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.order)) {
		list := c.order[key]
		for n := 1; n < len(list); n++ {
			add(c.commit(c.writes[place{key, list[n-1]}].txn), c.commit(c.writes[place{key, list[n]}].txn), "ww")
		}
	}
	for i, t := range c.txns {
		if !c.void[i] {
			c.readEdges(i, t, add)
		}
	}
	c.timeEdges(add)
	return g
}

func (c *checker) readEdges(i int, t *Txn, add func(from, to int, kind string)) {
	wrote := map[int]bool{}
	for _, op := range t.Ops {
		if op.Append {
			wrote[op.Key] = true
			continue
		}
		at := c.snapshot(i)
		if op.Locked || wrote[op.Key] { // of the newest version
			at = c.commit(i)
		}
		list, n := c.order[op.Key], len(op.Read)
		if n > 0 {
			if w := c.writes[place{op.Key, list[n-1]}].txn; w != i {
				add(c.commit(w), at, "wr")
			}
		}
		if n < len(list) {
			if w := c.writes[place{op.Key, list[n]}].txn; w != i {
				add(at, c.commit(w), "rw")
			}
		}
	}
}

// timeEdges lead from what was acknowledged to what began then. Of those that had been
// acknowledged only the latest count: who was acknowledged before they began is before
// them anyway.
func (c *checker) timeEdges(add func(from, to int, kind string)) {
	type event struct {
		at  int64
		end bool
		txn int
	}
	var events []event
	for i, t := range c.txns {
		if c.void[i] || t.Stale {
			continue
		}
		events = append(events, event{t.Begin, false, i})
		if t.Outcome == Committed {
			events = append(events, event{t.End, true, i})
		}
	}
	slices.SortFunc(events, func(a, b event) int {
		switch {
		case a.at != b.at:
			return int(min(max(a.at-b.at, -1), 1))
		case a.end != b.end && b.end: // at one time, nothing is before
			return -1
		case a.end != b.end:
			return 1
		}
		return a.txn - b.txn
	})
	latest := map[int]bool{}
	before := map[int][]int{}
	for _, e := range events {
		if e.end {
			for _, i := range before[e.txn] {
				delete(latest, i)
			}
			delete(before, e.txn)
			latest[e.txn] = true
			continue
		}
		for _, i := range slices.Sorted(maps.Keys(latest)) {
			add(c.commit(i), c.snapshot(e.txn), "rt")
			before[e.txn] = append(before[e.txn], i)
		}
	}
}

// cyclesMost is how many cycles are told.
const cyclesMost = 10

// cycles reports a shortest cycle of each strongly connected part.
func (c *checker) cycles() {
	g := c.graph()
	told := 0
	for _, part := range parts(g) {
		if len(part) < 2 {
			continue
		}
		if told++; told > cyclesMost {
			return
		}
		c.tell(shortest(g, part), g)
	}
}

// tell reports a cycle by its kind: of appends alone it is G0, with reads G1c, with one
// read that missed something G-single, with several G2; with the order in time
// among them it is one of real time.
func (c *checker) tell(points []int, g [][]edge) {
	counts := map[string]int{}
	var b strings.Builder
	for n, p := range points {
		next := points[(n+1)%len(points)]
		// Of several edges the one that says the most.
		kind := ""
		for _, k := range []string{"ww", "wr", "", "rt", "rw"} {
			if slices.Contains(g[p], edge{next, k}) {
				kind = k
				break
			}
		}
		counts[kind]++
		if kind != "" {
			fmt.Fprintf(&b, "%s -%s-> ", c.name(c.owner(p)), kind)
		}
	}
	b.WriteString(c.name(c.owner(points[0])))
	kind := "G2"
	switch {
	case counts["rw"] == 0 && counts["wr"] == 0:
		kind = "G0"
	case counts["rw"] == 0:
		kind = "G1c"
	case counts["rw"] == 1:
		kind = "G-single"
	}
	if counts["rt"] > 0 {
		kind += "-realtime"
	}
	c.report(kind, "%s", b.String())
}

// parts are the strongly connected parts of a graph (Tarjan's algorithm, without
// recursion, which long histories would overdo).
func parts(g [][]edge) (all [][]int) {
	index, low, on := make([]int, len(g)), make([]int, len(g)), make([]bool, len(g))
	type frame struct{ point, next int }
	var stack []int
	count := 0
	for root := range g {
		if index[root] != 0 {
			continue
		}
		work := []frame{{root, 0}}
		for len(work) > 0 {
			f := &work[len(work)-1]
			p := f.point
			if f.next == 0 {
				count++
				index[p], low[p], on[p] = count, count, true
				stack = append(stack, p)
			}
			if f.next < len(g[p]) {
				to := g[p][f.next].to
				f.next++
				if index[to] == 0 {
					work = append(work, frame{to, 0})
				} else if on[to] {
					low[p] = min(low[p], index[to])
				}
				continue
			}
			if low[p] == index[p] {
				at := slices.Index(stack, p)
				part := slices.Clone(stack[at:])
				stack = stack[:at]
				for _, q := range part {
					on[q] = false
				}
				all = append(all, part)
			}
			work = work[:len(work)-1]
			if len(work) > 0 {
				parent := work[len(work)-1].point
				low[parent] = min(low[parent], low[p])
			}
		}
	}
	return all
}

// shortest finds a shortest cycle among points that are strongly connected.
func shortest(g [][]edge, part []int) (best []int) {
	inside := map[int]bool{}
	for _, p := range part {
		inside[p] = true
	}
	for _, from := range part[:min(len(part), 200)] {
		came := map[int]int{}
		queue := []int{from}
	search:
		for len(queue) > 0 {
			p := queue[0]
			queue = queue[1:]
			for _, e := range g[p] {
				if e.to == from {
					var cycle []int
					for q := p; q != from; q = came[q] {
						cycle = append(cycle, q)
					}
					cycle = append(cycle, from)
					slices.Reverse(cycle)
					if best == nil || len(cycle) < len(best) {
						best = cycle
					}
					break search
				}
				if _, seen := came[e.to]; !seen && inside[e.to] {
					came[e.to] = p
					queue = append(queue, e.to)
				}
			}
		}
	}
	return best
}

package simgroup

import (
	"time"

	"github.com/triremedb/trireme/replication/group"
)

const (
	// agesBound is the age that every member's data are to have again, and agesWithin after which time.
	agesBound  = time.Second
	agesWithin = 10 * time.Second
)

// quiet looks at what a group does once nothing disturbs it any more.
func (w *world) quiet() {
	if w.problem == "" {
		w.ages("when all was over")
	}
	if w.problem == "" && w.opt.Seed%7 < 2 {
		w.shrink()
	}
}

// ages waits until every member can tell again that its data are not old: nothing disturbs the group any more.
func (w *world) ages(when string) {
	var late *node
	fresh := func() bool {
		for _, m := range w.members() {
			n := w.find(m.ID)
			if n == nil || n.node == nil {
				continue
			}
			// Who may wait would ask the leader.
			if _, err := n.node.ReadPoint(group.ReadOptions{Consistency: group.Bounded, Bound: agesBound, Wait: time.Nanosecond}); err != nil {
				late = n
				return false
			}
		}
		return true
	}
	if !w.within(agesWithin, fresh) {
		w.failf("%s node %d does not answer reads that are bounded to %v: %s", when, late.id, agesBound, w.standing())
	}
}

// shrink takes voters away until one is left, beside a member that does not vote: such a group agrees by itself, and its leader has nobody to ask.
func (w *world) shrink() {
	l := w.leader()
	if l == nil || w.plan != nil || w.opt.Fixed {
		return
	}
	n := w.newNode()
	n.join = true
	if err := l.do(func(g *group.Node) error { return g.Add(group.Member{ID: n.id, Addr: n.addr, Stays: true}) }); err != nil {
		w.failf("a quiet group takes in no member: %v", err)
		return
	}
	n.restart()
	caughtUp := func() bool { return n.node != nil && n.node.Status().Applied >= l.node.Status().Applied }
	if !w.within(30*time.Second, caughtUp) {
		w.failf("a member of a quiet group does not catch up: %s", w.standing())
		return
	}
	w.ages("beside all voters")
	for _, m := range l.node.Members() {
		if m.Learner || m.ID == l.id {
			continue
		}
		if err := l.do(func(g *group.Node) error { return g.Remove(m.ID) }); err != nil {
			w.failf("a quiet group does not let member %d go: %v", m.ID, err)
			return
		}
		w.bury(m.ID)
	}
	w.within(2*agesBound, func() bool { return false }) // what was heard before gets old
	w.ages("beside one voter")
}

// do runs fn in the node's process.
func (n *node) do(fn func(g *group.Node) error) (err error) {
	n.env.Run(func() { err = fn(n.node) })
	return err
}

package simgroup

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/group"
)

// scene runs a script on a group of voters that nothing else is done to.
func scene(t *testing.T, opt Options, script func(w *world)) {
	t.Helper()
	opt.Fixed, opt.Plain = true, true
	w := simulated(opt, func(w *world) {
		if err := w.founders(); err != nil {
			w.failf("%v", err)
			return
		}
		w.net.SetDefaultFaults(goodNetwork)
		if err := w.setup(); err != nil {
			w.failf("setting up: %v", err)
			return
		}
		script(w)
		for _, n := range w.made {
			n.halt(haltKill)
		}
	})
	if w.problem != "" {
		t.Errorf("seed %d: %s", opt.Seed, w.problem)
	}
}

// learner adds a member that receives the log and does not vote until it is told to.
func (w *world) learner() *node {
	n := w.newNode()
	n.join = true
	if err := w.leader().node.Add(group.Member{ID: n.id, Addr: n.addr, Stays: true}); err != nil {
		w.failf("adding node %d: %v", n.id, err)
		return n
	}
	n.restart()
	if !w.within(20*time.Second, func() bool { return n.node.Status().Applied > 0 }) {
		w.failf("node %d gets no data", n.id)
	}
	return n
}

// haltAll ends all processes at one moment.
func (w *world) haltAll(how haltKind) {
	for _, n := range w.made {
		n.fs.Crash()
	}
	for _, n := range w.made {
		n.halt(how)
	}
}

// split cuts all nodes of one side from all of the other.
func (w *world) split(one, other []*node) {
	for _, a := range one {
		for _, b := range other {
			w.net.Cut(a.addr, b.addr)
			w.net.Cut(b.addr, a.addr)
		}
	}
}

// load makes transfers on every node that takes them, for a while.
func (w *world) load(rng *rand.Rand, d time.Duration) {
	for until := w.sim.Monotonic() + d; w.sim.Monotonic() < until; env.Sleep(w.sim, 5*time.Millisecond) {
		for _, n := range w.up() {
			if !n.node.Writable() {
				continue
			}
			o := &op{id: uint64(len(w.history.ops) + 1), began: w.history.now()}
			w.history.ops = append(w.history.ops, o)
			w.sim.Go("transfer", func() { w.attempt(n, rng, o) })
		}
	}
}

// A member that is killed after a change of membership that it has acknowledged to know comes
// back with that membership, however little its engine had made durable: else it and one that
// has left, or does not know better, would elect a second leader.
func TestChangeIsRemembered(t *testing.T) {
	for seed := uint64(1); seed <= race.Fewer(uint64(5), 1); seed++ {
		t.Run(fmt.Sprintf("replace/%d", seed), func(t *testing.T) {
			scene(t, Options{Seed: seed, Nodes: 3}, replaceAndSplit)
		})
		t.Run(fmt.Sprintf("promote/%d", seed), func(t *testing.T) {
			scene(t, Options{Seed: seed, Nodes: 3}, promoteAndSplit)
		})
	}
}

func replaceAndSplit(w *world) {
	leader := w.leader()
	a, b := w.followers()[0], w.followers()[1]
	c := w.learner()
	if w.problem != "" {
		return
	}
	if err := leader.node.Replace(b.id, c.id); err != nil {
		w.failf("replacing node %d by node %d: %v", b.id, c.id, err)
		return
	}
	a.halt(haltKill)
	a.restart()
	w.split([]*node{a, b}, []*node{leader, c})
	w.afterSplit()
}

func promoteAndSplit(w *world) {
	leader := w.leader()
	a, b := w.followers()[0], w.followers()[1]
	c, d := w.learner(), w.learner()
	if w.problem != "" {
		return
	}
	for _, n := range []*node{c, d} {
		if err := leader.node.Promote(n.id); err != nil {
			w.failf("promoting node %d: %v", n.id, err)
			return
		}
	}
	a.halt(haltKill)
	a.restart()
	w.split([]*node{a, b}, []*node{leader, c, d})
	w.afterSplit()
}

// followers are the voters that do not lead.
func (w *world) followers() (out []*node) {
	leader := w.leader()
	for _, m := range leader.node.Members() {
		if n := w.find(m.ID); n != leader && !m.Learner {
			out = append(out, n)
		}
	}
	return out
}

// afterSplit goes on with transfers on both sides of a split, heals it, and looks at everything.
func (w *world) afterSplit() {
	w.load(rand.New(rand.NewPCG(w.opt.Seed, 9)), 4*time.Second)
	w.settle()
	w.check()
}

// A member that Remove has taken out may be stopped with all others: any majority of those that
// stay goes on without it.
func TestRemovedIsNotNeeded(t *testing.T) {
	for seed := uint64(1); seed <= race.Fewer(uint64(5), 1); seed++ {
		for left := range 3 {
			scene(t, Options{Seed: seed, Nodes: 3}, func(w *world) {
				fourth := w.learner()
				if w.problem != "" {
					return
				}
				if err := w.leader().node.Promote(fourth.id); err != nil {
					w.failf("promoting node 4: %v", err)
					return
				}
				w.sim.Go("load", func() { w.load(rand.New(rand.NewPCG(seed, 9)), time.Second) })
				env.Sleep(w.sim, time.Second/2)
				if err := w.leader().node.Remove(fourth.id); err != nil {
					w.failf("removing node 4: %v", err)
					return
				}
				w.haltAll(haltKill)
				fourth.gone = true
				for i, n := range w.made[:3] {
					if i != left {
						n.restart()
					}
				}
				if !w.within(20*time.Second, func() bool { return w.leader() != nil }) {
					w.failf("nobody leads without nodes %d and 4: %s", left+1, w.standing())
				}
			})
		}
	}
}

// The id of a member that has left is not given out again, and removing it once more says that
// the group does not need it.
func TestLeftForGood(t *testing.T) {
	scene(t, Options{Seed: 1, Nodes: 3}, func(w *world) {
		fourth := w.learner()
		if w.problem != "" {
			return
		}
		leader := w.leader().node
		for range 2 {
			if err := leader.Remove(fourth.id); err != nil {
				w.failf("removing node 4: %v", err)
			}
		}
		err := leader.Add(group.Member{ID: fourth.id, Addr: fourth.addr})
		if err == nil || !strings.Contains(err.Error(), "never used again") {
			w.failf("adding node 4 again: %v", err)
		}
		fourth.halt(haltKill)
		fourth.gone = true
		for _, n := range w.followers() {
			n.halt(haltKill)
		}
		if err := leader.Remove(fourth.id); !errors.Is(err, group.ErrNoQuorum) {
			w.failf("removing node 4 again without a majority: %v", err)
		}
	})
}

// TestReplacedStops: a voter that was replaced is told so, and stops: one that runs, one that
// stands still meanwhile, one that is down and starts again, and one that runs while another voter is
// down, so that fewer can tell it.
func TestReplacedStops(t *testing.T) {
	for i, how := range []string{"runs", "stands still", "is down", "runs beside one that is down"} {
		scene(t, Options{Seed: uint64(i), Nodes: 3}, func(w *world) {
			fresh := w.learner()
			lead := w.leader()
			old := w.made[0]
			if old == lead {
				old = w.made[1]
			}
			other := w.made[0]
			for _, n := range w.made[:3] {
				if n != lead && n != old {
					other = n
				}
			}
			switch how {
			case "runs beside one that is down":
				other.halt(haltKill)
			case "stands still":
				w.pause(old, pauseProcess, 2*time.Second)
			case "is down":
				old.halt(haltKill)
			}
			if err := lead.node.Replace(old.id, fresh.id); err != nil {
				w.failf("replacing node %d: %v", old.id, err)
				return
			}
			if how == "is down" {
				old.restart()
			}
			stopped := func() bool { return errors.Is(old.node.Err(), group.ErrRemoved) }
			if old.gone = true; !w.within(20*time.Second, stopped) {
				w.failf("one that %s was replaced and goes on: %+v", how, old.node.Status())
			}
			// An answer that got lost: the change is asked for again.
			for range 2 {
				if err := w.leader().node.Replace(old.id, fresh.id); err != nil {
					w.failf("replaced already: %v", err)
				}
				if err := w.leader().node.Promote(fresh.id); err != nil {
					w.failf("promoted already: %v", err)
				}
			}
		})
	}
}

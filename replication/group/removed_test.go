package group_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

func local(n *group.Node) error {
	_, err := n.ReadPoint(group.ReadOptions{Consistency: group.Local})
	return err
}

// What one member says of another's removal ends nothing, as long as a leader thinks otherwise.
func TestOneWordOfRemoval(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, nil, func(r *simRig) {
		l := r.leader(nil)
		a, b := r.others(l)[0], r.others(l)[1]
		for range 100 {
			a.node.ReportRejected(b.id, &transport.Rejection{Reason: transport.ReasonRemoved, Text: "it was removed"})
			env.Sleep(r.sim, 10*time.Millisecond)
		}
		if !r.within(time.Second, func() bool { return local(a.node) == nil }) {
			t.Errorf("a member that the leader talks to serves no reads: %v", local(a.node))
		}
		if err := a.node.Err(); err != nil {
			t.Errorf("one member's word has ended another: %v", err)
		}
	})
}

// A member that was removed while it was down is told when it comes back, and stops: a majority
// of those whom it knows tell it.
func TestRemovedWhileDown(t *testing.T) {
	for _, n := range []int{3, 4, 5} {
		simulate(t, 2, n, simnettest.Options{}, nil, func(r *simRig) {
			gone := r.others(r.leader(nil))[0]
			gone.kill()
			if err := r.leader(nil).node.Remove(gone.id); err != nil {
				t.Fatal(err)
			}
			gone.start()
			stops(r, gone)
		})
	}
}

func stops(r *simRig, n *simNode) {
	r.t.Helper()
	if !r.within(20*time.Second, func() bool { return errors.Is(n.node.Err(), group.ErrRemoved) }) {
		r.t.Errorf("member %d was removed, and has not stopped: %v, %+v", n.id, n.node.Err(), n.node.Status())
	}
}

// Of two members the one that was removed knows it from its own log, also when the other could
// not tell it any more that the removal is committed.
func TestRemovedOfTwo(t *testing.T) {
	for seed := range uint64(6) {
		simulate(t, seed, 2, simnettest.Options{}, nil, func(r *simRig) {
			l := r.leader(nil)
			gone := r.others(l)[0]
			if err := l.node.Remove(gone.id); err != nil {
				t.Fatal(err)
			}
			if seed%2 == 0 {
				gone.kill()
				gone.start()
			}
			stops(r, gone)
		})
	}
}

// A member that was away while most of those that it knows left, too, cannot be certain. It
// serves no reads, says what to do, and does not stop.
func TestRemovedInDoubt(t *testing.T) {
	simulate(t, 3, 3, simnettest.Options{}, nil, func(r *simRig) {
		l := r.leader(nil)
		away, other := r.others(l)[0], r.others(l)[1]
		away.kill()
		for _, n := range []*simNode{away, other} {
			if err := l.node.Remove(n.id); err != nil {
				t.Fatal(err)
			}
		}
		other.kill()
		away.start()
		if !r.within(20*time.Second, func() bool { return errors.Is(local(away.node), group.ErrMaybeRemoved) }) {
			t.Fatalf("a member that may have been removed serves reads: %v", local(away.node))
		}
		env.Sleep(r.sim, 20*time.Second)
		err := local(away.node)
		if !errors.Is(err, group.ErrMaybeRemoved) || away.node.Err() != nil {
			t.Errorf("after a while: %v, %v", err, away.node.Err())
		}
		for _, part := range []string{"2 of the 3 voters", "empty its directory", "(" + other.addr + ")"} {
			if !strings.Contains(away.node.Status().Error, part) {
				t.Errorf("the status does not say %q: %s", part, away.node.Status().Error)
			}
		}
	})
}

// A member hears of its removal, and stops for good, only when the leader knows it whatever happens: one that dies then, before it has
// answered, leads by itself when it is back. Those who do not vote say so too, and it does not count.
func TestRemovedBeforeTheLeaderDies(t *testing.T) {
	stuck := func(seed uint64, sabotage group.Sabotage, delay time.Duration, back bool) (heard, stuck bool) {
		options := func(o *group.Options) {
			o.Sabotage = sabotage
			for i := range o.Founders {
				o.Founders[i].Learner = i > 1
				o.Founders[i].Stays = i > 1
			}
		}
		simulate(t, seed, 4, simnettest.Options{}, options, func(r *simRig) {
			l := r.leader(nil)
			gone := r.nodes[0]
			if gone == l {
				gone = r.nodes[1]
			}
			l.write(l.node, "before")
			env.Sleep(r.sim, time.Second)
			l.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Delay: delay})
			tasks := env.NewGroup(r.sim)
			node := l.node
			tasks.Go("remove", func() { _ = node.Remove(gone.id) })
			for until := r.sim.Monotonic() + 5*time.Second; !heard && r.sim.Monotonic() < until; env.Sleep(r.sim, 20*time.Microsecond) {
				heard = gone.node.Err() != nil || local(gone.node) != nil
			}
			l.powerOff()
			tasks.Wait()
			env.Sleep(r.sim, 2*time.Second) // the others say what they know
			ended := gone.node.Err() != nil
			if gone.kill(); back || !ended {
				gone.start()
			}
			l.start()
			stuck = !r.within(30*time.Second, func() bool { return l.node.Writable() || gone.node != nil && gone.node.Writable() })
		})
		return heard, stuck
	}
	found := 0
	for seed := range uint64(12) {
		delay := []time.Duration{time.Millisecond, 150 * time.Millisecond}[seed%2]
		for _, back := range []bool{false, true} { // whether the member that was removed is started again
			if heard, stuck := stuck(seed, group.NoSabotage, delay, back); !heard || stuck {
				t.Errorf("seed %d: the member heard of its removal: %t; nobody leads any more: %t", seed, heard, stuck)
			}
			if _, stuck := stuck(seed, group.TellUnknown, delay, back); stuck && !back {
				found++
			} else if stuck {
				t.Errorf("seed %d: of a leader that forgets, too, the member that was removed is to vote again", seed)
			}
		}
	}
	if found == 0 {
		t.Error("no seed finds that a leader tells what its disk does not know")
	}
}

package group_test

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// bounded reads data that are at most so old; false: there were none in time.
func (n *simNode) bounded(bound, wait time.Duration) (number uint64, ok bool) {
	number, err := n.node.ReadPoint(group.ReadOptions{Consistency: group.Bounded, Bound: bound, Wait: wait})
	return number, err == nil
}

// An idle group writes nothing into its log, and its followers know nevertheless that they are
// fresh. Where a member's program is older, and does not hear it from heartbeats, there are marks.
func TestFreshWhileIdle(t *testing.T) {
	for _, old := range []bool{false, true} {
		simulate(t, 3, 3, simnettest.Options{}, nil, func(r *simRig) {
			l := r.leader(nil)
			if old {
				n := r.others(l)[0]
				n.kill()
				n.old = true
				n.start()
				env.Sleep(r.sim, time.Second)
			}
			l.write(l.node, "last")
			env.Sleep(r.sim, 3*time.Second)
			before := l.node.Status().Index
			env.Sleep(r.sim, 20*time.Second)
			if wrote := l.node.Status().Index - before; wrote > 0 != old {
				t.Errorf("older member: %t; %d entries in 20 seconds", old, wrote)
			}
			for _, n := range r.nodes {
				if got, ok := n.bounded(300*time.Millisecond, time.Millisecond); !ok || got < r.acked {
					t.Errorf("older member: %t; member %d: transaction %d of %d, %t: %+v", old, n.id, got, r.acked, ok, n.node.Status())
				}
			}
		})
	}
}

// overruled cuts a leader and a follower off from three others in an idle group, and has the
// follower asked for data that are 50 ms old at most while the others elect a leader and write. It returns
// how many answers missed what had been acknowledged more than that before.
func overruled(t *testing.T, seed uint64, sabotage group.Sabotage) (stale, answers int) {
	options := func(o *group.Options) { o.Sabotage = sabotage }
	simulate(t, seed, 5, simnettest.Options{}, options, func(r *simRig) {
		const bound = 50 * time.Millisecond
		env.Sleep(r.sim, 3*time.Second+time.Duration(r.sim.Uint64()%uint64(time.Second)))
		l := r.leader(nil)
		rest := r.others(l)
		a, rest := rest[0], rest[1:]
		r.cut(l, rest...)
		r.cut(a, rest...)
		over := false
		var number uint64
		var acked time.Duration
		tasks := env.NewGroup(r.sim)
		tasks.Go("writer", func() {
			for !over && number == 0 {
				env.Sleep(r.sim, time.Millisecond)
				for _, n := range rest {
					if n.node.Writable() && number == 0 {
						before := r.acked
						if n.write(n.node, "new"); r.acked > before {
							number, acked = r.acked, r.sim.Monotonic()
						}
					}
				}
			}
		})
		for until := r.sim.Monotonic() + 3*time.Second; r.sim.Monotonic() < until; env.Sleep(r.sim, 5*time.Millisecond) {
			began := r.sim.Monotonic()
			if got, ok := a.bounded(bound, time.Millisecond); ok {
				answers++
				if number != 0 && began-acked > bound && got < number {
					stale++
				}
			}
		}
		over = true
		tasks.Wait()
		if number == 0 {
			t.Errorf("seed %d: nobody wrote", seed)
		}
	})
	return stale, answers
}

// A follower of a leader that has been overruled does not take its data for fresh: a leader tells
// only what a majority has confirmed.
func TestOverruledLeaderTellsNothing(t *testing.T) {
	noticed := 0
	for seed := range race.Fewer(uint64(30), 6) {
		if stale, _ := overruled(t, seed, group.NoSabotage); stale > 0 {
			t.Errorf("seed %d: %d stale answers", seed, stale)
		}
		if race.Enabled {
			continue
		}
		stale, answers := overruled(t, seed, group.FreshUnproven)
		noticed += stale
		if answers == 0 {
			t.Errorf("seed %d: no answers", seed)
		}
	}
	if noticed == 0 && !race.Enabled {
		t.Error("that a leader tells what nobody has confirmed is not noticed")
	}
}

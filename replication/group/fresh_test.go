package group_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// bounded reads data that are at most so old; false: there were none in time.
func (n *simNode) bounded(bound, wait time.Duration) (number uint64, ok bool) {
	number, err := n.node.ReadPoint(group.ReadOptions{Consistency: group.Bounded, Bound: bound, Wait: wait})
	return number, err == nil
}

// An idle group writes nothing into its log, and its members know nevertheless how fresh they are.
// Where heartbeats do not tell it, there are marks.
func TestFreshWhileIdle(t *testing.T) {
	for _, c := range []struct {
		name    string
		nodes   int
		options func(*group.Options)
		before  func(r *simRig, l *simNode)
		marks   bool
	}{
		{"three voters", 3, nil, nil, false},
		{"one alone", 1, nil, nil, false},
		{"an older member", 3, nil, func(r *simRig, l *simNode) {
			n := r.others(l)[0]
			n.kill()
			n.old = true
			n.start()
		}, true},
		{"no lease", 3, func(o *group.Options) { o.NoLease = true }, nil, true},
		{"one alone without a lease", 1, func(o *group.Options) { o.NoLease = true }, nil, true},
		{"one voter and a replica", 2, func(o *group.Options) {
			o.Founders[1].Learner, o.Founders[1].Stays = true, true
		}, nil, false},
		{"a transfer that came to nothing", 3, nil, func(r *simRig, l *simNode) {
			n := r.others(l)[0]
			for try := 0; ; try++ { // whether the leader has just forgotten whom it has heard is chance
				n.kill()
				err := l.node.Transfer(n.id)
				if err != nil && strings.Contains(err.Error(), "did not take over") {
					break
				}
				if try == 20 || err == nil {
					t.Errorf("leadership is handed to a member that has gone just now: %v", err)
					break
				}
				n.start()
				r.heard(n)
			}
			env.Sleep(r.sim, 3*time.Second) // Raft gives it up
			n.start()
		}, true},
		{"heartbeats every second", 3, func(o *group.Options) { o.Tick = time.Second }, nil, true},
	} {
		simulate(t, 3, c.nodes, simnettest.Options{}, c.options, func(r *simRig) {
			l := r.leader(nil)
			if c.before != nil {
				c.before(r, l)
				env.Sleep(r.sim, time.Second)
			}
			if now := r.leader(nil); now != l {
				t.Errorf("%s: member %d leads", c.name, now.id)
			}
			l.write(l.node, "last")
			env.Sleep(r.sim, 5*time.Second)
			before := l.node.Status().Index
			bound, longest := 300*time.Millisecond, time.Duration(0)
			if c.marks {
				bound = 2 * time.Second // a mark is due after one, and is looked for every half
			}
			for range 200 {
				env.Sleep(r.sim, 100*time.Millisecond)
				for _, n := range r.nodes {
					if got, ok := n.bounded(bound, time.Nanosecond); !ok || got < r.acked {
						t.Errorf("%s: member %d, data of %v: transaction %d of %d, %t: %+v", c.name, n.id, bound, got, r.acked, ok, n.node.Status())
						return
					}
					longest = max(longest, n.node.Status().Lag.Time)
				}
			}
			for _, n := range r.nodes { // a shorter bound than what is told keeps to is asked for
				for _, bound := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond} {
					if got, ok := n.bounded(bound, time.Second); !ok || got < r.acked {
						t.Errorf("%s: member %d, data of %v: transaction %d of %d, %t", c.name, n.id, bound, got, r.acked, ok)
					}
				}
			}
			if wrote := l.node.Status().Index - before; wrote > 0 != c.marks {
				t.Errorf("%s: %d entries in 20 seconds", c.name, wrote)
			}
			if longest > 0 {
				t.Errorf("%s: a lag of %v", c.name, longest)
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

// The only voter that starts again does not know yet what it had acknowledged: no read is answered
// before it does.
func TestLoneVoterStartsAgain(t *testing.T) {
	for seed := range uint64(10) {
		simulate(t, seed, 1, simnettest.Options{}, nil, func(r *simRig) {
			n := r.nodes[0]
			for i := range 20 {
				n.write(n.node, fmt.Sprintf("s%d", i))
			}
			n.kill()
			n.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Delay: 100 * time.Millisecond})
			env.Sleep(r.sim, 2*time.Second)
			n.start()
			tasks := env.NewGroup(r.sim)
			for _, o := range []group.ReadOptions{
				{Consistency: group.Strong}, {Consistency: group.Bounded, Bound: time.Second}, {Consistency: group.Bounded},
			} {
				o.Wait = 10 * time.Second
				tasks.Go("reader", func() {
					for range 50 {
						if got, err := n.node.ReadPoint(o); err != nil || got < r.acked {
							t.Errorf("seed %d, consistency %d: transaction %d of %d: %v", seed, o.Consistency, got, r.acked, err)
							return
						}
						env.Sleep(r.sim, time.Millisecond)
					}
				})
			}
			tasks.Wait()
		})
	}
}

// A strong read that nobody answers ends after its time, however seldom the clock ticks, and one that
// still waits is answered as soon as its leader is there again.
func TestStrongReadWaitsNoLonger(t *testing.T) {
	for seed := range uint64(12) {
		simulate(t, seed, 3, simnettest.Options{}, func(o *group.Options) { o.Tick = time.Second }, func(r *simRig) {
			l := r.leader(nil)
			env.Sleep(r.sim, 3*time.Second)
			n := r.others(l)[0]
			r.net.CutBoth(n.addr, l.addr)
			read := func(wait time.Duration) (took time.Duration, err error) {
				began := r.sim.Monotonic()
				_, err = n.node.ReadPoint(group.ReadOptions{Consistency: group.Strong, Wait: wait})
				return r.sim.Monotonic() - began, err
			}
			for _, wait := range []time.Duration{time.Millisecond, 300 * time.Millisecond} {
				if took, err := read(wait); !errors.Is(err, group.ErrNoQuorum) || took > wait+time.Millisecond {
					t.Errorf("%v: %v after %v", wait, err, took)
				}
			}
			tasks := env.NewGroup(r.sim)
			tasks.Go("heal", func() {
				env.Sleep(r.sim, 3*time.Second) // the connections are lost, with what was sent
				r.net.HealBoth(n.addr, l.addr)
			})
			if took, err := read(time.Minute); err != nil || took > 4200*time.Millisecond {
				t.Errorf("seed %d: %v after %v, and after 3s the leader was there again", seed, err, took)
			}
			tasks.Wait()
		})
	}
}

// A strong read is answered however far the members are from each other, and in as many round trips as it takes: of two kinds of members,
// with a lease that never lasts until it is proven, and without one.
func TestStrongReadFromAfar(t *testing.T) {
	for _, way := range []time.Duration{40 * time.Millisecond, 75 * time.Millisecond, 130 * time.Millisecond, 170 * time.Millisecond} {
		for _, noLease := range []bool{false, true} {
			far := simnettest.Options{Faults: simnettest.Faults{DelayMin: way, DelayMax: way + 5*time.Millisecond}}
			options := func(o *group.Options) { o.NoLease, o.ElectionTicks = noLease, 40 }
			simulate(t, 1, 3, far, options, func(r *simRig) {
				l := r.leader(nil)
				l.write(l.node, "far")
				for _, n := range r.nodes {
					for range 5 {
						began := r.sim.Monotonic()
						got, err := n.node.ReadPoint(group.ReadOptions{Consistency: group.Strong, Wait: 10 * time.Second})
						if took := r.sim.Monotonic() - began; err != nil || got < r.acked || took > 4*(way+5*time.Millisecond)+100*time.Millisecond {
							t.Errorf("%v, no lease %t: member %d, leader %d: transaction %d of %d, %v after %v", way, noLease, n.id, l.id, got, r.acked, err, took)
						}
						env.Sleep(r.sim, 30*time.Millisecond)
					}
				}
			})
		}
	}
}

// deafened drops entries on their way to a node.
type deafened struct {
	transport.Handler
	over *bool
}

func (d deafened) Receive(from, incarnation uint64, msgs []*raftpb.Message) {
	if *d.over {
		msgs = slices.DeleteFunc(msgs, func(m *raftpb.Message) bool { return m.GetType() == raftpb.MsgApp })
	}
	d.Handler.Receive(from, incarnation, msgs)
}

// Who has lost the lead is behind since then, and not since it had won it, when it hears of entries that have not come yet.
func TestLagAfterTheLead(t *testing.T) {
	missed := false
	options := func(o *group.Options) {
		if listen := o.Transport; o.ID == 1 {
			o.Transport = func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
				return listen(id, deafened{h, &missed})
			}
		}
	}
	simulate(t, 1, 3, simnettest.Options{}, options, func(r *simRig) {
		first := r.nodes[0]
		if l := r.leader(nil); l != first && (l.node.Transfer(first.id) != nil || !r.within(time.Minute, first.node.Writable)) {
			t.Error("member 1 does not lead")
		}
		for i := range 60 {
			first.write(first.node, fmt.Sprint("led", i))
			env.Sleep(r.sim, time.Second)
		}
		next := r.others(first)[0]
		if err := first.node.Transfer(next.id); err != nil || !r.within(time.Minute, next.node.Writable) {
			t.Errorf("the lead is not handed over: %v", err)
		}
		missed = true
		next.write(next.node, "other")
		env.Sleep(r.sim, 3*time.Second)
		if lag := first.node.Status().Lag; lag.Time < 2*time.Second || lag.Time > 5*time.Second {
			t.Errorf("it is %v behind: %+v", lag.Time, first.node.Status())
		}
		missed = false
		if !r.within(time.Minute, func() bool { return first.node.Status().Lag.Time == 0 }) {
			t.Errorf("%+v", first.node.Status())
		}
	})
}

// TestClocksThatDisagree: members whose clocks show another time know how old their data are all the same: they are not behind
// for their clock's sake, and data are not younger than they are for it.
func TestClocksThatDisagree(t *testing.T) {
	for _, lease := range []bool{true, false} {
		for seed := range uint64(6) {
			options := func(o *group.Options) { o.NoLease = !lease }
			simulate(t, seed, 3, simnettest.Options{}, options, func(r *simRig) {
				for i, n := range r.nodes {
					n.kill()
					n.wall = time.Duration((i+int(seed))%3-1) * time.Hour
					n.start()
				}
				l := r.leader(nil)
				l.write(l.node, "first")
				bound := 300 * time.Millisecond
				if !lease {
					bound = 3 * time.Second
				}
				env.Sleep(r.sim, 5*time.Second)
				for _, n := range r.nodes {
					if lag := n.node.Status().Lag.Time; lag != 0 {
						t.Errorf("lease %t, seed %d, a clock %v ahead, the leader's %v: a lag of %v", lease, seed, n.wall, l.wall, lag)
					}
					if _, ok := n.bounded(bound, time.Nanosecond); !ok {
						t.Errorf("lease %t, seed %d, a clock %v ahead, the leader's %v: no data of %v", lease, seed, n.wall, l.wall, bound)
					}
				}
				for _, n := range r.others(l) {
					r.cut(n, r.others(n)...)
					env.Sleep(r.sim, 200*time.Millisecond)
					l.write(l.node, "unseen")
					env.Sleep(r.sim, bound)
					if got, ok := n.bounded(bound, time.Nanosecond); ok && got < r.acked {
						t.Errorf("lease %t, seed %d, a clock %v ahead, the leader's %v: data of %v have %d of %d", lease, seed, n.wall, l.wall, bound, got, r.acked)
					}
					r.net.HealAll()
					if env.Sleep(r.sim, 3*time.Second); r.leader(nil) != l {
						return
					}
				}
			})
		}
	}
}

// TestOneVoterIsLeft: a replica of a group in which one voter is left, for which Raft sends no rounds, knows how old its data are, whatever
// the clocks show, also while that voter starts again.
func TestOneVoterIsLeft(t *testing.T) {
	for seed, wall := range []time.Duration{0, time.Hour, -time.Hour} {
		for _, lease := range []bool{true, false} {
			oneVoterIsLeft(t, uint64(seed), wall, lease)
		}
	}
}

func oneVoterIsLeft(t *testing.T, seed uint64, wall time.Duration, lease bool) {
	options := func(o *group.Options) { o.Founders[2].Learner, o.Founders[2].Stays, o.NoLease = true, true, !lease }
	simulate(t, seed, 3, simnettest.Options{}, options, func(r *simRig) {
		replica := r.nodes[2]
		replica.kill()
		replica.wall = wall
		replica.start()
		l := r.leader(nil)
		env.Sleep(r.sim, 5*time.Second)
		for _, n := range r.others(l) {
			if n != replica {
				if err := l.node.Remove(n.id); err != nil {
					t.Error(err)
				}
				n.kill()
			}
		}
		const bound = 3 * time.Second
		fresh := func(when string) {
			for range 100 {
				env.Sleep(r.sim, 100*time.Millisecond)
				l.write(l.node, fmt.Sprint(when, r.acked))
				if got, ok := replica.bounded(bound, time.Nanosecond); !ok {
					t.Errorf("a clock %v ahead, lease %t, %s: no data of %v, %d of %d: %+v", wall, lease, when, bound, got, r.acked, replica.node.Status())
					return
				}
				if lag := replica.node.Status().Lag.Time; lag > bound {
					t.Errorf("a clock %v ahead, lease %t, %s: a lag of %v", wall, lease, when, lag)
				}
			}
			r.cut(replica, l)
			l.write(l.node, "unseen "+when)
			unseen := r.sim.Monotonic()
			for range 100 {
				env.Sleep(r.sim, 100*time.Millisecond)
				if got, ok := replica.bounded(bound, time.Nanosecond); ok && got < r.acked && r.sim.Monotonic()-unseen > bound {
					t.Errorf("a clock %v ahead, lease %t, %s: data of %v have %d of %d", wall, lease, when, bound, got, r.acked)
					return
				}
			}
			r.net.HealAll()
			env.Sleep(r.sim, 2*time.Second)
		}
		fresh("alone")
		l.kill()
		env.Sleep(r.sim, 2*time.Second)
		if lag := replica.node.Status().Lag.Time; lag > bound {
			t.Errorf("a lag of %v after two seconds without a leader", lag)
		}
		l.start()
		r.leader(nil)
		env.Sleep(r.sim, 2*time.Second)
		fresh("again")
	})
}

// TestLateWords: where everything that a leader says takes seconds to arrive, data are as old as that.
func TestLateWords(t *testing.T) {
	for seed := range uint64(4) {
		simulate(t, seed, 3, simnettest.Options{}, nil, func(r *simRig) {
			l := r.leader(nil)
			n := r.others(l)[int(seed)%2]
			const late, bound = 2 * time.Second, time.Second
			r.net.SetFaults(l.addr, n.addr, simnettest.Faults{DelayMin: late, DelayMax: late + time.Millisecond})
			env.Sleep(r.sim, 5*time.Second)
			l.write(l.node, "unseen")
			env.Sleep(r.sim, bound+100*time.Millisecond)
			if got, ok := n.bounded(bound, time.Nanosecond); ok && got < r.acked {
				t.Errorf("seed %d: data of %v have %d of %d", seed, bound, got, r.acked)
			}
			if got, ok := n.bounded(2*late, time.Nanosecond); !ok {
				t.Errorf("seed %d: no data of %v, %d of %d", seed, 2*late, got, r.acked)
			}
		})
	}
}

// TestEntriesOfAnotherClock: the time in an entry of a former leader, whose clock was ahead, tells nothing of how old data are beside
// the words of the present one.
func TestEntriesOfAnotherClock(t *testing.T) {
	for _, lease := range []bool{true, false} {
		entriesOfAnotherClock(t, lease)
	}
}

func entriesOfAnotherClock(t *testing.T, lease bool) {
	simulate(t, 2, 3, simnettest.Options{}, func(o *group.Options) { o.NoLease = !lease }, func(r *simRig) {
		l := r.leader(nil)
		l.kill()
		l.wall = time.Hour
		l.start()
		if r.leader(nil) != l && (r.leader(nil).node.Transfer(l.id) != nil || !r.within(time.Minute, l.node.Writable)) {
			t.Error("the member whose clock is ahead does not lead")
			return
		}
		l.write(l.node, "of old")
		env.Sleep(r.sim, time.Second)
		n, m := r.others(l)[0], r.others(l)[1]
		n.node.SetSabotage(group.HoldApplier)
		if err := l.node.Transfer(m.id); err != nil || !r.within(time.Minute, m.node.Writable) {
			t.Error("the other one does not lead", err)
			return
		}
		bound := time.Second
		if !lease {
			bound = 3 * time.Second
		}
		for range 10 {
			m.write(m.node, "unseen")
			env.Sleep(r.sim, bound+100*time.Millisecond)
			if got, ok := n.bounded(bound, time.Nanosecond); ok && got < r.acked {
				t.Errorf("lease %t: data of %v have %d of %d", lease, bound, got, r.acked)
			}
		}
	})
}

// TestReplicasThatVoteNow: what replicas have answered to the only voter counts for nothing once they vote. A leader that they have given up
// would take it for the word of a majority.
func TestReplicasThatVoteNow(t *testing.T) {
	options := func(o *group.Options) {
		for i := range o.Founders[1:] {
			o.Founders[i+1].Learner, o.Founders[i+1].Stays = true, true
		}
	}
	simulate(t, 1, 3, simnettest.Options{}, options, func(r *simRig) {
		old := r.leader(nil)
		env.Sleep(r.sim, 10*time.Second)
		for _, n := range r.others(old) {
			if err := old.node.Promote(n.id); err != nil {
				t.Error(err)
				return
			}
		}
		if env.Sleep(r.sim, 20*time.Second); !old.node.Writable() {
			t.Errorf("who has let them vote leads no more: %v", old.node.Err())
			return
		}
		for _, n := range r.others(old) {
			if got, ok := n.bounded(time.Second, time.Nanosecond); !ok {
				t.Errorf("member %d, which votes now, has no data of a second: %d of %d, %+v", n.id, got, r.acked, n.node.Status())
			}
		}
		r.cut(old, r.others(old)...)
		l := r.leader(old)
		l.write(l.node, "new")
		for range 50 {
			if got, err := old.node.ReadPoint(group.ReadOptions{Consistency: group.Strong, Wait: 10 * time.Millisecond}); err == nil && got < r.acked {
				t.Errorf("a strong read of %d, and %d were acknowledged", got, r.acked)
				return
			}
			env.Sleep(r.sim, 20*time.Millisecond)
		}
	})
}

// TestComesBackToAnotherLeader: a member that was away while the lead moved does not take the new leader for one that sends no rounds: its
// clock, which is wrong, does not count.
func TestComesBackToAnotherLeader(t *testing.T) {
	for seed := range uint64(4) {
		simulate(t, seed, 3, simnettest.Options{}, func(o *group.Options) { o.NoLease = true }, func(r *simRig) {
			n := r.nodes[2]
			n.kill()
			n.wall = -20 * time.Second
			n.start()
			l := r.leader(nil)
			if l == n {
				return
			}
			next := r.nodes[2-l.id]
			l.write(l.node, "seen")
			env.Sleep(r.sim, 5*time.Second)
			r.cut(n, l, next)
			if err := l.node.Transfer(next.id); err != nil || !r.within(time.Minute, next.node.Writable) {
				t.Error(err)
				return
			}
			env.Sleep(r.sim, 2*time.Second)
			for i := range 100 {
				next.write(next.node, fmt.Sprint("unseen", i))
			}
			env.Sleep(r.sim, 4*time.Second)
			r.net.HealAll()
			for until := r.sim.Monotonic() + 2*time.Second; r.sim.Monotonic() < until; env.Sleep(r.sim, 200*time.Microsecond) {
				if got, ok := n.bounded(time.Second, time.Nanosecond); ok && got < r.acked {
					t.Errorf("seed %d: data of a second have %d of %d, which are seconds old", seed, got, r.acked)
					return
				}
			}
		})
	}
}

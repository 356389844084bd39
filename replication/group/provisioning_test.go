package group_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/raftlog"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// received brings a group to where a follower that was behind has received a snapshot and its log from
// the third member, which are not in place yet.
func received(r *simRig) (l, f, third *simNode) {
	l = r.leader(nil)
	f, third = r.others(l)[0], r.others(l)[1]
	r.net.CutBoth(f.addr, l.addr)
	for i := range 10 {
		l.write(l.node, fmt.Sprintf("before%d", i))
	}
	slow := f.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Name: "*.part", Times: 1, Delay: 2 * time.Second})
	f.node.WantData()
	if !r.within(10*time.Second, func() bool { return slow.Hits() > 0 }) {
		r.t.Error("the follower receives no log")
	}
	return l, f, third
}

// overtaken is received, and then the follower acknowledges more of the group's log, all by itself
// with the leader, which the third member is cut off from. It returns the index up to which it has.
func overtaken(r *simRig) (l, f *simNode, last uint64) {
	l, f, third := received(r)
	r.net.HealBoth(f.addr, l.addr)
	r.net.CutBoth(third.addr, l.addr)
	r.net.CutBoth(third.addr, f.addr)
	for i := range 5 {
		l.write(l.node, fmt.Sprintf("since%d", i))
	}
	last = l.node.Log().LastIndex()
	if !r.within(time.Second, func() bool { return f.node.Log().LastIndex() == last }) {
		r.t.Errorf("the follower has acknowledged %d of %d entries", f.node.Log().LastIndex(), last)
	}
	return l, f, last
}

// over reports whether the node is not being given data any more.
func (n *simNode) over() bool {
	_, err := n.node.Engine()
	return !n.node.WantsData() && err == nil
}

// A member is given data, and acknowledges more than is in them before they could be put in place, or
// does not. Whenever it is killed then, or loses power, it has all that it has acknowledged when it starts
// again: the member with which it has agreed may be gone.
func TestAcknowledgedWhileReceiving(t *testing.T) {
	for _, c := range []struct{ more, power bool }{{true, false}, {true, true}, {false, false}, {false, true}} {
		step, k := race.Fewer(int64(2), 9), int64(1)
		if c.power {
			k++
		}
		for whole := false; !whole; k += step {
			simulate(t, uint64(k), 3, simnettest.Options{}, nil, func(r *simRig) {
				var f *simNode
				var last uint64
				if c.more {
					_, f, last = overtaken(r)
				} else {
					_, f, _ = received(r)
					last = f.node.Log().LastIndex()
				}
				before := f.fs.Mutations()
				f.fs.CrashAt(before + k)
				if !r.within(20*time.Second, func() bool { return f.fs.Crashed() || f.over() }) {
					t.Errorf("%+v, killed at change %d: the follower goes on receiving: %+v", c, k, f.node.Status())
				}
				if whole = !f.fs.Crashed(); whole {
					t.Logf("%+v: %d changes", c, f.fs.Mutations()-before)
				}
				f.startsAlone(c.power, last, fmt.Sprintf("%+v, killed at change %d", c, k))
			})
			if t.Failed() {
				return
			}
		}
	}
}

// startsAlone ends the node and starts it again, without anybody to ask, and then with the others.
func (n *simNode) startsAlone(power bool, last uint64, what string) {
	r := n.rig
	r.cut(n, r.others(n)...)
	fs := n.fs
	fs.Crash()
	n.kill()
	if power {
		n.fs = fs.CrashImage()
	}
	n.fs.CrashAt(0)
	if n.start(); n.node == nil {
		r.t.Errorf("%s: it does not start", what)
		return
	}
	if !r.within(time.Second, func() bool { return n.node.Log() != nil }) || n.node.Log().LastIndex() < last {
		r.t.Errorf("%s: of %d entries that the member had acknowledged it has %v", what, last, n.node.Status())
	}
	r.net.HealAll()
	if !r.within(20*time.Second, func() bool { return n.node.Status().Number >= r.acked }) {
		r.t.Errorf("%s: it does not get to transaction %d: %+v", what, r.acked, n.node.Status())
	}
}

// The same where the data that are not needed cannot be removed.
func TestAcknowledgedAndDiskFails(t *testing.T) {
	for _, name := range []string{"complete", "receiving", "data.2"} {
		simulate(t, 1, 3, simnettest.Options{}, nil, func(r *simRig) {
			_, f, last := overtaken(r)
			f.fs.Inject(simfile.Fault{Ops: simfile.OpRemove | simfile.OpSyncDir, Name: name, Err: syscall.EIO})
			r.within(10*time.Second, func() bool { return f.node.Err() != nil || f.over() })
			f.startsAlone(false, last, "an error at "+name)
		})
	}
}

// A member that has taken over a log knows of the last entry's term, and keeps a vote in a later one.
func TestAdoptLog(t *testing.T) {
	was := raftlog.State{Term: 5, Vote: 2, LogFile: 7, Commit: 3}
	for term, want := range map[uint64]raftlog.State{
		4: {Term: 5, Vote: 2, Commit: 3}, 5: {Term: 5, Vote: 2, Commit: 3}, 6: {Term: 6, Commit: 3},
	} {
		if got, err := group.AdoptLog(simfile.New(env.Real(), 1), env.Real(), was, term); err != nil || got != want {
			t.Errorf("a log up to term %d: %+v, want %+v: %v", term, got, want, err)
		}
	}
}

// What a member has acknowledged of a term before that of the copied log's end, the group has not agreed on,
// however long the member's log is.
func TestAhead(t *testing.T) {
	copied := trx.Position{Index: 100, Term: 5}
	for own, want := range map[trx.Position]bool{
		{Index: 100, Term: 5}: true, {Index: 101, Term: 5}: true, {Index: 101, Term: 6}: true, {Index: 100, Term: 6}: true,
		{Index: 99, Term: 5}: false, {Index: 99, Term: 6}: false, {Index: 5000, Term: 4}: false, {}: false,
	} {
		if group.Ahead(own, copied) != want {
			t.Errorf("a log that ends with %+v, and one with %+v: ahead is %v", own, copied, !want)
		}
	}
}

// A leader that was being given data keeps what it has, and goes on leading.
func TestReceiverLeads(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, nil, func(r *simRig) {
		l, f, _ := overtaken(r)
		if err := l.node.Transfer(f.id); err != nil {
			t.Errorf("transfer: %v", err)
		}
		r.leader(l)
		before, err := f.node.Engine()
		if err != nil {
			t.Fatal(err)
		}
		if !r.within(20*time.Second, func() bool { return !f.node.WantsData() }) {
			t.Errorf("it goes on receiving: %+v", f.node.Status())
		}
		if now, err := f.node.Engine(); now != before || !f.node.Writable() {
			t.Errorf("a leader was closed that was to keep its data: %v", err)
		}
		if names, err := f.fs.List("."); err != nil || slices.Contains(names, "data.2") {
			t.Errorf("left: %v, %v", names, err)
		}
	})
}

// A member that gets the log as well while it is being given data needs them not, however much is
// written: it receives them once at most, and is not closed for it.
func TestCatchesUpWhileReceiving(t *testing.T) {
	for seed := uint64(1); seed <= race.Fewer(uint64(5), 2); seed++ {
		simulate(t, seed, 3, simnettest.Options{}, nil, func(r *simRig) {
			l := r.leader(nil)
			f := r.others(l)[0]
			stop := r.load(l)
			env.Sleep(r.sim, time.Second)
			before, err := f.node.Engine()
			if err != nil {
				t.Error(err)
			}
			f.node.WantData()
			restarts := int64(0)
			if !r.within(20*time.Second, func() bool {
				if p, ok := f.node.Progress(); ok {
					restarts = max(restarts, p.Restarts)
				}
				return !f.node.WantsData()
			}) {
				t.Errorf("seed %d: it goes on receiving: %+v", seed, f.node.Status())
			}
			if now, err := f.node.Engine(); now != before || restarts > 0 {
				t.Errorf("seed %d: received again %d times; still the old data: %v, %v", seed, restarts, now == before, err)
			}
			stop()
			if names, err := f.fs.List("."); err != nil || slices.Contains(names, "data.2") {
				t.Errorf("seed %d: left: %v, %v", seed, names, err)
			}
		})
	}
}

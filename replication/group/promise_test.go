package group_test

import (
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/raftlog"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// unlike lets the member that leads have a longer election timeout than the others, cuts it off, or
// starts a follower again with a shorter timeout besides, and returns the first stale read.
func unlike(t *testing.T, seed uint64, again bool, sabotage group.Sabotage) (stale string) {
	ticks := map[uint64]int{1: 40, 2: 10, 3: 10}
	options := func(o *group.Options) { o.ElectionTicks, o.Sabotage = ticks[o.ID], sabotage }
	simulate(t, seed, 3, simnettest.Options{}, options, func(r *simRig) {
		first := r.nodes[0]
		stop := r.load(r.nodes...)
		for range 3 {
			if !r.within(time.Minute, func() bool {
				l := r.leader(nil)
				return l == first || l != nil && l.node.Transfer(first.id) == nil && r.within(time.Second, first.node.Writable)
			}) {
				t.Errorf("seed %d: the first member does not lead", seed)
				break
			}
			env.Sleep(r.sim, time.Second)
			if again {
				ticks[2], ticks[3] = 40, 40
				for _, n := range r.others(first) {
					n.kill()
					n.start()
					env.Sleep(r.sim, time.Second)
				}
				ticks[2], ticks[3] = 4, 4
			}
			r.cut(first, r.others(first)...)
			if again {
				for _, n := range r.others(first) {
					n.kill()
					n.start()
				}
			}
			if r.leader(first) == nil {
				break
			}
			env.Sleep(r.sim, 3*time.Second)
			r.net.HealAll()
			env.Sleep(r.sim, time.Second)
		}
		stop()
		if r.reads == 0 {
			t.Errorf("seed %d: no read was answered", seed)
		}
		stale = r.stale
	})
	return stale
}

// Members may have different election timeouts, and other ones after a start: no strong read is stale.
func TestDifferentTimeouts(t *testing.T) {
	for _, again := range []bool{false, true}[:race.Fewer(2, 1)] {
		for seed := range race.Fewer(uint64(3), 1) {
			if stale := unlike(t, seed, again, group.NoSabotage); stale != "" {
				t.Errorf("again %t, seed %d: %s", again, seed, stale)
			}
		}
		if unlike(t, 0, again, group.PromisesOwn) == "" {
			t.Errorf("again %t: that a follower promises what its own timeout asks for is not noticed", again)
		}
	}
}

// A damaged file of the promise stops a start, which says what to do.
func TestPromiseDamaged(t *testing.T) {
	simulate(t, 1, 1, simnettest.Options{}, nil, func(r *simRig) {
		n := r.nodes[0]
		n.kill()
		f, err := n.fs.Open("promise", file.OpenOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := f.WriteAt([]byte{0xff}, 15); err != nil {
			t.Error(err)
		}
		_ = f.Close()
		if _, err := group.Open(group.Options{Env: r.sim, FS: n.fs, ID: 1, Group: [16]byte{9}, Founders: r.members(),
			Transport: func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
				return r.net.Listen(simnettest.Config{Addr: n.addr, Identity: id, LogFormat: group.LogFormat}, h)
			}}); err == nil ||
			!strings.Contains(err.Error(), "promise is damaged") {
			t.Errorf("it starts: %v", err)
		}
	})
}

// A state file that was put back has forgotten terms in which this member has voted; those of which its log
// has entries it learns from there.
func TestOlderStateFile(t *testing.T) {
	simulate(t, 2, 3, simnettest.Options{}, nil, func(r *simRig) {
		n := r.nodes[0]
		old, err := file.ReadWhole(n.fs, "raft.state", 1<<20)
		if err != nil {
			t.Error(err)
			return
		}
		stop := r.load(r.nodes...)
		for _, to := range []*simNode{r.nodes[1], r.nodes[2], r.nodes[1], r.nodes[2]} {
			if l := r.leader(nil); l != to && (l == nil || l.node.Transfer(to.id) != nil || !r.within(time.Minute, to.node.Writable)) {
				t.Error("nobody takes over")
			}
			env.Sleep(r.sim, 200*time.Millisecond)
		}
		term := n.node.Status().Term
		stop()
		for _, n := range r.nodes {
			n.kill()
		}
		for _, name := range []string{raftlog.StateFileName, raftlog.StateCopyName} {
			if err := file.WriteWhole(n.fs, name, old); err != nil {
				t.Error(err)
			}
		}
		if n.start(); n.node != nil && !r.within(time.Second, func() bool { return n.node.Status().Term >= term }) {
			t.Errorf("it knows term %d, and its log has entries of term %d", n.node.Status().Term, term)
		}
	})
}

// A member whose disk does not take the file of the promise, when a leader counts on more, takes in the group's log meanwhile.
func TestPromiseOnStalledDisk(t *testing.T) {
	ticks := map[uint64]int{1: 10, 2: 10, 3: 10}
	simulate(t, 1, 3, simnettest.Options{}, func(o *group.Options) { o.ElectionTicks = ticks[o.ID] }, func(r *simRig) {
		l := r.leader(nil)
		next, f := r.others(l)[0], r.others(l)[1]
		createFruit(t, l.node)
		next.kill()
		ticks[next.id] = 40
		next.start()
		stalled := f.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Name: "promise*", Delay: 30 * time.Second, Times: 1})
		if !r.within(time.Minute, func() bool { return l.node.Transfer(next.id) == nil && r.within(time.Second, next.node.Writable) }) {
			t.Errorf("no leader with a longer timeout: %+v", next.node.Status())
		}
		if !r.within(time.Second, func() bool { return stalled.Hits() > 0 }) {
			t.Error("the file is not written")
		}
		began := r.sim.Monotonic()
		for i := range 100 {
			insertFruit(t, next.node, i)
			env.Sleep(r.sim, 50*time.Millisecond)
		}
		if last := next.node.Status().Committed; !r.within(10*time.Second, func() bool { return f.node.Status().Committed >= last }) {
			t.Errorf("it does not follow: %+v", f.node.Status())
		}
		if took := r.sim.Monotonic() - began; took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

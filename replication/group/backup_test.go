package group_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// A member is current that hears a leader and has what the group had agreed on. One that is cut off, that was started
// without the others, or that leads without them does not prove it, and says so in time.
func TestStanding(t *testing.T) {
	options := func(o *group.Options) { o.Founders[3].Learner, o.Founders[3].Stays = true, true }
	simulate(t, 3, 4, simnettest.Options{}, options, func(r *simRig) {
		l := r.leader(nil)
		standing := func(n *simNode) group.Standing {
			t.Helper()
			before := r.sim.Monotonic()
			s, err := n.node.Standing(context.Background(), 5*time.Second)
			if took := r.sim.Monotonic() - before; err != nil || took > 6*time.Second {
				t.Errorf("node %d after %v: %v", n.id, took, err)
			}
			return s
		}
		for i, n := range r.nodes {
			l.write(l.node, "s"+string(rune('a'+i)))
			if s := standing(n); !s.Current() || n.node.Status().Number < r.acked {
				t.Errorf("node %d: %+v with %d of %d", n.id, s, n.node.Status().Number, r.acked)
			}
		}
		replica := r.nodes[3]
		away := r.others(l)[0]
		for _, n := range []*simNode{away, replica} {
			r.cut(n, r.others(n)...)
			if s := standing(n); s.Heard || s.Current() {
				t.Errorf("node %d, cut off: %+v", n.id, s)
			}
		}
		l.write(l.node, "unseen")
		if s := standing(l); !s.Current() {
			t.Errorf("the leader of a majority: %+v", s)
		}
		r.cut(l, r.others(l)...)
		if s := standing(l); s.Current() {
			t.Errorf("a leader without a majority: %+v", s)
		}
		away.kill()
		away.start()
		if s := standing(away); s.Heard {
			t.Errorf("started without the others: %+v", s)
		}
		ctx, stop := context.WithCancel(context.Background())
		stop()
		if _, err := away.node.Standing(ctx, time.Hour); !errors.Is(err, context.Canceled) {
			t.Errorf("nobody asks any more: %v", err)
		}
		for i, n := range r.nodes {
			for _, o := range r.nodes[:i] {
				r.net.HealBoth(o.addr, n.addr)
			}
		}
		r.leader(nil)
		env.Sleep(r.sim, 3*time.Second)
		if s := standing(away); !s.Current() || away.node.Status().Number < r.acked {
			t.Errorf("back again: %+v with %d of %d", s, away.node.Status().Number, r.acked)
		}
	})
}

// discarding takes a backup and keeps nothing.
type discarding struct{}

func (discarding) Send([]byte) error { return nil }
func (discarding) Abort()            {}

// A member without a majority gives a backup up to what is known to be committed also where its log goes on in a file of
// which nothing is.
func TestBackupBeforeUncommittedFile(t *testing.T) {
	options := func(o *group.Options) { o.LargeThreshold = 200 }
	simulate(t, 1, 3, simnettest.Options{}, options, func(r *simRig) {
		l := r.leader(nil)
		createFruit(t, l.node)
		r.acked = insertRandom(r, l.node, 0) // behind a large transaction the next entry begins a file
		r.cut(l, r.others(l)...)
		tasks := env.NewGroup(r.sim)
		tasks.Go("writer", func() { // nobody is told that it is committed
			acked := r.acked
			if l.write(l.node, "unseen"); r.acked != acked {
				t.Error("it was acknowledged")
			}
		})
		env.Sleep(r.sim, 500*time.Millisecond)
		files, committed := l.node.Log().Files(), l.node.Log().Committed()
		if newest := files[len(files)-1]; newest.FirstIndex != committed+1 || newest.LastIndex < newest.FirstIndex {
			t.Fatalf("committed is entry %d, the last file has entries %d to %d", committed, newest.FirstIndex, newest.LastIndex)
		}
		var names []string
		m, last, err := l.node.Backup(context.Background(), func(name string) (provision.ChunkWriter, error) {
			names = append(names, name)
			return discarding{}, nil
		})
		if err != nil || m.CSN != r.acked || last != r.acked || !strings.HasPrefix(names[len(names)-1], group.BackupLogPrefix) {
			t.Errorf("to %d, log to %d of %d: %v; %v", m.CSN, last, r.acked, names, err)
		}
		l.kill()
		tasks.Wait()
	})
}

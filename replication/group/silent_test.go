package group_test

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// A member that does not vote gives up a leader that is silent, and its lag goes on from there; it
// follows who leads next.
func TestReplicaGivesUpSilentLeader(t *testing.T) {
	options := func(o *group.Options) { o.Founders[2].Learner, o.Founders[2].Stays = true, true }
	simulate(t, 7, 3, simnettest.Options{}, options, func(r *simRig) {
		l := r.leader(nil)
		replica := r.nodes[2]
		env.Sleep(r.sim, 10*time.Second)
		if s := replica.node.Status(); s.Leader != l.id || s.Lag != (group.Lag{}) {
			t.Errorf("before: %+v", s)
		}
		r.cut(replica, r.nodes[:2]...) // nothing proves that the leader is no more
		if !r.within(3*time.Second, func() bool { return replica.node.Status().Leader == 0 }) {
			t.Errorf("3 s after the voters are silent: %+v", replica.node.Status())
		}
		if s := replica.node.Status(); s.Lag.Time <= 0 {
			t.Errorf("without a leader: %+v", s)
		}
		if _, err := replica.node.ReadPoint(group.ReadOptions{Consistency: group.Local}); err != nil {
			t.Errorf("a local read: %v", err)
		}
		for _, n := range r.nodes[:2] {
			r.net.HealBoth(replica.addr, n.addr)
		}
		if !r.within(5*time.Second, func() bool { return replica.node.Status().Leader == l.id }) {
			t.Errorf("after the voters are heard again: %+v", replica.node.Status())
		}
	})
}

package group_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// A learner that is meant to vote does so once it has caught up, whatever replicas there are besides.
func TestPromotedBesideReplicas(t *testing.T) {
	for _, replica := range []int{3, 4} { // before it and after it
		simulate(t, 1, 5, simnettest.Options{}, func(o *group.Options) {
			for i := 3; i < 5; i++ {
				o.Founders[i].Learner, o.Founders[i].Stays = true, i == replica
			}
		}, func(r *simRig) {
			voters := func() (ids []uint64) {
				for _, m := range r.leader(nil).node.Members() {
					if !m.Learner {
						ids = append(ids, m.ID)
					}
				}
				return ids
			}
			if !r.within(30*time.Second, func() bool { return len(voters()) == 4 }) {
				t.Errorf("beside replica %d only %v vote", replica+1, voters())
			}
		})
	}
}

// A leader that one member calls removed, wrongly, serves reads again, also without a lease.
func TestDoubtOfLeader(t *testing.T) {
	for _, noLease := range []bool{false, true} {
		simulate(t, 1, 3, simnettest.Options{}, func(o *group.Options) { o.NoLease = noLease }, func(r *simRig) {
			l := r.leader(nil)
			l.node.ReportRejected(r.others(l)[0].id, &transport.Rejection{Reason: transport.ReasonRemoved, Text: "it was removed"})
			if !r.within(5*time.Second, func() bool { return local(l.node) == nil }) {
				t.Errorf("without a lease %v: the leader serves no reads: %v", noLease, local(l.node))
			}
			if l.node.Err() != nil {
				t.Error(l.node.Err())
			}
		})
	}
}

// A replica that asks the only voter while that one starts again is not answered too early.
func TestReplicaAsksLoneVoter(t *testing.T) {
	for seed := range uint64(20) {
		simulate(t, seed, 2, simnettest.Options{}, func(o *group.Options) {
			o.Founders[1].Learner, o.Founders[1].Stays = true, true
		}, func(r *simRig) {
			voter, replica := r.nodes[0], r.nodes[1]
			r.cut(voter, replica)
			for i := range 20 {
				voter.write(voter.node, fmt.Sprintf("s%d", i))
			}
			voter.kill()
			r.net.HealAll()
			voter.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Delay: 20 * time.Millisecond})
			voter.start()
			tasks := env.NewGroup(r.sim)
			for range 20 {
				tasks.Go("reader", func() {
					for range 100 {
						least := r.acked
						got, err := replica.node.ReadPoint(group.ReadOptions{Consistency: group.Strong, Wait: 20 * time.Millisecond})
						if err == nil && got < least {
							t.Errorf("seed %d: transaction %d of %d", seed, got, least)
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

package group_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// A member that was away has caught up when it has what the leader had when it was asked: not
// earlier, though it knows of nothing that it lacks, and not without a leader.
func TestCatchUp(t *testing.T) {
	for seed := range race.Fewer(uint64(3), 1) {
		simulate(t, seed, 4, simnettest.Options{}, func(o *group.Options) { o.Founders[3].Learner, o.Founders[3].Stays = true, true }, func(r *simRig) {
			l := r.leader(nil)
			replica, voter := r.nodes[3], r.others(l)[0]
			if voter == replica {
				voter = r.others(l)[1]
			}
			for _, n := range r.nodes {
				if err := n.node.CatchUp(nil); err != nil {
					t.Errorf("seed %d: member %d: %v", seed, n.id, err)
				}
			}
			voter.kill()
			replica.kill()
			for i := range 200 {
				l.write(l.node, fmt.Sprintf("s%d", i))
			}
			stop := r.load(l)
			for _, n := range []*simNode{voter, replica} {
				// It knows of no leader at first, and has applied all that it knows of.
				r.cut(n, r.others(n)...)
				n.fs.Inject(simfile.Fault{Ops: simfile.OpSync, Delay: 200 * time.Millisecond}) // the leader answers sooner
				n.start()
				ended := false
				tasks := env.NewGroup(r.sim)
				tasks.Go("no leader", func() {
					if err := n.node.CatchUp(func() bool { return ended }); !errors.Is(err, group.ErrReadEnded) {
						t.Errorf("seed %d: member %d, which is cut off: %v", seed, n.id, err)
					}
				})
				env.Sleep(r.sim, 20*time.Second)
				ended = true
				tasks.Wait()
				for _, m := range r.others(n) {
					r.net.HealBoth(n.addr, m.addr)
				}
				acked := r.acked
				if err := n.node.CatchUp(nil); err != nil {
					t.Errorf("seed %d: member %d: %v", seed, n.id, err)
				}
				if s := n.node.Status(); s.Number < acked || s.Leader != l.id {
					t.Errorf("seed %d: member %d has caught up, with less than the %d that were acknowledged: %+v", seed, n.id, acked, s)
				}
			}
			stop()
		})
	}
	simulate(t, 1, 1, simnettest.Options{}, nil, func(r *simRig) {
		if err := r.nodes[0].node.CatchUp(nil); err != nil {
			t.Error(err)
		}
	})
}

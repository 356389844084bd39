package group_test

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// A leader that cannot commit, since the others' disks are full, keeps no questions however long that
// lasts and whoever asks. Once it can, it has a lease, and the questions of others are answered.
func TestUnsettledLeader(t *testing.T) {
	for _, noLease := range []bool{false, true} {
		for seed := range race.Fewer(uint64(6), 2) {
			simulate(t, seed, 3, simnettest.Options{}, func(o *group.Options) { quiet(o); o.NoLease = noLease }, func(r *simRig) {
				l := r.leader(nil)
				l.write(l.node, "before")
				to := r.others(l)[0]
				var full []*simfile.Injection
				for _, n := range r.others(to) {
					full = append(full, n.fs.Inject(simfile.Fault{Ops: simfile.OpWrite, Name: "binlog.*", Err: file.ErrNoSpace}))
				}
				if err := l.node.Transfer(to.id); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				began, _ := to.node.Questions()
				for range 100 {
					for _, n := range r.nodes {
						n.read(n.node)
					}
					if asked, kept := to.node.Questions(); asked != began || kept != 0 {
						t.Fatalf("seed %d: before the first commit of its term the leader has asked %d times and keeps %d questions", seed, asked-began, kept)
					}
				}
				if s := to.node.Status(); s.Leader != to.id || s.Writable {
					t.Fatalf("seed %d: %+v", seed, s)
				}

				answered, reads := env.NewGroup(r.sim), 0
				for _, n := range r.nodes {
					answered.Go("reader", func() {
						if _, err := n.node.ReadPoint(group.ReadOptions{Consistency: group.Strong, Wait: 10 * time.Second}); err != nil {
							t.Errorf("seed %d: a strong read at member %d: %v", seed, n.id, err)
						}
						reads++
					})
				}
				env.Sleep(r.sim, 100*time.Millisecond)
				for _, in := range full {
					in.Stop()
				}
				if !r.within(5*time.Second, to.node.Writable) {
					t.Fatalf("seed %d: the leader does not come to serve: %+v", seed, to.node.Status())
				}
				env.Sleep(r.sim, 10*time.Millisecond) // not as long as a tick
				if reads < 2 {
					t.Errorf("seed %d: of those that asked before, %d have their answer", seed, reads)
				}
				r.cut(to, r.others(to)...)
				_, err := to.node.ReadPoint(group.ReadOptions{Consistency: group.Strong, Wait: time.Millisecond})
				if (err == nil) == noLease {
					t.Errorf("seed %d: a strong read without asking anybody, where there are no leases: %v: %v", seed, noLease, err)
				}
				r.net.HealAll()
				answered.Wait()
				if r.stale != "" {
					t.Errorf("seed %d: %s", seed, r.stale)
				}
			})
		}
	}
}

package group_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// A node that is told to stop does not wait until a large transaction of a session is taken back, whoever has begun with that:
// nobody, the session, or the loss of the lead. Its next start goes on, beside what the log says of the same rows.
func TestStopLeavesLarge(t *testing.T) {
	const rows = 30_000 // more than the buffer pool holds
	for _, begun := range []string{"nobody", "the session", "the loss of the lead"} {
		options := func(o *group.Options) { o.LargeThreshold, o.Storage.RollbackLater = 1<<20, 100 }
		simulate(t, 61, 3, simnettest.Options{}, options, func(r *simRig) {
			l := r.leader(nil)
			createFruit(t, l.node)
			rng := rand.New(rand.NewPCG(1, 2))
			s, err := l.node.NewSession()
			if err == nil {
				err = s.Begin(txn.BeginOptions{})
			}
			if err == nil {
				err = randomFruits(s, rng, 0, rows)
			}
			if err != nil {
				t.Fatal(err)
			}
			slow := l.fs.Inject(simfile.Fault{Ops: simfile.OpRead, Name: "*.trd", Delay: 50 * time.Millisecond})
			tasks := env.NewGroup(r.sim)
			switch begun {
			case "the session":
				tasks.Go("ROLLBACK", func() { _ = s.Rollback() })
				env.Sleep(r.sim, time.Second)
			case "the loss of the lead":
				node := l.node
				tasks.Go("transfer", func() { _ = node.Transfer(r.others(l)[0].id) })
				if r.leader(l) == nil {
					return
				}
				env.Sleep(r.sim, time.Second)
			}
			began := r.sim.Monotonic()
			l.close()
			if took := r.sim.Monotonic() - began; took > 5*time.Second {
				t.Errorf("%s has begun to take it back: it takes %v to stop", begun, took)
			}
			tasks.Wait()
			slow.Stop()
			next := r.leader(l)
			if next == nil {
				return
			}
			number := uint64(0)
			for i := range 5 { // the rows are free there
				number = insertFruit(t, next.node, 1000*i)
			}
			var recovery group.Recovery
			r.options = func(o *group.Options) { options(o); o.Recovery = &recovery }
			l.start()
			if found := recovery.Status(); found.Unfinished == 0 {
				t.Errorf("%s has begun to take it back: the next start finds %+v", begun, found)
			}
			if !r.within(time.Minute, func() bool { return l.node.Status().Number >= number }) {
				t.Errorf("%s has begun to take it back: the log is not applied: %+v", begun, l.node.Status())
			}
			if err := s.Rollback(); err != nil && !errors.Is(err, txn.ErrNoTransaction) {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

package group_test

import (
	"context"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/apply"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/provision"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// A snapshot that a follower takes, for a backup or for a new member, has nothing of a large transaction that runs, and costs the
// follower nothing of what it has applied ahead: that goes on, and is committed in the end.
func TestSnapshotBesideAhead(t *testing.T) {
	const kept = 50
	options := func(o *group.Options) { o.LargeThreshold = 200 << 10 }
	simulate(t, 51, 3, simnettest.Options{}, options, func(r *simRig) {
		l := r.leader(nil)
		createFruit(t, l.node)
		s, err := l.node.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		begin := func() {
			if err := s.Begin(txn.BeginOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		begin()
		insertFruits(t, s, 0, kept)
		if _, err := s.Commit(context.Background()); err != nil {
			t.Fatal(err)
		}
		begin()
		o, err := s.Open("shop", "fruit")
		if err == nil {
			err = s.Delete(o, o.Table().Schema.Keys[0].AppendKey(nil, types.NewInt(3)), nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		insertFruits(t, s, 1000, 5000)
		f := r.others(l)[0]
		applied := func() apply.Stats {
			all, err := f.node.Stats()
			if err != nil {
				t.Error(err)
			}
			return all.Apply
		}
		if !r.within(10*time.Second, func() bool { return aheadOf(l, f) > 1000 }) {
			t.Fatalf("nothing is applied ahead: %+v", l.node.LargeTransactions())
		}
		for i := range 3 {
			before := aheadOf(l, f)
			discard := func(string) (provision.ChunkWriter, error) { return discarding{}, nil }
			m, last, err := f.node.Backup(context.Background(), discard)
			if err != nil || m.CSN != last {
				t.Errorf("a snapshot of %d, the log up to %d: %v", m.CSN, last, err)
			}
			all, err := f.node.Stats()
			if err != nil || all.Source.Rows != int64(i+1)*kept {
				t.Errorf("%d snapshots have %d rows: %v", i+1, all.Source.Rows, err)
			}
			if n := aheadOf(l, f); n < before || all.Apply.AheadDropped > 0 {
				t.Errorf("%d rows were applied ahead before a snapshot, %d after it; it was taken back %d times", before, n,
					all.Apply.AheadDropped)
			}
			insertFruits(t, s, 10_000*(i+1), 3000)
			if !r.within(10*time.Second, func() bool { return aheadOf(l, f) > before }) {
				t.Errorf("work ahead stands still after a snapshot: %+v", f.node.LargeTransactions())
			}
		}
		number, err := s.Commit(context.Background())
		if err != nil || !r.within(10*time.Second, func() bool { return f.node.Status().Number >= number }) {
			t.Errorf("COMMIT: %v; the follower is at %d of %d", err, f.node.Status().Number, number)
		}
		if st := applied(); st.AheadTransactions != 1 || st.AheadDropped != 0 {
			t.Errorf("%d transactions were taken over, %d taken back", st.AheadTransactions, st.AheadDropped)
		}
	})
}

package group_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// noBodies is the transport of a member that gets no bodies of large transactions while it is the one
// that is shut.
type noBodies struct {
	transport.Transport
	member uint64
	shut   *uint64
}

func (t noBodies) OpenBulk(ctx context.Context, c transport.Call) (transport.BulkReader, error) {
	if *t.shut == t.member && strings.HasPrefix(c.Kind, "large-") {
		return nil, errors.New("no bodies")
	}
	return t.Transport.OpenBulk(ctx, c)
}

// A member that waits for the body of an entry until all logs have been purged of it is given its
// data by another.
func TestPurgedBody(t *testing.T) {
	for seed := range uint64(3) {
		shut := uint64(0)
		options := func(o *group.Options) {
			o.LargeThreshold, o.LogFileSize, o.LogKeep, o.PurgeInterval = 200, 8<<10, 16<<10, time.Second
			open := o.Transport
			o.Transport = func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
				tr, err := open(id, h)
				return noBodies{tr, o.ID, &shut}, err
			}
		}
		simulate(t, seed, 3, simnettest.Options{}, options, func(r *simRig) {
			l := r.leader(nil)
			behind := r.others(l)[0]
			createFruit(t, l.node)
			shut = behind.id
			var acked uint64
			for i := range 300 {
				acked = insertTraced(t, l.node, 1_000_000_000+i) // some 300 bytes
			}
			env.Sleep(r.sim, 3*time.Second)
			for i := range 20 {
				acked = insertTraced(t, l.node, i)
			}
			if !r.within(time.Minute, func() bool { return behind.node != nil && behind.node.Status().Number >= acked }) {
				t.Errorf("seed %d: member %d stays behind transaction %d: %+v", seed, behind.id, acked, behind.node.Status())
			}
		})
	}
}

// lateMessages is the transport of a member that keeps what it sends of large transactions' entries.
type lateMessages struct {
	transport.Transport
	kept *[]*raftpb.Message
}

func (t lateMessages) Send(msgs []*raftpb.Message) {
	for _, m := range msgs {
		if slices.ContainsFunc(m.GetEntries(), func(e *raftpb.Entry) bool { return len(e.GetData()) > 0 && entry.Kind(e.GetData()[0]) == entry.Large }) {
			*t.kept = append(*t.kept, m)
		}
	}
	t.Transport.Send(msgs)
}

// A message that comes once more when all logs have been purged of its large transaction is ignored: nobody
// fetches the body.
func TestLateLarge(t *testing.T) {
	kept, sends := map[uint64]*[]*raftpb.Message{}, map[uint64]transport.Transport{}
	options := func(o *group.Options) {
		o.LargeThreshold, o.LogFileSize, o.LogKeep, o.PurgeInterval = 200, 8<<10, 16<<10, time.Second
		open := o.Transport
		o.Transport = func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
			tr, err := open(id, h)
			kept[o.ID], sends[o.ID] = new([]*raftpb.Message), tr
			return lateMessages{tr, kept[o.ID]}, err
		}
	}
	simulate(t, 1, 3, simnettest.Options{}, options, func(r *simRig) {
		l := r.leader(nil)
		createFruit(t, l.node)
		for i := range 300 {
			insertTraced(t, l.node, 1_000_000_000+i) // some 300 bytes
		}
		env.Sleep(r.sim, 3*time.Second)
		late := *kept[l.id]
		if len(late) < 4 {
			t.Error("no messages with large transactions")
			return
		}
		sends[l.id].Send(late[:4])
		env.Sleep(r.sim, 100*time.Millisecond)
		for _, n := range r.others(l) {
			if s, err := n.node.Stats(); err != nil || s.Bodies.Fetching > 0 || len(s.Bodies.Streams) > 0 {
				t.Errorf("member %d: %v; %+v", n.id, err, s.Bodies)
			}
		}
	})
}

// A body that the writer takes into the log while the Raft task looks for it is not fetched again.
func TestTakenMeanwhile(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, func(o *group.Options) { o.LargeThreshold = 200 }, func(r *simRig) {
		l := r.leader(nil)
		createFruit(t, l.node)
		for i := range 5 {
			insertTraced(t, l.node, 1_000_000_000+i) // some 300 bytes
		}
		env.Sleep(r.sim, 3*time.Second)
		for _, n := range r.nodes {
			if taken, kept := n.node.KeepsBodies(); taken != 5 || kept != taken {
				t.Errorf("member %d has %d bodies in its log, and %d are here", n.id, taken, kept)
			}
		}
	})
}

// A COMMIT of a large transaction that waits for a majority ends as others do when the leader has lost
// its lead: rolled back, since it was not proposed.
func TestLargeWithoutMajority(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, func(o *group.Options) { o.LargeThreshold = 200 }, func(r *simRig) {
		l := r.leader(nil)
		createFruit(t, l.node)
		r.cut(l, r.others(l)...)
		s, err := l.node.NewSession()
		if err == nil {
			err = s.Begin(txn.BeginOptions{})
		}
		if err != nil {
			t.Error(err)
			return
		}
		o, err := s.Open("shop", "fruit")
		for i := 0; i < 10 && err == nil; i++ {
			err = s.Insert(o, []types.Value{types.NewInt(int64(i)), types.NewString(strings.Repeat("plum", 50))}, false)
		}
		if err == nil {
			_, err = s.Commit(context.Background())
		}
		if !errors.Is(err, group.ErrNotLeader) || errors.Is(err, txn.ErrOutcomeUnknown) {
			t.Errorf("COMMIT without a majority: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

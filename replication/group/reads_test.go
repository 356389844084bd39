package group_test

import (
	"errors"
	"testing"
	"time"

	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// TestReadEnded: a read that waits for what does not come ends when its reader asks for it.
func TestReadEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t, 3)
	leader := r.leader()
	createFruit(t, r.nodes[leader])
	follower := (leader + 1) % 3
	for i := range r.nodes {
		if i != follower {
			r.stop(i)
		}
	}
	for until := time.Now().Add(20 * time.Second); r.nodes[follower].Status().Leader != 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("one of three: %+v", r.nodes[follower].Status())
		}
	}
	for _, o := range []group.ReadOptions{
		{Consistency: group.Strong},
		{Consistency: group.AtLeast, Number: 1 << 40},
		{Consistency: group.Bounded, Bound: time.Nanosecond},
	} {
		asked := 0
		o.Wait = time.Hour
		o.Ended = func() bool { asked++; return asked > 2 }
		if _, err := r.nodes[follower].ReadPoint(o); !errors.Is(err, group.ErrReadEnded) || asked != 3 {
			t.Errorf("%+v: asked %d times: %v", o.Consistency, asked, err)
		}
	}
}

// TestReadAlone: what Raft has agreed on and the engine has not, since its disk is full, keeps
// reads waiting only where another member may have shown it.
func TestReadAlone(t *testing.T) {
	for members, want := range map[int]error{1: nil, 3: group.ErrStale} {
		r := closedRig(t, members)
		r.options = quiet // an entry would tell the node what Raft has agreed on
		for i := range members {
			r.start(i)
		}
		n := r.nodes[r.leader()]
		createFruit(t, n)
		read := group.ReadOptions{Consistency: group.Strong, Wait: 20 * time.Second}
		if _, err := n.ReadPoint(read); err != nil {
			t.Fatal(err)
		}
		n.Agree(1 << 40)
		read.Wait = 100 * time.Millisecond
		if _, err := n.ReadPoint(read); !errors.Is(err, want) {
			t.Errorf("%d members: %v", members, err)
		}
	}
}

// Reads that wait in vain for a transaction are forgotten.
func TestWaitsInVain(t *testing.T) {
	simulate(t, 1, 1, simnettest.Options{}, nil, func(r *simRig) {
		n := r.leader(nil).node
		for range 100 {
			if _, err := n.ReadPoint(group.ReadOptions{Consistency: group.AtLeast, Number: 1 << 40, Wait: time.Millisecond}); err == nil {
				t.Error("it sees what nobody has written")
			}
		}
		if waits := n.Waits(); waits != 0 {
			t.Errorf("%d waits are left", waits)
		}
	})
}

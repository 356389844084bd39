package group_test

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

func TestNoRoom(t *testing.T) {
	for _, c := range []struct {
		total, free uint64
		want        bool
	}{
		{0, 0, false}, // nobody knows
		{768 << 20, 0, true},
		{768 << 20, 7 << 20, true},
		{768 << 20, 8 << 20, false},
		{20 << 30, 15 << 20, true},
		{20 << 30, 16 << 20, false},
	} {
		if got := group.NoRoom(c.total, c.free); got != c.want {
			t.Errorf("%d of %d bytes: %v", c.free, c.total, got)
		}
	}
}

// TestDiskWithoutRoom: a member says that its disk is full as soon as there is no room on it, though it has nothing to write; whoever hands
// over to any chooses one that has room, also where it is not the first that knows all.
func TestDiskWithoutRoom(t *testing.T) {
	const total = 768 << 20
	free := map[uint64]uint64{1: 600 << 20, 2: 600 << 20, 3: 600 << 20}
	options := func(o *group.Options) {
		id := o.ID
		o.DiskSpace = func() (uint64, uint64) { return total, free[id] }
	}
	simulate(t, 1, 3, simnettest.Options{}, options, func(r *simRig) {
		says := func(n *simNode, full bool) {
			t.Helper()
			if !r.within(5*time.Second, func() bool {
				s := n.node.Status()
				return s.DiskFull == full && s.DiskTotal == total && s.DiskFree == free[n.id]
			}) {
				t.Fatalf("node %d with %d bytes: %+v", n.id, free[n.id], n.node.Status())
			}
		}
		for i := range 6 {
			l := r.leader(nil)
			rest := r.others(l)
			cramped, roomy := rest[i%2], rest[1-i%2]
			says(cramped, false)
			free[cramped.id] = 7 << 20
			says(cramped, true)
			if s := cramped.node.Status(); s.Trouble() != "has a full disk" {
				t.Errorf("it %q", s.Trouble())
			}
			env.Sleep(r.sim, 2*time.Second) // the leader looks once a second who is there
			if err := l.node.Transfer(0); err != nil || !r.within(time.Second, roomy.node.Writable) {
				t.Fatalf("%d: the lead went from %d, and not to %d: %v", i, l.id, roomy.id, err)
			}
			free[cramped.id] = 600 << 20
			says(cramped, false)
		}
	})
}

package group_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// A member stops at once although more of the log waits to be applied than it keeps in memory, and cannot be
// applied: there is no room for its data.
func TestStopsWhileApplierWaits(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, func(o *group.Options) { o.PendingMax = 64 << 10 }, func(r *simRig) {
		l := r.leader(nil)
		createFruit(t, l.node)
		insertFruit(t, l.node, 0)
		n := r.others(l)[0]
		full := n.fs.Inject(simfile.Fault{Ops: simfile.OpAllocate, Name: "*.trd", Err: file.ErrNoSpace})
		for i := range 3000 {
			insertTraced(t, l.node, 1_000_000+i)
		}
		env.Sleep(r.sim, time.Second)
		began := r.sim.Monotonic()
		if lag := l.node.Status().Number - n.node.Status().Number; full.Hits() == 0 || lag < 1000 {
			t.Errorf("it is %d transactions behind", lag)
		}
		node := n.node
		n.close()
		if err := node.Err(); err != nil && !errors.Is(err, group.ErrStopped) {
			t.Errorf("it has failed: %v", err)
		}
		if took := r.sim.Monotonic() - began; took > time.Second {
			t.Errorf("it took %v to stop", took)
		}
		full.Stop()
		n.start()
		last := l.node.Status().Number
		if !r.within(time.Minute, func() bool { return n.node.Status().Number >= last }) {
			t.Errorf("it does not catch up: %+v", n.node.Status())
		}
	})
}

// A follower whose disk is full for long keeps a bounded number of answers for then, and goes on when there is room.
func TestFullDiskForLong(t *testing.T) {
	simulate(t, 2, 3, simnettest.Options{}, nil, func(r *simRig) {
		l := r.leader(nil)
		createFruit(t, l.node)
		n := r.others(l)[0]
		full := n.fs.Inject(simfile.Fault{Ops: simfile.OpWrite | simfile.OpAllocate, Name: "binlog.*", Err: file.ErrNoSpace})
		var last uint64
		for i := range 20 {
			last = insertFruit(t, l.node, i+1)
		}
		env.Sleep(r.sim, 5*time.Minute)
		if waits := n.node.Unwritten(); full.Hits() == 0 || waits > 200 {
			t.Errorf("%d requests wait for room, %d writes were refused", waits, full.Hits())
		}
		full.Stop()
		if !r.within(time.Minute, func() bool { return n.node.Status().Number >= last }) {
			t.Errorf("it does not go on: %+v", n.node.Status())
		}
	})
}

// A panic of Raft's makes the node fail, and does no more harm: not again when the task answers who waits for it.
func TestRaftGivesUp(t *testing.T) {
	simulate(t, 3, 1, simnettest.Options{}, nil, func(r *simRig) {
		n := r.leader(nil)
		calls := 0
		n.node.OnRaft(func() {
			calls++
			panic("an invariant does not hold")
		})
		if !r.within(time.Second, func() bool { return n.node.Err() != nil }) || !strings.Contains(n.node.Err().Error(), "gave up: an invariant") || calls != 1 {
			t.Errorf("%d calls, then %v", calls, n.node.Err())
		}
		_ = n.node.Close()
		n.node = nil
	})
}

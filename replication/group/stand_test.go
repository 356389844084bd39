package group_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// held begins a group of three, lets the first member lead, and holds the applier of the second one, which stands
// first in the row of those that replace a leader, until it is seconds behind.
func held(t *testing.T, seed uint64, network simnettest.Options, test func(r *simRig)) {
	t.Helper()
	simulate(t, seed, 3, network, nil, func(r *simRig) {
		first := r.nodes[0]
		if l := r.leader(nil); l != first && (l.node.Transfer(first.id) != nil || !r.within(time.Minute, first.node.Writable)) {
			t.Errorf("seed %d: the first member does not lead", seed)
			return
		}
		env.Sleep(r.sim, time.Second)
		r.nodes[1].node.SetSabotage(group.HoldApplier)
		for i := range 400 {
			first.write(first.node, fmt.Sprintf("s%d", i))
			env.Sleep(r.sim, 10*time.Millisecond)
		}
		if r.nodes[1].node.Status().Applied+100 > first.node.Status().Applied {
			t.Errorf("seed %d: the second member is at %d of %d", seed, r.nodes[1].node.Status().Applied, first.node.Status().Applied)
		}
		test(r)
	})
}

// A leader is replaced by the member that has applied everything, soon, whether there is proof that it is no more
// or not. The one that has a backlog would have to apply that first.
func TestLaggardStandsBack(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for seed := range uint64(3) {
			held(t, seed, simnettest.Options{Apart: apart}, func(r *simRig) {
				const timeout = 10 * 50 * time.Millisecond
				first, current := r.nodes[0], r.nodes[2]
				limit := 2 * timeout
				if apart {
					r.net.SetHostDown(first.addr, true)
					limit += 50 * time.Millisecond
				}
				first.kill()
				if !r.within(limit, current.node.Writable) {
					t.Errorf("apart %t, seed %d: after two election timeouts: %+v and %+v", apart, seed, r.nodes[1].node.Status(), current.node.Status())
				}
			})
		}
	}
}

// A member with a backlog stands for election all the same where nobody else does.
func TestLaggardStandsAtLast(t *testing.T) {
	held(t, 4, simnettest.Options{Apart: true}, func(r *simRig) {
		first, second, third := r.nodes[0], r.nodes[1], r.nodes[2]
		third.kill()
		for i := range 300 {
			first.write(first.node, fmt.Sprintf("t%d", i))
		}
		third.start()
		r.net.SetHostDown(third.addr, true) // its log is too short to be elected, once it is heard again
		first.kill()
		env.Sleep(r.sim, time.Second)
		r.net.SetHostDown(third.addr, false)
		if !r.within(10*time.Second, func() bool { return second.node.Status().Leader == second.id }) {
			t.Errorf("%+v and %+v", second.node.Status(), third.node.Status())
		}
	})
}

// Leadership is handed to the member that has applied everything, if no other is asked for.
func TestTransferToCurrent(t *testing.T) {
	held(t, 5, simnettest.Options{}, func(r *simRig) {
		if err := r.nodes[0].node.Transfer(0); err != nil || !r.within(time.Second, r.nodes[2].node.Writable) {
			t.Errorf("%v: %+v and %+v", err, r.nodes[1].node.Status(), r.nodes[2].node.Status())
		}
	})
}

package group_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
)

// A member that joins gets its data from a follower that is up, wherever the leader stands in the list of contacts; from one that
// follows rather than from one that is cut off; and from the leader if there is no other.
func TestDonorIsFollower(t *testing.T) {
	for seed := range uint64(4) {
		for _, away := range []string{"nobody", "a follower is cut off", "the followers are down"} {
			var donors []string
			x := &taps{bulk: func(at, kind string) error {
				if kind == bulkSnapshot {
					donors = append(donors, at)
				}
				return nil
			}}
			contacts := make([]string, 3)
			joining(t, seed, x, contacts, func(r *simRig, l, n *simNode) {
				want := map[string]bool{}
				for _, f := range r.others(l) {
					want[f.addr] = f != n
				}
				rest := r.others(l)[:2]
				copy(contacts, []string{l.addr, rest[0].addr, rest[1].addr})
				if seed%2 == 1 {
					copy(contacts, []string{rest[0].addr, rest[1].addr, l.addr})
				}
				number := l.node.Status().Number
				if !r.within(time.Minute, func() bool {
					return rest[0].node.Status().Number >= number && rest[1].node.Status().Number >= number
				}) {
					t.Fatal("they do not follow")
				}
				switch away {
				case "a follower is cut off": // it has less, and the joining member reaches it
					r.cut(rest[0], l, rest[1])
					env.Sleep(r.sim, 5*time.Second)
					delete(want, rest[0].addr)
				case "the followers are down":
					rest[0].kill()
					rest[1].kill()
					want = map[string]bool{l.addr: true}
				}
				what := fmt.Sprintf("contacts %v, leader %s, %s", contacts, l.addr, away)
				n.start()
				if !r.within(time.Minute, func() bool { return len(donors) > 0 }) || !want[donors[0]] {
					t.Errorf("%s: the data come from %v", what, donors)
				}
			})
		}
	}
}

// A donor that refuses a request for good, whenever it is repeated, is left for another one.
func TestDonorRefuses(t *testing.T) {
	for seed := range uint64(3) {
		requests := map[string]int{}
		refuses := ""
		x := &taps{asked: func(at, kind string, payload []byte) []byte {
			if kind != bulkSnapshot {
				return payload
			}
			if refuses == "" {
				refuses = at
			}
			if requests[at]++; at == refuses && requests[at] > 3 { // the manifest, the catalogue and the state
				return []byte("what it does not understand")
			}
			return payload
		}}
		joining(t, seed, x, threeContacts, func(r *simRig, l, n *simNode) {
			n.start()
			n.joined(time.Minute, l.node.Status().Number)
			if requests[refuses] <= 3 || len(requests) < 2 {
				t.Errorf("seed %d: %s refuses, requests %v", seed, refuses, requests)
			}
		})
	}
}

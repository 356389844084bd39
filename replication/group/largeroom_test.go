package group_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// randomFruits adds rows that cannot be compressed well.
func randomFruits(s *txn.Session, rng *rand.Rand, from, n int) error {
	o, err := s.Open("shop", "fruit")
	for i := from; i < from+n && err == nil; i++ {
		var name strings.Builder
		for name.Len() < 190 {
			fmt.Fprintf(&name, "%x", rng.Uint64())
		}
		err = s.Insert(o, []types.Value{types.NewInt(int64(i)), types.NewString(name.String()[:190])}, false)
	}
	return err
}

// commitFruits commits so many transactions of 100 rows each, of the ids from one on, and returns how many it has.
func commitFruits(n *simNode, rng *rand.Rand, from, count int, done *int) error {
	node := n.node // not another process's
	for ; *done < count; *done++ {
		s, err := node.NewSession()
		if err != nil {
			return err
		}
		if err = s.Begin(txn.BeginOptions{}); err == nil {
			err = randomFruits(s, rng, from+100**done, 100)
		}
		if err == nil {
			_, err = s.Commit(context.Background())
		}
		if closed := s.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// storedBodies is how many bytes of bodies a node has that are not in its log.
func storedBodies(t *testing.T, n *simNode) (bytes int64) {
	s, err := n.node.Stats()
	if err != nil {
		t.Error(err)
	}
	for _, b := range s.Bodies.Streams {
		bytes += b.Stored
	}
	return bytes
}

// A large transaction that is not committed takes no space from what is: if the disks of the others are full, they
// give its body up, and commits go on, also under a new leader if the first one dies.
func TestLargeGivesRoom(t *testing.T) {
	for _, dies := range []bool{false, true} {
		options := func(o *group.Options) { o.LargeThreshold = 1 << 20 }
		simulate(t, 31, 3, simnettest.Options{}, options, func(r *simRig) {
			l := r.leader(nil)
			createFruit(t, l.node)
			rng := rand.New(rand.NewPCG(1, 2))
			large, err := l.node.NewSession()
			if err == nil {
				err = large.Begin(txn.BeginOptions{})
			}
			if err == nil {
				err = randomFruits(large, rng, 1<<30, 30_000)
			}
			if err != nil {
				t.Error(err)
				return
			}
			followers := r.others(l)
			for _, n := range followers {
				if !r.within(time.Minute, func() bool { return storedBodies(t, n) == storedBodies(t, l) }) {
					t.Errorf("member %d has %d bytes of %d", n.id, storedBodies(t, n), storedBodies(t, l))
				}
				n.fs.SetCapacity(n.fs.Used() + 100_000)
			}
			const count = 20 // 400 kB
			first, second := 0, 0
			r.sim.Go("commits", func() {
				if err := commitFruits(l, rng, 0, count, &first); err != nil && !dies {
					t.Errorf("a commit while disks are full: %v", err)
				}
			})
			if dies {
				r.within(30*time.Second, func() bool { return first >= count/2 })
				l.kill()
				if l = r.leader(l); l == nil {
					t.Errorf("no leader; members %+v, %+v", followers[0].node.Status(), followers[1].node.Status())
					return
				}
				r.sim.Go("commits", func() {
					if err := commitFruits(l, rng, 1<<20, count, &second); err != nil {
						t.Errorf("a commit under another leader while disks are full: %v", err)
					}
				})
			}
			if !r.within(5*time.Minute, func() bool { return dies && second == count || first == count }) {
				t.Errorf("%d commits, and %d under another leader; members %+v, %+v", first, second, followers[0].node.Status(), followers[1].node.Status())
				return
			}
			if dies {
				return
			}
			for _, n := range followers {
				if got := storedBodies(t, n); got > 0 {
					t.Errorf("member %d keeps %d bytes", n.id, got)
				}
				n.fs.SetCapacity(0)
			}
			if _, err := large.Commit(context.Background()); err != nil {
				t.Errorf("COMMIT when there is room: %v", err)
			}
			if err := large.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

package simgroup

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/internal/race"
)

// TestLostPageWrites: a member whose disk has lost the write of a page, and which is started again, has
// what the others have, or says that the page is an old one; it never has other rows and is silent.
func TestLostPageWrites(t *testing.T) {
	found, equal := 0, 0
	for seed := uint64(1); seed <= race.Fewer(uint64(24), 3); seed++ {
		scene(t, Options{Seed: seed, Nodes: 3}, func(w *world) {
			w.sim.Go("load", func() { w.load(rand.New(rand.NewPCG(seed, 9)), 5*time.Second) })
			env.Sleep(w.sim, time.Second)
			n := w.made[seed%3]
			w.rotten, n.excused = n, true
			flush(w, n)
			lost := n.fs.Inject(simfile.Fault{Ops: simfile.OpWrite, Name: pageFiles, Skip: int(seed / 3), Times: 1, Lie: true})
			env.Sleep(w.sim, time.Second)
			flush(w, n)
			lost.Stop()
			flush(w, n)
			env.Sleep(w.sim, lsnsSaved)
			if lost.Hits() == 0 || n.node == nil || n.node.Err() != nil {
				return
			}
			n.halt(haltKill)
			n.fs.DropCaches()
			err := n.start(nil)
			if err == nil {
				env.Sleep(w.sim, 3*time.Second)
				if err = n.node.Err(); err == nil {
					e, _ := n.node.Engine()
					_, err = e.StateHash(e.Trx.LastCommitted())
				}
			}
			if err == nil {
				equal++
				w.checkHashes(w.made)
			} else if strings.Contains(err.Error(), "older than what was written") {
				found++
			} else {
				w.failf("node %d: %v", n.id, err)
			}
		})
	}
	if !race.Enabled && (found == 0 || equal == 0) {
		t.Errorf("%d lost writes were found, %d did no harm", found, equal)
	}
}

// flush makes a member's pages durable, so that nothing of them is left to be done by its redo log.
func flush(w *world, n *node) {
	if n.node == nil {
		return
	}
	n.env.Run(func() {
		if e, err := n.node.Engine(); err == nil {
			if err := e.Pool.FlushAll(); err != nil {
				w.failf("node %d: %v", n.id, err)
			}
		}
	})
}

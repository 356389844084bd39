package simgroup

import (
	"math/rand/v2"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
)

// indexer gives the accounts an index again and again, and takes it away, in steps between which
// anything may happen: also that another member leads, and goes on with the index or gives it up.
func (w *world) indexer(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	for !w.stop {
		env.Sleep(w.sim, time.Duration(rng.IntN(400))*time.Millisecond)
		n := w.server(rng)
		if n == nil {
			continue
		}
		n.env.Run(func() {
			if n.node == nil {
				return
			}
			if s, err := n.node.NewSession(); err == nil {
				w.index(s, rng)
				_ = s.Close()
			}
		})
	}
}

// index does the next step. What fails is for a later one.
func (w *world) index(s *txn.Session, rng *rand.Rand) {
	if s.Begin(txn.BeginOptions{}) != nil {
		return
	}
	number, err := uint64(0), stepIndex(s, rng)
	if err == nil {
		number, err = s.Commit(ctx)
	}
	if err != nil {
		_ = s.Rollback()
		return
	}
	w.history.acknowledged(number, w.sim.Monotonic())
}

func stepIndex(s *txn.Session, rng *rand.Rand) error {
	t, err := s.Open("bank", "accounts")
	if err != nil {
		return err
	}
	return changeIndex(s, t, record.Index{Name: "built", Unique: rng.IntN(3) == 0,
		Parts: []record.Part{{Column: 2, Desc: rng.IntN(2) == 0}, {Column: 1}}}, rng)
}

// changeIndex adds an index to a table that has none of that name as its last one, or goes on
// with it, or drops it.
func changeIndex(s *txn.Session, t *txn.Table, want record.Index, rng *rand.Rand) (err error) {
	def := t.Definition()
	ix := &def.Indexes[len(def.Indexes)-1]
	switch {
	case ix.Name != want.Name:
		_, err = s.AddIndex(def.ID, want, nil)
	case ix.Building && rng.IntN(4) > 0:
		if _, err = s.FillIndex(t, ix.ID, nil); err == nil {
			_, err = s.PublishIndex(def.ID, ix.ID, nil)
		}
	default:
		_, err = s.DropIndex(def.ID, ix.Name, nil)
	}
	return err
}

// checkIndexes demands of each member that rows and entries of indexes belong together.
func (w *world) checkIndexes(nodes []*node) {
	for _, n := range nodes {
		e, err := n.node.Engine()
		if err == nil {
			err = e.Check(table.CheckOnline, func(found string) { w.failf("node %d: %s", n.id, found) })
		}
		if err != nil {
			w.failf("node %d: checking its data: %v", n.id, err)
		}
	}
}

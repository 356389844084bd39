package apply_test

import (
	"fmt"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/replication/apply"
)

// simulate runs fn in a simulation. A failure names the seed.
func simulate(t *testing.T, seed uint64, fn func(sim *simenv.Sim) error) {
	t.Helper()
	sim := simenv.New(seed)
	sim.StepLimit = 20_000_000
	var err error
	sim.Run(func() { err = fn(sim) })
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
}

// TestStates: whatever the workload, the row image, the number of workers and their
// order, the follower is the leader at every number.
func TestStates(t *testing.T) {
	images := []event.RowImage{event.ImageMinimal, event.ImageNoBlob, event.ImageFull}
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			simulate(t, seed, func(sim *simenv.Sim) error {
				l, err := newLeader(sim, seed, func(o *txn.Options) { o.Events.Image = images[seed%3] })
				if err != nil {
					return err
				}
				l.log.Zstd, l.log.Early = seed%2 == 0, seed%4 < 2
				if err := l.load(sim, seed, 1+int(seed%4), 40, seed%3 != 2); err != nil {
					return err
				}
				eng, err := openEngine(simfile.New(sim, seed+100), sim)
				if err != nil {
					return err
				}
				a, err := apply.New(apply.Options{Env: sim, Engine: eng.Engine, Workers: 1 + int(seed%8), MemoryMax: 64 << 10})
				if err != nil {
					return err
				}
				if err := feed(a, l.log.Entries()); err != nil {
					return err
				}
				if err := a.Drain(); err != nil {
					return err
				}
				_, last := a.Applied()
				if n := l.eng.Trx.LastCommitted(); n != last {
					return fmt.Errorf("applied %d of %d", last, n)
				}
				if err := sameStates(l.eng, eng); err != nil {
					return err
				}
				if err := a.Stop(); err != nil {
					return err
				}
				if err := eng.close(); err != nil {
					return err
				}
				return l.close()
			})
		})
	}
}

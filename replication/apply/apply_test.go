package apply_test

import (
	"errors"
	"flag"
	"fmt"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/apply"
)

var (
	runs      = flag.Int("apply.n", race.Fewer(5, 2), "number of seeds to run")
	firstSeed = flag.Uint64("apply.seed", 1, "first seed")
)

// simulate runs fn in a simulation for each seed. A failure says how to repeat it.
func simulate(t *testing.T, fn func(sim *simenv.Sim, seed uint64) error) {
	for seed := *firstSeed; seed < *firstSeed+uint64(*runs); seed++ {
		if err := simulateOne(seed, fn); err != nil {
			t.Fatalf("seed %d: %v\nrepeat: go test ./replication/apply -run %s -args -apply.n=1 -apply.seed=%d", seed, err, t.Name(), seed)
		}
	}
}

func simulateOne(seed uint64, fn func(sim *simenv.Sim, seed uint64) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	sim := simenv.New(seed)
	sim.StepLimit = 20_000_000
	sim.Run(func() { err = fn(sim, seed) })
	return err
}

// TestStates: whatever the workload, the row image, the number of workers and their
// order, the follower is the leader at every number.
func TestStates(t *testing.T) {
	images := []event.RowImage{event.ImageMinimal, event.ImageNoBlob, event.ImageFull}
	simulate(t, func(sim *simenv.Sim, seed uint64) error {
		l, err := newLeader(sim, seed, func(o *txn.Options) { o.Events.Image = images[seed%3] })
		if err != nil {
			return err
		}
		l.log.Zstd, l.log.Early, l.suspend = seed%2 == 0, seed%4 < 2, seed%3 == 0
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
		if err := errors.Join(sameStates(l.eng, eng), a.Stop()); err != nil {
			return err
		}
		return errors.Join(eng.close(), l.close())
	})
}

// TestTasks applies with real tasks, beside readers that see whole transactions only,
// and entries that arrive one by one.
func TestTasks(t *testing.T) {
	e := env.Real()
	l, err := newLeader(e, 1, nil)
	must(t, err)
	l.suspend = true
	must(t, l.load(e, 5, 4, 30, true))
	eng, err := openEngine(simfile.New(e, 2), e)
	must(t, err)
	a, err := apply.New(apply.Options{Env: e, Engine: eng.Engine, Workers: 8})
	must(t, err)
	g := env.NewGroup(e)
	done, errs := make(chan struct{}), make([]error, 2)
	for i := range errs {
		g.Go("reader", func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				n := eng.Trx.LastCommitted()
				x, err := eng.state(n)
				var y string
				if err == nil && n > 0 {
					y, err = l.eng.state(n)
				}
				if err == nil && n > 0 && x != y {
					err = fmt.Errorf("states at %d differ", n)
				}
				if err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	must(t, feed(a, l.log.Entries()))
	must(t, a.Drain())
	close(done)
	g.Wait()
	must(t, errors.Join(errs...))
	must(t, errors.Join(sameStates(l.eng, eng), a.Stop(), eng.close(), l.close()))
}

// TestDeterminism: the same seed gives the same run.
func TestDeterminism(t *testing.T) {
	run := func() uint64 {
		sim := simenv.New(4)
		var err error
		sim.Run(func() {
			var l *leader
			if l, err = newLeader(sim, 4, nil); err != nil {
				return
			}
			if err = l.load(sim, 4, 3, 30, true); err != nil {
				return
			}
			var eng *engine
			if eng, err = openEngine(simfile.New(sim, 5), sim); err != nil {
				return
			}
			var a *apply.Applier
			if a, err = apply.New(apply.Options{Env: sim, Engine: eng.Engine, Workers: 5}); err != nil {
				return
			}
			err = errors.Join(feed(a, l.log.Entries()), a.Drain(), a.Stop(), eng.close(), l.close())
		})
		must(t, err)
		return sim.TraceHash()
	}
	if a, b := run(), run(); a != b {
		t.Errorf("two runs of one seed have the traces %x and %x", a, b)
	}
}

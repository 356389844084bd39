package trx_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/storage/undo/undotest"
	"github.com/triremedb/trireme/internal/race"
)

// work runs sessions, purge and readers of the past until each has done its share
// or the disk is gone. It returns the first error that is not the crash's.
func (d *db) work(fs *simfile.FS, seed uint64, tasks, rounds int) error {
	g := env.NewGroup(d.e)
	errs := make([]error, tasks+4)
	run := func(n int, name string, round func(s *session) error) {
		s := d.session(rand.New(rand.NewPCG(seed, uint64(n))))
		g.Go(name, func() {
			for range rounds {
				if err := round(s); err != nil {
					errs[n] = err
					return
				}
			}
		})
	}
	for n := range tasks {
		run(n, fmt.Sprintf("session %d", n), func(s *session) error {
			if s.rng.IntN(10) == 0 {
				return s.internal()
			}
			return s.transaction()
		})
	}
	run(tasks, "purge", func(s *session) error { s.e.Yield(); return s.purge(4) })
	run(tasks+3, "second purge", func(s *session) error { s.e.Yield(); return s.purge(2) })
	run(tasks+1, "as of", func(s *session) error { return s.asOf() })
	run(tasks+2, "disk", func(s *session) error {
		s.e.Yield()
		if s.rng.IntN(8) == 0 && !d.rig.Lazy {
			return d.rig.Pool.FlushAll()
		}
		return d.rig.Log.FlushTo(d.rig.Log.Published())
	})
	g.Wait()
	for _, err := range errs {
		if err != nil && !fs.Crashed() {
			return err
		}
	}
	return nil
}

// runCrashes runs a seed: work, crash and recovery, several times over.
func runCrashes(seed uint64) (trace uint64, err error) {
	rng := rand.New(rand.NewPCG(seed, 3))
	sim := simenv.New(seed)
	sim.Run(func() {
		fs := simfile.New(sim, seed)
		var d *db
		if d, err = newDB(sim, fs, false); err != nil {
			return
		}
		for generation := uint64(0); generation < 4; generation++ {
			if generation > 0 || rng.IntN(2) == 0 {
				fs.CrashAt(fs.Mutations() + 1 + rng.Int64N(120))
			}
			if err = d.work(fs, seed*10+generation, 5, 25); err != nil {
				return
			}
			if !fs.Crashed() {
				if err = d.check(); err != nil {
					return
				}
			}
			fs.Crash()
			image := fs.CrashImage()
			d.rig.Abandon()
			fs = image
			if err = d.recover(fs, rng, ^page.LSN(0)); err != nil {
				return
			}
			if err = d.check(); err != nil {
				return
			}
		}
		err = d.rig.Close()
	})
	return sim.TraceHash(), err
}

// TestCrashes: whatever survives a crash is the state at some CSN, with every
// older snapshot down to the purge floor, and the position that belongs to it.
func TestCrashes(t *testing.T) {
	for seed := range uint64(seeds(60)) {
		if _, err := runCrashes(seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestEveryGroup cuts the redo log behind each of its groups in turn and recovers.
func TestEveryGroup(t *testing.T) {
	for seed := range uint64(seeds(3)) {
		csns, err := runEveryGroup(seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if csns < 20 {
			t.Errorf("seed %d: only %d different CSNs were recovered", seed, csns)
		}
	}
}

func runEveryGroup(seed uint64) (csns int, err error) {
	sim := simenv.New(seed)
	seen := map[uint64]bool{}
	sim.Run(func() {
		fs := simfile.New(sim, seed)
		var d *db
		if d, err = newDB(sim, fs, true); err != nil {
			return
		}
		if err = d.work(fs, seed, 5, 14); err != nil {
			return
		}
		if err = d.rig.Log.FlushTo(d.rig.Log.Published()); err != nil {
			return
		}
		d.rig.Abandon()
		var ends []page.LSN
		if ends, err = undotest.Groups(fs.KillImage(), sim); err != nil {
			return
		}
		for i, upTo := range ends {
			cut := d.fork()
			if err = cut.recover(fs.KillImage(), rand.New(rand.NewPCG(seed, uint64(i))), upTo); err == nil {
				err = cut.check()
			}
			if err != nil {
				err = fmt.Errorf("log cut at group %d of %d: %w", i, len(ends), err)
				return
			}
			seen[cut.sys.LastCommitted()] = true
			cut.rig.Abandon()
		}
	})
	return len(seen), err
}

// TestDeterminism: the same seed makes the same run.
func TestDeterminism(t *testing.T) {
	a, err := runCrashes(4711)
	if err != nil {
		t.Fatal(err)
	}
	b, err := runCrashes(4711)
	if err != nil || a != b {
		t.Fatalf("trace %x, then %x: %v", a, b, err)
	}
}

// TestParallel runs the same work with real goroutines.
func TestParallel(t *testing.T) {
	e := env.Real()
	fs := simfile.New(e, 1)
	d, err := newDB(e, fs, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.work(fs, 1, 6, seeds(3200)); err != nil {
		t.Fatal(err)
	}
	s := d.session(rand.New(rand.NewPCG(1, 1)))
	for d.sys.Undo().HistoryLen() > 0 {
		d.sys.SetRetain(^uint64(0))
		limit, err := d.sys.PurgeLimit()
		if err != nil {
			t.Fatal(err)
		}
		h, ok := d.sys.Undo().NextCommitted(limit)
		if !ok {
			t.Fatalf("limit %d of %d leaves a history of %d", limit, d.sys.LastCommitted(), d.sys.Undo().HistoryLen())
		}
		if err := d.sys.Undo().Purged(h); err != nil {
			t.Fatal(err)
		}
	}
	v := d.sys.Begin(trxDefault)
	if err := s.compare(v.Snapshot(), 50, nil); err != nil {
		t.Fatal(err)
	}
	d.sys.End(v)
	if d.sys.Count() != 0 || d.sys.OpenSnapshots() != 0 {
		t.Fatalf("%d transactions, %d snapshots left", d.sys.Count(), d.sys.OpenSnapshots())
	}
	if err := d.check(); err != nil {
		t.Fatal(err)
	}
	if err := d.rig.Close(); err != nil {
		t.Fatal(err)
	}
}

// seeds is how many seeds a test tries.
func seeds(n int) int {
	return race.Fewer(n, max(1, n/8))
}

var trxDefault trx.Options

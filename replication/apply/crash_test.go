package apply_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/replication/apply"
)

// follower applies a log through crashes and restarts.
type follower struct {
	sim    *simenv.Sim
	rng    *rand.Rand
	fs     *simfile.FS
	l      *leader
	starts int
	seen   uint64 // greatest number that was ever durable
}

// life opens the engine and applies entries until all are applied, the disk is gone
// or it is stopped in the middle. done says that all are applied.
func (f *follower) life() (done bool, err error) {
	f.starts++
	eng, err := openEngine(f.fs, f.sim)
	if err != nil {
		return false, f.crashed(err)
	}
	last, pos := eng.Applied()
	if last < f.seen {
		return false, fmt.Errorf("%d transactions were durable, %d are there", f.seen, last)
	}
	if err := checkExtra(eng, pos.Index); err != nil {
		return false, err
	}
	worker := eng.Tables.NewWorker()
	worker.Applying = true
	a, err := apply.New(apply.Options{Env: f.sim, Engine: eng.Engine, Workers: 1 + f.rng.IntN(8), MemoryMax: 32 << 10,
		Extra: func(e *apply.Applied) (*trx.Trx, error) {
			if e.Index%3 != 0 {
				return nil, nil
			}
			t := eng.Trx.Begin(trx.Options{})
			worker.Use(t)
			v, _, err := eng.Catalog.GetState(nil, dict.Local, []byte("extra"))
			if err == nil {
				err = eng.Catalog.PutState(worker, dict.Local, []byte("extra"), append(v, byte(e.Index)))
			}
			return t, err
		}})
	if err != nil {
		return false, err
	}
	entries := f.l.log.Entries()
	stopAt := len(entries)
	if f.starts < 12 {
		stopAt = min(stopAt, int(pos.Index)+f.rng.IntN(20))
	}
	for i, e := range entries {
		if e.Index+uint64(f.rng.IntN(4)) <= pos.Index {
			continue // entries up to the position may come or not
		}
		if i >= stopAt {
			break
		}
		if err := a.Submit(apply.Entry{Index: e.Index, Term: e.Term, Data: e.Data}); err != nil {
			return false, f.crashed(errors.Join(err, a.Stop(), eng.Close()))
		}
		if f.rng.IntN(10) == 0 {
			env.Sleep(f.sim, 1e6)
		}
	}
	if stopAt >= len(entries) {
		if err := a.Drain(); err != nil {
			return false, f.crashed(errors.Join(err, a.Stop(), eng.Close()))
		}
		done = true
	}
	if err := a.Stop(); err != nil {
		return false, f.crashed(errors.Join(err, eng.Close()))
	}
	if err := sameStates(f.l.eng, eng); err != nil {
		return false, f.crashed(err)
	}
	if f.rng.IntN(2) == 0 {
		if err := eng.Sync(); err != nil {
			return false, f.crashed(err)
		}
		f.seen = eng.Trx.LastCommitted()
	}
	if !done && f.rng.IntN(2) == 0 {
		f.fs.Crash()
		return false, f.crashed(eng.Close())
	}
	number := eng.Trx.LastCommitted()
	if err := eng.close(); err != nil {
		return false, f.crashed(err)
	}
	f.seen = number
	return done, nil
}

// checkExtra checks that what Extra has stored is of the entries up to the position,
// each once.
func checkExtra(eng *engine, index uint64) error {
	v, _, err := eng.Catalog.GetState(nil, dict.Local, []byte("extra"))
	if err != nil {
		return err
	}
	for i, b := range v {
		if b != byte(3*(i+1)) {
			return fmt.Errorf("extra transactions were committed for the entries %v", v)
		}
	}
	if len(v) != int(index/3) {
		return fmt.Errorf("at index %d there are extra transactions for the entries %v", index, v)
	}
	return nil
}

// crashed forgives errors after the disk was lost.
func (f *follower) crashed(err error) error {
	if !f.fs.Crashed() && !errors.Is(err, file.ErrCrashed) {
		return err
	}
	return nil
}

// TestCrashes: a follower that loses power or is stopped at any moment goes on where
// it stood, and is the leader at every number again.
func TestCrashes(t *testing.T) {
	simulate(t, func(sim *simenv.Sim, seed uint64) error {
		l, err := newLeader(sim, seed, nil)
		if err != nil {
			return err
		}
		if err := l.load(sim, seed, 3, 25, seed%2 == 0); err != nil {
			return err
		}
		rng := rand.New(rand.NewPCG(seed, 3))
		f := &follower{sim: sim, rng: rng, fs: simfile.New(sim, seed), l: l}
		for range 60 {
			f.fs.CrashAt(0)
			if rng.IntN(3) > 0 {
				f.fs.CrashAt(f.fs.Mutations() + 1 + rng.Int64N(400))
			}
			done, err := f.life()
			if err != nil {
				return fmt.Errorf("start %d: %w", f.starts, err)
			}
			if done {
				return l.close()
			}
			if f.fs.Crashed() {
				f.fs = f.fs.CrashImage()
			}
		}
		return fmt.Errorf("%d starts were not enough", f.starts)
	})
}

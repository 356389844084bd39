package apply_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/txn/txntest"
	"github.com/triremedb/trireme/replication/apply"
)

// indexing is a leader whose tables get indexes while sessions change their rows.
type indexing struct {
	*leader
	indexes []begun
	added   int // entries up to that with the indexes
	changed int // entries before that which publishes them
}

// begun is a new index.
type begun struct {
	table *record.Table
	id    uint64
}

func newIndexing(e env.Env, seed uint64) (*indexing, error) {
	l, err := newLeader(e, seed, nil)
	if err != nil {
		return nil, err
	}
	x := &indexing{leader: l}
	if err := l.load(e, seed, 3, 60, false); err != nil {
		return nil, err
	}
	if err := x.do(x.add); err != nil {
		return nil, err
	}
	x.added = len(l.log.Entries())
	g := env.NewGroup(e)
	errs := make([]error, 3)
	for i := range errs {
		w := txntest.NewWorkload(l.m, seed*10+uint64(i))
		g.Go("load", func() { errs[i] = errors.Join(w.Run(40), w.Close()) })
	}
	g.Wait()
	x.changed = len(l.log.Entries())
	return x, errors.Join(errors.Join(errs...), x.do(x.publish))
}

// do runs fn in a transaction of a session.
func (x *indexing) do(fn func(s *txn.Session) error) error {
	s := x.m.NewSession()
	err := s.Begin(txn.BeginOptions{})
	if err == nil {
		err = fn(s)
	}
	if err == nil {
		_, err = s.Commit(context.Background())
	}
	return errors.Join(err, s.Close())
}

// add begins an index of each short column.
func (x *indexing) add(s *txn.Session) error {
	var defs []*record.Table
	err := x.eng.Catalog.Tables(nil, func(def *record.Table) error { defs = append(defs, def); return nil })
	for _, def := range defs {
		for i := range def.Columns {
			c := &def.Columns[i]
			if c.Hidden || c.DroppedIn != 0 || c.Type.IsLong() || c.Type.Length > 60 {
				continue
			}
			made, err := s.AddIndex(def.ID, record.Index{Name: fmt.Sprint("built", i), Parts: []record.Part{{Column: c.ID, Desc: i%2 > 0}}}, nil)
			if err != nil {
				return err
			}
			x.indexes = append(x.indexes, begun{def, made.Indexes[len(made.Indexes)-1].ID})
		}
	}
	return err
}

func (x *indexing) publish(s *txn.Session) error {
	for _, ix := range x.indexes {
		o, err := s.Open(ix.table.Schema, ix.table.Name)
		if err != nil {
			return err
		}
		if _, err := s.FillIndex(o, ix.id, nil); err != nil {
			return err
		}
		if _, err := s.PublishIndex(ix.table.ID, ix.id, nil); err != nil {
			return err
		}
	}
	return nil
}

// TestIndexBesideWorkers: a member that applies the log fills new indexes beside the workers, whatever
// ends it in between, and each row has its entries when they are published.
func TestIndexBesideWorkers(t *testing.T) {
	simulate(t, func(sim *simenv.Sim, seed uint64) error {
		x, err := newIndexing(sim, seed)
		if err != nil {
			return err
		}
		fsys := simfile.New(sim, seed+100)
		eng, err := openEngine(fsys, sim)
		if err != nil {
			return err
		}
		rng := newRand(seed)
		opt := apply.Options{Env: sim, Engine: eng.Engine, Workers: 1 + int(seed%4)}
		a, err := apply.New(opt)
		if err != nil {
			return err
		}
		entries := x.log.Entries()
		for at := x.added; at < x.changed-5 && err == nil; at += 1 + rng.IntN(20) {
			err = feed(a, entries[:at])
			switch rng.IntN(6) {
			case 0:
				err = errors.Join(err, a.Drain())
			case 1: // the member comes back with what it had in hand
				if err = errors.Join(err, a.Stop()); err == nil {
					a, err = apply.New(opt)
				}
			case 2:
				env.Sleep(sim, time.Duration(rng.IntN(20))*time.Millisecond)
			}
		}
		if err = errors.Join(err, feed(a, entries[:x.changed])); err != nil {
			return err
		}
		patient := seed%2 == 0 // the leader publishes late
		for patient && a.Stats().Indexes < uint64(len(x.indexes)) {
			env.Sleep(sim, time.Millisecond)
		}
		if err := errors.Join(feed(a, entries), a.Drain()); err != nil {
			return err
		}
		if s := a.Stats(); patient && s.IndexWaits > 0 {
			return fmt.Errorf("the workers waited for %d indexes, %d were filled", s.IndexWaits, s.Indexes)
		}
		return errors.Join(sameStates(x.eng, eng), a.Stop(), eng.close(), x.close())
	})
}

// TestIndexBesidePurge: so it is where purge is at work, which takes away what no snapshot needs,
// where the disk is full now and then, and where the process dies.
func TestIndexBesidePurge(t *testing.T) {
	simulate(t, func(sim *simenv.Sim, seed uint64) error {
		x, err := newIndexing(sim, seed)
		if err != nil {
			return err
		}
		fsys := simfile.New(sim, seed+100)
		open := func() (*engine, error) {
			opt := options(fsys, sim)
			opt.PurgeTasks, opt.PurgeInterval = 1+int(seed%2), time.Millisecond
			eng, err := storage.Open(opt)
			return &engine{Engine: eng}, err
		}
		eng, err := open()
		if err != nil {
			return err
		}
		rng := newRand(seed)
		opt := apply.Options{Env: sim, Engine: eng.Engine, Workers: 1 + int(seed%4), RetryEvery: 2 * time.Millisecond}
		a, err := apply.New(opt)
		if err != nil {
			return err
		}
		entries := x.log.Entries()
		for at := x.added; at < len(entries) && err == nil; at += 1 + rng.IntN(10) {
			if full := rng.IntN(4) == 0; full {
				fsys.SetCapacity(fsys.Used() + int64(rng.IntN(60_000)))
			}
			err = feed(a, entries[:at])
			env.Sleep(sim, time.Duration(rng.IntN(4))*time.Millisecond)
			fsys.SetCapacity(0)
			if err != nil || rng.IntN(12) > 0 {
				continue
			}
			fsys.Crash()
			_, _ = a.Stop(), eng.Close()
			if fsys = fsys.CrashImage(); rng.IntN(2) == 0 {
				fsys = fsys.KillImage()
			}
			if eng, err = open(); err == nil {
				opt.Engine = eng.Engine
				a, err = apply.New(opt)
			}
		}
		if err = errors.Join(err, feed(a, entries), a.Drain()); err != nil {
			return err
		}
		n := eng.Trx.LastCommitted()
		want, err := x.eng.state(n)
		if err != nil {
			return err
		}
		if got, err := eng.state(n); err != nil || got != want {
			return fmt.Errorf("states at %d differ: %w", n, err)
		}
		return errors.Join(a.Stop(), eng.close(), x.close())
	})
}

package txn_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
)

// TestFillIndex builds indexes of a table with rows, one of them unique, while others
// change the rows, commit and roll back. When they are published each row has its entry,
// and a unique one has no key twice.
func TestFillIndex(t *testing.T) {
	built, refused := 0, 0
	for seed := range uint64(40) {
		sim := simenv.New(seed)
		sim.StepLimit = 20_000_000
		sim.Run(func() {
			r := newRig(t, sim, nil)
			r.log.Early = true
			r.create(t, people("p"))
			r.do(t, func() error {
				o := open(t, r.s, "p")
				for id := range 200 {
					must(t, r.s.Insert(o, row(id, fmt.Sprint("name", id), id*10, nil), false))
				}
				return nil
			})
			done := false
			g := env.NewGroup(sim)
			for n := range 3 {
				g.Go("writer", func() { writePeople(t, r, rand.New(rand.NewPCG(seed, uint64(n))), &done) })
			}
			unique := seed%2 == 0
			g.Go("build", func() {
				env.Sleep(sim, time.Duration(seed%5)*time.Millisecond)
				switch err := buildIndex(r, unique); {
				case err == nil:
					built++
				case errors.As(err, new(*table.DuplicateError)):
					refused++
				default:
					t.Errorf("seed %d: %v", seed, err)
				}
				done = true
			})
			g.Wait()
			if err := r.eng.Check(table.CheckQuiet, func(f string) { t.Errorf("seed %d: %s", seed, f) }); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			r.close(t)
		})
	}
	if built < 25 {
		t.Errorf("%d indexes were built, %d refused: the test is too tame", built, refused)
	}
}

// buildIndex adds an index on n, fills and publishes it; one that cannot be is dropped.
func buildIndex(r *rig, unique bool) error {
	s := r.m.NewSession()
	defer s.Close()
	var def *record.Table
	_, err := do(s, func() error {
		o, err := s.Open("db", "p")
		if err != nil {
			return err
		}
		ix := record.Index{Name: "n", Unique: unique, Parts: []record.Part{{Column: 3}}}
		def, err = s.AddIndex(o.Definition().ID, ix, nil)
		return err
	})
	if err != nil {
		return err
	}
	id := def.Indexes[len(def.Indexes)-1].ID
	_, err = do(s, func() error {
		o, err := s.Open("db", "p")
		if err != nil {
			return err
		}
		if _, err := s.FillIndex(o, id, func() error { env.Sleep(r.env, 2*time.Millisecond); return nil }); err != nil {
			return err
		}
		_, err = s.PublishIndex(def.ID, id, nil)
		return err
	})
	if err == nil {
		return nil
	}
	_, drop := do(s, func() error {
		_, err := s.DropIndex(def.ID, "n", nil)
		return err
	})
	return errors.Join(err, drop)
}

// writePeople changes rows until done. Values of n are seldom the same.
func writePeople(t *testing.T, r *rig, rng *rand.Rand, done *bool) {
	s := r.m.NewSession()
	defer s.Close()
	for failed := false; !*done; {
		err := func() error {
			if err := s.Begin(txn.BeginOptions{}); err != nil {
				return err
			}
			failed = false
			o, err := s.Open("db", "p")
			if err != nil {
				return err
			}
			for range 1 + rng.IntN(4) {
				if err := writePerson(s, o, rng); err != nil {
					failed = true
					return err
				}
				env.Sleep(r.env, time.Duration(rng.IntN(3))*100*time.Microsecond)
			}
			return nil
		}()
		switch {
		case failed || err != nil || rng.IntN(3) == 0:
			err = expected(err)
			err = errors.Join(err, s.Rollback())
		default:
			_, err = s.Commit(t.Context())
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// expected leaves of an error what a writer cannot meet.
func expected(err error) error {
	var e *sqlerr.Error
	if errors.As(err, new(*table.DuplicateError)) || errors.Is(err, table.ErrNotFound) || errors.As(err, &e) && (e.Number == 1213 || e.Number == 1205) {
		return nil
	}
	if errors.Is(err, lock.ErrDeadlock) {
		return nil
	}
	return err
}

func writePerson(s *txn.Session, o *txn.Table, rng *rand.Rand) error {
	id := rng.IntN(260)
	n := rng.IntN(40_000)
	switch rng.IntN(4) {
	case 0:
		return s.Insert(o, row(id, fmt.Sprint("name", id), n, nil), false)
	case 1:
		return s.Delete(o, key(o, id), nil)
	}
	_, err := s.Update(o, key(o, id), nil, set(2, n))
	return err
}

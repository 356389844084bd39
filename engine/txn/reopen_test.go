package txn_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
)

// TestOpenAgain: what a session remembers of tables that it had in earlier transactions is
// never older than what the catalogue says, whatever became of them meanwhile: new
// columns, another name, another table of the name, or nothing since it was taken back.
func TestOpenAgain(t *testing.T) {
	for seed := range uint64(4) {
		sim := simenv.New(seed)
		sim.Run(func() {
			r := newRig(t, sim, nil)
			openAgain(t, r, rand.New(rand.NewPCG(seed, 1)))
			r.close(t)
		})
	}
}

func openAgain(t *testing.T, r *rig, rng *rand.Rand) {
	const tables = 24 // more than are remembered
	name := func() string { return fmt.Sprint("t", rng.IntN(tables)) }
	for i := range tables {
		r.create(t, people(fmt.Sprint("t", i)))
	}
	sessions := []*txn.Session{r.s}
	for range 3 {
		sessions = append(sessions, r.m.NewSession())
	}
	// look opens some tables, and a name has the definition that tr sees.
	look := func(s *txn.Session, tr *trx.Trx) {
		for range rng.IntN(20) {
			n := name()
			o, err := s.Open("db", n)
			h, wanted := r.eng.Catalog.OpenTable(tr, "db", n)
			switch {
			case (err == nil) != (wanted == nil):
				t.Fatalf("%s: %v, and the catalogue says %v", n, err, wanted)
			case err == nil && (o.Table() != h.Table() || o.Handle() != h || o.Definition().Name != n):
				t.Fatalf("%s: an old definition: %+v", n, o.Definition())
			}
			if wanted == nil {
				h.Release()
			}
		}
	}
	change := func(s *txn.Session) error {
		n, to := name(), name()
		switch rng.IntN(4) {
		case 0:
			_, err := s.RenameTable("db", n, "db", to, nil)
			return err
		case 1:
			_, err := s.DropTable("db", n, nil)
			return err
		case 2:
			_, err := s.CreateTable(people(n), nil)
			return err
		}
		o, err := s.Open("db", n)
		if err != nil {
			return err
		}
		_, err = s.AddIndex(o.Definition().ID, record.Index{Name: fmt.Sprint("i", rng.IntN(1e6)), Parts: []record.Part{{Column: 3}}}, nil)
		return err
	}
	reason := errors.New("not now")
	for range 150 {
		s := sessions[rng.IntN(len(sessions))]
		must(t, s.Begin(txn.BeginOptions{}))
		look(s, s.Trx())
		if rng.IntN(2) == 0 {
			for range 1 + rng.IntN(3) {
				must(t, s.BeginStatement())
				if change(s) != nil {
					must(t, s.RollbackStatement())
				}
				look(s, s.Trx())
			}
		}
		switch rng.IntN(4) {
		case 0:
			must(t, s.Rollback())
		case 1:
			must(t, r.m.Suspend(reason))
			r.m.Resume()
			if err := s.Rollback(); err != nil {
				t.Fatal(err)
			}
		default:
			_, err := s.Commit(context.Background())
			must(t, err)
		}
	}
	for _, s := range sessions[1:] {
		must(t, s.Close())
	}
}

// TestForgottenDefinitions: definitions of tables that were dropped, and wide ones that the catalogue has forgotten, are not in memory any more,
// although a session had the tables and goes on.
func TestForgottenDefinitions(t *testing.T) {
	r := newRig(t, env.Real(), nil)
	defer r.close(t)
	wide := people("wide")
	for i := range 200 {
		wide.Columns = append(wide.Columns, record.Column{ID: uint32(5 + i), Name: fmt.Sprint("c", i), Type: nullInt})
	}
	r.create(t, people("p"))
	r.create(t, wide)
	use := func(s *txn.Session, name string) weak.Pointer[record.Table] {
		var p weak.Pointer[record.Table]
		_, err := do(s, func() error {
			p = weak.Make(open(t, s, name).Definition())
			return nil
		})
		must(t, err)
		return p
	}
	gone := func(what string, p weak.Pointer[record.Table]) {
		t.Helper()
		for range 200 {
			if runtime.GC(); p.Value() == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("the definition of %s is still in memory", what)
	}
	other := r.m.NewSession()
	dropped, forgotten := use(r.s, "p"), use(other, "wide")
	third := r.m.NewSession()
	_, err := do(third, func() error {
		_, err := third.DropTable("db", "p", nil)
		return err
	})
	must(t, err)
	must(t, third.Close())
	for i := range 80 { // more than the catalogue's cache holds
		name := fmt.Sprint("q", i)
		r.create(t, people(name))
		use(r.s, name)
	}
	gone("a table that was dropped", dropped)
	gone("a wide table that was not used for long", forgotten)
	must(t, other.Close())
}

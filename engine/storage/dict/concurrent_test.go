package dict_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

// Tables are created, dropped, truncated, renamed and changed by some tasks while
// others open and read them by handles, new ones and ones that somebody had before.
// Properties: a handle can be read until it is released, whatever happens to its table;
// one of a definition that was changed cannot be opened again; no two tables have one
// name; in the end there is one tablespace for each table.
func TestConcurrent(t *testing.T) {
	t.Run("real", func(t *testing.T) {
		hammer(t, env.Real(), file.OS(t.TempDir()), 1, 15)
	})
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			sim := simenv.New(seed)
			sim.Run(func() { hammer(t, sim, simfile.New(sim, seed), seed, 12) })
		})
	}
}

const (
	hammerTables  = 4
	hammerWriters = 3
	hammerReaders = 3
)

// turn is taken by whoever changes a table.
type turn struct {
	mu  *env.Mutex
	had atomic.Pointer[dict.Handle] // that somebody has had
}

func hammer(t *testing.T, e env.Env, fsys file.FS, seed uint64, rounds int) {
	opt := options(fsys, e)
	opt.TableCache = 1
	opt.PurgeTasks = 0
	eng, err := open(opt)
	must(t, err)
	s := newSession(eng)
	must(t, s.do(func() error {
		_, err := s.c.CreateSchema(s.Worker, dict.Schema{Name: "db"})
		return err
	}))
	// Metadata locks are the business of the layer above: one for each name.
	turns := make([]turn, hammerTables)
	for i := range turns {
		turns[i].mu = env.NewMutex(e)
	}
	tasks := env.NewGroup(e)
	var writers atomic.Int64
	writers.Store(hammerWriters)
	for i := range hammerWriters {
		tasks.Go("writer", func() {
			defer writers.Add(-1)
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			for range rounds {
				if err := ddl(newSession(eng), turns, rng); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range hammerReaders {
		tasks.Go("reader", func() {
			rng := rand.New(rand.NewPCG(seed, uint64(100+i)))
			for writers.Load() > 0 {
				if err := look(newSession(eng), turns, rng); err != nil {
					t.Error(err)
					return
				}
				e.Yield()
			}
		})
	}
	tasks.Wait()
	checkHammered(t, s, eng)
	must(t, shut(eng))
}

// ddl makes one random change of the catalogue in a transaction.
func ddl(s *session, turns []turn, rng *rand.Rand) error {
	i := rng.IntN(hammerTables)
	name := fmt.Sprint("t", i)
	turns[i].mu.Lock()
	defer turns[i].mu.Unlock()
	s.begin()
	def, err := ddlIn(s, name, rng)
	var dead *lock.DeadlockError
	if err == nil && rng.IntN(4) != 0 {
		return errors.Join(s.commit(), isCurrent(s, &turns[i], name, def))
	}
	var mysql *sqlerr.Error
	if errors.As(err, &dead) || errors.As(err, &mysql) || errors.Is(err, table.ErrNoTable) {
		err = nil
	}
	return errors.Join(err, s.rollback())
}

// isCurrent checks that the definition that was committed is the one that others
// get from now on, whoever was loading the table at that moment.
func isCurrent(s *session, turn *turn, name string, want *record.Table) error {
	for range 3 {
		h, err := openAgain(s, turn, name)
		if err != nil {
			if want == nil && errors.Is(err, table.ErrNoTable) {
				return nil
			}
			return err
		}
		got := h.Table().Schema.Table
		h.Release()
		if want == nil || got.ID != want.ID || got.Version != want.Version {
			return fmt.Errorf("table %s: definition %d, version %d after a commit of %+v", name, got.ID, got.Version, want)
		}
		s.eng.Tables.Env.Yield()
	}
	return nil
}

// ddlIn returns the definition that it makes, nil for none.
func ddlIn(s *session, name string, rng *rand.Rand) (*record.Table, error) {
	h, err := s.c.OpenTable(s.Trx(), "db", name)
	if err != nil {
		def, err := s.c.CreateTable(s.Worker, simpleTable("db", name))
		if err != nil {
			return nil, err
		}
		for i := range 1 + rng.IntN(5) {
			if err := s.insert("db", def.Name, types.NewInt(int64(i)), types.NewInt(int64(-i)), types.NewString("x")); err != nil {
				return nil, err
			}
		}
		return def, nil
	}
	def := *h.Table().Schema.Table
	h.Release()
	switch rng.IntN(4) {
	case 0:
		_, err := s.c.DropTable(s.Worker, "db", name)
		return nil, err
	case 1:
		return s.c.TruncateTable(s.Worker, "db", name, nil)
	case 2:
		if len(def.Indexes) > 1 {
			return s.c.DropIndex(s.Worker, def.ID, def.Indexes[1].Name)
		}
	}
	def.Comment = fmt.Sprint(rng.Uint64())
	return s.c.ReplaceTable(s.Worker, &def)
}

// openAgain opens a table by the handle that somebody has had, if that can be.
func openAgain(s *session, turn *turn, name string) (*dict.Handle, error) {
	if h := turn.had.Load(); h != nil && h.Reopen(nil) {
		return h, nil
	}
	h, err := s.c.OpenTable(nil, "db", name)
	if err == nil {
		turn.had.Store(h)
	}
	return h, err
}

// look opens a table and reads it by all its indexes.
func look(s *session, turns []turn, rng *rand.Rand) error {
	i := rng.IntN(hammerTables)
	h, err := openAgain(s, &turns[i], fmt.Sprint("t", i))
	if err != nil {
		if errors.Is(err, table.ErrNoTable) {
			return nil
		}
		return err
	}
	defer h.Release()
	for range 2 {
		first := -1
		for i := range h.Table().Schema.Keys {
			rows, err := s.rows(h, i)
			if err != nil {
				return fmt.Errorf("reading %s by index %d: %w", h.Table().Schema.Name, i, err)
			}
			if first >= 0 && len(rows) != first {
				return fmt.Errorf("table %s has %d rows by one index, %d by another", h.Table().Schema.Name, first, len(rows))
			}
			first = len(rows)
		}
		s.eng.Tables.Env.Yield()
	}
	return nil
}

func checkHammered(t *testing.T, s *session, eng *storage.Engine) {
	t.Helper()
	names, err := s.c.TableNames(nil, "db")
	must(t, err)
	seen := map[string]bool{}
	for _, n := range names {
		if seen[n.Name] {
			t.Errorf("two tables %s", n.Name)
		}
		seen[n.Name] = true
	}
	for left := 1; left > 0; {
		left, err = s.c.Reclaim()
		must(t, err)
	}
	if st := s.c.Stats(); st.Live > st.Cached {
		t.Errorf("handles are left: %+v", st)
	}
	if n := s.files(t); n != len(names) {
		t.Errorf("%d tablespaces for %d tables", n, len(names))
	}
}

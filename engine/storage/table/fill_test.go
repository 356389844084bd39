package table_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
)

// filling is a table (id INT PRIMARY KEY, n INT, v INT) with an index on n that is being built.
type filling struct {
	t    *testing.T
	env  env.Env
	r    *rig
	tbl  *table.Table
	turn *env.Mutex // of commits
}

// With longNumbers n is a string that goes off-page, of which the row has no room to keep anything.
func numbers(index bool, unique, building bool) *record.Table {
	def := &record.Table{ID: 20, Schema: "test", Name: "numbers", RowVersion: 1, NextColumn: 4,
		Columns: []record.Column{{ID: 1, Name: "id", Type: intType(false), AddedIn: 1}, {ID: 2, Name: "n", Type: intType(false), AddedIn: 1},
			{ID: 3, Name: "v", Type: intType(false), AddedIn: 1}},
		Indexes: []record.Index{{ID: 201, Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}}}}
	for i := range uint32(30) {
		if longNumbers {
			bytesOf := types.Type{Kind: types.KindVarBinary, NotNull: true, Length: 400, Collation: types.CollationBinary}
			def.Columns[1].Type = bytesOf
			def.Columns = append(def.Columns, record.Column{ID: 4 + i, Name: fmt.Sprint("full", i), Type: bytesOf, AddedIn: 1})
			def.NextColumn = 5 + i
		}
	}
	if index {
		def.Indexes = append(def.Indexes, record.Index{ID: 202, Name: "n", Unique: unique, Building: building, Parts: []record.Part{{Column: 2}}})
	}
	return def
}

// newFilling makes the table with rows of which each n is ten times the id.
func newFilling(t *testing.T, e env.Env, rows int, unique bool) *filling {
	f := &filling{t: t, env: e, r: newRig(t, e, simfile.New(e, 1), 128), turn: env.NewMutex(e)}
	f.tbl = f.r.create(numbers(false, false, false))
	f.do(true, func(s *session) error {
		for id := range rows {
			f.must(s.Insert(f.tbl, numbered(id, 10*id)))
		}
		return nil
	})
	root, err := f.r.e.CreateIndex(f.tbl.Space(), 202)
	f.must(err)
	f.tbl.Where.Roots = maps.Clone(f.tbl.Where.Roots)
	f.tbl.Where.Roots[202] = root
	f.open(unique, true)
	return f
}

func (f *filling) open(unique, building bool) {
	s, err := record.Prepare(numbers(true, unique, building))
	f.must(err)
	f.tbl, err = f.r.e.Open(s, f.tbl.Where)
	f.must(err)
	f.r.tables[20] = f.tbl
}

func (f *filling) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// do runs fn in a transaction, and commits it unless commit is false or fn fails.
func (f *filling) do(commit bool, fn func(s *session) error) error {
	s := f.r.session()
	s.begin(trx.RepeatableRead)
	if err := fn(s); err != nil || !commit {
		s.rollback()
		return err
	}
	f.turn.Lock()
	defer f.turn.Unlock()
	f.must(s.commit())
	return nil
}

func (f *filling) set(s *session, id, n int) error {
	return s.Update(f.tbl, pk(f.tbl, int64(id)), []record.Change{{Column: 1, Value: numberOf(n)}})
}

// build fills the index, and publishes it if that succeeds.
func (f *filling) build(stop func() error) error {
	return f.do(true, func(s *session) error {
		_, err := s.FillIndex(f.tbl, 1, false, table.LoadOptions{Stop: stop})
		return err
	})
}

// check looks for what the index has too much or too little of, and keys that it has twice.
func (f *filling) check(unique bool) {
	f.t.Helper()
	f.open(unique, false)
	_, err := f.tbl.Check(table.CheckOptions{State: table.CheckQuiet}, func(x table.Finding) { f.t.Error(x) })
	f.must(err)
	f.do(false, func(s *session) error {
		var scan table.Scanner
		f.must(scan.Start(s.Worker, f.tbl, s.Trx().Snapshot(), table.Range{Columns: []int{0, 1}}))
		b := types.NewBatch([]*types.Type{&f.tbl.Schema.Columns[0].Type, &f.tbl.Schema.Columns[1].Type})
		has := map[int64]int64{}
		for more := true; more; {
			b.Reset()
			var err error
			more, err = scan.Next(b)
			f.must(err)
			for i := range b.Len() {
				id, n := b.Vecs[0].Value(i).Int(), b.Vecs[1].Value(i).Int()
				if longNumbers {
					n, err = strconv.ParseInt(string(b.Vecs[1].Value(i).Bytes()), 10, 64)
					f.must(err)
				}
				if other, taken := has[n]; taken && unique {
					f.t.Errorf("rows %d and %d have both n=%d", other, id, n)
				}
				has[n] = id
			}
		}
		return nil
	})
}

func numbered(id, n int) []types.Value {
	row := []types.Value{types.NewInt(int64(id)), numberOf(n), types.NewInt(0)}
	for range 30 {
		if longNumbers {
			row = append(row, types.NewString(strings.Repeat("f", record.MinExternal)))
		}
	}
	return row
}

func numberOf(n int) types.Value {
	if longNumbers {
		return types.NewString(fmt.Sprintf("%0300d", n))
	}
	return types.NewInt(int64(n))
}

var longNumbers bool

// TestBuildingKeepsKeys: a key that a change has removed, from an index which did not have
// it yet, is nobody else's until the change is committed.
func TestBuildingKeepsKeys(t *testing.T) {
	for _, commit := range []bool{true, false} {
		sim := simenv.New(1)
		sim.Run(func() {
			f := newFilling(t, sim, 5, true)
			g := env.NewGroup(sim)
			over := false
			g.Go("change", func() {
				f.do(commit, func(s *session) error {
					f.must(f.set(s, 2, 7))
					env.Sleep(sim, time.Second)
					over = true
					return nil
				})
			})
			g.Go("insert", func() {
				env.Sleep(sim, time.Millisecond)
				err := f.do(true, func(s *session) error { return s.Insert(f.tbl, numbered(100, 20)) })
				if !over {
					t.Errorf("commit %v: the key was given away before the change ended", commit)
				}
				if taken := errors.As(err, new(*table.DuplicateError)); taken == commit || err != nil && !taken {
					t.Errorf("commit %v: %v", commit, err)
				}
			})
			g.Wait()
			f.must(f.build(nil))
			f.check(true)
			f.r.close()
		})
	}
}

// TestFillSeesKeyMove: a key that has moved from one row to another since the rows were
// read is no duplicate.
func TestFillSeesKeyMove(t *testing.T) {
	sim := simenv.New(1)
	sim.Run(func() {
		f := newFilling(t, sim, 5, true)
		moved := false
		f.must(f.build(func() error {
			if !moved {
				moved = true
				f.must(f.do(true, func(s *session) error { return f.set(s, 2, 7) }))
				f.must(f.do(true, func(s *session) error { return s.Insert(f.tbl, numbered(100, 20)) }))
			}
			return nil
		}))
		f.check(true)
		f.r.close()
	})
}

// TestFillKeepsMarks: what a change has removed from the index before the build came to it does
// not come back, although purge has been at work in between.
func TestFillKeepsMarks(t *testing.T) {
	for _, unique := range []bool{false, true} {
		sim := simenv.New(1)
		sim.Run(func() {
			f := newFilling(t, sim, 5, unique)
			changed := false
			f.must(f.build(func() error {
				if !changed {
					changed = true
					f.must(f.do(true, func(s *session) error { return f.set(s, 2, 7) }))
					f.must(f.do(true, func(s *session) error { return s.Delete(f.tbl, pk(f.tbl, 3)) }))
					_, err := f.r.purger.Run()
					f.must(err)
				}
				return nil
			}))
			f.check(unique)
			f.r.close()
		})
	}
}

// TestFillOfHollowTree: the tree of an index has no entries, but levels. It is filled like one that
// somebody has begun.
func TestFillOfHollowTree(t *testing.T) {
	const rows = 2000
	f := newFilling(t, env.Real(), rows, false)
	defer f.r.close()
	f.must(f.build(nil))
	for id := range rows {
		key, _ := f.r.secondary(f.tbl, 1, numbered(id, 10*id))
		f.r.entry(f.tbl, 1, key, false, func(c cursor) { c.Remove() })
	}
	f.must(f.do(true, func(s *session) error {
		_, err := s.FillIndex(f.tbl, 1, true, table.LoadOptions{})
		return err
	}))
	f.check(false)
}

// TestFillWaitsForWriters: rows that are being changed are filled in as they are in the end.
// Nobody waits for the build meanwhile.
func TestFillWaitsForWriters(t *testing.T) {
	for _, commit := range []bool{true, false} {
		sim := simenv.New(1)
		sim.Run(func() {
			f := newFilling(t, sim, 5, true)
			g := env.NewGroup(sim)
			g.Go("change", func() {
				f.do(commit, func(s *session) error {
					f.must(f.set(s, 2, 40)) // row 4 has that, and the index does not know
					env.Sleep(sim, 10*time.Second)
					return f.set(s, 3, 8)
				})
			})
			g.Go("build", func() {
				env.Sleep(sim, time.Millisecond)
				err := f.build(nil)
				if taken := errors.As(err, new(*table.DuplicateError)); taken != commit || err != nil && !taken {
					t.Errorf("commit %v: %v", commit, err)
				}
				if err == nil {
					f.check(true)
				}
			})
			g.Wait()
			f.r.close()
		})
	}
}

// TestFillBesideRollbacks builds an index while others change the rows and take changes back,
// whole transactions and parts of them. With shared keys a unique index may be refused, but is
// never published with a key that two rows have; without, it is never refused.
func TestFillBesideRollbacks(t *testing.T) {
	built, refused := 0, 0
	defer func() { longNumbers = false }()
	for seed := range race.Fewer(uint64(150), 30) {
		unique, shared := seed%3 != 0, seed%3 == 1
		longNumbers = seed%5 == 4
		sim := simenv.New(seed)
		sim.YieldOdds, sim.StepLimit = 1+seed%3, 2_000_000
		sim.Run(func() {
			f := newFilling(t, sim, 24, unique)
			w := &writers{filling: f, shared: shared, committed: map[int]int{}, next: 1000}
			for id := range 24 {
				w.committed[id] = 10 * id
			}
			g := env.NewGroup(sim)
			for n := range 4 {
				g.Go("writer", func() { w.run(rand.New(rand.NewPCG(seed, uint64(n)))) })
			}
			var err error
			g.Go("build", func() {
				for range seed % 7 * 20 {
					sim.Yield()
				}
				err = f.build(func() error {
					for range seed % 4 * 10 {
						sim.Yield()
					}
					return nil
				})
				w.done = true
			})
			g.Go("purge", func() {
				for !w.done {
					_, err := f.r.purger.Run()
					f.must(err)
					for range 10 {
						sim.Yield()
					}
				}
			})
			g.Wait()
			switch {
			case err == nil:
				built++
				f.check(unique)
			case shared && errors.As(err, new(*table.DuplicateError)):
				refused++
			default:
				t.Error(err)
			}
			f.r.close()
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if built < race.Fewer(80, 16) || refused < race.Fewer(5, 1) {
		t.Errorf("%d indexes were built, %d refused: the test is too tame", built, refused)
	}
}

// writers change rows until done. Unless they share keys, each n is that of one row, of one
// change that is under way, or free.
type writers struct {
	*filling
	shared    bool
	done      bool
	committed map[int]int // n by id
	free      []int
	next      int
}

func (w *writers) run(rng *rand.Rand) {
	for !w.done {
		var taken []int
		err := w.do(true, func(s *session) error {
			now := map[int]int{} // what the transaction has set; -1: deleted
			mark, before := uint64(0), map[int]int{}
			for range 1 + rng.IntN(5) {
				if rng.IntN(4) == 0 {
					w.must(s.RollbackTo(mark))
					now = maps.Clone(before)
				}
				if rng.IntN(4) == 0 {
					mark, before = s.Savepoint(), maps.Clone(now)
				}
				n := w.take(rng)
				taken = append(taken, n)
				if err := w.change(s, rng, n, now); err != nil {
					return err
				}
				for range rng.IntN(4) {
					w.env.Yield()
				}
			}
			if rng.IntN(2) == 0 {
				return errRolledBack
			}
			used := map[int]bool{}
			for id, n := range now {
				if old, ok := w.committed[id]; ok {
					taken = append(taken, old)
				}
				delete(w.committed, id)
				if n >= 0 {
					w.committed[id], used[n] = n, true
				}
			}
			kept := taken[:0]
			for _, n := range taken {
				if !used[n] {
					kept = append(kept, n)
				}
			}
			taken = kept
			return nil
		})
		if err != nil && !errors.Is(err, errRolledBack) && !errors.Is(err, lock.ErrDeadlock) {
			w.t.Error(err)
			return
		}
		w.free = append(w.free, taken...)
	}
}

var errRolledBack = errors.New("rolled back")

// take gives a value for n.
func (w *writers) take(rng *rand.Rand) int {
	if w.shared {
		return 5 * rng.IntN(60)
	}
	if k := len(w.free); k > 0 && rng.IntN(3) > 0 {
		i := rng.IntN(k)
		n := w.free[i]
		w.free[i] = w.free[k-1]
		w.free = w.free[:k-1]
		return n
	}
	w.next++
	return w.next
}

// change inserts, updates or deletes a row.
func (w *writers) change(s *session, rng *rand.Rand, n int, now map[int]int) error {
	id := rng.IntN(30)
	var err error
	switch rng.IntN(6) {
	case 0:
		err = s.Delete(w.tbl, pk(w.tbl, int64(id)))
		n = -1
	case 1, 2:
		err = s.Insert(w.tbl, numbered(id, n))
	case 3:
		return passed(s.Update(w.tbl, pk(w.tbl, int64(id)), []record.Change{{Column: 2, Value: types.NewInt(int64(rng.IntN(100)))}}))
	default:
		err = w.set(s, id, n)
	}
	if err == nil {
		now[id] = n
		return nil
	}
	var taken *table.DuplicateError
	if errors.As(err, &taken) && taken.Position > 0 && !w.shared {
		return fmt.Errorf("row %d: %w", id, err)
	}
	return passed(err)
}

// passed leaves of an error what a transaction cannot go on after.
func passed(err error) error {
	if errors.As(err, new(*table.DuplicateError)) || errors.Is(err, table.ErrNotFound) {
		return nil
	}
	return err
}

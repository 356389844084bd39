package trx_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/storage/undo/undotest"
)

// firstTable is the number of the first table's tablespace.
const firstTable uint32 = 10

// makeTables makes the tablespaces of n tables.
func (s *session) makeTables(n int) ([]*space.Space, error) {
	var tables []*space.Space
	for i := range n {
		if err := s.m.Begin(); err != nil {
			return nil, err
		}
		sp, err := s.rig.Reg.Create(s.m, firstTable+uint32(i))
		s.m.Commit()
		if err != nil {
			return nil, err
		}
		tables = append(tables, sp)
	}
	return tables, s.rig.Pool.FlushAll()
}

// raise begins a transaction that changes a row and raises the counters of tables.
func (s *session) raise(row int, tables []*space.Space, counters [2]uint64) (*trx.Trx, error) {
	s.t = s.sys.Begin(trx.Options{})
	if err := s.write(row, 100); err != nil {
		return nil, err
	}
	for _, sp := range tables {
		s.t.RaiseCounters(uint64(sp.No()), sp, counters)
	}
	return s.t, nil
}

// countersOf reads the counters of a table.
func countersOf(sp *space.Space) (c [2]uint64, err error) {
	for i := range c {
		if c[i], err = sp.Word(i); err != nil {
			return c, err
		}
	}
	return c, nil
}

// TestCountersOfManyTables commits changes of more tables than the buffer pool has
// pages: by one transaction, and by several of one group.
func TestCountersOfManyTables(t *testing.T) {
	const tables = 2*undotest.Frames + 50
	for _, each := range []int{tables, tables / 5, 7} {
		sim := simenv.New(1)
		var err error
		sim.Run(func() { err = countersOfManyTables(simfile.New(sim, 1), sim, tables, each) })
		if err != nil {
			t.Errorf("%d tables a transaction: %v", each, err)
		}
	}
}

// countersOfManyTables commits groups of up to five transactions, each with its own
// part of the tables.
func countersOfManyTables(fs *simfile.FS, sim *simenv.Sim, count, each int) error {
	d, err := newDB(sim, fs, false)
	if err != nil {
		return err
	}
	d.sys.SetCommitChunk(64)
	s := d.session(rand.New(rand.NewPCG(1, 1)))
	tables, err := s.makeTables(count)
	if err != nil {
		return err
	}
	csn := uint64(0)
	for left := tables; len(left) > 0; {
		var items []trx.Commit
		for range 5 {
			n := min(each, len(left))
			csn++
			x, err := s.raise(len(items), left[:n], [2]uint64{csn, 2 * csn})
			if err != nil {
				return err
			}
			items = append(items, trx.Commit{Trx: x, CSN: csn})
			if left = left[n:]; len(left) == 0 {
				break
			}
		}
		if err := d.sys.CommitGroup(items, trx.Position{Index: csn, Term: 1}); err != nil {
			return err
		}
		for _, c := range items {
			d.sys.End(c.Trx)
		}
	}
	for i, sp := range tables {
		want := uint64(1 + i/each)
		if got, err := countersOf(sp); err != nil || got != [2]uint64{want, 2 * want} {
			return fmt.Errorf("table %d has the counters %d, want those of transaction %d: %w", i, got, want, err)
		}
	}
	return d.rig.Close()
}

// TestCountersAtEveryGroup cuts the redo log in every place of a commit and applies
// the rest again: the counters are those that the changes have raised. Those of a
// transaction of few tables are durable if and only if it is.
func TestCountersAtEveryGroup(t *testing.T) {
	sim := simenv.New(1)
	var seen map[[2]int]bool
	var err error
	sim.Run(func() { seen, err = countersAtEveryGroup(simfile.New(sim, 1), sim) })
	if err != nil {
		t.Fatal(err)
	}
	// Committed transactions, and tables of the large one whose counters are raised.
	for _, want := range [][2]int{{0, 0}, {1, 0}, {1, 2}, {1, 4}, {2, 5}} {
		if !seen[want] {
			t.Errorf("no cut leaves %d transactions and %d counters; there were %v", want[0], want[1], seen)
		}
	}
}

const (
	smallTables = 2 // changed by the first transaction
	largeTables = 5 // and by the second one
)

func countersAtEveryGroup(fs *simfile.FS, sim *simenv.Sim) (map[[2]int]bool, error) {
	d, err := newDB(sim, fs, true)
	if err != nil {
		return nil, err
	}
	s := d.session(rand.New(rand.NewPCG(1, 1)))
	tables, err := s.makeTables(smallTables + largeTables)
	if err != nil {
		return nil, err
	}
	if err := s.commitTwo(tables, 0); err != nil {
		return nil, err
	}
	if err := d.rig.Log.FlushTo(d.rig.Log.Published()); err != nil {
		return nil, err
	}
	d.rig.Abandon()
	ends, err := undotest.Groups(fs.KillImage(), sim)
	if err != nil {
		return nil, err
	}
	seen := map[[2]int]bool{}
	for i, upTo := range ends {
		state, err := recoverCounters(fs.KillImage(), sim, upTo)
		if err != nil {
			return nil, fmt.Errorf("log cut at group %d of %d: %w", i, len(ends), err)
		}
		seen[state] = true
	}
	return seen, nil
}

// commitTwo commits an entry of two transactions, less those up to a CSN.
func (s *session) commitTwo(tables []*space.Space, csn uint64) error {
	s.sys.SetCommitChunk(2)
	var items []trx.Commit
	for i, part := range [][]*space.Space{tables[:smallTables], tables[smallTables:]} {
		if number := uint64(i + 1); number > csn {
			x, err := s.raise(i, part, [2]uint64{10 * number, 10*number + 1})
			if err != nil {
				return err
			}
			items = append(items, trx.Commit{Trx: x, CSN: number})
		}
	}
	return s.sys.CommitGroup(items, trx.Position{Index: 7, Term: 1})
}

// recoverCounters returns how many transactions a log up to an LSN commits, and of how
// many tables of the second one it raises the counters.
func recoverCounters(fs *simfile.FS, sim *simenv.Sim, upTo page.LSN) (state [2]int, err error) {
	rig, err := undotest.OpenUpTo(fs, sim, undoSpaces, upTo)
	if err != nil {
		return state, err
	}
	defer rig.Abandon()
	d := &db{e: sim}
	if err := d.open(rig); err != nil {
		return state, err
	}
	s := d.session(rand.New(rand.NewPCG(1, 1)))
	for _, t := range d.sys.Resurrected() {
		if err := s.finishResurrected(t); err != nil {
			return state, err
		}
	}
	var tables []*space.Space
	for i := range uint32(smallTables + largeTables) {
		sp, err := rig.Reg.Open(firstTable + i)
		if err != nil {
			return state, err
		}
		tables = append(tables, sp)
	}
	csn, _ := d.sys.Applied()
	state[0] = int(csn)
	for i, sp := range tables {
		got, err := countersOf(sp)
		switch small := i < smallTables; {
		case err != nil:
			return state, err
		case small && (got == [2]uint64{10, 11}) == (csn > 0) && (got == [2]uint64{}) == (csn == 0):
		case !small && got == [2]uint64{20, 21}:
			state[1]++
		case small || got != [2]uint64{} || csn == 2:
			return state, fmt.Errorf("table %d has the counters %d at CSN %d", i, got, csn)
		}
	}
	if csn == 2 {
		return state, nil
	}
	if err := s.commitTwo(tables, csn); err != nil {
		return state, err
	}
	for i, sp := range tables {
		want := [2]uint64{10, 11}
		if i >= smallTables {
			want = [2]uint64{20, 21}
		}
		if got, err := countersOf(sp); err != nil || got != want {
			return state, fmt.Errorf("table %d has the counters %d after all was applied again, want %d: %w", i, got, want, err)
		}
	}
	return state, nil
}

// place is a mark and the counters as of it, by table.
type place struct {
	mark     uint64
	counters [3][2]uint64
}

// TestCountersGoBack: whichever of many statements or savepoints a transaction is rolled
// back to, its counters are those of the rows that are left. What it remembers for that
// is bounded by the savepoints that there are.
func TestCountersGoBack(t *testing.T) {
	s := open(t)
	for seed := range uint64(seeds(40)) {
		if err := s.goBack(seed); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func (s *session) goBack(seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 5))
	var saves []place
	var now, statement place
	s.t = s.sys.Begin(trx.Options{Marks: func(yield func(uint64) bool) {
		for i := range saves {
			if !yield(saves[i].mark) {
				return
			}
		}
		yield(statement.mark)
	}})
	back := func(to place) error {
		if err := s.undoTo(to.mark); err != nil {
			return err
		}
		s.t.WentBack(to.mark)
		now = to
		for i, want := range now.counters {
			if got := s.t.Use(uint64(i)).Counters; got != want {
				return fmt.Errorf("back at mark %d table %d has the counters %d, want %d", to.mark, i, got, want)
			}
		}
		return nil
	}
	rare, most := 1+rng.IntN(300), 1
	for range 1500 {
		now.mark = s.t.BeginStatement()
		statement = now
		var err error
		switch n := rng.IntN(rare + 5); {
		case n == 0:
			saves = append(saves, now)
			most = max(most, len(saves))
		case n == 1 && len(saves) > 0: // set again, or released with those after it
			i := rng.IntN(len(saves))
			if saves = append(saves[:i:i], saves[i+1:]...); rng.IntN(3) == 0 {
				saves = saves[:i]
			}
		case n == 2 && len(saves) > 0:
			i := rng.IntN(len(saves))
			saves = saves[:i+1]
			err = back(saves[i])
		default:
			for range 1 + rng.IntN(2) {
				if err := s.write(rng.IntN(ownRow), 1); err != nil {
					return err
				}
				i := rng.IntN(len(now.counters))
				c := &now.counters[i]
				c[rng.IntN(2)] += uint64(rng.IntN(3))
				s.t.RaiseCounters(uint64(i), nil, *c)
			}
			if rng.IntN(10) == 0 {
				err = back(statement)
			}
		}
		if err != nil {
			return err
		}
	}
	for i := range now.counters {
		if n := s.t.Use(uint64(i)).PastCounters(); n > 4*(most+4) {
			return fmt.Errorf("past counters for %d marks; there were never more than %d savepoints", n, most)
		}
	}
	s.t.StartRollback()
	if err := s.undoTo(0); err != nil {
		return err
	}
	s.t.FinishRollback()
	s.sys.End(s.t)
	return nil
}

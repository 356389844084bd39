package table_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
)

// someRows makes rows in one of the orders in which they come: ascending, descending, any.
// Now and then one is taken already, goes to the place of a deleted one, or has a value that lies
// off-page.
func someRows(rng *rand.Rand, from int64) [][]types.Value {
	order, count, step := rng.IntN(4), 1+rng.IntN(100), int64(1+rng.IntN(3))
	rare := 1 + rng.IntN(300)
	var rows [][]types.Value
	for i := range count {
		id := from + int64(i)*step
		switch {
		case order == 0:
			id = from - int64(i)*step
		case order == 1 || rng.IntN(rare) == 0:
			id = rng.Int64N(20000)
		}
		code := types.Null
		if rng.IntN(2) == 0 {
			code = types.NewInt(rng.Int64N(1 << 30 / int64(rare)))
		}
		bio := rng.IntN(300)
		if rng.IntN(rare) == 0 {
			bio = rng.IntN(30000)
		}
		rows = append(rows, []types.Value{types.NewInt(id), types.NewString(fmt.Sprint("name", rng.IntN(50))), types.NewInt(rng.Int64N(3)), code,
			types.NewString(strings.Repeat("b", bio))})
	}
	return rows
}

// Rows that are added together are those that are added one by one, and what is refused is
// refused for the same row and key, and leaves nothing.
func TestInsertRows(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 2048)
	defer r.close()
	together, alone := r.create(people(30)), r.create(people(31))
	s := r.session()
	refused := 0
	for round := range race.Fewer(200, 40) {
		s.begin(trx.RepeatableRead)
		for range 1 + rng.IntN(3) {
			rows := someRows(rng, rng.Int64N(20000))
			mark := s.Savepoint()
			var want, got *table.DuplicateError
			failed := 0
			for ; failed < len(rows) && want == nil; failed++ {
				if err := s.Insert(alone, rows[failed]); err != nil && !errors.As(err, &want) {
					t.Fatal(err)
				}
			}
			if want != nil {
				failed--
				do(t, s.RollbackTo(mark))
			}
			n, err := s.InsertRows(together, rows)
			if err != nil && !errors.As(err, &got) {
				t.Fatal(err)
			}
			if (got != nil) != (want != nil) || n != failed {
				t.Fatalf("seed %d, round %d: %v for row %d, not %v for row %d, of %d", seed, round, err, n, want, failed, len(rows))
			}
			if want == nil {
				continue
			}
			if refused++; got.Position != want.Position || !bytes.Equal(got.Key, want.Key) {
				t.Fatalf("seed %d, round %d: %v, not %v", seed, round, got, want)
			}
		}
		for range rng.IntN(20) {
			from := rng.Int64N(20000)
			for id := from; id < from+10; id++ {
				for _, tbl := range []*table.Table{together, alone} {
					if err := s.Delete(tbl, pk(tbl, id)); err != nil && !errors.Is(err, table.ErrNotFound) {
						t.Fatal(err)
					}
				}
			}
		}
		if rng.IntN(5) == 0 {
			s.rollback()
		} else {
			do(t, s.commit())
		}
		if round%50 == 49 {
			s.same(together, alone)
			r.clean(together)
			if t.Failed() {
				t.Fatalf("seed %d, round %d", seed, round)
			}
		}
	}
	if together.Rows() != alone.Rows() || refused == 0 || refused > 300 {
		t.Errorf("seed %d: %d rows, and %d; %d times some were refused", seed, together.Rows(), alone.Rows(), refused)
	}
}

// Ascending rows fill their leaves, wherever in the index they go.
func TestInsertRowsFillLeaves(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 2048)
	defer r.close()
	s := r.session()
	var leaves [2]int64
	for i := range leaves {
		def := people(uint64(40 + i))
		def.Indexes = def.Indexes[:1]
		tbl := r.create(def)
		s.begin(trx.RepeatableRead)
		for _, from := range []int64{100000, 0, 50000} {
			for range 40 {
				var rows [][]types.Value
				for range 64 {
					rows = append(rows, person(from, "name", 1, 1, "bio"))
					from++
				}
				if i == 0 {
					if _, err := s.InsertRows(tbl, rows); err != nil {
						t.Fatal(err)
					}
					continue
				}
				for _, row := range rows {
					do(t, s.Insert(tbl, row))
				}
			}
		}
		do(t, s.commit())
		r.clean(tbl)
		sum, err := tbl.Check(table.CheckOptions{State: table.CheckQuiet}, func(table.Finding) {})
		do(t, err)
		leaves[i] = sum.Indexes[0].Leaves
	}
	if leaves[0] != leaves[1] {
		t.Errorf("%d leaves, and %d of rows that come one by one", leaves[0], leaves[1])
	}
}

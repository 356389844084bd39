package table_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/internal/race"
)

// counted is a table with a hidden row id and an AUTO_INCREMENT column.
func counted(id uint64) *record.Table {
	bigint := types.Type{Kind: types.KindBigInt, NotNull: true, Unsigned: true}
	return &record.Table{
		ID: id, Schema: "test", Name: "counted", RowVersion: 1, NextColumn: 4,
		Columns: []record.Column{
			{ID: 1, Name: "row_id", Type: bigint, Hidden: true, AddedIn: 1},
			{ID: 2, Name: "a", Type: bigint, AutoIncrement: true, AddedIn: 1},
			{ID: 3, Name: "u", Type: bigint, AddedIn: 1},
		},
		Indexes: []record.Index{
			{ID: 10*id + 1, Name: "PRIMARY", Unique: true, Parts: []record.Part{{Column: 1}}},
			{ID: 10*id + 2, Name: "a", Parts: []record.Part{{Column: 2}}},
			{ID: 10*id + 3, Name: "u", Unique: true, Parts: []record.Part{{Column: 3}}},
		},
	}
}

// TestCountersOfCommittedRows: the counters on disk are those of the rows that were
// committed: what a node that only applies these has. Rows that a statement,
// savepoint or transaction has taken back, and those that were refused, do not count.
func TestCountersOfCommittedRows(t *testing.T) {
	r := newRig(t, env.Real(), file.OS(t.TempDir()), 512)
	defer r.close()
	tbl := r.create(counted(35))
	s := r.session()
	type point struct {
		mark  uint64
		state [2]uint64
	}
	disk := [2]uint64{1, 1}
	for seed := range race.Fewer(uint64(150), 30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s.begin(trx.RepeatableRead)
		now := [2]uint64{}
		saves := []point{{s.Savepoint(), now}}
		for range 1 + rng.IntN(12) {
			switch n := rng.IntN(12); {
			case n >= 10:
				var rows [][]types.Value
				then := now
				for range 1 + rng.IntN(4) {
					row, a := tbl.NextRowID(), tbl.ReserveAuto(1)
					rows = append(rows, []types.Value{types.NewUint(row), types.NewUint(a), types.NewUint(rng.Uint64N(300))})
					then = [2]uint64{max(then[0], a+1), max(then[1], row+1)}
				}
				_, err := s.InsertRows(tbl, rows)
				var dup *table.DuplicateError
				switch {
				case err == nil:
					now = then
				case !errors.As(err, &dup):
					t.Fatal(err)
				}
			case n < 4:
				row := tbl.NextRowID()
				a := tbl.ReserveAuto(1)
				if rng.IntN(5) == 0 {
					a += uint64(rng.IntN(10))
				}
				err := s.Insert(tbl, []types.Value{types.NewUint(row), types.NewUint(a), types.NewUint(rng.Uint64N(300))})
				var dup *table.DuplicateError
				switch {
				case err == nil:
					now = [2]uint64{max(now[0], a+1), max(now[1], row+1)}
				case !errors.As(err, &dup):
					t.Fatal(err)
				}
			case n < 5:
				key := tbl.Schema.Keys[0].AppendKey(nil, types.NewUint(rng.Uint64N(tbl.RowID())))
				a := tbl.NextAuto() + uint64(rng.IntN(5))
				err := s.Update(tbl, key, []record.Change{
					{Column: 1, Value: types.NewUint(a)}, {Column: 2, Value: types.NewUint(rng.Uint64N(300))}})
				var dup *table.DuplicateError
				switch {
				case err == nil:
					now[0] = max(now[0], a+1)
				case !errors.As(err, &dup) && !errors.Is(err, table.ErrNotFound):
					t.Fatal(err)
				}
			case n < 6:
				saves = append(saves, point{s.Trx().BeginStatement(), now})
			case n < 8:
				saves = append(saves, point{s.Savepoint(), now})
			default:
				i := rng.IntN(len(saves))
				do(t, s.RollbackTo(saves[i].mark))
				now, saves = saves[i].state, saves[:i+1]
			}
		}
		if rng.IntN(5) == 0 {
			s.rollback()
		} else {
			do(t, s.commit())
			disk = [2]uint64{max(disk[0], now[0]), max(disk[1], now[1])}
		}
		auto, row, err := tbl.Counters()
		do(t, err)
		if got := [2]uint64{auto, row}; got != disk {
			t.Fatalf("seed %d: counters %d, want %d", seed, got, disk)
		}
		if tbl.NextAuto() < auto || tbl.RowID() < row {
			t.Fatalf("seed %d: counters in memory are %d and %d", seed, tbl.NextAuto(), tbl.RowID())
		}
	}
}

package apply_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/apply"
)

// TestCounters: after transactions of many statements and savepoints, some of them taken
// back, the leader's AUTO_INCREMENT counter and hidden row id are those of a follower,
// which has seen only the rows that were logged.
func TestCounters(t *testing.T) {
	simulate(t, func(sim *simenv.Sim, seed uint64) error {
		rng := newRand(seed)
		p, err := newPair(sim)
		if err != nil {
			return err
		}
		bigint := types.Type{Kind: types.KindBigInt, NotNull: true}
		err = p.do(func() error {
			_, err := p.s.CreateTable(&record.Table{Schema: "db", Name: "c",
				Columns: []record.Column{{ID: 1, Name: "a", Type: bigint, AutoIncrement: true}, {ID: 2, Name: "u", Type: bigint}},
				Indexes: []record.Index{{Name: "a", Parts: []record.Part{{Column: 1}}},
					{Name: "u", Unique: true, Parts: []record.Part{{Column: 2}}}}}, nil)
			return err
		})
		if err != nil {
			return err
		}
		a, err := apply.New(apply.Options{Env: sim, Engine: p.to.Engine, Workers: 2})
		if err != nil {
			return err
		}
		for range 15 {
			if err := p.do(func() error { return p.countedChanges(rng) }); err != nil {
				return err
			}
			if err := errors.Join(p.send(a), a.Drain()); err != nil {
				return err
			}
			if err := sameStates(p.eng, p.to); err != nil {
				return err
			}
		}
		return errors.Join(a.Stop(), p.closeAll())
	})
}

// countedChanges changes rows of db.c in a few hundred statements, and takes some of the
// last ones back: a value that is given after that is above all of them.
func (p *pair) countedChanges(rng *rand.Rand) error {
	t, err := p.s.Open("db", "c")
	if err != nil {
		return err
	}
	row := func() []types.Value {
		r := []types.Value{types.Null, types.NewInt(rng.Int64N(1 << 14)), types.Null}
		if rng.IntN(4) == 0 {
			r[0] = types.NewInt(int64(t.Table().NextAuto()) + rng.Int64N(10) - 5)
		}
		return r
	}
	rare := 4 + rng.IntN(100)
	for range rng.IntN(400) {
		if err := p.s.BeginStatement(); err != nil {
			return err
		}
		name := fmt.Sprint("s", rng.IntN(4))
		switch rng.IntN(rare) {
		case 0:
			err = p.s.Savepoint(name)
		case 1:
			err = noErrno(p.s.RollbackTo(name), 1305)
		case 2:
			err = noErrno(p.s.Release(name), 1305)
		default:
			err = p.countedRows(rng, t, row)
			var dup *table.DuplicateError
			if errors.As(err, &dup) && rng.IntN(2) == 0 {
				err = nil // as with IGNORE
			}
			if err != nil && !errors.As(err, &dup) {
				return err
			}
			if err != nil || rng.IntN(6) == 0 {
				err = p.s.RollbackStatement()
			}
		}
		if err != nil {
			return err
		}
	}
	return noErrno(p.s.RollbackTo(fmt.Sprint("s", rng.IntN(4))), 1305)
}

// countedRows is a statement that inserts rows, or deletes one of its own.
func (p *pair) countedRows(rng *rand.Rand, t *txn.Table, row func() []types.Value) error {
	if rng.IntN(3) == 0 {
		first := row()
		rows := [][]types.Value{first}
		for range rng.IntN(4) {
			if next := row(); next[0].IsNull() == first[0].IsNull() {
				rows = append(rows, next)
			}
		}
		_, err := p.s.InsertRows(t, rows, false)
		return err
	}
	r := row()
	if err := p.s.Insert(t, r, false); err != nil || rng.IntN(4) > 0 {
		return err
	}
	key, err := t.Table().Schema.AppendRowKey(nil, r)
	if err == nil {
		err = p.s.Delete(t, key, r)
	}
	return err
}

// noErrno returns an error unless it has MySQL's number.
func noErrno(err error, number sqlerr.Code) error {
	var e *sqlerr.Error
	if errors.As(err, &e) && e.Number == number {
		return nil
	}
	return err
}

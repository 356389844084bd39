package table_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
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
)

// TestSemiConsistentUpdates: sessions at READ COMMITTED count up the rows of one name
// each, in scans over the whole table that pass over the others' rows. Nobody waits
// for anybody but those of the same name, and no count is lost.
func TestSemiConsistentUpdates(t *testing.T) {
	for seed := range uint64(4) {
		sim := simenv.New(seed)
		sim.YieldOdds = 2
		sim.Run(func() {
			r := newRig(t, sim, simfile.New(sim, seed), 64)
			if err := semiConsistentUpdates(r, sim, seed); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			r.close()
		})
	}
}

const (
	semiRows  = 30
	semiNames = 3
)

func semiConsistentUpdates(r *rig, e env.Env, seed uint64) error {
	tbl := r.create(people(40))
	s := r.session()
	s.begin(trx.RepeatableRead)
	for id := range int64(semiRows) {
		bio := "short"
		if id%7 == 0 {
			bio = strings.Repeat("long", 5000)
		}
		if err := s.Insert(tbl, person(id, fmt.Sprint("name", id%semiNames), 0, id, bio)); err != nil {
			return err
		}
	}
	if err := s.commit(); err != nil {
		return err
	}
	var want [semiNames]int64
	errs := make([]error, 2*semiNames)
	commits := env.NewMutex(e)
	g := env.NewGroup(e)
	for i := range errs {
		s, rng, name := r.session(), rand.New(rand.NewPCG(seed, uint64(i))), i%semiNames
		g.Go(fmt.Sprint("session ", i), func() {
			for range 12 {
				s.begin(trx.ReadCommitted)
				n, err := s.countUp(tbl, fmt.Sprint("name", name), table.Range{Index: rng.IntN(2)}) // not by what changes
				env.Sleep(e, time.Duration(rng.IntN(100))*time.Microsecond)
				switch {
				case errors.Is(err, lock.ErrDeadlock) || err == nil && rng.IntN(4) == 0:
					s.rollback()
				case err == nil && n != semiRows/semiNames:
					err = fmt.Errorf("%d rows of name %d counted up", n, name)
					fallthrough
				case err != nil:
					errs[i] = err
					return
				default:
					commits.Lock()
					want[name]++
					errs[i] = s.commit()
					commits.Unlock()
				}
			}
		})
	}
	g.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.begin(trx.RepeatableRead)
	defer r.e.Trx.End(s.Trx())
	rows, err := s.scan(tbl, s.Trx().Snapshot(), table.Range{})
	for _, row := range rows {
		if got := row[2].Int(); got != want[row[0].Int()%semiNames] {
			return fmt.Errorf("row %d was counted up %d times of %d", row[0].Int(), got, want)
		}
	}
	return err
}

// countUp raises the age of the rows with the name.
func (s *session) countUp(tbl *table.Table, name string, rng table.Range) (n int, err error) {
	columns := []int{1, 2, 4}
	var kinds []*types.Type
	for _, c := range columns {
		kinds = append(kinds, &tbl.Schema.Columns[c].Type)
	}
	matches := func(b *types.Batch, i int) bool { return string(b.Row(nil, i)[0].Bytes()) == name }
	rng.Columns, rng.Keys, rng.Locking, rng.Lock = columns, true, true, lock.RecordX
	rng.Wanted = func(b *types.Batch) (bool, error) { return matches(b, 0), nil }
	var sc table.Scanner
	if err := sc.Start(s.Worker, tbl, nil, rng); err != nil {
		return 0, err
	}
	batch := types.NewBatch(kinds)
	var keys [][]byte
	var ages []int64
	for more := true; more; {
		if more, err = sc.Next(batch); err != nil {
			return n, err
		}
		for i := range batch.Len() {
			if !matches(batch, i) {
				sc.Unlock(i)
				continue
			}
			keys, ages = append(keys, bytes.Clone(sc.Key(i))), append(ages, batch.Row(nil, i)[1].Int())
		}
	}
	for i, key := range keys {
		change := []record.Change{{Column: 2, Value: types.NewInt(ages[i] + 1)}}
		if err := s.Update(tbl, key, change); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

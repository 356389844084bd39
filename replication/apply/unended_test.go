package apply_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/apply"
)

// endWithin ends the follower's engine within a transaction that has changed rows of table t from
// 1 to n, and inserted rows behind them up to last; the engine that it opens then takes that back beside new work.
func (p *pair) endWithin(e env.Env, n, last int64) error {
	h, err := p.to.Catalog.OpenTable(nil, "db", "t")
	if err != nil {
		return err
	}
	w, tbl := p.to.Tables.NewWorker(), h.Table()
	w.Use(p.to.Trx.Begin(trx.Options{}))
	for id := int64(1); id <= last && err == nil; id++ { // the first changes are taken back last
		key := tbl.Schema.Keys[0].AppendKey(nil, types.NewInt(id))
		switch {
		case id > n:
			err = w.Insert(tbl, []types.Value{types.NewInt(id), types.NewInt(1), types.NewString("never")})
		case id%5 == 0:
			err = w.Delete(tbl, key)
		default:
			err = w.Update(tbl, key, []record.Change{{Column: 1, Value: types.NewInt(-1)}})
		}
	}
	h.Release()
	if err = errors.Join(err, p.to.Log.FlushTo(p.to.Log.Published())); err != nil {
		return err
	}
	killed := p.fs.KillImage()
	p.fs.Crash()
	_ = p.to.Close()
	p.fs = killed
	o := options(p.fs, e)
	o.RollbackLater, o.Recovery = 100, &storage.Recovery{}
	eng, err := storage.Open(o)
	if err != nil {
		return err
	}
	if s := o.Recovery.State(); s.RolledBack == s.Unfinished {
		return fmt.Errorf("nothing is rolled back later: %+v", s)
	}
	p.to = &engine{Engine: eng, first: eng.Trx.LastCommitted()}
	eng.Trx.OpenSnapshot(&p.to.view)
	return nil
}

// TestUnended: entries of the log wait for the rows of a transaction that is rolled back beside them,
// and so do schema changes.
func TestUnended(t *testing.T) {
	const rows = 400
	changes := map[string]func(p *pair) error{
		"update": func(p *pair) error { return p.set(1, 5) },
		"delete": func(p *pair) error { return p.delete(2) },
		"again":  func(p *pair) error { return p.set(5, 5) }, // a row that the other has deleted
		"insert": func(p *pair) error { return p.insert(rows+1, "its key is taken") },
		"all": func(p *pair) error {
			for id := int64(1); id < rows; id += 7 {
				if err := p.set(id, id); err != nil {
					return err
				}
			}
			return p.insert(10_000, "and one more")
		},
		"drop": func(p *pair) error {
			return p.do(func() error { _, err := p.s.DropTable("db", "t", nil); return err })
		},
		"truncate": func(p *pair) error {
			return p.do(func() error { _, err := p.s.TruncateTable("db", "t", nil); return err })
		},
	}
	for name, change := range changes {
		if err := unended(rows, change, 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for full := 1; full < 4; full++ {
		if err := unended(1400, changes["all"], full); err != nil {
			t.Errorf("the disk is full %d times: %v", full, err)
		}
	}
}

// unended makes a change beside the rollback of a transaction that has changed the rows. full times there is
// no room first.
func unended(rows int64, change func(p *pair) error, full int) error {
	return simulateOne(1, func(sim *simenv.Sim, _ uint64) error {
		p, err := newPair(sim)
		for id := int64(1); id <= rows && err == nil; id++ {
			err = p.insert(id, "x")
		}
		if err != nil {
			return err
		}
		a, err := apply.New(apply.Options{Env: sim, Engine: p.to.Engine, Workers: 2})
		if err == nil {
			err = errors.Join(p.send(a), a.Drain(), a.Stop(), p.to.Sync())
		}
		if err == nil {
			err = p.endWithin(sim, rows, 3*rows)
		}
		if err == nil {
			err = change(p)
		}
		if err != nil {
			return err
		}
		o := apply.Options{Env: sim, Engine: p.to.Engine, Workers: 2}
		if full > 0 {
			p.fs.Inject(simfile.Fault{Ops: simfile.OpAllocate, Name: "*.trd", Err: file.ErrNoSpace, Times: full})
			o.RetryEvery = time.Millisecond
		}
		if a, err = apply.New(o); err != nil {
			return err
		}
		if err := errors.Join(p.send(a), a.Drain(), a.Stop(), sameStates(p.eng, p.to)); err != nil {
			return err
		}
		return p.closeAll()
	})
}

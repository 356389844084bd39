package apply_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/txn/txntest"
	"github.com/triremedb/trireme/replication/apply"
)

// must stops the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// options is a small engine without purge, so that every snapshot can be looked at.
func options(fsys file.FS, e env.Env) storage.Options {
	return storage.Options{FS: fsys, Env: e, BufferPoolSize: 6 << 20, RedoCapacity: 16 << 20, LogBufferSize: 1 << 20,
		ReadAheadTasks: -1, PurgeTasks: -1, TableCache: 64}
}

// engine is one that keeps all versions, and all tables that were dropped, since it
// was opened.
type engine struct {
	*storage.Engine
	first uint64 // number of the last transaction then
	view  trx.View
}

func openEngine(fsys file.FS, e env.Env) (*engine, error) {
	eng, err := storage.Open(options(fsys, e))
	if err != nil {
		return nil, err
	}
	x := &engine{Engine: eng, first: eng.Trx.LastCommitted()}
	eng.Trx.OpenSnapshot(&x.view)
	return x, nil
}

// close checks the engine and closes it.
func (e *engine) close() error {
	e.Trx.CloseSnapshot(&e.view)
	if left, err := e.Catalog.Reclaim(); err != nil || left > 0 {
		return fmt.Errorf("%d tables and indexes are left that were dropped: %w", left, err)
	}
	var found []string
	if err := e.Check(table.CheckQuiet, func(f string) { found = append(found, f) }); err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("the engine is damaged: %v", found[:min(len(found), 5)])
	}
	return e.Close()
}

// state is a hash of all replicated tables, as of a number, in their definitions then.
func (e *engine) state(number uint64) (string, error) {
	t := e.Trx.Begin(trx.Options{})
	defer e.Trx.End(t)
	if err := t.SnapshotAt(number); err != nil {
		return "", err
	}
	snap := t.Snapshot()
	w := e.Tables.NewWorker()
	w.Use(t)
	h := sha256.New()
	add := func(tbl *table.Table) error {
		sum, err := w.Hash(tbl, snap, nil)
		fmt.Fprintln(h, tbl.ID(), sum)
		return err
	}
	for _, tbl := range e.Catalog.SystemTables() {
		if dict.IsReplicated(tbl.ID()) {
			if err := add(tbl); err != nil {
				return "", err
			}
		}
	}
	err := e.Catalog.Tables(snap, func(def *record.Table) error {
		tbl, err := e.Catalog.TableAt(snap, def.ID)
		if err != nil {
			return err
		}
		return add(tbl)
	})
	return string(h.Sum(nil)), err
}

// leader is an engine whose sessions write a log.
type leader struct {
	eng     *engine
	log     *txntest.Log
	m       *txn.Manager
	suspend bool // now and then, during load
}

func newLeader(e env.Env, seed uint64, change func(*txn.Options)) (*leader, error) {
	fsys := simfile.New(e, seed)
	eng, err := openEngine(fsys, e)
	if err != nil {
		return nil, err
	}
	l := &leader{eng: eng, log: txntest.NewLog(e, eng.Engine)}
	opt := txn.Options{Env: e, Engine: eng.Engine, Log: l.log, FS: fsys}
	if change != nil {
		change(&opt)
	}
	l.m, err = txn.NewManager(opt)
	return l, err
}

// load runs workloads beside each other.
func (l *leader) load(e env.Env, seed uint64, sessions, transactions int, ddl bool) error {
	first := txntest.NewWorkload(l.m, seed)
	first.DDL, first.Large = ddl, true
	if err := first.Setup(); err != nil {
		return err
	}
	g := env.NewGroup(e)
	errs := make([]error, sessions+1)
	var done atomic.Bool
	suspended := 0
	suspends := env.NewGroup(e)
	if l.suspend {
		suspends.Go("suspend", func() {
			for !done.Load() && errs[sessions] == nil {
				pause(e)
				errs[sessions] = l.m.Suspend(sqlerr.Newf(sqlerr.OptionPreventsStatement, "read only for now"))
				if n := len(l.eng.Locks.Snapshot(1).Locks); n > 0 && errs[sessions] == nil && !l.log.Early {
					errs[sessions] = errors.New("locks are left while sessions are suspended")
				}
				l.m.Resume()
				suspended++
			}
		})
	}
	for i := range sessions {
		w := first
		if i > 0 {
			w = txntest.NewWorkload(l.m, seed+uint64(i)*1000)
			w.DDL, w.Large = ddl, true
		}
		g.Go("load", func() {
			if errs[i] = w.Run(transactions); errs[i] == nil {
				errs[i] = w.Close()
			}
		})
	}
	g.Wait()
	done.Store(true)
	suspends.Wait()
	if l.suspend && suspended == 0 {
		return fmt.Errorf("sessions were suspended %d times", suspended)
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *leader) close() error {
	if err := l.m.Close(); err != nil {
		return err
	}
	return l.eng.close()
}

// feed submits entries from the applied position on.
func feed(a *apply.Applier, entries []txntest.Entry) error {
	for _, e := range entries {
		if err := a.Submit(apply.Entry{Index: e.Index, Term: e.Term, Data: e.Data}); err != nil {
			return err
		}
	}
	return nil
}

// sameStates compares the engines at every number that b has seen since it was opened,
// and the counters of AUTO_INCREMENT if both are at the last one.
func sameStates(a, b *engine) error {
	for n := max(b.first, 1); n <= b.Trx.LastCommitted(); n++ {
		x, err := a.state(n)
		if err != nil {
			return fmt.Errorf("state at %d of the leader: %w", n, err)
		}
		y, err := b.state(n)
		if err != nil {
			return fmt.Errorf("state at %d: %w", n, err)
		}
		if x != y {
			return fmt.Errorf("states at %d differ", n)
		}
	}
	x, n, _, err := a.CounterHash()
	if err != nil {
		return err
	}
	y, m, _, err := b.CounterHash()
	if err == nil && n == m && x != y {
		err = fmt.Errorf("counters at %d differ", n)
	}
	return err
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 11)) }

// pause lets others run for a while: in a simulation time stands still while they do.
func pause(e env.Env) {
	if sim, ok := e.(*simenv.Sim); ok {
		for range 30 {
			sim.Yield()
		}
		return
	}
	env.Sleep(e, 3*time.Millisecond)
}

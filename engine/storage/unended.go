package storage

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// unended is what was running when the engine ended, and is rolled back: before Open returns, or
// by a task beside new work if it is large.
//
// Some may have changed rows that others, in doubt then, had changed before. Nothing durable tells
// their order but the rows: a rollback that meets a later change waits for that transaction's. These
// waits have no cycle, since locks were released in the order of the log.
//
// Beside new work the rows of such a transaction are its own still, by its id in them, and sessions wait
// for it like for any other. It has no locks on tables and no metadata locks: who changes a
// definition, or locks a whole table, calls [Engine.AwaitRollback] first. So does an applier to which
// a change does not fit: it does not ask for locks.
type unended struct {
	e     *Engine
	w     *table.Worker
	left  []*trx.Trx // in the order of the undo streams
	tasks *env.Group
	stop  atomic.Bool
	over  atomic.Bool // nothing is left
}

// unendedRetry is how long a rollback beside new work waits for room on the disk until it goes on.
const unendedRetry = 100 * time.Millisecond

// rollbackFirst rolls back what has to be over before anything else is done: changes of
// the catalogue, and what is small.
func (u *unended) rollbackFirst(e *Engine) error {
	u.e, u.w, u.left = e, e.Tables.NewWorker(), slices.Clone(e.Trx.Resurrected())
	e.opt.Recovery.unfinished.Store(int64(len(u.left)))
	e.opt.Recovery.begin(StageRollback)
	var later []*trx.Trx
	for _, t := range u.left {
		l, err := u.mayBeLater(t)
		if err != nil {
			return err
		}
		if l {
			later = append(later, t)
		}
	}
	for _, t := range slices.Clone(u.left) {
		if _, err := u.rollback(t, later); err != nil {
			return err
		}
	}
	return nil
}

// mayBeLater reports whether a transaction may be rolled back beside new work. One that changes the
// catalogue does that with its first or its last changes: rows that it has changed by
// then are of a table that nobody else knows.
func (u *unended) mayBeLater(t *trx.Trx) (bool, error) {
	if !u.e.Leaves(t) {
		return false, nil
	}
	log, err := t.Log()
	if err != nil {
		return false, err
	}
	first, err := log.First(nil)
	if err != nil {
		return false, err
	}
	last, _, err := log.Last(nil)
	if err != nil {
		return false, err
	}
	for _, payload := range [][]byte{first, last.Payload} {
		r, err := record.DecodeUndo(payload)
		if err != nil || dict.IsSystem(r.Table) {
			return false, err
		}
	}
	return true, nil
}

// Leaves reports whether Open would take a transaction back beside new work. REQUIRES: the
// transaction's task calls it.
func (e *Engine) Leaves(t *trx.Trx) bool {
	return e.opt.RollbackLater > 0 && t.UndoTop() > uint64(e.opt.RollbackLater)
}

// rollback rolls a transaction back, after those that have changed its rows later, unless one of
// them is among those that have to be left. done is false if the transaction is left.
func (u *unended) rollback(t *trx.Trx, leave []*trx.Trx) (done bool, err error) {
	for todo := []*trx.Trx{t}; len(todo) > 0; { // each waits for the next
		t := todo[len(todo)-1]
		if !slices.Contains(u.left, t) {
			todo = todo[:len(todo)-1]
			continue
		}
		if slices.Contains(leave, t) {
			return false, nil
		}
		u.w.Use(t)
		err := u.back()
		var newer *table.NewerChangeError
		if errors.As(err, &newer) {
			i := slices.IndexFunc(u.left, func(o *trx.Trx) bool { return o.ID() == newer.Newer })
			if i >= 0 && !slices.Contains(todo, u.left[i]) {
				todo = append(todo, u.left[i])
				continue
			}
		}
		if err != nil || u.stop.Load() {
			return false, err
		}
		u.w.Trx().FinishRollback()
		u.left = slices.DeleteFunc(u.left, func(o *trx.Trx) bool { return o == t })
		u.e.Trx.End(t)
		u.e.opt.Recovery.rolledBack.Add(1)
	}
	return true, nil
}

// back takes back the changes of the worker's transaction, until the engine ends.
func (u *unended) back() error {
	t := u.w.Trx()
	_, err := u.w.RollbackUnless(0, func() bool {
		u.e.opt.Recovery.changesLeft.Store(int64(t.UndoTop()))
		return u.stop.Load()
	})
	if err != nil {
		return err
	}
	u.e.opt.Recovery.changesLeft.Store(0)
	return nil
}

// start rolls back what is left, in a task.
func (u *unended) start() {
	if len(u.left) == 0 {
		u.over.Store(true)
		return
	}
	u.tasks = env.NewGroup(u.e.opt.Env)
	u.tasks.Go("rollback", func() {
		for len(u.left) > 0 && !u.stop.Load() {
			_, err := u.rollback(u.left[0], nil)
			switch {
			case errors.Is(err, file.ErrNoSpace) && u.e.Err() == nil: // others may make room
				u.e.opt.Env.NewParker().ParkFor(unendedRetry)
			case err != nil:
				u.e.Log.Fail(err)
				return
			}
		}
		if len(u.left) == 0 {
			u.over.Store(true)
			u.e.opt.Recovery.begin(StageRolledBack)
		}
	})
}

// end ends the task. What is left is taken back after the next Open.
func (u *unended) end() {
	u.stop.Store(true)
	if u.tasks != nil {
		u.tasks.Wait()
	}
}

// AwaitRollback waits until all is taken back that was running when the engine ended the last time,
// until the engine fails, or until stop says not to, which it is asked now and then. It reports whether it had to wait.
func (e *Engine) AwaitRollback(stop func() bool) (waited bool) {
	if e.unended.over.Load() {
		return false
	}
	for p := e.opt.Env.NewParker(); !e.unended.over.Load() && !e.unended.stop.Load() && e.Err() == nil && !stop(); {
		waited = true
		p.ParkFor(awaitEvery)
	}
	return waited
}

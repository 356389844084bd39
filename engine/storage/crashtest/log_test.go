package crashtest

import (
	"fmt"
	"math/rand/v2"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// The log of the layer above: what is in it comes to be committed, but an entry may
// stay in doubt for a while, and what the engine has lost in a crash is applied
// again.

// pendingMax bounds the transactions in doubt.
const pendingMax = 20

// pendingTrx is a transaction in the log that is not finished.
type pendingTrx struct {
	t       *trx.Trx
	at      trx.Position
	changes []change
}

// propose puts the client's transaction into the log. early says that its locks are
// released at once.
//
// REQUIRES: commits is held.
func (w *world) propose(t *trx.Trx, changes []change, early bool) {
	_, at := w.eng.Trx.Applied()
	if n := len(w.pending); n > 0 {
		at = w.pending[n-1].at
	}
	at = trx.Position{Index: at.Index + 3, Term: 1}
	w.pending = append(w.pending, pendingTrx{t, at, changes})
	w.model.now.apply(changes)
	if early {
		w.eng.Trx.ReleaseLocks(t, at)
	}
}

// finish commits the n oldest transactions in the log.
//
// REQUIRES: commits is held.
func (w *world) finish(n int) error {
	if n == 0 {
		return nil
	}
	group := w.pending[:n]
	w.pending = append([]pendingTrx(nil), w.pending[n:]...)
	var items []trx.Commit
	for _, p := range group {
		items = append(items, trx.Commit{Trx: p.t, CSN: w.model.commit(p.changes)})
	}
	if err := w.eng.Trx.CommitGroup(items, group[n-1].at); err != nil {
		return err
	}
	for _, p := range group {
		w.eng.Catalog.Committed(p.t)
		w.eng.Trx.End(p.t)
	}
	return nil
}

// lose drops what was in doubt at a crash: it goes behind what is committed.
func (w *world) lose() (lost [][]change) {
	for _, p := range w.pending {
		lost = append(lost, p.changes)
	}
	w.pending = nil
	return lost
}

// reapply applies lost transactions again, as far as they have no schema changes:
// some at a time, beside each other, and committed as a group.
func (w *world) reapply(lost [][]change, rng *rand.Rand) error {
	for len(lost) > 0 {
		group := w.disjoint(lost[:min(len(lost), 1+rng.IntN(4))])
		if len(group) == 0 {
			return nil
		}
		trxs := make([]*trx.Trx, len(group))
		errs := make([]error, len(group))
		tasks := env.NewGroup(w.env)
		for i, changes := range group {
			worker := w.eng.Tables.NewWorker()
			worker.Applying = true
			trxs[i] = w.eng.Trx.Begin(trx.Options{HighPriority: true})
			worker.Use(trxs[i])
			tasks.Go(fmt.Sprint("apply", i), func() { errs[i] = w.apply(worker, changes) })
		}
		tasks.Wait()
		for i := range group {
			if errs[i] != nil {
				return errs[i]
			}
			trxs[i].StartCommit()
			w.propose(trxs[i], group[i], false)
		}
		if err := w.finish(len(group)); err != nil {
			return err
		}
		lost = lost[len(group):]
	}
	return nil
}

// disjoint is the longest prefix of transactions that share no row and no code.
func (w *world) disjoint(list [][]change) [][]change {
	type claim struct {
		table int
		code  bool
		n     int64
	}
	taken := map[claim]int{}
	for i, changes := range list {
		for _, c := range changes {
			if c.table >= tables {
				return list[:i] // a schema change
			}
			claims := []claim{{c.table, false, c.id}}
			if old, ok := w.model.now[c.table][c.id]; ok && old.code != noCode {
				claims = append(claims, claim{c.table, true, old.code})
			}
			if c.row != nil && c.row.code != noCode {
				claims = append(claims, claim{c.table, true, c.row.code})
			}
			for _, k := range claims {
				if by, ok := taken[k]; ok && by != i {
					return list[:i]
				}
				taken[k] = i
			}
		}
	}
	return list
}

// apply makes a transaction's changes.
func (w *world) apply(worker *table.Worker, changes []change) error {
	own := newRows(tables)
	for _, c := range changes {
		tbl := w.tables[c.table]
		key := tbl.Schema.Keys[0].AppendKey(nil, types.NewInt(c.id))
		_, there := w.model.now[c.table][c.id]
		if r, changed := own[c.table][c.id]; changed {
			there = r != row{}
		}
		try := func() error {
			switch {
			case c.row == nil:
				return worker.Delete(tbl, key)
			case there:
				var all []record.Change
				for i, v := range c.row.values(c.id)[1:] {
					all = append(all, record.Change{Column: i + 1, Value: v})
				}
				return worker.Update(tbl, key, all)
			}
			return worker.Insert(tbl, c.row.values(c.id))
		}
		err := try()
		if err != nil { // the row may be that of a transaction which is being rolled back
			w.eng.AwaitRollback(func() bool { return false })
			err = try()
		}
		if err != nil {
			return fmt.Errorf("applying %d to table %d again: %w", c.id, c.table, err)
		}
		own[c.table][c.id] = row{}
		if c.row != nil {
			own[c.table][c.id] = *c.row
		}
	}
	return nil
}

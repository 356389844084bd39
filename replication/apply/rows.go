package apply

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/undo"
	"github.com/triremedb/trireme/engine/txn"
)

// opened is a table in use by a worker.
type opened struct {
	handle *dict.Handle
	tbl    *table.Table
	layout *event.Layout
}

// tablesKept bounds how many tables a worker keeps open.
const tablesKept = 256

// apply applies a transaction's events and returns how many rows it has changed. Error:
// ErrStopped in the middle, or what is wrong.
func (w *worker) apply(j *job) (rows uint64, err error) {
	if j.isLarge() {
		return w.applyLarge(j)
	}
	return w.events(j, j.Events)
}

// events applies a run of events that is readable without those before it.
func (w *worker) events(j *job, events []byte) (rows uint64, err error) {
	r := event.NewReader(events)
	var e event.Event
	var o *opened
	for {
		more, err := r.Next(&e)
		if err != nil || !more {
			return rows, w.malformed(j, err)
		}
		switch {
		case e.Type == event.TypeTableMap:
			if o, err = w.open(j, &e); err != nil {
				return rows, err
			}
		case e.Type.IsRows():
			n, err := w.change(j, o, &e)
			rows += n
			if err != nil {
				return rows, err
			}
		case e.Type == event.TypeSchema && w.ahead != nil:
			return rows, errNotAhead
		case e.Type == event.TypeSchema:
			if err := w.schema(j, &e); err != nil {
				return rows, err
			}
			o = nil
		case e.Type == event.TypeQuery: // for consumers
		default:
			return rows, w.malformed(j, fmt.Errorf("%w: unexpected %v event", event.ErrCorrupt, e.Type))
		}
	}
}

// malformed says where an error of decoding was found.
func (w *worker) malformed(j *job, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("apply: log entry %d, transaction %d: %w", j.item.Index, j.Number, err)
}

// open opens the table of a TABLE_MAP event.
func (w *worker) open(j *job, e *event.Event) (*opened, error) {
	id, err := e.TableID()
	if err != nil {
		return nil, w.malformed(j, err)
	}
	if w.ahead != nil {
		if err := w.ahead.admit(id); err != nil {
			return nil, err
		}
	}
	o := w.opened[id]
	if o != nil && o.layout.Matches(e) && o.handle.Current() {
		return o, nil
	}
	if o != nil {
		o.handle.Release()
		delete(w.opened, id)
	}
	h, err := w.a.eng.Catalog.OpenTableByID(j.trx, id)
	if errors.Is(err, table.ErrNoTable) {
		return nil, &DivergedError{Table: strconv.FormatUint(id, 10), Index: j.item.Index, Number: j.Number, Err: err}
	}
	if err != nil {
		return nil, w.malformed(j, err)
	}
	def := h.Table().Schema.Table
	l, err := event.NewLayout(def, event.Options{})
	if err == nil && !l.Matches(e) {
		err = errors.New("its definition is another one")
	}
	if err != nil {
		h.Release()
		return nil, &DivergedError{Table: def.Schema + "." + def.Name, Index: j.item.Index, Number: j.Number, Err: err}
	}
	if len(w.opened) >= tablesKept {
		w.closeTables()
	}
	o = &opened{h, h.Table(), l}
	w.opened[id] = o
	return o, nil
}

// closeTables gives all tables back: who keeps a handle keeps a dropped table's file.
func (w *worker) closeTables() {
	for _, id := range slices.Sorted(maps.Keys(w.opened)) { // always in one order
		w.opened[id].handle.Release()
	}
	clear(w.opened)
}

// change applies the row changes of an event.
func (w *worker) change(j *job, o *opened, e *event.Event) (rows uint64, err error) {
	if o == nil {
		return 0, w.malformed(j, fmt.Errorf("%w: %v event without a table", event.ErrCorrupt, e.Type))
	}
	if err := o.layout.Read(e, &w.rows); err != nil {
		return 0, w.malformed(j, err)
	}
	if !w.rows.HasKey() {
		return 0, w.malformed(j, fmt.Errorf("%w: %v event whose images lack columns", event.ErrCorrupt, e.Type))
	}
	for {
		more, err := w.rows.Next()
		if err != nil || !more {
			return rows, w.malformed(j, err)
		}
		if err := w.row(o, e.Type); err != nil {
			if err = w.retry(j, o, e.Type, err); err != nil {
				return rows, err
			}
		}
		if rows++; rows%turnEvery == 0 {
			if w.a.stopping.Load() || w.ahead != nil && w.ahead.ending.Load() {
				return rows, ErrStopped // of a large transaction a lot may be left
			}
			w.turn.Pass()
		}
	}
}

// turnEvery is after how many rows a worker asks whether its turn is over: that takes a
// hundredth of the time of a row.
const turnEvery = 4

// row applies the change at hand.
func (w *worker) row(o *opened, kind event.Type) (err error) {
	if kind == event.TypeWriteRows {
		return w.table.Insert(o.tbl, w.rows.After)
	}
	if w.key, err = o.tbl.Schema.AppendRowKey(w.key[:0], w.rows.Before); err != nil {
		return err
	}
	if kind == event.TypeDeleteRows {
		return w.table.Delete(o.tbl, w.key)
	}
	w.changes = w.rows.Changes(w.changes[:0])
	if len(w.changes) == 0 {
		return nil
	}
	return w.table.Update(o.tbl, w.key, w.changes)
}

// retry makes the change at hand again after an error, where there is hope: work ahead that
// may be in its way is ended, what was running when the engine ended is waited for, and so is a full
// disk. Work ahead itself is given up.
func (w *worker) retry(j *job, o *opened, kind event.Type, err error) error {
	if w.ahead != nil {
		return err
	}
	try := func() error { return w.row(o, kind) }
	err = w.again(err, try)
	// What was in the way may be gone by now, and more work ahead may have begun. There may be something in
	// the way of what has waited for room.
	for alone := 0; misfit(err) && alone < 2; {
		if !w.a.clearAhead(w.parker, o.tbl.ID()) && !w.a.eng.AwaitRollback(w.a.stopping.Load) {
			alone++
		}
		err = w.again(try(), try)
	}
	if misfit(err) && w.a.stopping.Load() {
		return ErrStopped // it may not have waited to the end
	}
	if err != nil {
		return w.rowError(j, o, err)
	}
	return nil
}

// again repeats what has failed for want of room, or of file descriptors, until it succeeds, fails for another
// reason, or the applier stops. Every change is whole or not at all, so nothing has
// to be taken back.
func (w *worker) again(err error, try func() error) error {
	a := w.a
	for waited := false; ; waited = true {
		full := errors.Is(err, file.ErrNoSpace)
		waits := full || errors.Is(err, undo.ErrTooManyTransactions) || errors.Is(err, file.ErrNoDescriptors)
		if !waits || a.eng.Err() != nil {
			if waited {
				a.setFull(false)
			}
			return err
		}
		a.setFull(full)
		if a.stopping.Load() {
			a.setFull(false)
			return ErrStopped
		}
		if full && waited && w.ahead == nil && a.opt.OnFull != nil {
			a.opt.OnFull()
		}
		w.parker.ParkFor(a.opt.RetryEvery)
		err = try()
	}
}

// setFull enters or leaves the state in which there is no room on the disk.
func (a *Applier) setFull(full bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if full {
		// What the log says goes first. A transaction that is committed is like others.
		a.endAhead(func(h *ahead) bool { return h.job == nil })
	}
	switch {
	case full && a.state == Running:
		a.state = NoSpace
		a.stats.fullWaits++
	case !full && a.state == NoSpace:
		a.state = Running
	}
}

// rowError says what an error of a row's change means.
func (w *worker) rowError(j *job, o *opened, err error) error {
	if err == ErrStopped {
		return err
	}
	def := o.tbl.Schema.Table
	if misfit(err) {
		key := w.key
		if w.rows.Kind() == event.TypeWriteRows {
			key, _ = o.tbl.Schema.AppendRowKey(nil, w.rows.After)
		}
		return &DivergedError{Table: def.Schema + "." + def.Name, Key: append([]byte(nil), key...), Index: j.item.Index,
			Number: j.Number, Err: err}
	}
	return fmt.Errorf("apply: log entry %d, transaction %d, table %s.%s: %w", j.item.Index, j.Number, def.Schema, def.Name, err)
}

// schema applies a change of the catalogue.
func (w *worker) schema(j *job, e *event.Event) error {
	payload, err := event.ParseSchema(e)
	if err != nil {
		return w.malformed(j, err)
	}
	op, err := txn.DecodeSchemaOp(payload)
	if err != nil {
		return w.malformed(j, err)
	}
	w.closeTables()
	if op.OldID != 0 {
		w.a.clearAhead(w.parker, op.OldID) // first: the builder may wait for its rows
	}
	w.a.eng.AwaitRollback(w.a.stopping.Load)
	w.clear(op)
	apply := func() error {
		if op.Kind == txn.OpPublishIndex {
			if err := w.publish(build{op.OldID, op.Index}); err != nil {
				return err
			}
		}
		return txn.ApplySchema(w.table, w.a.eng.Catalog, op)
	}
	if err = apply(); err != nil {
		err = w.again(err, apply)
	}
	var refused *sqlerr.Error
	switch {
	case err == nil:
		w.a.note(op)
		return nil
	case err == ErrStopped:
		return err
	case errors.As(err, &refused), errors.Is(err, txn.ErrSchemaDiffers), errors.Is(err, table.ErrNoTable),
		errors.Is(err, table.ErrApply), errors.Is(err, dict.ErrRebuild):
		return &DivergedError{Table: op.Concerns(), Index: j.item.Index, Number: j.Number, Err: err}
	}
	return fmt.Errorf("apply: log entry %d, transaction %d, %v of %s: %w", j.item.Index, j.Number, op.Kind, op.Concerns(), err)
}

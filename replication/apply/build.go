package apply

import (
	"slices"
	"sync/atomic"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/internal/turn"
)

// builder fills indexes between the two entries that add and publish them, one after the
// other, beside the workers: so that these need not stand still for it at the second. What
// it has not done by then, or what went wrong, the publication makes up for.
//
// It works only while the applier has work too: after Drain others may change definitions. It
// begins only while no schema change is under way, and one that concerns the table which it has in
// hand waits for it.
type builder struct {
	parker env.Parker
	cancel atomic.Bool // the index in hand is to be left for later

	// Guarded by Applier.mu.
	active  bool       // transactions were submitted since the start or Drain
	looked  bool       // for what an earlier life, or who led meanwhile, has left
	queue   []build    // to do, oldest first
	current build      // in hand; index 0: none
	filled  []build    // done, and not published yet
	waiter  env.Parker // of who waits until nothing is in hand
}

// build is an index to fill.
type build struct{ table, index uint64 }

// build fills indexes until the applier stops.
func (a *Applier) build() {
	b := &a.builder
	w := newWorker(a, a.opt.Workers)
	a.mu.Lock()
	for !a.stopping.Load() {
		switch {
		case !a.mayBuild():
			a.mu.Unlock()
			b.parker.Park()
			a.mu.Lock()
		case !b.looked:
			a.mu.Unlock()
			left := w.unfinished()
			a.mu.Lock()
			b.looked = true
			b.filled = slices.DeleteFunc(b.filled, func(x build) bool { return !slices.Contains(left, x) })
			b.queue = append(b.queue, slices.DeleteFunc(left, func(x build) bool {
				return slices.Contains(b.queue, x) || slices.Contains(b.filled, x)
			})...)
		default:
			b.current = b.queue[0]
			b.queue = slices.Delete(b.queue, 0, 1)
			b.cancel.Store(false)
			a.mu.Unlock()
			err := w.build(b.current)
			a.mu.Lock()
			b.done(err)
			if err == nil {
				a.stats.indexes++
			}
		}
	}
	a.mu.Unlock()
}

// done notes how the build in hand has ended. REQUIRES: Applier.mu.
func (b *builder) done(err error) {
	switch err {
	case nil:
		b.filled = append(b.filled, b.current)
	case ErrStopped:
		b.queue = slices.Insert(b.queue, 0, b.current)
	}
	b.current = build{}
	if b.waiter != nil {
		b.waiter.Unpark()
	}
}

// mayBuild reports whether the builder may begin something. REQUIRES: mu.
func (a *Applier) mayBuild() bool {
	b := &a.builder
	return b.active && b.current.index == 0 && a.barrier <= a.committed && (len(b.queue) > 0 || !b.looked)
}

// unfinished are the indexes that are being built, as the catalogue says.
func (w *worker) unfinished() (found []build) {
	err := w.a.eng.Catalog.Tables(nil, func(def *record.Table) error {
		for i := range def.Indexes {
			if def.Indexes[i].Building {
				found = append(found, build{def.ID, def.Indexes[i].ID})
			}
		}
		return nil
	})
	if err != nil {
		return nil // who needs the table will say what is wrong
	}
	return found
}

// build fills an index. Errors: ErrStopped if it was told to end, and others for which the
// publication is the better place: it waits for room and says what differs.
func (w *worker) build(x build) error {
	t := w.a.eng.Trx.Begin(trx.Options{HighPriority: true, Isolation: trx.ReadCommitted, Part: uint32(w.id)})
	defer w.a.eng.Trx.End(t)
	w.table.Use(t)
	return w.complete(x, false, &w.a.builder.cancel)
}

// complete puts what an index lacks into it. Error: ErrStopped if the applier stops, or
// if cancel says so.
func (w *worker) complete(x build, alone bool, cancel *atomic.Bool) error {
	w.a.eng.AwaitRollback(func() bool { return w.a.stopping.Load() || cancel.Load() })
	var own turn.Turn // sessions read here meanwhile
	return txn.CompleteIndex(w.table, w.a.eng.Catalog, x.table, x.index, alone, func() error {
		if w.a.stopping.Load() || cancel.Load() {
			return ErrStopped
		}
		own.Pass()
		return nil
	})
}

// publish completes the index that is about to be published, if the builder has not.
func (w *worker) publish(x build) error {
	a := w.a
	a.mu.Lock()
	filled := slices.Contains(a.builder.filled, x)
	a.mu.Unlock()
	if filled {
		return nil
	}
	return w.complete(x, true, &a.stopping)
}

// clear makes sure that the builder is not at work on the table of a schema change. Before
// an index is published it may end what it has begun there.
func (w *worker) clear(op *txn.SchemaOp) {
	a, b, x := w.a, &w.a.builder, build{op.OldID, op.Index}
	a.mu.Lock()
	busy, publishes := b.current.index != 0 && b.current.table == op.OldID, op.Kind == txn.OpPublishIndex
	if publishes {
		if busy || !slices.Contains(b.filled, x) {
			a.stats.indexWaits++
		}
		b.queue = slices.DeleteFunc(b.queue, func(y build) bool { return x == y })
	}
	if busy {
		a.awaitBuilder(w.parker, !publishes)
	}
	a.mu.Unlock()
}

// note keeps in mind what a schema change, which is about to be committed, means for the builder.
func (a *Applier) note(op *txn.SchemaOp) {
	b, x := &a.builder, build{op.OldID, op.Index}
	a.mu.Lock()
	defer a.mu.Unlock()
	b.filled = slices.DeleteFunc(b.filled, func(y build) bool { return x == y })
	if op.Kind == txn.OpAddIndex {
		b.queue = append(b.queue, x)
	}
}

// awaitBuilder waits until the builder has nothing in hand. Only one task waits at a time. REQUIRES:
// mu, which it gives up meanwhile.
func (a *Applier) awaitBuilder(p env.Parker, cancel bool) {
	b := &a.builder
	b.cancel.Store(cancel)
	for b.waiter = p; b.current.index != 0; {
		a.mu.Unlock()
		p.Park()
		a.mu.Lock()
	}
	b.waiter = nil
}

package dict

import (
	"slices"

	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// pending is what a transaction has changed in the catalogue so far. It is changed
// by the transaction's task alone, under Catalog.mu.
type pending struct {
	ops []op
}

// op is one change.
type op struct {
	undo    uint64 // the transaction's undo records after it
	id      uint64 // of the table
	created bool   // the table came into being
	dropped bool
	// handle is the table in its new definition; the op has a reference. nil if
	// the table is dropped.
	handle *Handle
	added  []uint64 // indexes made
	gone   []uint64 // indexes dropped
}

// latest returns the newest definition of a table; changed and nil if the
// transaction dropped it.
func (p *pending) latest(id uint64) (h *Handle, changed bool) {
	for i := len(p.ops) - 1; i >= 0; i-- {
		if p.ops[i].id == id {
			return p.ops[i].handle, true
		}
	}
	return nil, false
}

// pendingOf returns what a transaction has changed, nil if nothing.
func (c *Catalog) pendingOf(t *trx.Trx) *pending {
	if t == nil || c.pendings.Load() == 0 || t.ID() == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending[t.ID()]
}

// note records the changes of a statement, whose rows have been changed. What they
// made is no longer in the making.
func (c *Catalog) note(w *table.Worker, ops ...op) {
	t := w.Trx()
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[t.ID()]
	if p == nil {
		p = &pending{}
		c.pending[t.ID()] = p
		c.pendings.Add(1)
	}
	for _, o := range ops {
		o.undo = t.UndoTop()
		p.ops = append(p.ops, o)
		delete(c.creating, garbage{table: o.id})
		for _, index := range o.added {
			delete(c.creating, garbage{o.id, index})
		}
	}
}

// abandon takes back what a failed statement made outside of rows.
func (c *Catalog) abandon(o op) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var spaceNo uint32
	if o.created {
		spaceNo = c.creating[garbage{table: o.id}]
		delete(c.creating, garbage{table: o.id})
	}
	for _, index := range o.added {
		delete(c.creating, garbage{o.id, index})
	}
	c.revoke(&o)
	if g := c.garbage[garbage{table: o.id}]; g != nil && o.created {
		g.space = spaceNo
	}
	c.kick()
}

// Committed makes a transaction's changes of the catalogue known to all: cached
// definitions are replaced, and what it dropped is left for deletion. To be called
// after the commit was published and before the transaction ends (trx.System.End)
// and metadata locks are released. It does not wait for anything.
func (c *Catalog) Committed(t *trx.Trx) {
	if c.pendings.Load() == 0 || t.ID() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[t.ID()]
	if p == nil {
		return
	}
	delete(c.pending, t.ID())
	defer c.pendings.Add(-1) // after old handles are stale: CheckSnapshot asks in the other order
	c.generation++
	c.changes.Add(1)
	csn := c.sys.LastCommitted()
	for i := range p.ops {
		if h := c.byID[p.ops[i].id]; h != nil {
			if next, _ := p.latest(h.id); next != nil {
				carryOver(h.table, next.table)
			}
			c.retire(h)
		}
	}
	for i := range p.ops {
		c.settle(p, i, csn)
	}
	c.kick()
}

// settle puts change i of a committed transaction into effect.
//
// REQUIRES: c.mu.
func (c *Catalog) settle(p *pending, i int, csn uint64) {
	o := &p.ops[i]
	for _, index := range o.gone {
		c.discard(garbage{o.id, index}, csn)
	}
	if o.dropped {
		c.discard(garbage{table: o.id}, csn)
	}
	if o.handle == nil {
		return
	}
	if last, _ := p.latest(o.id); last == o.handle {
		o.handle.seen.Store(max(o.handle.seen.Load(), csn, 1))
		c.install(o.handle)
	} else {
		o.handle.stale.Store(true)
	}
	c.unref(o.handle)
}

// unref gives back the reference that an op has.
//
// REQUIRES: c.mu.
func (c *Catalog) unref(h *Handle) {
	if h.refs.Add(-1) == 0 {
		c.forgetUnused(h)
	}
}

// RolledBack forgets a transaction's changes of the catalogue that were rolled
// back: all of them, or those since the savepoint if the transaction is still
// active. To be called after each rollback, before further changes.
func (c *Catalog) RolledBack(t *trx.Trx) {
	if c.pendings.Load() == 0 || t.ID() == 0 {
		return
	}
	top := t.UndoTop()
	if st := t.State(); st != trx.Active && st != trx.Committing {
		top = 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[t.ID()]
	if p == nil {
		return
	}
	for n := len(p.ops); n > 0 && p.ops[n-1].undo > top; n-- {
		c.revoke(&p.ops[n-1])
		p.ops = slices.Delete(p.ops, n-1, n)
	}
	if len(p.ops) == 0 {
		delete(c.pending, t.ID())
		c.pendings.Add(-1)
	}
	c.kick()
}

// revoke takes back a change whose rows were rolled back.
//
// REQUIRES: c.mu.
func (c *Catalog) revoke(o *op) {
	if o.handle != nil {
		o.handle.stale.Store(true)
		c.unref(o.handle)
	}
	for _, index := range o.added {
		c.discard(garbage{o.id, index}, 0)
	}
	if o.created {
		c.discard(garbage{table: o.id}, 0)
	}
}

// carryOver lets a table go on counting from where its older definition stands.
func carryOver(from, to *table.Table) {
	to.RaiseAuto(from.NextAuto() - 1)
	to.RaiseRowID(from.NextRowID() - 1)
	to.SetRows(from.Rows())
}

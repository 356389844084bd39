package dict

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/storage/btree"
	"github.com/triremedb/trireme/engine/storage/mtr"
	"github.com/triremedb/trireme/engine/storage/page"
	"github.com/triremedb/trireme/engine/storage/space"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// garbage names what has physical rows: a table, or an index of one.
type garbage struct{ table, index uint64 }

// leftover is something to be deleted.
type leftover struct {
	// csn is a CSN that every snapshot must have reached, be it open or one that can
	// still be opened: whoever reads by an older one, purge included, may be at the
	// table, or come to it.
	csn uint64
	// swept says that Sweep has found it. It may be of an attempt that was not committed: if its number is made
	// again, which comes from the log, no snapshot can see what there was.
	swept bool
	// space is the tablespace of a table whose physical row may be missing, or 0.
	space uint32
}

// discard leaves something for deletion.
//
// REQUIRES: c.mu.
func (c *Catalog) discard(g garbage, csn uint64) {
	if c.garbage[g] == nil {
		c.garbage[g] = &leftover{csn: csn}
		c.queue = append(c.queue, g)
	}
}

// retryInterval is how often the background task looks again at what is in use.
const retryInterval = 200 * time.Millisecond

// kick makes the background task look at the garbage.
//
// REQUIRES: c.mu.
func (c *Catalog) kick() {
	switch {
	case len(c.queue) == 0 || c.closing:
	case c.waiting != nil:
		c.waiting.Unpark()
	case !c.reclaiming:
		c.reclaiming = true
		c.tasks.Go("dict: reclaim", c.reclaimLoop)
	}
}

// reclaimLoop deletes garbage until there is none.
func (c *Catalog) reclaimLoop() {
	p := c.e.Env.NewParker()
	for {
		left, err := c.Reclaim()
		c.mu.Lock()
		c.lastErr = err
		if left == 0 && len(c.queue) == 0 || c.closing || c.e.Pool.Log().Err() != nil {
			c.reclaiming = false
			c.mu.Unlock()
			return
		}
		c.waiting = p
		c.mu.Unlock()
		p.ParkFor(retryInterval)
		c.mu.Lock()
		c.waiting = nil
		c.mu.Unlock()
	}
}

// ReclaimErr is what kept the background task from deleting something at its last
// try, or nil.
func (c *Catalog) ReclaimErr() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastErr
}

// Reclaim deletes the files of dropped tables and the trees of dropped indexes that
// nobody can be using any more, and returns how many are left. The background task
// does this by itself.
func (c *Catalog) Reclaim() (left int, err error) {
	c.reclaimTurn.Lock()
	defer c.reclaimTurn.Unlock()
	tables, indexes, err := c.reclaimable()
	if err == nil {
		err = c.deleteTables(tables)
	}
	for _, g := range indexes {
		err = errors.Join(err, c.deleteIndex(g))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue), err
}

// reclaimable returns the garbage that is not in use, nor ever will be: the limit of
// purge is one that no snapshot can be opened below any more, neither now nor, since it
// is durable before what is deleted by it, after a start.
func (c *Catalog) reclaimable() (tables, indexes []garbage, err error) {
	c.mu.Lock()
	idle := len(c.queue) == 0
	c.mu.Unlock()
	if idle {
		return nil, nil, nil
	}
	limit, err := c.sys.PurgeLimit()
	if err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.queue {
		switch {
		case c.garbage[g].csn > limit || c.inUse(g):
		case g.index == 0:
			tables = append(tables, g)
		case c.garbage[garbage{table: g.table}] == nil: // else it goes with its table
			indexes = append(indexes, g)
		}
	}
	return tables, indexes, nil
}

// inUse reports whether a handle refers to the table, or to the index.
//
// REQUIRES: c.mu.
func (c *Catalog) inUse(g garbage) bool {
	for _, h := range c.live[g.table] {
		if h.refs.Load() > 0 && (g.index == 0 || h.table == nil || h.table.Where.Roots[g.index] != 0) {
			return true
		}
	}
	return false
}

// forget strikes garbage off the list.
func (c *Catalog) forget(all ...garbage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range all {
		delete(c.garbage, g)
		delete(c.recovered, g.table)
	}
	c.queue = slices.DeleteFunc(c.queue, func(g garbage) bool { return c.garbage[g] == nil })
}

// deleteTables deletes the tablespaces of tables: the log says so first, and is
// flushed past that and so past the commit that dropped them.
//
// REQUIRES: c.reclaimTurn is held, here and in deleteIndex.
func (c *Catalog) deleteTables(tables []garbage) error {
	if len(tables) == 0 {
		return nil
	}
	m := mtr.New(c.e.Pool)
	var lsn page.LSN
	spaces := make([]uint32, len(tables))
	for i, g := range tables {
		at, err := c.whereIs(g.table)
		if errors.Is(err, table.ErrNoTable) {
			c.mu.Lock()
			if left := c.garbage[g]; left != nil {
				at.Space = left.space
			}
			err = nil
			c.mu.Unlock()
		}
		if err == nil && at.Space != 0 {
			err = m.Begin()
		}
		if err != nil {
			return err
		}
		if at.Space == 0 {
			continue
		}
		spaces[i] = at.Space
		m.LogSpaceDrop(at.Space)
		lsn = m.Commit()
	}
	if err := c.e.Pool.Log().FlushTo(lsn); err != nil {
		return err
	}
	for i, g := range tables {
		if spaces[i] != 0 {
			if err := c.e.Spaces.Drop(spaces[i]); err != nil {
				return fmt.Errorf("dict: deleting the tablespace of table %d: %w", g.table, err)
			}
			c.e.Usages.Forget(g.table)
		}
		if err := c.deletePhysical(g); err != nil {
			return err
		}
		gone := []garbage{g}
		c.mu.Lock()
		for _, o := range c.queue {
			if o.table == g.table {
				gone = append(gone, o)
			}
		}
		c.mu.Unlock()
		c.forget(gone...)
	}
	return nil
}

func (c *Catalog) whereIs(id uint64) (table.Physical, error) {
	r, err := c.reader()
	if err != nil {
		return table.Physical{}, err
	}
	defer c.done(r)
	return r.physical(r.latest(0), id)
}

// deleteIndex frees the pages of an index in the tablespace of its table.
func (c *Catalog) deleteIndex(g garbage) error {
	at, err := c.whereIs(g.table)
	if err == nil && at.Roots[g.index] != 0 {
		err = c.dropTree(at.Space, g.index, at.Roots[g.index])
	}
	if err != nil && !errors.Is(err, table.ErrNoTable) {
		return fmt.Errorf("dict: deleting index %d of table %d: %w", g.index, g.table, err)
	}
	if err := c.deletePhysical(g); err != nil {
		return err
	}
	c.forget(g)
	return c.shrink(at.Space)
}

// shrink gives the pages that are free at the end of a table's file back to the
// file system.
func (c *Catalog) shrink(no uint32) error {
	if no == space.System {
		return nil
	}
	sp, err := c.e.Spaces.Open(no)
	if err == nil {
		_, err = sp.Shrink()
	}
	if err != nil && !errors.Is(err, space.ErrNotFound) {
		return fmt.Errorf("dict: shrinking tablespace %d: %w", no, err)
	}
	return nil
}

// dropTree frees a tree. That it is gone already, since a crash came between the
// last step and the end of its physical row, is no error: the root page says that
// it is free, is another's or is cut off. Without the mark the segment, which may
// be another tree's by then, would be freed again.
func (c *Catalog) dropTree(no uint32, index uint64, root uint32) error {
	sp, err := c.e.Spaces.Open(no)
	if err != nil {
		return err
	}
	m := mtr.New(c.e.Pool)
	for {
		if err := m.Begin(); err != nil {
			return err
		}
		done, err := btree.DropStep(m, sp, index, root)
		if err == nil && done {
			_, err = m.GetNew(sp.ID(root), page.TypeFree)
		}
		m.Commit()
		var foreign *page.CorruptError
		if errors.As(err, &foreign) && foreign.ID.No == root || errors.Is(err, space.ErrBeyondEnd) {
			return nil
		}
		if err != nil || done {
			return err
		}
	}
}

// deletePhysical removes the physical row of an index, or all of a table.
func (c *Catalog) deletePhysical(g garbage) error {
	t := c.own[idPhysical]
	return c.local(func(w *table.Worker) error {
		r, err := c.reader()
		if err != nil {
			return err
		}
		defer c.done(r)
		var keys [][]byte
		prefix := values{uintValue(g.table)}
		if g.index != 0 {
			prefix = append(prefix, uintValue(g.index))
		}
		err = r.each(t, r.latest(0), 0, prefix, func(row values) error {
			keys = append(keys, keyOf(t, row[:physicalIndex+1]))
			return nil
		})
		for _, key := range keys {
			if err == nil {
				err = w.Delete(t, key)
			}
		}
		return err
	})
}

// addPhysical records where a table and indexes of it lie. withSpace says that the
// table itself is new.
func (c *Catalog) addPhysical(id uint64, at table.Physical, withSpace bool) error {
	indexes := make([]uint64, 0, len(at.Roots))
	for index := range at.Roots {
		indexes = append(indexes, index)
	}
	slices.Sort(indexes)
	t := c.own[idPhysical]
	return c.local(func(w *table.Worker) error {
		var err error
		if withSpace {
			err = w.Insert(t, physicalRow(id, 0, at.Space, at.LOBSegment))
		}
		for _, index := range indexes {
			if err == nil {
				err = w.Insert(t, physicalRow(id, index, at.Space, at.Roots[index]))
			}
		}
		return err
	})
}

func physicalRow(id, index uint64, space, page uint32) values {
	return values{uintValue(id), uintValue(index), uintValue(uint64(space)), uintValue(uint64(page))}
}

// local makes a change of this node's own, in a transaction without a number. It
// takes no locks: what is keyed by a number of a table or index has one writer at
// a time.
func (c *Catalog) local(change func(w *table.Worker) error) error {
	t := c.sys.Begin(trx.Options{})
	w := c.e.NewWorker()
	w.Use(t)
	w.Applying = true
	err := change(w)
	if err == nil && t.HasChanges() {
		if err = c.commitLocal(t); err != nil {
			return err // the engine has halted; the next start rolls it back
		}
	}
	if err != nil {
		if rerr := w.Rollback(); rerr != nil {
			return errors.Join(err, rerr)
		}
	}
	c.sys.End(t)
	return err
}

// commitLocal commits a transaction without a number at the position that is
// applied. Others may move that position meanwhile.
func (c *Catalog) commitLocal(t *trx.Trx) error {
	for {
		_, pos := c.sys.Applied()
		err := c.sys.CommitGroup([]trx.Commit{{Trx: t}}, pos)
		if !errors.Is(err, trx.ErrOutOfOrder) {
			return err
		}
	}
}

// KnownSpaces returns the numbers of the tablespaces that belong to a table or may
// yet. For a listing of files that was made before: what is not among them is an
// orphan.
func (c *Catalog) KnownSpaces() (map[uint32]bool, error) {
	known := map[uint32]bool{}
	rows, err := c.physicalRows(known)
	if err != nil {
		return nil, err
	}
	lost, err := c.unclaimed(rows)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.index == 0 && !lost[garbage{table: row.table}] {
			known[row.space] = true
		}
	}
	return known, nil
}

// Sweep finds physical rows without logical ones, which a crash can leave, and
// leaves what they describe for deletion. To be called after what was not
// committed before a start has been rolled back.
func (c *Catalog) Sweep() error {
	rows, err := c.physicalRows(nil)
	if err != nil {
		return err
	}
	lost, err := c.unclaimed(rows)
	if err != nil {
		return err
	}
	// When it was dropped is not known, if it ever was there: an older snapshot may see it.
	csn := c.sys.LastCommitted()
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.recovered)
	for _, row := range rows {
		if g := (garbage{row.table, row.index}); lost[g] {
			c.discard(g, csn)
			c.garbage[g].swept = true
		}
	}
	c.kick()
	return nil
}

type physicalEntry struct {
	table, index uint64
	space        uint32
}

// physicalRows lists the physical rows that nobody is making or deleting. The
// tablespaces of those that somebody is are added to busy, if not nil.
//
// The order matters: rows are read first. Who made one and was not yet done then
// is found in memory, or has committed by the time that logical rows are read.
func (c *Catalog) physicalRows(busy map[uint32]bool) ([]physicalEntry, error) {
	r, err := c.reader()
	if err != nil {
		return nil, err
	}
	defer c.done(r)
	c.mu.Lock()
	if busy != nil {
		for _, no := range c.creating {
			busy[no] = true
		}
	}
	c.mu.Unlock()
	var all []physicalEntry
	err = r.each(c.own[idPhysical], r.latest(0), 0, nil, func(row values) error {
		all = append(all, physicalEntry{row[physicalTable].Uint(), row[physicalIndex].Uint(), uint32(row[physicalSpace].Uint())})
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.heldInMemory()
	return slices.DeleteFunc(all, func(e physicalEntry) bool {
		if !held[garbage{e.table, e.index}] && !held[garbage{table: e.table}] {
			return false
		}
		if busy != nil {
			busy[e.space] = true
		}
		return true
	}), nil
}

// heldInMemory is what is being made, pending or known as garbage.
//
// REQUIRES: c.mu.
func (c *Catalog) heldInMemory() map[garbage]bool {
	held := map[garbage]bool{}
	for g := range c.creating {
		held[g] = true
	}
	for g := range c.garbage {
		held[g] = true
	}
	for _, p := range c.pending {
		for _, o := range p.ops {
			if o.created {
				held[garbage{table: o.id}] = true
			}
			for _, index := range o.added {
				held[garbage{o.id, index}] = true
			}
		}
	}
	return held
}

// unclaimed returns those of the physical rows that no logical row claims, be it
// committed or not.
func (c *Catalog) unclaimed(rows []physicalEntry) (map[garbage]bool, error) {
	lost := map[garbage]bool{}
	for _, row := range rows {
		lost[garbage{row.table, row.index}] = true
	}
	newest := c.sys.Begin(trx.Options{Isolation: trx.ReadUncommitted})
	defer c.sys.End(newest)
	r, err := c.reader()
	if err != nil {
		return nil, err
	}
	defer c.done(r)
	for _, snap := range []*trx.Snapshot{newest.Snapshot(), r.latest(0)} {
		err := r.each(c.own[idTables], snap, 0, nil, func(row values) error {
			delete(lost, garbage{table: row[tableID].Uint()})
			return nil
		})
		if err != nil {
			return nil, err
		}
		err = r.each(c.own[idIndexes], snap, 0, nil, func(row values) error {
			delete(lost, garbage{row[indexTable].Uint(), row[indexID].Uint()})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	// The indexes of a lost table go with it.
	for g := range lost {
		if g.index != 0 && lost[garbage{table: g.table}] {
			delete(lost, g)
		}
	}
	return lost, nil
}

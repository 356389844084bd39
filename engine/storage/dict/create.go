package dict

import (
	"errors"
	"fmt"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// CreateTable makes a table and returns its complete definition: what the layer
// above puts into the log, and what an applier passes here. def is not changed.
//
// What is zero is filled in: numbers of the table, its indexes and foreign keys,
// versions, and column IDs. Columns without an ID get their position plus one, so
// that the parts of indexes can name them. The index named PRIMARY comes first; a
// table without one gets a hidden row id as its key, whose values the leader takes
// from table.Table.NextRowID.
//
// Errors: MySQL's for what is wrong with the definition, 1049, 1050, lock errors,
// space.ErrNoSpace. The table is not there then.
func (c *Catalog) CreateTable(w *table.Worker, def *record.Table) (*record.Table, error) {
	given := def.ID != 0
	def = complete(def)
	if err := checkDefinition(def); err != nil {
		return nil, err
	}
	err := change(w, func() error {
		o, err := c.create(w, def, given)
		if err == nil {
			c.note(w, o)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return def, nil
}

// create does the work of CreateTable but for noting it.
func (c *Catalog) create(w *table.Worker, def *record.Table, given bool) (o op, err error) {
	s, err := c.lockSchema(w, def.Schema, lock.RecordS)
	if err != nil {
		return o, err
	}
	if err := c.numberAll(def); err != nil {
		return o, err
	}
	if given {
		if err := c.settleOld(garbage{table: def.ID}); err != nil {
			return o, err
		}
	}
	if err := c.insertDefinition(w, def, s.ID); err != nil {
		return o, err
	}
	return c.makeFiles(def)
}

// numberAll gives a definition the numbers that it lacks.
func (c *Catalog) numberAll(def *record.Table) error {
	var err error
	if def.ID, err = c.number(trx.TableID, def.ID); err != nil {
		return err
	}
	return c.numberParts(def)
}

// numberParts numbers indexes and foreign keys; foreign keys count within their
// table.
func (c *Catalog) numberParts(def *record.Table) error {
	greatest := uint64(0)
	for i := range def.Indexes {
		ix := &def.Indexes[i]
		if ix.ID != 0 {
			greatest = max(greatest, ix.ID)
			continue
		}
		var err error
		if ix.ID, err = c.sys.NextNumber(trx.IndexID); err != nil {
			return err
		}
	}
	next := uint64(1)
	for i := range def.ForeignKeys {
		next = max(next, def.ForeignKeys[i].ID+1)
	}
	for i := range def.ForeignKeys {
		if def.ForeignKeys[i].ID == 0 {
			def.ForeignKeys[i].ID = next
			next++
		}
	}
	if greatest == 0 {
		return nil
	}
	return c.sys.RaiseNumber(trx.IndexID, greatest+1)
}

// settleOld deletes what an earlier attempt to make the table or index of this
// number has left, so that the new one is not taken for it. Only a number that
// comes from the log can have been tried before.
func (c *Catalog) settleOld(g garbage) error {
	c.reclaimTurn.Lock()
	defer c.reclaimTurn.Unlock()
	at, err := c.whereIs(g.table)
	if err != nil && !errors.Is(err, table.ErrNoTable) {
		return err
	}
	there := err == nil && (g.index == 0 || at.Roots[g.index] != 0)
	c.mu.Lock()
	left := c.garbage[g]
	busy := c.inUse(g) || left != nil && left.csn > 0 && !left.swept
	c.mu.Unlock()
	if left == nil && there && g.index == 0 {
		if _, err := c.newestDefinition(g.table); !errors.Is(err, table.ErrNoTable) {
			return cmpErr(err, fmt.Errorf("dict: there is a table with the number %d", g.table))
		}
	}
	switch {
	case left == nil && !there:
		return nil
	case busy:
		return fmt.Errorf("dict: what had the number of table %d, index %d is still in use", g.table, g.index)
	case g.index == 0:
		return c.deleteTables([]garbage{g})
	}
	return c.deleteIndex(g)
}

// makeFiles makes the tablespace and the trees of a table, and its handle.
func (c *Catalog) makeFiles(def *record.Table) (o op, err error) {
	s, err := c.prepare(def)
	if err != nil {
		return o, err
	}
	no, err := c.sys.NextNumber(trx.SpaceNo)
	if err != nil {
		return o, err
	}
	o = op{id: def.ID, created: true}
	c.mu.Lock()
	c.creating[garbage{table: def.ID}] = uint32(no)
	c.mu.Unlock()
	at, err := c.e.Create(s, uint32(no))
	if err == nil {
		err = c.addPhysical(def.ID, at, true)
	}
	var t *table.Table
	if err == nil {
		t, err = c.e.Open(s, at)
	}
	if err != nil {
		c.abandon(o)
		return o, fmt.Errorf("dict: creating table %s.%s: %w", s.Table.Schema, s.Name, err)
	}
	raiseToOption(t)
	o.handle = c.pendingHandle(t, 0)
	return o, nil
}

// pendingHandle makes the handle of an op.
func (c *Catalog) pendingHandle(t *table.Table, seen uint64) *Handle {
	h := &Handle{c: c, id: t.ID(), table: t}
	h.seen.Store(seen)
	h.refs.Store(1)
	c.mu.Lock()
	c.live[h.id] = append(c.live[h.id], h)
	c.mu.Unlock()
	return h
}

// DropTable drops a table and returns what it was. Whether other tables refer to it
// is for the layer above to check. Errors: 1049, 1051, lock errors.
func (c *Catalog) DropTable(w *table.Worker, schema, name string) (*record.Table, error) {
	var def *record.Table
	err := change(w, func() error {
		var err error
		if def, err = c.lockNamed(w, schema, name); err != nil {
			if errors.Is(err, table.ErrNoTable) {
				err = sqlerr.New(sqlerr.BadTableError, schema+"."+name)
			}
			return err
		}
		if err := c.deleteDefinition(w, def); err != nil {
			return err
		}
		c.note(w, op{id: def.ID, dropped: true})
		return nil
	})
	return def, err
}

// TruncateTable puts an empty table in the place of one and returns its definition.
// It has new numbers, so that neither undo nor snapshots of the old one can be
// taken for its own. An applier passes the definition of the log as next; else it
// is nil. Errors: 1049, 1146, those of CreateTable.
func (c *Catalog) TruncateTable(w *table.Worker, schema, name string, next *record.Table) (*record.Table, error) {
	err := change(w, func() error {
		old, err := c.lockNamed(w, schema, name)
		if err != nil {
			return err
		}
		given := next != nil
		if given {
			next = complete(next)
		} else {
			next = emptied(old)
		}
		if err := checkDefinition(next); err != nil {
			return err
		}
		if err := c.deleteDefinition(w, old); err != nil {
			return err
		}
		o, err := c.create(w, next, given)
		if err == nil {
			c.note(w, op{id: old.ID, dropped: true}, o)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return next, nil
}

// emptied is the definition of a table that takes the place of another without its
// rows: it need not remember how older rows looked.
func emptied(old *record.Table) *record.Table {
	def := old.Clone()
	def.ID = 0
	def.Version++
	def.RowVersion = record.FirstRowVersion
	delete(def.Options, OptionAutoIncrement)
	columns := def.Columns[:0]
	for _, col := range def.Columns {
		if col.DroppedIn == 0 {
			col.AddedIn, col.Initial = record.FirstRowVersion, nil
			columns = append(columns, col)
		}
	}
	def.Columns = columns
	for i := range def.Indexes {
		def.Indexes[i].ID = 0
	}
	return def
}

// lockNamed locks a table's row for a change of the definition, and returns that.
// Errors: 1049, 1146.
func (c *Catalog) lockNamed(w *table.Worker, schema, name string) (*record.Table, error) {
	s, err := c.lockSchema(w, schema, lock.RecordS)
	if err != nil {
		return nil, err
	}
	id := uint64(0)
	prefix := values{uintValue(s.ID), stringValue(name)}
	err = c.lockRows(w, c.own[idTables], 1, lock.RecordX, prefix, func(row values) error {
		id = row[tableID].Uint()
		return nil
	})
	if err == nil && id == 0 {
		err = noTableError(schema, name)
	}
	if err != nil {
		return nil, err
	}
	return c.newestDefinition(id)
}

// lockNumbered is lockNamed by number. Error: table.ErrNoTable.
func (c *Catalog) lockNumbered(w *table.Worker, id uint64) (*record.Table, error) {
	found := false
	err := c.lockRows(w, c.own[idTables], 0, lock.RecordX, values{uintValue(id)}, func(values) error {
		found = true
		return nil
	})
	if err == nil && !found {
		err = table.ErrNoTable
	}
	if err != nil {
		return nil, err
	}
	return c.newestDefinition(id)
}

// newestDefinition reads the newest versions of a definition's rows. That of the
// table is locked, so that they are this transaction's or of one whose commit is
// sure, if not yet published.
func (c *Catalog) newestDefinition(id uint64) (*record.Table, error) {
	t := c.sys.Begin(trx.Options{Isolation: trx.ReadUncommitted})
	defer c.sys.End(t)
	r, err := c.reader()
	if err != nil {
		return nil, err
	}
	defer c.done(r)
	return r.definition(t.Snapshot(), id)
}

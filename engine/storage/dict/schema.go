package dict

import (
	"errors"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
)

// change runs a statement's change of the catalogue, and undoes its rows if it
// fails.
func change(w *table.Worker, fn func() error) error {
	mark := w.Savepoint()
	err := fn()
	if err != nil && w.Savepoint() > mark {
		err = errors.Join(err, w.RollbackTo(mark))
	}
	return err
}

// CreateSchema makes a schema. It gets a number if it has none; an applier passes
// that of the log. Errors: 1007, 1059, 1102, lock errors.
func (c *Catalog) CreateSchema(w *table.Worker, s Schema) (Schema, error) {
	if err := checkName(s.Name, sqlerr.WrongDBName); err != nil {
		return s, err
	}
	var err error
	if s.ID, err = c.number(trx.TableID, s.ID); err != nil {
		return s, err
	}
	err = w.Insert(c.own[idSchemas], encodeSchema(&s))
	if isDuplicate(err) {
		err = sqlerr.New(sqlerr.DBCreateExists, s.Name)
	}
	return s, err
}

// AlterSchema changes collation and options of the schema of that name. Error: 1049.
func (c *Catalog) AlterSchema(w *table.Worker, s Schema) error {
	old, err := c.lockSchema(w, s.Name, lock.RecordX)
	if err != nil {
		return err
	}
	s.ID = old.ID
	return change(w, func() error {
		return updateRow(w, c.own[idSchemas], encodeSchema(&old), encodeSchema(&s))
	})
}

// DropSchema drops a schema. Errors: 1008, and 1010 for one that has tables.
func (c *Catalog) DropSchema(w *table.Worker, name string) error {
	s, err := c.lockSchema(w, name, lock.RecordX)
	if isError(err, sqlerr.BadDBError) {
		return sqlerr.New(sqlerr.DBDropExists, name)
	}
	if err != nil {
		return err
	}
	// Who creates a table in the schema holds its row in S until the commit.
	tables := 0
	err = c.lockRows(w, c.own[idTables], 1, lock.RecordS, values{uintValue(s.ID)}, func(values) error {
		tables++
		return nil
	})
	if err != nil {
		return err
	}
	if tables > 0 {
		return sqlerr.Newf(sqlerr.DBDropRmdir, "Error dropping database '%s': it has %d tables", name, tables)
	}
	return w.Delete(c.own[idSchemas], keyOf(c.own[idSchemas], values{uintValue(s.ID)}))
}

// FindSchema returns a schema as t sees it; t may be nil. Error: 1049.
func (c *Catalog) FindSchema(t *trx.Trx, name string) (Schema, error) {
	r, err := c.reader()
	if err != nil {
		return Schema{}, err
	}
	defer c.done(r)
	return r.schemaNamed(r.latest(ownID(t)), name)
}

// Schemas returns the schemas in the order of their names, as the snapshot sees
// them; nil stands for what is committed now.
func (c *Catalog) Schemas(snap *trx.Snapshot) ([]Schema, error) {
	r, err := c.reader()
	if err != nil {
		return nil, err
	}
	defer c.done(r)
	if snap == nil {
		snap = r.latest(0)
	}
	var all []Schema
	err = r.each(c.own[idSchemas], snap, 1, nil, func(row values) error {
		s, err := decodeSchema(row)
		all = append(all, s)
		return err
	})
	return all, err
}

// lockSchema locks a schema's row and returns it. Error: 1049.
func (c *Catalog) lockSchema(w *table.Worker, name string, mode lock.Mode) (s Schema, err error) {
	err = c.lockRows(w, c.own[idSchemas], 1, mode, values{stringValue(name)}, func(row values) error {
		var err error
		s, err = decodeSchema(row)
		return err
	})
	if err == nil && s.ID == 0 {
		err = noSchemaError(name)
	}
	return s, err
}

// number returns the next number of a counter, or the given one, after which the
// counter goes on.
func (c *Catalog) number(counter trx.Counter, given uint64) (uint64, error) {
	if given == 0 {
		return c.sys.NextNumber(counter)
	}
	return given, c.sys.RaiseNumber(counter, given+1)
}

// insertDefinition inserts the rows of a table's definition. Error: 1050.
func (c *Catalog) insertDefinition(w *table.Worker, def *record.Table, schema uint64) error {
	err := w.Insert(c.own[idTables], encodeTable(def, schema))
	if isDuplicate(err) {
		return sqlerr.New(sqlerr.TableExistsError, def.Name)
	}
	if err != nil {
		return err
	}
	return c.diffDefinition(w, &record.Table{ID: def.ID}, def)
}

// deleteDefinition deletes the rows of a table's definition.
func (c *Catalog) deleteDefinition(w *table.Worker, def *record.Table) error {
	if err := c.diffDefinition(w, def, &record.Table{ID: def.ID}); err != nil {
		return err
	}
	return w.Delete(c.own[idTables], keyOf(c.own[idTables], values{uintValue(def.ID)}))
}

// diffDefinition changes the rows of columns, indexes and foreign keys from one
// definition of a table to another.
func (c *Catalog) diffDefinition(w *table.Worker, from, to *record.Table) error {
	err := diffRows(w, c.own[idColumns], encodeAll(from.ID, from.Columns, encodeColumn), encodeAll(to.ID, to.Columns, encodeColumn))
	if err == nil {
		err = diffRows(w, c.own[idIndexes], encodeAll(from.ID, from.Indexes, encodeIndex), encodeAll(to.ID, to.Indexes, encodeIndex))
	}
	if err == nil {
		err = diffRows(w, c.own[idForeignKeys], encodeAll(from.ID, from.ForeignKeys, encodeForeignKey),
			encodeAll(to.ID, to.ForeignKeys, encodeForeignKey))
	}
	return err
}

func encodeAll[T any](table uint64, list []T, encode func(uint64, int, *T) values) []values {
	rows := make([]values, len(list))
	for i := range list {
		rows[i] = encode(table, i, &list[i])
	}
	return rows
}

// diffRows changes rows of a table whose primary key is its first two columns.
func diffRows(w *table.Worker, t *table.Table, from, to []values) error {
	type id struct{ table, part uint64 }
	keyed := map[id]values{}
	for _, row := range to {
		keyed[id{row[0].Uint(), row[1].Uint()}] = row
	}
	for _, row := range from {
		key := id{row[0].Uint(), row[1].Uint()}
		next := keyed[key]
		delete(keyed, key)
		var err error
		if next == nil {
			err = w.Delete(t, keyOf(t, row[:2]))
		} else {
			err = updateRow(w, t, row, next)
		}
		if err != nil {
			return err
		}
	}
	for _, row := range to {
		if keyed[id{row[0].Uint(), row[1].Uint()}] == nil {
			continue
		}
		if err := w.Insert(t, row); err != nil {
			return err
		}
	}
	return nil
}

// updateRow changes the columns in which the rows differ. They have the same
// primary key.
func updateRow(w *table.Worker, t *table.Table, from, to values) error {
	var changes []record.Change
	for i := range to {
		if !sameValue(from[i], to[i]) {
			changes = append(changes, record.Change{Column: i, Value: to[i]})
		}
	}
	if len(changes) == 0 {
		return nil
	}
	return w.Update(t, keyOf(t, from[:len(t.Schema.Keys[0].Parts)]), changes)
}

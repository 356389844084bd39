package dict

import (
	"fmt"

	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/storage/trx"
	"github.com/triremedb/trireme/engine/types"
)

// values is a row, or the first values of a key.
type values = []types.Value

func uintValue(n uint64) types.Value   { return types.NewUint(n) }
func stringValue(s string) types.Value { return types.NewString(s) }
func bytesValue(b []byte) types.Value  { return types.NewBytes(b) }
func text(v types.Value) string        { return string(v.Bytes()) }
func keyOf(t *table.Table, v values) []byte {
	return t.Schema.Keys[0].AppendKey(nil, v...)
}

// reader reads the catalogue's tables for one task at a time. It has a worker of
// its own, so that it disturbs no scan of its caller's.
type reader struct {
	c       *Catalog
	w       *table.Worker
	scan    table.Scanner
	view    trx.View
	batches [idEnd]*types.Batch
}

// readersKept bounds the idle readers that are kept.
const readersKept = 8

// reader returns a reader, which done takes back. Until then the engine's pages stay.
// Error: table.ErrClosed.
func (c *Catalog) reader() (*reader, error) {
	if err := c.e.Enter(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.readers); n > 0 {
		r := c.readers[n-1]
		c.readers = c.readers[:n-1]
		return r, nil
	}
	return &reader{c: c, w: c.e.NewWorker()}, nil
}

func (c *Catalog) done(r *reader) {
	defer c.e.Leave()
	c.sys.CloseSnapshot(&r.view)
	c.mu.Lock()
	if len(c.readers) < readersKept {
		c.readers = append(c.readers, r)
	}
	c.mu.Unlock()
}

// latest is a snapshot of what is committed now and of what the transaction with
// the id (0: none) did. It is open until the reader is done.
func (r *reader) latest(own uint64) *trx.Snapshot {
	r.c.sys.OpenSnapshot(&r.view)
	r.view.Own = own
	return &r.view.Snapshot
}

// each calls fn with the rows whose key in the index begins with prefix. Strings
// in row are valid until fn returns; fn must not use the reader.
func (r *reader) each(t *table.Table, snap *trx.Snapshot, index int, prefix values, fn func(row values) error) error {
	return r.c.scanRows(&r.scan, r.w, r.batch(t), t, snap, table.Range{Index: index}, prefix, fn)
}

// batch returns the reader's batch for a table of the catalogue. It is made small:
// the catalogue's rows come in dozens.
func (r *reader) batch(t *table.Table) *types.Batch {
	b := r.batches[t.ID()]
	if b == nil {
		b = newBatch(t)
		r.batches[t.ID()] = b
	}
	return b
}

func newBatch(t *table.Table) *types.Batch {
	b := &types.Batch{Vecs: make([]types.Vector, len(t.Schema.Columns))}
	for i := range b.Vecs {
		b.Vecs[i].Init(&t.Schema.Columns[i].Type)
	}
	return b
}

func (c *Catalog) scanRows(s *table.Scanner, w *table.Worker, b *types.Batch, t *table.Table, snap *trx.Snapshot,
	rng table.Range, prefix values, fn func(row values) error) error {
	if len(prefix) > 0 {
		rng.Low = t.Schema.Keys[rng.Index].AppendKey(nil, prefix...)
		rng.High = rng.Low
	}
	for i := range t.Schema.Columns {
		rng.Columns = append(rng.Columns, i)
	}
	if err := s.Start(w, t, snap, rng); err != nil {
		return err
	}
	var row values
	for more := true; more; {
		var err error
		if more, err = s.Next(b); err != nil {
			return err
		}
		if err = c.e.Closed(); err != nil {
			return err
		}
		for i := range b.Len() {
			row = b.Row(row, i)
			if err := fn(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// lockRows is each for the newest versions, which it locks for w's transaction. An
// applier takes no locks: nothing that it depends on can change.
func (c *Catalog) lockRows(w *table.Worker, t *table.Table, index int, mode lock.Mode, prefix values, fn func(row values) error) error {
	if w.Applying {
		r, err := c.reader()
		if err != nil {
			return err
		}
		defer c.done(r)
		return r.each(t, r.latest(ownID(w.Trx())), index, prefix, fn)
	}
	var s table.Scanner
	rng := table.Range{Index: index, Locking: true, Lock: mode}
	return c.scanRows(&s, w, newBatch(t), t, nil, rng, prefix, fn)
}

// get returns the row with the primary key, with memory of its own, or nil.
func (r *reader) get(t *table.Table, snap *trx.Snapshot, key ...types.Value) (values, error) {
	return r.w.GetRow(t, keyOf(t, key), snap)
}

func (r *reader) schemaNamed(snap *trx.Snapshot, name string) (s Schema, err error) {
	err = r.each(r.c.own[idSchemas], snap, 1, values{stringValue(name)}, func(row values) error {
		s, err = decodeSchema(row)
		return err
	})
	if err == nil && s.ID == 0 {
		err = noSchemaError(name)
	}
	return s, err
}

// tableNamed returns the number of a table. Errors: 1049, 1146.
func (r *reader) tableNamed(snap *trx.Snapshot, schema, name string) (id uint64, err error) {
	s, err := r.schemaNamed(snap, schema)
	if err != nil {
		return 0, err
	}
	prefix := values{uintValue(s.ID), stringValue(name)}
	err = r.each(r.c.own[idTables], snap, 1, prefix, func(row values) error {
		id = row[tableID].Uint()
		return nil
	})
	if err == nil && id == 0 {
		err = noTableError(schema, name)
	}
	return id, err
}

// definition reads the definition of a table. Errors: table.ErrNoTable,
// *[CorruptError].
func (r *reader) definition(snap *trx.Snapshot, id uint64) (*record.Table, error) {
	row, err := r.get(r.c.own[idTables], snap, uintValue(id))
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, table.ErrNoTable
	}
	def, schema, err := decodeTable(row)
	if err != nil {
		return nil, err
	}
	if row, err = r.get(r.c.own[idSchemas], snap, uintValue(schema)); err != nil {
		return nil, err
	}
	if row == nil {
		return nil, corruptRow(r.c.own[idTables], fmt.Errorf("there is no schema %d", schema), id)
	}
	def.Schema = text(row[schemaName])
	if err := r.details(snap, def); err != nil {
		return nil, err
	}
	if err := def.Validate(); err != nil {
		return nil, corruptRow(r.c.own[idTables], err, id)
	}
	return def, nil
}

// details reads columns, indexes and foreign keys.
func (r *reader) details(snap *trx.Snapshot, def *record.Table) error {
	var order []uint64
	id := values{uintValue(def.ID)}
	err := r.each(r.c.own[idColumns], snap, 0, id, func(row values) error {
		col, err := decodeColumn(row)
		def.Columns = append(def.Columns, col)
		order = append(order, row[columnOrdinal].Uint())
		return err
	})
	if err == nil {
		def.Columns, err = inOrder(r.c.own[idColumns], def.ID, def.Columns, order)
	}
	if err != nil {
		return err
	}
	order = order[:0]
	err = r.each(r.c.own[idIndexes], snap, 0, id, func(row values) error {
		ix, err := decodeIndex(row)
		def.Indexes = append(def.Indexes, ix)
		order = append(order, row[indexOrdinal].Uint())
		return err
	})
	if err == nil {
		def.Indexes, err = inOrder(r.c.own[idIndexes], def.ID, def.Indexes, order)
	}
	if err != nil {
		return err
	}
	order = order[:0]
	err = r.each(r.c.own[idForeignKeys], snap, 0, id, func(row values) error {
		fk, err := decodeForeignKey(row)
		def.ForeignKeys = append(def.ForeignKeys, fk)
		order = append(order, row[foreignOrdinal].Uint())
		return err
	})
	if err == nil {
		def.ForeignKeys, err = inOrder(r.c.own[idForeignKeys], def.ID, def.ForeignKeys, order)
	}
	return err
}

// inOrder puts list[i] at the place order[i], which must be a permutation.
func inOrder[T any](t *table.Table, id uint64, list []T, order []uint64) ([]T, error) {
	if len(list) == 0 {
		return nil, nil
	}
	sorted := make([]T, len(list))
	seen := make([]bool, len(list))
	for i, at := range order {
		if at >= uint64(len(list)) || seen[at] {
			return nil, corruptRow(t, fmt.Errorf("the ordinal %d is out of range or taken", at), id)
		}
		seen[at] = true
		sorted[at] = list[i]
	}
	return sorted, nil
}

// physical reads where a table's data lies. Error: table.ErrNoTable if it is
// nowhere.
func (r *reader) physical(snap *trx.Snapshot, id uint64) (table.Physical, error) {
	at := table.Physical{Roots: map[uint64]uint32{}}
	t := r.c.own[idPhysical]
	err := r.each(t, snap, 0, values{uintValue(id)}, func(row values) error {
		sp, page := uint32(row[physicalSpace].Uint()), uint32(row[physicalPage].Uint())
		index := row[physicalIndex].Uint()
		if index == 0 {
			at.Space, at.LOBSegment = sp, page
			return nil
		}
		if sp != at.Space || page == 0 {
			return corruptRow(t, fmt.Errorf("root page %d in tablespace %d of a table in %d", page, sp, at.Space), id, index)
		}
		at.Roots[index] = page
		return nil
	})
	if err == nil && at.Space == 0 {
		err = table.ErrNoTable
	}
	return at, err
}

// corruptRow names a row by the values of its key.
func corruptRow(t *table.Table, err error, key ...uint64) error {
	return &CorruptError{Table: t.Schema.Name, Row: fmt.Sprint(key), Err: err}
}

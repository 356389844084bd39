package dict

import (
	"errors"
	"fmt"
	"slices"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

// ReplaceTable gives the table with def's number a new definition, without touching
// its rows, and returns the definition as stored. def is derived from the present
// one and has its Version, or, as in the log, the next one. def is not changed.
//
// Possible are: new names, options and comments; what columns only carry for the
// layer above; longer VARCHAR and VARBINARY, more members of an ENUM or SET of the
// same size; columns added (AddedIn being the next row version, Initial given) or
// dropped (DroppedIn being the next one) with RowVersion raised by one; indexes
// dropped, renamed, published, or added as Building; any change of foreign keys.
// Anything else gives [ErrRebuild].
//
// Errors besides: 1412 if the table was changed since def was derived, those of
// CreateTable, table.ErrNoTable.
//
// REQUIRES: nobody else uses rows of the table; and this transaction changes none
// of them after.
func (c *Catalog) ReplaceTable(w *table.Worker, def *record.Table) (*record.Table, error) {
	return c.alter(w, def.ID, func(old *record.Table) (*record.Table, error) {
		if def.Version != old.Version && def.Version != old.Version+1 {
			return nil, sqlerr.New(sqlerr.TableDefChanged)
		}
		next := def.Clone()
		next.Version = old.Version
		return next, nil
	})
}

// RenameTable gives a table another name, in another schema or the same. Errors:
// 1049, 1050, 1146, those of names.
func (c *Catalog) RenameTable(w *table.Worker, schema, name, toSchema, toName string) (*record.Table, error) {
	def, err := c.lockNamed(w, schema, name)
	if err != nil {
		return nil, err
	}
	return c.alter(w, def.ID, func(old *record.Table) (*record.Table, error) {
		old.Schema, old.Name = toSchema, toName
		return old, nil
	})
}

// AddIndex adds an index, which is Building: changes of rows go into it, but nobody
// reads it before PublishIndex. The definition returned has its number.
func (c *Catalog) AddIndex(w *table.Worker, id uint64, ix record.Index) (*record.Table, error) {
	return c.alter(w, id, func(old *record.Table) (*record.Table, error) {
		ix.Building = true
		old.Indexes = append(old.Indexes, ix)
		return old, nil
	})
}

// PublishIndex says that an index is complete. Error: 1091 if there is none.
func (c *Catalog) PublishIndex(w *table.Worker, id, index uint64) (*record.Table, error) {
	return c.alter(w, id, func(old *record.Table) (*record.Table, error) {
		for i := range old.Indexes {
			if old.Indexes[i].ID == index {
				old.Indexes[i].Building = false
				return old, nil
			}
		}
		return nil, cantDrop(fmt.Sprintf("index %d", index))
	})
}

// DropIndex drops a secondary index. Errors: 1091, [ErrRebuild] for the clustered
// one.
func (c *Catalog) DropIndex(w *table.Worker, id uint64, name string) (*record.Table, error) {
	return c.alter(w, id, func(old *record.Table) (*record.Table, error) {
		i := FindIndex(old, name)
		switch {
		case i < 0:
			return nil, cantDrop(name)
		case i == 0:
			return nil, fmt.Errorf("%w: the primary key is dropped", ErrRebuild)
		}
		old.Indexes = append(old.Indexes[:i], old.Indexes[i+1:]...)
		return old, nil
	})
}

func cantDrop(name string) error {
	return sqlerr.New(sqlerr.CantDropFieldOrKey, name)
}

// alter changes the definition of a table to what edit makes of it. edit gets a
// copy.
func (c *Catalog) alter(w *table.Worker, id uint64, edit func(*record.Table) (*record.Table, error)) (*record.Table, error) {
	var next *record.Table
	err := change(w, func() error {
		old, err := c.lockNumbered(w, id)
		if err != nil {
			return err
		}
		if next, err = edit(old.Clone()); err != nil {
			return err
		}
		next.Version = old.Version + 1
		if err := checkDefinition(next); err != nil {
			return err
		}
		o, err := c.replace(w, old, next)
		if err == nil {
			c.note(w, o)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return next, nil
}

// replace does the work of a change from one definition to another.
func (c *Catalog) replace(w *table.Worker, old, next *record.Table) (op, error) {
	o := op{id: old.ID}
	if err := checkInPlace(old, next); err != nil {
		return o, err
	}
	fresh := addedIndexes(old, next)
	if err := c.numberParts(next); err != nil {
		return o, err
	}
	for i := range old.Indexes {
		if indexWithID(next, old.Indexes[i].ID) == nil {
			o.gone = append(o.gone, old.Indexes[i].ID)
		}
	}
	if err := c.replaceRows(w, old, next); err != nil {
		return o, err
	}
	for _, i := range fresh {
		o.added = append(o.added, next.Indexes[i].ID)
	}
	t, err := c.reopen(next, o.added)
	if err != nil {
		c.abandon(op{id: o.id, added: o.added})
		return o, err
	}
	o.handle = c.pendingHandle(t, c.seenOf(old.ID, w))
	return o, nil
}

// addedIndexes returns the positions of the indexes that are new.
func addedIndexes(old, next *record.Table) []int {
	var fresh []int
	for i := range next.Indexes {
		if id := next.Indexes[i].ID; id == 0 || indexWithID(old, id) == nil {
			fresh = append(fresh, i)
		}
	}
	return fresh
}

func indexWithID(t *record.Table, id uint64) *record.Index {
	for i := range t.Indexes {
		if t.Indexes[i].ID == id {
			return &t.Indexes[i]
		}
	}
	return nil
}

func (c *Catalog) replaceRows(w *table.Worker, old, next *record.Table) error {
	from, err := c.lockSchema(w, old.Schema, lock.RecordS)
	if err != nil {
		return err
	}
	to := from
	if next.Schema != old.Schema {
		if to, err = c.lockSchema(w, next.Schema, lock.RecordS); err != nil {
			return err
		}
	}
	err = updateRow(w, c.own[idTables], encodeTable(old, from.ID), encodeTable(next, to.ID))
	if isDuplicate(err) {
		err = sqlerr.New(sqlerr.TableExistsError, next.Name)
	}
	if err != nil {
		return err
	}
	return c.diffDefinition(w, old, next)
}

// reopen opens a table in a new definition, after making the trees that it adds.
func (c *Catalog) reopen(def *record.Table, added []uint64) (*table.Table, error) {
	at, err := c.whereIs(def.ID)
	if err != nil {
		return nil, err
	}
	for _, index := range added {
		if err := c.makeIndex(def.ID, index, &at); err != nil {
			return nil, err
		}
	}
	t, err := c.build(def, at)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.live[def.ID] {
		if h.table != nil {
			carryOver(h.table, t)
		}
	}
	return t, nil
}

// makeIndex makes the tree of an index.
func (c *Catalog) makeIndex(id, index uint64, at *table.Physical) error {
	if err := c.settleOld(garbage{id, index}); err != nil {
		return err
	}
	c.mu.Lock()
	c.creating[garbage{id, index}] = at.Space
	c.mu.Unlock()
	sp, err := c.e.Spaces.Open(at.Space)
	if err != nil {
		return err
	}
	root, err := c.e.CreateIndex(sp, index)
	if err != nil {
		return err
	}
	at.Roots[index] = root
	return c.addPhysical(id, table.Physical{Space: at.Space, Roots: map[uint64]uint32{index: root}}, false)
}

// seenOf returns since when a table is known to exist: 0 if the transaction has
// created it.
func (c *Catalog) seenOf(id uint64, w *table.Worker) uint64 {
	p := c.pendingOf(w.Trx())
	c.mu.Lock()
	defer c.mu.Unlock()
	if p != nil {
		if h, _ := p.latest(id); h != nil {
			return h.seen.Load()
		}
	}
	return max(c.sys.LastCommitted(), 1)
}

// checkInPlace checks that rows of the old definition can be read by the new one.
func checkInPlace(old, next *record.Table) error {
	if next.RowVersion != old.RowVersion && next.RowVersion != old.RowVersion+1 || next.RowVersion < old.RowVersion {
		return fmt.Errorf("%w: row version %d after %d", ErrRebuild, next.RowVersion, old.RowVersion)
	}
	if next.NextColumn < old.NextColumn {
		return fmt.Errorf("%w: column numbers are used again", ErrRebuild)
	}
	kept := 0
	for i := range next.Columns {
		col := &next.Columns[i]
		before := old.Column(col.ID)
		var err error
		if before == nil {
			err = checkAdded(old, next, col)
		} else {
			kept++
			err = checkColumnInPlace(next, before, col)
		}
		if err != nil {
			return fmt.Errorf("%w: column %s", err, col.Name)
		}
	}
	if kept != len(old.Columns) {
		return fmt.Errorf("%w: a column is removed", ErrRebuild)
	}
	return checkIndexesInPlace(old, next)
}

func checkAdded(old, next *record.Table, col *record.Column) error {
	switch {
	case col.ID < old.NextColumn:
		return fmt.Errorf("%w: its number was used before", ErrRebuild)
	case next.RowVersion == old.RowVersion || col.AddedIn != next.RowVersion || col.DroppedIn != 0:
		return fmt.Errorf("%w: it is not of the next row version", ErrRebuild)
	case col.Initial == nil && col.Type.NotNull || col.AutoIncrement:
		return fmt.Errorf("%w: the rows have no value for it", ErrRebuild)
	}
	if col.Initial == nil {
		return nil
	}
	_, err := types.DecodeStored(col.Initial, &col.Type)
	return err
}

func checkColumnInPlace(next *record.Table, before, col *record.Column) error {
	dropped := before.DroppedIn != col.DroppedIn
	switch {
	case before.AddedIn != col.AddedIn || before.Hidden != col.Hidden || string(before.Initial) != string(col.Initial) ||
		(before.Initial == nil) != (col.Initial == nil):
		return fmt.Errorf("%w: its place in the rows changes", ErrRebuild)
	case dropped && (before.DroppedIn != 0 || col.DroppedIn != next.RowVersion || col.AddedIn == next.RowVersion):
		return fmt.Errorf("%w: it is not dropped in the next row version", ErrRebuild)
	case !SameStorage(&before.Type, &col.Type):
		return fmt.Errorf("%w: its type changes", ErrRebuild)
	}
	return nil
}

// SameStorage reports whether every value of the type from is stored, and sorted,
// in the same way by the type to.
func SameStorage(from, to *types.Type) bool {
	t := *from
	switch from.Kind {
	case types.KindVarChar, types.KindVarBinary:
		if to.Length < from.Length {
			return false
		}
		t.Length = to.Length
	case types.KindEnum, types.KindSet:
		a, _ := types.FixedSize(from)
		b, _ := types.FixedSize(to)
		if a != b || len(to.Members) < len(from.Members) || !slices.Equal(from.Members, to.Members[:len(from.Members)]) {
			return false
		}
		t.Members = to.Members
	}
	if from.IsInteger() {
		t.Length, t.ZeroFill = to.Length, to.ZeroFill
	}
	return t.Equal(to)
}

func checkIndexesInPlace(old, next *record.Table) error {
	if next.Indexes[0].ID != old.Indexes[0].ID {
		return fmt.Errorf("%w: the primary key changes", ErrRebuild)
	}
	for i := range next.Indexes {
		ix := &next.Indexes[i]
		before := indexWithID(old, ix.ID)
		if before == nil || ix.ID == 0 {
			if !ix.Building {
				return errors.New("dict: a new index must be added as building, index " + ix.Name)
			}
			continue
		}
		same := before.Unique == ix.Unique && len(before.Parts) == len(ix.Parts) && (before.Building || !ix.Building)
		for p := range before.Parts {
			same = same && before.Parts[p] == ix.Parts[p]
		}
		if !same {
			return fmt.Errorf("%w: index %s changes", ErrRebuild, ix.Name)
		}
	}
	return nil
}

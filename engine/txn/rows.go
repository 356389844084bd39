package txn

import (
	"slices"

	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/types"
)

// Insert adds a row, given by column position and valid for the columns' types. An
// AUTO_INCREMENT column that is NULL, or 0 without keepZero (sql_mode
// NO_AUTO_VALUE_ON_ZERO), gets the next value, and the hidden key of a table without a
// primary key too: both are in row afterwards.
// Errors: *table.DuplicateError and the others of table.Worker.Insert, 1467; the row
// is not there then.
//
// If the row's events cannot be kept (1197, file.ErrNoSpace) the whole statement is
// rolled back. So it is with Update and Delete.
func (s *Session) Insert(o *Table, row []types.Value, keepZero bool) error {
	t, err := s.enterToWrite(o, true)
	if err != nil {
		return err
	}
	return s.leave(t.insert(o, row, keepZero, false))
}

// Upsert is Insert for who will change or delete the row that has a key of the new one; see
// table.Worker.Upsert.
func (s *Session) Upsert(o *Table, row []types.Value, keepZero bool) error {
	t, err := s.enterToWrite(o, true)
	if err != nil {
		return err
	}
	return s.leave(t.insert(o, row, keepZero, true))
}

// InsertRows is Insert of several rows: all of them are added or, with an error, none.
// failed is the place of the row that the error is about.
//
// REQUIRES: every row has an AUTO_INCREMENT value, or none has.
func (s *Session) InsertRows(o *Table, rows [][]types.Value, keepZero bool) (failed int, err error) {
	t, err := s.enterToWrite(o, true)
	if err != nil {
		return 0, err
	}
	failed, err = t.insertRows(o, rows, keepZero)
	return failed, s.leave(err)
}

func (t *Txn) insertRows(o *Table, rows [][]types.Value, keepZero bool) (failed int, err error) {
	if err := t.mayInsert(o); err != nil {
		return 0, err
	}
	for i, row := range rows {
		if err := o.giveKeys(row, keepZero); err != nil {
			return i, err
		}
	}
	if failed, err := t.worker(o).InsertRows(o.tbl, rows); err != nil {
		return failed, err
	}
	if o.temporary != nil {
		return 0, t.grew(o)
	}
	o.tbl.Count(table.Inserted, table.NoIndex, t.sessionID, uint64(len(rows)))
	for i, row := range rows {
		if err := t.inserted(o, row); err != nil {
			return i, err
		}
	}
	return 0, nil
}

func (t *Txn) insert(o *Table, row []types.Value, keepZero, upsert bool) error {
	err := t.mayInsert(o)
	if err == nil {
		err = o.giveKeys(row, keepZero)
	}
	switch {
	case err != nil:
		return err
	case upsert:
		err = t.worker(o).Upsert(o.tbl, row)
	default:
		err = t.worker(o).Insert(o.tbl, row)
	}
	if err != nil {
		return err
	}
	o.tbl.Count(table.Inserted, table.NoIndex, t.sessionID, 1)
	return t.inserted(o, row)
}

// mayInsert is mayChange of who adds rows.
func (t *Txn) mayInsert(o *Table) error {
	err := t.mayChange(o)
	if err == nil && len(o.meta.links) > 0 && !o.linked {
		err = t.findParents(o)
	}
	return err
}

// giveKeys gives a row the keys that the table makes up.
func (o *Table) giveKeys(row []types.Value, keepZero bool) error {
	x := o.meta
	if x.auto >= 0 && (row[x.auto].IsNull() || !keepZero && row[x.auto].Uint() == 0) {
		v, err := o.nextAuto()
		if err != nil {
			return err
		}
		row[x.auto] = v
	}
	if x.rowID >= 0 && row[x.rowID].IsNull() {
		row[x.rowID] = types.NewUint(o.tbl.NextRowID())
	}
	return nil
}

// inserted takes down that a row was added.
func (t *Txn) inserted(o *Table, row []types.Value) error {
	if o.temporary != nil {
		return t.grew(o)
	}
	if err := t.rows.Insert(o.meta.layout, row); err != nil {
		return t.undoTo(t.statement, err)
	}
	if err := t.wroteRow(o, row); err != nil {
		return t.undoTo(t.statement, err)
	}
	return nil
}

// nextAuto takes the next AUTO_INCREMENT value.
func (o *Table) nextAuto() (types.Value, error) {
	x := o.meta
	if next := o.tbl.NextAuto(); next <= x.autoUp {
		if v := o.tbl.ReserveAuto(1); v <= x.autoUp && v != table.NoMoreAuto {
			if o.tbl.Schema.Columns[x.auto].Type.Unsigned {
				return types.NewUint(v), nil
			}
			return types.NewInt(int64(v)), nil
		}
	}
	return types.Null, sqlerr.New(sqlerr.AutoIncReadFailed)
}

// wroteRow adds all keys of a row to the write set.
func (t *Txn) wroteRow(o *Table, row []types.Value) error {
	if err := t.wroteKey(o, row); err != nil {
		return err
	}
	for _, k := range o.meta.unique {
		t.wroteUnique(o.tbl.ID(), k, row)
	}
	t.referred(o, row, nil)
	return nil
}

// wroteKey adds the clustered key.
func (t *Txn) wroteKey(o *Table, row []types.Value) (err error) {
	s := o.tbl.Schema
	if t.key, err = s.AppendRowKey(t.key[:0], row); err != nil {
		return err
	}
	t.Keys.add(hashKey(o.tbl.ID(), s.Keys[0].ID, t.key))
	if o.watch != nil {
		t.watch(o, t.key)
	}
	return nil
}

// wroteUnique adds a row's key in a unique secondary index. A key with NULL in it
// excludes no other.
func (t *Txn) wroteUnique(id uint64, k *record.KeySchema, row []types.Value) {
	t.values = t.values[:0]
	for i := range k.Parts {
		v := row[k.Parts[i].Column]
		if v.IsNull() {
			return
		}
		t.values = append(t.values, v)
	}
	t.key = k.AppendKey(t.key[:0], t.values...)
	t.Keys.add(hashKey(id, k.ID, t.key))
}

// referred adds the keys that a row's foreign keys refer to, of an update only those
// that it changes.
func (t *Txn) referred(o *Table, row []types.Value, changes []record.Change) {
next:
	for i := range o.parents {
		p := &o.parents[i]
		if changes != nil && !touches(p.from, changes) {
			continue
		}
		t.values = t.values[:0]
		for _, c := range p.from {
			if row[c].IsNull() {
				continue next
			}
			t.values = append(t.values, row[c])
		}
		t.key = p.key.AppendKey(t.key[:0], t.values...)
		t.Keys.refer(hashKey(p.table, p.key.ID, t.key))
	}
}

func touches(columns []int, changes []record.Change) bool {
	for _, c := range columns {
		for i := range changes {
			if changes[i].Column == c {
				return true
			}
		}
	}
	return false
}

// Needs appends the positions of the columns of which Update, changing those given,
// wants the values before; Delete wants what it appends for none.
func (o *Table) Needs(dst, changing []int) []int {
	from := len(dst)
	dst = append(dst, o.meta.needed...)
	for i := range o.meta.links {
		l := &o.meta.links[i]
		if slices.ContainsFunc(l.columns, func(c int) bool { return slices.Contains(changing, c) }) {
			dst = appendNew(dst, from, l.columns)
		}
	}
	return appendNew(dst, from, changing)
}

// appendNew appends what is not in dst[from:] yet.
func appendNew(dst []int, from int, more []int) []int {
	for _, c := range more {
		if !slices.Contains(dst[from:], c) {
			dst = append(dst, c)
		}
	}
	return dst
}

// Update changes columns of the row with the clustered key, which a locking read has
// found. before is that row by column position, valid at least where Needs says; nil
// lets Update read it. Columns whose bytes stay as they are do not count: changed is
// false if there are no others, and nothing is logged then. Errors: table.ErrNotFound,
// those of Insert.
func (s *Session) Update(o *Table, key []byte, before []types.Value, changes []record.Change) (changed bool, err error) {
	t, err := s.enterToWrite(o, true)
	if err != nil {
		return false, err
	}
	changed, err = t.update(o, key, before, changes)
	return changed, s.leave(err)
}

func (t *Txn) update(o *Table, key []byte, before []types.Value, changes []record.Change) (bool, error) {
	if err := t.mayChange(o); err != nil {
		return false, err
	}
	if len(o.meta.links) > 0 && !o.linked {
		if err := t.findParents(o); err != nil {
			return false, err
		}
	}
	if before == nil {
		t.columns = t.columns[:0]
		for i := range changes {
			t.columns = append(t.columns, changes[i].Column)
		}
		var err error
		if before, err = t.readBefore(o, key, o.Needs(nil, t.columns)); err != nil {
			return false, err
		}
	}
	t.changes = t.changes[:0]
	for i := range changes {
		c := &changes[i]
		if !event.Identical(before[c.Column], c.Value) {
			t.changes = append(t.changes, *c)
		}
	}
	if len(t.changes) == 0 {
		return false, nil
	}
	if err := t.worker(o).Update(o.tbl, key, t.changes); err != nil {
		return false, err
	}
	o.tbl.Count(table.Updated, o.access, t.sessionID, 1)
	if o.temporary != nil {
		return true, t.grew(o)
	}
	if err := t.rows.Update(o.meta.layout, before, t.changes); err != nil {
		return false, t.undoTo(t.statement, err)
	}
	if err := t.wroteChanges(o, key, before); err != nil {
		return false, t.undoTo(t.statement, err)
	}
	return true, nil
}

// wroteChanges adds to the write set the keys of an updated row, of before and after.
func (t *Txn) wroteChanges(o *Table, key []byte, before []types.Value) error {
	s, id := o.tbl.Schema, o.tbl.ID()
	t.Keys.add(hashKey(id, s.Keys[0].ID, key))
	if o.watch != nil {
		t.watch(o, key)
	}
	t.after = append(t.after[:0], before...)
	for i := range t.changes {
		t.after[t.changes[i].Column] = t.changes[i].Value
	}
	if touchesKey(s.Keys[0], t.changes) {
		if err := t.wroteKey(o, t.after); err != nil {
			return err
		}
	}
	for _, k := range o.meta.unique {
		if touchesKey(k, t.changes) {
			t.wroteUnique(id, k, before)
			t.wroteUnique(id, k, t.after)
		}
	}
	t.referred(o, t.after, t.changes)
	clear(t.after)
	return nil
}

func touchesKey(k *record.KeySchema, changes []record.Change) bool {
	for i := range k.Parts {
		for c := range changes {
			if changes[c].Column == k.Parts[i].Column {
				return true
			}
		}
	}
	return false
}

// Delete deletes the row with the clustered key, which a locking read has found.
// before is as of Update. Errors: table.ErrNotFound, those of locks and of space.
func (s *Session) Delete(o *Table, key []byte, before []types.Value) error {
	t, err := s.enterToWrite(o, true)
	if err != nil {
		return err
	}
	return s.leave(t.delete(o, key, before))
}

func (t *Txn) delete(o *Table, key []byte, before []types.Value) error {
	if err := t.mayChange(o); err != nil {
		return err
	}
	if before == nil {
		var err error
		if before, err = t.readBefore(o, key, o.meta.needed); err != nil {
			return err
		}
	}
	if err := t.worker(o).Delete(o.tbl, key); err != nil {
		return err
	}
	o.tbl.Count(table.Deleted, o.access, t.sessionID, 1)
	if o.temporary != nil {
		return t.grew(o)
	}
	if err := t.rows.Delete(o.meta.layout, before); err != nil {
		return t.undoTo(t.statement, err)
	}
	id := o.tbl.ID()
	t.Keys.add(hashKey(id, o.tbl.Schema.Keys[0].ID, key))
	if o.watch != nil {
		t.watch(o, key)
	}
	for _, k := range o.meta.unique {
		t.wroteUnique(id, k, before)
	}
	return nil
}

// readBefore locks a row and reads columns of it, by position.
func (t *Txn) readBefore(o *Table, key []byte, columns []int) ([]types.Value, error) {
	batch := o.batch(columns)
	found, err := t.point.read(t, o, key, lock.RecordX, lock.Block, columns, batch)
	if err == nil && !found {
		err = table.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	row := make([]types.Value, len(o.tbl.Schema.Columns))
	for i, v := range batch.Row(nil, 0) {
		row[columns[i]] = v
	}
	return row, nil
}

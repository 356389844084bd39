package session

import (
	"errors"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// target is a table whose rows a statement changes.
type target struct {
	open  *txn.Table
	info  *tableInfo
	links []childLink // foreign keys that refer to the table
	// rewrites says that a row's deletion may change other rows of the table.
	rewrites bool
	// linked says that links are known, as of a count of changes of definitions.
	linked   bool
	linkedAt uint64
}

// set prepares for changes of an open table, by what is known of it, or of it as a view shows it.
func (t *target) set(o *txn.Table, info *tableInfo) {
	*t = target{open: o, info: info, links: t.links[:0]}
}

// beginChange prepares the session for a statement that changes rows; own says that it changes those of temporary tables alone.
func (s *Session) beginChange(ignore, own bool) error {
	if s.info.ReadOnly && !own {
		return sqlerr.New(sqlerr.OptionPreventsStatement, "--read-only")
	}
	if s.trx.active && s.trx.readOnly && !own { // also if no row is found to change
		return txn.ErrReadOnly
	}
	s.x.DataChange, s.x.Ignore = !ignore, ignore
	c := &s.work.store
	c.Mode, c.Location, c.Today, c.Warn = s.x.Mode, s.x.Location, s.x.Today, s.x.Warn
	if ignore {
		c.Mode &^= types.ModeStrict
	}
	c.Row = 0
	return nil
}

// strict reports whether bad values are errors for the statement.
func (s *Session) strict() bool { return s.work.store.Mode&types.ModeStrict != 0 }

// plainText is the source type of text that has none of its own.
func plainText(t *types.Type) bool {
	return t != nil && t.Kind == types.KindVarChar && t.Collation == types.CollationNone
}

// toColumn converts a value of a new row to a column; NULL for the AUTO_INCREMENT column
// asks for a number. See columnValue.
func (s *Session) toColumn(i *tableInfo, p int, v types.Value, from *types.Type, lenient bool) (types.Value, error) {
	if v.IsNull() && p == i.auto {
		return types.Null, nil
	}
	return s.columnValue(i, p, v, from, lenient)
}

// columnValue converts a value to a column. lenient says that NULL for a NOT NULL column is
// only a warning unless sql_mode is strict.
func (s *Session) columnValue(i *tableInfo, p int, v types.Value, from *types.Type, lenient bool) (types.Value, error) {
	col := &i.columns[p]
	if v.IsNull() {
		if !col.Type.NotNull {
			return types.Null, nil
		}
		err := sqlerr.New(sqlerr.BadNullError, col.Name)
		if !lenient || s.strict() {
			return types.Null, err
		}
		s.diag.warn(err)
		if col.Type.Kind == types.KindEnum {
			return types.NewUint(0), nil // the member that is none, not the first one
		}
		return catalog.ImplicitDefault(&col.Type), nil
	}
	if from != nil && plainText(from) {
		from = nil
	}
	s.work.store.Column = col.Name
	return s.work.store.Store(v, from, &col.Type)
}

// updateDefault is DEFAULT where a row that is there is changed: nothing makes up a value for an AUTO_INCREMENT column then.
func (s *Session) updateDefault(i *tableInfo, p int, row []types.Value) (types.Value, error) {
	if p == i.auto && i.columns[p].Type.NotNull {
		return catalog.ImplicitDefault(&i.columns[p].Type), nil
	}
	return s.rowDefault(i, p, row)
}

// rowDefault is what a column has that an INSERT does not name, in a row of which something
// is known, for defaults that read other columns; nil: nothing is.
func (s *Session) rowDefault(i *tableInfo, p int, row []types.Value) (types.Value, error) {
	col := &i.columns[p]
	switch col.def {
	case catalog.DefaultLiteral:
		return col.value, nil
	case catalog.DefaultNow:
		return currentTime(s.x.Now, s.x.Location, &col.Type), nil
	case catalog.DefaultExpr:
		if row == nil {
			row = make([]types.Value, len(i.columns))
		}
		v, err := col.expr.Value(&s.x, s.work.rowBatch(i, row), 0)
		if err != nil {
			return types.Null, err
		}
		return s.toColumn(i, p, v.Clone(), col.expr.Type(), false)
	case catalog.DefaultNull:
		return types.Null, nil
	}
	if p == i.auto || col.Hidden || col.generated != nil || !col.Type.NotNull {
		return types.Null, nil
	}
	if col.Type.Kind == types.KindEnum { // its first value is its default, whatever the sql_mode
		return catalog.ImplicitDefault(&col.Type), nil
	}
	err := sqlerr.New(sqlerr.NoDefaultForField, col.Name)
	if i.view != "" {
		err = sqlerr.New(sqlerr.NoDefaultForViewField, i.view)
	}
	if s.strict() {
		return types.Null, err
	}
	s.diag.warn(err)
	return catalog.ImplicitDefault(&col.Type), nil
}

// currentTime is CURRENT_TIMESTAMP in a column's type.
func currentTime(now time.Time, loc *time.Location, t *types.Type) types.Value {
	micros := now.UnixMicro()
	unit := int64(1)
	for range 6 - int(t.FSP) {
		unit *= 10
	}
	ts := types.Timestamp(micros - micros%unit)
	if t.Class() == types.ClassTimestamp {
		return types.NewTimestamp(ts)
	}
	if loc == nil {
		loc = time.UTC
	}
	d := ts.In(loc)
	if t.Class() == types.ClassDate {
		return types.NewDate(d.Truncate())
	}
	return types.NewDateTime(d)
}

// complete works out generated columns and checks constraints of a row, which is given by
// column position.
func (s *Session) completeRow(i *tableInfo, row []types.Value) error {
	if !i.evaluates() {
		return nil
	}
	b := s.work.rowBatch(i, row)
	for _, p := range i.generated {
		col := &i.columns[p]
		v, err := col.generated.Value(&s.x, b, 0)
		if err == nil {
			v, err = s.toColumn(i, p, v, col.generated.Type(), false)
		}
		if err != nil {
			return err
		}
		row[p] = v
		b.Vecs[p].Truncate(0)
		b.Vecs[p].Append(v)
	}
	for k := range i.checks {
		v, err := i.checks[k].expr.Value(&s.x, b, 0)
		if err != nil {
			return err
		}
		if err := i.checks[k].failed(v); err != nil {
			return err
		}
	}
	return nil
}

// isFalse reports whether a value is false as a condition.
func isFalse(v types.Value) bool {
	switch v.Class() {
	case types.ClassInt, types.ClassUint:
		return v.Uint() == 0
	case types.ClassDouble:
		return v.Double() == 0
	case types.ClassFloat:
		return v.Float() == 0
	case types.ClassDecimal:
		return v.Decimal().Sign() == 0
	case types.ClassBytes:
		f, _ := types.ParseDouble(v.Bytes())
		return f == 0
	}
	return false
}

// insertRow adds a complete row. upsert says that a row which has a key of it will be
// changed or deleted.
func (s *Session) insertRow(t *target, row []types.Value, upsert bool) error {
	if len(t.info.parents) > 0 && s.opt.foreignKeys {
		if err := s.checkParents(t, row, nil); err != nil {
			return err
		}
	}
	keepZero := s.opt.sqlMode&modeNoAutoValueOnZero != 0
	var err error
	if upsert {
		err = s.txn.Upsert(t.open, row, keepZero)
	} else {
		err = s.txn.Insert(t.open, row, keepZero)
	}
	if err != nil {
		return duplicateError(err, t.info, row)
	}
	s.trx.wrote = s.trx.wrote || !t.open.Temporary()
	return nil
}

// duplicateError gives a duplicate's error its text: the values of the key that the row
// has. The original error stays within it.
func duplicateError(err error, i *tableInfo, row []types.Value) error {
	return duplicateNamed(err, i, i.keys.Name, row)
}

// duplicateNamed is duplicateError for a table that has another name for who made the statement.
func duplicateNamed(err error, i *tableInfo, name string, row []types.Value) error {
	var d *table.DuplicateError
	if !errors.As(err, &d) {
		return err
	}
	var text []byte
	k := i.keys.Keys[d.Position]
	for n := range k.Parts {
		if n > 0 {
			text = append(text, '-')
		}
		p := &k.Parts[n]
		v := row[p.Column]
		switch {
		case v.IsNull():
			text = append(text, "NULL"...)
		case p.Prefix > 0 && v.Class() == types.ClassBytes:
			text = append(text, utf8Text(p.Type.Charset().Prefix(v.Bytes(), p.Prefix), p.Type)...)
		default:
			text = append(text, utf8Text(types.AppendText(nil, v, p.Type, nil), p.Type)...)
		}
	}
	if len(text) > 512 {
		text = text[:512]
	}
	return &rowError{sqlerr.New(sqlerr.DupEntry, strings.ToValidUTF8(string(text), "?"), name+"."+k.Name), d}
}

// rowError is an error for clients with the one that caused it.
type rowError struct {
	client *sqlerr.Error
	cause  error
}

func (e *rowError) Error() string   { return e.client.Error() }
func (e *rowError) Unwrap() []error { return []error{e.client, e.cause} }

// updateRow changes a row whose columns are known before and after. It works out what
// follows from the change: generated columns, ON UPDATE CURRENT_TIMESTAMP unless the
// column was assigned, checks and foreign keys. by is the change of which it is an action, nil for
// the statement's. changed is false if the row stays as it is.
func (s *Session) updateRow(t *target, key []byte, before, after []types.Value, assigned []bool, by *action) (changed bool, err error) {
	i := t.info
	if !differs(i, before, after) {
		return false, nil
	}
	for p := range i.columns {
		if i.columns[p].onUpdate && i.columns[p].DroppedIn == 0 && (assigned == nil || !assigned[p]) {
			after[p] = currentTime(s.x.Now, s.x.Location, &i.columns[p].Type)
		}
	}
	if err := s.completeRow(i, after); err != nil {
		return false, err
	}
	changes := s.work.changes[:0]
	for p := range i.columns {
		if i.columns[p].DroppedIn == 0 && !event.Identical(before[p], after[p]) {
			changes = append(changes, record.Change{Column: p, Value: after[p]})
		}
	}
	s.work.changes = changes
	if err := s.loadLinks(t); err != nil {
		return false, err
	}
	later := false // whether the parents are looked for when the actions are done
	if len(i.parents) > 0 && s.opt.foreignKeys {
		if err := s.checkParents(t, after, changes); err != nil {
			var e *sqlerr.Error
			if !errors.As(err, &e) || e.Number != sqlerr.NoReferencedRow2 {
				return false, err
			}
			var failed error
			if later, failed = s.inCircle(t, changes); failed != nil {
				return false, failed
			}
			if !later {
				return false, err
			}
		}
	}
	if len(t.links) > 0 {
		changes = append([]record.Change(nil), changes...) // cascades use the scratch
	}
	if changed, err = s.txn.Update(t.open, key, before, changes); err != nil {
		return false, duplicateError(err, i, after)
	}
	s.trx.wrote = s.trx.wrote || !t.open.Temporary()
	if err := s.loadLinks(t); err != nil {
		return changed, &changedError{err}
	}
	if len(t.links) > 0 && s.opt.foreignKeys {
		err = s.parentChanged(t, before, after, by)
	}
	if err == nil && later {
		err = s.checkParents(t, after, changes)
	}
	if err != nil {
		err = &changedError{err}
	}
	return changed, err
}

// changedError says that a row has been changed when its foreign keys refused: IGNORE
// cannot pass over it, since the change would stay.
type changedError struct{ err error }

func (e *changedError) Error() string { return e.err.Error() }
func (e *changedError) Unwrap() error { return e.err }

// passable reports whether IGNORE may pass over the row that an error is of.
func passable(err error) bool {
	var changed *changedError
	return !errors.As(err, &changed)
}

// differs reports whether two rows differ in a column.
func differs(i *tableInfo, a, b []types.Value) bool {
	for p := range i.columns {
		if i.columns[p].DroppedIn == 0 && !event.Identical(a[p], b[p]) {
			return true
		}
	}
	return false
}

// deleteRow deletes a row, whose columns are known. by is as of updateRow.
func (s *Session) deleteRow(t *target, key []byte, before []types.Value, by *action) error {
	if err := s.txn.Delete(t.open, key, before); err != nil {
		return err
	}
	s.trx.wrote = s.trx.wrote || !t.open.Temporary()
	if err := s.loadLinks(t); err != nil {
		return &changedError{err}
	}
	if len(t.links) > 0 && s.opt.foreignKeys {
		if err := s.parentChanged(t, before, nil, by); err != nil {
			return &changedError{err}
		}
	}
	return nil
}

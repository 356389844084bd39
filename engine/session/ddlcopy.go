package session

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// A rebuild copies the rows of a table into a new one. Two transaction sessions take part:
//
//	writer   makes the new table and fills it, in as many transactions as it takes: a
//	         single one would outgrow the log's limit for a transaction
//	holder   renames the old table out of the way and so has it for itself; reads it; at
//	         the end drops it and gives the new one its name, in one transaction
//
// The new table is made first: the holder's change of a name may lock a gap of the dictionary's
// indexes, and the writer would wait there for its own statement.
//
// Until the holder commits nobody sees any of it but the new table under a name that
// SHOW TABLES hides. If the session or the node fails in the middle that is what is left,
// and Manager.CleanUp drops it.

// tempPrefix begins the names of tables that are being made.
const tempPrefix = "#sql-"

// copyName is a name for a table that is made to take another one's place.
func (s *Session) copyName() string {
	return tempPrefix + strconv.FormatUint(s.id, 36) + "-" + strconv.FormatUint(s.env.Uint64(), 36)
}

// copyBytes is how much of rows, about, a transaction of the writer copies.
const copyBytes = 4 << 20

// rebuild replaces a table by one of another definition with the same rows, and returns
// their number.
//
// REQUIRES: the transaction has the table's definition for itself, and has changed nothing.
func (s *Session) rebuild(ctx context.Context, ch *catalog.Change, text []byte) (rows uint64, err error) {
	old, next := ch.Old, s.copyDefinition(ch)
	away := tempPrefix + "old-" + strings.TrimPrefix(next.Name, tempPrefix)
	w, err := s.m.opt.Backend.NewSession()
	if err != nil {
		return 0, err
	}
	w.Join(s.txn)
	var made *record.Table
	s.setHelpers([]*txn.Session{w})
	defer func() {
		s.setHelpers(nil) // nobody ends the cleaning up
		if err != nil {
			_ = w.Rollback()
			s.dropCopy(ctx, w, made)
		}
		_ = w.Close() // it has no transaction
	}()
	counted, err := s.nextAuto(old.ID)
	if err != nil {
		return 0, err
	}
	err = within(ctx, w, func() (err error) {
		made, err = s.makeCopy(w, next, counted)
		return err
	})
	if err != nil {
		made = nil
		return 0, err
	}
	// From here on the transaction has changed something, and is rolled back if this node stops
	// writing. Before, others may have changed rows.
	if _, err := s.txn.RenameTable(old.Schema, old.Name, old.Schema, away, nil); err != nil {
		return 0, err
	}
	auto, err := s.nextAuto(old.ID)
	if err != nil {
		return 0, err
	}
	if auto == counted {
		auto = 0 // the new table has it
	}
	if rows, err = s.copyRows(ctx, w, old.Schema, away, ch, made); err != nil {
		return 0, err
	}
	if _, err = s.txn.DropTable(old.Schema, away, nil); err != nil {
		return 0, err
	}
	return rows, s.takePlace(ctx, ch, made, auto, text)
}

// nextAuto is the next AUTO_INCREMENT value of a table.
func (s *Session) nextAuto(id uint64) (uint64, error) {
	h, err := s.eng.Catalog.OpenTableByID(s.txn.Trx(), id)
	if err != nil {
		return 0, err
	}
	defer h.Release()
	return h.Table().NextAuto(), nil
}

// dropCopy drops a new table that is not to take the old one's place, now or when its users are done.
func (s *Session) dropCopy(ctx context.Context, w *txn.Session, made *record.Table) {
	if made == nil {
		return
	}
	l := leftover{table: made.ID}
	if within(ctx, w, func() error { return dropLeftover(ctx, s.eng, w, l) }) != nil {
		s.m.leave(l)
	}
}

// takePlace gives a table that was made anew, and filled, the name of the one that it was made
// of, which is dropped, and what else waits for that. auto is the next AUTO_INCREMENT
// value at least.
func (s *Session) takePlace(ctx context.Context, ch *catalog.Change, made *record.Table, auto uint64, text []byte) error {
	final, keys := ch.Table, ch.Table.ForeignKeys
	if _, err := s.txn.RenameTable(made.Schema, made.Name, final.Schema, final.Name, s.logged(string(text))); err != nil {
		return err
	}
	moved := made.Clone()
	moved.Schema, moved.Name, moved.ForeignKeys = final.Schema, final.Name, keys
	if len(keys) > 0 || auto > 1 {
		err := s.edit(made.ID, func(t *record.Table) {
			t.ForeignKeys = keys
			keepAuto(t, auto)
		})
		if err != nil {
			return err
		}
	}
	if err := s.followChildren(ch, moved); err != nil {
		return err
	}
	return s.checkRows(ctx, ch, moved, false)
}

// copyDefinition is the definition of the table that is made anew, under a name of its own.
// It gets its foreign keys at the end: a writer of rows that have some opens the tables
// that they refer to, and that may be the one that somebody has for himself.
func (s *Session) copyDefinition(ch *catalog.Change) *record.Table {
	next := ch.Table.Clone()
	next.Name = s.copyName()
	next.ForeignKeys = nil
	return next
}

// makeCopy makes the new table.
func (s *Session) makeCopy(w *txn.Session, next *record.Table, auto uint64) (*record.Table, error) {
	keepAuto(next, auto)
	catalog.SetTimes(next, s.x.Now.UnixMicro(), 0)
	return w.CreateTable(next, nil)
}

// keepAuto lets a new table go on counting where the old one stands.
func keepAuto(t *record.Table, next uint64) {
	for i := range t.Columns {
		if !t.Columns[i].AutoIncrement {
			continue
		}
		asked, _ := strconv.ParseUint(t.Options[dict.OptionAutoIncrement], 10, 64)
		if next = max(next, asked); next > 1 {
			if t.Options == nil {
				t.Options = map[string]string{}
			}
			t.Options[dict.OptionAutoIncrement] = strconv.FormatUint(next, 10)
		}
	}
}

// within runs fn in a transaction of w.
func within(ctx context.Context, w *txn.Session, fn func() error) error {
	return withinAt(ctx, w, txn.BeginOptions{}, fn)
}

// withinAt is within with options of the transaction.
func withinAt(ctx context.Context, w *txn.Session, opt txn.BeginOptions, fn func() error) error {
	if err := w.Begin(opt); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return errors.Join(err, w.Rollback())
	}
	_, err := w.Commit(ctx)
	return err
}

// copyRows copies the rows of a table that the session's transaction has for itself.
func (s *Session) copyRows(ctx context.Context, w *txn.Session, schema, name string, ch *catalog.Change, to *record.Table) (rows uint64, err error) {
	s.setState("copy to tmp table")
	defer s.setState("")
	from, err := s.txn.Open(schema, name)
	if err != nil {
		return 0, err
	}
	c, err := s.newCopier(w, from.Definition(), to, ch.Old.Name, false)
	if err != nil {
		return 0, err
	}
	return c.all(ctx, s.txn, from)
}

// all copies the rows of a table that a session's transaction sees, and returns their number.
func (c *copier) all(ctx context.Context, of *txn.Session, from *txn.Table) (rows uint64, err error) {
	s := c.s
	scan := of.NewScan()
	if err := scan.Start(from, table.Range{Columns: c.source}); err != nil {
		return 0, err
	}
	for more := true; more; {
		c.batch.Reset()
		if more, err = scan.Next(c.batch); err != nil {
			return rows, err
		}
		if err := s.interrupted(); err != nil {
			return rows, err
		}
		if err := c.copy(ctx); err != nil {
			return rows, err
		}
		rows += uint64(c.batch.Len())
	}
	return rows, c.flush(ctx)
}

// copier copies rows from one definition to another.
type copier struct {
	s      *Session
	w      *txn.Session
	to     *record.Table
	name   string     // of the table that the rows are of, for messages
	open   *txn.Table // in the writer's transaction; nil without one
	info   *tableInfo
	source []int // positions in the old definition
	target []int // of each, the position in the new one
	fresh  []int // positions in the new one that the old one lacks
	types  []*types.Type
	batch  *types.Batch
	bytes  int
	rows   int64
	own    bool // of temporary tables, in the session's own transaction, which is not the copier's to end
}

func (s *Session) newCopier(w *txn.Session, from, to *record.Table, name string, own bool) (*copier, error) {
	if err := s.beginChange(false, own); err != nil {
		return nil, err
	}
	c := &copier{s: s, w: w, to: to, name: name, own: own}
	for p := range to.Columns {
		col := &to.Columns[p]
		old := -1
		for i := range from.Columns {
			if o := &from.Columns[i]; o.ID == col.ID && o.DroppedIn == 0 && o.Name != dict.HiddenColumn && col.Name != dict.HiddenColumn {
				old = i
			}
		}
		switch {
		case col.Generated != "" || col.Name == dict.HiddenColumn:
		case old < 0:
			c.fresh = append(c.fresh, p)
		default:
			c.source, c.target = append(c.source, old), append(c.target, p)
			c.types = append(c.types, &from.Columns[old].Type)
		}
	}
	c.batch = types.NewBatch(c.types)
	return c, nil
}

// copy copies the rows of the batch.
func (c *copier) copy(ctx context.Context) error {
	return c.each(ctx, func(row []types.Value) error {
		return duplicateNamed(c.w.Insert(c.open, row, true), c.info, c.name, row)
	})
}

// remove takes the copies of the batch's rows away.
func (c *copier) remove(ctx context.Context) error {
	return c.each(ctx, func(row []types.Value) error {
		key, err := c.open.Table().Schema.AppendRowKey(nil, row)
		if err != nil {
			return err
		}
		return c.w.Delete(c.open, key, nil)
	})
}

// each calls fn with the batch's rows as the new table has them, in transactions of the
// writer, which are committed when they have become large.
func (c *copier) each(ctx context.Context, fn func(row []types.Value) error) error {
	row := make([]types.Value, len(c.to.Columns))
	for i := range c.batch.Len() {
		if err := c.begin(); err != nil {
			return err
		}
		c.rows++
		err := c.row(row, i)
		if err == nil {
			err = fn(row)
		}
		if err == nil && c.bytes > copyBytes {
			err = c.flush(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin begins a transaction of the writer if it has none.
func (c *copier) begin() error {
	if c.open != nil {
		return nil
	}
	if err := c.w.Begin(txn.BeginOptions{}); err != nil {
		return err
	}
	open, err := c.w.Open(c.to.Schema, c.to.Name)
	if err != nil {
		return err
	}
	c.info, err = c.s.m.tableInfo(open.Table().Schema)
	c.open = open
	return err
}

// row makes a row of the new table of one of the batch.
func (c *copier) row(row []types.Value, i int) error {
	s := c.s
	clear(row)
	s.work.store.Reset()
	s.work.store.Row = c.rows
	for k, p := range c.target {
		v := c.batch.Vecs[k].Value(i)
		col := &c.info.columns[p]
		if v.IsNull() && col.Type.NotNull && !col.AutoIncrement {
			if s.strict() {
				return sqlerr.New(sqlerr.InvalidUseOfNull)
			}
			s.diag.warn(sqlerr.New(sqlerr.WarnDataTruncated, col.Name, c.rows))
			row[p] = catalog.ImplicitDefault(&col.Type)
			continue
		}
		var err error
		if !c.types[k].Equal(&col.Type) {
			v, err = s.toColumn(c.info, p, v, c.types[k], false)
		}
		if err != nil {
			return err
		}
		row[p] = v
		c.bytes += 16 + len(v.Bytes())
	}
	for _, p := range c.fresh {
		var err error
		if row[p], err = c.freshValue(p, row); err != nil {
			return err
		}
	}
	return s.completeRow(c.info, row)
}

// freshValue is what a column has that the old table lacks.
func (c *copier) freshValue(p int, row []types.Value) (types.Value, error) {
	col := &c.info.columns[p]
	if col.def == catalog.DefaultNone && !col.AutoIncrement {
		return catalog.ImplicitDefault(&col.Type), nil
	}
	return c.s.rowDefault(c.info, p, row)
}

// flush commits what has been copied.
func (c *copier) flush(ctx context.Context) error {
	if c.open == nil || c.own {
		return nil
	}
	c.open, c.bytes = nil, 0
	_, err := c.w.Commit(ctx)
	return err
}

// duplicateOf returns the duplicate within an error, or nil.
func duplicateOf(err error) *table.DuplicateError {
	var d *table.DuplicateError
	if errors.As(err, &d) {
		return d
	}
	return nil
}

// utf8Text gives a value's text as UTF-8, as messages have it.
func utf8Text(text []byte, t *types.Type) []byte {
	if cs := t.Charset(); (t.IsText() || t.Kind == types.KindEnum || t.Kind == types.KindSet) && !cs.IsUTF8() && cs != types.CharsetBinary {
		text, _ = types.Convert(nil, text, cs, types.CharsetUTF8MB4)
	}
	return text
}

// duplicateText is the value of a key that two rows have, as messages show it.
func duplicateText(t *record.Table, d *table.DuplicateError) string {
	keys, err := record.Prepare(t)
	if err != nil || d.Position >= len(keys.Keys) {
		return "?"
	}
	var parts []string
	rest := d.Key
	for i := range keys.Keys[d.Position].Parts {
		p := &keys.Keys[d.Position].Parts[i]
		v, after, _, err := types.DecodeKey(rest, p.Type, p.Desc, p.Prefix, nil)
		if err != nil {
			parts = append(parts, fmt.Sprintf("%x", rest))
			break
		}
		text := "NULL"
		if !v.IsNull() {
			text = string(utf8Text(types.AppendText(nil, v, p.Type, nil), p.Type))
		}
		if !utf8.ValidString(text) {
			text = strings.ToValidUTF8(text, "?")
		}
		parts, rest = append(parts, text), after
	}
	return strings.Join(parts, "-")
}

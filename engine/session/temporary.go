package session

import (
	"context"
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
)

// Temporary tables (CREATE TEMPORARY TABLE) belong to the session: a name in its statements stands for one of them first, but in a
// view's text, in foreign keys and where a definition of everybody's is changed. To make and drop one is no part of a transaction,
// and needs no more than CREATE TEMPORARY TABLES; with what it has made a session may do anything. How rows are kept is
// package txn's.

// hasTemporaries reports whether the session has temporary tables.
func (s *Session) hasTemporaries() bool { return s.txn != nil && s.txn.HasTemporaries() }

// isTemporary reports whether a name stands for a temporary table of the session; without a schema it is of the current one.
func (s *Session) isTemporary(schema, name string) bool { return s.temporaryTable(schema, name) != nil }

// temporaryTable is the temporary table that a name stands for, nil if it is none.
func (s *Session) temporaryTable(schema, name string) *table.Table {
	if s.txn == nil {
		return nil
	}
	if schema == "" {
		schema = s.schema
	}
	return s.txn.TemporaryTable(schema, name)
}

// ownUse reports whether a statement uses a temporary table of the session.
func (s *Session) ownUse(u *plan.Use) bool { return u.View == "" && s.isTemporary(u.Schema, u.Table) }

// changesOwn reports whether a statement, whose tables are open, changes rows of temporary tables alone.
func (s *Session) changesOwn(c *compiled) bool {
	if c.insert != nil {
		return s.work.open[c.insert.table].Temporary()
	}
	if c.change == nil || !s.hasTemporaries() {
		return false
	}
	for i := range c.change.targets {
		if !s.work.open[c.change.targets[i].table].Temporary() {
			return false
		}
	}
	return true
}

// locksOwn reports whether what a query locks are rows of temporary tables alone.
func (s *Session) locksOwn(c *compiled) bool {
	for i := range c.uses {
		if c.uses[i].Locked && !s.ownUse(&c.uses[i]) {
			return false
		}
	}
	return s.hasTemporaries()
}

// runTemporaryDDL runs a statement about definitions if it is one about temporary tables alone; else done is false.
func (s *Session) runTemporaryDDL(ctx context.Context, st ast.Statement) (done bool, out Outcome, err error) {
	switch st := st.(type) {
	case *ast.CreateTable:
		if st.Temporary {
			out, err = s.createTemporary(ctx, st)
		}
		return st.Temporary, out, err
	case *ast.DropTable:
		done, err = s.dropTemporaries(ctx, st)
		return done, out, err
	case *ast.Truncate:
		if s.isTemporary(st.Table.Schema, st.Table.Name) {
			return true, out, s.truncateTemporary(ctx, st)
		}
		return false, out, nil
	}
	if a := alteration(st); a != nil && s.isTemporary(a.Table.Schema, a.Table.Name) {
		out.AffectedRows, err = s.alterTemporary(ctx, a)
		s.warnKept(a, err)
		return true, out, err
	}
	return false, out, nil
}

// createTemporary is CREATE TEMPORARY TABLE.
func (s *Session) createTemporary(ctx context.Context, st *ast.CreateTable) (out Outcome, err error) {
	schema, name, err := s.tableName(st.Table)
	if err != nil {
		return out, err
	}
	if err := s.privileges().Schema(schema, priv.CreateTemporaryTables); err != nil {
		return out, err
	}
	if s.trx.active && s.trx.readOnly {
		return out, txn.ErrReadOnly
	}
	if st.Like != nil && st.Like.Name == name && (st.Like.Schema == "" && schema == s.schema || st.Like.Schema == schema) {
		return out, sqlerr.New(sqlerr.NonUniqTable, name)
	}
	if s.isTemporary(schema, name) {
		exists := sqlerr.New(sqlerr.TableExistsError, name)
		if !st.IfNotExists {
			return out, exists
		}
		s.note(exists)
		return out, nil
	}
	if err := s.pointDefinitions(); err != nil {
		return out, err
	}
	err = s.besides(ctx, func() (err error) {
		out.AffectedRows, err = s.define(ctx, schema, st)
		return err
	})
	if err != nil && s.isTemporary(schema, name) {
		_ = s.txn.DropTemporary(schema, name) // it has failed if the engine has, with all that is in it
	}
	return out, err
}

// besides runs fn, whose statements are part of the transaction that goes on, or of one that ends with it.
func (s *Session) besides(ctx context.Context, fn func() error) error {
	err := s.beginWork()
	multi := s.trx.multi
	if err == nil {
		err = fn()
	}
	s.trx.multi = multi
	switch {
	case s.trx.begun:
		return s.endWork(ctx, err, false)
	case multi || !s.trx.active: // its last statement has ended
		return err
	case err != nil:
		return s.abandon(err)
	}
	return s.commit(ctx)
}

// makeTemporary makes a temporary table. Error besides: 1215, it has foreign keys.
func (s *Session) makeTemporary(def *record.Table) error {
	if len(def.ForeignKeys) > 0 {
		return sqlerr.New(sqlerr.CannotAddForeign)
	}
	catalog.SetTimes(def, s.x.Now.UnixMicro(), 0)
	return s.txn.CreateTemporary(def, s.disk.Take)
}

// dropTemporaries is DROP TEMPORARY TABLE, and DROP TABLE of names that all stand for temporary tables, which commits as others do.
func (s *Session) dropTemporaries(ctx context.Context, st *ast.DropTable) (done bool, err error) {
	own, others, err := s.dropped(st)
	if err != nil {
		return true, err
	}
	var missing []string
	for _, n := range others {
		missing = append(missing, n.Schema+"."+n.Table)
	}
	switch {
	case !st.Temporary && len(missing) > 0:
		return false, nil
	case !st.Temporary:
		if err := s.implicitCommit(ctx); err != nil {
			return true, err
		}
	case s.trx.active && s.trx.readOnly:
		return true, txn.ErrReadOnly
	case len(missing) > 0 && !st.IfExists:
		return true, sqlerr.New(sqlerr.BadTableError, strings.Join(missing, ","))
	}
	for _, n := range missing {
		s.note(sqlerr.New(sqlerr.BadTableError, n))
	}
	return true, s.dropOwn(own)
}

// dropped are the names of a DROP TABLE, those of temporary tables of the session apart. Errors besides those of tableName: 1066.
func (s *Session) dropped(st *ast.DropTable) (own, others []txn.Name, err error) {
	for _, t := range st.Tables {
		schema, table, err := s.tableName(t)
		if err != nil {
			return nil, nil, err
		}
		n := txn.Name{Schema: schema, Table: table}
		switch {
		case slices.Contains(own, n) || slices.Contains(others, n):
			return nil, nil, sqlerr.New(sqlerr.NonUniqTable, table)
		case s.isTemporary(schema, table):
			own = append(own, n)
		default:
			others = append(others, n)
		}
	}
	return own, others, nil
}

// dropOwn drops temporary tables.
func (s *Session) dropOwn(names []txn.Name) error {
	for _, n := range names {
		if err := s.txn.DropTemporary(n.Schema, n.Table); err != nil {
			return err
		}
	}
	return nil
}

// truncateTemporary is TRUNCATE TABLE: an empty table takes the place of the one that is there.
func (s *Session) truncateTemporary(ctx context.Context, st *ast.Truncate) error {
	if err := s.implicitCommit(ctx); err != nil {
		return err
	}
	schema, name, err := s.tableName(st.Table)
	if err != nil {
		return err
	}
	next := catalog.Fresh(s.temporaryTable(schema, name).Schema.Table)
	next.Schema, next.Name = schema, s.copyName()
	if err := s.makeTemporary(next); err != nil {
		return err
	}
	return s.txn.MoveTemporary(txn.Name{Schema: schema, Table: next.Name}, txn.Name{Schema: schema, Table: name})
}

// alterTemporary is ALTER TABLE, CREATE INDEX and DROP INDEX: but for another name alone, the rows are copied into a table of the new
// definition, which takes the place of the one that is there.
func (s *Session) alterTemporary(ctx context.Context, st *ast.AlterTable) (rows uint64, err error) {
	specs := st.Specs
	if a := strings.ToUpper(st.Algorithm); a == "INPLACE" || a == "INSTANT" {
		return 0, sqlerr.New(sqlerr.AlterOperationNotSupported, "ALGORITHM="+a, "ALGORITHM=COPY")
	}
	schema, name, err := s.tableName(st.Table)
	if err != nil {
		return 0, err
	}
	if err := s.implicitCommit(ctx); err != nil {
		return 0, err
	}
	from := txn.Name{Schema: schema, Table: name}
	var made, final txn.Name
	err = s.ownTransaction(ctx, func() error {
		old := s.temporaryTable(schema, name)
		env, err := s.definitionEnv(schema)
		if err != nil {
			return err
		}
		ch, err := catalog.Alter(env, old.Schema.Table, append(specs[:len(specs):len(specs)], &ast.Force{}))
		if err != nil {
			return err
		}
		final = txn.Name{Schema: ch.Table.Schema, Table: ch.Table.Name}
		if final.Schema != schema {
			if err := s.mayMoveTo(final.Schema); err != nil {
				return err
			}
		}
		if final != from && s.isTemporary(final.Schema, final.Table) {
			return sqlerr.New(sqlerr.TableExistsError, final.Table)
		}
		if renames(specs) {
			made = from
			return nil
		}
		if len(ch.Table.ForeignKeys) > 0 {
			return sqlerr.New(sqlerr.CannotAddForeign)
		}
		next := s.copyDefinition(ch)
		next.Schema = schema
		keepAuto(next, old.NextAuto())
		if err := s.makeTemporary(next); err != nil {
			return err
		}
		made = txn.Name{Schema: schema, Table: next.Name}
		if rows, err = s.copyTemporary(ctx, from, made, ch); err != nil {
			return err
		}
		return s.checkRows(ctx, ch, next, false)
	})
	if err != nil {
		if made != from && made.Table != "" {
			_ = s.txn.DropTemporary(made.Schema, made.Table)
		}
		return 0, err
	}
	if err := s.txn.MoveTemporary(made, final); err != nil {
		return 0, err
	}
	if final != from && made != from {
		err = s.txn.DropTemporary(schema, name)
	}
	return rows, err
}

// mayMoveTo asks whether the session may have temporary tables in a schema. Errors: 1044, 1049.
func (s *Session) mayMoveTo(schema string) error {
	if known, ok := virtualSchema(schema); ok {
		return s.deniedSchema(known)
	}
	if err := s.privileges().Schema(schema, priv.CreateTemporaryTables); err != nil {
		return err
	}
	_, err := s.eng.Catalog.FindSchema(s.txn.Trx(), schema)
	return err
}

// renames reports whether an ALTER TABLE gives another name and does nothing else.
func renames(specs []ast.AlterSpec) bool {
	for _, spec := range specs {
		if _, ok := spec.(*ast.RenameTo); !ok {
			return false
		}
	}
	return len(specs) > 0
}

// ownTransaction runs fn in a transaction in which temporary tables alone are changed.
func (s *Session) ownTransaction(ctx context.Context, fn func() error) error {
	if err := s.begin(ast.AccessReadWrite); err != nil {
		return err
	}
	if err := fn(); err != nil {
		if !s.txn.InTransaction() {
			return s.lost(err)
		}
		return s.abandon(err)
	}
	return s.commit(ctx)
}

// copyTemporary copies the rows of a temporary table into another one.
func (s *Session) copyTemporary(ctx context.Context, from, to txn.Name, ch *catalog.Change) (uint64, error) {
	source, err := s.txn.OpenTemporary(from.Schema, from.Table)
	if err != nil {
		return 0, err
	}
	open, err := s.txn.OpenTemporary(to.Schema, to.Table)
	if err != nil {
		return 0, err
	}
	c, err := s.newCopier(s.txn, source.Definition(), open.Definition(), ch.Old.Name, true)
	if err != nil {
		return 0, err
	}
	if c.info, err = s.m.tableInfo(open.Table().Schema); err != nil {
		return 0, err
	}
	c.open = open
	return c.all(ctx, s.txn, source)
}

// forgetTemporaries drops all temporary tables of the session: COM_RESET_CONNECTION, COM_CHANGE_USER.
func (s *Session) forgetTemporaries() {
	if s.hasTemporaries() {
		_ = s.txn.DropTemporaries() // what cannot be dropped goes with the process; nobody finds it
	}
}

// createTemporaryText is SHOW CREATE TABLE of a temporary table.
func createTemporaryText(def *record.Table, nextAuto uint64) string {
	return "CREATE TEMPORARY " + strings.TrimPrefix(catalog.ShowCreateTable(def, nextAuto), "CREATE ")
}

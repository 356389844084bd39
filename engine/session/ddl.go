package session

import (
	"context"
	"errors"
	"strings"

	"github.com/triremedb/trireme/engine/binlog/event"
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/expr"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/lock"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// runDDL runs a statement that changes definitions. It ends the transaction before and
// makes its own (see inTransaction).
func (s *Session) runDDL(st ast.Statement) (out Outcome, err error) {
	if done, out, err := s.runTemporaryDDL(s.out.ctx, st); done {
		return out, err
	}
	if s.info.ReadOnly {
		return out, sqlerr.New(sqlerr.OptionPreventsStatement, "--read-only")
	}
	if err := s.mayDefine(s.out.ctx); err != nil {
		return out, err
	}
	if err := s.ask(); err != nil { // before anything is refused because of an old account
		return out, err
	}
	if s.trx.tables.held {
		next, refused := s.trx.tables.after(s, st)
		if refused != nil {
			return out, refused
		}
		done, refused := s.trx.tables.follow(s, next)
		if refused != nil {
			return out, refused
		}
		defer func() { done(err == nil) }()
	}
	for {
		out, err = s.runDDLOnce(s.out.ctx, st)
		if s.metAnother(st, err) {
			s.diag.reset()
			continue
		}
		watched := (*txn.WatchedError)(nil)
		if !errors.As(err, &watched) {
			return out, err
		}
		// It was rolled back, so as to wait without locks.
		s.diag.reset()
		if err := s.inTransaction(s.out.ctx, func() error { return s.txn.AwaitUnwatched(watched.Name) }); err != nil {
			return out, err
		}
	}
}

// metAnother reports whether a statement was rolled back, whole, because it and others that change definitions
// waited for each other in a circle: it is tried again, as MySQL does. ALTER TABLE, which may have done a part, sees to that itself.
func (s *Session) metAnother(st ast.Statement, err error) bool {
	switch st.(type) {
	case *ast.AlterTable, *ast.CreateIndex, *ast.DropIndex:
		return false
	}
	rows := (*lock.DeadlockError)(nil)
	return s.beginsAgain(err) && !errors.As(err, &rows)
}

// runDDLOnce is a try of it. Error besides: *txn.WatchedError, nothing was done.
func (s *Session) runDDLOnce(ctx context.Context, st ast.Statement) (out Outcome, err error) {
	s.foresees = true
	switch st := st.(type) {
	case *ast.CreateSchema:
		return s.createSchema(ctx, st)
	case *ast.AlterSchema:
		return s.alterSchema(ctx, st)
	case *ast.DropSchema:
		return s.dropSchema(ctx, st)
	case *ast.CreateTable:
		return s.createTable(ctx, st)
	case *ast.AlterTable, *ast.CreateIndex, *ast.DropIndex:
		a := alteration(st)
		out, err = s.alterTable(ctx, st, a.Table, a.Specs, a.Algorithm, a.Lock)
		s.warnKept(a, err)
		return out, err
	case *ast.DropTable:
		return out, s.dropTables(ctx, st)
	case *ast.Truncate:
		return out, s.truncate(ctx, st)
	case *ast.RenameTables:
		return out, s.renameTables(ctx, st)
	case *ast.CreateView:
		return out, s.createView(ctx, st)
	case *ast.DropView:
		return out, s.dropViews(ctx, st)
	}
	return out, unknownStatement(st)
}

// alteration is a statement as the ALTER TABLE that it is, nil if it is none.
func alteration(st ast.Statement) *ast.AlterTable {
	switch st := st.(type) {
	case *ast.AlterTable:
		return st
	case *ast.CreateIndex:
		return &ast.AlterTable{Table: st.Table, Specs: []ast.AlterSpec{&ast.AddIndex{Index: st.Index}}, Algorithm: st.Algorithm, Lock: st.Lock}
	case *ast.DropIndex:
		specs := []ast.AlterSpec{&ast.DropIndexSpec{Name: st.Name, IfExists: st.IfExists}}
		return &ast.AlterTable{Table: st.Table, Specs: specs, Algorithm: st.Algorithm, Lock: st.Lock}
	}
	return nil
}

// warnKept warns of what an ALTER TABLE, which has ended with err, asks for in vain.
func (s *Session) warnKept(a *ast.AlterTable, err error) {
	if err == nil && a.Validation == "WITHOUT" {
		s.diag.warn(catalog.KeptOnly("WITHOUT VALIDATION"))
	}
}

// logged is a statement for consumers of the log.
func (s *Session) logged(text string) *event.Query {
	collation := uint16(s.x.Collation)
	return &event.Query{Schema: s.schema, Text: []byte(text), ThreadID: uint32(s.id), SQLMode: s.opt.sqlMode, Client: 255, Connection: collation, Server: 255}
}

// textOf is a statement's text for the log.
func (s *Session) textOf(st ast.Statement) *event.Query {
	return s.logged(strings.TrimSpace(st.Text()))
}

// note adds a note to the diagnostics.
func (s *Session) note(e *sqlerr.Error) { s.diag.note(e) }

// tableName resolves the name of a table that a statement is to change. Errors: 1046,
// 1044 of schemas that are made up.
func (s *Session) tableName(n ast.TableName) (schema, name string, err error) {
	schema = n.Schema
	if schema == "" {
		schema = s.schema
	}
	if schema == "" {
		return "", "", sqlerr.New(sqlerr.NoDBError)
	}
	if known, ok := virtualSchema(schema); ok {
		return "", "", s.deniedSchema(known)
	}
	if madeOf(schema, n.Name) != nil {
		return "", "", s.deniedSchema(schema)
	}
	return schema, n.Name, nil
}

func (s *Session) deniedSchema(schema string) error {
	id := s.accountID()
	return sqlerr.New(sqlerr.DBAccessDeniedError, id.Name, id.Host, schema)
}

// definition is the definition of a table as the transaction sees it, which holds it until
// it ends; nil if there is none.
func (s *Session) definition(schema, name string) (*record.Table, error) {
	t, err := s.txn.Open(schema, name)
	switch {
	case err == nil:
		return t.Definition(), nil
	case errors.Is(err, table.ErrNoTable) || errorNumber(err) == sqlerr.NoSuchTable ||
		errorNumber(err) == sqlerr.BadDBError:
		return nil, nil
	}
	return nil, err
}

// baseTable is definition of a table that must exist and be no view.
func (s *Session) baseTable(schema, name string) (*record.Table, error) {
	def, err := s.definition(schema, name)
	switch {
	case err != nil:
		return nil, err
	case def == nil:
		return nil, sqlerr.New(sqlerr.NoSuchTable, schema, name)
	case catalog.IsView(def):
		return nil, sqlerr.New(sqlerr.WrongObject, schema, name, "BASE TABLE")
	}
	return def, nil
}

// definitionEnv is what definitions depend on.
func (s *Session) definitionEnv(schema string) (*catalog.Env, error) {
	of, err := s.eng.Catalog.FindSchema(s.txn.Trx(), schema)
	if err != nil {
		return nil, err
	}
	strict := s.x.Mode&types.ModeStrict != 0
	env := &catalog.Env{Collation: of.Collation, Strict: strict, NoEngineSubstitution: s.opt.sqlMode&modeNoEngineSubstitution != 0, InnoDBOnly: s.value(varInnoDBOnly).n != 0,
		ForeignKeyChecks: s.opt.foreignKeys, Typer: typer{s}, Now: types.Timestamp(s.x.Now.UnixMicro()),
		Types: &types.Context{Mode: s.x.Mode, Location: s.x.Location, Today: s.x.Today}, Warn: s.diag.add,
		Table: func(schema, name string) (*record.Table, error) {
			if err := s.privileges().Table(schema, name, priv.References, "REFERENCES"); err != nil {
				return nil, err
			}
			return s.definition(schema, name)
		}}
	env.RequirePrimaryKey = s.value(varRequireKey).n != 0
	env.LaxOptions = s.value(varStrictOptions).n == 0
	if of.Collation == 0 {
		env.Collation = types.CollationUTF8MB40900AI
	}
	return env, nil
}

// typer binds the expressions of definitions.
type typer struct{ s *Session }

func (t typer) bind(e ast.Expr, of *record.Table) (expr.Node, error) {
	scope := &definitionScope{columnScope: columnScope{keys: &record.Schema{Table: of}}}
	scope.Opt = t.s.bindOptions(nil)
	return expr.Bind(scope, e)
}

func (t typer) Check(e ast.Expr, of *record.Table) error {
	_, err := t.bind(e, of)
	return err
}

func (t typer) TypeOf(e ast.Expr, of *record.Table) (*types.Type, error) {
	n, err := t.bind(e, of)
	if err != nil {
		return nil, err
	}
	if varies(n) {
		return nil, sqlerr.Newf(sqlerr.GeneratedColumnNamedFunctionIsNotAllowed, "Expression of generated column "+
			"'%s' contains a disallowed function.", catalog.ExprText(e))
	}
	c := columnTypeOf(n.Type())
	return &c, nil
}

// varies reports whether an expression depends on more than the row: the time, the
// session, chance.
func varies(n expr.Node) bool {
	if _, column := n.(*expr.Column); !column {
		if own, ok := n.(interface{ Volatility() expr.Volatility }); ok && own.Volatility() != expr.Pure {
			return true
		}
	}
	for _, c := range n.Children() {
		if varies(c) {
			return true
		}
	}
	return false
}

func (t typer) Constant(e ast.Expr, to *types.Type) (types.Value, error) {
	n, err := expr.Bind(t.s.scope(), e)
	if err != nil {
		return types.Null, err
	}
	v, err := n.Value(&t.s.x, nil, 0)
	if err != nil {
		return types.Null, err
	}
	store := types.Context{Mode: t.s.x.Mode | types.ModeStrict, Location: t.s.x.Location, Today: t.s.x.Today}
	v, err = store.Store(v, n.Type(), to)
	return v.Clone(), err
}

// definitionScope is columnScope for expressions of definitions.
type definitionScope struct{ columnScope }

// columnTypeOf is the type of a column that has the values of an expression.
func columnTypeOf(t *types.Type) types.Type {
	c := *t
	switch {
	case c.Kind == types.KindNull:
		return types.Type{Kind: types.KindBinary, Collation: types.CollationBinary}
	case c.IsInteger():
		c.Length = 0
		if c.Kind == types.KindTinyInt && t.Length == 1 {
			c.Length = 1
		}
	case c.Kind == types.KindDecimal:
		whole := max(c.Precision, c.Scale) - c.Scale
		c.Scale = min(c.Scale, types.MaxDecimalScale)
		c.Precision = min(max(whole+c.Scale, 1), types.MaxDecimalPrecision)
	case (c.Kind == types.KindFloat || c.Kind == types.KindDouble) && c.Scale >= 31:
		c.Precision, c.Scale = 0, 0
	}
	if (c.IsText() || c.Kind == types.KindEnum || c.Kind == types.KindSet) && c.Collation == types.CollationNone {
		c.Collation = types.CollationUTF8MB40900AI
	}
	switch {
	case c.Kind == types.KindChar && c.Length > types.MaxCharLength:
		c.Kind = types.KindVarChar
	case c.Kind == types.KindBinary && c.Length > types.MaxCharLength:
		c.Kind = types.KindVarBinary
	}
	if limit := uint32(types.MaxVarLength / max(c.Charset().MaxLen(), 1)); c.Kind == types.KindVarChar && c.Length > limit {
		c.Kind, c.Length = types.KindLongText, 0
	} else if c.Kind == types.KindVarBinary && c.Length > types.MaxVarLength {
		c.Kind, c.Length = types.KindLongBlob, 0
	}
	if c.IsBlob() {
		c.Collation = types.CollationBinary
	}
	return c
}

// createSchema is CREATE DATABASE.
func (s *Session) createSchema(ctx context.Context, st *ast.CreateSchema) (out Outcome, err error) {
	if err := catalog.CheckName(st.Name, sqlerr.WrongDBName); err != nil {
		return out, err
	}
	if known, ok := virtualSchema(st.Name); ok {
		return out, s.deniedSchema(known)
	}
	if err := s.privileges().Schema(st.Name, priv.Create); err != nil {
		return out, err
	}
	if err := schemaEncryption(st.Encryption); err != nil {
		return out, err
	}
	base := types.CollationID(s.collationVariable("collation_server"))
	made := dict.Schema{Name: st.Name}
	if made.Collation, err = catalog.Collation(st.Charset, st.Collate, base); err != nil {
		return out, err
	}
	err = s.inTransaction(ctx, func() error {
		_, err := s.txn.CreateSchema(made, s.textOf(st))
		return err
	})
	out.AffectedRows = 1
	if errorNumber(err) == sqlerr.DBCreateExists {
		exists := sqlerr.New(sqlerr.DBCreateExists, st.Name)
		if !st.IfNotExists {
			return Outcome{}, exists
		}
		s.note(exists)
		err = nil
	}
	return out, err
}

// schemaEncryption checks what ENCRYPTION of a schema asks for.
func schemaEncryption(value string) error {
	if value == "" || value == "N" || value == "Y" {
		if value == "Y" {
			return catalog.Encryption(value)
		}
		return nil
	}
	return sqlerr.New(sqlerr.WrongValue, "argument (should be Y or N)", value)
}

// collationVariable is the number of the collation that a variable names.
func (s *Session) collationVariable(name string) types.CollationID {
	if v := variables[name]; v != nil {
		if c := types.CollationByName(v.text(s.value(v))); c != nil {
			return c.ID()
		}
	}
	return types.CollationUTF8MB40900AI
}

// alterSchema is ALTER DATABASE.
func (s *Session) alterSchema(ctx context.Context, st *ast.AlterSchema) (out Outcome, err error) {
	name := st.Name
	if name == "" {
		name = s.schema
	}
	if name == "" {
		return out, sqlerr.New(sqlerr.NoDBError)
	}
	if known, ok := virtualSchema(name); ok {
		return out, s.deniedSchema(known)
	}
	if err := s.privileges().Schema(name, priv.Alter); err != nil {
		return out, err
	}
	if err := schemaEncryption(st.Encryption); err != nil {
		return out, err
	}
	var next dict.Schema
	err = s.inTransaction(ctx, func() error {
		old, err := s.eng.Catalog.FindSchema(s.txn.Trx(), name)
		if err != nil {
			return err
		}
		next = dict.Schema{Name: name, Collation: old.Collation, Options: map[string]string{}}
		for k, v := range old.Options {
			next.Options[k] = v
		}
		if next.Collation, err = catalog.Collation(st.Charset, st.Collate, old.Collation); err != nil {
			return err
		}
		return s.txn.AlterSchema(next, s.textOf(st))
	})
	if err == nil && name == s.schema {
		s.setSchemaCollation(next.Collation)
	}
	out.AffectedRows = 1
	return out, err
}

// dropSchema is DROP DATABASE: its tables go with it.
func (s *Session) dropSchema(ctx context.Context, st *ast.DropSchema) (out Outcome, err error) {
	if known, ok := virtualSchema(st.Name); ok {
		return out, s.deniedSchema(known)
	}
	if err := s.privileges().Schema(st.Name, priv.Drop); err != nil {
		return out, err
	}
	if st.Name == priv.Schema {
		return out, sqlerr.New(sqlerr.NoSystemSchemaAccess, st.Name)
	}
	missing := sqlerr.New(sqlerr.DBDropExists, st.Name)
	err = s.inTransaction(ctx, func() error {
		// Who makes a foreign key holds the definition it refers to: none comes after the locks.
		if err := s.txn.LockSchema(st.Name); err != nil {
			return err
		}
		tables, err := s.eng.Catalog.TableNames(s.txn.Trx(), st.Name)
		if errorNumber(err) == sqlerr.BadDBError {
			return missing
		}
		if err != nil {
			return err
		}
		names := make([]txn.Name, len(tables))
		for i, t := range tables {
			names[i] = txn.Name{Schema: st.Name, Table: t.Name}
		}
		if err := s.txn.LockDefinitions(names...); err != nil {
			return err
		}
		for _, t := range tables {
			if err := s.checkUnreferenced(st.Name, t.Name, func(schema, _ string) bool { return schema == st.Name }); err != nil {
				return err
			}
		}
		for _, t := range tables {
			if _, err := s.txn.DropTable(st.Name, t.Name, nil); err != nil {
				return err
			}
		}
		out.AffectedRows = uint64(len(tables))
		return s.txn.DropSchema(st.Name, s.textOf(st))
	})
	if errorNumber(err) == sqlerr.DBDropExists && st.IfExists {
		s.note(missing)
		return Outcome{}, nil
	}
	if err == nil && s.schema == st.Name {
		s.schema = ""
		s.txnMu(func() { s.process.Schema = "" })
	}
	return out, err
}

// checkUnreferenced refuses to drop a table that foreign keys of others refer to; dropped
// says which tables go too. Error: 3730.
//
// REQUIRES: the table's definition is locked.
func (s *Session) checkUnreferenced(schema, name string, dropped func(schema, name string) bool) error {
	if !s.opt.foreignKeys {
		return nil
	}
	return s.eachChild(schema, name, func(child *record.Table, k *record.ForeignKey) error {
		if child.Schema == schema && child.Name == name || dropped(child.Schema, child.Name) {
			return nil
		}
		return sqlerr.New(sqlerr.FKCannotDropParent, name, k.Name, child.Name)
	})
}

// eachChild calls fn with the foreign keys that refer to a table, and the tables that have
// them.
func (s *Session) eachChild(schema, name string, fn func(child *record.Table, k *record.ForeignKey) error) error {
	refs, err := s.eng.Catalog.References(s.txn.Trx(), schema, name)
	if err != nil {
		return err
	}
	for _, r := range refs {
		h, err := s.eng.Catalog.OpenTableByID(s.txn.Trx(), r.Table)
		if errors.Is(err, table.ErrNoTable) {
			continue
		}
		if err != nil {
			return err
		}
		child := h.Table().Schema.Table
		h.Release()
		for i := range child.ForeignKeys {
			if child.ForeignKeys[i].ID == r.Key {
				if err := fn(child, &child.ForeignKeys[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

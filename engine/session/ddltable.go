package session

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// createTable is CREATE TABLE in all its forms.
func (s *Session) createTable(ctx context.Context, st *ast.CreateTable) (out Outcome, err error) {
	schema, name, err := s.tableName(st.Table)
	if err != nil {
		return out, err
	}
	if err := s.privileges().Table(schema, name, priv.Create, "CREATE"); err != nil {
		return out, err
	}
	if st.Query != nil {
		if err := s.privileges().Table(schema, name, priv.Insert, "INSERT"); err != nil {
			return out, err
		}
	}
	exists := sqlerr.New(sqlerr.TableExistsError, name)
	err = s.inTransaction(ctx, func() error {
		if st.IfNotExists {
			h, err := s.eng.Catalog.OpenTable(s.txn.Trx(), schema, name)
			if err == nil {
				h.Release()
				return exists
			}
		}
		out.AffectedRows, err = s.define(ctx, schema, st)
		return err
	})
	if errorNumber(err) == sqlerr.TableExistsError {
		if st.IfNotExists {
			s.note(exists)
			return Outcome{}, nil
		}
		err = exists
	}
	return out, err
}

// define makes the table of a CREATE TABLE, within the transaction. It returns the number of rows.
func (s *Session) define(ctx context.Context, schema string, st *ast.CreateTable) (uint64, error) {
	env, err := s.definitionEnv(schema)
	if err != nil {
		return 0, err
	}
	if st.Query != nil {
		return s.createFromQuery(ctx, env, schema, st)
	}
	def, err := s.newDefinition(env, schema, st)
	switch {
	case err != nil:
		return 0, err
	case st.Temporary:
		return 0, s.makeTemporary(def)
	}
	return 0, s.make(def, s.textOf(st).Text)
}

// make creates a table in the transaction, and checks the foreign keys that refer to it
// already.
func (s *Session) make(def *record.Table, text []byte) error {
	catalog.SetTimes(def, s.x.Now.UnixMicro(), 0)
	made, err := s.txn.CreateTable(def, s.logged(string(text)))
	if err != nil || !s.opt.foreignKeys {
		return err
	}
	return s.eachChild(def.Schema, def.Name, func(child *record.Table, k *record.ForeignKey) error {
		return catalog.CheckReference(child, k, made)
	})
}

// newDefinition is that of CREATE TABLE with columns or LIKE.
func (s *Session) newDefinition(env *catalog.Env, schema string, st *ast.CreateTable) (*record.Table, error) {
	if st.Like == nil {
		return catalog.Define(env, schema, st, nil)
	}
	likeSchema, like, err := s.tableName(*st.Like)
	if err != nil {
		return nil, err
	}
	old, err := s.likeTable(likeSchema, like)
	if err != nil {
		return nil, err
	}
	if err := catalog.CheckName(st.Table.Name, sqlerr.WrongTableName); err != nil {
		return nil, err
	}
	def := catalog.Fresh(old)
	def.Schema, def.Name = schema, st.Table.Name
	catalog.RenameSelfReferences(def, likeSchema, like)
	return def, nil
}

// likeTable is the definition that CREATE TABLE LIKE copies.
func (s *Session) likeTable(schema, name string) (*record.Table, error) {
	if t := s.temporaryTable(schema, name); t != nil {
		return t.Schema.Table, nil
	}
	if err := s.privileges().AnyTable(schema, name, priv.Select, "SELECT"); err != nil {
		return nil, err
	}
	return s.baseTable(schema, name)
}

// createFromQuery is CREATE TABLE .. SELECT, within the transaction. It returns the number
// of rows.
func (s *Session) createFromQuery(ctx context.Context, env *catalog.Env, schema string, st *ast.CreateTable) (uint64, error) {
	s.trx.multi = true // what follows is part of this transaction
	s.limit = unlimited
	params := columnParams(s.work.params)
	c, err := s.compile(st.Query, params)
	if err != nil {
		return 0, err
	}
	if err := s.mayRun(c.uses, "SELECT", c.kind); err != nil {
		return 0, err
	}
	var extra []record.Column
	var names []string
	for i := range c.columns {
		col := &c.columns[i]
		if slices.ContainsFunc(extra, func(e record.Column) bool { return dict.Fold(e.Name) == dict.Fold(col.Name) }) {
			return 0, sqlerr.New(sqlerr.DupFieldName, col.Name)
		}
		if err := catalog.CheckName(col.Name, sqlerr.WrongColumnName); err != nil {
			return 0, err
		}
		e := record.Column{Name: col.Name, Type: columnTypeOf(col.Type)}
		switch {
		case col.Narrow && e.Type.Kind == types.KindBigInt:
			e.Type.Kind = types.KindInt
		case col.Type.Kind == types.KindNull:
			e.Type.Kind = types.KindVarBinary
		}
		s.defaultOfCopy(c.query, col, &e)
		extra = append(extra, e)
		names = append(names, col.Name)
	}
	def, err := catalog.Define(env, schema, st, extra)
	if err != nil {
		return 0, err
	}
	if st.Temporary {
		err = s.makeTemporary(def)
	} else {
		err = s.make(def, []byte(catalog.ShowCreateTable(def, 0)))
	}
	if err != nil {
		return 0, err
	}
	if s.trx.begun {
		s.trx.begun = false
		if err := s.txn.EndStatement(); err != nil {
			return 0, err
		}
	}
	insert := &ast.Insert{Table: ast.TableName{Schema: schema, Name: def.Name}, Columns: names, Query: st.Query, Ignore: st.Ignore, Replace: st.Replace, Creates: true, Temporary: st.Temporary}
	res, err := s.runPlanned(ctx, insert, params)
	return res.AffectedRows, err
}

// defaultOfCopy gives a column of CREATE TABLE .. SELECT its default: that of the table's column of which it is a copy, or the one of its type.
func (s *Session) defaultOfCopy(q *plan.Query, col *ResultColumn, e *record.Column) {
	if !e.Type.NotNull {
		e.HasDefault, e.Default = true, "NULL"
	}
	if of := copied(q, col); of == nil || of.AutoIncrement {
		catalog.ZeroDefault(e, s.x.Mode&types.ModeNoZeroDate == 0)
	} else if k := catalog.Default(of); k == catalog.DefaultLiteral || k == catalog.DefaultNow {
		e.HasDefault, e.Default, e.OnUpdate = true, of.Default, of.OnUpdate
	}
}

// copied is the column of a base table that a query gives as it is, nil if it gives anything else.
func copied(q *plan.Query, col *ResultColumn) *record.Column {
	if col.OrgName == "" {
		return nil
	}
	for _, t := range q.Tables {
		if t.Alias == col.Table && t.Def.Schema == col.Schema && t.Def.Name == col.OrgTable {
			return t.Def.ColumnNamed(col.OrgName)
		}
	}
	return nil
}

// columnParams are the types of parameters where they make columns: a string, which may be of any length, is a TEXT or
// BLOB, and so is NULL.
func columnParams(params []*types.Type) []*types.Type {
	out := slices.Clone(params)
	for i, t := range out {
		switch t.Kind {
		case types.KindVarChar:
			out[i] = &types.Type{Kind: types.KindText, Collation: t.Collation}
		case types.KindVarBinary:
			out[i] = &types.Type{Kind: types.KindBlob, Collation: types.CollationBinary}
		case types.KindNull:
			out[i] = &types.Type{Kind: types.KindText, Collation: types.CollationUTF8MB40900AI}
		}
	}
	return out
}

// dropTables is DROP TABLE: all of them, or none. A name stands for a temporary table first.
func (s *Session) dropTables(ctx context.Context, st *ast.DropTable) error {
	own, names, err := s.dropped(st)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := s.privileges().Table(n.Schema, n.Table, priv.Drop, "DROP"); err != nil {
			return err
		}
	}
	err = s.inTransaction(ctx, func() error {
		var missing []string
		var there []txn.Name
		if err := s.txn.LockDefinitions(names...); err != nil {
			return err
		}
		for _, n := range names {
			def, err := s.definition(n.Schema, n.Table)
			if err != nil {
				return err
			}
			if def == nil || catalog.IsView(def) {
				missing = append(missing, n.Schema+"."+n.Table)
				continue
			}
			there = append(there, n)
		}
		if len(missing) > 0 && !st.IfExists {
			return sqlerr.New(sqlerr.BadTableError, strings.Join(missing, ","))
		}
		for _, m := range missing {
			s.note(sqlerr.New(sqlerr.BadTableError, m))
		}
		for _, n := range there {
			err := s.checkUnreferenced(n.Schema, n.Table, func(schema, table string) bool { return slices.Contains(there, txn.Name{Schema: schema, Table: table}) })
			if err != nil {
				return err
			}
		}
		for _, n := range there {
			text := s.logged("DROP TABLE " + catalog.QuoteName(n.Schema) + "." + catalog.QuoteName(n.Table))
			if _, err := s.txn.DropTable(n.Schema, n.Table, text); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = s.dropOwn(own)
	}
	return err
}

// truncate is TRUNCATE TABLE.
func (s *Session) truncate(ctx context.Context, st *ast.Truncate) error {
	if known, _ := virtualSchema(cmp.Or(st.Table.Schema, s.schema)); known == perfSchema {
		return s.truncateMade(st.Table.Name)
	}
	schema, name, err := s.tableName(st.Table)
	if err != nil {
		return err
	}
	if err := s.privileges().Table(schema, name, priv.Drop, "DROP"); err != nil {
		return err
	}
	return s.inTransaction(ctx, func() error {
		if err := s.txn.LockDefinitions(txn.Name{Schema: schema, Table: name}); err != nil {
			return err
		}
		if _, err := s.baseTable(schema, name); err != nil {
			return err
		}
		if s.opt.foreignKeys {
			err := s.eachChild(schema, name, func(child *record.Table, k *record.ForeignKey) error {
				if child.Schema == schema && child.Name == name {
					return nil
				}
				return sqlerr.Newf(sqlerr.TruncateIllegalFK, "Cannot truncate a table referenced in a foreign key "+
					"constraint (`%s`.`%s`, CONSTRAINT `%s`)", child.Schema, child.Name, k.Name)
			})
			if err != nil {
				return err
			}
		}
		_, err := s.txn.TruncateTable(schema, name, s.textOf(st))
		return err
	})
}

// renameTables is RENAME TABLE: one after the other, all or none.
func (s *Session) renameTables(ctx context.Context, st *ast.RenameTables) error {
	return s.inTransaction(ctx, func() error {
		var names []txn.Name // old, new, old, new
		for _, r := range st.Renames {
			schema, name, err := s.tableName(r.Old)
			if err != nil {
				return err
			}
			toSchema, toName, err := s.tableName(r.New)
			if err != nil {
				return err
			}
			if err := s.mayRename(schema, name, toSchema, toName); err != nil {
				return err
			}
			names = append(names, txn.Name{Schema: schema, Table: name}, txn.Name{Schema: toSchema, Table: toName})
		}
		if err := s.txn.LockDefinitions(names...); err != nil {
			return err
		}
		for i := 0; i < len(names); i += 2 {
			from, to := names[i], names[i+1]
			if err := s.rename(from.Schema, from.Table, to.Schema, to.Table, s.textOf(st).Text); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Session) mayRename(schema, name, toSchema, toName string) error {
	a := s.privileges()
	if err := a.Table(schema, name, priv.Alter|priv.Drop, "ALTER"); err != nil {
		return err
	}
	return a.Table(toSchema, toName, priv.Create|priv.Insert, "CREATE")
}

// rename gives a table or view another name. Foreign keys that refer to it follow.
//
// REQUIRES: both names are locked.
func (s *Session) rename(schema, name, toSchema, toName string, text []byte) error {
	def, err := s.definition(schema, name)
	switch {
	case err != nil:
		return err
	case def == nil:
		return sqlerr.New(sqlerr.NoSuchTable, schema, name)
	case catalog.IsView(def) && toSchema != schema:
		return sqlerr.New(sqlerr.ForbidSchemaChange, schema, toSchema)
	}
	if err := catalog.CheckName(toName, sqlerr.WrongTableName); err != nil {
		return err
	}
	type child struct{ id uint64 }
	var children []child
	err = s.eachChild(schema, name, func(c *record.Table, _ *record.ForeignKey) error {
		if c.ID != def.ID && !slices.Contains(children, child{c.ID}) {
			children = append(children, child{c.ID})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := s.txn.RenameTable(schema, name, toSchema, toName, s.logged(string(text))); err != nil {
		if errorNumber(err) == sqlerr.TableExistsError {
			return sqlerr.New(sqlerr.TableExistsError, toName)
		}
		return err
	}
	if len(def.ForeignKeys) > 0 || len(catalog.Checks(def)) > 0 {
		err := s.edit(def.ID, func(t *record.Table) { catalog.RenameSelfReferences(t, schema, name) })
		if err != nil {
			return err
		}
	}
	for _, c := range children {
		err := s.edit(c.id, func(t *record.Table) { retarget(t, schema, name, toSchema, toName, nil) })
		if err != nil {
			return err
		}
	}
	return nil
}

// retarget lets the foreign keys of a table that refer to another one follow its new name
// and those of its columns.
func retarget(t *record.Table, schema, name, toSchema, toName string, columns map[string]string) {
	t.ForeignKeys = slices.Clone(t.ForeignKeys)
	for i := range t.ForeignKeys {
		k := &t.ForeignKeys[i]
		if k.RefSchema != schema || k.RefTable != name {
			continue
		}
		k.RefSchema, k.RefTable = toSchema, toName
		k.RefColumns = slices.Clone(k.RefColumns)
		for j, c := range k.RefColumns {
			for old, to := range columns {
				if dict.Fold(old) == dict.Fold(c) {
					k.RefColumns[j] = to
				}
			}
		}
	}
}

// edit changes the definition of the table with a number without touching its rows.
func (s *Session) edit(id uint64, change func(t *record.Table)) error {
	h, err := s.eng.Catalog.OpenTableByID(s.txn.Trx(), id)
	if err != nil {
		return err
	}
	next := h.Table().Schema.Table.Clone()
	h.Release()
	change(next)
	_, err = s.txn.ReplaceTable(next, nil)
	return err
}

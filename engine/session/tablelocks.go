package session

import (
	"context"
	"slices"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/priv"
)

// lockedTables are those of LOCK TABLES: the session may use no others, nor change others' definitions.
//
// They keep nobody else out, and LOCK TABLES says so: rows that a statement uses are protected by the
// locks of its transaction as ever. Tools that dump and load tables take LOCK TABLES for speed, or for a
// snapshot, which START TRANSACTION WITH CONSISTENT SNAPSHOT gives.
type lockedTables struct {
	held bool
	list []lockedTable
}

type lockedTable struct {
	schema, name string
	write        bool
}

// check reports whether a table may be used. Error: 1100.
func (l *lockedTables) check(schema, name string) error {
	if !l.held {
		return nil
	}
	for i := range l.list {
		if l.list[i].schema == schema && l.list[i].name == name {
			return nil
		}
	}
	return newError(1100, "HY000", "Table '%s' was not locked with LOCK TABLES", name)
}

// checkWrite reports whether a table may be changed. Error: 1099. Tables that are not
// listed are check's.
func (l *lockedTables) checkWrite(schema, name string) error {
	if !l.held {
		return nil
	}
	for i := range l.list {
		if l.list[i].schema == schema && l.list[i].name == name && !l.list[i].write {
			return newError(1099, "HY000", "Table '%s' was locked with a READ lock and can't be updated", name)
		}
	}
	return nil
}

// runLockTables is LOCK TABLES.
func (s *Session) runLockTables(ctx context.Context, st *ast.LockTables) error {
	if err := s.implicitCommit(ctx); err != nil {
		return err
	}
	var l lockedTables
	s.trx.tables = l
	if err := s.pointDefinitions(); err != nil {
		return err
	}
	for _, t := range st.Locks {
		schema, err := s.schemaOf(t.Table)
		if err != nil {
			return err
		}
		if err := s.mayLock(schema, t.Table.Name); err != nil {
			return err
		}
		if t.Write {
			if err := s.mayDefine(ctx); err != nil {
				return err
			}
		}
		used, err := s.tablesOf(schema, t.Table.Name)
		if s.trx.begun {
			err = s.endWork(ctx, err, false)
		}
		if err != nil {
			return err
		}
		for i := range used {
			l.list = append(l.list, lockedTable{used[i].schema, used[i].name, t.Write})
		}
	}
	l.held = true
	s.trx.tables = l
	s.note(newError(1235, "42000", "LOCK TABLES limits this session to the tables, but keeps no other one from them: statements lock rows, and "+
		"START TRANSACTION WITH CONSISTENT SNAPSHOT (mysqldump --single-transaction) gives a consistent copy"))
	return nil
}

// tablesOf opens a table, or a view and all that it reads, which LOCK TABLES lists with it.
func (s *Session) tablesOf(schema, name string) ([]compiledTable, error) {
	o, err := s.openTable(schema, name)
	if err != nil || !catalog.IsView(o.Definition()) {
		return []compiledTable{{schema: schema, name: name}}, err
	}
	s.limit = unlimited
	c, err := s.compile(&ast.Select{Items: []ast.SelectItem{{Star: true}}, From: &ast.TableRef{TableName: ast.TableName{Schema: schema, Name: name}}}, nil)
	if err != nil {
		return nil, err
	}
	return c.tables, nil
}

// after is the list as a statement that changes definitions leaves it, of which it may be that it is not allowed. Errors:
// 1099, 1100, 1192.
func (l *lockedTables) after(s *Session, st ast.Statement) (next lockedTables, err error) {
	next = lockedTables{held: true, list: slices.Clone(l.list)}
	switch st := st.(type) {
	case *ast.CreateTable:
		_, err = next.changing(s, st.Table, false)
	case *ast.AlterTable:
		var table lockedTable
		table, err = next.changing(s, st.Table, true)
		for _, spec := range st.Specs {
			if to, ok := spec.(*ast.RenameTo); ok && err == nil {
				err = next.rename(s, table, to.Table)
			}
		}
	case *ast.CreateIndex:
		_, err = next.changing(s, st.Table, true)
	case *ast.DropIndex:
		_, err = next.changing(s, st.Table, true)
	case *ast.Truncate:
		_, err = next.changing(s, st.Table, true)
	case *ast.RenameTables:
		for i := 0; i < len(st.Renames) && err == nil; i++ {
			var table lockedTable
			if table, err = next.changing(s, st.Renames[i].Old, true); err == nil {
				err = next.rename(s, table, st.Renames[i].New)
			}
		}
	case *ast.DropTable:
		var dropped []lockedTable
		for i := 0; i < len(st.Tables) && err == nil; i++ {
			var table lockedTable
			table, err = next.changing(s, st.Tables[i], true)
			dropped = append(dropped, table)
		}
		next.list = slices.DeleteFunc(next.list, func(t lockedTable) bool { return slices.ContainsFunc(dropped, t.same) })
		next.held = len(next.list) > 0
	default: // schemas and views
		err = newError(1192, "HY000", "Can't execute the given command because you have active locked tables or an active transaction")
	}
	return next, err
}

// changing checks that the definition of a table may be changed, or with there false that a table may be made of a name,
// which a listed one has. Errors: 1099, 1100.
func (l *lockedTables) changing(s *Session, t ast.TableName, there bool) (lockedTable, error) {
	schema, name, err := s.tableName(t)
	if err == nil {
		err = l.check(schema, name)
	}
	if err == nil && there {
		err = l.checkWrite(schema, name)
	}
	return lockedTable{schema: schema, name: name}, err
}

// rename gives a table its new name.
func (l *lockedTables) rename(s *Session, table lockedTable, to ast.TableName) error {
	schema, name, err := s.tableName(to)
	for i := range l.list {
		if err == nil && l.list[i].same(table) {
			l.list[i].schema, l.list[i].name = schema, name
		}
	}
	return err
}

func (t lockedTable) same(o lockedTable) bool { return t.schema == o.schema && t.name == o.name }

// mayLock is asked by LOCK TABLES: errors 1044 and 1142.
func (s *Session) mayLock(schema, name string) error {
	a := s.privileges()
	if err := a.Schema(schema, priv.LockTables); err != nil {
		return err
	}
	return a.Table(schema, name, priv.Select, "SELECT")
}

// runUnlockTables is UNLOCK TABLES.
func (s *Session) runUnlockTables(ctx context.Context) error {
	if !s.trx.tables.held {
		return nil
	}
	s.trx.tables = lockedTables{}
	return s.implicitCommit(ctx)
}

package session

import (
	"context"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/priv"
)

// lockedTables are those of LOCK TABLES: the session may use no others.
//
// They keep nobody else out: rows that a statement uses are protected by the locks of its
// transaction as ever. Tools that dump and load tables take LOCK TABLES for speed, or for a
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
		_, err = s.openTable(schema, t.Table.Name)
		if s.trx.begun {
			err = s.endWork(ctx, err, false)
		}
		if err != nil {
			return err
		}
		l.list = append(l.list, lockedTable{schema, t.Table.Name, t.Write})
	}
	l.held = true
	s.trx.tables = l
	return nil
}

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

package session

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/txn"
)

// lockedTables are those of LOCK TABLES: the session may use no others, nor change others' definitions, and keeps other sessions
// from changing their rows (READ), or from using them (WRITE), by metadata locks of txn.Session.LockTables. On the port for reads
// they keep nobody off, which LOCK TABLES says: rows are changed by what other members send.
//
// Locks are the leader's, and go with the session's connection and with its lead, as sessions do.
type lockedTables struct {
	held bool
	list []lockedTable
}

// sharedLocks are those of FLUSH TABLES WITH READ LOCK, and of LOCK INSTANCE FOR BACKUP.
type sharedLocks struct {
	commits, instance bool
	// since is when commits were locked, on the clock of env; 0: they are not. Any task may look.
	since atomic.Int64
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
	return sqlerr.New(sqlerr.TableNotLocked, name)
}

// checkWrite reports whether a table may be changed. Error: 1099. Tables that are not
// listed are check's.
func (l *lockedTables) checkWrite(schema, name string) error {
	if !l.held {
		return nil
	}
	for i := range l.list {
		if l.list[i].schema == schema && l.list[i].name == name && !l.list[i].write {
			return sqlerr.New(sqlerr.TableNotLockedForWrite, name)
		}
	}
	return nil
}

// add lists a table once, for writing if one of its locks is.
func (l *lockedTables) add(t lockedTable) {
	if i := slices.IndexFunc(l.list, t.same); i >= 0 {
		l.list[i].write = l.list[i].write || t.write
		return
	}
	l.list = append(l.list, t)
}

// runLockTables is LOCK TABLES.
func (s *Session) runLockTables(ctx context.Context, st *ast.LockTables) error {
	if err := s.implicitCommit(ctx); err != nil {
		return err
	}
	s.unlockTables()
	if err := s.mayLockTables(st); err != nil {
		return err
	}
	if err := s.pointDefinitions(); err != nil {
		return err
	}
	var l lockedTables
	for _, t := range st.Locks {
		schema, err := s.schemaOf(t.Table)
		if err != nil {
			return err
		}
		if s.isTemporary(schema, t.Table.Name) {
			continue // nobody else has it
		}
		if err := s.mayLock(schema, t.Table.Name); err != nil {
			return err
		}
		if madeDefinition(schema, t.Table.Name) != nil {
			continue // it is made up: nobody changes it
		}
		if t.Write {
			if err := s.mayDefine(ctx); err != nil {
				return err
			}
		}
		used, err := s.tablesOf(ctx, schema, t.Table.Name)
		if err != nil {
			return err
		}
		for i := range used {
			l.add(lockedTable{used[i].schema, used[i].name, t.Write})
		}
	}
	if s.info.ReadOnly {
		s.note(sqlerr.Newf(sqlerr.NotSupportedYet, "LOCK TABLES limits this session to the tables, but keeps nobody "+
			"from changing them, who does so by the leader's port: START TRANSACTION WITH CONSISTENT SNAPSHOT "+
			"(mysqldump --single-transaction) gives a consistent copy"))
	} else if err := s.holdTables(ctx, l.list); err != nil {
		s.unlockTables()
		return err
	}
	l.held = true
	s.trx.tables = l
	return nil
}

// mayLockTables refuses WRITE under FLUSH TABLES WITH READ LOCK: 1223.
func (s *Session) mayLockTables(st *ast.LockTables) error {
	if slices.ContainsFunc(st.Locks, func(l ast.TableLock) bool { return l.Write }) {
		return s.mayChangeRows()
	}
	return nil
}

// holdTables locks tables, and looks whether they are still there: others may have dropped them meanwhile. Errors: 1146, 1205, 1213,
// 1317; 1053, this node does not lead.
func (s *Session) holdTables(ctx context.Context, tables []lockedTable) error {
	if err := s.lockTables(tables); err != nil {
		return err
	}
	for _, t := range tables {
		if _, err := s.tablesOf(ctx, t.schema, t.name); err != nil {
			return err
		}
	}
	return s.leads()
}

func (s *Session) lockTables(tables []lockedTable) error {
	locks := make([]txn.TableLock, len(tables))
	for i, t := range tables {
		locks[i] = txn.TableLock{Name: txn.Name{Schema: t.schema, Table: t.name}, Write: t.write}
	}
	return s.txn.LockTables(locks, s.seconds(varLockWait), s.waitEnded)
}

// unlockTables ends LOCK TABLES.
func (s *Session) unlockTables() {
	if s.txn != nil && len(s.trx.tables.list) > 0 {
		names := make([]txn.Name, len(s.trx.tables.list))
		for i, t := range s.trx.tables.list {
			names[i] = txn.Name{Schema: t.schema, Table: t.name}
		}
		s.txn.UnlockTables(names...)
	}
	s.trx.tables = lockedTables{}
}

// unlockShared ends FLUSH TABLES WITH READ LOCK, or LOCK INSTANCE.
func (s *Session) unlockShared(held *bool, n txn.Name) {
	if *held && s.txn != nil {
		s.txn.UnlockTables(n)
	}
	*held = false
}

// unlockAll gives back all that the session has locked for longer than a transaction: COM_RESET_CONNECTION, COM_CHANGE_USER.
func (s *Session) unlockAll() {
	s.unlockTables()
	s.unlockCommits()
	s.unlockShared(&s.shared.instance, txn.BackupLock)
	if s.txn != nil {
		s.txn.ReleaseAllNamed()
	}
}

// readLock is FLUSH TABLES WITH READ LOCK: nobody commits until UNLOCK TABLES, so that what the group has executed and what tables
// hold stay as they are, for who copies both. Others' changes wait at their commit. FLUSH TABLES t WITH READ LOCK is LOCK TABLES t READ.
func (s *Session) readLock(ctx context.Context, tables []ast.TableName) error {
	switch {
	case s.info.ReadOnly:
		return sqlerr.Newf(sqlerr.OptionPreventsStatement, "The MySQL server is running with the --read-only option "+
			"so it cannot execute this statement: changes come from the leader. Use the main port, or START "+
			"TRANSACTION WITH CONSISTENT SNAPSHOT without FLUSH TABLES WITH READ LOCK")
	case s.trx.tables.held:
		return sqlerr.New(sqlerr.LockOrActiveTransaction)
	}
	if len(tables) > 0 {
		st := &ast.LockTables{}
		for _, t := range tables {
			st.Locks = append(st.Locks, ast.TableLock{Table: t})
		}
		return s.runLockTables(ctx, st)
	}
	if err := s.implicitCommit(ctx); err != nil || s.shared.commits {
		return err
	}
	limit := time.Duration(s.m.global(varReadLockLimit).n) * time.Second
	wait := s.seconds(varLockWait)
	if limit > 0 {
		wait = min(wait, limit) // nobody commits who comes after it
	}
	if err := s.txn.LockShared(txn.CommitLock, wait, s.waitEnded); err != nil {
		return err
	}
	s.shared.commits = true
	if err := s.leads(); err != nil {
		s.unlockCommits()
		return err
	}
	since := int64(max(1, s.env.Monotonic()))
	s.shared.since.Store(since)
	if limit > 0 {
		s.env.Go("read lock", func() { s.limitReadLock(since, limit) })
	}
	return nil
}

// readLockPoll is how often is looked whether commits are still locked.
const readLockPoll = time.Second

// limitReadLock ends the session that has locked commits since a time for longer than the limit: nobody writes meanwhile. Its client
// hears of it, and does not go on with what it copies.
func (s *Session) limitReadLock(since int64, limit time.Duration) {
	for s.shared.since.Load() == since {
		left := time.Duration(since) + limit - s.env.Monotonic()
		if left <= 0 {
			s.kill(true)
			return
		}
		env.Sleep(s.env, min(left, readLockPoll))
	}
}

// unlockCommits ends FLUSH TABLES WITH READ LOCK.
func (s *Session) unlockCommits() {
	s.shared.since.Store(0)
	s.unlockShared(&s.shared.commits, txn.CommitLock)
}

// mayChangeRows is asked before anything is changed, which FLUSH TABLES WITH READ LOCK of the session itself is in the way of. Error: 1223.
func (s *Session) mayChangeRows() error {
	if s.shared.commits {
		return sqlerr.New(sqlerr.CantUpdateWithReadLock)
	}
	return nil
}

// runInstanceLock is LOCK INSTANCE FOR BACKUP and UNLOCK INSTANCE: nobody changes definitions meanwhile.
func (s *Session) runInstanceLock(st *ast.InstanceLock) error {
	if err := s.privileges().Needs(priv.Super, "BACKUP_ADMIN"); err != nil {
		return err
	}
	switch {
	case st.Unlock:
		s.unlockShared(&s.shared.instance, txn.BackupLock)
		return nil
	case s.info.ReadOnly:
		return sqlerr.Newf(sqlerr.OptionPreventsStatement, "The MySQL server is running with the --read-only option "+
			"so it cannot execute this statement: definitions are changed by the leader. Use the main port")
	case s.shared.instance:
		return nil
	}
	if err := s.txn.LockShared(txn.BackupLock, s.seconds(varLockWait), s.waitEnded); err != nil {
		return err
	}
	s.shared.instance = true
	err := s.leads()
	if err != nil {
		s.unlockShared(&s.shared.instance, txn.BackupLock)
	}
	return err
}

// follow locks what a list of tables will be beside what it is, before definitions change, and returns what unlocks those that are
// no more among them when they have, or have not.
func (l *lockedTables) follow(s *Session, next lockedTables) (done func(changed bool), err error) {
	var more []lockedTable
	for _, t := range next.list {
		if !slices.ContainsFunc(l.list, t.same) {
			more = append(more, t)
		}
	}
	if len(more) > 0 {
		if err := s.lockTables(more); err != nil {
			return nil, err
		}
	}
	before := l.list
	return func(changed bool) {
		drop, keep := more, before
		if changed {
			drop, keep = before, next.list
			s.trx.tables = next
		}
		for _, t := range drop {
			if !slices.ContainsFunc(keep, t.same) {
				s.txn.UnlockTables(txn.Name{Schema: t.schema, Table: t.name})
			}
		}
	}, nil
}

// tablesOf opens a table, or a view and all that it reads, which LOCK TABLES lists with it. The transaction for that ends with it,
// also without autocommit: it would keep the tables in use.
//
// REQUIRES: the session has no transaction.
func (s *Session) tablesOf(ctx context.Context, schema, name string) (used []compiledTable, err error) {
	defer func() {
		if s.trx.begun {
			s.trx.multi = false
			err = s.endWork(ctx, err, false)
		}
	}()
	o, err := s.openTable(schema, name, true)
	if err != nil || !catalog.IsView(o.Definition()) {
		return []compiledTable{{schema: schema, name: name}}, err
	}
	s.limit = unlimited
	c, err := s.compile(&ast.Select{Items: []ast.SelectItem{{Star: true}}, From: &ast.TableRef{TableName: ast.TableName{Schema: schema, Name: name}}}, nil)
	if err != nil {
		return nil, err
	}
	return c.tables, s.mayLockBelow(c.uses)
}

// mayLockBelow checks that the tables of a view may be locked by its name: by the privileges of its definer, or of who asks. Errors: 1356, 1449.
func (s *Session) mayLockBelow(uses []plan.Use) error {
	if s.privileges() == everything {
		return nil
	}
	for i := range uses {
		u := &uses[i]
		between := slices.ContainsFunc(uses, func(o plan.Use) bool { return o.View == u.Schema+"."+u.Table })
		if u.View == "" || between {
			continue
		}
		if err := s.mayUseBelow(u, kindLockTables); err != nil {
			return err
		}
	}
	return nil
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
		err = sqlerr.New(sqlerr.LockOrActiveTransaction)
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
func (s *Session) mayLock(schema, name string) error { return mayLockBy(s.privileges(), schema, name) }

func mayLockBy(a *priv.Active, schema, name string) error {
	if err := a.Schema(schema, priv.LockTables); err != nil {
		return err
	}
	return a.Table(schema, name, priv.Select, "SELECT")
}

// runUnlockTables is UNLOCK TABLES.
func (s *Session) runUnlockTables(ctx context.Context) error {
	s.unlockCommits() // as in MySQL, a transaction goes on
	if !s.trx.tables.held {
		return nil
	}
	err := s.implicitCommit(ctx) // before others see what it has changed
	s.unlockTables()
	return err
}

package session

import (
	"sync/atomic"

	"github.com/triremedb/trireme/engine/sql/ast"
)

// statementKind is what a statement is counted as in SHOW STATUS: Com_select and so on.
type statementKind uint8

const (
	comOther statementKind = iota // what has no name of its own here
	comAlterDB
	comAlterTable
	comAlterUser
	comBegin
	comChangeDB
	comCommit
	comCreateDB
	comCreateIndex
	comCreateTable
	comCreateUser
	comCreateView
	comDeallocate
	comDelete
	comDeleteMulti
	comDo
	comDropDB
	comDropIndex
	comDropTable
	comDropUser
	comDropView
	comExecute
	comExplain
	comFlush
	comGrant
	comInsert
	comInsertSelect
	comKill
	comLoad
	comLockTables
	comPrepare
	comRelease
	comRenameTable
	comReplace
	comReplaceSelect
	comRollback
	comSavepoint
	comSelect
	comSet
	comStmtExecute // by the binary protocol, besides what was executed
	comTruncate
	comUnlockTables
	comUpdate
	comUpdateMulti
	comKinds
)

var comNames = [comKinds]string{comAlterDB: "Com_alter_db", comAlterTable: "Com_alter_table", comAlterUser: "Com_alter_user", comBegin: "Com_begin",
	comChangeDB: "Com_change_db", comCommit: "Com_commit", comCreateDB: "Com_create_db", comCreateIndex: "Com_create_index", comCreateTable: "Com_create_table",
	comCreateUser: "Com_create_user", comCreateView: "Com_create_view", comDeallocate: "Com_dealloc_sql", comDelete: "Com_delete",
	comDeleteMulti: "Com_delete_multi", comDo: "Com_do", comDropDB: "Com_drop_db", comDropIndex: "Com_drop_index", comDropTable: "Com_drop_table",
	comDropUser: "Com_drop_user", comDropView: "Com_drop_view", comExecute: "Com_execute_sql", comExplain: "Com_explain_other", comFlush: "Com_flush",
	comGrant: "Com_grant", comInsert: "Com_insert", comInsertSelect: "Com_insert_select", comKill: "Com_kill", comLoad: "Com_load",
	comLockTables: "Com_lock_tables", comPrepare: "Com_prepare_sql", comRelease: "Com_release_savepoint", comRenameTable: "Com_rename_table",
	comReplace: "Com_replace", comReplaceSelect: "Com_replace_select", comRollback: "Com_rollback", comSavepoint: "Com_savepoint", comSelect: "Com_select",
	comSet: "Com_set_option", comStmtExecute: "Com_stmt_execute", comTruncate: "Com_truncate", comUnlockTables: "Com_unlock_tables",
	comUpdate: "Com_update", comUpdateMulti: "Com_update_multi"}

// statementKindOf says what a statement is counted as.
func statementKindOf(st ast.Statement) statementKind {
	switch st := st.(type) {
	case *ast.Select, *ast.SetOp, *ast.Values:
		return comSelect
	case *ast.Insert:
		switch {
		case st.Replace && st.Query != nil:
			return comReplaceSelect
		case st.Replace:
			return comReplace
		case st.Query != nil:
			return comInsertSelect
		}
		return comInsert
	case *ast.Update:
		if _, one := st.Table.(*ast.TableRef); !one {
			return comUpdateMulti
		}
		return comUpdate
	case *ast.Delete:
		if len(st.Targets) > 0 {
			return comDeleteMulti
		}
		return comDelete
	case *ast.Begin:
		return comBegin
	case *ast.Commit:
		return comCommit
	case *ast.Rollback:
		return comRollback
	case *ast.Savepoint:
		return comSavepoint
	case *ast.Release:
		return comRelease
	case *ast.Set, *ast.SetTransaction, *ast.SetPassword, *ast.SetRole, *ast.SetDefaultRole:
		return comSet
	case *ast.Use:
		return comChangeDB
	}
	return rareKindOf(st)
}

func rareKindOf(st ast.Statement) statementKind {
	switch st.(type) {
	case *ast.Do:
		return comDo
	case *ast.Prepare:
		return comPrepare
	case *ast.Execute:
		return comExecute
	case *ast.Deallocate:
		return comDeallocate
	case *ast.Explain:
		return comExplain
	case *ast.Kill:
		return comKill
	case *ast.LoadData:
		return comLoad
	case *ast.LockTables:
		return comLockTables
	case *ast.UnlockTables:
		return comUnlockTables
	case *ast.Flush:
		return comFlush
	case *ast.CreateSchema:
		return comCreateDB
	case *ast.AlterSchema:
		return comAlterDB
	case *ast.DropSchema:
		return comDropDB
	case *ast.CreateTable:
		return comCreateTable
	case *ast.AlterTable:
		return comAlterTable
	case *ast.DropTable:
		return comDropTable
	case *ast.Truncate:
		return comTruncate
	case *ast.RenameTables:
		return comRenameTable
	case *ast.CreateIndex:
		return comCreateIndex
	case *ast.DropIndex:
		return comDropIndex
	case *ast.CreateView:
		return comCreateView
	case *ast.DropView:
		return comDropView
	case *ast.CreateUser:
		return comCreateUser
	case *ast.AlterUser:
		return comAlterUser
	case *ast.DropUser:
		return comDropUser
	case *ast.Grant, *ast.GrantRole:
		return comGrant
	}
	return comOther
}

// kindCounts counts statements. Sessions with different numbers are seldom in each other's
// way.
type kindCounts [8]struct {
	n [comKinds]atomic.Uint64
	_ [64]byte
}

func (k *kindCounts) add(session uint64, kind statementKind) {
	k[session%uint64(len(k))].n[kind].Add(1)
}

// each calls fn with the counts under their names in SHOW STATUS.
func (k *kindCounts) each(fn func(name string, value int64)) {
	for kind, name := range comNames {
		if name != "" {
			fn(name, k.of(statementKind(kind)))
		}
	}
	all := k.all()
	fn("Questions", all)
	fn("Queries", all)
}

func (k *kindCounts) of(kind statementKind) (n int64) {
	for i := range k {
		n += int64(k[i].n[kind].Load())
	}
	return n
}

// all counts each statement once.
func (k *kindCounts) all() (n int64) {
	for kind := range comKinds {
		if kind != comStmtExecute {
			n += k.of(kind)
		}
	}
	return n
}

// Questions is how many statements were run.
func (m *Manager) Questions() int64 { return m.kinds.all() }

package ast

import "strings"

func (f *formatter) statement(s Statement) {
	switch s := s.(type) {
	case Query:
		f.query(s)
	case *Insert:
		f.insert(s)
	case *Update:
		f.update(s)
	case *Delete:
		f.delete(s)
	case *Set:
		f.set(s)
	case *Show:
		f.show(s)
	case *Explain:
		f.explain(s)
	case *Do:
		f.s("do ")
		f.exprs(s.Exprs)
	case *Call:
		f.s("call ")
		f.table(TableName{s.Schema, s.Name})
		f.args(s.Args)
	case *LoadData:
		f.loadData(s)
	case *GetDiagnostics:
		f.getDiagnostics(s)
	case *KeyCache:
		f.keyCache(s)
	case *Handler:
		f.handler(s)
	case *Signal:
		f.signal(s)
	default:
		if !f.transaction(s) && !f.ddl(s) && !f.account(s) {
			f.utility(s)
		}
	}
}

func (f *formatter) insert(s *Insert) {
	if s.Replace {
		f.s("replace ")
	} else {
		f.s("insert ")
	}
	f.hints(s.Hints)
	f.opt(s.LowPriority, "low_priority ")
	f.opt(s.Delayed, "delayed ")
	f.opt(s.Ignore, "ignore ")
	f.s("into ")
	f.table(s.Table)
	if s.Partitions != nil {
		f.s(" partition ")
		f.names(s.Partitions)
	}
	if s.Columns != nil {
		f.s(" ")
		f.names(s.Columns)
	}
	if s.Query != nil {
		f.s(" ")
		f.query(s.Query)
	} else {
		f.s(" values ")
		f.list(len(s.Rows), func(i int) { f.args(s.Rows[i]) })
	}
	if s.RowAlias != "" {
		f.s(" as ")
		f.name(s.RowAlias)
		if s.ColumnAliases != nil {
			f.names(s.ColumnAliases)
		}
	}
	if s.OnDuplicate != nil {
		f.s(" on duplicate key update ")
		f.assignments(s.OnDuplicate)
	}
}

func (f *formatter) assignments(list []Assignment) {
	f.list(len(list), func(i int) {
		f.column(list[i].Column)
		f.s(" = ")
		f.expr(list[i].Value)
	})
}

func (f *formatter) update(s *Update) {
	f.with(s.With)
	f.s("update ")
	f.hints(s.Hints)
	f.opt(s.LowPriority, "low_priority ")
	f.opt(s.Ignore, "ignore ")
	f.tableExpr(s.Table)
	f.s(" set ")
	f.assignments(s.Set)
	f.where(s.Where)
	f.orderBy(s.OrderBy)
	f.limit(s.Limit)
}

func (f *formatter) delete(s *Delete) {
	f.with(s.With)
	f.s("delete ")
	f.hints(s.Hints)
	f.opt(s.LowPriority, "low_priority ")
	f.opt(s.Quick, "quick ")
	f.opt(s.Ignore, "ignore ")
	if s.Targets != nil {
		f.tables(s.Targets)
		f.s(" ")
	}
	f.s("from ")
	f.tableExpr(s.From)
	f.where(s.Where)
	f.orderBy(s.OrderBy)
	f.limit(s.Limit)
}

// fileFormat writes how the lines of a file are made of fields.
func (f *formatter) fileFormat(charset string, fields *LoadFields, lines *LoadLines) {
	if charset != "" {
		f.s(" character set ", charset)
	}
	f.s(" fields terminated by ")
	f.quote(fields.Terminated)
	f.opt(fields.OptionallyEnclosed, " optionally")
	f.s(" enclosed by ")
	f.quote(fields.Enclosed)
	f.s(" escaped by ")
	f.quote(fields.Escaped)
	f.s(" lines starting by ")
	f.quote(lines.Starting)
	f.s(" terminated by ")
	f.quote(lines.Terminated)
}

func (f *formatter) loadData(s *LoadData) {
	f.s("load data ")
	f.opt(s.Local, "local ")
	f.s("infile ")
	f.quote(s.File)
	f.opt(s.Replace, " replace")
	f.opt(s.Ignore, " ignore")
	f.s(" into table ")
	f.table(s.Table)
	f.fileFormat(s.Charset, &s.Fields, &s.Lines)
	if s.Skip > 0 {
		f.s(" ignore ")
		f.number(s.Skip)
		f.s(" lines")
	}
	if s.Columns != nil {
		f.s(" ")
		f.args(s.Columns)
	}
	if s.Set != nil {
		f.s(" set ")
		f.assignments(s.Set)
	}
}

var scopeWords = [...]string{
	ScopeNone: "", ScopeSession: "session ", ScopeGlobal: "global ", ScopePersist: "persist ",
	ScopePersistOnly: "persist_only ",
}

func (f *formatter) set(s *Set) {
	f.s("set ")
	f.list(len(s.Items), func(i int) {
		item := &s.Items[i]
		switch item.Kind {
		case SetNames:
			f.s("names ")
			f.charsetOrDefault(item.Charset)
			if item.Collate != "" {
				f.s(" collate ")
				f.quote(item.Collate)
			}
		case SetCharset:
			f.s("character set ")
			f.charsetOrDefault(item.Charset)
		case SetUser:
			f.s("@")
			f.name(item.Name)
			f.s(" = ")
			f.expr(item.Value)
		case SetSystem:
			f.setName(item)
			f.s(" = ")
			switch v := item.Value.(type) {
			case nil:
				f.s("default")
			case *ColumnRef:
				if v.Table == "" && startsAsName(v.Name) && !strings.Contains(v.Name, ".") {
					f.s(v.Name) // ON and ALL are no names
				} else {
					f.column(v)
				}
			default:
				f.expr(v)
			}
		}
	})
}

// setName writes the name of a variable. The form with @@ has no effect on the scope of
// those that follow. A name of more than two parts has dots that were quoted.
func (f *formatter) setName(item *SetItem) {
	switch {
	case !bareName(item.Name) || strings.Count(item.Name, ".") > 1:
		f.s(scopeWords[item.Scope])
		f.name(item.Name)
	case item.Scope != ScopeNone:
		f.s("@@", strings.TrimSuffix(scopeWords[item.Scope], " "), ".", item.Name)
	default:
		f.s(item.Name)
	}
}

func (f *formatter) charsetOrDefault(cs string) {
	if cs == "" {
		f.s("default")
	} else {
		f.quote(cs)
	}
}

func (f *formatter) explain(s *Explain) {
	f.s("explain ")
	f.opt(s.Analyze, "analyze ")
	if s.Format != "" {
		f.s("format=", s.Format, " ")
	}
	if s.Into != "" {
		f.s("into ")
		f.userVariable(s.Into)
		f.s(" ")
	}
	if s.Schema != "" {
		f.s("for schema ")
		f.name(s.Schema)
		f.s(" ")
	}
	if s.Statement == nil {
		f.s("for connection ")
		f.number(s.Connection)
		return
	}
	f.statement(s.Statement)
}

// transaction writes statements about transactions and prepared statements.
func (f *formatter) transaction(s Statement) bool {
	switch s := s.(type) {
	case *Begin:
		f.s("start transaction")
		sep := " "
		for _, o := range [...]struct {
			on   bool
			text string
		}{
			{s.ConsistentSnapshot, "with consistent snapshot"}, {s.ReadOnly, "read only"}, {s.ReadWrite, "read write"},
		} {
			if o.on {
				f.s(sep, o.text)
				sep = ","
			}
		}
	case *Commit:
		f.s("commit", completionWords[s.Completion])
	case *Rollback:
		f.s("rollback")
		if s.Savepoint != "" {
			f.s(" to ")
			f.name(s.Savepoint)
		}
		f.s(completionWords[s.Completion])
	case *Savepoint:
		f.s("savepoint ")
		f.name(s.Name)
	case *Release:
		f.s("release savepoint ")
		f.name(s.Name)
	case *SetTransaction:
		f.setTransaction(s)
	case *Prepare:
		f.s("prepare ")
		f.name(s.Name)
		f.s(" from ")
		if s.Var != "" {
			f.s("@")
			f.name(s.Var)
		} else {
			f.quote(s.SQL)
		}
	case *Execute:
		f.s("execute ")
		f.name(s.Name)
		for i, v := range s.Using {
			f.opt(i == 0, " using ")
			f.opt(i > 0, ",")
			f.s("@")
			f.name(v)
		}
	case *Deallocate:
		f.s("deallocate prepare ")
		f.name(s.Name)
	default:
		return false
	}
	return true
}

var completionWords = [...]string{
	CompletionDefault: "", CompletionNone: " and no chain no release", CompletionChain: " and chain",
	CompletionRelease: " release",
}

func (f *formatter) setTransaction(s *SetTransaction) {
	f.s("set ", scopeWords[s.Scope], "transaction ")
	f.s([...]string{
		IsolationUnspecified: "", ReadUncommitted: "isolation level read uncommitted",
		ReadCommitted: "isolation level read committed", RepeatableRead: "isolation level repeatable read",
		Serializable: "isolation level serializable",
	}[s.Isolation])
	f.opt(s.Isolation != IsolationUnspecified && s.Access != AccessUnspecified, ",")
	f.s([...]string{"", "read write", "read only"}[s.Access])
}

// utility writes what remains.
func (f *formatter) utility(s Statement) {
	switch s := s.(type) {
	case *Use:
		f.s("use ")
		f.name(s.Schema)
	case *Kill:
		f.s("kill ")
		f.opt(s.Query, "query ")
		f.expr(s.ID)
	case *LockTables:
		f.s("lock tables ")
		f.list(len(s.Locks), func(i int) { f.tableLock(&s.Locks[i]) })
	case *UnlockTables:
		f.s("unlock tables")
	case *Maintain:
		f.s([...]string{"analyze", "optimize", "check", "repair", "checksum"}[s.Kind], " table ")
		f.tables(s.Tables)
		for _, o := range s.Options {
			f.s(" ", o)
		}
	case *Flush:
		f.s("flush ", s.What)
		if s.Tables != nil {
			f.s(" ")
			f.tables(s.Tables)
		}
		f.opt(s.ReadLock, " with read lock")
		f.opt(s.Export, " for export")
	case *Reset:
		f.s("reset ", s.What)
		f.opt(s.IfExists, " if exists")
		switch {
		case bareName(s.Name):
			f.s(" ", s.Name)
		case s.Name != "":
			f.s(" ")
			f.name(s.Name)
		}
	case *PurgeLogs:
		f.s("purge binary logs ")
		if s.Before != nil {
			f.s("before ")
			f.expr(s.Before)
		} else {
			f.s("to ")
			f.quote(s.To)
		}
	case *InstanceLock:
		if s.Unlock {
			f.s("unlock instance")
		} else {
			f.s("lock instance for backup")
		}
	case *Shutdown:
		if s.Restart {
			f.s("restart")
		} else {
			f.s("shutdown")
		}
	case *Component:
		if s.Uninstall {
			f.s("un")
		}
		f.s("install component ")
		for i, urn := range s.URNs {
			if i > 0 {
				f.s(", ")
			}
			f.quote(urn)
		}
	case *ReloadTLS:
		f.s("alter instance reload tls")
	case *Help:
		f.s("help ")
		f.quote(s.Topic)
	}
}

func (f *formatter) tableLock(l *TableLock) {
	f.table(l.Table)
	if l.Alias != "" {
		f.s(" as ")
		f.name(l.Alias)
	}
	switch {
	case l.Write:
		f.s(" write")
	case l.Local:
		f.s(" read local")
	default:
		f.s(" read")
	}
}

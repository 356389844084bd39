package ast

import (
	"strings"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// set parses SET in all its forms.
func (r *reader) set() Statement {
	switch {
	case r.accept("PASSWORD"):
		return r.setPassword()
	case r.accept("ROLE"):
		s := &SetRole{}
		s.Set, s.Roles = r.roleSet(true)
		return s
	case r.accept("DEFAULT", "ROLE"):
		s := &SetDefaultRole{}
		s.Set, s.Roles = r.roleSet(false)
		r.need("TO")
		s.Users = r.users()
		return s
	case r.accept("RESOURCE", "GROUP"):
		r.failWith(unsupported("RESOURCE GROUP"))
		return nil
	}
	l, t := r.mark()
	scope, _ := r.scope()
	if r.accept("TRANSACTION") {
		return r.setTransaction(scope)
	}
	r.back(l, t)
	s := &Set{}
	sticky := ScopeNone
	for first := true; first || r.acceptOp(","); first = false {
		s.Items = append(s.Items, r.setItem(&sticky))
	}
	return s
}

// scope reads GLOBAL, SESSION ..
func (r *reader) scope() (Scope, bool) {
	switch {
	case r.accept("GLOBAL"):
		return ScopeGlobal, true
	case r.oneOf("SESSION", "LOCAL"):
		return ScopeSession, true
	case r.accept("PERSIST"):
		return ScopePersist, true
	case r.accept("PERSIST_ONLY"):
		return ScopePersistOnly, true
	}
	return ScopeNone, false
}

func (r *reader) setTransaction(scope Scope) Statement {
	s := &SetTransaction{Scope: scope}
	if scope >= ScopePersist {
		r.fail()
	}
	for first := true; first || r.acceptOp(","); first = false {
		switch {
		case r.accept("ISOLATION", "LEVEL"):
			if s.Isolation != IsolationUnspecified {
				r.fail()
			}
			s.Isolation = r.isolation()
		case r.accept("READ", "ONLY"):
			s.Access = AccessReadOnly
		case r.accept("READ", "WRITE"):
			s.Access = AccessReadWrite
		default:
			r.fail()
		}
	}
	return s
}

func (r *reader) isolation() Isolation {
	switch {
	case r.accept("READ", "UNCOMMITTED"):
		return ReadUncommitted
	case r.accept("READ", "COMMITTED"):
		return ReadCommitted
	case r.accept("REPEATABLE", "READ"):
		return RepeatableRead
	case r.accept("SERIALIZABLE"):
		return Serializable
	}
	r.fail()
	return IsolationUnspecified
}

// setItem reads one assignment. A scope written before a name holds for the names
// that follow.
func (r *reader) setItem(sticky *Scope) SetItem {
	switch {
	case r.tok.kind == tUserVar:
		item := SetItem{Kind: SetUser, Name: r.userVar()}
		r.assignOp()
		item.Value = r.exprUntilComma()
		return item
	case r.tok.kind == tSysVar:
		item := SetItem{Kind: SetSystem}
		item.Name, item.Scope = sysVar(r.raw(), r.mode)
		if item.Scope == ScopeNone {
			item.Scope = ScopeSession
		}
		r.advance()
		r.assignOp()
		item.Value = r.setValue()
		return item
	}
	l, t := r.mark()
	if r.accept("NAMES") && !r.isOp("=") && !r.isOp(":=") {
		return r.setNames()
	}
	r.back(l, t)
	if r.accept("CHARACTER", "SET") || r.accept("CHAR", "SET") || r.accept("CHARSET") {
		item := SetItem{Kind: SetCharset}
		if !r.accept("DEFAULT") {
			item.Charset = r.charsetName()
		}
		return item
	}
	if scope, ok := r.scope(); ok {
		*sticky = scope
	}
	item := SetItem{Kind: SetSystem, Scope: *sticky, Name: r.name()}
	if r.acceptOp(".") {
		item.Name += "." + r.name()
	}
	r.assignOp()
	item.Value = r.setValue()
	return item
}

func (r *reader) setNames() SetItem {
	item := SetItem{Kind: SetNames}
	if r.accept("DEFAULT") {
		return item
	}
	item.Charset = r.charsetName()
	if r.accept("COLLATE") && !r.accept("DEFAULT") {
		if item.Collate = lower(r.nameOrString()); item.Collate == "" {
			r.failWith(sqlerr.New(sqlerr.UnknownCollation, ""))
		}
	}
	return item
}

// charsetName reads the name of a character set, which is not empty: that is DEFAULT.
func (r *reader) charsetName() string {
	if r.accept("BINARY") { // a reserved word
		return "binary"
	}
	name := lower(r.nameOrString())
	if name == "" {
		r.failWith(sqlerr.New(sqlerr.UnknownCharacterSet, ""))
	}
	return name
}

func (r *reader) assignOp() {
	if !r.acceptOp("=") {
		r.needOp(":=")
	}
}

// sysVar splits @@[scope.]name.
func sysVar(raw string, mode Mode) (string, Scope) {
	name := raw[2:]
	if name != "" && name[0] == '`' {
		return unquote(name, mode), ScopeNone
	}
	prefix, rest, ok := strings.Cut(name, ".")
	if ok {
		if rest != "" && rest[0] == '`' {
			rest = unquote(rest, mode)
		}
		switch upper(prefix) {
		case "GLOBAL":
			return rest, ScopeGlobal
		case "SESSION", "LOCAL":
			return rest, ScopeSession
		case "PERSIST":
			return rest, ScopePersist
		case "PERSIST_ONLY":
			return rest, ScopePersistOnly
		}
	}
	return name, ScopeNone
}

// setValue reads the value of a system variable; nil is DEFAULT.
func (r *reader) setValue() Expr {
	if r.tok.kind == tWord {
		l, t := r.mark()
		word := r.raw()
		r.advance()
		if r.atEnd() || r.isOp(",") {
			switch upper(word) {
			case "DEFAULT":
				return nil
			case "TRUE", "FALSE", "NULL", "CURRENT_TIMESTAMP", "CURRENT_USER", "CURRENT_DATE", "CURRENT_TIME":
			default:
				return &ColumnRef{Name: word}
			}
		}
		r.back(l, t)
	}
	return r.exprUntilComma()
}

// exprUntilComma has the grammar parse what stands before the next comma outside
// brackets.
func (r *reader) exprUntilComma() Expr {
	start, depth := r.tok.start, 0
	for !r.atEnd() {
		switch {
		case r.isOp("("):
			depth++
		case r.isOp(")"):
			depth--
		case r.isOp(",") && depth == 0:
			return r.exprIn(start, r.tok.start)
		}
		r.advance()
	}
	return r.exprIn(start, len(r.sql))
}

func (r *reader) exprIn(start, end int) Expr {
	if r.err != nil {
		return nullLiteral()
	}
	if strings.TrimSpace(r.clean[start:end]) == "" {
		r.failWith(syntaxError(r.sql, start, 0))
		return nullLiteral()
	}
	e, err := parseExprAt(r.text, start, end)
	if err != nil {
		r.failWith(err)
		return nullLiteral()
	}
	return e
}

// show parses SHOW.
func (r *reader) show() Statement {
	s := &Show{}
	s.Extended = r.accept("EXTENDED")
	s.Full = r.accept("FULL")
	if s.Full || s.Extended {
		switch {
		case r.accept("PROCESSLIST") && !s.Extended:
			s.Kind = ShowProcessList
			return s
		case r.is("TABLES"), r.is("COLUMNS"), r.is("FIELDS"), r.is("INDEX"), r.is("INDEXES"), r.is("KEYS"):
		default:
			r.fail()
		}
	}
	for _, list := range [...][]showForm{showForms[:]} {
		for _, f := range list {
			if r.accept(f.words...) {
				s.Kind, s.Name = f.kind, f.name
				f.rest(r, s)
				return s
			}
		}
	}
	r.fail()
	return nil
}

// showForm is one form of SHOW: its words, and what reads the rest.
type showForm struct {
	words []string
	kind  ShowKind
	name  string
	rest  func(*reader, *Show)
}

var showForms = [...]showForm{
	{[]string{"DATABASES"}, ShowSchemas, "", (*reader).showFilter},
	{[]string{"SCHEMAS"}, ShowSchemas, "", (*reader).showFilter},
	{[]string{"TABLES"}, ShowTables, "", (*reader).showFrom},
	{[]string{"TABLE", "STATUS"}, ShowTableStatus, "", (*reader).showFrom},
	{[]string{"OPEN", "TABLES"}, ShowOpenTables, "", (*reader).showFrom},
	{[]string{"COLUMNS"}, ShowColumns, "", (*reader).showOfTable},
	{[]string{"FIELDS"}, ShowColumns, "", (*reader).showOfTable},
	{[]string{"INDEX"}, ShowIndexes, "", (*reader).showOfTable},
	{[]string{"INDEXES"}, ShowIndexes, "", (*reader).showOfTable},
	{[]string{"KEYS"}, ShowIndexes, "", (*reader).showOfTable},
	{[]string{"CREATE", "DATABASE"}, ShowCreateSchema, "", (*reader).showCreateSchema},
	{[]string{"CREATE", "SCHEMA"}, ShowCreateSchema, "", (*reader).showCreateSchema},
	{[]string{"CREATE", "TABLE"}, ShowCreateTable, "", (*reader).showTable},
	{[]string{"CREATE", "VIEW"}, ShowCreateView, "", (*reader).showTable},
	{[]string{"CREATE", "USER"}, ShowCreateUser, "", (*reader).showUser},
	{[]string{"CREATE", "PROCEDURE"}, ShowCreateProgram, "PROCEDURE", (*reader).showTable},
	{[]string{"CREATE", "FUNCTION"}, ShowCreateProgram, "FUNCTION", (*reader).showTable},
	{[]string{"CREATE", "TRIGGER"}, ShowCreateProgram, "TRIGGER", (*reader).showTable},
	{[]string{"CREATE", "EVENT"}, ShowCreateProgram, "EVENT", (*reader).showTable},
	{[]string{"GLOBAL", "VARIABLES"}, ShowVariables, "", (*reader).showGlobal},
	{[]string{"SESSION", "VARIABLES"}, ShowVariables, "", (*reader).showFilter},
	{[]string{"LOCAL", "VARIABLES"}, ShowVariables, "", (*reader).showFilter},
	{[]string{"VARIABLES"}, ShowVariables, "", (*reader).showFilter},
	{[]string{"GLOBAL", "STATUS"}, ShowStatus, "", (*reader).showGlobal},
	{[]string{"SESSION", "STATUS"}, ShowStatus, "", (*reader).showFilter},
	{[]string{"LOCAL", "STATUS"}, ShowStatus, "", (*reader).showFilter},
	{[]string{"STATUS"}, ShowStatus, "", (*reader).showFilter},
	{[]string{"WARNINGS"}, ShowWarnings, "", (*reader).showLimit},
	{[]string{"ERRORS"}, ShowErrors, "", (*reader).showLimit},
	{[]string{"COUNT"}, ShowWarnings, "", (*reader).showCount},
	{[]string{"PROCESSLIST"}, ShowProcessList, "", (*reader).showNothing},
	{[]string{"GRANTS"}, ShowGrants, "", (*reader).showGrants},
	{[]string{"PRIVILEGES"}, ShowPrivileges, "", (*reader).showNothing},
	{[]string{"STORAGE", "ENGINES"}, ShowEngines, "", (*reader).showNothing},
	{[]string{"ENGINES"}, ShowEngines, "", (*reader).showNothing},
	{[]string{"ENGINE"}, ShowEngine, "", (*reader).showEngine},
	{[]string{"PLUGINS"}, ShowPlugins, "", (*reader).showNothing},
	{[]string{"CHARACTER", "SET"}, ShowCharset, "", (*reader).showFilter},
	{[]string{"CHARSET"}, ShowCharset, "", (*reader).showFilter},
	{[]string{"COLLATION"}, ShowCollation, "", (*reader).showFilter},
	{[]string{"TRIGGERS"}, ShowTriggers, "", (*reader).showFrom},
	{[]string{"EVENTS"}, ShowEvents, "", (*reader).showFrom},
	{[]string{"PROCEDURE", "STATUS"}, ShowProcedures, "", (*reader).showFilter},
	{[]string{"FUNCTION", "STATUS"}, ShowFunctions, "", (*reader).showFilter},
	{[]string{"PROCEDURE", "CODE"}, ShowProcedures, "", (*reader).showUnsupported},
	{[]string{"FUNCTION", "CODE"}, ShowFunctions, "", (*reader).showUnsupported},
	{[]string{"PROFILES"}, ShowProfiles, "", (*reader).showNothing},
	{[]string{"PROFILE"}, ShowProfile, "", (*reader).showUnsupported},
	{[]string{"BINARY", "LOGS"}, ShowBinaryLogs, "", (*reader).showNothing},
	{[]string{"MASTER", "LOGS"}, ShowBinaryLogs, "", (*reader).showNothing},
	{[]string{"BINARY", "LOG", "STATUS"}, ShowBinaryLogStatus, "", (*reader).showNothing},
	{[]string{"MASTER", "STATUS"}, ShowBinaryLogStatus, "", (*reader).showNothing},
	{[]string{"BINLOG", "EVENTS"}, ShowBinaryLogEvents, "", (*reader).showEvents},
	{[]string{"RELAYLOG", "EVENTS"}, ShowRelayLogEvents, "", (*reader).showEvents},
	{[]string{"REPLICAS"}, ShowReplicas, "", (*reader).showNothing},
	{[]string{"SLAVE", "HOSTS"}, ShowReplicas, "", (*reader).showNothing},
	{[]string{"REPLICA", "STATUS"}, ShowReplicaStatus, "", (*reader).showChannel},
	{[]string{"SLAVE", "STATUS"}, ShowReplicaStatus, "", (*reader).showChannel},
}

func (r *reader) showNothing(*Show) {}

func (r *reader) showUnsupported(s *Show) { r.failWith(unsupported("SHOW " + r.clean[5:r.tok.start])) }

// showFilter reads [LIKE 'pattern' | WHERE condition].
func (r *reader) showFilter(s *Show) {
	switch {
	case r.accept("LIKE"):
		s.Like = r.literal()
	case r.accept("WHERE"):
		s.Where = r.exprRest()
	}
}

func (r *reader) showGlobal(s *Show) {
	s.Global = true
	r.showFilter(s)
}

func (r *reader) showFrom(s *Show) {
	if r.oneOf("FROM", "IN") {
		s.Schema = r.name()
	}
	r.showFilter(s)
}

func (r *reader) showOfTable(s *Show) {
	if !r.oneOf("FROM", "IN") {
		r.fail()
	}
	s.Table = r.tableName()
	if r.oneOf("FROM", "IN") {
		s.Table.Schema = r.name()
	}
	r.showFilter(s)
}

func (r *reader) showCreateSchema(s *Show) {
	s.IfNotExists = r.accept("IF", "NOT", "EXISTS")
	s.Schema = r.name()
}

func (r *reader) showTable(s *Show) { s.Table = r.tableName() }

func (r *reader) showUser(s *Show) {
	if !r.atEnd() {
		u := r.user()
		s.User = &u
	}
}

func (r *reader) showLimit(s *Show) { s.Limit = r.limit() }

func (r *reader) showCount(s *Show) {
	r.needOp("(")
	r.needOp("*")
	r.needOp(")")
	s.Count = true
	if r.accept("ERRORS") {
		s.Kind = ShowErrors
	} else {
		r.need("WARNINGS")
	}
}

func (r *reader) showGrants(s *Show) {
	if !r.accept("FOR") {
		return
	}
	u := r.user()
	s.User = &u
	if r.accept("USING") {
		s.Using = r.users()
	}
}

func (r *reader) showEngine(s *Show) {
	s.Name = r.nameOrString()
	for _, w := range []string{"STATUS", "MUTEX", "LOGS"} {
		if r.accept(w) {
			s.What = w
			return
		}
	}
	r.fail()
}

func (r *reader) showEvents(s *Show) {
	if r.accept("IN") {
		s.File = r.str()
	}
	if r.accept("FROM") {
		s.Position = r.number()
	}
	s.Limit = r.limit()
	r.showChannel(s)
}

func (r *reader) showChannel(s *Show) {
	if r.accept("FOR", "CHANNEL") {
		s.Channel = r.nameOrString()
	}
}

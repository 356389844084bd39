package session

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// AuditClass is a set of kinds of events that the audit log may have, as audit_log_events names them.
type AuditClass uint8

// The kinds of events.
const (
	AuditLogin      AuditClass = 1 << iota // who came in, who was refused, who left
	AuditAccount                           // accounts, roles and privileges
	AuditAdmin                             // KILL, FLUSH, SET GLOBAL, .., and who looks at the settings of the audit
	AuditDefinition                        // of schemas, tables, views and indexes
	AuditRead                              // rows were read
	AuditWrite                             // rows were changed, or were to be

	auditStatements = AuditAccount | AuditAdmin | AuditDefinition | AuditRead | AuditWrite
	auditRows       = AuditRead | AuditWrite
)

var auditNames = []string{"LOGIN", "ACCOUNT", "ADMIN", "DEFINITION", "READ", "WRITE"}

// String has the names as audit_log_events has them.
func (c AuditClass) String() string {
	var names []string
	for i, name := range auditNames {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// AuditPrivilege is what it takes to see or set a variable of the audit.
const AuditPrivilege = "AUDIT_ADMIN"

// AuditedStatement tells of a statement for the audit log. No value that it has is in it.
type AuditedStatement struct {
	Class                    AuditClass // what it is, of what was asked for
	Session                  uint64
	User, Host               string // as the client named itself, and where it comes from
	AccountUser, AccountHost string
	Door                     string // by which it came in
	ReadOnly                 bool   // by the port for reads
	Schema                   string // the current one; empty: none
	Text                     string // its digest: ? for each value
	Tables                   []string
	Accounts                 []string // that it names
	Variables                []string // global ones that it sets; of those of the audit with the value that they have now
	Killed                   string   // the session that KILL names; empty: none
	Took                     time.Duration
	RowsSent, RowsAffected   uint64
	Error                    sqlerr.Code // number; 0: it succeeded
	State                    string      // SQLSTATE of the error
}

// auditFilter is what the variables of the audit ask for.
type auditFilter struct {
	events           AuditClass
	include, exclude []string // patterns of accounts as user@host; no include: all
	tables           []string // patterns of schema.table; none: all
}

// audits is the filter in force.
type audits struct{ filter atomic.Pointer[auditFilter] }

// setAudit puts the variables of the audit in force.
func (m *Manager) setAudit() {
	text := func(name string) []string { return auditList(m.global(variables[name]).s) }
	f := &auditFilter{events: AuditClass(m.global(variables["audit_log_events"]).n), include: text("audit_log_include_accounts"),
		exclude: text("audit_log_exclude_accounts"), tables: text("audit_log_tables")}
	m.audit.filter.Store(f)
}

// auditList are the patterns of a variable.
func auditList(text string) (list []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// auditVariables declares the variables of the audit.
func auditVariables() []*variable {
	patterns := func(name, separator, never string) *variable {
		return stringVar(name, inGlobal, "").onCheck(func(_ *Session, x *varValue) error {
			for _, p := range auditList(x.s) {
				if _, err := path.Match(p, ""); err != nil || strings.Count(p, separator) != 1 || strings.ContainsAny(p, never) {
					return sqlerr.Newf(sqlerr.WrongValueForVar, "Variable '%s' can't be set to the value of "+
						"'%.200s': '%.64s' is not of the form a%sb, without quotes, where * stands for any text", name,
						x.s, p, separator)
				}
			}
			return nil
		})
	}
	list := []*variable{
		setVar("audit_log_events", inGlobal, uint64(AuditLogin|AuditAccount|AuditAdmin|AuditDefinition), auditNames...),
		patterns("audit_log_include_accounts", "@", "`\"'"),
		patterns("audit_log_exclude_accounts", "@", "`\"'"),
		patterns("audit_log_tables", ".", "`\"'% "),
	}
	for _, v := range list {
		v.privilege = AuditPrivilege
		v.appliedGlobal = func(m *Manager, _ varValue) { m.setAudit() }
	}
	return list
}

// seeVariable is asked before a variable's value is told. Error: 1227.
func (s *Session) seeVariable(v *variable) error {
	if v.privilege == "" {
		return nil
	}
	s.meter.seesAudit = true
	return s.privileges().Needs(0, v.privilege)
}

// AuditsLogin reports whether the audit log is to have who comes and goes of an account. Who was refused has none, whoever he says he is:
// such are of all accounts.
func (m *Manager) AuditsLogin(user, host string, refused bool) bool {
	f := m.audit.filter.Load()
	return f != nil && f.events&AuditLogin != 0 && (refused || f.wants(user, host))
}

// wants reports whether the events of an account are.
func (f *auditFilter) wants(user, host string) bool {
	if len(f.include) == 0 && len(f.exclude) == 0 {
		return true
	}
	matches := func(p string) bool {
		at := strings.LastIndexByte(p, '@')
		u, _ := path.Match(p[:at], user)
		h, _ := path.Match(p[at+1:], host)
		return u && h
	}
	if len(f.include) > 0 && !slices.ContainsFunc(f.include, matches) {
		return false
	}
	return !slices.ContainsFunc(f.exclude, matches)
}

// audit tells of a statement that has ended, if it is to be audited. text is its digest, empty if it is not known.
func (s *Session) audit(took time.Duration, text string, sent uint64, err error) {
	if s.m.opt.Audit == nil {
		return
	}
	before, f := s.meter.filter, s.m.audit.filter.Load()
	if before != nil && before != f && before.events&auditStatements != 0 && s.audited(before, took, text, sent, err) {
		return // it may have been what has changed the filter, so that nobody would hear of it
	}
	if f.events&auditStatements != 0 {
		s.audited(f, took, text, sent, err)
	}
}

// audited is audit by a filter, and reports whether it has told of the statement.
func (s *Session) audited(f *auditFilter, took time.Duration, text string, sent uint64, err error) bool {
	m := &s.meter
	tree := m.tree
	class := auditClass(tree)
	if m.unknown || m.seesAudit && asksForAudit(tree) {
		class |= AuditAdmin
	}
	// What else reads rows, as SET @a = (SELECT ..), is found by its tables.
	if f.events&(class|AuditRead) == 0 || tree == nil && class == 0 || !f.wants(s.info.AccountUser, s.info.AccountHost) {
		return false
	}
	var asks []ask
	if m.ran != nil {
		asks = m.ran.asks
	} else if tree != nil {
		asks = asksOf(tree, s.schema)
	}
	if slices.ContainsFunc(asks, func(a ask) bool { return a.need&priv.Select != 0 }) {
		class |= AuditRead
	}
	e := AuditedStatement{Session: s.id, User: s.info.User, Host: s.info.Host, AccountUser: s.info.AccountUser, AccountHost: s.info.AccountHost,
		Door: s.info.Door, ReadOnly: s.info.ReadOnly, Schema: s.schema, Took: took, RowsSent: sent, RowsAffected: m.out.AffectedRows, Error: errorNumber(err)}
	e.Tables = s.auditTables(tree, class, asks)
	if e.Class = f.events & class; e.Class&^auditRows == 0 && !f.wantsTables(e.Tables) {
		return false
	}
	if e.Class == 0 {
		return false
	}
	e.Variables = s.auditedSets(tree)
	if class&AuditAccount != 0 {
		e.Accounts = auditAccounts(tree)
	}
	if _, ok := tree.(*ast.Kill); ok {
		e.Killed = m.killed
	}
	switch {
	case m.source != nil && errorNumber(err) != sqlerr.ParseError:
		e.Text = string(ast.AppendDigest(nil, m.source.sql, m.source.mode, digestText))
	case text != "":
		e.Text = text
	default:
		e.Text = m.digested(err)
	}
	if told, ok := err.(*sqlerr.Error); ok {
		e.State = told.State
	}
	s.m.opt.Audit(e)
	return true
}

// asksForAudit reports whether a statement that was given variables of the audit, with others, may have wanted them: SHOW VARIABLES LIKE
// 'pattern' goes through all.
func asksForAudit(tree ast.Statement) bool {
	show, ok := tree.(*ast.Show)
	if !ok {
		return true
	}
	pattern, ok := show.Like.(*ast.Literal)
	if !ok || pattern.Kind != ast.LiteralString {
		return true
	}
	text := strings.ToLower(string(pattern.Value.Bytes()))
	return slices.ContainsFunc(varSlots, func(v *variable) bool { return v.privilege != "" && priv.Like(text, v.name) })
}

// wantsTables reports whether statements that use the tables are.
func (f *auditFilter) wantsTables(tables []string) bool {
	if len(f.tables) == 0 {
		return true
	}
	return slices.ContainsFunc(tables, func(t string) bool {
		return slices.ContainsFunc(f.tables, func(p string) bool { ok, _ := path.Match(p, t); return ok })
	})
}

// auditClass says what kind of event a statement is, but for rows that it reads besides.
func auditClass(tree ast.Statement) AuditClass {
	switch st := tree.(type) {
	case *ast.Select, *ast.SetOp, *ast.Values:
		return AuditRead
	case *ast.Explain: // ANALYZE runs it, and what is shown tells of rows
		if st.Statement != nil {
			return AuditRead
		}
	case *ast.Insert, *ast.Update, *ast.Delete, *ast.LoadData:
		return AuditWrite
	case *ast.Truncate:
		return AuditDefinition | AuditWrite
	case *ast.CreateUser, *ast.AlterUser, *ast.DropUser, *ast.RenameUser, *ast.SetPassword, *ast.Grant, *ast.RevokeAll, *ast.GrantRole,
		*ast.SetDefaultRole:
		return AuditAccount
	case *ast.CreateSchema, *ast.AlterSchema, *ast.DropSchema, *ast.CreateTable, *ast.AlterTable, *ast.DropTable,
		*ast.RenameTables, *ast.CreateIndex, *ast.DropIndex, *ast.CreateView, *ast.DropView:
		return AuditDefinition
	case *ast.Kill, *ast.Flush, *ast.InstanceLock, *ast.Component, *ast.ReloadTLS, *ast.Maintain, *ast.Reset, *ast.Shutdown:
		return AuditAdmin
	case *ast.Set:
		if len(auditSets(st)) > 0 {
			return AuditAdmin
		}
	case *ast.SetTransaction:
		if st.Scope == ast.ScopeGlobal {
			return AuditAdmin
		}
	}
	return 0
}

// auditTables are the tables that a statement names, and those of the views among them.
func (s *Session) auditTables(tree ast.Statement, class AuditClass, asks []ask) (list []string) {
	add := func(schema, name string) {
		if name == "" {
			return
		}
		if name = cmp.Or(schema, s.schema) + "." + name; !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	for i := range asks {
		add(asks[i].schema, asks[i].table)
	}
	known := 0 // of these the plan has what is behind views; what was refused, or only explained, has none
	if ran := s.meter.ran; ran != nil {
		for i := range ran.tables {
			add(ran.tables[i].schema, ran.tables[i].name)
		}
		known = len(list)
	}
	if class&(AuditDefinition|AuditAdmin) != 0 {
		each(tree, func(t ast.TableName) { add(t.Schema, t.Name) })
	} else if st, ok := tree.(*ast.LoadData); ok {
		add(st.Table.Schema, st.Table.Name)
	}
	for i := known; i < len(list) && i < auditedTables; i++ {
		schema, name, _ := strings.Cut(list[i], ".")
		if _, virtual := virtualSchema(schema); virtual {
			continue
		}
		if v, is := s.viewNamed(schema, name); is {
			if q, err := catalog.ParseQuery(v.Query, s.holdsText); err == nil {
				for _, a := range asksOf(q, v.Schema) {
					add(a.schema, a.table)
				}
			}
		}
	}
	return list
}

// auditedTables is up to how many tables of a statement are looked at for being views.
const auditedTables = 1000

// auditAccounts are the accounts that an account statement names.
func auditAccounts(tree ast.Statement) (list []string) {
	each(tree, func(u ast.User) {
		name := "CURRENT_USER"
		if !u.Current {
			name = priv.ID{Name: u.Name, Host: u.Host}.Text()
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	})
	return list
}

// auditSets are the global variables that a SET sets.
func auditSets(tree ast.Statement) (list []string) {
	st, ok := tree.(*ast.Set)
	if !ok {
		return nil
	}
	for i := range st.Items {
		switch item := &st.Items[i]; item.Scope {
		case ast.ScopeGlobal, ast.ScopePersist, ast.ScopePersistOnly:
			list = append(list, strings.ToLower(item.Name))
		}
	}
	return list
}

// auditedSets is auditSets for a line of the log, where nobody switches the audit off unseen.
func (s *Session) auditedSets(tree ast.Statement) []string {
	list := auditSets(tree)
	for i, name := range list {
		if v := variables[name]; v != nil && v.privilege != "" {
			list[i] += "=" + v.text(s.m.global(v))
		}
	}
	return list
}

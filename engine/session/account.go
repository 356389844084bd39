package session

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/catalog"
	"github.com/triremedb/trireme/engine/sql/plan"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/storage/table"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// accountCache is the accounts of a node in memory. Every change of an account changes
// the definition of mysql.user in its transaction too, so that on each node the handle that
// the cache holds stops being current with the commit: a check costs a load or two.
type accountCache struct {
	last atomic.Pointer[knownAccounts]
}

// knownAccounts are the accounts as of a definition of mysql.user.
type knownAccounts struct {
	eng    *storage.Engine
	handle *dict.Handle // nil if there are no system tables
	set    *priv.Set
	// lookAgain is when to look for system tables again, where there are none.
	lookAgain atomic.Int64

	// active is what sessions share of one account, host and active roles: it takes kilobytes.
	mu     sync.Mutex
	active map[string]*priv.Active
}

// activeMost bounds how many are shared; the sessions of others have their own.
const activeMost = 1024

// activeFor is what an account may do that comes from a host with roles.
func (k *knownAccounts) activeFor(id priv.ID, host string, roles []priv.ID) *priv.Active {
	name := fmt.Sprintf("%q %q %q", id, host, roles)
	k.mu.Lock()
	defer k.mu.Unlock()
	of := k.active[name]
	if of == nil {
		of = k.set.Active(id, host, roles)
		if k.active == nil {
			k.active = make(map[string]*priv.Active)
		}
		if len(k.active) < activeMost {
			k.active[name] = of
		}
	}
	return of
}

// bootstrapLook is how often is looked for system tables where there are none.
const bootstrapLook = 200 * time.Millisecond

// sessionACL is what a session may do.
type sessionACL struct {
	known  *knownAccounts // that active was made from
	active *priv.Active
	// roles are those that the session has begun with, or that SET ROLE has named: they stay, whatever roles the account
	// is given, or a variable activates, later. Of them those are active that are granted. begun says that they are known:
	// a session that began before there were accounts has them from the first look at its account on.
	roles  []priv.ID
	begun  bool
	system bool  // the statement is the server's own
	unread error // why the accounts could not be read, for this statement; nil: they could
}

// accounts returns the accounts, nil if there are no system tables yet.
func (m *Manager) accounts() (*knownAccounts, error) {
	eng, err := m.opt.Backend.Engine()
	if err != nil {
		return nil, err
	}
	k := m.accountsKnown.last.Load()
	if k != nil && k.eng == eng && (k.handle == nil || k.handle.Current()) {
		if k.handle != nil && !k.set.Empty() { // else the first account is being applied
			return k, nil
		}
		if now := int64(m.env.Monotonic()); now < k.lookAgain.Load() {
			return k, nil
		} else if _, err := eng.Catalog.FindSchema(nil, priv.Schema); err != nil {
			k.lookAgain.Store(now + int64(bootstrapLook))
			return k, nil
		}
	}
	next, err := m.loadAccounts(eng)
	if err != nil {
		// Of a database whose engine was taken away meanwhile, and is another one now, nothing is damaged.
		if now, e := m.opt.Backend.Engine(); e == nil && now == eng && storage.Damaged(err) {
			m.opt.Backend.Fail(fmt.Errorf("the accounts cannot be read: %w", err))
		}
		return nil, err
	}
	if m.accountsKnown.last.CompareAndSwap(k, next) {
		if k != nil && k.handle != nil && k.eng == eng {
			k.handle.Release()
		}
	} else if next.handle != nil {
		next.handle.Release()
		next.handle = nil // not kept: it is good for one use
		next.eng = nil
	}
	return next, nil
}

// forgetAccounts gives the cache's handle back.
func (m *Manager) forgetAccounts() {
	if k := m.accountsKnown.last.Swap(nil); k != nil && k.handle != nil {
		k.handle.Release()
	}
}

// loadAccounts reads the system tables. The handle is taken first: what is read is at
// least as new as it.
func (m *Manager) loadAccounts(eng *storage.Engine) (*knownAccounts, error) {
	k := &knownAccounts{eng: eng}
	h, err := eng.Catalog.OpenTable(nil, priv.Schema, priv.TableNames[0])
	if errors.Is(err, table.ErrNoTable) || errorNumber(err) == sqlerr.NoSuchTable ||
		errorNumber(err) == sqlerr.BadDBError {
		k.lookAgain.Store(int64(m.env.Monotonic() + bootstrapLook))
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	w, err := m.opt.Backend.NewSession()
	if err == nil {
		k.set, err = m.readCommitted(w)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		h.Release()
		return nil, err
	}
	m.arrange(k.set)
	k.handle = h
	return k, nil
}

// readCommitted reads the system tables as they are committed. It does not wait for a session that changes them: that may be the
// one that asks, and every login asks. The definitions that it finds are not those of its snapshot if a change is committed at
// that moment: it looks again then.
func (m *Manager) readCommitted(w *txn.Session) (set *priv.Set, err error) {
	for try := 0; ; try++ {
		if err = w.Begin(txn.BeginOptions{}); err != nil {
			return nil, err
		}
		set, err = readAccounts(w.OpenUnlocked, w)
		err = errors.Join(err, w.Rollback())
		if !errors.Is(err, table.ErrTableChanged) || try == definitionTries {
			return set, err
		}
		env.Sleep(m.env, definitionPause)
	}
}

// A change of definitions is in the catalogue when its commit is over, which is waited for so often, and so long each time.
const (
	definitionTries = 1000
	definitionPause = 5 * time.Millisecond
)

// arrange tells a set what this node's variables say of it.
func (m *Manager) arrange(set *priv.Set) {
	set.Mandatory, _ = priv.ParseRoles(m.global(varMandatory).s) // checked when it was set
	set.Literal = m.global(varPartial).n != 0
}

// readAccounts reads the system tables as the transaction sees them, which are opened by a method of it.
func readAccounts(open func(schema, name string) (*txn.Table, error), w *txn.Session) (*priv.Set, error) {
	rows := map[string][]priv.Row{}
	for _, name := range priv.TableNames {
		o, err := open(priv.Schema, name)
		if errors.Is(err, table.ErrNoTable) && priv.Added(name) {
			continue // until a leader of this version has added it
		}
		if err != nil {
			return nil, err
		}
		if rows[name], err = readTexts(w, o); err != nil {
			return nil, err
		}
	}
	return priv.Load(rows), nil
}

// readTexts reads a table's rows as texts.
func readTexts(w *txn.Session, o *txn.Table) ([]priv.Row, error) {
	def := o.Definition()
	var columns []int
	var names []string
	var list []*types.Type
	for p := range def.Columns {
		if c := &def.Columns[p]; c.DroppedIn == 0 && !c.Hidden {
			columns, names, list = append(columns, p), append(names, dict.Fold(c.Name)), append(list, &c.Type)
		}
	}
	var rows []priv.Row
	b := types.NewRow(list)
	scan := w.NewScan()
	if err := scan.Start(o, table.Range{Columns: columns}); err != nil {
		return nil, err
	}
	for more := true; more; {
		b.Reset()
		var err error
		if more, err = scan.Next(b); err != nil {
			return nil, err
		}
		for i := range b.Len() {
			r := make(priv.Row, len(names))
			for k, name := range names {
				if v := b.Vecs[k].Value(i); !v.IsNull() {
					r[name] = string(types.AppendText(nil, v, list[k], nil))
				}
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// accountID is the account that the session works by.
func (s *Session) accountID() priv.ID { return s.info.account() }

func (c *ConnectionInfo) account() priv.ID {
	if c.AccountUser == "" && c.AccountHost == "" {
		return priv.NewID(c.User, c.Host)
	}
	return priv.NewID(c.AccountUser, c.AccountHost)
}

var everything = priv.Everything()

// privileges are what the session may do now. Where there are no system tables, before
// the group's bootstrap, it is everything; where they cannot be read, nothing: what the
// statement is refused then fails with the reason for that, see clientError.
func (s *Session) privileges() *priv.Active {
	a := &s.acl
	if a.system {
		return everything
	}
	k, err := s.m.accounts()
	switch {
	case err != nil:
		a.unread = err // also if a later look, for the same statement, succeeds
		return priv.NewSet().Active(s.accountID(), s.info.Host, nil)
	case k.set == nil:
		return everything
	case k == a.known:
		return a.active
	}
	id := s.accountID()
	if of := k.set.Account(id); of != nil && !a.begun {
		a.roles, a.begun = k.set.LoginRoles(of), true
		if s.m.global(variables["activate_all_roles_on_login"]).n != 0 {
			a.roles = k.set.RolesOf(of)
		}
	}
	a.known, a.active = k, k.activeFor(id, s.info.Host, a.roles)
	s.systemRoles.Store(a.active.SystemUser())
	return a.active
}

// MatchAccount returns the account of a user that comes from a host, by its name or its
// address, for doors. ok is false if there is none; before the group's bootstrap there
// are none. Error: 1053, they cannot be read here.
func (m *Manager) MatchAccount(user, host, address string) (a priv.Account, ok bool, err error) {
	k, err := m.accounts()
	if err == nil && k.set == nil {
		k.lookAgain.Store(0) // they may have come this moment
		k, err = m.accounts()
	}
	if err != nil {
		return a, false, sqlerr.Newf(sqlerr.ServerShutdown, "Server shutdown in progress: accounts cannot be read "+
			"here: %v; connect again", err)
	}
	if k.set == nil {
		return a, false, nil
	}
	if of := k.set.Match(user, host, address); of != nil {
		return *of, true, nil
	}
	return a, false, nil
}

// HasAccounts reports whether any account is known here: a group that has begun has one, and every member
// once it has applied it. Where they cannot be read, MatchAccount says why.
func (m *Manager) HasAccounts() bool {
	k, err := m.accounts()
	return err != nil || k.set != nil && !k.set.Empty()
}

// ReadAccounts reads the accounts, if there are system tables.
func (m *Manager) ReadAccounts() error {
	_, err := m.accounts()
	return err
}

// AccountHas reports whether an account, with its default roles, holds one of the
// privileges of the administrator's place: CONNECTION_ADMIN or SUPER.
func (m *Manager) AccountHas(id priv.ID, dynamic string) bool {
	k, err := m.accounts()
	if err != nil || k.set == nil {
		return false
	}
	of := k.set.Account(id)
	return of != nil && k.set.Active(id, "", k.set.LoginRoles(of)).Dynamic(dynamic)
}

// admit is asked when a session begins, or becomes another account's. Errors: 1045, 1203, 1226, and why the
// accounts cannot be read.
func (m *Manager) admit(s *Session) error {
	s.acl = sessionACL{system: s.info.system}
	if s.info.system {
		return nil
	}
	if err := s.m.ReadAccounts(); err != nil {
		return s.clientError(err)
	}
	a := s.privileges()
	if a.Missing {
		return sqlerr.New(sqlerr.AccessDeniedError, s.info.User, s.info.Host, "YES")
	}
	s.leaveUse()
	k, err := m.accounts()
	if err != nil || k.set == nil || s.info.Admin {
		return err
	}
	most := uint32(m.global(varUserConnections).n)
	if a.Needs(priv.Super, "CONNECTION_ADMIN") == nil {
		most = 0
	}
	if of := k.set.Account(s.accountID()); of != nil {
		return m.uses.admit(s, of.ID, of.Limits, most)
	}
	return nil
}

// mayUse is asked by USE: error 1044.
func (s *Session) mayUse(schema string) error { return s.privileges().MayUse(schema) }

// mayRun is asked before a query or change runs, also from a cached plan: errors 1142
// and 1143; under LOCK TABLES 1099.
func (s *Session) mayRun(uses []plan.Use, kind string, st ast.Node) error {
	if s.shared.commits && slices.ContainsFunc(uses, func(u plan.Use) bool { return u.Changed }) {
		return s.mayChangeRows()
	}
	if s.trx.tables.held {
		for i := range uses {
			if u := &uses[i]; u.Changed && !s.ownUse(u) {
				if err := s.trx.tables.checkWrite(u.Schema, u.Table); err != nil {
					return err
				}
			}
		}
	}
	a := s.privileges()
	if a == everything {
		return nil
	}
	for i := range uses {
		u := &uses[i]
		if s.ownUse(u) {
			continue
		}
		if u.View != "" {
			if err := s.mayUseBelow(u, kind); err != nil {
				return err
			}
			continue
		}
		if !u.Changed {
			if err := mayUseColumns(a, u, u.Columns, priv.Select, "SELECT", st); err != nil {
				return err
			}
			if u.Locked {
				if err := a.AnyTable(u.Schema, u.Table, priv.Update|priv.Delete|priv.LockTables, "SELECT with locking clause"); err != nil {
					return err
				}
			}
			continue
		}
		if err := mayChange(a, u, kind, st); err != nil {
			return err
		}
	}
	return nil
}

// kindLockTables is the kind of statement that mayUseBelow is told of LOCK TABLES.
const kindLockTables = "LOCK TABLES"

// mayUseBelow checks what a view reads, or what a statement changes or locks through it: by the privileges of its definer, or of who asks.
// Errors: 1356, 1449.
func (s *Session) mayUseBelow(u *plan.Use, kind string) error {
	schema, name, _ := strings.Cut(u.View, ".")
	a := s.privileges()
	v := catalog.View{Invoker: schema == sysSchema}
	if !v.Invoker {
		h, err := s.eng.Catalog.OpenTable(s.txn.Trx(), schema, name)
		if err != nil {
			return err
		}
		v, _ = catalog.ViewOf(h.Table().Schema.Table)
		h.Release()
	}
	var err error
	if !v.Invoker {
		k, err := s.m.accounts()
		if err != nil || k.set == nil {
			return err
		}
		id := priv.NewID(v.Definer.Name, v.Definer.Host)
		of := k.set.Account(id)
		if of == nil {
			return sqlerr.New(sqlerr.NoSuchUser, id.Text())
		}
		a = k.set.Active(id, "", of.DefaultRoles)
	}
	switch {
	case kind == kindLockTables:
		err = mayLockBy(a, u.Schema, u.Table)
	case u.Changed:
		err = mayChange(a, u, kind, &ast.Insert{})
	case u.Schema == perfSchema && guarded[u.Table]:
		err = mayReadPerf(a, u.Table, s.info.Host)
	default:
		err = a.Columns(u.Schema, u.Table, u.Columns, priv.Select, "SELECT")
	}
	if err != nil {
		return sqlerr.New(sqlerr.ViewInvalid, u.View)
	}
	return nil
}

// mayChange checks the privileges for changing rows.
func mayChange(a *priv.Active, u *plan.Use, kind string, st ast.Node) error {
	switch kind {
	case "INSERT":
		if err := mayUseColumns(a, u, u.Columns, priv.Insert, "INSERT", st); err != nil || len(u.Assigned) == 0 {
			return err
		}
		return a.Columns(u.Schema, u.Table, u.Assigned, priv.Update, "UPDATE")
	case "REPLACE":
		if err := mayUseColumns(a, u, u.Columns, priv.Insert, "INSERT", st); err != nil {
			return err
		}
		return a.Table(u.Schema, u.Table, priv.Delete, "DELETE")
	case "UPDATE", "DELETE":
		if kind == "DELETE" {
			if err := a.Table(u.Schema, u.Table, priv.Delete, "DELETE"); err != nil {
				return err
			}
		}
		if err := a.Read(u.Schema, u.Table, u.Columns); err != nil || kind == "DELETE" {
			return err
		}
		if len(u.Assigned) == 0 { // a view between the table and the one that is named, of whose columns the names are not known
			return a.Table(u.Schema, u.Table, priv.Update, "UPDATE")
		}
		return a.Columns(u.Schema, u.Table, u.Assigned, priv.Update, "UPDATE")
	}
	return a.Table(u.Schema, u.Table, priv.Select|priv.Insert|priv.Update|priv.Delete, kind)
}

// mayUseColumns checks a privilege on columns. Errors: 1142, 1143, which only names a column that the statement names itself:
// what * stands for, or INSERT without a list, is not told.
func mayUseColumns(a *priv.Active, u *plan.Use, columns []string, need priv.Mask, command string, st ast.Node) error {
	err := a.Columns(u.Schema, u.Table, columns, need, command)
	if errorNumber(err) != sqlerr.ColumnAccessDeniedError {
		return err
	}
	for _, c := range columns {
		if a.ColumnMask(u.Schema, u.Table, c)&need == 0 && !mentions(st, c) {
			return a.Table(u.Schema, u.Table, need, command)
		}
	}
	return err
}

// mentions reports whether a statement names a column.
func mentions(st ast.Node, column string) bool {
	found := false
	inspect(st, func(n ast.Node) bool {
		names := []string(nil)
		switch n := n.(type) {
		case *ast.ColumnRef:
			names = []string{n.Name}
		case *ast.Insert:
			names = n.Columns
		case *ast.Join:
			names = n.Using
		}
		for _, name := range names {
			found = found || dict.Fold(name) == dict.Fold(column)
		}
		return !found
	})
	return found
}

// hideColumns is the error of a statement that names a column that is not there, or in two tables, for who has not SELECT on it
// or all of a table that it reads: neither is told. Errors: instead of 1052 and 1054 1143, of 1136 1142.
func (s *Session) hideColumns(c *compiled, err error) error {
	a := s.privileges()
	if st, ok := c.kind.(*ast.Insert); ok && errorNumber(err) == sqlerr.WrongValueCountOnRow && len(st.Columns) == 0 {
		// How many there are is for who may use all.
		if schema, e := s.schemaOf(st.Table); e == nil {
			if denied := a.Table(schema, st.Table.Name, priv.Insert, "INSERT"); denied != nil {
				return denied
			}
		}
	}
	if n := errorNumber(err); n != sqlerr.BadFieldError && n != sqlerr.NonUniqError {
		return err
	}
	name := quotedName(errorText(err))
	var set []string // of those that it sets it is told, as MySQL does
	switch st := c.kind.(type) {
	case *ast.Update:
		for i := range st.Set {
			set = append(set, st.Set[i].Column.Name)
		}
	case *ast.Insert:
		set = st.Columns
	}
	if slices.ContainsFunc(set, func(s string) bool { return dict.Fold(s) == dict.Fold(name) }) {
		return err
	}
	for i := range c.asks {
		if k := &c.asks[i]; k.need&^priv.Insert != 0 && a.Columns(k.schema, k.table, []string{name}, priv.Select, "SELECT") != nil {
			return sqlerr.New(sqlerr.ColumnAccessDeniedError, "SELECT", a.ID.Name, s.info.Host, name, k.table)
		}
	}
	return err
}

// quotedName is what a message has between its first apostrophes, behind the last point.
func quotedName(message string) string {
	_, rest, _ := strings.Cut(message, "'")
	name, _, _ := strings.Cut(rest, "'")
	return name[strings.LastIndexByte(name, '.')+1:]
}

// maySetVariable is asked by SET: error 1227 for global ones.
func (s *Session) maySetVariable(v *variable, scope ast.Scope) error {
	if scope == ast.ScopeNone || scope == ast.ScopeSession {
		return nil
	}
	if v == varMandatory {
		if a := s.privileges(); a.Needs(priv.Super, "SYSTEM_VARIABLES_ADMIN") != nil || a.Needs(0, "ROLE_ADMIN") != nil {
			return sqlerr.New(sqlerr.SpecificAccessDeniedError, "SYSTEM_VARIABLES_ADMIN or SUPER privileges, as well "+
				"as the ROLE_ADMIN")
		}
	}
	if v.privilege != "" {
		if err := s.privileges().Needs(0, v.privilege); err != nil {
			return err
		}
	}
	return s.privileges().Needs(priv.Super, "SYSTEM_VARIABLES_ADMIN")
}

// mayKill is asked by KILL: error 1095.
func (s *Session) mayKill(id uint64) error {
	other := s.m.session(id)
	if other == nil {
		return nil
	}
	if of := other.whose(); of.account() == s.accountID() {
		return nil
	}
	a := s.privileges()
	if a.Needs(priv.Super, "CONNECTION_ADMIN") != nil || !a.SystemUser() && other.ofSystem() {
		return sqlerr.New(sqlerr.KillDeniedError, id)
	}
	return nil
}

// KillAs is Kill for an account that may end sessions, with its default roles: those of system accounts only if it is
// one. Errors: 1094, 1095.
func (m *Manager) KillAs(by priv.ID, id uint64, connection bool) error {
	other := m.session(id)
	if other == nil {
		return sqlerr.New(sqlerr.NoSuchThread, id)
	}
	if of := other.whose(); m.Needs(by, 0, priv.SystemUser) != nil && of.account() != by && other.ofSystem() {
		return sqlerr.New(sqlerr.KillDeniedError, id)
	}
	other.kill(connection)
	return nil
}

// ofSystem reports whether a session is one of a system account: with the roles that are active in it, as far as
// others know. Any task may ask.
func (s *Session) ofSystem() bool {
	k, err := s.m.accounts()
	if err != nil || k.set == nil {
		return err != nil
	}
	of := s.whose()
	return s.systemRoles.Load() || k.set.SystemAccount(of.account())
}

// currentRole is CURRENT_ROLE().
func (s *Session) currentRole() string {
	text := ""
	for _, r := range s.privileges().Roles {
		if text != "" {
			text += ","
		}
		text += r.String()
	}
	if text == "" {
		return "NONE"
	}
	return text
}

// writeAccounts writes what differs between two sets, within the transaction, and lets
// all nodes know.
func writeAccounts(w *txn.Session, eng *storage.Engine, before, after *priv.Set) error {
	edits := priv.Diff(before, after)
	if len(edits) == 0 {
		return nil
	}
	for _, e := range edits {
		o, err := w.Open(priv.Schema, e.Table)
		if err != nil {
			return err
		}
		if err := writeEdit(w, o, e); err != nil {
			return err
		}
	}
	return touchAccounts(w)
}

// touchAccounts changes the definition of mysql.user.
func touchAccounts(w *txn.Session) error {
	o, err := w.Open(priv.Schema, priv.TableNames[0])
	if err != nil {
		return err
	}
	next := *o.Definition()
	next.Options = map[string]string{}
	for k, v := range o.Definition().Options {
		next.Options[k] = v
	}
	if next.Options["touched"] = "1"; o.Definition().Options["touched"] != "" {
		delete(next.Options, "touched")
	}
	_, err = w.ReplaceTable(&next, nil)
	return err
}

func writeEdit(w *txn.Session, o *txn.Table, e priv.Edit) error {
	keys := o.Table().Schema
	if e.Old != nil {
		row, err := rowOfTexts(keys, e.Old)
		if err != nil {
			return err
		}
		key, err := keys.AppendRowKey(nil, row)
		if err != nil {
			return err
		}
		if err := w.Delete(o, key, nil); err != nil && !errors.Is(err, table.ErrNotFound) {
			return err
		}
	}
	if e.New == nil {
		return nil
	}
	row, err := rowOfTexts(keys, e.New)
	if err != nil {
		return err
	}
	return w.Insert(o, row, true)
}

// rowOfTexts makes a row of texts by column name.
func rowOfTexts(keys *record.Schema, r priv.Row) ([]types.Value, error) {
	row := make([]types.Value, len(keys.Columns))
	for p := range keys.Columns {
		c := &keys.Columns[p]
		text, ok := r[dict.Fold(c.Name)]
		if c.DroppedIn != 0 || !ok && !c.Type.NotNull {
			continue
		}
		if !ok {
			row[p] = catalog.ImplicitDefault(&c.Type)
			continue
		}
		x := types.Context{Mode: types.ModeDefault, Column: c.Name}
		v, err := x.Store(types.NewString(text), nil, &c.Type)
		if err != nil {
			return nil, err
		}
		row[p] = v.Clone()
	}
	return row, nil
}

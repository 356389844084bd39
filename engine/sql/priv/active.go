package priv

import (
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// Active is what an account may do with the roles that are active: its privileges and
// theirs together. It is immutable.
type Active struct {
	ID      ID
	Host    string // where the client comes from, for messages
	Roles   []ID   // active ones
	Missing bool   // the account does not exist (any more)

	global   Mask
	dynamic  map[string]bool
	exact    map[string]Mask // schemas
	patterns []schemaMask
	tables   map[Object]Mask
	columns  map[Object]map[string]Mask
	admin    map[ID]bool // roles held WITH ADMIN OPTION

	restricted    map[string]Mask // what of global is not held in a schema
	restrictedAny Mask            // or in any
	literal       bool            // names of schemas are no patterns
}

type schemaMask struct {
	pattern string
	mask    Mask
}

// Active compiles the privileges of an account. Roles that it has not been granted are
// left out. An account that does not exist may do nothing.
func (s *Set) Active(id ID, host string, roles []ID) *Active {
	x := &Active{ID: id, Host: host, dynamic: map[string]bool{}, exact: map[string]Mask{}, tables: map[Object]Mask{},
		columns: map[Object]map[string]Mask{}}
	a := s.accounts[id]
	if a == nil {
		x.Missing = true
		return x
	}
	x.literal = s.Literal
	for _, r := range roles {
		if s.Granted(id, r) {
			x.Roles = append(x.Roles, r)
		}
	}
	of := s.with(a, x.Roles)
	for _, each := range of {
		x.add(each)
	}
	x.restricted = restrictAll(of)
	for _, m := range x.restricted {
		x.restrictedAny |= m
	}
	slices.SortFunc(x.patterns, func(a, b schemaMask) int { return specificity(b.pattern) - specificity(a.pattern) })
	return x
}

// with are an account and the roles that it has where these are active: themselves and those granted to them.
func (s *Set) with(a *Account, roles []ID) []*Account {
	of := []*Account{a}
	seen := map[ID]bool{a.ID: true}
	var visit func(r ID)
	visit = func(r ID) {
		role := s.accounts[r]
		if role == nil || seen[r] {
			return
		}
		seen[r] = true
		of = append(of, role)
		for inner := range role.Roles {
			visit(inner)
		}
	}
	for _, r := range roles {
		visit(r)
	}
	return of
}

// Everything is what may do all: the statements of the server itself.
func Everything() *Active {
	x := &Active{ID: ID{"system", "localhost"}, global: GlobalMask, dynamic: map[string]bool{}}
	for _, d := range dynamic {
		x.dynamic[d] = true
	}
	return x
}

func (x *Active) add(a *Account) {
	x.global |= a.Global
	for r, admin := range a.Roles {
		if admin {
			if x.admin == nil {
				x.admin = map[ID]bool{}
			}
			x.admin[r] = true
		}
	}
	for d, grant := range a.Dynamic {
		x.dynamic[d] = x.dynamic[d] || grant
	}
	for name, m := range a.Schemas {
		if isPattern(name) && !x.literal {
			x.patterns = append(x.patterns, schemaMask{name, m})
		} else {
			x.exact[unescape(name)] |= m
		}
	}
	for o, m := range a.Tables {
		x.tables[o] |= m
	}
	for o, cols := range a.Columns {
		if x.columns[o] == nil {
			x.columns[o] = map[string]Mask{}
		}
		for c, m := range cols {
			x.columns[o][c] |= m
		}
	}
}

// unescape takes the backslashes out of a pattern without wildcards.
func unescape(s string) string { return strings.ReplaceAll(s, `\`, "") }

// literal is the name of the only schema that a pattern fits, if it is one without wildcards.
func literal(pattern string) (name string, ok bool) {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '%', '_':
			return "", false
		}
	}
	return unescape(pattern), true
}

// Granted reports whether a role is granted to an account, directly or by another role.
func (s *Set) Granted(id, role ID) bool {
	if s.accounts[id] != nil && s.mandatory(id, role) {
		return true
	}
	for of := range s.reach(id) {
		if _, ok := s.accounts[of].Roles[role]; ok {
			return true
		}
	}
	return false
}

// Global reports whether all of the privileges are held on everything.
func (x *Active) Global(m Mask) bool { return x.global&^x.restrictedAny&m == m }

// Dynamic reports whether a dynamic privilege is held, itself or by SUPER.
func (x *Active) Dynamic(name string) bool {
	_, ok := x.dynamic[name]
	return ok || x.global&Super != 0 && !notBySuper[name]
}

// AdministersRole reports whether a role may be given to others, since it is held WITH ADMIN OPTION.
func (x *Active) AdministersRole(role ID) bool { return x.admin[role] }

// SystemUser reports whether it is that of a system account.
func (x *Active) SystemUser() bool {
	_, ok := x.dynamic[SystemUser]
	return ok
}

// SystemAccount reports whether an account itself holds SYSTEM_USER. As in MySQL its roles do not count.
func (s *Set) SystemAccount(id ID) bool {
	a := s.accounts[id]
	if a == nil {
		return false
	}
	_, ok := a.Dynamic[SystemUser]
	return ok
}

// SystemDefiner is SystemAccount for who is to define something: any role counts that is granted to it.
func (s *Set) SystemDefiner(id ID) bool {
	for of := range s.reach(id) {
		if s.SystemAccount(of) {
			return true
		}
	}
	return false
}

// reach are an account and the roles granted to it, directly or by another role, that exist.
func (s *Set) reach(id ID) map[ID]bool {
	seen := map[ID]bool{}
	var visit func(id ID)
	visit = func(id ID) {
		a := s.accounts[id]
		if a == nil || seen[id] {
			return
		}
		seen[id] = true
		for r := range a.Roles {
			visit(r)
		}
	}
	visit(id)
	return seen
}

// grantsDynamic reports whether a dynamic privilege may be given to others: it is held WITH GRANT OPTION. That of
// static ones does not count.
func (x *Active) grantsDynamic(name string) bool { return x.dynamic[name] }

// SchemaMask is what is held on all of a schema. On that of the accounts no pattern gives anything, other than in MySQL:
// who was given schemas with names of a kind has not been given the accounts.
func (x *Active) SchemaMask(schema string) Mask {
	m := x.global &^ x.restricted[schema]
	if e, ok := x.exact[schema]; ok {
		m |= e
	}
	if schema == Schema {
		return m
	}
	for i := range x.patterns {
		if Like(x.patterns[i].pattern, schema) {
			return m | x.patterns[i].mask
		}
	}
	return m
}

// TableMask is what is held on all of a table.
func (x *Active) TableMask(schema, table string) Mask {
	m := x.SchemaMask(schema)
	if len(x.tables) > 0 {
		m |= x.tables[Object{schema, table}]
	}
	return m
}

// ColumnMask is what is held on a column.
func (x *Active) ColumnMask(schema, table, column string) Mask {
	m := x.TableMask(schema, table)
	if cols := x.columns[Object{schema, table}]; cols != nil {
		m |= cols[strings.ToLower(column)]
	}
	return m
}

// anyColumnMask is what is held on any column of a table.
func (x *Active) anyColumnMask(schema, table string) Mask {
	var m Mask
	for _, c := range x.columns[Object{schema, table}] {
		m |= c
	}
	return m
}

// virtual are the schemas that everybody may read.
func virtual(schema string) bool {
	return strings.EqualFold(schema, "information_schema") || strings.EqualFold(schema, "performance_schema")
}

// SeesSchema reports whether the account has any privilege in a schema: USE, SHOW
// DATABASES.
func (x *Active) SeesSchema(schema string) bool {
	if virtual(schema) || x.global&(SchemaMask|ShowDatabases) != 0 || x.SchemaMask(schema)&SchemaMask != 0 {
		return true
	}
	for o := range x.tables {
		if o.Schema == schema {
			return true
		}
	}
	for o := range x.columns {
		if o.Schema == schema {
			return true
		}
	}
	return false
}

// MayUse checks USE. Error: 1044.
func (x *Active) MayUse(schema string) error {
	const some = SchemaMask &^ GrantOption
	if virtual(schema) || x.SchemaMask(schema)&some != 0 {
		return nil
	}
	for o, m := range x.tables {
		if o.Schema == schema && m&^GrantOption != 0 {
			return nil
		}
	}
	for o := range x.columns {
		if o.Schema == schema {
			return nil
		}
	}
	return x.errSchema(schema)
}

// SeesTable reports whether the account has any privilege on a table or its columns.
func (x *Active) SeesTable(schema, table string) bool {
	return virtual(schema) || x.TableMask(schema, table)&TableMask&^GrantOption != 0 || x.anyColumnMask(schema, table) != 0
}

// MayDescribe checks that the definition of a table may be seen: with SELECT on all of it, or with any privilege on the table
// or a column of it. Error: 1142.
func (x *Active) MayDescribe(schema, table string) error {
	if virtual(schema) || x.SchemaMask(schema)&Select != 0 || x.tables[Object{schema, table}] != 0 || x.anyColumnMask(schema, table) != 0 {
		return nil
	}
	return x.Table(schema, table, Select, "SELECT")
}

// SeesColumn reports whether the account has any privilege on a column.
func (x *Active) SeesColumn(schema, table, column string) bool {
	return virtual(schema) || x.ColumnMask(schema, table, column)&TableMask&^GrantOption != 0
}

func (x *Active) errSchema(schema string) *sqlerr.Error {
	return sqlerr.New(sqlerr.DBAccessDeniedError, x.ID.Name, x.ID.Host, schema)
}

// Schema checks privileges on a schema. Error: 1044.
func (x *Active) Schema(schema string, need Mask) error {
	if x.SchemaMask(schema)&need == need {
		return nil
	}
	return x.errSchema(schema)
}

// Table checks privileges on a table; command is the word of the message. Error: 1142.
func (x *Active) Table(schema, table string, need Mask, command string) error {
	if x.Global(need) || virtual(schema) && need&^Select == 0 || x.TableMask(schema, table)&need == need {
		return nil
	}
	if virtual(schema) {
		return x.errSchema(schema)
	}
	return sqlerr.New(sqlerr.TableAccessDeniedError, command, x.ID.Name, x.hostText(), table)
}

// AnyTable checks that one of the privileges is held on a table or on a column of it.
func (x *Active) AnyTable(schema, table string, any Mask, command string) error {
	if virtual(schema) || (x.TableMask(schema, table)|x.anyColumnMask(schema, table))&any != 0 {
		return nil
	}
	return sqlerr.New(sqlerr.TableAccessDeniedError, command, x.ID.Name, x.hostText(), table)
}

// Some checks that each of the privileges is held on a table or on a column of it. Error: 1142, which names those that
// are not.
func (x *Active) Some(schema, table string, need Mask) error {
	missing := need &^ (x.TableMask(schema, table) | x.anyColumnMask(schema, table))
	if missing == 0 {
		return nil
	}
	return x.Table(schema, table, missing, missing.String())
}

// Read checks SELECT on columns of a table that may be changed, of which the account may know. Error: 1143.
func (x *Active) Read(schema, table string, columns []string) error {
	if x.Global(Select) || x.TableMask(schema, table)&Select != 0 {
		return nil
	}
	for _, c := range columns {
		if x.ColumnMask(schema, table, c)&Select == 0 {
			return x.errColumn(schema, table, c, "SELECT")
		}
	}
	return nil
}

func (x *Active) errColumn(schema, table, column, command string) error {
	return sqlerr.New(sqlerr.ColumnAccessDeniedError, command, x.ID.Name, x.hostText(), column, table)
}

// Columns checks a privilege on columns of a table; a table of which none is used needs
// the privilege on any. Errors: 1142 if the account has it on no column, 1143.
func (x *Active) Columns(schema, table string, columns []string, need Mask, command string) error {
	if x.Global(need) || virtual(schema) && need&^Select == 0 || x.TableMask(schema, table)&need == need {
		return nil
	}
	if x.anyColumnMask(schema, table)&need != need {
		return x.Table(schema, table, need, command)
	}
	for _, c := range columns {
		if x.ColumnMask(schema, table, c)&need != need {
			return x.errColumn(schema, table, c, command)
		}
	}
	return nil
}

func (x *Active) hostText() string {
	if x.Host != "" {
		return x.Host
	}
	return x.ID.Host
}

// Needs checks global privileges, of which one is enough. Error: 1227.
func (x *Active) Needs(any Mask, dynamic ...string) error {
	if x.global&any != 0 {
		return nil
	}
	for _, d := range dynamic {
		if x.Dynamic(d) {
			return nil
		}
	}
	names := any.Names()
	names = append(names, dynamic...)
	return sqlerr.New(sqlerr.SpecificAccessDeniedError, strings.Join(names, " or "))
}

// MayGrant reports whether privileges may be given to others: they are held, and so is
// GRANT OPTION, at the level or above.
func (x *Active) MayGrant(on Target, m Mask) bool {
	held := x.global // what he is restricted in goes along, see grantGlobally
	switch {
	case on.Table != "":
		held = x.TableMask(on.Schema, on.Table)
	case on.Schema != "":
		if x.literal {
			held = x.SchemaMask(unescape(on.Schema))
			break
		}
		if held &^= x.restrictedAny; x.restrictedAny != 0 && held&m != m {
			break // a pattern may fit what is kept from him
		}
		if name, ok := literal(on.Schema); ok {
			held = x.SchemaMask(name)
			break
		}
		for _, p := range x.patterns { // that fits all that this one fits
			if covers(p.pattern, on.Schema) {
				held |= p.mask
				break
			}
		}
	}
	return held&GrantOption != 0 && held&m == m
}

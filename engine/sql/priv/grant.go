package priv

import (
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// Target is what privileges are on: everything, a schema (a pattern), or a table.
type Target struct{ Schema, Table string }

func (t Target) global() bool { return t == Target{} }

// Request is a GRANT or REVOKE with its names sorted out.
type Request struct {
	On      Target
	Mask    Mask            // with GrantOption if asked for
	Columns map[string]Mask // lower case
	Dynamic []string        // of everything
	// DynamicGrant says that these are given WITH GRANT OPTION, each of which has its own: that of Mask is only there if
	// static ones are asked for too.
	DynamicGrant bool
	// All says that ALL PRIVILEGES were asked for: at the level of everything the dynamic
	// ones too, see Limit.
	All    bool
	static bool
}

// NewRequest sorts out the privileges of a statement. Errors: 1144 (not of this kind of
// object), 1221, 1149, 3619 (unknown dynamic one on something), 1064.
func NewRequest(list []ast.Privilege, on Target, withGrant bool) (*Request, error) {
	r := &Request{On: on, Columns: map[string]Mask{}}
	allowed, anyStatic := GlobalMask, false
	switch {
	case on.Table != "":
		allowed = TableMask
	case on.Schema != "":
		allowed = SchemaMask
	}
	for i := range list {
		p := &list[i]
		m, static := maskOf(p.Name)
		anyStatic = anyStatic || static
		switch {
		case p.Name == "ALL" || p.Name == "ALL PRIVILEGES":
			r.All = true
			m &= allowed
		case static && len(p.Columns) > 0:
			if m&^ColumnMask != 0 {
				return nil, sqlerr.New(sqlerr.WrongUsage, "COLUMN GRANT", "NON-COLUMN PRIVILEGES")
			}
			if on.Table == "" {
				return nil, errIllegalGrant()
			}
			for _, c := range p.Columns {
				r.Columns[strings.ToLower(c)] |= m
			}
			continue
		case static && m&^allowed != 0:
			if on.Table != "" {
				return nil, errIllegalGrant()
			}
			return nil, sqlerr.New(sqlerr.WrongUsage, "DB GRANT", "GLOBAL PRIVILEGES")
		case static:
		case isDynamic(p.Name) && on.global():
			r.Dynamic = append(r.Dynamic, p.Name)
			continue
		case isDynamic(p.Name):
			return nil, sqlerr.New(sqlerr.IllegalPrivilegeLevel, p.Name)
		default:
			return nil, sqlerr.Newf(sqlerr.SyntaxError, "You have an error in your SQL syntax; check the manual that "+
				"corresponds to your MySQL server version for the right syntax to use: unknown privilege %s", p.Name)
		}
		r.Mask |= m
	}
	if r.All && on.global() {
		r.Dynamic = slices.Clone(dynamic)
	}
	r.DynamicGrant, r.static = withGrant, anyStatic
	if withGrant && (anyStatic || len(r.Dynamic) == 0) {
		r.Mask |= GrantOption
	}
	return r, nil
}

// Static reports whether static privileges, or columns, are part of the request.
func (r *Request) Static() bool { return r.static || len(r.Columns) > 0 }

// Limit leaves of the dynamic privileges that ALL stands for those that may be given by whom: the others are not
// theirs to give. Error: 1227, one was asked for by its name.
func (r *Request) Limit(by *Active) error {
	if r.All {
		r.Dynamic = slices.DeleteFunc(r.Dynamic, func(d string) bool { return !by.grantsDynamic(d) })
		return nil
	}
	for _, d := range r.Dynamic {
		if !by.grantsDynamic(d) {
			return sqlerr.New(sqlerr.SpecificAccessDeniedError, "GRANT OPTION")
		}
	}
	return nil
}

func errIllegalGrant() error {
	return sqlerr.New(sqlerr.IllegalGrantForTable)
}

// Needs is what an account must hold to make the request of others.
func (r *Request) Needs() Mask {
	m := r.Mask
	for _, c := range r.Columns {
		m |= c
	}
	return m &^ GrantOption
}

// Grant gives an account the privileges, as by gives them.
func (a *Account) Grant(r *Request, by *Active) {
	o := Object(r.On)
	switch {
	case r.On.global():
		a.grantGlobally(r.Mask, by)
		for _, d := range r.Dynamic {
			a.Dynamic[d] = a.Dynamic[d] || r.DynamicGrant
		}
		a.old = a.old && len(r.Dynamic) == 0
	case r.On.Table == "":
		a.grantSchema(r.On.Schema, r.Mask)
	default:
		if r.Mask != 0 || len(r.Columns) == 0 {
			a.Tables[o] |= r.Mask
		}
		for c, m := range r.Columns {
			if a.Columns[o] == nil {
				a.Columns[o] = map[string]Mask{}
			}
			a.Columns[o][c] |= m
		}
	}
	a.tidy()
}

// Revoke takes the privileges from an account, as by does; partly says that REVOKE on a schema also takes what is held on
// everything, there (partial_revokes). Errors: 1141, 1147 if it has none there, 3879.
func (a *Account) Revoke(r *Request, by *Active, partly bool) error {
	o := Object(r.On)
	switch {
	case r.On.global() && r.All: // which is REVOKE ALL, GRANT OPTION
		return a.RevokeAll(by)
	case r.On.global():
		if err := a.revokeGlobally(r.Mask, by); err != nil {
			return err
		}
		for _, d := range r.Dynamic {
			delete(a.Dynamic, d)
		}
		a.old = a.old && len(r.Dynamic) == 0
	case r.On.Table == "" && partly:
		if err := a.revokePartly(r.On.Schema, r.Mask, r.All); err != nil {
			return err
		}
	case r.On.Table == "":
		if _, ok := a.Schemas[r.On.Schema]; !ok {
			return a.errNoGrant()
		}
		a.Schemas[r.On.Schema] &^= r.Mask
	default:
		if _, ok := a.Tables[o]; !ok && a.Columns[o] == nil {
			return sqlerr.New(sqlerr.NonExistingTableGrant, a.Name, a.Host, r.On.Table)
		}
		a.Tables[o] &^= r.Mask
		for c := range a.Columns[o] {
			a.Columns[o][c] &^= r.Mask & ColumnMask
			a.Columns[o][c] &^= r.Columns[c]
		}
	}
	a.tidy()
	return nil
}

func (a *Account) errNoGrant() error {
	return sqlerr.New(sqlerr.NonExistingGrant, a.Name, a.Host)
}

// RevokeAll takes everything from an account but its roles. Error: 3879, as of Revoke.
func (a *Account) RevokeAll(by *Active) error {
	if err := a.revokeGlobally(a.Global, by); err != nil {
		return err
	}
	a.old = false
	clear(a.Restrictions)
	clear(a.Dynamic)
	clear(a.Schemas)
	clear(a.Tables)
	clear(a.Columns)
	return nil
}

// tidy removes what says nothing.
func (a *Account) tidy() {
	for name, m := range a.Schemas {
		if m == 0 {
			delete(a.Schemas, name)
		}
	}
	for o, m := range a.Tables {
		if m == 0 {
			delete(a.Tables, o)
		}
	}
	for o, cols := range a.Columns {
		for c, m := range cols {
			if m == 0 {
				delete(cols, c)
			}
		}
		if len(cols) == 0 {
			delete(a.Columns, o)
		}
	}
}

// GrantRole gives an account a role. Error: 4027, the role would be granted to itself, perhaps by others.
func (s *Set) GrantRole(role, to ID, admin bool) error {
	if role == to || s.Granted(role, to) {
		return sqlerr.New(sqlerr.RoleGrantedToItself, to, role)
	}
	a := s.accounts[to]
	a.Roles[role] = a.Roles[role] || admin
	return nil
}

// Grants are the lines of SHOW GRANTS. With roles, what they and the roles granted to them give is part of it, also
// which roles may be given to others by them; own: the account asks for its own grants, and the roles that all have count.
func (s *Set) Grants(id ID, using []ID, own bool) []string {
	a := s.accounts[id]
	if a == nil {
		return nil
	}
	if own && len(s.Mandatory) > 0 {
		a = a.clone()
		for _, role := range s.RolesOf(a) {
			if _, ok := a.Roles[role]; !ok {
				a.Roles[role] = false
			}
		}
	}
	var given []ID // roles that may be given to others
	if len(using) > 0 {
		of := s.with(a, using)
		for _, role := range of[1:] {
			given = append(given, role.rolesWith(true)...)
		}
		a = merged(of)
	}
	to := " TO " + id.String()
	suffix := func(m Mask) string {
		if m&GrantOption != 0 {
			return to + " WITH GRANT OPTION"
		}
		return to
	}
	lines := []string{"GRANT " + orUsage(a.Global) + " ON *.*" + suffix(a.Global)}
	for _, grant := range []bool{false, true} {
		var names []string
		for d, g := range a.Dynamic {
			if g == grant {
				names = append(names, d)
			}
		}
		if slices.Sort(names); len(names) > 0 {
			m := Mask(0)
			if grant {
				m = GrantOption
			}
			lines = append(lines, "GRANT "+strings.Join(names, ",")+" ON *.*"+suffix(m))
		}
	}
	for _, name := range sortedKeys(a.Schemas, strings.Compare) {
		m := a.Schemas[name]
		what := orUsage(m)
		if m&^GrantOption == SchemaMask&^GrantOption {
			what = "ALL PRIVILEGES"
		}
		lines = append(lines, "GRANT "+what+" ON "+quote(name)+".*"+suffix(m))
	}
	lines = append(lines, a.restrictionLines()...)
	lines = append(lines, a.tableGrants(suffix)...)
	if held := a.rolesWith(false); len(held) > 0 {
		lines = append(lines, "GRANT "+rolesText(held)+to)
	}
	if given = append(given, a.rolesWith(true)...); len(given) > 0 {
		slices.SortFunc(given, ID.compare)
		lines = append(lines, "GRANT "+rolesText(slices.Compact(given))+to+" WITH ADMIN OPTION")
	}
	return lines
}

// merged is the first of the accounts with the privileges of all of them.
func merged(of []*Account) *Account {
	b := of[0].clone()
	for _, r := range of[1:] {
		b.Global |= r.Global
		for d, g := range r.Dynamic {
			b.Dynamic[d] = b.Dynamic[d] || g
		}
		for n, m := range r.Schemas {
			b.Schemas[n] |= m
		}
		for o, m := range r.Tables {
			b.Tables[o] |= m
		}
		for o, cols := range r.Columns {
			for c, m := range cols {
				if b.Columns[o] == nil {
					b.Columns[o] = map[string]Mask{}
				}
				b.Columns[o][c] |= m
			}
		}
	}
	b.Restrictions = restrictAll(of)
	for schema, m := range b.Restrictions {
		b.restrict(schema, m&^b.Schemas[schema])
	}
	return b
}

func orUsage(m Mask) string {
	if m&^GrantOption == 0 {
		return "USAGE"
	}
	return m.String()
}

func (a *Account) tableGrants(suffix func(Mask) string) []string {
	objects := sortedKeys(a.Tables, Object.compare)
	for o := range a.Columns {
		if _, ok := a.Tables[o]; !ok {
			objects = append(objects, o)
		}
	}
	slices.SortFunc(objects, Object.compare)
	var lines []string
	for _, o := range objects {
		m := a.Tables[o]
		var what []string
		for i := range privileges {
			p := &privileges[i]
			if p.mask == GrantOption {
				continue
			}
			if m&p.mask != 0 {
				what = append(what, p.name)
			}
			var columns []string
			for _, c := range sortedKeys(a.Columns[o], strings.Compare) {
				if a.Columns[o][c]&p.mask != 0 {
					columns = append(columns, quote(c))
				}
			}
			if len(columns) > 0 {
				what = append(what, p.name+" ("+strings.Join(columns, ", ")+")")
			}
		}
		text := strings.Join(what, ", ")
		switch {
		case m&^GrantOption == TableMask&^GrantOption && a.Columns[o] == nil:
			text = "ALL PRIVILEGES"
		case text == "":
			text = "USAGE"
		}
		lines = append(lines, "GRANT "+text+" ON "+quote(o.Schema)+"."+quote(o.Table)+suffix(m))
	}
	return lines
}

// RolesHeld are the roles that are granted to an account, without the mandatory ones, in order.
func (a *Account) RolesHeld() []ID { return sortedKeys(a.Roles, ID.compare) }

// rolesWith are the roles that are granted to an account WITH ADMIN OPTION, or without, in order.
func (a *Account) rolesWith(admin bool) []ID {
	return slices.DeleteFunc(a.RolesHeld(), func(r ID) bool { return a.Roles[r] != admin })
}

func rolesText(roles []ID) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = r.String()
	}
	return strings.Join(names, ",")
}

func sortedKeys[K comparable, V any](m map[K]V, compare func(a, b K) int) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compare)
	return keys
}

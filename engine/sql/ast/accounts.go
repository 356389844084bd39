package ast

import "strings"

// setPassword parses what follows SET PASSWORD.
func (r *reader) setPassword() Statement {
	s := &SetPassword{}
	if r.accept("FOR") {
		u := r.user()
		s.User = &u
	}
	if r.accept("TO") {
		r.need("RANDOM")
		s.Random = true
	} else {
		r.assignOp()
		s.Password = r.str()
	}
	if r.accept("REPLACE") {
		s.Replace, s.HasReplace = r.str(), true
	}
	s.Retain = r.accept("RETAIN", "CURRENT", "PASSWORD")
	return s
}

// roleSet reads NONE, ALL [EXCEPT ..], DEFAULT or a list.
func (r *reader) roleSet(session bool) (RoleSet, []User) {
	switch {
	case r.accept("NONE"):
		return RolesNone, nil
	case r.accept("ALL"):
		if session && r.accept("EXCEPT") {
			return RolesAllExcept, r.users()
		}
		return RolesAll, nil
	case session && r.accept("DEFAULT"):
		return RolesDefault, nil
	}
	return RolesListed, r.users()
}

// grantItem is what stands between commas in GRANT and REVOKE: a privilege or a role,
// which only what follows the list tells.
type grantItem struct {
	words   string
	columns []string
	role    User
	isRole  bool // cannot be a privilege
	single  bool // can be a role
}

func (r *reader) grantItems() []grantItem {
	var items []grantItem
	for first := true; first || r.acceptOp(","); first = false {
		var g grantItem
		if r.tok.kind != tWord {
			g.role, g.isRole, g.single = r.user(), true, true
			items = append(items, g)
			continue
		}
		start, words := r.tok, 0
		l, t := r.mark()
		for r.tok.kind == tWord && !r.is("ON") && !r.is("TO") && !r.is("FROM") {
			start.end = r.tok.end
			words++
			r.advance()
		}
		g.words = strings.Join(strings.Fields(upper(r.clean[start.start:start.end])), " ")
		g.single = words == 1
		switch {
		case words == 0:
			r.fail()
		case r.tok.kind == tUserVar:
			r.back(l, t)
			g.role, g.isRole = r.user(), true
		case words == 1:
			g.role = User{Name: r.clean[start.start:start.end], Host: "%"}
		}
		if r.acceptOp("(") {
			g.columns = append(g.columns, r.name())
			for r.acceptOp(",") {
				g.columns = append(g.columns, r.name())
			}
			r.needOp(")")
			g.single = false
		}
		items = append(items, g)
	}
	return items
}

func (r *reader) privileges(items []grantItem) []Privilege {
	out := make([]Privilege, len(items))
	for i, g := range items {
		if g.isRole {
			r.fail()
		}
		if g.words == "ALL PRIVILEGES" {
			g.words = "ALL"
		}
		out[i] = Privilege{Name: g.words, Columns: g.columns}
	}
	return out
}

func (r *reader) roles(items []grantItem) []User {
	out := make([]User, len(items))
	for i, g := range items {
		if !g.single {
			r.fail()
		}
		out[i] = g.role
	}
	return out
}

func (r *reader) grant() Statement {
	if r.is("PROXY") {
		r.failWith(unsupported("GRANT PROXY"))
		return nil
	}
	items := r.grantItems()
	if r.accept("TO") {
		g := &GrantRole{Roles: r.roles(items), Users: r.users()}
		g.WithAdminOption = r.accept("WITH", "ADMIN", "OPTION")
		return g
	}
	r.need("ON")
	g := &Grant{Privileges: r.privileges(items), On: r.grantTarget()}
	r.need("TO")
	g.Users = r.specs()
	g.WithGrantOption = r.accept("WITH", "GRANT", "OPTION")
	if r.is("AS") {
		r.failWith(unsupported("GRANT .. AS"))
	}
	return g
}

func (r *reader) revoke() Statement {
	exists := r.accept("IF", "EXISTS")
	if r.is("PROXY") {
		r.failWith(unsupported("REVOKE PROXY"))
		return nil
	}
	items := r.grantItems()
	var s Statement
	var ignore *bool
	switch {
	case r.accept("ON"):
		g := &Grant{Revoke: true, IfExists: exists, Privileges: r.privileges(items), On: r.grantTarget()}
		r.need("FROM")
		g.Users = r.specs()
		s, ignore = g, &g.IgnoreUnknown
	case len(items) == 2 && items[1].words == "GRANT OPTION" && (items[0].words == "ALL" || items[0].words == "ALL PRIVILEGES"):
		r.need("FROM")
		g := &RevokeAll{IfExists: exists, Users: r.users()}
		s, ignore = g, &g.IgnoreUnknown
	default:
		g := &GrantRole{Revoke: true, IfExists: exists, Roles: r.roles(items)}
		r.need("FROM")
		g.Users = r.users()
		s, ignore = g, &g.IgnoreUnknown
	}
	*ignore = r.accept("IGNORE", "UNKNOWN", "USER")
	return s
}

// specs reads users without ways to authenticate.
func (r *reader) specs() []UserSpec {
	var out []UserSpec
	for _, u := range r.users() {
		out = append(out, UserSpec{User: u})
	}
	return out
}

func (r *reader) grantTarget() GrantTarget {
	var t GrantTarget
	switch {
	case r.accept("TABLE"):
	case r.accept("FUNCTION"):
		t.Kind = "FUNCTION"
	case r.accept("PROCEDURE"):
		t.Kind = "PROCEDURE"
	}
	if r.acceptOp("*") {
		if r.acceptOp(".") {
			r.needOp("*")
			t.Global = true
		}
		return t
	}
	name := r.name()
	if !r.acceptOp(".") {
		t.Table = name
		return t
	}
	t.Schema = name
	if !r.acceptOp("*") {
		t.Table = r.name()
	}
	return t
}

// rename parses RENAME USER; RENAME TABLE is the grammar's.
func (r *reader) rename() Statement {
	if !r.accept("USER") {
		return nil
	}
	s := &RenameUser{}
	for first := true; first || r.acceptOp(","); first = false {
		old := r.user()
		r.need("TO")
		s.Renames = append(s.Renames, UserRename{Old: old, New: r.user()})
	}
	return s
}

func (r *reader) createUser(role bool) Statement {
	s := &CreateUser{Role: role, IfNotExists: r.accept("IF", "NOT", "EXISTS")}
	if role {
		s.Users = r.specs()
		return s
	}
	s.Users = r.authSpecs(true)
	if r.accept("DEFAULT", "ROLE") {
		s.DefaultRole = r.users()
	}
	s.Options = r.accountOptions()
	return s
}

func (r *reader) alterUser() Statement {
	s := &AlterUser{IfExists: r.accept("IF", "EXISTS")}
	if r.accept("USER") { // USER() is the current user
		r.needOp("(")
		r.needOp(")")
		s.Users = []UserSpec{{User: User{Current: true}, Auth: r.auth(false)}}
		if a := s.Users[0].Auth; a == nil || a.Plugin != "" {
			r.fail()
		}
		return s
	}
	s.Users = r.authSpecs(false)
	if r.accept("DEFAULT", "ROLE") {
		d := &SetDefaultRole{}
		d.Set, d.Roles = r.roleSet(false)
		for _, u := range s.Users {
			if u.Auth != nil {
				r.fail()
			}
			d.Users = append(d.Users, u.User)
		}
		return d
	}
	s.Options = r.accountOptions()
	return s
}

func (r *reader) dropUser(role bool) Statement {
	return &DropUser{Role: role, IfExists: r.accept("IF", "EXISTS"), Users: r.users()}
}

func (r *reader) authSpecs(create bool) []UserSpec {
	var out []UserSpec
	for first := true; first || r.acceptOp(","); first = false {
		u := r.user()
		out = append(out, UserSpec{User: u, Auth: r.auth(create)})
	}
	return out
}

// auth reads IDENTIFIED .., or nothing; with create not what needs a password of before: REPLACE, RETAIN, DISCARD.
func (r *reader) auth(create bool) *Auth {
	if !create && r.accept("DISCARD", "OLD", "PASSWORD") {
		return &Auth{Discard: true}
	}
	if !r.accept("IDENTIFIED") {
		return nil
	}
	a := &Auth{}
	if r.accept("WITH") {
		a.Plugin = lower(r.nameOrString())
	}
	switch {
	case r.accept("BY", "RANDOM", "PASSWORD"):
		a.Random = true
	case r.accept("BY"):
		a.Password, a.HasPassword = r.str(), true
	case a.Plugin != "" && r.accept("AS"):
		a.HasHash = true
		if r.tok.kind == tHex {
			a.Hash = string(hexBytes(r.raw()))
			r.advance()
		} else {
			a.Hash = r.str()
		}
	case a.Plugin == "":
		r.fail()
	}
	if !create && !a.HasHash && r.accept("REPLACE") {
		a.Replace, a.HasReplace = r.str(), true
	}
	a.Retain = !create && (a.HasPassword || a.HasHash || a.Random) && r.accept("RETAIN", "CURRENT", "PASSWORD")
	if r.is("AND") && !r.accept("AND", "IDENTIFIED") {
		r.fail()
	} else if r.is("IDENTIFIED") {
		r.failWith(unsupported("several authentication factors"))
	}
	return a
}

// accountOptions reads the options of an account until the end.
func (r *reader) accountOptions() []AccountOption {
	var out []AccountOption
	for !r.atEnd() {
		switch {
		case r.accept("REQUIRE"):
			out = append(out, r.requirements()...)
		case r.accept("WITH"):
			for n := 0; n == 0 || !r.atEnd() && strings.HasPrefix(upper(r.raw()), "MAX_"); n++ {
				out = append(out, r.resource())
			}
		case r.accept("PASSWORD"):
			out = append(out, r.passwordOption())
		case r.accept("FAILED_LOGIN_ATTEMPTS"):
			out = append(out, AccountOption{Name: "FAILED_LOGIN_ATTEMPTS", Number: int64(r.number())})
		case r.accept("PASSWORD_LOCK_TIME"):
			o := AccountOption{Name: "PASSWORD_LOCK_TIME", Number: -1}
			if !r.accept("UNBOUNDED") {
				o.Number = int64(r.number())
			}
			out = append(out, o)
		case r.accept("ACCOUNT", "LOCK"):
			out = append(out, AccountOption{Name: "ACCOUNT_LOCK"})
		case r.accept("ACCOUNT", "UNLOCK"):
			out = append(out, AccountOption{Name: "ACCOUNT_UNLOCK"})
		case r.accept("COMMENT"):
			out = append(out, AccountOption{Name: "COMMENT", Value: r.str()})
		case r.accept("ATTRIBUTE"):
			out = append(out, AccountOption{Name: "ATTRIBUTE", Value: r.str()})
		default:
			r.fail()
		}
	}
	return out
}

func (r *reader) requirements() []AccountOption {
	for _, w := range []string{"NONE", "SSL", "X509"} {
		if r.accept(w) {
			return []AccountOption{{Name: "REQUIRE_" + w}}
		}
	}
	var out []AccountOption
	for {
		found := false
		for _, w := range []string{"SUBJECT", "ISSUER", "CIPHER"} {
			if r.accept(w) {
				found = true
				out = append(out, AccountOption{Name: "REQUIRE_" + w, Value: r.str()})
			}
		}
		if !found {
			break
		}
		r.accept("AND")
	}
	if out == nil {
		r.fail()
	}
	return out
}

func (r *reader) resource() AccountOption {
	for _, w := range []string{"MAX_QUERIES_PER_HOUR", "MAX_UPDATES_PER_HOUR", "MAX_CONNECTIONS_PER_HOUR", "MAX_USER_CONNECTIONS"} {
		if r.accept(w) {
			return AccountOption{Name: w, Number: int64(r.number())}
		}
	}
	r.fail()
	return AccountOption{}
}

// passwordOption reads what follows PASSWORD.
func (r *reader) passwordOption() AccountOption {
	switch {
	case r.accept("EXPIRE", "DEFAULT"):
		return AccountOption{Name: "PASSWORD_EXPIRE_DEFAULT"}
	case r.accept("EXPIRE", "NEVER"):
		return AccountOption{Name: "PASSWORD_EXPIRE_NEVER"}
	case r.accept("EXPIRE", "INTERVAL"):
		o := AccountOption{Name: "PASSWORD_EXPIRE_INTERVAL", Number: int64(r.number())}
		r.need("DAY")
		return o
	case r.accept("EXPIRE"):
		return AccountOption{Name: "PASSWORD_EXPIRE"}
	case r.accept("HISTORY", "DEFAULT"):
		return AccountOption{Name: "PASSWORD_HISTORY", Number: -1}
	case r.accept("HISTORY"):
		return AccountOption{Name: "PASSWORD_HISTORY", Number: int64(r.number())}
	case r.accept("REUSE", "INTERVAL", "DEFAULT"):
		return AccountOption{Name: "PASSWORD_REUSE_INTERVAL", Number: -1}
	case r.accept("REUSE", "INTERVAL"):
		o := AccountOption{Name: "PASSWORD_REUSE_INTERVAL", Number: int64(r.number())}
		r.need("DAY")
		return o
	case r.accept("REQUIRE", "CURRENT"):
		o := AccountOption{Name: "PASSWORD_REQUIRE_CURRENT", Number: 1}
		if r.accept("DEFAULT") {
			o.Number = -1
		} else if r.accept("OPTIONAL") {
			o.Number = 0
		}
		return o
	}
	r.fail()
	return AccountOption{}
}

package ast

import "strings"

func (f *formatter) user(u *User) {
	if u.Current {
		f.s("current_user()")
		return
	}
	f.name(u.Name)
	f.s("@")
	f.name(u.Host)
}

func (f *formatter) users(list []User) {
	f.list(len(list), func(i int) { f.user(&list[i]) })
}

// account writes statements about accounts and privileges.
func (f *formatter) account(s Statement) bool {
	switch s := s.(type) {
	case *CreateUser:
		f.createUser(s)
	case *AlterUser:
		f.s("alter user ")
		f.opt(s.IfExists, "if exists ")
		f.specs(s.Users)
		f.accountOptions(s.Options)
	case *DropUser:
		f.s("drop ", userOrRole(s.Role))
		f.opt(s.IfExists, "if exists ")
		f.users(s.Users)
	case *RenameUser:
		f.s("rename user ")
		f.list(len(s.Renames), func(i int) {
			f.user(&s.Renames[i].Old)
			f.s(" to ")
			f.user(&s.Renames[i].New)
		})
	case *SetPassword:
		f.setPassword(s)
	case *Grant:
		f.grant(s)
	case *RevokeAll:
		f.revokeWord(s.IfExists)
		f.s("all privileges, grant option from ")
		f.users(s.Users)
		f.opt(s.IgnoreUnknown, " ignore unknown user")
	case *GrantRole:
		f.grantRole(s)
	case *SetRole:
		f.s("set role ")
		f.roleSet(s.Set, s.Roles)
	case *SetDefaultRole:
		f.s("set default role ")
		f.roleSet(s.Set, s.Roles)
		f.s(" to ")
		f.users(s.Users)
	default:
		return false
	}
	return true
}

func userOrRole(role bool) string {
	if role {
		return "role "
	}
	return "user "
}

func (f *formatter) createUser(s *CreateUser) {
	f.s("create ", userOrRole(s.Role))
	f.opt(s.IfNotExists, "if not exists ")
	f.specs(s.Users)
	if s.DefaultRole != nil {
		f.s(" default role ")
		f.users(s.DefaultRole)
	}
	f.accountOptions(s.Options)
}

func (f *formatter) specs(list []UserSpec) {
	f.list(len(list), func(i int) {
		f.user(&list[i].User)
		if list[i].Auth != nil {
			f.auth(list[i].Auth)
		}
	})
}

func (f *formatter) auth(a *Auth) {
	if a.Discard {
		f.s(" discard old password")
		return
	}
	f.s(" identified")
	if a.Plugin != "" {
		f.s(" with ")
		f.quote(a.Plugin)
	}
	switch {
	case a.Random:
		f.s(" by random password")
	case a.HasPassword:
		f.s(" by ")
		f.quote(a.Password)
	case a.HasHash:
		f.s(" as ")
		f.quote(a.Hash)
	}
	if a.HasReplace {
		f.s(" replace ")
		f.quote(a.Replace)
	}
	f.opt(a.Retain, " retain current password")
}

func (f *formatter) accountOptions(list []AccountOption) {
	for i := range list {
		f.s(" ")
		f.accountOption(&list[i])
	}
}

func (f *formatter) accountOption(o *AccountOption) {
	words := strings.ReplaceAll(o.Name, "_", " ")
	switch o.Name {
	case "REQUIRE_SUBJECT", "REQUIRE_ISSUER", "REQUIRE_CIPHER", "COMMENT", "ATTRIBUTE":
		f.s(words, " ")
		f.quote(o.Value)
	case "MAX_QUERIES_PER_HOUR", "MAX_UPDATES_PER_HOUR", "MAX_CONNECTIONS_PER_HOUR", "MAX_USER_CONNECTIONS":
		f.s("with ", o.Name, " ")
		f.number(uint64(o.Number))
	case "FAILED_LOGIN_ATTEMPTS":
		f.s(o.Name, " ")
		f.number(uint64(o.Number))
	case "PASSWORD_LOCK_TIME":
		f.numberOr(o.Name, o.Number, "unbounded")
	case "PASSWORD_HISTORY":
		f.numberOr(words, o.Number, "default")
	case "PASSWORD_REUSE_INTERVAL", "PASSWORD_EXPIRE_INTERVAL":
		f.numberOr(words, o.Number, "default")
		f.opt(o.Number >= 0, " day")
	case "PASSWORD_REQUIRE_CURRENT":
		f.s(words, [...]string{" default", " optional", ""}[o.Number+1])
	default:
		f.s(words)
	}
}

func (f *formatter) numberOr(words string, n int64, otherwise string) {
	f.s(words, " ")
	if n < 0 {
		f.s(otherwise)
	} else {
		f.number(uint64(n))
	}
}

func (f *formatter) setPassword(s *SetPassword) {
	f.s("set password ")
	if s.User != nil {
		f.s("for ")
		f.user(s.User)
		f.s(" ")
	}
	if s.Random {
		f.s("to random")
	} else {
		f.s("= ")
		f.quote(s.Password)
	}
	if s.HasReplace {
		f.s(" replace ")
		f.quote(s.Replace)
	}
	f.opt(s.Retain, " retain current password")
}

func (f *formatter) revokeWord(ifExists bool) {
	f.s("revoke ")
	f.opt(ifExists, "if exists ")
}

func (f *formatter) grant(s *Grant) {
	if s.Revoke {
		f.revokeWord(s.IfExists)
	} else {
		f.s("grant ")
	}
	f.list(len(s.Privileges), func(i int) {
		f.s(s.Privileges[i].Name)
		if s.Privileges[i].Columns != nil {
			f.s(" ")
			f.names(s.Privileges[i].Columns)
		}
	})
	f.s(" on ")
	if s.On.Kind != "" {
		f.s(s.On.Kind, " ")
	}
	switch {
	case s.On.Global:
		f.s("*.*")
	case s.On.Table != "":
		f.table(TableName{s.On.Schema, s.On.Table})
	case s.On.Schema != "":
		f.name(s.On.Schema)
		f.s(".*")
	default:
		f.s("*")
	}
	if s.Revoke {
		f.s(" from ")
	} else {
		f.s(" to ")
	}
	f.specs(s.Users)
	f.opt(s.WithGrantOption, " with grant option")
	f.opt(s.IgnoreUnknown, " ignore unknown user")
}

func (f *formatter) grantRole(s *GrantRole) {
	if s.Revoke {
		f.revokeWord(s.IfExists)
	} else {
		f.s("grant ")
	}
	f.users(s.Roles)
	if s.Revoke {
		f.s(" from ")
	} else {
		f.s(" to ")
	}
	f.users(s.Users)
	f.opt(s.WithAdminOption, " with admin option")
	f.opt(s.IgnoreUnknown, " ignore unknown user")
}

func (f *formatter) roleSet(set RoleSet, roles []User) {
	f.s([...]string{
		RolesListed: "", RolesNone: "none", RolesAll: "all", RolesAllExcept: "all except ", RolesDefault: "default",
	}[set])
	f.users(roles)
}

// show writes SHOW.
func (f *formatter) show(s *Show) {
	if s.Column != "" {
		f.s("describe ")
		f.table(s.Table)
		f.s(" ")
		f.name(s.Column)
		return
	}
	f.s("show ")
	f.opt(s.Extended, "extended ")
	f.opt(s.Full, "full ")
	f.opt(s.Count, "count(*) ")
	for i := range showForms {
		form := &showForms[i]
		if form.kind == s.Kind && (form.name == s.Name || s.Kind == ShowEngine) && (form.words[0] == "GLOBAL") == s.Global {
			f.showForm(s, form)
			return
		}
	}
}

func (f *formatter) showForm(s *Show, form *showForm) {
	for i, w := range form.words {
		f.opt(i > 0, " ")
		f.s(strings.ToLower(w))
	}
	switch s.Kind {
	case ShowTables, ShowTableStatus, ShowOpenTables, ShowTriggers, ShowEvents:
		if s.Schema != "" {
			f.s(" from ")
			f.name(s.Schema)
		}
	case ShowColumns, ShowIndexes:
		f.s(" from ")
		f.table(s.Table)
	case ShowCreateSchema:
		f.opt(s.IfNotExists, " if not exists")
		f.s(" ")
		f.name(s.Schema)
	case ShowCreateTable, ShowCreateView, ShowCreateProgram:
		f.s(" ")
		f.table(s.Table)
	case ShowCreateUser:
		if s.User != nil {
			f.s(" ")
			f.user(s.User)
		}
	case ShowGrants:
		if s.User != nil {
			f.s(" for ")
			f.user(s.User)
		}
		if s.Using != nil {
			f.s(" using ")
			f.users(s.Using)
		}
	case ShowEngine:
		f.s(" ")
		f.name(s.Name)
		f.s(" ", s.What)
	case ShowBinaryLogEvents, ShowRelayLogEvents:
		if s.File != "" {
			f.s(" in ")
			f.quote(s.File)
		}
		if s.Position != 0 {
			f.s(" from ")
			f.number(s.Position)
		}
	}
	f.showTail(s)
}

func (f *formatter) showTail(s *Show) {
	if s.Like != nil {
		f.s(" like ")
		f.expr(s.Like)
	}
	f.where(s.Where)
	f.limit(s.Limit)
	if s.Channel != "" {
		f.s(" for channel ")
		f.quote(s.Channel)
	}
}

package session

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/storage/dict"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
)

// runAccount runs a statement about accounts.
func (s *Session) runAccount(st ast.Statement) (out Outcome, err error) {
	if err := s.ask(); err != nil { // before anything is refused because of an old account
		return out, err
	}
	if st, ok := st.(*ast.SetRole); ok {
		return out, s.setRole(st)
	}
	if s.info.ReadOnly {
		return out, sqlerr.New(sqlerr.OptionPreventsStatement, "--read-only")
	}
	ctx := s.out.ctx
	if _, ok := st.(*ast.SetDefaultRole); !ok { // which MySQL lets pass
		if err := s.mayDefine(ctx); err != nil {
			return out, err
		}
	}
	switch st := st.(type) {
	case *ast.CreateUser:
		err = s.createUsers(ctx, st)
	case *ast.AlterUser:
		err = s.alterUsers(ctx, st)
	case *ast.DropUser:
		err = s.dropUsers(ctx, st)
	case *ast.RenameUser:
		err = s.renameUsers(ctx, st)
	case *ast.SetPassword:
		err = s.setPassword(ctx, st)
	case *ast.Grant:
		err = s.grant(ctx, st)
	case *ast.RevokeAll:
		err = s.revokeAll(ctx, st)
	case *ast.GrantRole:
		err = s.grantRoles(ctx, st)
	case *ast.SetDefaultRole:
		err = s.setDefaultRoles(ctx, st)
	case *ast.Component:
		err = s.component(ctx, st)
	default:
		err = unknownStatement(st)
	}
	return out, err
}

// changeAccounts runs change on a copy of the accounts, and writes what it has changed,
// in a transaction. Statements about accounts come one after the other: each has mysql.user
// for itself from its beginning, since it will change the definition. on are the accounts that it acts on, and gives or
// takes away (error 1227, see mayOperate). by is what the session may do by the accounts as they
// are then: who asks its privileges within would wait for itself.
func (s *Session) changeAccounts(ctx context.Context, on []priv.ID, change func(set *priv.Set, by *priv.Active) error) error {
	by := s.privileges()
	if err := s.trx.tables.check(priv.Schema, priv.TableNames[0]); err != nil {
		return err
	}
	return s.inTransaction(ctx, func() error {
		if err := s.txn.LockDefinitions(txn.Name{Schema: priv.Schema, Table: priv.TableNames[0]}); err != nil {
			return err
		}
		switch def, err := s.definition(priv.Schema, priv.TableNames[0]); {
		case err != nil:
			return err
		case def == nil:
			return sqlerr.New(sqlerr.OptionPreventsStatement, "--skip-grant-tables")
		case dict.FindColumn(def, priv.AddedColumn) == nil:
			return sqlerr.Newf(sqlerr.UnknownError, "The system tables are those of an older version, and this "+
				"leader could not bring them up to date: its log says why; it tries again when it leads again")
		}
		before, err := readAccounts(s.txn.Open, s.txn)
		if err != nil {
			return err
		}
		s.m.arrange(before)
		if by != everything {
			by = before.Active(s.accountID(), s.info.Host, s.acl.roles)
		}
		if err := mayOperate(before, by, on); err != nil {
			return err
		}
		after := before.Clone()
		if err := change(after, by); err != nil {
			return err
		}
		for _, role := range after.Mandatory { // else everybody would be a system account
			if after.SystemDefiner(role) && !before.SystemDefiner(role) {
				return sqlerr.New(sqlerr.CannotGrantSystemPrivToMandatoryRole, role, "SYSTEM_USER")
			}
		}
		return writeAccounts(s.txn, s.eng, before, after)
	})
}

// userID is the account that a statement names. Errors: 1470, 1396 of names that cannot be.
func (s *Session) userID(u ast.User) (priv.ID, error) {
	if u.Current {
		return s.accountID(), nil
	}
	if len([]rune(u.Name)) > 32 {
		return priv.ID{}, sqlerr.New(sqlerr.WrongStringLength, u.Name, "user name", 32)
	}
	if len(u.Host) > 255 {
		return priv.ID{}, sqlerr.New(sqlerr.WrongStringLength, u.Host, "host name", 255)
	}
	return priv.NewID(u.Name, u.Host), nil
}

// mayOperate checks that the session may act on accounts: on one that holds SYSTEM_USER may only who does, too. Error: 1227.
func mayOperate(set *priv.Set, by *priv.Active, ids []priv.ID) error {
	if by.SystemUser() {
		return nil
	}
	for _, id := range ids {
		if set.SystemAccount(id) {
			return by.Needs(0, priv.SystemUser)
		}
	}
	return nil
}

// mayAdminister checks that the session may change accounts of others: with CREATE USER, or as who may write to the
// system tables in that way. Error: 1227.
func (s *Session) mayAdminister(write priv.Mask) error {
	a := s.privileges()
	if a.SchemaMask(priv.Schema)&write != 0 {
		return nil
	}
	return a.Needs(priv.CreateUser)
}

func usersOf(list []ast.UserSpec) []ast.User {
	users := make([]ast.User, len(list))
	for i := range list {
		users[i] = list[i].User
	}
	return users
}

// userIDs is userID of several.
func (s *Session) userIDs(list []ast.User) ([]priv.ID, error) {
	ids := make([]priv.ID, len(list))
	for i, u := range list {
		var err error
		if ids[i], err = s.userID(u); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// noAccount is what error 1396 says of an account that is not there.
const noAccount = " (User account does not exist)"

// failedUsers is error 1396.
func failedUsers(operation string, ids []string) error {
	return sqlerr.New(sqlerr.CannotUser, operation, strings.Join(ids, ","))
}

func (s *Session) createUsers(ctx context.Context, st *ast.CreateUser) error {
	operation := "CREATE USER"
	if st.Role {
		operation = "CREATE ROLE"
		if err := s.privileges().Needs(priv.CreateRole | priv.CreateUser); err != nil {
			return err
		}
	} else if err := s.mayAdminister(priv.Insert); err != nil {
		return err
	}
	if len(st.DefaultRole) > 0 { // they are granted
		if err := s.privileges().Needs(priv.Super, "ROLE_ADMIN"); err != nil {
			return err
		}
	}
	defaults, err := s.userIDs(st.DefaultRole)
	if err != nil {
		return err
	}
	made, err := s.userIDs(usersOf(st.Users))
	if err != nil {
		return err
	}
	var passwords []drawnPassword
	err = s.changeAccounts(ctx, defaults, func(set *priv.Set, by *priv.Active) error {
		passwords = nil
		if err := s.orphans(operation, made, by); err != nil {
			return err
		}
		var failed []string
		for i := range st.Users {
			id, err := s.userID(st.Users[i].User)
			if err != nil {
				return err
			}
			if st.Role && id.Name == "" || set.Account(id) != nil {
				if st.IfNotExists {
					s.note(sqlerr.New(sqlerr.UserAlreadyExists, id.Text()))
					continue
				}
				failed = append(failed, id.Text()+" (User account already exists)")
				continue
			}
			a := set.Add(id)
			a.Plugin, a.Changed = priv.SHA2, types.Timestamp(s.x.Now.UnixMicro()/1e6*1e6)
			if st.Role {
				a.Locked, a.Expired = true, true
				continue
			}
			drawn, err := s.identified(set, a, st.Users[i].Auth, st.Options, true)
			if err != nil {
				return err
			}
			passwords = append(passwords, drawn...)
			for _, role := range defaults {
				if set.Account(role) == nil {
					return sqlerr.New(sqlerr.UnknownAuthID, role)
				}
				a.Roles[role] = false
				a.DefaultRoles = append(a.DefaultRoles, role)
			}
		}
		if len(failed) > 0 {
			return failedUsers(operation, failed)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.tellDrawn(passwords)
}

// accountOptions applies REQUIRE, limits, locks and the rest.
func (s *Session) accountOptions(a *priv.Account, options []ast.AccountOption) error {
	number := func(o *ast.AccountOption) uint32 { return uint32(max(min(o.Number, 1<<31), 0)) }
	if err := requirements(a, options); err != nil {
		return err
	}
	for i := range options {
		o := &options[i]
		switch o.Name {
		case "MAX_QUERIES_PER_HOUR":
			a.Limits.Questions = number(o)
		case "MAX_UPDATES_PER_HOUR":
			a.Limits.Updates = number(o)
		case "MAX_CONNECTIONS_PER_HOUR":
			a.Limits.Connections = number(o)
		case "MAX_USER_CONNECTIONS":
			a.Limits.UserConnections = number(o)
		case "PASSWORD_EXPIRE":
			a.Expired = true
		case "PASSWORD_EXPIRE_DEFAULT":
			a.Lifetime = -1
		case "PASSWORD_EXPIRE_NEVER":
			a.Lifetime = 0
		case "PASSWORD_EXPIRE_INTERVAL":
			if o.Number < 1 || o.Number > math.MaxUint16 {
				return wrongOption("DAY", o.Number)
			}
			a.Lifetime = int(o.Number)
		case "ACCOUNT_LOCK":
			a.Locked = true
		case "ACCOUNT_UNLOCK":
			a.Locked = false
			a.Rules.Unlocked = s.unlockStamp()
		case "FAILED_LOGIN_ATTEMPTS", "PASSWORD_LOCK_TIME":
			a.Rules.Unlocked = s.unlockStamp()
		case "COMMENT", "ATTRIBUTE":
			text := o.Value
			if o.Name == "COMMENT" {
				object, err := json.Marshal(map[string]string{"comment": o.Value})
				if err != nil {
					return err
				}
				text = string(object)
			}
			if err := a.Describe(text); err != nil {
				return err
			}
		}
	}
	if a.Rules.Attempts == 0 && a.Rules.LockDays == 0 {
		a.Rules.Unlocked = 0
	}
	return nil
}

// requirements applies REQUIRE, which says all that the account requires from now on. Errors: 1225.
func requirements(a *priv.Account, options []ast.AccountOption) error {
	given := map[string]bool{}
	for i := range options {
		o := &options[i]
		what, ok := strings.CutPrefix(o.Name, "REQUIRE_")
		if !ok {
			continue
		}
		if given[what] {
			return sqlerr.New(sqlerr.DupArgument, what)
		}
		if len(given) == 0 {
			a.TLS, a.Cipher, a.Issuer, a.Subject = "", "", "", ""
		}
		given[what] = true
		switch what {
		case "NONE":
			a.TLS = ""
		case "SSL":
			a.TLS = "ANY"
		case "X509":
			a.TLS = "X509"
		case "SUBJECT":
			a.TLS, a.Subject = "SPECIFIED", o.Value
		case "ISSUER":
			a.TLS, a.Issuer = "SPECIFIED", o.Value
		case "CIPHER":
			a.TLS, a.Cipher = "SPECIFIED", o.Value
		}
	}
	return nil
}

func (s *Session) alterUsers(ctx context.Context, st *ast.AlterUser) error {
	ids, err := s.userIDs(usersOf(st.Users))
	if err != nil {
		return err
	}
	// Of its own account everybody may change the password, by telling the new one, and no more.
	other := func(id priv.ID) bool { return id != s.accountID() }
	more := func(u ast.UserSpec) bool { return u.Auth == nil || u.Auth.Plugin != "" || u.Auth.HasHash }
	if len(st.Options) > 0 || slices.ContainsFunc(ids, other) || slices.ContainsFunc(st.Users, more) {
		if err := s.mayAdminister(priv.Update); err != nil {
			return err
		}
	}
	var passwords []drawnPassword
	err = s.changeAccounts(ctx, ids, func(set *priv.Set, _ *priv.Active) error {
		passwords = nil
		var failed []string
		for i, id := range ids {
			a := set.Account(id)
			if a == nil {
				if st.IfExists {
					s.note(sqlerr.New(sqlerr.UserDoesNotExist, id.Text()))
					continue
				}
				failed = append(failed, id.Text()+noAccount)
				continue
			}
			drawn, err := s.identified(set, a, st.Users[i].Auth, st.Options, false)
			if err != nil {
				return err
			}
			passwords = append(passwords, drawn...)
		}
		if len(failed) > 0 {
			return failedUsers("ALTER USER", failed)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, id := range ids {
		s.hasReset(id, st.Users[i].Auth)
	}
	expires := func(o ast.AccountOption) bool { return o.Name == "PASSWORD_EXPIRE" }
	if slices.ContainsFunc(ids, func(id priv.ID) bool { return !other(id) }) && slices.ContainsFunc(st.Options, expires) {
		s.txnMu(func() { s.info.Expired = true })
	}
	return s.tellDrawn(passwords)
}

func (s *Session) dropUsers(ctx context.Context, st *ast.DropUser) error {
	operation := "DROP USER"
	if st.Role {
		operation = "DROP ROLE"
		if err := s.privileges().Needs(priv.DropRole | priv.CreateUser); err != nil {
			return err
		}
	} else if err := s.mayAdminister(priv.Delete); err != nil {
		return err
	}
	ids, err := s.userIDs(st.Users)
	if err != nil {
		return err
	}
	return s.changeAccounts(ctx, ids, func(set *priv.Set, by *priv.Active) error {
		for _, id := range ids {
			// What nobody can log in with is a role; accounts are dropped with CREATE USER.
			if a := set.Account(id); st.Role && a != nil && !a.Locked {
				if err := by.Needs(priv.CreateUser); err != nil {
					return err
				}
			}
			if slices.Contains(set.Mandatory, id) && set.Account(id) != nil {
				return errMandatory(id)
			}
		}
		if err := s.orphans(operation, ids, by); err != nil {
			return err
		}
		var failed []string
		for _, id := range ids {
			if set.Account(id) == nil {
				if st.IfExists {
					s.note(sqlerr.New(sqlerr.UserDoesNotExist, id.Text()))
					continue
				}
				failed = append(failed, id.Text()+noAccount)
				continue
			}
			set.Drop(id)
		}
		if len(failed) > 0 {
			return failedUsers(operation, failed)
		}
		return nil
	})
}

func (s *Session) renameUsers(ctx context.Context, st *ast.RenameUser) error {
	if err := s.mayAdminister(priv.Update); err != nil {
		return err
	}
	var old, renamed []ast.User
	for _, r := range st.Renames {
		old, renamed = append(old, r.Old), append(renamed, r.New)
	}
	ids, err := s.userIDs(append(old, renamed...))
	if err != nil {
		return err
	}
	return s.changeAccounts(ctx, ids, func(set *priv.Set, by *priv.Active) error {
		if err := s.orphans("RENAME USER", ids, by); err != nil {
			return err
		}
		var failed []string
		for i, from := range ids[:len(old)] {
			to := ids[len(old)+i]
			if set.Role(from) {
				return sqlerr.New(sqlerr.RenameRole)
			}
			if set.Account(from) == nil || set.Account(to) != nil {
				failed = append(failed, from.Text())
				continue
			}
			set.Rename(from, to)
		}
		if len(failed) > 0 {
			return failedUsers("RENAME USER", failed)
		}
		return nil
	})
}

// grant is GRANT and REVOKE of privileges.
func (s *Session) grant(ctx context.Context, st *ast.Grant) error {
	on := priv.Target{}
	if !st.On.Global {
		on = priv.Target{Schema: st.On.Schema, Table: st.On.Table}
		if on.Schema == "" {
			on.Schema = s.schema
		}
		if on.Schema == "" {
			return sqlerr.New(sqlerr.NoDBError)
		}
	}
	if st.On.Kind != "" && !strings.EqualFold(st.On.Kind, "TABLE") {
		return notSupported("privileges on a %s", strings.ToLower(st.On.Kind))
	}
	known, made := virtualSchema(on.Schema)
	if made && known == infoSchema {
		return s.deniedSchema(known)
	}
	r, err := priv.NewRequest(st.Privileges, on, st.WithGrantOption)
	if err != nil {
		return err
	}
	if made && known == perfSchema && (r.All || r.Mask&^perfGrants != 0) {
		return s.deniedSchema(known)
	}
	if err := s.mayGrant(r, st.Revoke); err != nil {
		return err
	}
	ids, err := s.userIDs(usersOf(st.Users))
	if err != nil {
		return err
	}
	return s.changeAccounts(ctx, ids, func(set *priv.Set, by *priv.Active) error {
		if !st.Revoke {
			if err := s.checkGranted(r); err != nil {
				return err
			}
		}
		for i, id := range ids {
			a := set.Account(id)
			switch {
			case a == nil && st.Revoke && (st.IgnoreUnknown || st.IfExists):
				s.diag.warn(sqlerr.New(sqlerr.UserDoesNotExist, id.Text()))
				continue
			case a == nil && st.Revoke:
				return sqlerr.New(sqlerr.NonExistingGrant, id.Name, id.Host)
			case a == nil:
				return sqlerr.New(sqlerr.CantCreateUserWithGrant)
			case st.Users[i].Auth != nil:
				return sqlerr.Newf(sqlerr.ParseError, "You have an error in your SQL syntax: GRANT does not set "+
					"passwords; use ALTER USER")
			case !st.Revoke:
				a.Grant(r, by)
				continue
			}
			if err := a.Revoke(r, by, set.Literal); err != nil {
				if !st.IfExists {
					return err
				}
				s.diag.warn(err.(*sqlerr.Error))
			}
		}
		return nil
	})
}

// mayGrant checks that the session may give what is asked for. Errors: 1044, 1045, 1142,
// 1227.
func (s *Session) mayGrant(r *priv.Request, revoke bool) error {
	a := s.privileges()
	if revoke && r.All && r.On == (priv.Target{}) { // it is REVOKE ALL, for which nothing has to be held
		return s.mayAdminister(priv.Update)
	}
	if dynamicAlone := !r.Static() && len(r.Dynamic) > 0 && !r.DynamicGrant; dynamicAlone || a.MayGrant(r.On, r.Needs()) {
		return r.Limit(a)
	}
	switch {
	case r.On.Table != "":
		return sqlerr.New(sqlerr.TableAccessDeniedError, "GRANT", a.ID.Name, s.info.Host, r.On.Table)
	case r.On.Schema != "":
		return sqlerr.New(sqlerr.DBAccessDeniedError, a.ID.Name, a.ID.Host, r.On.Schema)
	}
	return sqlerr.New(sqlerr.AccessDeniedError, a.ID.Name, a.ID.Host, "YES")
}

// checkGranted checks that the table and the columns exist that privileges are granted on.
func (s *Session) checkGranted(r *priv.Request) error {
	if r.On.Table == "" {
		return nil
	}
	def, err := madeDefinition(r.On.Schema, r.On.Table), error(nil)
	if def == nil {
		def, err = s.definition(r.On.Schema, r.On.Table)
	}
	switch {
	case err != nil:
		return err
	case def == nil && r.Mask&priv.Create != 0:
		return nil
	case def == nil:
		return sqlerr.New(sqlerr.NoSuchTable, r.On.Schema, r.On.Table)
	}
	for name := range r.Columns {
		if c := dict.FindColumn(def, name); c == nil || c.Hidden {
			return sqlerr.New(sqlerr.BadFieldError, name, r.On.Table)
		}
	}
	return nil
}

func (s *Session) revokeAll(ctx context.Context, st *ast.RevokeAll) error {
	if err := s.mayAdminister(priv.Update); err != nil {
		return err
	}
	ids, err := s.userIDs(st.Users)
	if err != nil {
		return err
	}
	return s.changeAccounts(ctx, ids, func(set *priv.Set, by *priv.Active) error {
		for _, id := range ids {
			a := set.Account(id)
			switch {
			case a != nil:
				if err := a.RevokeAll(by); err != nil {
					return err
				}
			case st.IfExists || st.IgnoreUnknown:
				s.diag.warn(sqlerr.New(sqlerr.UserDoesNotExist, id.Text()))
			default:
				return sqlerr.New(sqlerr.RevokeGrants)
			}
		}
		return nil
	})
}

package session

import (
	"context"
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sql/ast"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// grantRoles is GRANT and REVOKE of roles.
func (s *Session) grantRoles(ctx context.Context, st *ast.GrantRole) error {
	admin := s.privileges().Needs(priv.Super, "ROLE_ADMIN")
	roles, err := s.userIDs(st.Roles)
	if err != nil {
		return err
	}
	users, err := s.userIDs(st.Users)
	if err != nil {
		return err
	}
	return s.changeAccounts(ctx, append(slices.Clone(roles), users...), func(set *priv.Set, by *priv.Active) error {
		// A role that gives SYSTEM_USER by another one gives it, too, which MySQL lets pass.
		if !st.Revoke && !by.SystemUser() && slices.ContainsFunc(roles, set.SystemDefiner) {
			return by.Needs(0, priv.SystemUser)
		}
		for _, role := range roles { // before is told which there are
			if admin != nil && !by.AdministersRole(role) {
				return admin
			}
		}
		for _, role := range roles {
			if set.Account(role) == nil {
				if st.IfExists || st.IgnoreUnknown {
					s.diag.warn(sqlerr.New(sqlerr.UserDoesNotExist, role.Text()))
					continue
				}
				return sqlerr.New(sqlerr.UnknownAuthID, role)
			}
			for _, id := range users {
				if err := s.grantRole(set, role, id, st); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (s *Session) grantRole(set *priv.Set, role, id priv.ID, st *ast.GrantRole) error {
	a := set.Account(id)
	switch {
	case a == nil && (st.IgnoreUnknown || st.IfExists):
		s.diag.warn(sqlerr.New(sqlerr.UserDoesNotExist, id.Text()))
		return nil
	case a == nil:
		return sqlerr.New(sqlerr.UnknownAuthID, id)
	case !st.Revoke:
		return set.GrantRole(role, id, st.WithAdminOption)
	}
	if slices.Contains(set.Mandatory, role) {
		return errMandatory(role)
	}
	if _, ok := a.Roles[role]; !ok && !st.IfExists {
		return sqlerr.New(sqlerr.RoleNotGranted, role, id)
	}
	delete(a.Roles, role)
	a.DefaultRoles = slices.DeleteFunc(a.DefaultRoles, func(r priv.ID) bool { return r == role })
	return nil
}

// errMandatory is error 3628.
func errMandatory(role priv.ID) error {
	return sqlerr.New(sqlerr.MandatoryRole, role)
}

// checkMandatory checks a value of mandatory_roles. Errors: 1231, 3880.
func checkMandatory(s *Session, x *varValue) error {
	roles, ok := priv.ParseRoles(x.s)
	if !ok && strings.TrimSpace(x.s) != "" {
		return varMandatory.wrongValue(x.s)
	}
	if s == nil {
		return nil // the configuration's
	}
	k, err := s.m.accounts()
	if err != nil || k.set == nil {
		return err
	}
	for _, role := range roles {
		if k.set.SystemDefiner(role) {
			return sqlerr.New(sqlerr.DAAuthIDWithSystemUserPrivInMandatoryRoles, role, "SYSTEM_USER")
		}
	}
	return nil
}

// checkPartial checks a value of partial_revokes. Error: 3896, there are some.
func checkPartial(s *Session, x *varValue) error {
	if x.n != 0 || s == nil {
		return nil
	}
	k, err := s.m.accounts()
	if err == nil && k.set != nil && k.set.Restricted() {
		err = sqlerr.New(sqlerr.PartialRevokesExist)
	}
	return err
}

// forgetsAccounts has what the node knows of accounts worked out anew when a variable changes.
func forgetsAccounts(v *variable) {
	v.appliedGlobal = func(m *Manager, _ varValue) { m.forgetAccounts() }
}

// setRole is SET ROLE.
func (s *Session) setRole(st *ast.SetRole) error {
	k, err := s.m.accounts()
	if err != nil || k.set == nil {
		return err
	}
	id := s.accountID()
	a := k.set.Account(id)
	if a == nil {
		return sqlerr.New(sqlerr.UnknownAuthID, id)
	}
	roles, err := s.chooseRoles(k.set, a, st.Set, st.Roles)
	if err != nil {
		return err
	}
	s.acl = sessionACL{begun: true, roles: roles}
	s.privileges() // others look at what they come to
	return nil
}

// chooseRoles are the roles of an account that a statement means. Error: 3530.
func (s *Session) chooseRoles(set *priv.Set, a *priv.Account, which ast.RoleSet, listed []ast.User) ([]priv.ID, error) {
	var roles, named []priv.ID
	for _, r := range listed {
		role, err := s.userID(r)
		if err != nil {
			return nil, err
		}
		named = append(named, role)
	}
	switch which {
	case ast.RolesNone:
		return nil, nil
	case ast.RolesDefault:
		return slices.Clone(a.DefaultRoles), nil
	case ast.RolesAll, ast.RolesAllExcept:
		for _, r := range set.RolesOf(a) {
			if which == ast.RolesAll || !slices.Contains(named, r) {
				roles = append(roles, r)
			}
		}
		return roles, nil
	}
	for _, r := range named {
		if !set.HasRole(a, r) {
			return nil, sqlerr.New(sqlerr.RoleNotGranted, r, a.ID)
		}
	}
	return named, nil
}

func (s *Session) setDefaultRoles(ctx context.Context, st *ast.SetDefaultRole) error {
	ids, err := s.userIDs(st.Users)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if id != s.accountID() {
			if err := s.mayAdminister(priv.Update); err != nil {
				return err
			}
		}
	}
	return s.changeAccounts(ctx, ids, func(set *priv.Set, _ *priv.Active) error {
		for _, id := range ids {
			a := set.Account(id)
			if a == nil {
				return sqlerr.New(sqlerr.UnknownAuthID, id)
			}
			if a.DefaultRoles, err = s.chooseRoles(set, a, st.Set, st.Roles); err != nil {
				return err
			}
		}
		return nil
	})
}

package session

import (
	"slices"

	"github.com/triremedb/trireme/engine/sql/priv"
)

var infoAccounts = []made{
	{infoSchema, "USER_PRIVILEGES", "GRANTEE varchar(292), TABLE_CATALOG, PRIVILEGE_TYPE, IS_GRANTABLE varchar(3)", rowsUserPrivileges},
	{infoSchema, "SCHEMA_PRIVILEGES", "GRANTEE varchar(292), TABLE_CATALOG, TABLE_SCHEMA name, PRIVILEGE_TYPE, IS_GRANTABLE varchar(3)", rowsSchemaPrivileges},
	{infoSchema, "TABLE_PRIVILEGES", "GRANTEE varchar(292), " + catalogColumn + ", PRIVILEGE_TYPE, IS_GRANTABLE varchar(3)", rowsTablePrivileges},
	{infoSchema, "COLUMN_PRIVILEGES", "GRANTEE varchar(292), " + catalogColumn + ", COLUMN_NAME, PRIVILEGE_TYPE, IS_GRANTABLE varchar(3)", rowsColumnPrivileges},
	{infoSchema, "APPLICABLE_ROLES", "USER varchar(97), HOST varchar(256), GRANTEE varchar(97), GRANTEE_HOST varchar(256), ROLE_NAME varchar(255), ROLE_HOST varchar(256), IS_GRANTABLE varchar(3), " +
		"IS_DEFAULT varchar(3), IS_MANDATORY varchar(3)", rowsApplicableRoles},
	{infoSchema, "ADMINISTRABLE_ROLE_AUTHORIZATIONS", "USER varchar(97), HOST varchar(256), GRANTEE varchar(97), GRANTEE_HOST varchar(256), ROLE_NAME varchar(255), ROLE_HOST varchar(256), " +
		"IS_GRANTABLE varchar(3), IS_DEFAULT varchar(3), IS_MANDATORY varchar(3)", rowsAdministrableRoles},
	{infoSchema, "ENABLED_ROLES", "ROLE_NAME varchar(255), ROLE_HOST varchar(255), IS_DEFAULT varchar(3), IS_MANDATORY varchar(3)", rowsEnabledRoles},
	{infoSchema, "USER_ATTRIBUTES", "USER char(32), HOST char(255), ATTRIBUTE longtext", rowsUserAttributes},
}

// eachAccount calls fn with the accounts that the session may know of: its own, and with
// privileges on schema mysql all.
func (q *virtualRows) eachAccount(fn func(a *priv.Account)) error {
	k, err := q.s.m.accounts()
	if err != nil || k.set == nil {
		return err
	}
	all := q.s.privileges().SchemaMask(priv.Schema)&priv.Select != 0
	for _, a := range k.set.Accounts() {
		if all || a.ID == q.s.accountID() {
			fn(a)
		}
	}
	return nil
}

// privilegeRows adds a row for each privilege of a mask.
func (q *virtualRows) privilegeRows(m priv.Mask, row func(name, grantable string)) {
	names := m.Names()
	if len(names) == 0 {
		names = []string{"USAGE"}
	}
	for _, n := range names {
		row(n, yesNo(m&priv.GrantOption != 0))
	}
}

func rowsUserPrivileges(q *virtualRows) error {
	return q.eachAccount(func(a *priv.Account) {
		q.privilegeRows(a.Global, func(name, grantable string) { q.row(a.Text(), "def", name, grantable) })
		var names []string
		for d := range a.Dynamic {
			names = append(names, d)
		}
		slices.Sort(names)
		for _, d := range names {
			q.row(a.Text(), "def", d, yesNo(a.Dynamic[d]))
		}
	})
}

func rowsSchemaPrivileges(q *virtualRows) error {
	return q.eachAccount(func(a *priv.Account) {
		for schema, m := range a.Schemas {
			q.privilegeRows(m, func(name, grantable string) { q.row(a.Text(), "def", schema, name, grantable) })
		}
	})
}

func rowsTablePrivileges(q *virtualRows) error {
	return q.eachAccount(func(a *priv.Account) {
		for o, m := range a.Tables {
			q.privilegeRows(m, func(name, grantable string) { q.row(a.Text(), "def", o.Schema, o.Table, name, grantable) })
		}
	})
}

func rowsColumnPrivileges(q *virtualRows) error {
	return q.eachAccount(func(a *priv.Account) {
		for o, columns := range a.Columns {
			for c, m := range columns {
				q.privilegeRows(m, func(name, _ string) { q.row(a.Text(), "def", o.Schema, o.Table, c, name, "NO") })
			}
		}
	})
}

func rowsApplicableRoles(q *virtualRows) error { return q.heldRoles(false) }

func rowsAdministrableRoles(q *virtualRows) error { return q.heldRoles(true) }

// heldRoles adds a row for each grant of a role to the session's account, or to a role that it has by another one; with
// administered those alone that are WITH ADMIN OPTION.
func (q *virtualRows) heldRoles(administered bool) error {
	k, err := q.s.m.accounts()
	if err != nil || k.set == nil {
		return err
	}
	id := q.s.accountID()
	of := k.set.Account(id)
	if of == nil {
		return nil
	}
	seen := map[priv.ID]bool{id: true}
	for next := []*priv.Account{of}; len(next) > 0; next = next[1:] {
		holder := next[0]
		roles := holder.RolesHeld()
		if holder == of {
			roles = k.set.RolesOf(of)
		}
		for _, r := range roles {
			if admin := holder.Roles[r]; admin || !administered {
				q.row(id.Name, id.Host, holder.Name, holder.Host, r.Name, r.Host, yesNo(admin),
					yesNo(slices.Contains(of.DefaultRoles, r)), yesNo(slices.Contains(k.set.Mandatory, r)))
			}
			if role := k.set.Account(r); role != nil && !seen[r] {
				seen[r] = true
				next = append(next, role)
			}
		}
	}
	return nil
}

func rowsEnabledRoles(q *virtualRows) error {
	k, err := q.s.m.accounts()
	if err != nil || k.set == nil {
		return err
	}
	of := k.set.Account(q.s.accountID())
	for _, r := range q.s.privileges().Roles {
		q.row(r.Name, r.Host, yesNo(of != nil && slices.Contains(of.DefaultRoles, r)), yesNo(slices.Contains(k.set.Mandatory, r)))
	}
	return nil
}

// rowsUserAttributes tells what statements have given accounts, which is a part of their attributes.
func rowsUserAttributes(q *virtualRows) error {
	return q.eachAccount(func(a *priv.Account) {
		var text any
		if a.Metadata != "" {
			text = a.Metadata
		}
		q.row(a.Name, a.Host, text)
	})
}

package priv

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/sqlerr"
)

// Partial revokes take from an account, in one schema, what it holds globally (`REVOKE SELECT ON mysql.* FROM u`). They are kept
// as restrictions of the account, by the schema's name, and act whatever partial_revokes says on a node: that only decides what
// REVOKE means, and whether names of schemas in GRANT are patterns.

// restriction is how User_attributes has one.
type restriction struct {
	Database   string
	Privileges []string
}

// attrRestrictions is their member of User_attributes.
const attrRestrictions = "Restrictions"

// grantWord is GRANT OPTION among the privileges of a restriction.
const grantWord = "GRANT"

func readRestrictions(text json.RawMessage) map[string]Mask {
	var list []restriction
	if json.Unmarshal(text, &list) != nil {
		return nil
	}
	all := map[string]Mask{}
	for _, r := range list {
		for _, name := range r.Privileges {
			if name == grantWord {
				all[r.Database] |= GrantOption
			} else if m, ok := maskOf(name); ok {
				all[r.Database] |= m & SchemaMask
			}
		}
	}
	return all
}

// restrictions is the inverse of readRestrictions; nil: there are none.
func (a *Account) restrictions() json.RawMessage {
	var list []restriction
	for _, schema := range sortedKeys(a.Restrictions, strings.Compare) {
		m := a.Restrictions[schema]
		r := restriction{schema, append([]string{}, m.Names()...)}
		if m&GrantOption != 0 {
			r.Privileges = append(r.Privileges, grantWord)
		}
		if m != 0 {
			list = append(list, r)
		}
	}
	if list == nil {
		return nil
	}
	text, _ := json.Marshal(list)
	return text
}

// restrict makes m what is kept from the account in a schema.
func (a *Account) restrict(schema string, m Mask) {
	if m == 0 {
		delete(a.Restrictions, schema)
		return
	}
	if a.Restrictions == nil {
		a.Restrictions = map[string]Mask{}
	}
	a.Restrictions[schema] = m
}

// grantGlobally gives privileges on everything but what the giver may not use himself: what the account has held before it
// keeps from no more schemas than it did.
func (a *Account) grantGlobally(m Mask, by *Active) {
	held := a.Global & m
	schemas := map[string]bool{}
	for s := range a.Restrictions {
		schemas[s] = true
	}
	for s := range by.restricted {
		schemas[s] = true
	}
	for s := range schemas {
		was, his := a.Restrictions[s], by.restricted[s]
		a.restrict(s, was&^m|was&his&held|his&m&^held)
	}
	a.Global |= m
}

// revokeGlobally takes privileges from everything. Error: 3879, the taker may not use them himself in a schema where the account may.
func (a *Account) revokeGlobally(m Mask, by *Active) error {
	for _, s := range sortedKeys(by.restricted, strings.Compare) {
		if by.restricted[s]&m&a.Global&^a.Restrictions[s] != 0 {
			return sqlerr.New(sqlerr.DBAccessDenied, by.ID, s)
		}
	}
	a.Global &^= m
	for s := range a.Restrictions {
		a.restrict(s, a.Restrictions[s]&^m)
	}
	return nil
}

// grantSchema gives privileges on a schema: those that were kept from the account there are so no more.
func (a *Account) grantSchema(schema string, m Mask) {
	kept := a.Restrictions[unescape(schema)] & m
	a.restrict(unescape(schema), a.Restrictions[unescape(schema)]&^m)
	if m &^= kept; m != 0 || kept == 0 {
		a.Schemas[schema] |= m
	}
}

// revokePartly takes privileges on a schema: those that were given there, and for the others a restriction of what is held on
// everything. Error: 1141, not all of them are held.
func (a *Account) revokePartly(schema string, m Mask, all bool) error {
	given := a.Schemas[schema]
	rest := m &^ given
	if all && given != 0 {
		rest &= a.Global
	}
	if rest&^a.Global != 0 {
		return a.errNoGrant()
	}
	if given != 0 {
		a.Schemas[schema] = given &^ m
	}
	if rest != 0 {
		a.restrict(unescape(schema), a.Restrictions[unescape(schema)]|rest)
	}
	return nil
}

// Restricted reports whether anything is kept from any account that it holds globally.
func (s *Set) Restricted() bool {
	for _, a := range s.accounts {
		if len(a.Restrictions) > 0 {
			return true
		}
	}
	return false
}

// restrictAll works out what is kept, by schema, from who has what several accounts hold together: what none of them has there.
func restrictAll(of []*Account) (restricted map[string]Mask) {
	for _, a := range of {
		for s := range a.Restrictions {
			if _, done := restricted[s]; done {
				continue
			}
			var kept, free Mask
			for _, b := range of {
				kept |= b.Global & b.Restrictions[s]
				free |= b.Global &^ b.Restrictions[s]
			}
			if restricted == nil {
				restricted = map[string]Mask{}
			}
			restricted[s] = kept &^ free
		}
	}
	return restricted
}

// restrictionLines are the lines of SHOW GRANTS.
func (a *Account) restrictionLines() (lines []string) {
	for _, s := range sortedKeys(a.Restrictions, strings.Compare) {
		m := a.Restrictions[s]
		names := m.Names()
		if m&GrantOption != 0 {
			names = append(names, "GRANT OPTION")
		}
		lines = append(lines, "REVOKE "+strings.Join(names, ", ")+" ON "+quote(s)+".* FROM "+a.ID.String())
	}
	return lines
}

// Mandatory roles are granted to everybody, without a trace in the tables; those that do not exist are nobody's.

// HasRole reports whether a role is granted to an account itself.
func (s *Set) HasRole(a *Account, role ID) bool {
	_, ok := a.Roles[role]
	return ok || s.mandatory(a.ID, role)
}

func (s *Set) mandatory(id, role ID) bool {
	return id != role && s.accounts[role] != nil && slices.Contains(s.Mandatory, role)
}

// RolesOf are the roles that are granted to an account itself, in order.
func (s *Set) RolesOf(a *Account) []ID { return s.withMandatory(a, sortedKeys(a.Roles, ID.compare)) }

// LoginRoles are those that a session begins with: the default ones and those that all have.
func (s *Set) LoginRoles(a *Account) []ID { return s.withMandatory(a, slices.Clone(a.DefaultRoles)) }

// withMandatory adds to a list of an account's roles, which it may change, those that all have.
func (s *Set) withMandatory(a *Account, list []ID) []ID {
	for _, role := range s.Mandatory {
		if s.mandatory(a.ID, role) && !slices.Contains(list, role) {
			list = append(list, role)
		}
	}
	slices.SortFunc(list, ID.compare)
	return list
}

// ParseRoles reads mandatory_roles: names as statements have them, parted by commas. ok is false if it is none.
func ParseRoles(text string) (roles []ID, ok bool) {
	for rest := strings.TrimSpace(text); rest != ""; {
		var name, host string
		if name, rest, ok = word(rest, "@,"); !ok || name == "" {
			return nil, false
		}
		if strings.HasPrefix(rest, "@") {
			if host, rest, ok = word(rest[1:], ","); !ok {
				return nil, false
			}
		}
		if id := NewID(name, host); !slices.Contains(roles, id) {
			roles = append(roles, id)
		}
		if rest == "" {
			break
		}
		if rest[0] != ',' {
			return nil, false
		}
		if rest = strings.TrimSpace(rest[1:]); rest == "" {
			return nil, false
		}
	}
	return roles, true
}

// word takes a name off the front of a text, quoted or up to one of the characters of ends.
func word(text, ends string) (name, rest string, ok bool) {
	text = strings.TrimLeft(text, " ")
	if text != "" && strings.Contains("`'\"", text[:1]) {
		end := strings.IndexByte(text[1:], text[0])
		if end < 0 {
			return "", "", false
		}
		return text[1 : end+1], strings.TrimLeft(text[end+2:], " "), true
	}
	end := strings.IndexAny(text, ends)
	if end < 0 {
		end = len(text)
	}
	return strings.TrimSpace(text[:end]), text[end:], true
}

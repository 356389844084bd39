package priv

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/triremedb/trireme/engine/types"
)

// ID names an account or a role. The host is a pattern, in lower case.
type ID struct{ Name, Host string }

// NewID makes an ID from what a statement says.
func NewID(name, host string) ID {
	if host == "" {
		host = "%"
	}
	return ID{name, strings.ToLower(host)}
}

// String is the ID in backquotes, as SHOW GRANTS has it.
func (id ID) String() string { return quote(id.Name) + "@" + quote(id.Host) }

// Text is the ID in apostrophes, as messages have it.
func (id ID) Text() string { return "'" + id.Name + "'@'" + id.Host + "'" }

func quote(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }

func (id ID) compare(o ID) int {
	return cmp.Or(cmp.Compare(id.Name, o.Name), cmp.Compare(id.Host, o.Host))
}

// Object is a table.
type Object struct{ Schema, Table string }

func (o Object) compare(p Object) int {
	return cmp.Or(cmp.Compare(o.Schema, p.Schema), cmp.Compare(o.Table, p.Table))
}

// Limits are the resource limits of an account; 0: none.
type Limits struct{ Questions, Updates, Connections, UserConnections uint32 }

// Account is an account or a role.
type Account struct {
	ID
	Plugin, Hash string // authentication_string
	Global       Mask
	Dynamic      map[string]bool // dynamic privileges; true: WITH GRANT OPTION
	old          bool            // the tables have the retired one, see upgrade
	Schemas      map[string]Mask // by pattern
	Restrictions map[string]Mask // by schema: what of Global is kept from the account there
	Tables       map[Object]Mask
	Columns      map[Object]map[string]Mask
	Roles        map[ID]bool // roles granted; true: WITH ADMIN OPTION
	DefaultRoles []ID

	TLS                     string // "", ANY, X509, SPECIFIED
	Cipher, Issuer, Subject string
	Limits                  Limits
	Expired                 bool
	Changed                 types.Timestamp // when the password was
	Lifetime                int             // days; -1: the default
	Locked                  bool
	Rules                   PasswordRules
	Second                  string         // authentication_string of the password of before that still works
	Past                    []PastPassword // the oldest first
	Metadata                string         // what ATTRIBUTE and COMMENT say, a JSON object, or empty
	others                  map[string]json.RawMessage
}

// Set is all accounts.
type Set struct {
	accounts map[ID]*Account
	// Mandatory are roles that all accounts have (mandatory_roles), and Literal says that names of schemas are no patterns
	// (partial_revokes): what the node says, not the tables.
	Mandatory []ID
	Literal   bool
	// Components are the URNs of what INSTALL COMPONENT has installed.
	Components []string
	// byName are the accounts that Match looks at for a user name, in order: those of the name and the anonymous ones.
	byName map[string][]*Account
}

// NewSet returns a set without accounts.
func NewSet() *Set { return &Set{accounts: map[ID]*Account{}} }

// Account returns an account, or nil.
func (s *Set) Account(id ID) *Account { return s.accounts[id] }

// Empty reports whether there is no account.
func (s *Set) Empty() bool { return len(s.accounts) == 0 }

// Accounts returns the accounts in order.
func (s *Set) Accounts() []*Account {
	all := slices.Collect(maps.Values(s.accounts))
	slices.SortFunc(all, func(a, b *Account) int { return a.compare(b.ID) })
	return all
}

// Clone copies a set, to be changed.
func (s *Set) Clone() *Set {
	c := NewSet()
	c.Components, c.Mandatory, c.Literal = slices.Clone(s.Components), s.Mandatory, s.Literal
	for id, a := range s.accounts {
		c.accounts[id] = a.clone()
	}
	return c
}

func (a *Account) clone() *Account {
	b := *a
	b.Dynamic, b.Schemas, b.Tables, b.Roles = maps.Clone(a.Dynamic), maps.Clone(a.Schemas), maps.Clone(a.Tables), maps.Clone(a.Roles)
	b.DefaultRoles, b.Restrictions = slices.Clone(a.DefaultRoles), maps.Clone(a.Restrictions)
	b.Columns = map[Object]map[string]Mask{}
	for o, cols := range a.Columns {
		b.Columns[o] = maps.Clone(cols)
	}
	return &b
}

// Add makes an account without privileges.
func (s *Set) Add(id ID) *Account {
	a := &Account{ID: id, Dynamic: map[string]bool{}, Schemas: map[string]Mask{}, Tables: map[Object]Mask{},
		Columns: map[Object]map[string]Mask{}, Roles: map[ID]bool{}, Lifetime: ByServer, Rules: noRules()}
	s.accounts[id] = a
	return a
}

// Drop removes an account and what others have of it.
func (s *Set) Drop(id ID) {
	delete(s.accounts, id)
	for _, a := range s.accounts {
		delete(a.Roles, id)
		a.DefaultRoles = slices.DeleteFunc(a.DefaultRoles, func(r ID) bool { return r == id })
	}
}

// Rename gives an account another name.
func (s *Set) Rename(from, to ID) {
	a := s.accounts[from]
	delete(s.accounts, from)
	a.ID = to
	s.accounts[to] = a
	for _, o := range s.accounts {
		if admin, ok := o.Roles[from]; ok {
			delete(o.Roles, from)
			o.Roles[to] = admin
		}
		for i := range o.DefaultRoles {
			if o.DefaultRoles[i] == from {
				o.DefaultRoles[i] = to
			}
		}
	}
}

// Role reports whether an account is granted to another one.
func (s *Set) Role(id ID) bool {
	for _, a := range s.accounts {
		if _, ok := a.Roles[id]; ok {
			return true
		}
	}
	return false
}

// index prepares a set for Match.
func (s *Set) index() {
	s.byName = map[string][]*Account{"": nil}
	for _, a := range s.Accounts() {
		s.byName[a.Name] = append(s.byName[a.Name], a)
	}
	anonymous := s.byName[""]
	for name, list := range s.byName {
		if name != "" {
			list = append(list, anonymous...)
		}
		// The named ones stay before the anonymous ones of the same host.
		slices.SortStableFunc(list, func(a, b *Account) int { return compareHosts(a.Host, b.Host) })
		s.byName[name] = list
	}
}

// Match returns the account of a user that comes from a host, by its name or its address, or nil: that with the most
// specific host among those of the name and the anonymous ones, and of two with hosts that are equally specific that of
// the name. So an anonymous account of an address comes before one of the name for all hosts, as in MySQL.
func (s *Set) Match(user, host, address string) *Account {
	list, ok := s.byName[user]
	if !ok {
		list = s.byName[""]
	}
	for _, a := range list {
		if MatchHost(a.Host, host) || MatchHost(a.Host, address) {
			return a
		}
	}
	return nil
}

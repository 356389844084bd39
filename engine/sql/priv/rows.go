package priv

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/triremedb/trireme/engine/types"
)

// Row is a row of a system table: the text of its columns by name in lower case. What is
// not in it is NULL.
type Row map[string]string

// Key is the row's primary key as text, for comparing.
func (r Row) key(columns []string) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = r[c]
	}
	return strings.Join(parts, "\x00")
}

// keys are the columns of the primary keys, by table.
var keys = map[string][]string{
	"user":          {"host", "user"},
	"db":            {"host", "user", "db"},
	"tables_priv":   {"host", "user", "db", "table_name"},
	"columns_priv":  {"host", "user", "db", "table_name", "column_name"},
	"global_grants": {"user", "host", "priv"},
	"role_edges":    {"from_host", "from_user", "to_host", "to_user"},
	"default_roles": {"host", "user", "default_role_host", "default_role_user"},

	"password_history": {"host", "user", "password_timestamp"},
	"component":        {"component_id"},
}

// Load makes a set of the rows of the system tables, by table. Rows of accounts that do not
// exist are left out.
func Load(rows map[string][]Row) *Set {
	s := NewSet()
	for _, r := range rows["user"] {
		s.loadAccount(r)
	}
	each := func(table, host, user string, fn func(a *Account, r Row)) {
		for _, r := range rows[table] {
			if a := s.accounts[NewID(r[user], r[host])]; a != nil {
				fn(a, r)
			}
		}
	}
	each("db", "host", "user", func(a *Account, r Row) { a.Schemas[r["db"]] = maskOfRow(r, SchemaMask) })
	each("tables_priv", "host", "user", func(a *Account, r Row) {
		if m := maskOfMembers(r["table_priv"]); m != 0 {
			a.Tables[Object{r["db"], r["table_name"]}] = m
		}
	})
	each("columns_priv", "host", "user", func(a *Account, r Row) {
		o := Object{r["db"], r["table_name"]}
		if a.Columns[o] == nil {
			a.Columns[o] = map[string]Mask{}
		}
		a.Columns[o][strings.ToLower(r["column_name"])] = maskOfMembers(r["column_priv"])
	})
	each("global_grants", "host", "user", func(a *Account, r Row) { a.Dynamic[r["priv"]] = r["with_grant_option"] == "Y" })
	each("role_edges", "to_host", "to_user", func(a *Account, r Row) {
		if id := NewID(r["from_user"], r["from_host"]); s.accounts[id] != nil {
			a.Roles[id] = r["with_admin_option"] == "Y"
		}
	})
	each("default_roles", "host", "user", func(a *Account, r Row) {
		a.DefaultRoles = append(a.DefaultRoles, NewID(r["default_role_user"], r["default_role_host"]))
	})
	each("password_history", "host", "user", func(a *Account, r Row) {
		a.Past = append(a.Past, PastPassword{Hash: r["password"], Set: timeOf(r["password_timestamp"])})
	})
	for _, r := range rows["component"] {
		s.Components = append(s.Components, r["component_urn"])
	}
	for _, a := range s.accounts {
		slices.SortFunc(a.Past, func(p, q PastPassword) int { return cmp.Compare(p.Set, q.Set) })
		a.upgrade()
		slices.SortFunc(a.DefaultRoles, ID.compare)
		a.tidy()
	}
	s.index()
	return s
}

// upgrade gives an account of before there were the privileges of added those that follow from what it holds. The
// tables stay as they are until a statement changes its dynamic privileges.
func (a *Account) upgrade() {
	grant, ok := a.Dynamic[retired]
	if !ok {
		return
	}
	for _, d := range added {
		if _, has := a.Dynamic[d]; has { // it says itself what it holds of them
			return
		}
	}
	a.old = true
	all := a.Global == GlobalMask
	for _, d := range dynamic {
		all = all && (slices.Contains(added, d) || a.Dynamic[d])
	}
	for i, d := range added {
		if i < 2 || all {
			a.Dynamic[d] = grant
		}
	}
	delete(a.Dynamic, retired)
}

// stored is Dynamic as the tables have it.
func (a *Account) stored() map[string]bool {
	if !a.old {
		return a.Dynamic
	}
	of := maps.Clone(a.Dynamic)
	of[retired] = of[setAnyDefiner]
	for _, d := range added {
		delete(of, d)
	}
	return of
}

func maskOfRow(r Row, within Mask) Mask {
	var m Mask
	for i := range privileges {
		if p := &privileges[i]; p.mask&within != 0 && r[strings.ToLower(p.column)] == "Y" {
			m |= p.mask
		}
	}
	return m
}

func (s *Set) loadAccount(r Row) {
	a := s.Add(NewID(r["user"], r["host"]))
	a.Plugin, a.Hash = r["plugin"], r["authentication_string"]
	a.Global = maskOfRow(r, GlobalMask)
	a.TLS, a.Cipher, a.Issuer, a.Subject = r["ssl_type"], r["ssl_cipher"], r["x509_issuer"], r["x509_subject"]
	a.Limits = Limits{uint32Of(r["max_questions"]), uint32Of(r["max_updates"]), uint32Of(r["max_connections"]), uint32Of(r["max_user_connections"])}
	a.Expired, a.Locked = r["password_expired"] == "Y", r["account_locked"] == "Y"
	a.Lifetime = numberOr(r["password_lifetime"], ByServer)
	a.Changed = timeOf(r["password_last_changed"])
	a.Rules.History, a.Rules.Reuse = numberOr(r["password_reuse_history"], ByServer), numberOr(r["password_reuse_time"], ByServer)
	if v, ok := r["password_require_current"]; ok {
		a.Rules.RequireCurrent = 0
		if v == "Y" {
			a.Rules.RequireCurrent = 1
		}
	}
	a.readAttributes(r["user_attributes"])
}

func timeOf(text string) (at types.Timestamp) {
	if d, _, ok := types.ParseDateTime([]byte(text), 6); ok {
		at, _ = types.TimestampOf(d, time.UTC)
	}
	return at
}

func uint32Of(s string) uint32 {
	n, _ := strconv.ParseUint(s, 10, 32)
	return uint32(n)
}

func yes(b bool) string {
	if b {
		return "Y"
	}
	return "N"
}

// keyedRows is the inverse of Load: the rows by table, in the order of their keys.
func (s *Set) keyedRows() map[string][]keyedRow {
	all := map[string][]Row{}
	add := func(table string, r Row) { all[table] = append(all[table], r) }
	for _, a := range s.Accounts() {
		add("user", a.row())
		for name, m := range a.Schemas {
			r := Row{"host": a.Host, "user": a.Name, "db": name}
			maskToRow(r, m, SchemaMask)
			add("db", r)
		}
		objects := map[Object]Mask{}
		for o, m := range a.Tables {
			objects[o] |= m
		}
		for o := range a.Columns {
			objects[o] |= 0
		}
		for o, m := range objects {
			add("tables_priv", Row{"host": a.Host, "user": a.Name, "db": o.Schema, "table_name": o.Table, "grantor": "",
				"table_priv": m.members(), "column_priv": (a.columnsMask(o)).members()})
		}
		for o, cols := range a.Columns {
			for c, m := range cols {
				add("columns_priv", Row{"host": a.Host, "user": a.Name, "db": o.Schema, "table_name": o.Table, "column_name": c,
					"column_priv": m.members()})
			}
		}
		for d, grant := range a.stored() {
			add("global_grants", Row{"user": a.Name, "host": a.Host, "priv": d, "with_grant_option": yes(grant)})
		}
		for id, admin := range a.Roles {
			add("role_edges", Row{"from_host": id.Host, "from_user": id.Name, "to_host": a.Host, "to_user": a.Name, "with_admin_option": yes(admin)})
		}
		for _, id := range a.DefaultRoles {
			add("default_roles", Row{"host": a.Host, "user": a.Name, "default_role_host": id.Host, "default_role_user": id.Name})
		}
		for _, p := range a.Past {
			add("password_history", Row{"host": a.Host, "user": a.Name, "password_timestamp": string(p.Set.In(time.UTC).AppendText(nil, 6)), "password": p.Hash})
		}
	}
	for i, urn := range s.Components {
		add("component", Row{"component_id": strconv.Itoa(i + 1), "component_group_id": strconv.Itoa(i + 1), "component_urn": urn})
	}
	sorted := make(map[string][]keyedRow, len(all))
	for table, rows := range all {
		list := make([]keyedRow, len(rows))
		for i, r := range rows {
			list[i] = keyedRow{r.key(keys[table]), r}
		}
		slices.SortFunc(list, func(x, y keyedRow) int { return cmp.Compare(x.key, y.key) })
		sorted[table] = list
	}
	return sorted
}

// keyedRow is a row and its key, which is made once.
type keyedRow struct {
	key string
	row Row
}

func (a *Account) columnsMask(o Object) Mask {
	var m Mask
	for _, c := range a.Columns[o] {
		m |= c
	}
	return m
}

func maskToRow(r Row, m, within Mask) {
	for i := range privileges {
		if p := &privileges[i]; p.mask&within != 0 {
			r[strings.ToLower(p.column)] = yes(m&p.mask != 0)
		}
	}
}

func (a *Account) row() Row {
	number := func(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
	r := Row{"host": a.Host, "user": a.Name, "ssl_type": a.TLS, "ssl_cipher": a.Cipher, "x509_issuer": a.Issuer, "x509_subject": a.Subject,
		"max_questions": number(a.Limits.Questions), "max_updates": number(a.Limits.Updates), "max_connections": number(a.Limits.Connections),
		"max_user_connections": number(a.Limits.UserConnections), "plugin": a.Plugin, "authentication_string": a.Hash,
		"password_expired": yes(a.Expired), "account_locked": yes(a.Locked)}
	maskToRow(r, a.Global, GlobalMask)
	if a.Lifetime >= 0 {
		r["password_lifetime"] = strconv.Itoa(a.Lifetime)
	}
	if a.Changed != 0 {
		r["password_last_changed"] = string(a.Changed.In(time.UTC).AppendText(nil, 0))
	}
	if n := a.Rules.History; n >= 0 {
		r["password_reuse_history"] = strconv.Itoa(n)
	}
	if n := a.Rules.Reuse; n >= 0 {
		r["password_reuse_time"] = strconv.Itoa(n)
	}
	if n := a.Rules.RequireCurrent; n >= 0 {
		r["password_require_current"] = yes(n > 0)
	}
	if text := a.attributes(); text != "" {
		r["user_attributes"] = text
	}
	return r
}

// Edit is a change of a row of a system table: Old is nil for a new one, New for one that
// goes.
type Edit struct {
	Table    string
	Old, New Row
}

// Diff lists what has to be written to get from one set to another, removals of a
// table first.
func Diff(before, after *Set) []Edit {
	was, is := before.keyedRows(), after.keyedRows()
	var edits []Edit
	for _, table := range TableNames {
		olds, news := byKey(was[table]), byKey(is[table])
		for _, r := range was[table] {
			if news[r.key] == nil {
				edits = append(edits, Edit{Table: table, Old: r.row})
			}
		}
		for _, r := range is[table] {
			if old := olds[r.key]; old == nil || !maps.Equal(old, r.row) {
				edits = append(edits, Edit{Table: table, Old: old, New: r.row})
			}
		}
	}
	return edits
}

func byKey(rows []keyedRow) map[string]Row {
	m := make(map[string]Row, len(rows))
	for _, r := range rows {
		m[r.key] = r.row
	}
	return m
}

// KeyColumns are the columns of a system table's primary key, in order.
func KeyColumns(table string) []string { return keys[table] }

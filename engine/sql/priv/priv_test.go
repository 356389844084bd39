package priv

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/sql/ast"

	"github.com/triremedb/trireme/engine/types"
)

// TestRoundTrip: what a set's rows load to is the set, and the edits between two sets
// lead from one to the other.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		a, b := randomSet(rng), randomSet(rng)
		loaded := Load(a.rowsOf())
		if x, y := fmt.Sprint(show(a)), fmt.Sprint(show(loaded)); x != y {
			t.Fatalf("seed %d: loaded set differs:\n%s\n%s", seed, x, y)
		}
		if d := Diff(a, loaded); len(d) != 0 {
			t.Fatalf("seed %d: %d edits between equal sets: %v", seed, len(d), d[0])
		}
		rows := a.rowsOf()
		for _, e := range Diff(a, b) {
			list := rows[e.Table]
			for i := range list {
				if e.Old != nil && reflect.DeepEqual(list[i], e.Old) {
					list = append(list[:i:i], list[i+1:]...)
					break
				}
			}
			if e.New != nil {
				list = append(list, e.New)
			}
			rows[e.Table] = list
		}
		if x, y := fmt.Sprint(show(b)), fmt.Sprint(show(Load(rows))); x != y {
			t.Fatalf("seed %d: edits lead elsewhere:\n%s\n%s", seed, x, y)
		}
	}
}

func randomSet(rng *rand.Rand) *Set {
	s := NewSet()
	for range rng.IntN(6) {
		a := s.Add(NewID(string(rune('a'+rng.IntN(4))), [...]string{"%", "localhost"}[rng.IntN(2)]))
		a.Plugin, a.Hash, a.Locked, a.Lifetime = SHA2, fmt.Sprint(rng.Uint32()), rng.IntN(2) == 0, rng.IntN(3)-1
		a.Global = Mask(rng.Uint64()) & GlobalMask
		a.Grant(&Request{On: Target{Schema: "s" + fmt.Sprint(rng.IntN(2))}, Mask: Mask(rng.Uint64()) & SchemaMask}, Everything())
		a.Grant(&Request{On: Target{"s", "t"}, Mask: Mask(rng.Uint64()) & TableMask, Columns: map[string]Mask{"c": Select, "d": Update | Insert}}, Everything())
		a.Dynamic["BACKUP_ADMIN"] = rng.IntN(2) == 0
		if rng.IntN(2) == 0 {
			a.restrict(`a"b`, Mask(rng.Uint64())&SchemaMask)
			a.Rules = PasswordRules{History: rng.IntN(3) - 1, Reuse: rng.IntN(3) - 1, RequireCurrent: rng.IntN(3) - 1, Attempts: rng.IntN(2), LockDays: rng.IntN(3) - 1}
			a.Second, a.Metadata = "$A$005$\x01\"second", `{"a": 1}`
			a.Remember(types.Timestamp(rng.Uint32()), 1, 0)
		}
		for _, o := range s.Accounts() {
			if o != a && rng.IntN(3) == 0 {
				a.Roles[o.ID] = rng.IntN(2) == 0
				a.DefaultRoles = append(a.DefaultRoles, o.ID)
			}
		}
	}
	return s
}

func show(s *Set) []string {
	var out []string
	for _, a := range s.Accounts() {
		out = append(out, s.Grants(a.ID, nil, false)...)
		out = append(out, fmt.Sprint(a.Plugin, a.Hash, a.Locked, a.Lifetime, len(a.DefaultRoles)))
	}
	return out
}

func TestGrants(t *testing.T) {
	s := NewSet()
	app := NewID("app", "%")
	a := s.Add(app)
	grant := func(on Target, option bool, list ...ast.Privilege) {
		t.Helper()
		r, err := NewRequest(list, on, option)
		if err != nil {
			t.Fatal(err)
		}
		a.Grant(r, Everything())
	}
	grant(Target{}, false, ast.Privilege{Name: "PROCESS"}, ast.Privilege{Name: "BACKUP_ADMIN"})
	grant(Target{Schema: "shop"}, true, ast.Privilege{Name: "ALL"})
	grant(Target{Schema: "log_%"}, false, ast.Privilege{Name: "SELECT"}, ast.Privilege{Name: "INSERT"})
	grant(Target{"hr", "staff"}, false, ast.Privilege{Name: "SELECT", Columns: []string{"Name", "id"}}, ast.Privilege{Name: "DELETE"})
	role := s.Add(NewID("reader", "%"))
	role.Grant(&Request{On: Target{Schema: "books"}, Mask: Select}, Everything())
	if err := s.GrantRole(role.ID, app, false); err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(`
GRANT PROCESS ON *.* TO ` + "`app`@`%`" + `
GRANT BACKUP_ADMIN ON *.* TO ` + "`app`@`%`" + `
GRANT SELECT, INSERT ON ` + "`log_%`.* TO `app`@`%`" + `
GRANT ALL PRIVILEGES ON ` + "`shop`.* TO `app`@`%`" + ` WITH GRANT OPTION
GRANT SELECT (` + "`id`, `name`), DELETE ON `hr`.`staff` TO `app`@`%`" + `
GRANT ` + "`reader`@`%` TO `app`@`%`")
	if got := strings.Join(s.Grants(app, nil, false), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	x := s.Active(app, "10.1.1.1", nil)
	for _, c := range []struct {
		err  error
		want string
	}{
		{x.Table("shop", "x", Drop|Select, "DROP"), ""},
		{x.Table("log_1", "x", Select, "SELECT"), ""},
		{x.Table("log_1", "x", Delete, "DELETE"), "ERROR 1142 (42000): DELETE command denied to user 'app'@'10.1.1.1' for table 'x'"},
		{x.Columns("hr", "staff", []string{"ID"}, Select, "SELECT"), ""},
		{x.Columns("hr", "staff", []string{"id", "pay"}, Select, "SELECT"), "ERROR 1143 (42000): SELECT command denied to user 'app'@'10.1.1.1' for column 'pay' in table 'staff'"},
		{x.Columns("hr", "other", []string{"id"}, Select, "SELECT"), "ERROR 1142 (42000): SELECT command denied to user 'app'@'10.1.1.1' for table 'other'"},
		{x.MayUse("hr"), ""},
		{x.MayUse("books"), "ERROR 1044 (42000): Access denied for user 'app'@'%' to database 'books'"},
		{s.Active(app, "", []ID{role.ID}).Table("books", "b", Select, "SELECT"), ""},
		{x.Needs(Super, "CONNECTION_ADMIN"), "ERROR 1227 (42000): Access denied; you need (at least one of) the SUPER or CONNECTION_ADMIN privilege(s) for this operation"},
		{x.Table("information_schema", "TABLES", Select, "SELECT"), ""},
		{s.GrantRole(app, role.ID, false), "ERROR 4027 (HY000): User account `reader`@`%` is directly or indirectly granted to the role `app`@`%`. The GRANT would create a loop"},
	} {
		got := ""
		if c.err != nil {
			got = c.err.Error()
		}
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestMatch(t *testing.T) {
	s := NewSet()
	for _, id := range []ID{{"a", "%"}, {"a", "localhost"}, {"a", "10.0.%"}, {"a", "10.0.0.1"}, {"b", "192.168.1.0/255.255.255.0"}, {"c", "10.1.0.0/16"}, {"", "%"}} {
		s.Add(id)
	}
	s.index()
	for _, c := range []struct{ user, address, want string }{
		{"a", "10.0.0.1", "10.0.0.1"}, {"a", "10.0.5.1", "10.0.%"}, {"a", "11.0.0.1", "%"}, {"a", "127.0.0.1", "localhost"},
		{"b", "192.168.1.77", "192.168.1.0/255.255.255.0"}, {"c", "10.1.255.3", "10.1.0.0/16"}, {"z", "1.2.3.4", "%"},
	} {
		if got := s.Match(c.user, "", c.address); got == nil || got.Host != c.want {
			t.Errorf("%s from %s: %v, want %s", c.user, c.address, got, c.want)
		}
	}
	for _, c := range [][3]string{{"a%c", "abbc", "y"}, {"a\\%c", "abc", ""}, {"a\\%c", "a%c", "y"}, {"_", "", ""}, {"%", "", "y"}, {"a_%", "ab", "y"}, {"a_", "ab", "y"}, {"%b", "aab", "y"}} {
		if Like(c[0], c[1]) != (c[2] != "") {
			t.Errorf("%q like %q", c[1], c[0])
		}
	}
}

// TestMatchOrder: the host decides before the user does, by the kinds of hosts in MySQL's order.
func TestMatchOrder(t *testing.T) {
	// In the order in which they are taken by a client of 127.0.0.1 that says that it is an; MySQL 9.7's answers.
	order := []ID{{"an", "127.0.0.1"}, {"", "127.0.0.1"}, {"", "127.0.0.0/16"}, {"an", "127.0.0.0/8"}, {"", "127.0.0.0/8"},
		{"an", "127.0.0.0/255.255.255.0"}, {"", "127.0.0.0/255.255.255.0"}, {"an", "127.0.0.0/255.255.0.0"},
		{"", "127.0.0.%"},
		{"an", "127.0.%"}, {"", "127%"}, {"an", "12_.0.0.1"}, {"an", "%"}, {"", "%"}}
	for i := range order {
		s := NewSet()
		for k := len(order) - 1; k >= i; k-- {
			s.Add(order[k])
		}
		s.Add(ID{"other", "127.0.0.1"})
		s.index()
		if got := s.Match("an", "", "127.0.0.1"); got == nil || got.ID != order[i] {
			t.Errorf("of %v comes %v", order[i:], got)
		}
	}
}

func TestHashes(t *testing.T) {
	n := byte(1)
	h, err := HashPassword(SHA2, "secret", func() byte { n++; return n * 7 })
	if err != nil || len(h) != 70 || !CheckSHA2(h, []byte("secret")) || CheckSHA2(h, []byte("other")) {
		t.Errorf("%q %v", h, err)
	}
	if got := HashNative([]byte("mysql")); got != "*E74858DB86EBA20BC33D0AECAE8A8108C56B17FA" {
		t.Error(got)
	}
}

// TestCovers: a pattern covers another one if it fits all that this one fits.
func TestCovers(t *testing.T) {
	for _, c := range [...]struct {
		pattern, other string
		want           bool
	}{
		{"%", "%", true}, {"%", "s_", true}, {"%", "shop", true}, {"s%", "s%", true}, {"s%", "s_", true}, {"s%", "s%x", true}, {"s_", "s%", false},
		{"s_", "s_", true}, {"s_", "s1", true}, {"s_", `s\_`, true}, {`s\_`, "s_", false}, {`s\_`, `s\_`, true}, {"%a%", "xa_", true}, {"%a%", "x%", false},
		{"s%", "%", false}, {"a%b", "a%cb", true}, {"a%b", "a%", false}, {"", "", true}, {"", "%", false}, {"_%", "%", false},
		{strings.Repeat("%a", 40), strings.Repeat("a", 64), true},
	} {
		if got := covers(c.pattern, c.other); got != c.want {
			t.Errorf("%q covers %q: %v", c.pattern, c.other, got)
		}
	}
}

// TestOldData: who holds everything that there was before holds what has come since, SYSTEM_USER among it; who held
// SET_USER_ID holds what it was split into; and the tables are as they are until that is changed.
func TestOldData(t *testing.T) {
	tables := NewSet()
	root, definer, plain := tables.Add(NewID("root", "%")), tables.Add(NewID("definer", "%")), tables.Add(NewID("plain", "%"))
	root.Global = GlobalMask
	for _, d := range dynamic {
		if !slices.Contains(added, d) {
			root.Dynamic[d] = true
		}
	}
	root.Dynamic[retired], definer.Dynamic[retired] = true, false
	plain.Global = GlobalMask
	rows := tables.rowsOf()
	set := Load(rows)
	for _, d := range dynamic {
		if !set.Account(root.ID).Dynamic[d] {
			t.Errorf("root has lost %s", d)
		}
	}
	if !set.SystemAccount(root.ID) || set.SystemAccount(definer.ID) || set.SystemAccount(plain.ID) {
		t.Error("root, and it alone, is a system account")
	}
	if d := set.Account(definer.ID).Dynamic; len(d) != 2 || d[setAnyDefiner] || d[OrphanDefiner] {
		t.Error(d)
	}
	if edits := Diff(set, set.Clone()); len(edits) > 0 {
		t.Error(edits)
	}
	next := set.Clone()
	if err := next.Account(root.ID).Revoke(&Request{Dynamic: []string{setAnyDefiner}}, Everything(), false); err != nil {
		t.Fatal(err)
	}
	written := map[string]bool{}
	for _, r := range rows["global_grants"] {
		written[r.key(keys["global_grants"])] = true
	}
	for _, e := range Diff(set, next) {
		if e.Old != nil {
			delete(written, e.Old.key(keys["global_grants"]))
		}
		if e.New != nil {
			if key := e.New.key(keys["global_grants"]); written[key] {
				t.Errorf("%v is there already", e.New)
			} else {
				written[key] = true
			}
		}
	}
	if len(written) != len(dynamic)-1+1 || written[Row{"user": "root", "host": "%", "priv": retired}.key(keys["global_grants"])] {
		t.Errorf("%d are written", len(written))
	}
}

// TestSystemUser: SUPER does not stand for SYSTEM_USER, and roles make no system account but a system definer.
func TestSystemUser(t *testing.T) {
	s := NewSet()
	super, user, role := s.Add(NewID("super", "%")), s.Add(NewID("user", "%")), s.Add(NewID("role", "%"))
	super.Global, role.Dynamic[SystemUser], user.Roles[role.ID] = GlobalMask, false, false
	if a := s.Active(super.ID, "", nil); a.SystemUser() || a.Dynamic(SystemUser) || a.Needs(0, SystemUser) == nil || !a.Dynamic("ROLE_ADMIN") {
		t.Error("SUPER")
	}
	if s.SystemAccount(user.ID) || !s.SystemDefiner(user.ID) || s.Active(user.ID, "", nil).SystemUser() || !s.Active(user.ID, "", []ID{role.ID}).SystemUser() {
		t.Error("by a role")
	}
}

// TestPatternsLeaveAccounts: no pattern gives anything on the schema of the accounts; its name does.
func TestPatternsLeaveAccounts(t *testing.T) {
	s := NewSet()
	a := s.Add(NewID("a", "%"))
	for _, p := range []string{"%", "m%", "mysq_", "my%l"} {
		a.Schemas[p] = SchemaMask
	}
	x := s.Active(a.ID, "", nil)
	if x.SchemaMask(Schema) != 0 || x.MayUse(Schema) == nil || x.Table(Schema, "user", Select, "SELECT") == nil || x.MayGrant(Target{Schema: Schema}, Select) ||
		x.MayGrant(Target{Schema: `mysq\l`}, Select) || x.SchemaMask("mine") != SchemaMask || !x.MayGrant(Target{Schema: "m_"}, Select) {
		t.Error("patterns")
	}
	a.Schemas[Schema] = Select
	if x := s.Active(a.ID, "", nil); x.SchemaMask(Schema) != Select {
		t.Error("its name")
	}
}

// rowsOf are the rows that a set is stored as, by table.
func (s *Set) rowsOf() map[string][]Row {
	all := map[string][]Row{}
	for table, rows := range s.keyedRows() {
		for _, r := range rows {
			all[table] = append(all[table], r.row)
		}
	}
	return all
}

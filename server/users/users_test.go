package users_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/sql/priv"
	"github.com/triremedb/trireme/server/users"
)

// rig is a node with a directory of entries.
type rig struct {
	*sessiontest.Rig
	t      *testing.T
	dir    string
	log    bytes.Buffer
	keeper *users.Keeper
	root   *session.Session
	leads  bool
	clock  time.Time
	failAt int // a statement of the keeper's, from 1 on; 0: none
}

func newRig(t *testing.T) *rig {
	r := &rig{Rig: sessiontest.New(t, sessiontest.Options{}), t: t, dir: t.TempDir(), leads: true, clock: time.Unix(1e9, 0)}
	if _, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{}); err != nil {
		t.Fatal(err)
	}
	r.root = r.Open(session.ConnectionInfo{User: "root", AccountUser: "root", AccountHost: "%", MultiStatements: true})
	r.lead()
	return r
}

// lead makes the keeper one that knows of nothing, as that of a new leader.
func (r *rig) lead() {
	r.keeper = users.New(users.Options{Dir: r.dir, Log: slog.New(slog.NewTextHandler(&r.log, nil)), Leads: func() bool { return r.leads },
		Fault: func(id priv.ID, password string) (string, error) { return r.Manager.PasswordFault(id, password) },
		Open: func() (users.Session, error) {
			s, err := r.Manager.Open(session.ConnectionInfo{User: "users_dir", Host: "localhost", AccountUser: "root", AccountHost: "%", Admin: true})
			return &failing{s, r}, err
		}})
}

// failing is a session that a change of leaders ends.
type failing struct {
	*session.Session
	r *rig
}

func (s *failing) Query(ctx context.Context, sql string, w session.ResultWriter) error {
	if s.r.failAt > 0 {
		if s.r.failAt--; s.r.failAt == 0 {
			s.r.failAt = 1 // it has ended
			return errors.New("this member does not lead any more")
		}
	}
	return s.Session.Query(ctx, sql, w)
}

// entry writes an entry; an empty text leaves its file out.
func (r *rig) entry(name, account, password string) {
	r.t.Helper()
	dir := filepath.Join(r.dir, name)
	err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700))
	for file, text := range map[string]string{"account.json": account, "password": password} {
		if text != "" {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
		}
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// look lets the keeper look, and returns what it has logged.
func (r *rig) look() string {
	r.log.Reset()
	r.keeper.Look(context.Background(), r.clock)
	return r.log.String()
}

// quiet lets the keeper look, who has nothing to complain of.
func (r *rig) quiet() {
	r.t.Helper()
	if said := r.look(); strings.Contains(said, "ERROR") {
		r.t.Error(said)
	}
}

// grants are what an account has.
func (r *rig) grants(account string) string {
	text := r.Text(r.root, "SHOW GRANTS FOR "+account)
	_, text, _ = strings.Cut(text, "\n")
	return strings.TrimSpace(text)
}

// is demands that an account's password is this one.
func (r *rig) is(user, password string) {
	r.t.Helper()
	a, ok, _ := r.Manager.MatchAccount(user, "", "10.0.0.1")
	if !ok || !(a.Plugin == priv.SHA2 && priv.CheckSHA2(a.Hash, []byte(password)) || a.Plugin == priv.Native && a.Hash == priv.HashNative([]byte(password))) {
		r.t.Errorf("the password of %s is not %s: %v %+v", user, password, ok, a)
	}
}

func (r *rig) want(got, want string) {
	r.t.Helper()
	if got != want {
		r.t.Errorf("it is\n%s\nand not\n%s", got, want)
	}
}

func TestAccountsAreMade(t *testing.T) {
	r := newRig(t)
	r.Exec(r.root, "CREATE DATABASE shop; CREATE TABLE shop.t (a INT PRIMARY KEY, b INT); SET GLOBAL TRANSACTION READ ONLY")
	r.entry("app", `{"user": "app", "grants": ["SELECT, insert ON shop.*", "BACKUP_ADMIN ON *.*", "UPDATE (b), SELECT ON shop.t"]}`, "first\nsecond line\n")
	r.entry("old", `{"user": "old", "host": "10.%", "plugin": "mysql_native_password", "tls": true}`, "  other ")
	odd := `o'd"d\u005c\u0060`
	r.entry("odd", `{"user": "`+strings.ReplaceAll(odd, `"`, `\"`)+`", "grants": ["ALL ON `+"`s\\\\_p`"+`.*", "GRANT OPTION ON `+"`s\\\\_p`"+`.*"]}`, `p'a"s\s`)
	r.quiet()
	r.is("app", "first")
	r.is("old", "other")
	r.is("o'd\"d\\`", `p'a"s\s`)
	r.want(r.grants("app"), "GRANT USAGE ON *.* TO `app`@`%`\nGRANT BACKUP_ADMIN ON *.* TO `app`@`%`\nGRANT SELECT, INSERT ON `shop`.* TO `app`@`%`\nGRANT SELECT, UPDATE (`b`) ON `shop`.`t` TO `app`@`%`")
	r.want(r.grants("'o''d\"d\\\\`'"), "GRANT USAGE ON *.* TO `o'd\"d\\```@`%`\nGRANT ALL PRIVILEGES ON `s\\_p`.* TO `o'd\"d\\```@`%` WITH GRANT OPTION")
	if a, ok, _ := r.Manager.MatchAccount("old", "", "10.0.0.1"); !ok || a.TLS != "ANY" {
		t.Errorf("%+v", a)
	}
}

// What is as it should be is not written again, neither by this leader nor by the next.
func TestNothingIsWrittenTwice(t *testing.T) {
	r := newRig(t)
	r.entry("app", `{"user": "app", "tls": true, "grants": ["SELECT, INSERT ON shop.*", "ALL ON *.*"]}`, "first")
	r.quiet()
	entries := len(r.Log.Entries())
	for range 3 {
		r.clock = r.clock.Add(time.Hour)
		r.want(r.look(), "")
		r.lead()
		r.want(r.look(), "")
	}
	if n := len(r.Log.Entries()); n != entries {
		t.Errorf("%d transactions were written, to no end", n-entries)
	}
}

func TestAccountsAreChanged(t *testing.T) {
	r := newRig(t)
	r.entry("app", `{"user": "app", "grants": ["SELECT, INSERT ON shop.*", "ALL ON old.*"]}`, "first")
	r.quiet()
	r.Exec(r.root, "GRANT DELETE ON shop.* TO app; ALTER USER app ACCOUNT LOCK")
	r.entry("app", `{"user": "app", "grants": ["SELECT, UPDATE ON shop.*", "SELECT ON old.*"]}`, "second")
	r.quiet()
	r.is("app", "second")
	// What others have given stays.
	r.want(r.grants("app"), "GRANT USAGE ON *.* TO `app`@`%`\nGRANT SELECT ON `old`.* TO `app`@`%`\nGRANT SELECT, UPDATE, DELETE ON `shop`.* TO `app`@`%`")
	if a, _, _ := r.Manager.MatchAccount("app", "", ""); !a.Locked {
		t.Error("it is not locked any more")
	}
	r.entry("app", `{"user": "app", "plugin": "mysql_native_password", "tls": true, "grants": ["ALL ON shop.*"]}`, "second")
	r.quiet()
	r.want(r.grants("app"), "GRANT USAGE ON *.* TO `app`@`%`\nGRANT ALL PRIVILEGES ON `shop`.* TO `app`@`%`")
	r.is("app", "second")
	// A certificate that others require stays, and is not taken for less.
	requires := func(want string) {
		t.Helper()
		r.clock = r.clock.Add(2 * time.Minute)
		r.quiet()
		if text := r.Text(r.root, "SHOW CREATE USER app"); !strings.Contains(text, "REQUIRE "+want+" ") {
			t.Errorf("not %s: %s", want, text)
		}
	}
	for _, require := range []string{"X509", "SUBJECT '/CN=app'"} {
		r.Exec(r.root, "ALTER USER app REQUIRE "+require)
		requires(require)
	}
	r.Exec(r.root, "ALTER USER app REQUIRE NONE")
	requires("SSL")
	r.entry("app", `{"user": "app", "plugin": "mysql_native_password", "grants": ["ALL ON shop.*"]}`, "second")
	requires("NONE")
	r.entry("app", `{"user": "app", "plugin": "mysql_native_password", "tls": true, "grants": ["ALL ON shop.*"]}`, "second")
	requires("SSL")
	// What is changed in the database comes back, in a while.
	r.Exec(r.root, "ALTER USER app IDENTIFIED BY 'mine' REQUIRE NONE; REVOKE SELECT ON shop.* FROM app")
	r.want(r.look(), "")
	r.clock = r.clock.Add(2 * time.Minute)
	r.quiet()
	r.is("app", "second")
	r.want(r.grants("app"), "GRANT USAGE ON *.* TO `app`@`%`\nGRANT ALL PRIVILEGES ON `shop`.* TO `app`@`%`")
	// An entry that goes leaves its account, and one that was dropped comes back.
	if err := os.RemoveAll(filepath.Join(r.dir, "app")); err != nil {
		t.Fatal(err)
	}
	r.quiet()
	r.is("app", "second")
	r.Exec(r.root, "DROP USER app")
	r.entry("app", `{"user": "app"}`, "third")
	r.quiet()
	r.is("app", "third")
}

// Accounts that somebody else has made are none of the keeper's.
func TestForeignAccounts(t *testing.T) {
	r := newRig(t)
	r.Exec(r.root, `CREATE USER app IDENTIFIED BY 'own' COMMENT 'users_dir'; CREATE USER other IDENTIFIED BY 'own'; GRANT SELECT ON a.* TO app; CREATE ROLE role`)
	before := r.Text(r.root, "SELECT * FROM mysql.user ORDER BY user")
	for _, name := range []string{"app", "other", "root", "role"} {
		r.entry(name, `{"user": "`+name+`", "grants": ["ALL ON *.*"]}`, "given")
	}
	if said := r.look(); strings.Count(said, "was not made from users_dir") != 4 || !strings.Contains(said, filepath.Join(r.dir, "other", "account.json")) {
		t.Error(said)
	}
	r.want(r.look(), "") // once is enough
	r.want(r.Text(r.root, "SELECT * FROM mysql.user ORDER BY user"), before)
	r.want(r.grants("app"), "GRANT USAGE ON *.* TO `app`@`%`\nGRANT SELECT ON `a`.* TO `app`@`%`")
	r.Exec(r.root, `ALTER USER app ATTRIBUTE '{"users_dir": {}, "more": [1]}'`) // it is given away
	r.clock = r.clock.Add(time.Hour)
	r.quiet()
	r.is("app", "given")
	r.is("other", "own")
	r.want(r.Text(r.root, `SELECT ATTRIBUTE->>'$.more' AS m FROM information_schema.USER_ATTRIBUTES WHERE USER = 'app'`), "m\n[1]\n")
}

// An entry that is wrong is told of by its file, and stops no other.
func TestBadEntries(t *testing.T) {
	r := newRig(t)
	bad := map[string]struct{ account, password, says string }{
		"a01": {"", "Secret-1", "account.json"},
		"a02": {`{"user": "x"}`, "", "/password account"},
		"a03": {`{"user": "x"}`, "\nSecret-3", "empty"},
		"a04": {`{"user": ""}`, "Secret-4", "user is missing"},
		"a05": {`{"user": "x", "grant": []}`, "Secret-5", "unknown field"},
		"a06": {`{"user": "x"} {}`, "Secret-6", "follows"},
		"a07": {`{"user": "x", "grants": ["SELECT"]}`, "Secret-7", "SELECT"},
		"a08": {`{"user": "x", "grants": ["SELECT ON a.* TO evil -- "]}`, "Secret-8", "privileges, ON"},
		"a09": {`{"user": "x", "grants": ["SELECT ON a.* TO evil; GRANT ALL ON *.*"]}`, "Secret-9", "privileges, ON"},
		"a10": {`{"user": "x", "grants": ["FLY ON *.*"]}`, "Secret-10", "unknown privilege"},
		"a11": {`{"user": "x", "grants": ["role"]}`, "Secret-11", "privileges, ON"},
		"a12": {`{"user": "x", "grants": ["SELECT ON t"]}`, "Secret-12", "schema"},
		"a13": {`{"user": "x", "plugin": "sha256_password"}`, "Secret-13", "caching_sha2_password or"},
		"a14": {`{"user": "` + strings.Repeat("x", 33) + `"}`, "Secret-14", "32"},
		"a15": {`{"user": "x", "host": "a\u0000"}`, "Secret-15", "characters"},
		"a16": {`{"user": "x"}`, strings.Repeat("Secret-16", 30), "longer than 256"},
		"a17": {strings.Repeat(" ", 70_000), "Secret-17", "longer than 65536"},
		"a18": {`{"user": "GOOD", "host": "%"}`, "Secret-18", ""}, // case counts
		"a19": {`{"user": "good", "host": ""}`, "Secret-19", ""},
		"a20": {`{"user": "good"}`, "Secret-20", "a19 is for the same account"},
		"a21": {`{"user": "missing", "grants": ["SELECT ON no.table_", "SELECT ON good.*"]}`, "Secret-21", "doesn't exist"},
		"a22": {`["Secret-22"]`, "Secret-22", "it is no JSON object"},
		"a23": {`{"user": "x", "grants": ["EXECUTE ON FUNCTION a.f"]}`, "Secret-23", "a schema or a table"},
	}
	wrong := 0
	for name, e := range bad {
		r.entry(name, e.account, e.password)
		if e.says != "" {
			wrong++
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(r.dir, "file"), nil, 0o600), os.Mkdir(filepath.Join(r.dir, "..data"), 0o700)); err != nil {
		t.Fatal(err)
	}
	said := r.look()
	for name, e := range bad {
		found := ""
		for line := range strings.Lines(said) {
			if strings.Contains(line, filepath.Join(r.dir, name)+"/") && strings.Contains(line, "ERROR") {
				found = line
			}
		}
		if (found == "") != (e.says == "") || !strings.Contains(found, e.says) {
			t.Errorf("of %s is said %q", name, found)
		}
	}
	if n := strings.Count(said, "level=ERROR"); n != wrong+1 {
		t.Errorf("%d errors, not %d: %s", n, wrong+1, said)
	}
	if strings.Contains(said, "Secret") || strings.Contains(said, "$A$") {
		t.Errorf("a secret is logged: %s", said)
	}
	if n, all := r.keeper.Failing(); n != wrong+1 || all {
		t.Errorf("%d entries fail (%v), not %d", n, all, wrong+1)
	}
	r.is("good", "Secret-19")
	r.is("GOOD", "Secret-18")
	r.is("missing", "Secret-21")
	r.want(r.grants("missing"), "GRANT USAGE ON *.* TO `missing`@`%`\nGRANT SELECT ON `good`.* TO `missing`@`%`")
	r.Exec(r.root, "CREATE DATABASE no; CREATE TABLE no.table_ (a INT PRIMARY KEY)")
	if said := r.look(); said != "" {
		t.Error(said)
	}
	if n, _ := r.keeper.Failing(); n != wrong {
		t.Errorf("%d entries fail after one was mended, not %d", n, wrong)
	}
	if got := r.grants("missing"); !strings.Contains(got, "`no`.`table_`") {
		t.Error(got)
	}
}

// While a privilege cannot be given nothing is written over and over, and what an entry gave before and others give now is theirs.
func TestPrivilegeThatCannotBeGiven(t *testing.T) {
	r := newRig(t)
	r.entry("app", `{"user": "app", "grants": ["SELECT, INSERT ON shop.*"]}`, "first")
	r.quiet()
	r.entry("app", `{"user": "app", "grants": ["INSERT ON shop.*", "SELECT ON no.table_"]}`, "first")
	if said := r.look(); !strings.Contains(said, "doesn't exist") {
		t.Error(said)
	}
	r.Exec(r.root, "GRANT SELECT ON shop.* TO app")
	entries := len(r.Log.Entries())
	for range 3 {
		r.want(r.look(), "")
		r.lead()
		r.look()
	}
	if n := len(r.Log.Entries()); n != entries {
		t.Errorf("%d transactions were written, to no end", n-entries)
	}
	r.want(r.grants("app"), "GRANT USAGE ON *.* TO `app`@`%`\nGRANT SELECT, INSERT ON `shop`.* TO `app`@`%`")
	r.Exec(r.root, "CREATE DATABASE no; CREATE TABLE no.table_ (a INT PRIMARY KEY)")
	r.quiet()
	r.want(r.grants("app"), "GRANT USAGE ON *.* TO `app`@`%`\nGRANT SELECT, INSERT ON `shop`.* TO `app`@`%`\nGRANT SELECT ON `no`.`table_` TO `app`@`%`")
}

// Wherever a change is cut short, the next leader brings it to the same end.
func TestChangesAreCutShort(t *testing.T) {
	const before, after = `{"user": "app", "grants": ["ALL ON a.*", "SELECT, INSERT ON shop.*", "FILE ON *.*"]}`,
		`{"user": "app", "tls": true, "grants": ["SELECT ON a.*", "SELECT, UPDATE ON shop.*"]}`
	for at := 1; ; at++ {
		r := newRig(t)
		for _, step := range []struct{ account, password string }{{before, "first"}, {after, "second"}} {
			r.entry("app", step.account, step.password)
			r.failAt = at
			r.look()
			r.failAt = 0
			r.lead()
			r.quiet()
		}
		r.is("app", "second")
		r.want(r.grants("app"), "GRANT USAGE ON *.* TO `app`@`%`\nGRANT SELECT ON `a`.* TO `app`@`%`\nGRANT SELECT, UPDATE ON `shop`.* TO `app`@`%`")
		if t.Failed() {
			t.Fatalf("cut short at statement %d", at)
		}
		if at == 20 { // more than there are
			return
		}
	}
}

// Who does not lead does nothing, and tells nothing.
func TestOnlyTheLeader(t *testing.T) {
	r := newRig(t)
	r.leads = false
	r.entry("app", `{"user": "app"}`, "first")
	r.entry("bad", `{`, "x")
	r.want(r.look(), "")
	if _, ok, _ := r.Manager.MatchAccount("app", "", ""); ok {
		t.Error("it was made")
	}
	r.leads = true
	if said := r.look(); !strings.Contains(said, "bad") {
		t.Error(said)
	}
	r.is("app", "first")
	r.leads = false
	r.look()
	r.leads = true
	if said := r.look(); !strings.Contains(said, "bad") {
		t.Errorf("a new leader does not tell: %s", said)
	}
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	if said := r.look(); !strings.Contains(said, "accounts are not kept") {
		t.Error(said)
	}
	r.is("app", "first")
}

// A group whose root may not make accounts is told of.
func TestWithoutRights(t *testing.T) {
	r := newRig(t)
	r.entry("app", `{"user": "app", "grants": ["SELECT ON *.*"]}`, "Secret-1")
	r.Exec(r.root, "CREATE USER boss IDENTIFIED BY 'x'; GRANT ALL ON *.* TO boss; DROP USER root")
	said := r.look()
	if !strings.Contains(said, "accounts are not kept") || !strings.Contains(said, "Access denied") || strings.Contains(said, "Secret") {
		t.Error(said)
	}
	if n, all := r.keeper.Failing(); n != 0 || !all {
		t.Errorf("without rights %d entries fail, all: %v", n, all)
	}
	r.want(r.look(), "") // once is enough
	r.leads = false
	r.quiet()
	if n, all := r.keeper.Failing(); n != 0 || all {
		t.Errorf("where another leads %d entries fail, all: %v", n, all)
	}
}

func TestTooManyEntries(t *testing.T) {
	r := newRig(t)
	for i := range users.EntriesMax + 1 {
		if err := os.Mkdir(filepath.Join(r.dir, fmt.Sprint(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	said := r.look()
	if _, all := r.keeper.Failing(); !all || !strings.Contains(said, "more than 1000 entries") {
		t.Error(said)
	}
}

// The password of root@% follows its file; what a statement has set stays until the file changes.
func TestRootPassword(t *testing.T) {
	r := newRig(t)
	file := filepath.Join(t.TempDir(), "password")
	var root *users.Root
	now, lasts := time.Now(), []string(nil)
	lead := func() {
		root = users.NewRoot(file, users.Options{Log: slog.New(slog.NewTextHandler(&r.log, nil)), Leads: func() bool { return r.leads },
			Lasting: func(_ context.Context, why string) { lasts = append(lasts, why) },
			Fault:   func(id priv.ID, password string) (string, error) { return r.Manager.PasswordFault(id, password) },
			Open: func() (users.Session, error) {
				s, err := r.Manager.Open(session.ConnectionInfo{User: "users_dir", Host: "localhost", AccountUser: "root", AccountHost: "%", Admin: true})
				return &failing{s, r}, err
			}})
	}
	look := func(password string) string {
		t.Helper()
		if err := os.WriteFile(file, []byte(password+"\nmore\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r.log.Reset()
		root.Look(context.Background(), now)
		return r.log.String()
	}
	statement := func(text string) {
		t.Helper()
		r.Text(r.root, text)
	}
	lead()
	statement("ALTER USER root@'%' IDENTIFIED BY 'begun' ATTRIBUTE '{\"mine\": 1}'")
	// A group that began before the file was looked at keeps what it has.
	if said := look("first"); !strings.Contains(said, "changed otherwise") {
		t.Errorf("it says nothing of another password: %q", said)
	}
	r.is("root", "begun")
	look("second")
	r.is("root", "second")
	lead() // another leader
	if said := look("second"); said != "" {
		t.Error(said)
	}
	statement("ALTER USER root@'%' IDENTIFIED BY 'by hand'")
	lead()
	look("second")
	r.is("root", "by hand")
	look("third")
	r.is("root", "third")
	lead() // whose file is an old one
	if said := look("second"); !strings.Contains(said, "old file") {
		t.Errorf("an old password is taken: %q", said)
	}
	r.is("root", "third")
	// Files come to be new within minutes. That one which does not is told of, once.
	for minute := range 8 {
		if look("second"); len(lasts) > 0 != (minute >= 3) || len(lasts) > 1 {
			t.Errorf("after %d minutes it is told %q", minute, lasts)
		}
		now = now.Add(time.Minute)
	}
	if len(lasts) == 1 && !strings.Contains(lasts[0], "give root a new one") {
		t.Errorf("it is told %q", lasts)
	}
	look("third")
	// One that could not be read, was there again, and cannot be read an hour later was not so all the time.
	lasts = nil
	for range 2 {
		if said := look(""); !strings.Contains(said, "is empty") {
			t.Errorf("it says %q of an empty file", said)
		}
		look("third")
		now = now.Add(time.Hour)
	}
	if len(lasts) > 0 {
		t.Errorf("it is told %q", lasts)
	}
	statement("ALTER USER root@'%' ATTRIBUTE '{\"mine\": 1}'") // without what the file has had
	look("third b")
	r.is("root", "third b")
	for _, bad := range []string{"", strings.Repeat("x", 300)} {
		if said := look(bad); !strings.Contains(said, "ERROR") {
			t.Errorf("%.10q: %q", bad, said)
		}
		r.is("root", "third b")
	}
	// A leader that ends in the middle leaves it to the next.
	for at := 1; at <= 4; at++ {
		r.failAt = at
		password := fmt.Sprint("fourth", at)
		if said := look(password); strings.Contains(said, "fourth") {
			t.Error(said)
		}
		r.failAt = 0
		lead()
		look(password)
		r.is("root", password)
	}
	if attributes := r.Text(r.root, "SELECT JSON_EXTRACT(attribute, '$.mine') FROM information_schema.user_attributes WHERE user = 'root'"); !strings.Contains(attributes, "1") {
		t.Errorf("other attributes are gone: %q", attributes)
	}
	// The policy of passwords does not lock out who operates the group, and says so.
	statement("INSTALL COMPONENT 'file://component_validate_password'")
	said := look("no digit")
	r.is("root", "no digit")
	if !strings.Contains(said, "WARN") || !strings.Contains(said, "validate_password.number_count") ||
		strings.Contains(said, "no digit") {
		t.Errorf("of a weak password it says %q", said)
	}
	if said := look("It has 1 of all."); strings.Contains(said, "WARN") {
		t.Errorf("of a strong password it says %q", said)
	}
	statement("UNINSTALL COMPONENT 'file://component_validate_password'")
	r.leads = false
	look("fifth")
	r.is("root", "It has 1 of all.")
}

// The policy of passwords acts on those of entries as on those of statements, once its component is installed.
func TestPolicy(t *testing.T) {
	r := newRig(t)
	account := func(user string) string { return fmt.Sprintf(`{"user": %q, "grants": ["SELECT ON *.*"]}`, user) }
	r.entry("old", account("old"), "weak")
	r.quiet()
	r.Text(r.root, "INSTALL COMPONENT 'file://component_validate_password'; SET GLOBAL validate_password.length = 12")
	r.clock = r.clock.Add(time.Hour)
	r.quiet() // a password that is there stays
	r.is("old", "weak")
	for user, c := range map[string]struct{ password, rule string }{
		"short": {"Aa1!", "length"}, "digits": {"Abcdefghijk!", "number_count"},
		"mixed": {"abcdefghij1!", "mixed_case_count"}, "special": {"Abcdefghijk1", "special_char_count"},
		"It_is_1_name": {"It_is_1_name", "check_user_name"}} {
		r.entry(user, account(user), c.password)
		said := r.look()
		want := "users_dir: an account is not as its file says"
		if !strings.Contains(said, want) || !strings.Contains(said, "validate_password."+c.rule) ||
			strings.Contains(said, "="+c.password) || !strings.Contains(said, filepath.Join(user, "password")) {
			t.Errorf("of %s it says %q", c.password, said)
		}
		if _, ok, _ := r.Manager.MatchAccount(user, "", ""); ok {
			t.Errorf("%s is made", user)
		}
		if n, _ := r.keeper.Failing(); n != 1 {
			t.Errorf("%d entries fail", n)
		}
		r.entry(user, account(user), c.password+"A1!b-more")
		r.quiet()
		r.is(user, c.password+"A1!b-more")
	}
	r.entry("old", account("old"), "other")
	if said := r.look(); !strings.Contains(said, "validate_password.length") {
		t.Errorf("it says %q", said)
	}
	r.is("old", "weak")
	r.Text(r.root, "UNINSTALL COMPONENT 'file://component_validate_password'")
	r.quiet()
	r.is("old", "other")
}

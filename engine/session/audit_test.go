package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// auditing is a node whose audit log is a list.
type auditing struct {
	*sessiontest.Rig
	told []session.AuditedStatement
}

func newAuditing(t *testing.T, variables map[string]string) *auditing {
	a := &auditing{}
	a.Rig = sessiontest.New(t, sessiontest.Options{Variables: variables, Audit: func(e session.AuditedStatement) { a.told = append(a.told, e) }})
	if _, err := a.Manager.Bootstrap(t.Context(), session.BootstrapOptions{User: "root", Host: "localhost"}); err != nil {
		t.Fatal(err)
	}
	return a
}

// of runs a statement and returns what the log has of it, but for its text.
func (a *auditing) of(s *session.Session, sql string) string {
	a.told = nil
	a.Text(s, sql)
	var out []string
	for _, e := range a.told {
		line := strings.ToLower(e.Class.String())
		for name, list := range map[string][]string{"t": e.Tables, "a": e.Accounts, "v": e.Variables} {
			if len(list) > 0 {
				line += " " + name + fmt.Sprint(list)
			}
		}
		if e.Error != 0 {
			line += fmt.Sprintf(" %d/%s", e.Error, e.State)
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

// schema makes what the tests use, with an account that has no right.
func (a *auditing) schema(s *session.Session) {
	for _, sql := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(99))", "CREATE TABLE secrets (a INT PRIMARY KEY, b VARCHAR(99))",
		"INSERT INTO t VALUES (1, 'one')", "CREATE VIEW v AS SELECT a FROM secrets", "CREATE VIEW vv AS SELECT * FROM v", "CREATE USER nobody", "CREATE USER 'bob'@'10.%'"} {
		a.Exec(s, sql)
	}
}

// TestAuditedByDefault: accounts, what administrators do, and definitions.
func TestAuditedByDefault(t *testing.T) {
	a := newAuditing(t, nil)
	s := a.Open(session.ConnectionInfo{User: "root", Host: "localhost", AccountUser: "root", AccountHost: "localhost", Schema: "", MultiStatements: true})
	a.schema(s)
	for _, c := range [][2]string{
		{"SELECT * FROM t", ""},
		{"INSERT INTO t VALUES (2, 'x')", ""},
		{"SET @a = 1, SESSION sql_mode = ''", ""},
		{"BEGIN", ""}, {"COMMIT", ""},
		{"SHOW TABLES", ""},
		{"CREATE TABLE d.u LIKE t", "definition t[d.u d.t]"},
		{"ALTER TABLE u ADD c INT", "definition t[d.u]"},
		{"RENAME TABLE u TO w", "definition t[d.u d.w]"},
		{"TRUNCATE w", "definition t[d.w]"},
		{"CREATE INDEX i ON w (b)", "definition t[d.w]"},
		{"DROP TABLE w, nothing", "definition t[d.w d.nothing] 1051/42S02"},
		{"CREATE DATABASE e", "definition"},
		{"DROP DATABASE e", "definition"},
		{"CREATE OR REPLACE VIEW v AS SELECT b FROM secrets", "definition t[d.secrets d.v]"},
		{"CREATE USER u IDENTIFIED BY 'hush'", "account a['u'@'%']"},
		{"ALTER USER u IDENTIFIED BY 'hush2', 'bob'@'10.%' ACCOUNT LOCK", "account a['u'@'%' 'bob'@'10.%']"},
		{"SET PASSWORD FOR u = 'hush3'", "account a['u'@'%']"},
		{"GRANT SELECT ON d.* TO u", "account a['u'@'%']"},
		{"REVOKE ALL PRIVILEGES, GRANT OPTION FROM u", "account a['u'@'%']"},
		{"RENAME USER u TO w", "account a['u'@'%' 'w'@'%']"},
		{"CREATE ROLE r", "account a['r'@'%']"},
		{"GRANT r TO w", "account a['r'@'%' 'w'@'%']"},
		{"SET DEFAULT ROLE r TO w", "account a['r'@'%' 'w'@'%']"},
		{"DROP USER w, nosuch", "account a['w'@'%' 'nosuch'@'%'] 1396/HY000"},
		{"SET GLOBAL max_connections = 99, @@GLOBAL.long_query_time = 3", "admin v[max_connections long_query_time]"},
		{"SET GLOBAL TRANSACTION ISOLATION LEVEL READ COMMITTED", "admin"},
		{"KILL 99999", "admin 1094/HY000"},
		{"SET GLOBAL audit_log_exclude_accounts = '*@*'", "admin v[audit_log_exclude_accounts=*@*]"},
		{"SET GLOBAL audit_log_exclude_accounts = ''", "admin v[audit_log_exclude_accounts=]"},
		{"FLUSH TABLES", "admin"},
		{"ANALYZE TABLE t", "admin t[d.t]"},
		{"SELECT @@audit_log_events", "admin"},
		{"SHOW VARIABLES LIKE '%Log\\_Events'", "admin t[performance_schema.session_variables]"},
		{"SHOW VARIABLES", "admin t[performance_schema.session_variables]"},
		{"SHOW VARIABLES LIKE 'sql_mode'", ""},
		{"SELECT * FROM performance_schema.global_variables WHERE variable_name = 'audit_log_tables'", "admin t[performance_schema.global_variables]"},
		{"CREATE USER x IDENTIFIED BY 'hush4'; DROP USER x", "account a['x'@'%']; account a['x'@'%']"},
		{"PREPARE p FROM 'DROP TABLE nothing'", ""},
		{"EXECUTE p", "definition t[d.nothing] 1051/42S02"},
		{"PURGE BINARY LOGS TO 'x'", "admin 1235/42000"},
		{"CREATE USER 'hush5", ""}, // nobody knows what it is: it may be a password
		{"SET GLOBAL audit_log_events = 'ADMIN'", "admin v[audit_log_events=ADMIN]"},
		{"SET GLOBAL audit_log_events = ''", "admin v[audit_log_events=]"},
	} {
		if got := a.of(s, c[0]); got != c[1] {
			t.Errorf("%s: %q, want %q", c[0], got, c[1])
		}
		for _, e := range a.told {
			if text := fmt.Sprintf("%+v", e); strings.Contains(text, "hush") {
				t.Errorf("%s: a password is told: %s", c[0], text)
			}
		}
	}
	a.Exec(s, "SET GLOBAL audit_log_events = 'ADMIN'")
	for _, text := range []string{"KILL 99999", "KILL 99990 + 9", "SET @x = 99999; KILL @x"} {
		if a.of(s, text); len(a.told) != 1 || a.told[0].Killed != "99999" {
			t.Errorf("%s: %+v", text, a.told)
		}
	}
	a.Exec(s, "SET GLOBAL audit_log_events = ''")
	a.told = nil
	if got := a.of(s, "DROP USER nobody"); got != "" {
		t.Errorf("told of while nothing is asked for: %s", got)
	}
}

// TestAuditedRows: statements that read and change rows, of some tables and accounts; views and subqueries do not hide what they read.
func TestAuditedRows(t *testing.T) {
	a := newAuditing(t, map[string]string{"audit_log_events": "READ,WRITE", "audit_log_tables": "*.secrets, hr.*"})
	s := a.Open(session.ConnectionInfo{User: "root", Host: "localhost", AccountUser: "root", AccountHost: "localhost"})
	a.schema(s)
	for range 2 { // the second time from the cache of plans
		for _, c := range [][2]string{
			{"SELECT * FROM t", ""},
			{"SELECT b FROM secrets WHERE a = 1", "read t[d.secrets]"},
			{"SELECT * FROM v", "read t[d.v d.secrets]"},
			{"SELECT (SELECT MAX(b) FROM secrets) FROM t", "read t[d.secrets d.t]"},
			{"WITH c AS (SELECT * FROM secrets) SELECT * FROM c", "read t[d.secrets]"},
			{"SET @x = (SELECT MAX(b) FROM secrets)", "read t[d.secrets]"},
			{"DO (SELECT MAX(b) FROM secrets)", "read t[d.secrets]"},
			{"INSERT INTO secrets VALUES (1, 'hush'), (2, 'hush')", "write t[d.secrets]"},
			{"INSERT INTO secrets VALUES (1, 'hush')", "write t[d.secrets] 1062/23000"},
			{"UPDATE secrets SET b = 'hush' WHERE a = 2", "write t[d.secrets]"},
			{"INSERT IGNORE INTO t SELECT a, b FROM secrets", "read,write t[d.t d.secrets]"},
			{"CREATE TABLE IF NOT EXISTS copy SELECT * FROM secrets", "read t[d.secrets d.copy]"},
			{"DELETE FROM secrets WHERE b = 'hush'", "write t[d.secrets]"},
			{"TRUNCATE secrets", "write t[d.secrets]"},
			{"EXPLAIN ANALYZE SELECT * FROM secrets", "read t[d.secrets]"},
			{"PREPARE p FROM 'SELECT * FROM secrets WHERE a = ?'", ""},
			{"SET @one = 1", ""},
			{"EXECUTE p USING @one", "read t[d.secrets]"},
			{"CREATE USER IF NOT EXISTS u", ""},
			{"EXPLAIN SELECT * FROM v", "read t[d.v d.secrets]"},
			{"EXPLAIN ANALYZE SELECT * FROM t WHERE a IN (SELECT a FROM vv)", "read t[d.t d.vv d.v d.secrets]"},
			{"EXPLAIN UPDATE v SET a = 3", "read t[d.v d.secrets]"},
			{"SELECT nosuch FROM vv", "read t[d.vv d.v d.secrets] 1054/42S22"},
			{"LOAD DATA LOCAL INFILE 'f' REPLACE INTO TABLE v", "write t[d.v d.secrets] 3948/42000"},
			{"PREPARE p FROM 'SELECT * FROM v'", ""},
			{"EXECUTE p", "read t[d.v d.secrets]"},
			{"PREPARE p FROM 'REPLACE INTO secrets VALUES (7, ''hush'')'", ""},
			{"EXECUTE p", "write t[d.secrets]"},
			{"PREPARE p FROM 'TRUNCATE secrets'", ""},
			{"EXECUTE p", "write t[d.secrets]"},
		} {
			got := a.of(s, c[0])
			if c[0] == "CREATE TABLE IF NOT EXISTS copy SELECT * FROM secrets" || c[0] == "UPDATE secrets SET b = 'hush' WHERE a = 2" || c[0] == "DELETE FROM secrets WHERE b = 'hush'" {
				// Whether these read is theirs to say: tables are what counts here.
				if !strings.Contains(got, "d.secrets") {
					t.Errorf("%s: %q", c[0], got)
				}
				continue
			}
			if got != c[1] {
				t.Errorf("%s: %q, want %q", c[0], got, c[1])
			}
			for _, e := range a.told {
				if strings.Contains(fmt.Sprintf("%+v", e), "hush") {
					t.Errorf("%s: a value is told: %+v", c[0], e)
				}
			}
		}
	}
	nobody := a.Open(session.ConnectionInfo{User: "nobody", Host: "10.0.0.9", AccountUser: "nobody", AccountHost: "%"})
	if got := a.of(nobody, "SELECT b FROM d.secrets"); got != "read t[d.secrets] 1142/42000" {
		t.Errorf("who may not: %q", got)
	}
	a.Exec(s, "GRANT SELECT ON d.t TO nobody")
	for _, sql := range []string{"SELECT * FROM d.vv", "UPDATE d.vv SET a = 1", "INSERT INTO d.vv VALUES (1)"} {
		if got := a.of(nobody, sql); !strings.HasSuffix(got, " t[d.vv d.v d.secrets] 1142/42000") {
			t.Errorf("%s by who may not: %q", sql, got)
		}
	}
	for _, sql := range []string{"SELECT b FROM d.secrets WHERE a = ?", "DELETE FROM d.secrets WHERE b = 'hush'"} {
		a.told = nil
		if _, err := nobody.Prepare(t.Context(), sql); err == nil || len(a.told) != 1 || a.told[0].Error != 1142 || !strings.Contains(a.told[0].Text, "`d` . `secrets`") && !strings.Contains(a.told[0].Text, "`d`.`secrets`") {
			t.Errorf("%s, which may not be prepared: %v, %+v", sql, err, a.told)
		}
	}
	if got := a.of(nobody, "PREPARE p FROM 'SELECT b FROM d.secrets'"); got != "read t[d.secrets] 1142/42000" || strings.Contains(a.told[0].Text, "PREPARE") {
		t.Errorf("PREPARE of what may not be prepared: %q, %+v", got, a.told)
	}
	if p, err := s.Prepare(t.Context(), "SELECT b FROM secrets"); err != nil || len(a.told) != 1 {
		t.Errorf("what is only prepared is told of: %v, %+v", err, a.told)
	} else {
		p.Close()
	}
	a.told = nil
	if got := a.Prepared(s, "SELECT b FROM secrets WHERE a > ?", int64(0)); len(a.told) != 1 || a.told[0].Text != "SELECT `b` FROM `secrets` WHERE `a` > ?" {
		t.Errorf("prepared: %s, %+v", got, a.told)
	}
}

// TestAuditedAccounts: of some accounts only, and not of others.
func TestAuditedAccounts(t *testing.T) {
	a := newAuditing(t, map[string]string{"audit_log_events": "LOGIN,READ", "audit_log_exclude_accounts": "monitor@*, nobody@%"})
	root := a.Open(session.ConnectionInfo{User: "root", Host: "localhost", AccountUser: "root", AccountHost: "localhost"})
	a.schema(root)
	nobody := a.Open(session.ConnectionInfo{User: "nobody", Host: "10.0.0.9", AccountUser: "nobody", AccountHost: "%"})
	check := func(root1, nobody1 string, logins map[string]bool) {
		t.Helper()
		if got := a.of(root, "SELECT 1 + 1"); got != root1 {
			t.Errorf("root: %q", got)
		}
		if got := a.of(nobody, "SELECT 1 + 1"); got != nobody1 {
			t.Errorf("nobody: %q", got)
		}
		for account, want := range logins {
			user, host, _ := strings.Cut(account, "@")
			if got := a.Manager.AuditsLogin(user, host, false); got != want {
				t.Errorf("%s: %v", account, got)
			}
		}
	}
	check("read", "", map[string]bool{"root@localhost": true, "monitor@10.0.0.1": false, "monitor@": false, "nobody@%": false, "nobody@localhost": true})
	if !a.Manager.AuditsLogin("monitor", "%", true) || a.Manager.AuditsLogin("monitor", "evil@%", false) {
		t.Error("who is refused is told of, whoever he says he is")
	}
	if !a.Manager.AuditsLogin("monitor@evil", "%", false) {
		t.Error("a name with @ is taken for another")
	}
	a.Exec(root, "SET GLOBAL audit_log_exclude_accounts = ''")
	a.Exec(root, "SET GLOBAL audit_log_include_accounts = 'no*@%'")
	check("", "read", map[string]bool{"root@localhost": false, "nobody@%": true})
	a.Exec(root, "SET GLOBAL audit_log_events = 'READ'")
	check("", "read", map[string]bool{"nobody@%": false})
}

// TestAuditVariables: only AUDIT_ADMIN sees and sets them, and nonsense is refused.
func TestAuditVariables(t *testing.T) {
	a := newAuditing(t, nil)
	root := a.Open(session.ConnectionInfo{User: "root", Host: "localhost", AccountUser: "root", AccountHost: "localhost"})
	a.schema(root)
	a.Exec(root, "GRANT SYSTEM_VARIABLES_ADMIN, SENSITIVE_VARIABLES_OBSERVER ON *.* TO nobody")
	nobody := a.Open(session.ConnectionInfo{User: "nobody", Host: "10.0.0.9", AccountUser: "nobody", AccountHost: "%"})
	const denied = "error 1227 (42000): Access denied; you need (at least one of) the AUDIT_ADMIN privilege(s) for this operation\n"
	for _, sql := range []string{"SELECT @@audit_log_events", "SET GLOBAL audit_log_events = ''", "SET PERSIST audit_log_tables = 'a.b'", "SET @a = @@global.audit_log_tables"} {
		if got := a.Text(nobody, sql); got != denied {
			t.Errorf("%s: %s", sql, got)
		}
		if len(a.told) == 0 {
			t.Errorf("%s: the refusal is not told of", sql)
		}
		a.told = nil
	}
	if got := a.Text(nobody, "SHOW GLOBAL VARIABLES LIKE 'audit\\_%'"); strings.Contains(got, "audit_log") {
		t.Error(got)
	}
	a.Exec(root, "GRANT AUDIT_ADMIN ON *.* TO nobody")
	if got := a.Text(nobody, "SHOW GLOBAL VARIABLES LIKE 'audit\\_%'"); strings.Count(got, "audit_log") != 4 {
		t.Error(got)
	}
	a.Exec(nobody, "SET GLOBAL audit_log_tables = 'hr.*,*.secrets', GLOBAL audit_log_events = 'login,write'")
	for _, sql := range []string{"SET GLOBAL audit_log_tables = 'secrets'", "SET GLOBAL audit_log_tables = 'a.b,[.c'", "SET GLOBAL audit_log_tables = '`hr`.`secrets`'", "SET GLOBAL audit_log_tables = '%.secrets'", "SET GLOBAL audit_log_tables = 'hr . secrets'", "SET GLOBAL audit_log_include_accounts = 'bob'",
		"SET GLOBAL audit_log_events = 'EVERYTHING'", "SET GLOBAL audit_log_exclude_accounts = 'a@b@c'"} {
		if got := a.Text(root, sql); !strings.Contains(got, "error 1231 ") {
			t.Errorf("%s: %s", sql, got)
		}
	}
	if got := a.Text(root, "SELECT @@audit_log_events, @@audit_log_tables"); !strings.Contains(got, "LOGIN,WRITE | hr.*,*.secrets") {
		t.Error(got)
	}
	if _, err := session.NewManager(session.Options{Env: a.Env, FS: a.FS, Variables: map[string]string{"audit_log_tables": "secrets"}}); err == nil {
		t.Error("the configuration may give what SET may not")
	}
}

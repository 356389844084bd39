package session_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// monitored is a node with accounts and files on a disk, and a session of root.
func monitored(t *testing.T) (*sessiontest.Rig, *session.Session) {
	t.Helper()
	r := sessiontest.New(t, sessiontest.Options{Dir: t.TempDir()})
	if _, err := r.Manager.Bootstrap(context.Background(), session.BootstrapOptions{}); err != nil {
		t.Fatal(err)
	}
	return r, r.Open(session.ConnectionInfo{User: "root", Host: "localhost", AccountUser: "root", AccountHost: "%", MultiStatements: true})
}

// expect compares what a statement gives with lines.
func expect(t *testing.T, r *sessiontest.Rig, s *session.Session, sql string, lines ...string) {
	t.Helper()
	got, want := strings.TrimSpace(r.Text(s, sql)), strings.Join(lines, "\n")
	_, got, _ = strings.Cut(got, "\n") // without the names of columns
	if got != want {
		t.Errorf("%s:\n%s\ninstead of\n%s", sql, got, want)
	}
}

// TestMonitoringQueries: whatever monitoring tools ask for gets an answer.
func TestMonitoringQueries(t *testing.T) {
	r, root := monitored(t)
	r.Exec(root, "CREATE DATABASE test; CREATE TABLE test.m (id INT AUTO_INCREMENT PRIMARY KEY, a INT, KEY (a)); INSERT INTO test.m (a) VALUES (1)")
	files, err := filepath.Glob("sessiontest/testdata/monitoring/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range strings.Split(string(text), ";\n") {
			var lines []string
			for line := range strings.Lines(query) {
				if !strings.HasPrefix(line, "--") {
					lines = append(lines, line)
				}
			}
			if query = strings.Join(lines, ""); strings.TrimSpace(query) == "" {
				continue
			}
			if got := r.Text(root, query); strings.HasPrefix(got, "error") && !strings.HasPrefix(got, "error 1381") { // no log is here
				t.Errorf("%s: %s: %s", filepath.Base(name), query, got)
			}
		}
	}
}

// TestShapes: information_schema.COLUMNS shows the tables that are made up as MySQL shows its own, and each can be read.
func TestShapes(t *testing.T) {
	r, root := monitored(t)
	text, err := os.ReadFile("shapes.txt")
	if err != nil {
		t.Fatal(err)
	}
	var table string
	var want []string
	check := func() {
		if table == "" {
			return
		}
		schema, name, _ := strings.Cut(table, ".")
		expect(t, r, root, fmt.Sprintf(`SELECT CONCAT_WS('\t', COLUMN_NAME, COLUMN_TYPE, IF(COLLATION_NAME = 'utf8mb4_0900_ai_ci', NULL, CONCAT('collate=', COLLATION_NAME)),
			IF(IS_NULLABLE = 'NO', 'not-null', NULL), IF(COLUMN_KEY = '', NULL, CONCAT('key=', COLUMN_KEY)), CONCAT('default=', COLUMN_DEFAULT),
			IF(EXTRA = '', NULL, CONCAT('extra=', EXTRA)), IF(COLUMN_COMMENT = '', NULL, CONCAT('comment=', COLUMN_COMMENT))) x
			FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '%s' AND TABLE_NAME = '%s' ORDER BY ORDINAL_POSITION`, schema, name), want...)
		if got := r.Text(root, "SELECT * FROM `"+schema+"`.`"+name+"`"); strings.HasPrefix(got, "error") {
			t.Errorf("%s: %s", table, got)
		}
		if got := r.Text(root, "SHOW CREATE TABLE `"+schema+"`.`"+name+"`"); strings.HasPrefix(got, "error") {
			t.Errorf("%s: %s", table, got)
		}
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.Contains(line, "\t"):
			want = append(want, line)
		default:
			check()
			table, want = line, nil
		}
	}
	check()
}

// TestRowsByIndex: rows are counted by the index that they are read, changed or deleted by, as MySQL counts them.
func TestRowsByIndex(t *testing.T) {
	r, s := monitored(t)
	r.Exec(s, "CREATE DATABASE test; USE test; CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, KEY ka (a), UNIQUE KEY ub (b))")
	const counts = `SELECT CONCAT_WS(' ', IFNULL(INDEX_NAME, 'NULL'), COUNT_STAR, COUNT_READ, COUNT_WRITE, COUNT_FETCH, COUNT_INSERT, COUNT_UPDATE, COUNT_DELETE)
		FROM performance_schema.table_io_waits_summary_by_index_usage WHERE OBJECT_SCHEMA = 'test' AND OBJECT_NAME = 't' AND COUNT_STAR > 0 ORDER BY INDEX_NAME`
	for _, c := range []struct {
		statements string
		want       []string
	}{
		{"INSERT INTO t VALUES (1,1,1),(2,1,2),(3,2,3),(4,2,4),(5,3,5)", []string{"NULL 5 0 5 0 5 0 0"}},
		{"SELECT * FROM t WHERE id = 1; SELECT * FROM t WHERE id = 99", []string{"PRIMARY 2 2 0 2 0 0 0"}},
		{"SELECT * FROM t FORCE INDEX (ka) WHERE a = 1", []string{"ka 2 2 0 2 0 0 0"}},
		{"SELECT * FROM t", []string{"NULL 5 5 0 5 0 0 0"}},
		{"SELECT * FROM t WHERE id BETWEEN 2 AND 3", []string{"PRIMARY 2 2 0 2 0 0 0"}},
		{"UPDATE t SET a = a + 1 WHERE id = 2; UPDATE t SET a = 10 WHERE b = 3", []string{"PRIMARY 2 1 1 1 0 1 0", "ub 2 1 1 1 0 1 0"}},
		{"DELETE FROM t WHERE id = 1; DELETE FROM t WHERE b = 3", []string{"PRIMARY 2 1 1 1 0 0 1", "ub 2 1 1 1 0 0 1"}},
	} {
		r.Exec(s, "TRUNCATE performance_schema.table_io_waits_summary_by_index_usage")
		r.Exec(s, c.statements)
		expect(t, r, s, counts, c.want...)
	}
	expect(t, r, s, "SELECT COUNT_FETCH, COUNT_DELETE FROM performance_schema.table_io_waits_summary_by_table WHERE OBJECT_NAME = 't'", "2 | 2")
	r.Exec(s, "DROP TABLE t")
	expect(t, r, s, counts, "")
}

// TestClients: connections and statements by account, user and host.
func TestClients(t *testing.T) {
	r, root := monitored(t)
	r.Exec(root, "CREATE USER u")
	info := session.ConnectionInfo{User: "u", Host: "10.0.0.1", AccountUser: "u", AccountHost: "%"}
	gone, here := r.Open(info), r.Open(info)
	r.Exec(gone, "SELECT 1")
	r.Exec(gone, "SELECT 2")
	r.Exec(here, "SELECT 3")
	_ = r.Text(here, "SELECT nothing")
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	const accounts = "SELECT USER, HOST, CURRENT_CONNECTIONS, TOTAL_CONNECTIONS FROM performance_schema.accounts WHERE USER = 'u'"
	expect(t, r, root, accounts, "u | 10.0.0.1 | 1 | 2")
	expect(t, r, root, "SELECT * FROM performance_schema.hosts WHERE HOST = '10.0.0.1'", "10.0.0.1 | 1 | 2 | 0 | 0")
	expect(t, r, root, `SELECT COUNT_STAR, SUM_ERRORS, SUM_ROWS_SENT FROM performance_schema.events_statements_summary_by_user_by_event_name
		WHERE USER = 'u' AND EVENT_NAME = 'statement/sql/select'`, "4 | 1 | 3")
	expect(t, r, root, "SELECT user, statements, current_connections, total_connections, unique_hosts FROM sys.user_summary WHERE user = 'u'", "u | 4 | 1 | 2 | 1")
	expect(t, r, root, "SELECT ERROR_NAME, SUM_ERROR_RAISED FROM performance_schema.events_errors_summary_global_by_error WHERE ERROR_NUMBER = 1054", "ER_BAD_FIELD_ERROR | 1")
	expect(t, r, root, "SELECT EVENT_NAME, EVENT_ID > 5, CURRENT_SCHEMA FROM performance_schema.events_statements_current", "statement/sql/select | 1 | NULL")
	r.Exec(here, "BEGIN")
	expect(t, r, root, "SELECT STATE, ACCESS_MODE, ISOLATION_LEVEL, AUTOCOMMIT FROM performance_schema.events_transactions_current", "ACTIVE | READ WRITE | REPEATABLE READ | NO")
	r.Exec(here, "ROLLBACK")
	r.Exec(root, "TRUNCATE performance_schema.accounts")
	expect(t, r, root, accounts, "u | 10.0.0.1 | 1 | 1")
	if err := here.Close(); err != nil {
		t.Fatal(err)
	}
	r.Exec(root, "TRUNCATE TABLE performance_schema.accounts")
	expect(t, r, root, accounts, "")
}

// TestClientsAreBounded: accounts beyond performance_schema_accounts_size are counted together, without a name.
func TestClientsAreBounded(t *testing.T) {
	r, root := monitored(t)
	r.Exec(root, "CREATE USER u")
	for i := range 1005 {
		s := r.Open(session.ConnectionInfo{User: "u", Host: fmt.Sprintf("h%d", i), AccountUser: "u", AccountHost: "%"})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, r, root, "SELECT COUNT(*), SUM(HOST IS NULL), SUM(TOTAL_CONNECTIONS) FROM performance_schema.accounts", "1001 | 1 | 1006")
	expect(t, r, root, "SELECT COUNT(*), SUM(TOTAL_CONNECTIONS) FROM performance_schema.users WHERE USER = 'u'", "1 | 1005")
}

// TestMonitoringPrivileges: who may read, empty and change what, as in MySQL.
func TestMonitoringPrivileges(t *testing.T) {
	r, root := monitored(t)
	r.Exec(root, "CREATE USER u")
	s := r.Open(session.ConnectionInfo{User: "u", Host: "localhost", AccountUser: "u", AccountHost: "%"})
	check := func(s *session.Session, statement, want string) {
		t.Helper()
		if got := strings.TrimSpace(r.Text(s, statement)); !strings.HasPrefix(got, want) || want == "" && strings.HasPrefix(got, "error") {
			t.Errorf("%s: %q instead of %q", statement, got, want)
		}
	}
	check(s, "SELECT * FROM performance_schema.accounts", "error 1142")
	check(s, "SELECT * FROM performance_schema.variables_info LIMIT 1", "")
	check(s, "SELECT * FROM performance_schema.processlist", "")
	check(s, "SELECT * FROM information_schema.INNODB_TABLES", "error 1227")
	check(s, "SELECT * FROM sys.version", "error 1142")
	check(s, "SELECT * FROM mysql.func", "error 1142")
	check(root, "GRANT ALL ON performance_schema.* TO u", "error 1044")
	check(root, "GRANT CREATE ON performance_schema.* TO u", "error 1044")
	check(root, "GRANT SELECT ON information_schema.* TO u", "error 1044")
	check(root, "GRANT SELECT ON sys.* TO u", "ok")
	check(s, "SELECT * FROM sys.user_summary", "error 1356")
	check(root, "GRANT SELECT ON performance_schema.* TO u", "ok")
	check(s, "SELECT * FROM performance_schema.accounts", "")
	check(s, "SELECT * FROM sys.user_summary", "")
	check(s, "TRUNCATE performance_schema.accounts", "error 1142")
	check(root, "GRANT DROP ON performance_schema.accounts TO u", "ok")
	check(s, "TRUNCATE performance_schema.accounts", "ok")
	check(root, "TRUNCATE performance_schema.threads", "error 1142")
	check(root, "CREATE TABLE mysql.func (a INT)", "error 1044")
	check(root, "INSERT INTO mysql.func (name) VALUES ('f')", "error")
	check(root, "DELETE FROM sys.metrics", "error")
	check(root, "UPDATE performance_schema.accounts SET USER = 'x'", "error")
	check(root, "DROP DATABASE sys", "error 1044")
	check(root, "SELECT * FROM sys.nothing", "error 1146")
	check(root, "SELECT * FROM sys.user_summary u JOIN sys.version", "")
	check(root, "SHOW TABLES FROM sys LIKE 'version'", "")
	check(root, "DROP TABLE mysql.slow_log", "error 1044")
}

// TestSysIndexes: indexes that are of no use, and counters that run out, as MySQL's views tell.
func TestSysIndexes(t *testing.T) {
	r, root := monitored(t)
	r.Exec(root, `CREATE DATABASE test; CREATE TABLE test.t (id TINYINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a INT, b INT, KEY ka (a), KEY kab (a, b), UNIQUE KEY ub (b), KEY kb (b),
		KEY kbid (b, id)); INSERT INTO test.t (a, b) VALUES (1, 1), (1, 2); SELECT a, b FROM test.t FORCE INDEX (kab) WHERE a = 1`)
	expect(t, r, root, "SELECT index_name FROM sys.schema_unused_indexes WHERE object_schema = 'test' ORDER BY 1", "ka", "kb", "kbid")
	expect(t, r, root, "SELECT redundant_index_name, dominant_index_name, sql_drop_index FROM sys.schema_redundant_indexes ORDER BY 1, 2",
		"ka | kab | ALTER TABLE `test`.`t` DROP INDEX `ka`",
		"kb | kbid | ALTER TABLE `test`.`t` DROP INDEX `kb`",
		"kb | ub | ALTER TABLE `test`.`t` DROP INDEX `kb`",
		"kbid | ub | ALTER TABLE `test`.`t` DROP INDEX `kbid`")
	expect(t, r, root, "SELECT column_name, max_value, auto_increment, auto_increment_ratio FROM sys.schema_auto_increment_columns", "id | 255 | 3 | 0.0118")
	expect(t, r, root, "SELECT table_name, rows_fetched, rows_inserted FROM sys.schema_table_statistics WHERE table_schema = 'test'", "t | 2 | 2")
}

// TestDigestPartsAreApart: sessions that count a statement at the same time write to cache lines of their own.
func TestDigestPartsAreApart(t *testing.T) {
	if session.DigestPartSize%128 != 0 { // two lines are fetched together
		t.Errorf("a part has %d bytes", session.DigestPartSize)
	}
}

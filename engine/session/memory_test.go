package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestStatementMemory: what cannot go to disk fails when all statements have too much together,
// by temptable_max_ram, and nothing is left counted when they have ended, however they end.
func TestStatementMemory(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"temptable_max_ram": "8388608"}})
	s := r.Open(session.ConnectionInfo{MultiStatements: true})
	r.Exec(s, "CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, s LONGTEXT)")
	rows := strings.Builder{}
	for i := range 100 {
		fmt.Fprintf(&rows, ",(%d,REPEAT('%d',100000))", i, i%10)
	}
	r.Exec(s, "INSERT INTO t VALUES "+rows.String()[1:])
	const long = "SELECT LENGTH(JSON_ARRAYAGG(s)) FROM t"
	if got := r.Text(s, long); !strings.Contains(got, "3170") || !strings.Contains(got, "temptable_max_ram") {
		t.Errorf("10 MB in 8 MiB of all: %.200s", got)
	}
	if b := r.Manager.StatementMemory(); b.Refused() != 1 || b.Used() != 0 {
		t.Errorf("refused %d, left over %d", b.Refused(), b.Used())
	}
	if got := r.Text(s, "SELECT COUNT(*) FROM (SELECT DISTINCT CONCAT(id, s) FROM t ORDER BY 1 LIMIT 99) x"); !strings.Contains(got, "99") {
		t.Errorf("what goes to disk: %s", got)
	}
	r.Exec(s, "SET GLOBAL temptable_max_ram = 256 << 20")
	if got := r.Text(s, long); got != "LENGTH(JSON_ARRAYAGG(s))\n10000300\n" && !strings.Contains(got, "1000") {
		t.Errorf("10 MB in 256 MiB: %s", got)
	}
	if b := r.Manager.StatementMemory(); b.Limit() != 256<<20 || b.Used() != 0 {
		t.Errorf("limit %d, left over %d", b.Limit(), b.Used())
	}
}

// TestGuardedVariable: no ordinary session gives its statements more memory than others have.
func TestGuardedVariable(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	if _, err := r.Manager.Bootstrap(t.Context(), session.BootstrapOptions{}); err != nil {
		t.Fatal(err)
	}
	root := r.Open(session.ConnectionInfo{User: "root", AccountUser: "root", AccountHost: "%", MultiStatements: true})
	r.Exec(root, "CREATE USER u; CREATE USER v; GRANT SESSION_VARIABLES_ADMIN ON *.* TO v")
	for _, c := range []struct{ user, set, says string }{
		{"u", "SESSION trireme_statement_memory = 1 << 40", "error 1227 (42000): Access denied; you need (at least one of) the SUPER or SYSTEM_VARIABLES_ADMIN or SESSION_VARIABLES_ADMIN privilege(s) for this operation\n"},
		{"u", "trireme_statement_memory = DEFAULT", "ok\n"},
		{"u", "trireme_statement_memory = 1 << 20", "ok\n"},
		{"v", "trireme_statement_memory = 1 << 40", "ok\n"},
		{"root", "GLOBAL trireme_statement_memory = 512 << 20", "ok\n"},
		{"u", "trireme_statement_memory = 512 << 20", "ok\n"},
	} {
		s := r.Open(session.ConnectionInfo{User: c.user, AccountUser: c.user, AccountHost: "%"})
		if got := r.Text(s, "SET "+c.set); got != c.says {
			t.Errorf("%s: SET %s: %s", c.user, c.set, got)
		}
	}
}

// TestJSONMemory: what the parser keeps of a text with very many values is counted.
func TestJSONMemory(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	s := r.Open(session.ConnectionInfo{})
	for _, f := range []string{"JSON_LENGTH(%s)", "JSON_VALID(%s)", "JSON_LENGTH(CAST(%s AS JSON))"} {
		few := fmt.Sprintf("SELECT "+f+" AS n", "CONCAT('[',REPEAT('1,',100000),'1]')")
		if got := r.Text(s, few); strings.Contains(got, "error") {
			t.Errorf("%s: %s", few, got)
		}
		many := fmt.Sprintf("SELECT "+f+" AS n", "CONCAT('[',REPEAT('1,',3000000),'1]')")
		if got := r.Text(s, many); !strings.Contains(got, "error 3170") {
			t.Errorf("%s: %s", many, got)
		}
	}
	if used := r.Manager.StatementMemory().Used(); used != 0 {
		t.Errorf("%d bytes are left over", used)
	}
}

// TestJSONCopies: statements that make much of a document by naming the same bytes again and again are ended before they take that much, and give back
// what they had.
func TestJSONCopies(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"trireme_statement_memory": "8388608"}})
	s := r.Open(session.ConnectionInfo{})
	r.Exec(s, "CREATE DATABASE d")
	r.Exec(s, "USE d")
	r.Exec(s, "CREATE TABLE t (j JSON)")
	// 300 kB, 90 deep.
	r.Exec(s, `INSERT INTO t VALUES (CONCAT(REPEAT('[', 90), '"', REPEAT('x', 300000), '"', REPEAT(']', 90)))`)
	columns := make([]string, 100)
	for i := range columns {
		columns[i] = fmt.Sprintf("c%d JSON PATH '$'", i)
	}
	for _, text := range []string{
		"SELECT JSON_LENGTH(JSON_EXTRACT(j, '$**[0]')) FROM t",
		"SELECT JSON_LENGTH(a) FROM t, JSON_TABLE(j, '$' COLUMNS (a JSON PATH '$**[0]')) k",
		"SELECT COUNT(c0) FROM t, JSON_TABLE(j, '$' COLUMNS (" + strings.Join(columns, ", ") + ")) k",
	} {
		if got := r.Text(s, text); !strings.Contains(got, "error 3170") {
			t.Errorf("%.100s: %.200s", text, got)
		}
		if n := r.Manager.StatementMemory().Used(); n != 0 {
			t.Errorf("%.100s: %d bytes are left counted", text, n)
		}
	}
	for text, want := range map[string]string{
		"SELECT JSON_LENGTH(JSON_EXTRACT(j, '$[0]**[0]', '$[0]')) > 1 FROM (SELECT CAST('[[1,[2]],3]' AS JSON) j) t":          "1",
		"SELECT COUNT(a), LENGTH(MAX(a)) FROM t, JSON_TABLE(j, '$[0]' COLUMNS (a JSON PATH '$[0]', b JSON PATH '$[0][0]')) k": "1 | 300",
	} {
		if got := r.Text(s, text); !strings.Contains(got, want) {
			t.Errorf("%s: %s", text, got)
		}
		if n := r.Manager.StatementMemory().Used(); n != 0 {
			t.Errorf("%s: %d bytes are left counted", text, n)
		}
	}
}

// TestValueMemory: single values of functions, and those of user variables, are within temptable_max_ram,
// however many there are one after the other, and nothing is left counted.
func TestValueMemory(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Variables: map[string]string{"temptable_max_ram": "16777216"}})
	s := r.Open(session.ConnectionInfo{MultiStatements: true})
	r.Exec(s, "CREATE DATABASE d; USE d; CREATE TABLE n (id INT PRIMARY KEY, s VARCHAR(50)); CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, s LONGTEXT)")
	r.Exec(s, "CREATE TABLE g (id INT PRIMARY KEY, s VARCHAR(10), l LONGTEXT AS (REPEAT(s, 100000)))")
	rows := strings.Builder{}
	for i := range 60 {
		fmt.Fprintf(&rows, ",(%d,'%050d')", i, i)
	}
	r.Exec(s, "INSERT INTO n VALUES "+rows.String()[1:])
	used := func(of string) {
		t.Helper()
		if n := r.Manager.StatementMemory().Used(); n != 0 {
			t.Fatalf("%s: %d bytes are left over", of, n)
		}
	}
	for _, f := range []string{
		"REPEAT('a', 20000000)", "SPACE(20000000)", "LPAD('a', 20000000, 'b')", "RPAD('é', 20000000, 'é')", "REPLACE(REPEAT('0', 1000000), '0', REPEAT('b', 20))",
		"CONCAT(REPEAT('a', 6000000), REPEAT('b', 6000000))", "CONCAT_WS(',', REPEAT('a', 6000000), REPEAT('b', 6000000))", "HEX(REPEAT('a', 6000000))",
		"WEIGHT_STRING(REPEAT('a', 6000000))", "WEIGHT_STRING('a' AS CHAR(10000000))", "UNCOMPRESS(COMPRESS(REPEAT('a', 9000000)))", "UPPER(REVERSE(REPEAT('a', 9000000)))",
		"EXPORT_SET(5, REPEAT('a', 300000), 'b')", "REGEXP_REPLACE(REPEAT('0', 200000), '0', REPEAT('b', 90))", "QUOTE(REPEAT('a', 9000000))",
		"TO_BASE64(REPEAT('a', 9000000))", "INSERT(REPEAT('a', 9000000), 1, 1, 'b')", "CONVERT(CONVERT(REPEAT('a', 7000000) USING latin1) USING utf8mb4)",
	} {
		for _, text := range []string{"SELECT LENGTH(" + f + ")", "SELECT MAX(LENGTH(" + strings.Replace(f, "'a'", "SUBSTR(s, 50)", 1) + ")) FROM n", "DO LENGTH(" + f + ")"} {
			if got := r.Text(s, text); !strings.Contains(got, "error 3170") {
				t.Errorf("%s: %.200s", text, got)
			}
			used(text)
		}
	}
	for _, text := range []string{
		"SELECT SUM(LENGTH(REPEAT(s, 20000))) AS n FROM n", "SELECT SUM(LENGTH(CONCAT(REPEAT(s, 20000), id))) AS n FROM n", "SELECT SUM(CRC32(HEX(REPEAT(s, 20000)))) AS n FROM n",
		"SELECT MAX(REPEAT(s, 20000)) = '' AS n FROM n", "SELECT COUNT(*) AS n FROM n WHERE REPEAT(s, 20000) > '1'", "SELECT COUNT(*) AS n FROM (SELECT REPEAT(s, 20000) AS x FROM n ORDER BY x LIMIT 50) d",
		"SELECT COUNT(DISTINCT REPEAT(s, 20000)) AS n FROM n", "SELECT COUNT(*) AS n FROM (SELECT LAG(REPEAT(s, 20000)) OVER (ORDER BY id) AS l FROM n) d WHERE l IS NULL",
		"SELECT SUM(LENGTH(IF(id > 5, REPEAT(s, 20000), s))) AS n FROM n", "SELECT COUNT(*) AS n FROM n a JOIN n b ON REPEAT(a.s, 20000) = REPEAT(b.s, 20000) WHERE b.id < 3",
		"INSERT INTO t (s) SELECT REPEAT(s, 20000) FROM n", "INSERT INTO t (s) VALUES " + strings.Repeat("(REPEAT('ab', 500000)),", 49) + "('')", "UPDATE t SET s = CONCAT(REPEAT('x', 1000000), id) LIMIT 20",
		"INSERT INTO t (id, s) SELECT id, s FROM n WHERE id > 0 ON DUPLICATE KEY UPDATE s = REPEAT('y', 1000000)", "INSERT INTO g (id, s) SELECT id, SUBSTR(s, 42) FROM n",
		"SELECT SUM(LENGTH(l)) AS n FROM g", "SELECT SUM(LENGTH(REVERSE(s))) AS n FROM t", "SELECT id, UPPER(s) FROM t", "DELETE FROM t WHERE REVERSE(s) <> ''",
	} {
		if got := r.Text(s, text); strings.Contains(got, "error") {
			t.Errorf("%s: %.200s", text, got)
		}
		used(text)
	}
	r.Exec(s, "SET @a = REPEAT('a', 6000000); SET @b = REPEAT('a', 3000000)")
	if got := r.Text(s, "SET @c = REPEAT('a', 6000000)"); !strings.Contains(got, "error 3170") {
		t.Errorf("15 MB of variables in 16 MiB, and one more that is copied: %s", got)
	}
	if n := r.Manager.StatementMemory().Used(); n != 9000000 {
		t.Errorf("variables of 9000000 bytes: %d are counted", n)
	}
	r.Exec(s, "SET @a = 1, @b = REPEAT('b', 1000000)")
	if n := r.Manager.StatementMemory().Used(); n != 1000000 {
		t.Errorf("a variable of 1000000 bytes: %d are counted", n)
	}
	if err := s.Reset(); err != nil {
		t.Fatal(err)
	}
	used("variables of a session that was reset")
}

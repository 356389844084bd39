package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestDefinitionsTooLarge: what is too much for a table has MySQL's number and SQLSTATE, and
// leaves the table as it was.
func TestDefinitionsTooLarge(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	list := func(format string, n int) string {
		var parts []string
		for i := range n {
			parts = append(parts, fmt.Sprintf(format, i))
		}
		return strings.Join(parts, ", ")
	}
	columns := list("c%d INT", 70)
	r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, "+columns+")")
	before := r.Text(s, "SHOW CREATE TABLE t")
	long := func(n int) string { return "'" + strings.Repeat("é", n) + "'" }
	const rowSize = "error 1118 (42000): Row size too large. The maximum row size for the used table type, not counting BLOBs, is 65535."
	const keyParts = "error 1070 (42000): Too many key parts specified; max 16 parts allowed"
	for _, c := range []struct{ text, want string }{
		{"CREATE TABLE n (" + columns + ", KEY k (" + list("c%d", 17) + "))", keyParts},
		{"CREATE TABLE n (" + columns + ", PRIMARY KEY (" + list("c%d", 17) + "))", keyParts},
		{"CREATE INDEX k ON t (" + list("c%d", 17) + ")", keyParts},
		{"ALTER TABLE t ADD UNIQUE k (" + list("c%d", 17) + ")", keyParts},
		{"CREATE TABLE n (" + columns + ", " + list("KEY (c%d)", 65) + ")", "error 1069 (42000): Too many keys specified; max 64 keys allowed"},
		{"CREATE TABLE n (a VARCHAR(16383), b INT)", rowSize},
		{"CREATE TABLE n (a VARCHAR(65533) CHARACTER SET latin1)", rowSize},
		{"CREATE TABLE n (" + list("a%d VARCHAR(60) NOT NULL", 300) + ")", rowSize},
		{"ALTER TABLE t ADD a VARBINARY(65500)", rowSize},
		{"ALTER TABLE t MODIFY c1 VARCHAR(16383)", rowSize},
		{"CREATE TABLE n (a INT) COMMENT " + long(2049), "error 1628 (HY000): Comment for table 'n' is too long (max = 2048)"},
		{"ALTER TABLE t COMMENT " + long(2049), "error 1628 (HY000): Comment for table 't' is too long (max = 2048)"},
		{"CREATE TABLE n (a INT COMMENT " + long(1025) + ")", "error 1629 (HY000): Comment for field 'a' is too long (max = 1024)"},
		{"ALTER TABLE t MODIFY c1 INT COMMENT " + long(1025), "error 1629 (HY000): Comment for field 'c1' is too long (max = 1024)"},
		{"CREATE TABLE n (a INT, KEY k (a) COMMENT " + long(1025) + ")", "error 1688 (HY000): Comment for index 'k' is too long (max = 1024)"},
		{"CREATE INDEX k ON t (c1) COMMENT " + long(1025), "error 1688 (HY000): Comment for index 'k' is too long (max = 1024)"},
	} {
		if got := r.Text(s, c.text); !strings.HasPrefix(got, c.want) {
			t.Errorf("%.80s: %.200s", c.text, got)
		}
	}
	if after := r.Text(s, "SHOW CREATE TABLE t"); after != before {
		t.Errorf("%s", after)
	}
	// As much as there may be.
	for i, text := range []string{
		"CREATE TABLE m0 (" + columns + ", KEY k (" + list("c%d", 16) + "))",
		"CREATE TABLE m1 (" + columns + ", " + list("KEY (c%d)", 64) + ")",
		"CREATE TABLE m2 (a VARCHAR(65532) CHARACTER SET latin1)",
		"CREATE TABLE m3 (a VARCHAR(65533) CHARACTER SET latin1 NOT NULL)",
		"CREATE TABLE m4 (a INT COMMENT " + long(1024) + ", KEY k (a) COMMENT " + long(1024) + ") COMMENT " + long(2048),
	} {
		if got := r.Text(s, text); got != "ok\n" {
			t.Errorf("%d: %.200s", i, got)
		}
	}
	// Without strict mode what is too long is cut off, with a warning.
	r.Exec(s, "SET sql_mode = ''")
	for text, want := range map[string]string{
		"CREATE TABLE w1 (a INT) COMMENT " + long(2049):                 "Warning | 1628 | Comment for table 'w1' is too long (max = 2048)",
		"CREATE TABLE w2 (a INT COMMENT " + long(1025) + ")":            "Warning | 1629 | Comment for field 'a' is too long (max = 1024)",
		"CREATE TABLE w3 (a INT, KEY k (a) COMMENT " + long(1025) + ")": "Warning | 1688 | Comment for index 'k' is too long (max = 1024)",
	} {
		r.Exec(s, text)
		if got := r.Text(s, "SHOW WARNINGS"); got != "Level | Code | Message\n"+want+"\n" {
			t.Errorf("%.60s: %s", text, got)
		}
	}
	if got := r.Text(s, "SELECT CHAR_LENGTH(TABLE_COMMENT), RIGHT(TABLE_COMMENT, 1) FROM information_schema.TABLES WHERE TABLE_NAME = 'w1'"); !strings.HasSuffix(got, "\n2048 | é\n") {
		t.Error(got)
	}
}

// TestPreparedStatementsCount: statements of both kinds count, over all sessions, and the
// variable that bounds them may change.
func TestPreparedStatementsCount(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	a, b := r.Open(session.ConnectionInfo{Schema: "test"}), r.Open(session.ConnectionInfo{Schema: "test"})
	prepare := func(s *session.Session) (*session.Prepared, string) {
		p, err := s.Prepare(t.Context(), "SELECT ?")
		if err != nil {
			return nil, err.Error()
		}
		return p, "ok\n"
	}
	const tooMany = "error 1461 (42000): Can't create more than max_prepared_stmt_count statements (current value: 3)"
	r.Exec(a, "SET GLOBAL max_prepared_stmt_count = 3")
	r.Exec(a, "PREPARE one FROM 'SELECT 1'")
	r.Exec(b, "PREPARE one FROM 'SELECT 1'")
	r.Exec(b, "PREPARE one FROM 'SELECT 2'") // instead of the other
	p, _ := prepare(a)
	for _, s := range []*session.Session{a, b} {
		if got := r.Text(s, "PREPARE two FROM 'SELECT 1'"); got != tooMany+"\n" {
			t.Error(got)
		}
		if _, got := prepare(s); !strings.Contains(got, "1461") {
			t.Error(got)
		}
	}
	p.Close()
	if got := r.Text(b, "PREPARE two FROM 'SELECT 1'"); got != "ok\n" {
		t.Error(got)
	}
	r.Exec(a, "DEALLOCATE PREPARE one")
	if p, _ = prepare(a); p == nil {
		t.Error("not one more after one has gone")
	}
	if got := r.Text(a, "PREPARE two FROM 'SELECT 1'"); got != tooMany+"\n" {
		t.Error(got)
	}
	r.Exec(a, "SET GLOBAL max_prepared_stmt_count = 4")
	if got := r.Text(a, "PREPARE two FROM 'SELECT 1'"); got != "ok\n" {
		t.Error(got)
	}
	p.Close()
	if err := b.Reset(); err != nil { // its two go
		t.Fatal(err)
	}
	r.Exec(a, "SET GLOBAL max_prepared_stmt_count = 0")
	if got := r.Text(a, "PREPARE three FROM 'SELECT 1'"); !strings.Contains(got, "1461") {
		t.Error(got)
	}
	r.Exec(a, "SET GLOBAL max_prepared_stmt_count = 2")
	if got := r.Text(a, "PREPARE three FROM 'SELECT 1'"); got != "ok\n" {
		t.Error(got)
	}
}

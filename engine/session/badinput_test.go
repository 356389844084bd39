package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/types"
)

// Statements of extreme shape end well or by an error that has a number, and leave nothing
// behind.
func TestExtremeStatements(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test", MultiStatements: true})
	r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strings.ReplaceAll(format, "#", fmt.Sprint(i)))
		}
		return b.String()
	}
	for _, sql := range []string{
		"", ";", ";;", "   -- nothing", "/* open", "'", "\"", "`", "\x00", "\xff\xfe", "SELECT '\xff'", "SELECT `\xff`", "SELECT ?",
		"SELECT " + strings.Repeat("(", 1000) + "1" + strings.Repeat(")", 1000),
		"SELECT " + strings.Repeat("(", 100000) + "1" + strings.Repeat(")", 100000),
		"SELECT " + strings.Repeat("NOT ", 1000) + "1",
		"SELECT " + strings.Repeat("-", 999) + "1",
		"SELECT 1" + strings.Repeat("+1", 5000),
		"SELECT " + strings.Repeat("ABS(", 1000) + "1" + strings.Repeat(")", 1000),
		"SELECT " + strings.Repeat("(SELECT ", 200) + "1" + strings.Repeat(")", 200),
		"SELECT * FROM t WHERE id IN (" + many(20000, "#") + ")",
		"SELECT * FROM t WHERE " + strings.Repeat("id = 1 OR ", 5000) + "id = 2",
		"SELECT " + many(4097, "#"), "SELECT " + many(5000, "id") + " FROM t",
		"CREATE TABLE wide (" + many(4096, "c# INT") + ")",
		"INSERT INTO t VALUES " + many(5000, "(#, #)"),
		"INSERT INTO t VALUES " + many(100, "(#, 99999999999)"),
		"SET @x = " + strings.Repeat("CONCAT(", 500) + "'a'" + strings.Repeat(", 'b')", 500),
		"SELECT REPEAT('x', 1000000000)",
		"SELECT 99999999999999999999999999999999999999999999999999999999999999999999999999 * 9e300 * 9e300",
		strings.Repeat("SELECT 1;", 500),
		"PREPARE p FROM '" + strings.Repeat("SELECT ", 300) + "'",
	} {
		err := s.Query(context.Background(), sql, sessiontest.Discard)
		var e *types.Error
		if err != nil && (!errors.As(err, &e) || len(e.State) != 5 || e.Number == 0) {
			t.Errorf("%.60q: %v", sql, err)
		}
		if s.Status()&session.StatusInTransaction != 0 {
			t.Errorf("%.60q leaves a transaction", sql)
		}
	}
	if got := r.Text(s, "SELECT COUNT(*) FROM t"); got != "COUNT(*)\n5000\n" {
		t.Error(got)
	}
}

// FuzzStatements runs any text: it must not panic, and the session must be of use
// afterwards.
func FuzzStatements(f *testing.F) {
	for _, sql := range []string{"SELECT * FROM t WHERE id = 1", "INSERT INTO t VALUES (1, 2) ON DUPLICATE KEY UPDATE v = VALUES(v)",
		"UPDATE t SET v = v + 1 WHERE id > 3 ORDER BY id LIMIT 2", "DELETE FROM t", "BEGIN", "SET @a = 1, sql_mode = ''",
		"PREPARE p FROM 'SELECT ?'", "EXECUTE p USING @a", "SHOW TABLES", "EXPLAIN SELECT 1", "REPLACE INTO t SELECT 1, 2"} {
		f.Add(sql)
	}
	r := sessiontest.New(f, sessiontest.Options{Discard: true})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
	f.Fuzz(func(t *testing.T, sql string) {
		if upper := strings.ToUpper(sql); strings.Contains(upper, "SLEEP") || strings.Contains(upper, "LOCK") || strings.Contains(upper, "KILL") {
			return // they wait, or end the session
		}
		if err := s.Query(context.Background(), sql, sessiontest.Discard); err != nil {
			var e *types.Error
			if !errors.As(err, &e) || e.Number == 0 {
				t.Fatalf("%q: %v", sql, err)
			}
		}
		if err := s.Reset(); err != nil {
			t.Fatal(err)
		}
	})
}

package session_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/internal/race"
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
		"SELECT " + many(4097, "#"), "SELECT " + many(70000, "#"), "SELECT " + many(5000, "id") + " FROM t",
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
		var e *sqlerr.Error
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

// TestLongStatements: what a statement takes grows with its length, not with its square.
func TestLongStatements(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
	r.Exec(s, "INSERT INTO t VALUES (1, 1), (2, 2)")
	list := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(format, "#", fmt.Sprint(i)))
		}
		return b.String()
	}
	for name, of := range map[string]func(n int) string{
		"union": func(n int) string { return "SELECT 0" + list(n, " UNION SELECT #") },
		"union all": func(n int) string {
			return "SELECT v FROM t WHERE id = 1" + list(n, " UNION ALL SELECT v FROM t WHERE id = #")
		},
		"group by":       func(n int) string { return "SELECT COUNT(*) FROM t GROUP BY id" + list(n, ", v + #") },
		"order by":       func(n int) string { return "SELECT id FROM t ORDER BY id" + list(n, ", v + #") },
		"in":             func(n int) string { return "SELECT id FROM t WHERE v IN (0" + list(n, ", #") + ")" },
		"in rows":        func(n int) string { return "SELECT id FROM t WHERE (id, v) IN ((0, 0)" + list(n, ", (#, #)") + ")" },
		"or":             func(n int) string { return "SELECT id FROM t WHERE v = 0" + list(n, " OR id = #") },
		"arguments":      func(n int) string { return "SELECT LENGTH(CONCAT('a'" + list(n, ", '#'") + "))" },
		"cases":          func(n int) string { return "SELECT CASE v" + list(n, " WHEN # THEN #") + " END FROM t" },
		"values":         func(n int) string { return "SELECT COUNT(*) FROM (VALUES ROW(0)" + list(n, ", ROW(#)") + ") v" },
		"subqueries":     func(n int) string { return "SELECT CONCAT('a'" + list(n, ", (SELECT #)") + ")" },
		"with":           func(n int) string { return "WITH a AS (SELECT 1)" + list(n, ", a# AS (SELECT 1)") + " SELECT 1" },
		"select list":    func(n int) string { return "SELECT id" + list(n, ", v + #") + " FROM t GROUP BY id, v" },
		"user variables": func(n int) string { return "SET @a = 1" + list(n, ", @b = #") },
	} {
		took := func(n int) uint64 {
			sql := of(n)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := s.Query(context.Background(), sql, sessiontest.Discard); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		took(400) // so that what is made once does not count
		n := race.Fewer(4000, 2000)
		if small, large := took(500), took(n); large > uint64(n/200)*small {
			t.Errorf("%s: %d bytes for 500, %d for %d", name, small, large, n)
		}
	}
	want := func(text, answer string) {
		t.Helper()
		if got := r.Text(s, text); !strings.HasPrefix(got, answer) {
			t.Errorf("%.60s ..: %.300s, want %s", text, got, answer)
		}
	}
	want("SELECT 7"+list(20_000, " UNION SELECT 7"), "7\n7\n")
	want("SELECT 7"+list(100_001, " UNION SELECT 7"), "error 1436")
	want("SELECT COUNT(*) AS n FROM t GROUP BY id"+list(4095, ", v + #"), "n\n1\n1\n")
	want("SELECT COUNT(*) FROM t GROUP BY id"+list(4096, ", v + #"), "error 1117")
	want("SELECT COUNT(*) AS n FROM t GROUP BY v + 1"+list(2000, ", v + #, v + #"), "n\n1\n1\n")
	want("SELECT CONCAT('a'"+list(1_100_000, ", 'a'")+")", "error 3170")
}

// FuzzStatements runs any text: it must not panic, and the session must be of use
// afterwards.
func FuzzStatements(f *testing.F) {
	for _, sql := range []string{"SELECT * FROM t WHERE id = 1", "INSERT INTO t VALUES (1, 2) ON DUPLICATE KEY UPDATE v = VALUES(v)",
		"UPDATE t SET v = v + 1 WHERE id > 3 ORDER BY id LIMIT 2", "DELETE FROM t", "BEGIN", "SET @a = 1, sql_mode = ''",
		"PREPARE p FROM 'SELECT ?'", "EXECUTE p USING @a", "SHOW TABLES", "EXPLAIN SELECT 1", "REPLACE INTO t SELECT 1, 2",
		"SELECT SUM(v) OVER (PARTITION BY id % 2 ORDER BY v ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING), LAG(v, 1, 0) OVER w FROM t WINDOW w AS (ORDER BY id)",
		"SELECT *, NTILE(3) OVER (ORDER BY v RANGE BETWEEN 1.5 PRECEDING AND CURRENT ROW), MIN(v) OVER (ORDER BY NOW() + INTERVAL id DAY RANGE INTERVAL 1 DAY PRECEDING) FROM t"} {
		f.Add(sql)
	}
	r := sessiontest.New(f, sessiontest.Options{Discard: true})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
	r.Exec(s, "INSERT INTO t VALUES (1, 5), (2, 5), (3, NULL), (4, 1)")
	f.Fuzz(func(t *testing.T, sql string) {
		if upper := strings.ToUpper(sql); strings.Contains(upper, "SLEEP") || strings.Contains(upper, "LOCK") || strings.Contains(upper, "KILL") {
			return // they wait, or end the session
		}
		if err := s.Query(context.Background(), sql, sessiontest.Discard); err != nil {
			var e *sqlerr.Error
			if !errors.As(err, &e) || e.Number == 0 {
				t.Fatalf("%q: %v", sql, err)
			}
		}
		if err := s.Reset(); err != nil {
			t.Fatal(err)
		}
	})
}

package session_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/internal/race"
)

// TestLargeDefinitions: definitions near the limits, and beyond.
func TestLargeDefinitions(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	list := func(n int, format string) string {
		var parts []string
		for i := range n {
			parts = append(parts, fmt.Sprintf(format, i))
		}
		return strings.Join(parts, ", ")
	}
	want := func(text, answer string) {
		t.Helper()
		got := r.Text(s, text)
		if !strings.HasPrefix(got, answer) {
			t.Errorf("%.60s ..: %.300s, want %s", text, got, answer)
		}
	}
	want("CREATE TABLE wide ("+list(1016, "column_number_%d INT")+")", "ok")
	want("CREATE TABLE wider ("+list(1018, "c%d INT")+")", "error 1117")
	want("CREATE TABLE widest ("+list(4097, "c%d INT")+")", "error 1117")
	want("CREATE TABLE members (e ENUM("+list(20000, "'member number %d'")+"))", "ok")
	want("CREATE TABLE many (e ENUM("+list(65536, "'m%d'")+"))", "error 1097")
	want("CREATE TABLE checked (a INT, "+list(300, "CHECK (a > %d)")+")", "ok")
	want("CREATE VIEW long_view AS SELECT "+list(900, "'some text that is long enough %d' AS c%[1]d"), "ok")
	want("SELECT c899 FROM long_view", "c899\nsome text that is long enough 899")
	want("CREATE TABLE commented (a INT COMMENT '"+strings.Repeat("é", 1024)+"') COMMENT '"+strings.Repeat("x", 2048)+"'", "ok")
	want("CREATE TABLE commented2 (a INT COMMENT '"+strings.Repeat("é", 1025)+"')", "error 1629")
	want("CREATE TABLE keyed (a INT, "+list(64, "KEY k%d (a)")+")", "ok")
	want("CREATE TABLE keyed2 (a INT, "+list(65, "KEY k%d (a)")+")", "error 1069")
	want("CREATE TABLE deep (a INT, b INT AS ("+strings.Repeat("(1 + ", 900)+"a"+strings.Repeat(")", 900)+"))", "ok")
	want("INSERT INTO deep (a) VALUES (1)", "ok")
	want("SELECT b FROM deep", "b\n901")
	r.Restart()
	s = r.Open(session.ConnectionInfo{Schema: "test"})
	want("SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'test'", "COUNT(*)\n19")
}

// TestLargeRowsAreGivenUp: a session keeps nothing of the long values that a statement read
// or made.
func TestLargeRowsAreGivenUp(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{Dir: t.TempDir(), Discard: true,
		Variables: map[string]string{"max_allowed_packet": "67108864"}})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, a LONGBLOB, b LONGTEXT, n INT)")
	r.Exec(s, "INSERT INTO t VALUES (1, REPEAT('a', 4000000), REPEAT('b', 4000000), 1), (2, NULL, NULL, 2)")
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for i, text := range []string{
		"SELECT * FROM t WHERE id = 1", "SELECT LENGTH(a), n + 1 FROM t WHERE id = 1", "SELECT * FROM t",
		"SELECT LENGTH(CONCAT(a, b)) FROM t", "SELECT id FROM t WHERE a LIKE '%x%' ORDER BY b", "SELECT MAX(b), COUNT(*) FROM t GROUP BY n",
		"SELECT * FROM t x JOIN t y ON x.n = y.n", "SELECT a FROM t UNION SELECT b FROM t", "SELECT DISTINCT b FROM t",
		"SELECT LENGTH(REPEAT('x', 10000000))", "SELECT REPEAT('x', 10000000) FROM t LIMIT 1", "UPDATE t SET n = LENGTH(a) + LENGTH(b) WHERE id = 1",
		"SELECT JSON_LENGTH(CONCAT('[\"', b, '\"]')) FROM t", "SELECT REGEXP_REPLACE(b, 'b', 'cd') FROM t WHERE id = 1", "SELECT UPPER(b) FROM t WHERE id = 1",
		"SELECT id FROM t LIMIT 0", "SELECT id FROM t WHERE a LIKE CONCAT('%', b)",
	} {
		if race.Enabled && i%4 != 0 {
			continue
		}
		r.Exec(s, "SELECT 1")
		before := heap()
		r.Exec(s, text)
		if more := heap() - before; more > 3<<20 {
			t.Errorf("%s: %d bytes more", text, more)
		}
	}
}

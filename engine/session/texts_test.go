package session_test

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestLongTexts: a session that has run a long text keeps nothing of it.
func TestLongTexts(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(s, "CREATE TABLE t (a INT PRIMARY KEY AUTO_INCREMENT, b LONGTEXT)")
	rows := "INSERT INTO t (a, b) VALUES " + strings.Repeat("(NULL, 'a value'), ", 5000) + "(NULL, 'last')"
	long := "'" + strings.Repeat("x", 100000) + "'"
	for _, c := range []struct{ text, answer string }{
		{rows, "ok"},
		{rows + ", (NULL, UPPER('x'))", "ok"},
		{rows + ", (1, 2, 3)", "error 1136"},
		{rows + ", (1", "error 1064"},
		{rows + ", ('x', 1)", "error 1366"},
		{rows + "; SELECT 1", "error 1064"},
		{rows + " ON DUPLICATE KEY UPDATE b = nothing", "error 1054"},
		{"INSERT INTO t VALUES (1000000, " + long + ")", "ok"},
		{"INSERT INTO t VALUES (1000000, " + long + ")", "error 1062"},
		{"INSERT INTO t VALUES (1000001, UPPER(" + long + "))", "ok"},
		{"REPLACE INTO t SELECT 1000001, " + long, "ok"},
		{"UPDATE t SET b = " + long + " WHERE a = 1", "ok"},
		{"UPDATE t SET b = CONCAT(b, " + long + ") WHERE a = 1", "ok"},
		{"UPDATE t SET b = " + long + " WHERE a < 10", "ok"},
		{"DELETE FROM t WHERE b = " + long + " AND a = 1", "ok"},
		{"DELETE FROM t WHERE b = " + long, "ok"},
		{"SELECT COUNT(*) FROM t WHERE b = " + long, "COUNT"},
		{"SELECT a FROM t WHERE b = " + long + " AND a = 5", "a"},
		{"SELECT LENGTH(" + long + ")", "LENGTH"},
		{"SELECT nothing, " + long, "error 1054"},
		{"SELECT a FROM t WHERE a IN (" + strings.Repeat("1,", 40000) + "1)", "a"},
		{"SET @x = LENGTH(" + long + ")", "ok"},
		{"PREPARE x FROM 'SELECT LENGTH('" + long + "')'", "ok"},
		{"CREATE TABLE u (a INT) COMMENT = " + long, "error 1628"},
	} {
		text := []byte(c.text)
		kept := weak.Make(&text[0])
		if got := r.Text(s, unsafe.String(&text[0], len(text))); !strings.HasPrefix(got, c.answer) {
			t.Errorf("%.40s ... %s: %.100s", c.text, c.text[len(c.text)-40:], got)
		}
		text = nil
		r.Exec(s, "DO 0") // who took the answer has the names of its columns
		for range 2 {     // what lies in pools goes later
			runtime.GC()
		}
		if kept.Value() != nil {
			t.Errorf("%.40s ... %s: the text is kept", c.text, c.text[len(c.text)-40:])
		}
	}
}

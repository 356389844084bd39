package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
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

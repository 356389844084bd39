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

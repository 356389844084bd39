package session_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestRegexpLimits: the variables that bound a match do so from the next statement on, for all that call for one.
func TestRegexpLimits(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	s := r.Open(session.ConnectionInfo{MultiStatements: true})
	const slow = "SELECT REGEXP_LIKE(CONCAT(REPEAT('a', 13), 'b'), '(?=a)(a+)+$') AS m"
	for _, c := range []struct{ set, query, want string }{
		{"regexp_time_limit = 32", slow, "m\n0\n"},
		{"regexp_time_limit = 1", slow, "error 3699"},
		{"regexp_time_limit = 0", slow, "m\n0\n"},
		{"regexp_time_limit = DEFAULT", slow, "m\n0\n"},
		{"regexp_stack_limit = 2000", "SELECT REGEXP_INSTR(REPEAT('a', 1000), '(?=a)(a|b)*$') AS m", "error 3698"},
		{"regexp_stack_limit = 8000000", "SELECT REGEXP_INSTR(REPEAT('a', 1000), '(?=a)(a|b)*$') AS m", "m\n1\n"},
	} {
		r.Exec(s, "SET GLOBAL "+c.set)
		if got := r.Text(s, c.query); !strings.Contains(got, c.want) {
			t.Errorf("with %s: %s", c.set, got)
		}
	}
}

// TestRegexpEnds: without a limit of its own a match ends soon when the statement's time is over, or when it is killed.
func TestRegexpEnds(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	s, other := r.Open(session.ConnectionInfo{MultiStatements: true}), r.Open(session.ConnectionInfo{})
	r.Exec(s, "SET GLOBAL regexp_time_limit = 0")
	defer r.Exec(s, "SET GLOBAL regexp_time_limit = DEFAULT")
	for _, call := range []string{
		"REGEXP_LIKE(CONCAT(REPEAT('a', 60), 'b'), '(?=a)(a+)+$')",
		"REGEXP_REPLACE(REPEAT('a', 1000000), '(?!b)a*+b', 'x')",
		"REGEXP_INSTR(REPEAT('a', 1000000), '(a*)\\\\1c')",
	} {
		if got := r.Text(s, "SELECT /*+ MAX_EXECUTION_TIME(50) */ "+call); !strings.Contains(got, "error 3024") {
			t.Errorf("%s: %s", call, got)
		}
		said := make(chan string, 1)
		go func() { said <- r.Text(s, "SELECT "+call) }()
		time.Sleep(100 * time.Millisecond)
		text := ""
		for until := time.Now().Add(15 * time.Second); text == "" && time.Now().Before(until); {
			r.Exec(other, fmt.Sprintf("KILL QUERY %d", s.ID()))
			select {
			case text = <-said:
			case <-time.After(100 * time.Millisecond):
			}
		}
		if !strings.Contains(text, "error 1317") {
			t.Errorf("%s: %q", call, text)
		}
	}
}

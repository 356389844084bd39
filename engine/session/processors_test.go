package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/internal/turn"
)

// within waits for what is to come at once, and does not come before a wait for a processor ends by itself.
func within(t *testing.T, what string, said <-chan string) string {
	t.Helper()
	select {
	case text := <-said:
		return text
	case <-time.After(5 * time.Second):
		t.Errorf("%s: nothing within 5 s", what)
		return ""
	}
}

// TestProcessors has no place for statements that are not short: those that wait say so, and KILL, the time limit and the node's giving up
// the lead end the wait. Short ones and who keeps all others from committing wait for nobody.
func TestProcessors(t *testing.T) {
	p := turn.Still(0)
	r := sessiontest.Start(t, sessiontest.Options{Processors: p})
	defer r.Close()
	const long = "SELECT BENCHMARK(1000000000, SHA2('a', 512))"
	run := func(text string) (*session.Session, <-chan string) {
		s := r.Open(session.ConnectionInfo{})
		said := make(chan string, 1)
		go func() { said <- r.Text(s, text) }()
		return s, said
	}
	waiting := func() (ids []uint64) {
		for _, one := range r.Manager.Processes() {
			if one.State == "Waiting for a processor" {
				ids = append(ids, one.ID)
			}
		}
		return ids
	}
	wait := func(s *session.Session) {
		t.Helper()
		for until := time.Now().Add(time.Minute); !slices.Contains(waiting(), s.ID()); time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("it does not wait: %+v", p.Stats())
			}
		}
	}
	other := r.Open(session.ConnectionInfo{})
	killed, said := run(long)
	wait(killed)
	r.Exec(other, fmt.Sprintf("KILL QUERY %d", killed.ID()))
	if text := within(t, "KILL", said); !strings.Contains(text, "error 1317") {
		t.Errorf("killed: %s", text)
	}
	_, said = run("SELECT /*+ MAX_EXECUTION_TIME(50) */ BENCHMARK(1000000000, SHA2('a', 512))")
	if text := within(t, "MAX_EXECUTION_TIME", said); !strings.Contains(text, "error 3024") {
		t.Errorf("with a limit of 50 ms: %s", text)
	}
	if text := r.Text(other, "SELECT 1"); !strings.Contains(text, "1") || strings.Contains(text, "error") {
		t.Errorf("a short statement: %s", text)
	}

	keeper := r.Open(session.ConnectionInfo{})
	r.Exec(keeper, "FLUSH TABLES WITH READ LOCK")
	kept := make(chan string, 1)
	go func() { kept <- r.Text(keeper, long) }()
	for range 300 {
		if slices.Contains(waiting(), keeper.ID()) {
			t.Error("a session with FLUSH TABLES WITH READ LOCK waits for a processor")
			break
		}
		time.Sleep(time.Millisecond)
	}
	keeper.Interrupt()
	within(t, "the end of who keeps others from committing", kept)
	r.Exec(keeper, "UNLOCK TABLES")

	ended, said := run(long)
	wait(ended)
	r.Manager.StepDown()
	for until := time.Now().Add(5 * time.Second); len(waiting()) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("after StepDown %d statements wait", len(waiting()))
		}
	}
	for range 50 { // nor does it wait again
		if len(waiting()) > 0 {
			t.Fatal("after StepDown it waits again")
		}
		time.Sleep(time.Millisecond)
	}
	ended.Interrupt()
	within(t, "the end", said)

	other = r.Open(session.ConnectionInfo{})
	r.Exec(other, "SET GLOBAL trireme_short_statement_time = 0")
	waits := p.Stats().Waits
	r.Exec(other, "SELECT BENCHMARK(100000, SHA2('a', 512))")
	if s := p.Stats(); s.Waits != waits || s.Waiting != 0 || s.Held != 0 {
		t.Errorf("with trireme_short_statement_time = 0: %+v", s)
	}
}

// TestExpectedWork has no place for statements that are not short: what is known to take long before it begins waits before it has locked or
// taken anything, and what cannot be or may not wait does not.
func TestExpectedWork(t *testing.T) {
	p := turn.Still(0)
	r := sessiontest.Start(t, sessiontest.Options{Processors: p, Variables: map[string]string{"temptable_max_ram": "67108864"}})
	defer r.Close()
	other := r.Open(session.ConnectionInfo{MultiStatements: true})
	r.Exec(other, "SET GLOBAL trireme_short_statement_time = 0")
	r.Exec(other, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)")
	r.Exec(other, "SET GLOBAL trireme_short_statement_time = 5")
	waits := func(s *session.Session) bool {
		return slices.ContainsFunc(r.Manager.Processes(), func(one session.Process) bool {
			return one.ID == s.ID() && one.State == "Waiting for a processor"
		})
	}
	for _, text := range []string{
		"CREATE TABLE d.u (id INT)", "ALTER TABLE d.t ADD c INT", "DROP TABLE d.t", "CREATE INDEX i ON d.t (id)", "RENAME TABLE d.t TO d.u",
		"SELECT LENGTH(REPEAT('a', 30000000))", "SET @a = REPEAT('a', 30000000)", "SELECT 1 WHERE 1 IN (0" + strings.Repeat(", 0", 100_000) + ")",
	} {
		s := r.Open(session.ConnectionInfo{})
		said := make(chan string, 1)
		go func() { said <- r.Text(s, text) }()
		for until := time.Now().Add(30 * time.Second); !waits(s); time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%.50s does not wait: %+v", text, p.Stats())
			}
		}
		if got := r.Text(other, "SELECT COUNT(*) AS n FROM d.t"); !strings.Contains(got, "0") || strings.Contains(got, "error") {
			t.Errorf("beside %.50s: %s", text, got)
		}
		r.Exec(other, fmt.Sprintf("KILL QUERY %d", s.ID()))
		if got := within(t, text[:min(len(text), 20)], said); !strings.Contains(got, "error 1317") {
			t.Errorf("%.50s: %s", text, got)
		}
		s.Close()
	}
	before := p.Stats().Waits
	for _, text := range []string{"LOCK TABLES d.t WRITE", "ALTER TABLE d.t ADD c INT", "UNLOCK TABLES"} { // while others wait for the table
		r.Exec(other, text)
	}
	if n := p.Stats().Waits - before; n != 0 {
		t.Errorf("%d of what is not to wait has waited", n)
	}
}

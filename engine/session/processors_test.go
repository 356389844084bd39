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

package session_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/internal/turn"
)

// TestProcessors has more statements that compute than there are places: those that wait say so, and KILL, the time limit and the end of
// their connection end the wait; short ones wait for nobody.
func TestProcessors(t *testing.T) {
	p := turn.NewProcessors()
	r := sessiontest.Start(t, sessiontest.Options{Processors: p})
	defer r.Close()
	const long = "SELECT BENCHMARK(1000000000, SHA2('a', 512))"
	var all sync.WaitGroup
	var sessions []*session.Session
	run := func(text string) chan string {
		s := r.Open(session.ConnectionInfo{})
		sessions = append(sessions, s)
		said := make(chan string, 1)
		all.Go(func() { said <- r.Text(s, text) })
		return said
	}
	for range 40 {
		run(long)
	}
	other := r.Open(session.ConnectionInfo{})
	waiting := func() (ids []uint64) {
		for _, one := range r.Manager.Processes() {
			if one.State == "Waiting for a processor" {
				ids = append(ids, one.ID)
			}
		}
		return ids
	}
	for until := time.Now().Add(time.Minute); len(waiting()) < 20; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d statements wait: %+v", len(waiting()), p.Stats())
		}
	}
	limited := run("SELECT /*+ MAX_EXECUTION_TIME(50) */ BENCHMARK(1000000000, SHA2('a', 512))")
	if text := <-limited; !strings.Contains(text, "error 3024") {
		t.Errorf("with a limit of 50 ms: %s", text)
	}
	if text := r.Text(other, "SELECT 1"); !strings.Contains(text, "1") || strings.Contains(text, "error") {
		t.Errorf("a short statement: %s", text)
	}
	for _, s := range sessions {
		s.Interrupt()
	}
	all.Wait()
	if s := p.Stats(); s.Held != 0 || s.Waiting != 0 || s.Waits == 0 {
		t.Errorf("at the end: %+v", s)
	}
	r.Exec(other, "SET GLOBAL trireme_short_statement_time = 0")
	waits := p.Stats().Waits
	sessions = sessions[:0]
	for range 40 {
		run(long)
	}
	time.Sleep(time.Second)
	if s := p.Stats(); s.Waits != waits || s.Waiting != 0 {
		t.Errorf("with trireme_short_statement_time = 0: %+v", s)
	}
	for _, s := range sessions {
		s.Interrupt()
	}
	all.Wait()
}

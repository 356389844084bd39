package session_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestSurvive has statements meet a bug: the session ends with an error and what it had is
// given back. A bug in the storage engine is not survived.
func TestSurvive(t *testing.T) {
	var stacks [][]byte
	r := sessiontest.New(t, sessiontest.Options{Panicked: func(_ any, stack []byte) { stacks = append(stacks, stack) }})
	other := r.Open(session.ConnectionInfo{})
	for _, text := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, n INT)", "INSERT INTO d.t VALUES (1, 1), (2, 2)"} {
		r.Exec(other, text)
	}
	const query = "SELECT n, COUNT(*) FROM d.t GROUP BY n"
	for i, run := range []func(s *session.Session) string{
		func(s *session.Session) string { return r.Text(s, query) },
		func(s *session.Session) string {
			return r.Prepared(s, "SELECT n, COUNT(*) FROM d.t WHERE id > ? GROUP BY n", 0)
		},
	} {
		one := r.Open(session.ConnectionInfo{})
		r.Exec(one, "BEGIN")
		r.Exec(one, "UPDATE d.t SET n = 7 WHERE id = 1")
		session.PanicInStatement(one, false)
		if text := run(one); !strings.Contains(text, "1105") {
			t.Fatalf("%d: %s", i, text)
		}
		if !one.Gone() || r.Manager.Panics() != uint64(i+1) || len(stacks) != i+1 || !bytes.Contains(stacks[i], []byte("panicDeeply")) {
			t.Errorf("%d: gone %v, %d panics, %s", i, one.Gone(), r.Manager.Panics(), stacks)
		}
		if err := one.Close(); err != nil {
			t.Error(err)
		}
		r.Exec(other, "UPDATE d.t SET n = n + 1 WHERE id = 1") // it waits for nobody
	}
	r.Exec(other, "ALTER TABLE d.t ADD COLUMN x INT")
	if text := r.Text(other, "SELECT n FROM d.t WHERE id = 1"); !strings.Contains(text, "3") {
		t.Error(text)
	}

	below := r.Open(session.ConnectionInfo{})
	session.PanicInStatement(below, true)
	defer func() {
		if recover() == nil || r.Manager.Panics() != 2 {
			t.Error("a panic of the storage engine is survived")
		}
	}()
	r.Text(below, query)
}

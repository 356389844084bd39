package session_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/binlog/entry"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/sqlerr"
)

// TestReadAs: what a door says of a read goes before the session's variables, until it is
// taken back.
func TestReadAs(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY)")
	r.Exec(s, "SET trireme_read_wait = 1234")
	var asked []session.ReadOptions
	r.ReadPoint = func(o session.ReadOptions) error { o.Ended = nil; asked = append(asked, o); return nil }
	s.ReadAs(&session.ReadOptions{Consistency: session.AtLeast, Number: 1})
	r.Exec(s, "SELECT * FROM t")
	s.ReadAs(&session.ReadOptions{Consistency: session.Bounded, Bound: time.Second, Wait: time.Minute})
	r.Exec(s, "SELECT * FROM t")
	s.ReadAs(&session.ReadOptions{Consistency: session.Local})
	r.Exec(s, "SELECT * FROM t")
	s.ReadAs(nil)
	r.Exec(s, "SELECT * FROM t")
	want := []session.ReadOptions{{Consistency: session.AtLeast, Number: 1, Wait: 1234 * time.Millisecond},
		{Consistency: session.Bounded, Bound: time.Second, Wait: time.Minute},
		{Consistency: session.Local, Wait: 1234 * time.Millisecond}, // a node may have reason to serve no reads at all
		{Consistency: session.Strong, Bound: time.Second, Wait: 1234 * time.Millisecond}}
	if len(asked) != len(want) {
		t.Fatalf("asked %v", asked)
	}
	for i := range want {
		if !reflect.DeepEqual(asked[i], want[i]) {
			t.Errorf("read %d asked for %+v", i, asked[i])
		}
	}
	r.ReadPoint = nil
	before := s.LastGTID()
	r.Exec(s, "INSERT INTO t VALUES (1)")
	if s.LastGTID() <= before {
		t.Errorf("a write has number %d, after %d", s.LastGTID(), before)
	}
}

// TestTokenOfDefinitions: a statement of several transactions cannot be known by one token, and
// a token that was not used is not left for the next statement.
func TestTokenOfDefinitions(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	s.UseToken(entry.Token{1})
	var e *sqlerr.Error
	if err := s.Query(context.Background(), "CREATE TABLE t (id INT)", sessiontest.Discard); !errors.As(err, &e) || e.Number != 1235 {
		t.Errorf("a definition with a token: %v", err)
	}
	s.DropToken()
	r.Exec(s, "CREATE TABLE t (id INT)")
}

package client

import (
	"slices"
	"testing"
	"time"
)

// spread is a DB of members that nobody has called yet, and that do not answer.
func spread(t *testing.T, members []string, others ...string) *DB {
	t.Helper()
	db := &DB{nodes: map[string]*node{}, members: members, known: append(others, members...), opt: Options{IdleSessions: 2}}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// next are the addresses at which the next reads go on, none of which ends.
func next(t *testing.T, db *DB, reads int, tried ...*node) (list []string) {
	t.Helper()
	for range reads {
		n, err := db.place(tried)
		if err != nil {
			t.Fatal(err)
		}
		if n == nil {
			return append(list, "")
		}
		list = append(list, n.addr)
	}
	return list
}

func counts(list []string) map[string]int {
	n := map[string]int{}
	for _, addr := range list {
		n[addr]++
	}
	return n
}

// TestPlaces: reads go to the member that has the fewest under way, in turns, and not to one that was too far behind.
func TestPlaces(t *testing.T) {
	a, b, c := "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"
	db := spread(t, []string{a, b, c}, "127.0.0.1:4")
	if n := counts(next(t, db, 9)); n[a] != 3 || n[b] != 3 || n[c] != 3 {
		t.Errorf("nine reads that go on: %v", n)
	}
	db.nodes[b].reads.Add(-2)
	if list := next(t, db, 2); !slices.Equal(list, []string{b, b}) {
		t.Errorf("b has two less than the others, and two more go to %v", list)
	}
	for _, n := range db.nodes {
		n.reads.Store(0)
	}
	// One caller, whose reads end before the next one begins.
	var list []string
	for range 6 {
		n, err := db.place(nil)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n.addr)
		n.reads.Add(-1)
	}
	if n := counts(list[:3]); len(n) != 3 || !slices.Equal(list[:3], list[3:]) {
		t.Errorf("the reads of one caller go to %v", list)
	}
	// An error of a read passes its member over for a while.
	for err, passed := range map[*Error]bool{{Number: errnoBehind, Retry: Statement}: true, {Number: 1053, Retry: Elsewhere}: true, {Number: 1064}: false} {
		db.nodes[a].behind.Store(0)
		db.nodes[a].refuses(err)
		if n := counts(next(t, db, 30)); (n[a] == 0) != passed {
			t.Errorf("after %v: %v", err, n)
		}
		for _, n := range db.nodes {
			n.reads.Store(0)
		}
	}
	db.nodes[a].behind.Store(time.Now().Add(-time.Nanosecond).UnixNano())
	if n := counts(next(t, db, 30)); n[a] != 10 {
		t.Errorf("when the while is over: %v", n)
	}
	// What was tried is not tried again; the other address comes when no member is left.
	if list := next(t, db, 1, db.nodes[a], db.nodes[b], db.nodes[c]); !slices.Equal(list, []string{"127.0.0.1:4"}) {
		t.Errorf("the last address is %v", list)
	}
	if list := next(t, db, 1, db.nodes[a], db.nodes[b], db.nodes[c], db.nodes["127.0.0.1:4"]); !slices.Equal(list, []string{""}) {
		t.Errorf("when all were tried there is %v", list)
	}
}

// TestPassOver: a read that a member is too far behind for goes to each of the others once.
func TestPassOver(t *testing.T) {
	db := spread(t, []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"})
	n, err := db.node("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	s := &session{db: db, st: &stream{n: n}, readOnly: true}
	times := 0
	for i, want := range []Retry{Elsewhere, Elsewhere, Statement} {
		if got := retryable(db.passOver(s, &Error{Number: errnoBehind, Retry: Statement}, &times)); got != want {
			t.Errorf("attempt %d: %d, want %d", i, got, want)
		}
	}
	times = 0
	if got := retryable(db.passOver(s, &Error{Number: 1213, Retry: Transaction}, &times)); got != Transaction || times != 0 {
		t.Errorf("another error: %d", got)
	}
	s.readOnly = false
	if got := retryable(db.passOver(s, &Error{Number: errnoBehind, Retry: Statement}, &times)); got != Statement {
		t.Errorf("a wait for a lock: %d", got)
	}
}

// TestReadsAreCounted: a session counts once, until it is given back or closed.
func TestReadsAreCounted(t *testing.T) {
	db := spread(t, []string{"127.0.0.1:1"})
	n, err := db.node("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	s := &session{db: db, st: &stream{n: n}, readOnly: true, err: ErrClosed}
	for _, end := range []func(){func() { db.put(s) }, s.close, func() { s.reading(false) }} {
		s.reading(true)
		s.reading(true)
		if got := n.reads.Load(); got != 1 {
			t.Errorf("%d reads", got)
		}
		end()
		end()
		if got := n.reads.Load(); got != 0 {
			t.Errorf("%d reads after the end", got)
		}
	}
}

// TestRefusedTexts: what begins a transaction is not for a Tx, however it is written.
func TestRefusedTexts(t *testing.T) {
	for text, want := range map[string]error{"BEGIN": errBegun, "begin work": errBegun, " /* x */ START TRANSACTION READ ONLY": errBegun, "-- x\nStart transaction": errBegun,
		"COMMIT AND CHAIN": errBegun, "rollback work and chain": errBegun, "COMMIT": nil, "ROLLBACK TO s": nil, "SELECT 'BEGIN'": nil, "INSERT INTO t VALUES (1)": nil, "": nil} {
		if got := refuse(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

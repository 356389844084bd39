package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/env/simenv"
	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
)

// TestNamedLockCircle: who closes a circle of waits hears so, however long it is, and the others go on.
func TestNamedLockCircle(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, _ *simenv.Sim) {
		var list []*session.Session
		for _, name := range []string{"a", "b", "c"} {
			s := r.Open(session.ConnectionInfo{})
			r.Exec(s, "DO GET_LOCK('"+name+"', 0)")
			list = append(list, s)
		}
		outsider := r.Open(session.ConnectionInfo{})
		waits := []*task{background(r, list[0], "SELECT GET_LOCK('b', -1) AS got"), background(r, list[1], "SELECT GET_LOCK('c', -1) AS got"),
			background(r, outsider, "SELECT GET_LOCK('b', -1) AS got")}
		if got := r.Text(list[2], "SELECT GET_LOCK('a', 0) AS got"); got != "got\n0\n" { // who does not wait closes none
			t.Error(got)
		}
		for range 2 {
			if got := r.Text(list[2], "SELECT GET_LOCK('a', 3600)"); !strings.Contains(got, "error 3058 (HY000)") {
				t.Error(got)
			}
		}
		for i := len(list) - 1; i >= 0; i-- {
			r.Exec(list[i], "DO RELEASE_ALL_LOCKS()")
			env.Sleep(r.Env, time.Millisecond)
		}
		for i, w := range waits {
			if got := w.await(r); got != "got\n1\n" {
				t.Errorf("%d: %s", i, got)
			}
		}
		r.Exec(outsider, "DO RELEASE_ALL_LOCKS()")
		if got := r.Text(outsider, "SELECT COUNT(*) AS n FROM performance_schema.metadata_locks"); got != "n\n0\n" {
			t.Error(got)
		}
	})
}

// TestNamedLocksGoWithTheirSession: a session ends, is reset, or becomes another user's, and who waits for its locks has them.
func TestNamedLocksGoWithTheirSession(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, _ *simenv.Sim) {
		for what, end := range map[string]func(s *session.Session) error{
			"end":    func(s *session.Session) error { return s.Close() },
			"reset":  func(s *session.Session) error { return s.Reset() },
			"change": func(s *session.Session) error { return s.ChangeUser(s.Info()) },
		} {
			holder, waiter := r.Open(session.ConnectionInfo{}), r.Open(session.ConnectionInfo{})
			r.Exec(holder, "DO GET_LOCK('a', 0), GET_LOCK('a', 0), GET_LOCK('b', 0)")
			w := background(r, waiter, "SELECT GET_LOCK('a', -1) AS got")
			if w.done || !holder.HasLocks() || waiter.HasLocks() {
				t.Errorf("%s: %v %s", what, w.done, w.text)
			}
			if err := end(holder); err != nil {
				t.Error(err)
			}
			if got := w.await(r); got != "got\n1\n" || holder.HasLocks() || !waiter.HasLocks() {
				t.Errorf("%s: %s", what, got)
			}
			if got := r.Text(waiter, "SELECT IS_USED_LOCK('a') = CONNECTION_ID() AS own, IS_FREE_LOCK('b') AS b, RELEASE_ALL_LOCKS() AS n"); got != "own | b | n\n1 | 1 | 1\n" {
				t.Errorf("%s: %s", what, got)
			}
		}
	})
}

// TestNamedLockAndARebuild: who holds a named lock and waits, without a place in any queue, until a table is rebuilt, is found in a
// circle with who uses the table and waits for the lock: the rebuild waits for that one.
func TestNamedLockAndARebuild(t *testing.T) {
	for _, text := range []string{"ALTER TABLE t ADD COLUMN b INT", "DROP TABLE t", "LOCK TABLES t WRITE"} {
		r := newRebuildRig(t)
		holder := r.Open(session.ConnectionInfo{Schema: "test"})
		r.Exec(holder, "DO GET_LOCK('g', 0)")
		used, change := make(chan string, 1), make(chan string, 1)
		r.during(func() {
			r.Exec(r.other, "BEGIN")
			r.Exec(r.other, "DELETE FROM t WHERE a = -1")
			go func() { change <- r.Text(holder, text) }()
			untilWaiting(r.Rig, holder)
			go func() { used <- r.Text(r.other, "SELECT GET_LOCK('g', 60) AS got") }()
		})
		altered := make(chan string, 1)
		go func() { altered <- r.Text(r.s, "ALTER TABLE t MODIFY a BIGINT") }()
		select {
		case got := <-change:
			if !strings.HasPrefix(got, "error 1213") {
				t.Errorf("%s: %s", text, got)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s waits", text)
			holder.Interrupt()
			<-change
		}
		r.Exec(holder, "DO RELEASE_ALL_LOCKS()")
		if got := <-used; got != "got\n1\n" {
			t.Error(got)
		}
		r.Exec(r.other, "COMMIT")
		if got := <-altered; !strings.HasPrefix(got, "ok") {
			t.Error(got)
		}
	}
}

// TestLockTablesAndARebuild: who has locked something already, which he keeps, waits for the end of a rebuild; if that waits for him
// he hears of the circle.
func TestLockTablesAndARebuild(t *testing.T) {
	for hold, want := range map[string]string{"LOCK INSTANCE FOR BACKUP": "error 1213", "DO GET_LOCK('g', 0)": "ok"} {
		r := newRebuildRig(t)
		locker := r.Open(session.ConnectionInfo{Schema: "test"})
		locked := make(chan string, 1)
		r.during(func() {
			r.Exec(locker, hold)
			go func() { locked <- r.Text(locker, "LOCK TABLES t WRITE") }()
			untilWaiting(r.Rig, locker)
		})
		altered := make(chan string, 1)
		go func() { altered <- r.Text(r.s, "ALTER TABLE t MODIFY a BIGINT") }()
		select {
		case got := <-locked:
			if !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s", hold, got)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: it waits", hold)
			locker.Interrupt()
			<-locked
		}
		r.Exec(locker, "UNLOCK INSTANCE")
		if got := <-altered; !strings.HasPrefix(got, "ok") {
			t.Error(got)
		}
	}
}

// untilWaiting waits until a session waits for a table, but not for ever.
func untilWaiting(r *sessiontest.Rig, s *session.Session) {
	for range 5000 {
		for _, p := range r.Manager.Processes() {
			if p.ID == s.ID() && p.State == "Waiting for table metadata lock" {
				return
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// TestNoTableIsANamedLock: a text cannot call a table what a named lock is called by.
func TestNoTableIsANamedLock(t *testing.T) {
	simulated(t, func(r *sessiontest.Rig, _ *simenv.Sim) {
		holder, other := r.Open(session.ConnectionInfo{Schema: "test"}), r.Open(session.ConnectionInfo{Schema: "test"})
		r.Exec(holder, "DO GET_LOCK('g', 0)")
		r.Exec(other, "BEGIN")
		for _, text := range []string{"SELECT * FROM `\x00`.g", "INSERT INTO `\x00`.g VALUES (1)", "LOCK TABLES `\x00`.g WRITE", "DROP TABLE `\x00`.g", "CREATE TABLE `\x00`.h (id INT)",
			"ALTER TABLE `\x00`.g FORCE", "RENAME TABLE `\x00`.g TO test.g", "TRUNCATE `\x00`.h", "DROP DATABASE `\x00`", "CREATE DATABASE `\x00`", "DESCRIBE `\x00`.g", "CREATE VIEW `\x00`.g AS SELECT 1"} {
			if w := background(r, other, text); !w.done || !strings.HasPrefix(w.text, "error 10") && !strings.HasPrefix(w.text, "error 11") {
				t.Errorf("%q: %v %s", text, w.done, w.text)
			}
		}
		if n := len(r.Txns.MetadataLocks(10)); n != 1 {
			t.Errorf("%d locks", n)
		}
	})
}

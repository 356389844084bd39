package session_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/txn"
)

// halfBuilt leaves an index of column 2 half built, as a leader does that fails.
func halfBuilt(t *testing.T, r *sessiontest.Rig, table, name string) {
	t.Helper()
	w := r.Txns.NewSession()
	err := w.Begin(txn.BeginOptions{})
	if err == nil {
		var o *txn.Table
		if o, err = w.Open("test", table); err == nil {
			_, err = w.AddIndex(o.Definition().ID, record.Index{Name: name, Parts: []record.Part{{Column: 2}}}, nil)
		}
	}
	if err == nil {
		_, err = w.Commit(context.Background())
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
}

// A client that reads, and was there before the node led, keeps what an earlier leader has left
// in its place, but not the new leader from serving others; nor those from using the name.
func TestCleanUpBesideReader(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	reader := r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, k INT)")
	r.Exec(s, "INSERT INTO t VALUES (1, 1), (2, 2)")
	for _, name := range []string{"a", "b"} {
		halfBuilt(t, r, "t", name)
	}
	r.Exec(reader, "BEGIN")
	r.Exec(reader, "SELECT COUNT(*) FROM t")
	if found, err := r.Manager.CleanUp(t.Context()); found != 2 || err != nil {
		t.Errorf("%d found, %v", found, err)
	}
	if remain, err := r.Manager.DropLeft(t.Context()); remain != 2 || err != nil {
		t.Errorf("%d remain, %v", remain, err)
	}
	r.Exec(s, "INSERT INTO t VALUES (3, 3)")
	r.Exec(s, "SET lock_wait_timeout = 1")
	if text := r.Text(s, "CREATE INDEX a ON t (k)"); !strings.HasPrefix(text, "error 1205") {
		t.Error("a table in use was changed:", text)
	}
	r.Exec(reader, "COMMIT")
	r.Exec(s, "CREATE INDEX a ON t (k)")
	if text := r.Text(s, "SELECT COUNT(*) FROM t FORCE INDEX (a) WHERE k > 0"); !strings.Contains(text, "\n3\n") {
		t.Error(text)
	}
	if remain, err := r.Manager.DropLeft(t.Context()); remain != 0 || err != nil {
		t.Errorf("%d remain, %v", remain, err)
	}
	r.Exec(s, "CREATE INDEX b ON t (k)")
	if text := r.Text(s, "SHOW INDEX FROM t"); strings.Count(text, "| a |") != 1 || strings.Count(text, "| b |") != 1 {
		t.Error(text)
	}
}

// A client that is killed while it takes back an index that has failed, and waits for others with
// that, gets its answer, and leaves the index to the node.
func TestKillWhileDropped(t *testing.T) {
	for _, how := range []string{"QUERY", "CONNECTION"} {
		t.Run(how, func(t *testing.T) {
			r := sessiontest.New(t, sessiontest.Options{})
			r.CreateSchema("test")
			s := r.Open(session.ConnectionInfo{Schema: "test"})
			reader := r.Open(session.ConnectionInfo{Schema: "test"})
			other := r.Open(session.ConnectionInfo{Schema: "test"})
			r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, k INT)")
			r.Exec(s, "INSERT INTO t VALUES (1, 1), (2, 1)")
			_, id, _ := strings.Cut(strings.TrimSpace(r.Text(s, "SELECT CONNECTION_ID()")), "\n")
			waits := func() {
				for !strings.Contains(r.Text(other, "SHOW PROCESSLIST"), "metadata lock") {
					time.Sleep(time.Millisecond)
				}
			}
			read, answer := make(chan string, 1), make(chan string, 1)
			var first atomic.Bool
			r.Log.Refuse = func(x *txn.Txn) error {
				if x.Schema && first.CompareAndSwap(false, true) { // the reader is the next one to have the table
					go func() { read <- r.Text(reader, "BEGIN") + r.Text(reader, "SELECT COUNT(*) FROM t") }()
					waits()
				}
				return nil
			}
			go func() { answer <- r.Text(s, "ALTER TABLE t ADD UNIQUE INDEX u (k)") }()
			if text := <-read; !strings.Contains(text, "\n2\n") {
				t.Fatal(text)
			}
			waits()
			r.Exec(other, "KILL "+how+" "+id)
			if text := <-answer; !strings.HasPrefix(text, "error 1062") {
				t.Error(text)
			}
			r.Exec(reader, "COMMIT")
			if remain, err := r.Manager.DropLeft(t.Context()); remain != 0 || err != nil {
				t.Errorf("%d remain, %v", remain, err)
			}
			if found, err := r.Manager.CleanUp(t.Context()); found != 0 || err != nil {
				t.Errorf("%d found, %v", found, err)
			}
		})
	}
}

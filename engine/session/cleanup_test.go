package session_test

import (
	"context"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/storage/record"
	"github.com/triremedb/trireme/engine/txn"
)

// TestCleanUp: what a failure in the middle of an index's build or of a rebuild has left
// is dropped, and nothing else.
func TestCleanUp(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	r.Exec(s, "CREATE TABLE t (id INT PRIMARY KEY, k INT, KEY good (k))")
	r.Exec(s, "INSERT INTO t VALUES (1, 1), (2, 2)")
	r.Exec(s, "CREATE TABLE `#sql-1-2` LIKE t")
	w := r.Txns.NewSession()
	if err := w.Begin(txn.BeginOptions{}); err != nil {
		t.Fatal(err)
	}
	o, err := w.Open("test", "t")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddIndex(o.Definition().ID, record.Index{Name: "half", Parts: []record.Part{{Column: 2}}}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if text := r.Text(s, "SHOW TABLES"); strings.Contains(text, "#sql") {
		t.Error("a table in the making is shown:", text)
	}
	if found, err := r.Manager.CleanUp(context.Background()); err != nil || found != 2 {
		t.Errorf("%d found, %v", found, err)
	}
	if found, err := r.Manager.CleanUp(context.Background()); err != nil || found != 0 {
		t.Errorf("%d found at the second time, %v", found, err)
	}
	r.Exec(s, "CREATE INDEX half ON t (k)")
	if text := r.Text(s, "SELECT COUNT(*) FROM t FORCE INDEX (half) WHERE k > 0"); !strings.Contains(text, "\n2\n") {
		t.Error(text)
	}
}

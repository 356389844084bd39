package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/session"
	"github.com/triremedb/trireme/engine/session/sessiontest"
	"github.com/triremedb/trireme/engine/storage/file"
)

// TestIntoFileEnds: a statement that does not end well leaves no file, and a file is never replaced.
func TestIntoFileEnds(t *testing.T) {
	dir := t.TempDir()
	files, err := file.Confine(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := sessiontest.New(t, sessiontest.Options{Files: files})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	name := filepath.Join(dir, "x")
	done := make(chan string)
	go func() {
		done <- r.Text(s, "WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) "+
			"SELECT i, SLEEP(0.1) FROM n INTO OUTFILE '"+name+"'")
	}()
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(name); err == nil {
			break
		}
	}
	s.Interrupt()
	if got := <-done; !strings.HasPrefix(got, "error 1317") {
		t.Errorf("killed: %s", got)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("the file of a statement that was killed is there")
	}
	if got := r.Text(s, "SELECT 1 UNION SELECT 2 INTO DUMPFILE '"+name+"'"); !strings.HasPrefix(got, "error 1172") {
		t.Error(got)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("half a file was left")
	}
	if err := os.WriteFile(name, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"OUTFILE", "DUMPFILE"} {
		if got := r.Text(s, "SELECT 1 INTO "+kind+" '"+name+"'"); !strings.HasPrefix(got, "error 1086") {
			t.Error(got)
		}
	}
	if text, err := os.ReadFile(name); string(text) != "mine" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// TestNoFiles: without secure_file_priv there are none.
func TestNoFiles(t *testing.T) {
	r := sessiontest.New(t, sessiontest.Options{})
	r.CreateSchema("test")
	s := r.Open(session.ConnectionInfo{Schema: "test"})
	for _, text := range []string{"SELECT 1 INTO OUTFILE '/tmp/trireme-no-file'", "SELECT 1 INTO DUMPFILE '/tmp/trireme-no-file'"} {
		if got := r.Text(s, text); !strings.HasPrefix(got, "error 1290") {
			t.Error(got)
		}
	}
	if got := r.Text(s, "SELECT LOAD_FILE('/etc/passwd')"); !strings.Contains(got, "NULL") {
		t.Error(got)
	}
}

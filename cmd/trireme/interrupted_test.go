package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file"
)

// runsTool has the tests' binary be the program.
const runsTool = "TRIREME_TEST_RUNS_TOOL"

func TestMain(m *testing.M) {
	if os.Getenv(runsTool) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// longLog makes a node's directory with a log, of which more can be told than a pipe holds.
func longLog(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	l, err := log.Create(log.Options{FS: file.OS(filepath.Join(dir, "data.1")), Env: env.Real(), Group: [16]byte{7}, Preallocate: -1}, log.Start{})
	if err != nil {
		t.Fatal(err)
	}
	var entries []log.Entry
	for i := range uint64(10_000) {
		entries = append(entries, log.Entry{Index: i + 1, Term: 1})
	}
	if err := errors.Join(l.Append(entries), l.Sync()); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// printing starts a tool that prints a log to a pipe that nobody empties, and waits until it writes.
func printing(t *testing.T, dir string) (cmd *exec.Cmd, out io.ReadCloser, stderr *bytes.Buffer) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "binlog", "--datadir", dir, "print")
	cmd.Env = append(os.Environ(), runsTool+"=1")
	stderr = &bytes.Buffer{}
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 10)); err != nil {
		t.Fatal(err, stderr)
	}
	return cmd, out, stderr
}

func copiesIn(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "#tmp-binlog-*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestInterrupted: a tool that looks into a log leaves no copy of it behind, whatever ends it: its files would keep those that
// the node removes.
func TestInterrupted(t *testing.T) {
	dir := longLog(t)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(s) { // under nohup, by the tool as well
			continue
		}
		cmd, _, stderr := printing(t, dir)
		if len(copiesIn(t, dir)) != 1 {
			t.Fatal("there is no copy of the log")
		}
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != s {
			t.Errorf("%v: it ended with %v: %s", s, cmd.ProcessState, stderr)
		}
		if left := copiesIn(t, dir); len(left) != 0 {
			t.Errorf("%v: %v is left", s, left)
		}
	}
	cmd, out, stderr := printing(t, dir)
	_ = out.Close() // as head does
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != 1 || stderr.Len() != 0 || len(copiesIn(t, dir)) != 0 {
		t.Errorf("a closed pipe: %v, %q, %v is left", cmd.ProcessState, stderr, copiesIn(t, dir))
	}
	// What was killed cannot clean up. The next one does, but not after one that runs.
	killed, _, _ := printing(t, dir)
	_ = killed.Process.Kill()
	_ = killed.Wait()
	left := copiesIn(t, dir)
	runs, _, _ := printing(t, dir)
	if code, out := quiet(t, "binlog", "--datadir", dir, "list"); code != 0 || !strings.Contains(out, "binlog.000001") {
		t.Error(code, out)
	}
	if now := copiesIn(t, dir); len(left) != 1 || len(now) != 1 || now[0] == left[0] {
		t.Errorf("%v was left, and there is %v while one runs", left, now)
	}
	_ = runs.Process.Signal(syscall.SIGTERM)
	_ = runs.Wait()
	if now := copiesIn(t, dir); len(now) != 0 {
		t.Errorf("%v is left", now)
	}
}

package sql

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// get asks a node's HTTP port.
func get(n *servers.Node, path string) (int, string) {
	c := http.Client{Timeout: 5 * time.Second}
	defer c.CloseIdleConnections()
	r, err := c.Get(fmt.Sprintf("http://127.0.0.1:%d/%s", n.HTTP, path))
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = r.Body.Close() }()
	b, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(b)
}

// succeed runs a subcommand that has to succeed.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	out, err := trireme(args...)
	if err != nil {
		t.Fatalf("trireme %v: %v\n%s", args, err, out)
	}
	return out
}

// TestMajorityLost: all processes end at once under load and two of three directories are gone, as
// docs/operations-group.md has it, with its steps: the third one becomes a new group with everything that was
// acknowledged and that it had, others join that one, and what comes back of the old group is refused.
func TestMajorityLost(t *testing.T) {
	t.Parallel()
	seeds := plan(t)
	g := newGroup(t, servers.Options{})
	db := servers.Open(t, g.Nodes[0].DSN("", limits))
	run(t, db, "CREATE DATABASE b", "CREATE TABLE b.t (id INT PRIMARY KEY, v LONGTEXT, KEY (v(20)))")
	rows := func(n *servers.Node) string {
		got, err := servers.Rows(servers.Open(t, n.ReadDSN("", limits)), "SELECT id, v FROM b.t ORDER BY id")
		if err != nil {
			return err.Error()
		}
		return got
	}
	work := changeRows(t, openClient(t, g), seeds)
	time.Sleep(*duration / 2)
	work.end()
	caughtUp(t, g, "SELECT id, v FROM b.t ORDER BY id") // what only the lost had would be lost with them
	last := work.history[len(work.history)-1].gtid
	want := work.until(last)
	left := g.Nodes[seeds.IntN(3)]
	lost := slices.DeleteFunc(slices.Clone(g.Nodes), func(n *servers.Node) bool { return n == left })
	g.Kill()
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.Rename(lost[1].Dir, copied); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(lost[0].Dir); err != nil {
		t.Fatal(err)
	}

	// The survivor says what is the matter, and can be backed up.
	start(t, left)
	eventually := func(what string, fn func() error) {
		t.Helper()
		var err error
		for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
			if err = fn(); err == nil {
				return
			}
		}
		t.Fatalf("%s: %v", what, err)
	}
	eventually("/readyz", func() error {
		if code, text := get(left, "readyz"); code == http.StatusOK || !strings.Contains(text, "no majority: 1 of 3 voters answer") || !strings.Contains(text, "When the majority is lost") {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
	for _, args := range [][]string{{"status", fmt.Sprintf("--http=127.0.0.1:%d", left.HTTP)}, {"admin", "status", fmt.Sprintf("--grpc=127.0.0.1:%d", left.GRPC)}} {
		if out, _ := trireme(args...); !strings.Contains(out, "no majority: 1 of 3 voters answer") {
			t.Errorf("%v says %s", args, out)
		}
	}
	backup := filepath.Join(t.TempDir(), "backup")
	succeed(t, "backup", fmt.Sprintf("--grpc=127.0.0.1:%d", left.GRPC), backup)
	succeed(t, "restore", "--check", "--from", backup)
	if out, err := trireme("regroup", "--datadir="+left.Dir); err == nil || !strings.Contains(out, "stop the node first") {
		t.Errorf("while it runs: %v\n%s", err, out)
	}
	left.Kill()

	out := succeed(t, "regroup", "--check", "--datadir="+left.Dir)
	if !strings.Contains(out, fmt.Sprintf(":%d, of 2", last)) || !strings.Contains(out, "Nothing was changed") {
		t.Errorf("the last acknowledged transaction is %d\n%s", last, out)
	}
	t.Log(out)
	out = succeed(t, "regroup", "--datadir="+left.Dir)
	t.Log(out)
	aside, err := filepath.Glob(filepath.Join(left.Dir, "before-regroup.*"))
	if err != nil || len(aside) != 1 {
		t.Fatalf("%v, %v", aside, err)
	}
	// The old log can be read where it is, and restored behind an older backup.
	if out := succeed(t, "binlog", "--datadir="+aside[0], "verify"); out == "" {
		t.Error("the old log is not read")
	}
	old := filepath.Join(t.TempDir(), "old")
	if out := succeed(t, "restore", "--from="+backup, "--log="+aside[0], "--datadir="+old, "--peer-address=127.0.0.1:1"); !strings.Contains(out, fmt.Sprintf("restored to transaction %d", last)) {
		t.Error(out)
	}

	// What is left of the old group comes back before the others do, and does not keep them from joining.
	if err := os.Rename(copied, lost[1].Dir); err != nil {
		t.Fatal(err)
	}
	start(t, lost[1])
	start(t, left)
	eventually("all rows", func() error {
		if err := left.Await(patience); err != nil {
			return err
		}
		if got := rows(left); got != want {
			return fmt.Errorf("the table has %d bytes: %.300q\nit had %d bytes: %.300q", len(got), got, len(want), want)
		}
		return nil
	})
	start(t, lost[0])
	eventually("the first joins", func() error {
		if err := lost[0].Await(patience); err != nil {
			return err
		}
		if code, text := get(lost[0], "readyz"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
	eventually("the old one says whose it is", func() error {
		if words := lost[1].LastWords(); !strings.Contains(words, "belongs to group") || !strings.Contains(words, "empty its directories") {
			return fmt.Errorf("%s", words)
		}
		return nil
	})
	run(t, servers.Open(t, left.DSN("b", limits)), "INSERT INTO t (id, v) VALUES (-1, 'new') ON DUPLICATE KEY UPDATE v = 'new'")
	if got := rows(lost[1]); strings.Contains(got, "-1\tnew\n") {
		t.Error("the old member was given what the new group has")
	}
	lost[1].Kill()
	if err := os.RemoveAll(lost[1].Dir); err != nil {
		t.Fatal(err)
	}
	start(t, lost[1])
	await(t, g)
	caughtUp(t, g, "SELECT id, v FROM b.t ORDER BY id")
	eventually("all three vote", func() error {
		out, err := trireme("status", fmt.Sprintf("--http=127.0.0.1:%d", left.HTTP))
		if err != nil || strings.Contains(out, "learner") || strings.Count(out, "ONLINE") != 3 {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	})
	// It bears the loss of one, whichever it is.
	leader(t, g).Kill()
	for _, n := range g.Nodes {
		if n.Process() != nil {
			if err := n.Await(patience); err != nil {
				t.Error(err)
			}
		}
	}
	if err := g.Stop(patience); err != nil {
		t.Error(err)
	}
	for _, n := range g.Nodes {
		if out, err := trireme("check", "--datadir="+n.Dir); err != nil {
			t.Errorf("node %d: %v\n%s", n.Number, err, out)
		}
	}
}

package sql

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// metric is what a node tells at /metrics; ok is false if it does not.
func metric(t *testing.T, n *servers.Node, name string) (value float64, ok bool) {
	t.Helper()
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", n.HTTP))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if text, found := strings.CutPrefix(line, name+" "); found {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			return value, true
		}
	}
	return 0, false
}

const (
	backupWhole  = "trireme_backup_last_success_timestamp_seconds"
	backupFailed = "trireme_backup_last_failure_timestamp_seconds"
	backupSize   = "trireme_backup_last_size_bytes"
)

// TestBackupsAreRemembered: all members tell the same of backups that one of them gave, also after all were started
// anew; a group that is made of one has had none.
func TestBackupsAreRemembered(t *testing.T) {
	t.Parallel()
	g := newGroup(t, servers.Options{})
	db := openClient(t, g)
	if _, err := db.Exec(t.Context(), "CREATE DATABASE b"); err != nil {
		t.Fatal(err)
	}
	lead := leader(t, g)
	follower := g.Nodes[slices.IndexFunc(g.Nodes, func(n *servers.Node) bool { return n != lead })]
	shelf := filepath.Join(t.TempDir(), "backups")
	// tell waits until every node tells the same of a metric, which is another than before.
	tell := func(name string, before float64) float64 {
		t.Helper()
		for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			var all []float64
			for _, n := range g.Nodes {
				if v, ok := metric(t, n, name); ok && v != before {
					all = append(all, v)
				}
			}
			if len(all) == len(g.Nodes) && slices.Max(all) == slices.Min(all) {
				return all[0]
			}
			if time.Now().After(until) {
				t.Fatalf("of %s nodes tell %v, after %v", name, all, before)
			}
		}
	}
	silent := func(g *servers.Group, names ...string) {
		t.Helper()
		for _, n := range g.Nodes {
			for _, name := range names {
				if v, ok := metric(t, n, name); ok {
					t.Errorf("node %d tells %s = %v", n.Number, name, v)
				}
			}
		}
	}
	backup := func(into string) error {
		out, err := trireme("backup", "--into="+into, "--keep=1", fmt.Sprintf("--grpc=127.0.0.1:%d", follower.GRPC))
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		return err
	}
	silent(g, backupWhole, backupFailed, backupSize)
	if err := backup(filepath.Join(binary, "backups")); err == nil {
		t.Fatal("a backup was made in a file")
	}
	failed := tell(backupFailed, 0)
	silent(g, backupWhole)
	if err := backup(shelf); err != nil {
		t.Fatal(err)
	}
	whole := tell(backupWhole, 0)
	if whole <= failed || tell(backupSize, 0) < 1000 {
		t.Errorf("one has failed at %v, the next was whole at %v", failed, whole)
	}
	if err := backup(shelf); err != nil {
		t.Fatal(err)
	}
	again := tell(backupWhole, whole)
	if err := g.Stop(patience); err != nil {
		t.Fatal(err)
	}
	if err := g.Start(patience); err != nil {
		t.Fatal(err)
	}
	if v := tell(backupWhole, whole); v != again {
		t.Errorf("after a restart the last backup is of %v instead of %v", v, again)
	}
	if v := tell(backupFailed, 0); v != failed {
		t.Errorf("after a restart the last failure is of %v instead of %v", v, failed)
	}
	if err := backup(shelf); err != nil { // which has what the group remembers
		t.Fatal(err)
	}
	made, err := filepath.Glob(filepath.Join(shelf, "*Z"))
	if err != nil || len(made) != 1 {
		t.Fatalf("there are %v (%v)", made, err)
	}
	other, err := servers.New(servers.Options{Binary: binary, Dir: t.TempDir(), Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	n := other.Nodes[0]
	if out, err := trireme("restore", "--from="+made[0], "--datadir="+n.Dir, fmt.Sprintf("--peer-address=127.0.0.1:%d", n.Peers)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	servers.Start(t, other)
	silent(other, backupWhole, backupFailed, backupSize)
}

package sql

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/triremedb/trireme/e2e/servers"
)

// TestBackupOfCutOffMember: a member that hears no leader gives no backup that takes the place of better ones, unless it is told
// to; then better ones stay, and the run fails. Of several members one that hears the leader is asked. Into a directory of its
// own it gives what it has, and a warning.
func TestBackupOfCutOffMember(t *testing.T) {
	t.Parallel()
	g := newGroup(t, servers.Options{})
	db := openClient(t, g)
	write := func(text string) {
		t.Helper()
		if _, err := db.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	write("CREATE DATABASE b")
	lead := leader(t, g)
	away := g.Nodes[slices.IndexFunc(g.Nodes, func(n *servers.Node) bool { return n != lead })]
	if err := away.Stop(patience); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		write(fmt.Sprintf("CREATE DATABASE c%d", i))
	}
	shelf := filepath.Join(t.TempDir(), "backups")
	backup := func(args ...string) (string, error) {
		return trireme(append([]string{"backup"}, args...)...)
	}
	of := func(nodes ...*servers.Node) string {
		var all []string
		for _, n := range nodes {
			all = append(all, fmt.Sprintf("127.0.0.1:%d", n.GRPC))
		}
		return "--grpc=" + strings.Join(all, ",")
	}
	made := func(want int) []string {
		t.Helper()
		names, err := filepath.Glob(filepath.Join(shelf, "*Z*"))
		if err != nil || len(names) != want {
			t.Fatalf("there are %v (%v)", names, err)
		}
		return names
	}
	if out, err := backup("--into="+shelf, "--keep=1", of(lead)); err != nil || !strings.Contains(out, "had all that the group had agreed on") {
		t.Fatalf("%v\n%s", err, out)
	}
	best := made(1)[0]
	var others []*servers.Node
	for _, n := range g.Nodes {
		if n != away {
			others = append(others, n)
			n.Signal(syscall.SIGSTOP)
		}
	}
	if err := away.StartAgain(); err != nil {
		t.Fatal(err)
	}
	out, err := backup("--into="+shelf, "--keep=1", of(away))
	for until := time.Now().Add(patience); strings.Contains(out, "does not answer") && time.Now().Before(until); {
		time.Sleep(100 * time.Millisecond) // it is still being started
		out, err = backup("--into="+shelf, "--keep=1", of(away))
	}
	if err == nil || !strings.Contains(out, "hears no leader") || !strings.Contains(out, "--stale") {
		t.Errorf("%v\n%s", err, out)
	}
	if names := made(1); names[0] != best {
		t.Errorf("there is %v instead of %s", names, best)
	}
	dir := filepath.Join(t.TempDir(), "last")
	if out, err := backup(of(away), dir); err != nil || !strings.Contains(out, "warning: the backup may lack what other members have") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := trireme("restore", "--check", "--from", dir); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = backup("--into="+shelf, "--keep=1", "--stale", of(away))
	if err == nil || !strings.Contains(out, "has less than one that was made before") {
		t.Errorf("%v\n%s", err, out)
	}
	if names := made(2); !slices.Contains(names, best) {
		t.Errorf("there are %v without %s", names, best)
	}
	for _, n := range others {
		n.Signal(syscall.SIGCONT)
	}
	if err := g.Await(patience); err != nil {
		t.Fatal(err)
	}
	if out, err := backup("--into="+shelf, "--keep=1", of(away, lead)); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	made(1)
}

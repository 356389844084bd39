package group_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/discovery"
	"github.com/triremedb/trireme/replication/group"
)

// TestOtherCluster: a member's directory is refused to a node that is set up for another cluster, which hears
// both names and what to do; a directory that does not say its cluster learns it.
func TestOtherCluster(t *testing.T) {
	r := closedRig(t, 3)
	r.bootstrap(false, 0, 1, 2)
	id := r.nodes[0].Group()
	r.stop(0)
	named := func(name string) (*group.Node, error) {
		o := r.bootstrapped(0, false)
		static, err := discovery.NewStatic(name, r.addrs[:3])
		if err != nil {
			t.Fatal(err)
		}
		o.Bootstrap.Discovery, o.Bootstrap.Name = static, name
		return group.Open(o)
	}
	for range 2 {
		n, err := named("other")
		if err == nil {
			_ = n.Close()
			t.Fatal("the directory of another cluster was taken")
		}
		for _, part := range []string{`cluster "fleet"`, `cluster_name is "other"`, "set cluster_name=fleet"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the refusal does not say %q: %v", part, err)
			}
		}
		r.bootstrap(false, 0)
		r.stop(0)
	}
	path := filepath.Join(r.dirs[0], "cluster")
	if err := os.Remove(path); err != nil { // as an older program has left it
		t.Fatal(err)
	}
	n, err := named("other")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil || n.Group() != id {
		t.Errorf("%x, %v", n.Group(), err)
	}
	if _, err := named("fleet"); err == nil || !strings.Contains(err.Error(), "set cluster_name=other") {
		t.Errorf("the new name is not kept: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := file.WriteWhole(file.OS(r.dirs[0]), "cluster", []byte("00000000-0000-4000-8000-000000000000 past")); err != nil {
		t.Fatal(err)
	}
	if n, err = named("fleet"); err != nil { // of the group that this one was made of
		t.Fatal(err)
	}
	r.nodes[0] = n
	if errors.Is(n.Err(), group.ErrStopped) {
		t.Error(n.Err())
	}
}

//go:build kubernetes

package kubernetes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// plugin makes the image's program kubectl's plugin, and returns what calls kubectl.
func (g *group) plugin() func(args ...string) (string, error) {
	g.t.Helper()
	dir := filepath.Join(g.dir, "plugin")
	tools, err := filepath.Abs(g.tools)
	g.must(err)
	g.must(os.RemoveAll(dir))
	g.must(os.MkdirAll(dir, 0o755))
	g.must(os.Symlink(g.program, filepath.Join(dir, "kubectl-trireme")))
	g.must(os.WriteFile(filepath.Join(dir, "kubectl"), []byte("#!/bin/sh\nexec "+tools+"/kube kubectl \"$@\"\n"), 0o755))
	return func(args ...string) (string, error) {
		cmd := exec.Command(filepath.Join(dir, "kubectl"), append([]string{"trireme", "-n", namespace}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "KUBECONFIG="+g.cluster.admin, "HOME="+g.dir, "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("kubectl trireme %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return string(out), err
	}
}

// lookedAfter does by kubectl's plugin what a person does who looks after the group.
func (g *group) lookedAfter(t *testing.T, _ *bank) string {
	trireme := g.plugin()
	has := func(want string, args ...string) {
		t.Helper()
		out, err := trireme(args...)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%s has no %q (%v):\n%s", strings.Join(args, " "), want, err, out)
		}
	}
	// A member that a busy machine keeps from answering at once is told as one that does not.
	g.eventually("status shows the group as whole", func() error {
		out, err := trireme("status")
		if err == nil && (!strings.Contains(out, name+"-2  ") || !strings.Contains(out, "leader")) {
			err = fmt.Errorf("no pod 2, or no leader:\n%s", out)
		}
		return err
	})
	has("41 + 1\n42", "sql", "-e", "SELECT 41 + 1")
	has("max_connections", "admin", "settings", "max_connections")
	has("["+"pod/"+name+"-1/trireme]", "logs", "--tail=1")
	if out, err := trireme("sql", "-e", "SELECT nonsense"); err == nil || !strings.Contains(out, "1054") {
		t.Errorf("a wrong statement: %s", out)
	}
	if _, err := trireme("-n", "elsewhere", "status"); err == nil {
		t.Error("there is a group elsewhere")
	}
	other := g.follower()
	has("", "switchover", other.Meta.Name)
	g.eventually(other.Meta.Name+" leads", func() error {
		if l := g.leader(); l.Meta.UID != other.Meta.UID {
			return fmt.Errorf("%s does", l.Meta.Name)
		}
		return nil
	})
	has("bundle.tar.gz", "support-bundle", "bundle.tar.gz")
	files, err := exec.Command("tar", "-xzOf", filepath.Join(g.dir, "plugin", "bundle.tar.gz")).Output()
	g.must(err)
	if strings.Contains(string(files), g.password) {
		t.Error("root's password is in the bundle")
	}
	for _, want := range []string{"trireme_group_term", `"member":`, "kind: StatefulSet", "max_connections"} {
		if !strings.Contains(string(files), want) {
			t.Errorf("the bundle has no %s", want)
		}
	}
	g.whole(3)
	return ""
}

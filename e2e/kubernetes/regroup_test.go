//go:build kubernetes

package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// documentedJob is the Job of docs/operations-kubernetes.md that regroups the survivor's claim, for the image of
// this run and a claim.
func (g *group) documentedJob(claim string) (file string) {
	g.t.Helper()
	doc, err := os.ReadFile("../../docs/operations-kubernetes.md")
	g.must(err)
	_, section, _ := strings.Cut(string(doc), "## When the majority is lost")
	_, job, ok := strings.Cut(section, "```yaml\n")
	job, _, ends := strings.Cut(job, "```")
	if !ok || !ends || !strings.Contains(job, "kind: Job") {
		g.t.Fatal("the documentation has no Job for a majority that is lost")
	}
	job = regexp.MustCompile(`(?m)^   `).ReplaceAllString(job, "")
	for was, now := range map[string]string{"registry.example.com/trireme:0.1.0": repository + ":" + version, "data-db-trireme-2": claim} {
		if !strings.Contains(job, was) {
			g.t.Fatalf("the documented Job does not say %s", was)
		}
		job = strings.ReplaceAll(job, was, now)
	}
	file = filepath.Join(g.t.(*testing.T).TempDir(), "regroup.yaml")
	g.must(os.WriteFile(file, []byte(job), 0o600))
	return file
}

// replicas scales the set by hand.
func (g *group) replicas(n int) {
	g.t.Helper()
	g.kubectl("-n", namespace, "scale", "statefulset/"+name, fmt.Sprintf("--replicas=%d", n))
}

// majorityLost destroys two of three claims under load, and follows what the documentation says: the third one, which
// is not the first pod's, becomes a new group with all that was acknowledged, and the others join it.
func (g *group) majorityLost(t *testing.T, b *bank) string {
	// The survivor leads, so that it has everything that is acknowledged, and is not the first.
	left := g.leader()
	for left.Meta.Name == name+"-0" {
		other := g.follower()
		r, err := g.status(&other)
		g.must(err)
		g.must(g.admin(left, "transfer", fmt.Sprint(r.Member)))
		left = g.leader()
	}
	was, err := g.status(left)
	g.must(err)
	// All at once: who can still say that it goes is waited for, and its place is taken by another in time.
	var lost []pod
	var claims []string
	for _, p := range g.members() {
		if p.Meta.Name != left.Meta.Name {
			lost, claims = append(lost, p), append(claims, "data-"+p.Meta.Name)
			g.must(g.machineOf(&p).signal(&p, "/trireme", syscall.SIGSTOP))
		}
	}
	for i := range lost {
		g.must(g.api.remove("/api/v1/namespaces/" + namespace + "/persistentvolumeclaims/" + claims[i]))
		g.must(g.api.remove(g.podPath(lost[i].Meta.Name)))
	}
	for i := range lost {
		g.must(g.machineOf(&lost[i]).kill(&lost[i], "/trireme"))
		g.gone(&lost[i])
	}
	began := time.Now()

	// It says what is the matter. Empty volumes neither join nor found anything.
	g.eventually("the survivor says that there is no majority", func() error {
		out, _ := exec.Command(g.program, "status", "--http="+left.Status.IP+":18080").CombinedOutput()
		if !strings.Contains(string(out), "no majority: 1 of 3 voters answer") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	g.eventually("its log points to the documentation", func() error {
		if said := g.kubectl("-n", namespace, "logs", left.Meta.Name); !strings.Contains(said, "When the majority is lost") {
			return errors.New("it does not")
		}
		return nil
	})

	// Step 2.
	saved := filepath.Join(t.TempDir(), "survivor")
	g.must(g.admin(left, "backup", saved))
	if out, err := exec.Command(g.program, "restore", "--check", "--from="+saved).CombinedOutput(); err != nil {
		t.Errorf("the backup of the survivor: %v\n%s", err, out)
	}

	// Step 3.
	g.replicas(0)
	g.eventually("all pods have ended", func() error {
		if pods := g.members(); len(pods) > 0 {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
	g.kubectl(append([]string{"-n", namespace, "delete", "pvc"}, claims...)...)

	// An empty volume that is there alone founds nothing.
	g.replicas(1)
	g.eventually(name+"-0 waits", func() error {
		out, err := g.tool("kube", "kubectl", "-n", namespace, "logs", name+"-0")
		if err != nil || !strings.Contains(out, "a group is founded only when all its founders have answered") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	g.replicas(0)
	g.eventually("it has ended", func() error {
		if pods := g.members(); len(pods) > 0 {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})

	// Steps 4 and 5.
	g.kubectl("apply", "-f", g.documentedJob("data-"+left.Meta.Name))
	g.kubectl("-n", namespace, "wait", "--for=condition=complete", "--timeout=4m", "job/db-regroup")
	said := g.kubectl("-n", namespace, "logs", "job/db-regroup")
	t.Log(said)
	if !strings.Contains(said, "goes up to") || !strings.Contains(said, "the only one, of the new group") || !strings.Contains(said, left.Meta.Name+"."+name+"-peers") {
		t.Errorf("the Job says %s", said)
	}
	g.kubectl("-n", namespace, "delete", "job", "db-regroup")
	g.replicas(3)
	g.whole(3)
	took := time.Since(began)
	for _, p := range g.members() {
		r, err := g.status(&p)
		g.must(err)
		for _, m := range was.Members {
			if r.Member == m.ID {
				t.Errorf("%s is member %d, as in the old group", p.Meta.Name, r.Member)
			}
		}
	}
	b.goesOn()
	return fmt.Sprintf(", %s of them by the steps of the documentation", round(took))
}

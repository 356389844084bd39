//go:build kubernetes

package kubernetes

import (
	"database/sql"
	"encoding/json"
	"errors"
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

// copied is the release that begins with a backup of the other one.
const copied = "copy"

// restored switches backups on, makes one under load, and lets a new release of another name and size begin with it.
func (g *group) restored(t *testing.T, b *bank) string {
	g.upgrade("--set=backup.enabled=true,backup.persistence.size=1Gi,backup.suspend=true") // and waits: for the claim, too
	g.whole(3)
	b.goesOn()
	acked, letGo := b.hold()
	acked = slices.Clone(acked)
	letGo()
	b.goesOn()
	g.kubectl("-n", namespace, "create", "job", "--from=cronjob/"+name+"-backup", "backup-now")
	g.kubectl("-n", namespace, "wait", "--for=condition=complete", "--timeout=4m", "job/backup-now")
	b.goesOn()
	g.eventually("all members tell of the backup", func() error {
		for _, p := range g.members() {
			if text, err := g.metrics(&p); err != nil || !strings.Contains(text, "\ntrireme_backup_last_success_timestamp_seconds ") {
				return fmt.Errorf("%s does not: %w", p.Meta.Name, errors.Join(err, errors.New("it tells of none")))
			}
		}
		return nil
	})

	g.restoredAtLast(t, acked)
	began := time.Now()
	c := *g // the copy
	values := []string{"--namespace=" + namespace, "--set=restore.from=" + name + "/latest,restore.existingClaim=" + name + "-backup",
		"--set=persistence.size=30Gi,resources.requests.memory=1Gi,resources.limits.memory=1Gi"}
	stopped := make(chan []string)
	go func() { stopped <- g.stopEach(copied+"-trireme-restore", copied+"-trireme-restore-data") }()
	g.helm(append([]string{"install", copied, chartDir, "--wait", "--timeout=5m"}, values...)...)
	took := time.Since(began)
	if s := <-stopped; len(s) != 2 {
		t.Errorf("of the restore's pods only %q were deleted", s)
	}
	c.holds(t, acked)
	b.goesOn()
	for i := range 3 {
		var is claim
		g.must(g.api.get(fmt.Sprintf("/api/v1/namespaces/%s/persistentvolumeclaims/data-%s-trireme-%d", namespace, copied, i), &is))
		if size := is.Spec.Resources.Requests.Size; size != "30Gi" {
			t.Errorf("the claim %s has %s", is.Meta.Name, size)
		}
		// Up to where is lost with the words of a pod that was deleted a moment before its end.
		if done := is.Meta.Annotations["trireme.io/restore"]; strings.HasPrefix(done, "done: ") != (i == 0) {
			t.Errorf("the claim %s says %q of itself", is.Meta.Name, done)
		}
	}
	c.restoredOnce(t, acked, values)

	g.helm("uninstall", copied, "--namespace="+namespace, "--wait")
	g.kubectl("-n", namespace, "delete", "job", "backup-now")
	g.upgrade("--set=backup.enabled=false")
	g.whole(3)
	for _, name := range append(g.claimsOf("data-"+copied+"-"), name+"-backup") { // which stay
		g.kubectl("-n", namespace, "delete", "pvc", name, "--timeout=1m")
	}
	return fmt.Sprintf(", of which %s for the new release, until all of its members were ready", round(took))
}

// restoredAtLast makes a release whose restore fails, and makes up for it: by the same command with another backup, which is an upgrade for Helm. A
// release whose hooks did not run waits for a restore, and founds nothing.
func (g *group) restoredAtLast(t *testing.T, acked []int64) {
	t.Helper()
	const set = copied + "-trireme"
	c := *g
	with := func(from string, more ...string) []string {
		return append([]string{"upgrade", "--install", copied, chartDir, "--namespace=" + namespace, "--set=restore.from=" + from + ",restore.existingClaim=" + name + "-backup",
			"--set=resources.requests.memory=1Gi,resources.limits.memory=1Gi"}, more...)
	}
	remove := func() {
		g.helm("uninstall", copied, "--namespace="+namespace, "--wait")
		for _, claim := range g.claimsOf("data-" + copied + "-") {
			g.kubectl("-n", namespace, "delete", "pvc", claim, "--timeout=1m")
		}
	}
	if out, err := g.tool("helm", with(name+"/never", "--wait", "--timeout=5m")...); err == nil {
		t.Fatalf("a backup that is not there is restored:\n%s", out)
	}
	g.helm(with(name+"/latest", "--wait", "--timeout=5m")...)
	c.holds(t, acked)
	remove()

	g.helm(with(name+"/latest", "--no-hooks", "--set=root.existingSecret="+name+"-root,peerTLS.source=none")...)
	g.eventually("the release waits for its restore", func() error {
		out := g.kubectl("-n", namespace, "get", "events", "--field-selector=reason=FoundingWaits,involvedObject.name="+set)
		if !strings.Contains(out, "none was restored into the claim data-"+set+"-0") {
			return fmt.Errorf("there are %s", out)
		}
		return nil
	})
	remove()
}

// stopEach deletes the first pod of each of some Jobs when it runs, as a node that is drained or somebody in a hurry does, and returns whose.
func (g *group) stopEach(jobs ...string) (stopped []string) {
	for until := time.Now().Add(patience); time.Now().Before(until) && len(stopped) < len(jobs); time.Sleep(20 * time.Millisecond) {
		for _, job := range jobs {
			pods, err := g.pods(namespace, "batch.kubernetes.io/job-name="+job)
			if slices.Contains(stopped, job) || err != nil || len(pods) == 0 || pods[0].Status.Phase != "Running" {
				continue
			}
			if g.api.call(http.MethodDelete, g.podPath(pods[0].Meta.Name), nil, nil) == nil {
				stopped = append(stopped, job)
			}
		}
	}
	return stopped
}

// claimsOf are the claims whose names begin so.
func (g *group) claimsOf(prefix string) (names []string) {
	g.t.Helper()
	var all list[claim]
	g.must(g.api.get("/api/v1/namespaces/"+namespace+"/persistentvolumeclaims", &all))
	for _, c := range all.Items {
		if strings.HasPrefix(c.Meta.Name, prefix) {
			names = append(names, c.Meta.Name)
		}
	}
	return names
}

// metrics is what a member tells Prometheus.
func (g *group) metrics(p *pod) (string, error) {
	answer, err := g.http.Get("http://" + p.Status.IP + ":18080/metrics")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", errors.New(answer.Status)
	}
	b, err := io.ReadAll(answer.Body)
	return string(b), err
}

// holds demands that the copy's members hold what had been acknowledged before the backup, and nothing that does not
// add up; and their own root.
func (g *group) holds(t *testing.T, acked []int64) {
	t.Helper()
	pods, err := g.pods(namespace, "app.kubernetes.io/instance="+copied+",app.kubernetes.io/component=member")
	g.must(err)
	if len(pods) != 3 {
		t.Fatalf("the copy has %d pods", len(pods))
	}
	var secret struct {
		Data map[string][]byte `json:"data"`
	}
	g.must(g.api.get("/api/v1/namespaces/"+namespace+"/secrets/"+copied+"-trireme-root", &secret))
	g.password = string(secret.Data["root-password"])
	for _, p := range pods {
		db, err := sql.Open("mysql", g.dsn(&p))
		g.must(err)
		var got [2]string
		g.eventually(p.Meta.Name+" answers", func() error {
			for i, query := range []string{"SELECT id, balance FROM bank.account ORDER BY id", "SELECT id, source, target, amount FROM bank.ledger ORDER BY id"} {
				if got[i], err = servers.Rows(db, query); err != nil {
					return err
				}
			}
			return nil
		})
		g.must(db.Close())
		g.audit(got[0], got[1], acked)
	}
}

// restoredOnce does to the copy what must not restore it once more: an upgrade with the same values, the hooks as tools
// that take each change for an installation apply them, and these while the first member has lost its volume.
func (g *group) restoredOnce(t *testing.T, acked []int64, values []string) {
	t.Helper()
	g.helm(append([]string{"upgrade", copied, chartDir, "--wait", "--timeout=5m", "--reuse-values"}, values[:1]...)...)
	group := g.groupOf(copied + "-trireme-1")
	manifests, err := g.tool("helm", append([]string{"template", copied, chartDir, "--show-only=templates/restore.yaml"}, values...)...)
	g.must(err)
	file := filepath.Join(g.dir, "restore.yaml")
	g.must(os.WriteFile(file, []byte(manifests), 0o600))
	job := copied + "-trireme-restore"
	for _, lost := range []bool{false, true} {
		if lost {
			g.kubectl("-n", namespace, "delete", "pvc", "data-"+copied+"-trireme-0", "--wait=false")
			g.must(g.api.remove(g.podPath(copied + "-trireme-0")))
		}
		g.kubectl("-n", namespace, "apply", "-f", file)
		g.kubectl("-n", namespace, "wait", "--for=condition=complete", "--timeout=2m", "job/"+job)
		if out := g.kubectl("-n", namespace, "logs", "job/"+job); !strings.Contains(out, "the StatefulSet "+copied+"-trireme is there already: nothing is restored") {
			t.Errorf("the job says %s", out)
		}
		g.kubectl("-n", namespace, "delete", "-f", file, "--wait")
	}
	g.kubectl("-n", namespace, "rollout", "status", "statefulset/"+copied+"-trireme", "--timeout=4m")
	if now := g.groupOf(copied + "-trireme-0"); now != group {
		t.Errorf("the first member, whose volume was lost, is of group %s, and the others of %s", now, group)
	}
	g.holds(t, acked)
}

// groupOf is the group of a pod's member.
func (g *group) groupOf(name string) (id string) {
	g.t.Helper()
	g.eventually(name+" tells its group", func() error {
		var p pod
		if err := g.api.get(g.podPath(name), &p); err != nil {
			return err
		}
		answer, err := g.http.Get("http://" + p.Status.IP + ":18080/status")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		var s struct {
			Group string `json:"group"`
		}
		if err := json.NewDecoder(answer.Body).Decode(&s); err != nil || s.Group == "" {
			return fmt.Errorf("%q: %w", s.Group, errors.Join(err, errors.New("there is no group")))
		}
		id = s.Group
		return nil
	})
	return id
}

//go:build kubernetes

package kubernetes

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// lone is a release of one member and one read replica.
const lone = "lone"

// replicaIsLeft: of a release the only member's claim is lost while all sleeps, and the member is woken alone. It founds nothing beside the read replica's claim,
// whether there is a set of read replicas or none any more, says which claim it is, and goes on when that was deleted.
func (g *group) replicaIsLeft(t *testing.T, b *bank) string {
	const set = lone + "-trireme"
	values := []string{"--namespace=" + namespace, "--set=replicaCount=1,resources.requests.memory=1Gi,resources.limits.memory=1Gi"}
	one := "app.kubernetes.io/component=member,app.kubernetes.io/instance=" + lone
	g.helm(append([]string{"install", lone, chartDir, "--wait", "--timeout=5m", "--set=readReplicas.count=1"}, values...)...)
	g.eventually("the read replica is a member", func() error {
		pods, err := g.pods(namespace, one)
		if err != nil || len(pods) != 1 {
			return errors.Join(err, fmt.Errorf("there are %d members", len(pods)))
		}
		r, err := g.status(&pods[0])
		if err != nil || len(r.Members) != 2 {
			return errors.Join(err, fmt.Errorf("it knows %d members", len(r.Members)))
		}
		return nil
	})
	group := g.groupOf(set + "-0")
	asleep := func() {
		t.Helper()
		g.kubectl("-n", namespace, "scale", "statefulset/"+set, "--replicas=0")
		g.eventually("all pods of the release have ended", func() error {
			if pods, err := g.pods(namespace, "app.kubernetes.io/instance="+lone); err != nil || len(pods) > 0 {
				return errors.Join(err, fmt.Errorf("there are %d", len(pods)))
			}
			return nil
		})
	}
	g.kubectl("-n", namespace, "scale", "statefulset/"+set+"-read", "--replicas=0")
	asleep()
	g.kubectl("-n", namespace, "delete", "pvc", "data-"+set+"-0", "--timeout=1m")
	began := time.Now()
	for _, gone := range []bool{false, true} {
		if gone {
			asleep()
			g.kubectl("-n", namespace, "delete", "statefulset/"+set+"-read")
		}
		g.kubectl("-n", namespace, "scale", "statefulset/"+set, "--replicas=1")
		claim := "data-" + set + "-read-0"
		g.eventually("the member says what it waits for", func() error {
			out, err := g.tool("kube", "kubectl", "-n", namespace, "logs", set+"-0")
			if err == nil && !strings.Contains(out, "the claim "+claim+" of a read replica is there") {
				err = fmt.Errorf("it says %.2000s", out)
			}
			return err
		})
		g.eventually("an event says so", func() error {
			if out := g.kubectl("-n", namespace, "get", "events", "--field-selector=reason=FoundingWaits"); !strings.Contains(out, claim) {
				return fmt.Errorf("there are %s", out)
			}
			return nil
		})
		b.goesOn() // the other release
	}
	g.kubectl("-n", namespace, "delete", "pvc", "data-"+set+"-read-0", "--timeout=1m")
	g.eventually("the member founds a group", func() error {
		pods, err := g.pods(namespace, one)
		if err != nil || len(pods) != 1 || !pods[0].ready() {
			return errors.Join(err, errors.New("it is not ready"))
		}
		r, err := g.status(&pods[0])
		if err == nil && (len(r.Members) != 1 || !r.Status.Writable) {
			err = fmt.Errorf("it is %+v", r)
		}
		return err
	})
	took := time.Since(began)
	if g.groupOf(set+"-0") == group {
		t.Errorf("it is the group that was lost, %s", group)
	}
	g.helm("uninstall", lone, "--namespace="+namespace, "--wait")
	for _, name := range g.claimsOf("data-" + lone + "-") {
		g.kubectl("-n", namespace, "delete", "pvc", name, "--timeout=1m")
	}
	return fmt.Sprintf(", of which %s from when its claim was lost", round(took))
}

// repaired: a release whose pods ask for more than any node has founds nothing, and is made to run while all are stopped, which the check lets in since
// nobody has data. A claim that is deleted under its pod keeps the group from hibernating.
func (g *group) repaired(t *testing.T, b *bank) string {
	const set = lone + "-trireme"
	began := time.Now()
	of := []string{lone, chartDir, "--namespace=" + namespace, "--set=upgrade.check.waitSeconds=5,resources.limits.memory=768Mi,resources.requests.memory=128Mi"}
	members := "app.kubernetes.io/component=member,app.kubernetes.io/instance=" + lone
	g.helm(append([]string{"install"}, append(of, "--set=resources.requests.cpu=1000")...)...)
	g.eventually("no node has room", func() error {
		if out := g.kubectl("-n", namespace, "get", "pods", "-l", members); strings.Count(out, "Pending") != 3 {
			return fmt.Errorf("there are %s", out)
		}
		return nil
	})
	g.helm(append([]string{"upgrade"}, append(of, "--reuse-values", "--set=hibernate=true")...)...)
	g.eventually("no pod is left", func() error {
		if out := g.kubectl("-n", namespace, "get", "pods", "-l", members, "-o", "name"); strings.Contains(out, "pod/") {
			return fmt.Errorf("there are %s", out)
		}
		return nil
	})
	g.helm(append([]string{"upgrade"}, append(of, "--reuse-values", "--set=hibernate=false,resources.requests.cpu=50m")...)...)
	g.kubectl("-n", namespace, "rollout", "status", "statefulset/"+set, "--timeout=4m")
	took := time.Since(began)

	g.kubectl("-n", namespace, "delete", "pvc", "data-"+set+"-1", "--wait=false")
	out, err := g.tool("helm", append([]string{"upgrade"}, append(of, "--reuse-values", "--set=hibernate=true")...)...)
	if err == nil || !strings.Contains(out, "somebody has deleted data-"+set+"-1") {
		t.Errorf("it hibernates: %v\n%s", err, out)
	}
	g.eventually("an event tells of the claim", func() error {
		if out := g.kubectl("-n", namespace, "get", "events", "--field-selector=reason=ClaimDeleted"); !strings.Contains(out, "data-"+set+"-1") {
			return fmt.Errorf("there are %s", out)
		}
		return nil
	})
	g.kubectl("-n", namespace, "delete", "pod", set+"-1")
	g.kubectl("-n", namespace, "rollout", "status", "statefulset/"+set, "--timeout=4m")
	g.helm(append([]string{"upgrade"}, append(of, "--reuse-values", "--set=hibernate=true")...)...)
	b.goesOn()
	g.helm("uninstall", lone, "--namespace="+namespace, "--wait")
	for _, claim := range g.claimsOf("data-" + lone + "-") {
		g.kubectl("-n", namespace, "delete", "pvc", claim, "--timeout=1m")
	}
	return fmt.Sprintf(", of which %s until it ran", round(took))
}

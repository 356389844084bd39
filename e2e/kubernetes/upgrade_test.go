//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// refused runs a helm upgrade that must fail, having touched no pod, and say why.
func (g *group) refused(t *testing.T, says []string, args ...string) {
	t.Helper()
	before := g.fingerprint()
	out, err := g.tool("helm", append([]string{"upgrade", release, chartDir, "--namespace=" + namespace, "--reuse-values", "--wait", "--timeout=5m"}, args...)...)
	if err == nil {
		t.Fatalf("helm upgrade %v is not refused:\n%s", args, out)
	}
	for _, s := range says {
		if !strings.Contains(out, s) {
			t.Errorf("helm upgrade %v does not say %q:\n%s", args, s, out)
		}
	}
	if after := g.fingerprint(); !slices.Equal(before, after) {
		t.Errorf("helm upgrade %v is refused, and pods are %q, not %q", args, after, before)
	}
}

// fingerprint tells which pods there are, and how often they were started.
func (g *group) fingerprint() (all []string) {
	for _, p := range g.members() {
		all = append(all, incarnation(&p))
	}
	return all
}

func incarnation(p *pod) string {
	restarts := 0
	for _, c := range p.Status.Containers {
		restarts += c.Restarts
	}
	return fmt.Sprint(p.Meta.Name, " ", p.Meta.UID, " started again ", restarts, " times")
}

// revision is that of a release which is in force.
func (g *group) revision(release string) string { return g.revisionBefore(release, 0) }

// revisionBefore is the one that was in force so many upgrades ago. Those that were refused do not count.
func (g *group) revisionBefore(release string, back int) string {
	g.t.Helper()
	var all []struct {
		Revision int    `json:"revision"`
		Status   string `json:"status"`
	}
	g.must(json.Unmarshal([]byte(g.helm("history", release, "--namespace="+namespace, "--output=json")), &all))
	for _, r := range slices.Backward(all) {
		if r.Status != "deployed" && r.Status != "superseded" {
			continue
		}
		if back--; back < 0 {
			return strconv.Itoa(r.Revision)
		}
	}
	g.t.Fatalf("no such revision was in force: %v", all)
	return ""
}

// noJobs demands that no check is left of an upgrade that went well.
func (g *group) noJobs(t *testing.T) {
	t.Helper()
	var jobs list[struct {
		Meta meta `json:"metadata"`
	}]
	g.must(g.api.get("/apis/batch/v1/namespaces/"+namespace+"/jobs", &jobs))
	for _, j := range jobs.Items {
		t.Errorf("the job %s is left", j.Meta.Name)
	}
}

// usual is a pause of writes that a busy machine makes by itself.
const usual = 2 * time.Second

// badSetting: settings that no node starts with change nothing. Let in all the same they stop the member that is
// changed first, and no other: one that is killed meanwhile comes back by itself, with the settings that it had.
func (g *group) badSetting(t *testing.T, b *bank) string {
	good := g.revision(release)
	g.refused(t, []string{"there is no setting or variable bogus_setting"}, "--set=settings.bogus_setting=1")
	g.refused(t, []string{"max_connections cannot be"}, "--set=settings.max_connections=abc")
	g.refused(t, []string{"innodb_buffer_pool_size is 2G, but all memory"}, "--set=bufferPool=2G")
	if gap := b.goesOn(); gap > usual {
		t.Errorf("nothing was changed, and nothing was written for %v", gap)
	}

	before := g.members()
	g.helm("upgrade", release, chartDir, "--namespace="+namespace, "--reuse-values", "--no-hooks", "--set=settings.bogus_setting=1")
	last := before[len(before)-1]
	g.eventually(last.Meta.Name+" does not start", func() error {
		for _, p := range g.members() {
			if c := p.Status.Containers; p.Meta.Name == last.Meta.Name && p.Meta.UID != last.Meta.UID && len(c) == 1 && c[0].Restarts > 0 {
				return nil
			}
		}
		return errors.New("it has not tried yet")
	})
	b.goesOn()
	victim := before[0]
	g.must(g.machineOf(&victim).kill(&victim, "/trireme"))
	g.startedAgain(&victim)
	began := time.Now()
	g.eventually(victim.Meta.Name+" is ready again", func() error {
		for _, p := range g.members() {
			if p.Meta.UID == victim.Meta.UID && p.ready() {
				return nil
			}
		}
		return errors.New("it is not")
	})
	b.goesOn()
	back := time.Since(began)
	for _, p := range g.members()[:len(before)-1] {
		if !slices.ContainsFunc(before, func(was pod) bool { return was.Meta.UID == p.Meta.UID }) {
			t.Errorf("%s was started anew with the bad setting", p.Meta.Name)
		}
	}
	g.helm("rollback", release, good, "--namespace="+namespace, "--wait", "--timeout=5m")
	g.whole(3)
	return fmt.Sprintf("; the member that was killed was ready again after %s", round(back))
}

// nameRefused: an upgrade that would make an empty database in the place of this one changes nothing.
func (g *group) nameRefused(t *testing.T, b *bank) string {
	before := g.set().Meta.UID
	for _, other := range []string{"nameOverride=other", "fullnameOverride=other", "nameOverride=other,fullnameOverride=" + name} {
		g.refused(t, []string{"are called " + name, "make a new release from a backup"}, "--set="+other)
	}
	if g.set().Meta.UID != before {
		t.Error("the set is another one")
	}
	if gap := b.goesOn(); gap > usual {
		t.Errorf("nothing was changed, and nothing was written for %v", gap)
	}
	return ""
}

// upgradeWaits: with a member that cannot be placed, no other is stopped; the upgrade goes on when it is back.
func (g *group) upgradeWaits(t *testing.T, b *bank) string {
	away := g.follower()
	m := g.machineOf(&away)
	g.kubectl("cordon", m.name())
	g.must(g.api.remove(g.podPath(away.Meta.Name)))
	g.gone(&away)
	g.eventually(away.Meta.Name+" waits for a node", func() error {
		for _, p := range g.members() {
			if p.Meta.Name == away.Meta.Name && p.Meta.UID != away.Meta.UID && p.Status.Phase == "Pending" {
				return nil
			}
		}
		return errors.New("it does not")
	})
	const change = "--set=settings.max_connections=210"
	g.refused(t, []string{away.Meta.Name + " is away", "Repair it first", "--no-hooks"}, change, "--set=upgrade.check.waitSeconds=5")
	g.refused(t, []string{away.Meta.Name + " is away", "Repair it before 2 of 3 members are taken away"}, "--set=replicaCount=1", "--set=upgrade.check.waitSeconds=5")
	if gap := b.goesOn(); gap > usual {
		t.Errorf("nothing was changed, and nothing was written for %v", gap)
	}

	before := g.fingerprint()
	type ending struct {
		out string
		err error
	}
	ended := make(chan ending, 1)
	go func() {
		out, err := g.tool("helm", "upgrade", release, chartDir, "--namespace="+namespace, "--reuse-values", "--wait", "--timeout=5m", change)
		ended <- ending{out, err}
	}()
	time.Sleep(8 * time.Second)
	select {
	case e := <-ended:
		t.Fatalf("the upgrade does not wait: %v\n%s", e.err, e.out)
	default:
	}
	if now := g.fingerprint(); !slices.Equal(now, before) {
		t.Errorf("the upgrade waits, and pods are %q, not %q", now, before)
	}
	back := time.Now()
	g.kubectl("uncordon", m.name())
	if e := <-ended; e.err != nil {
		t.Fatal(e.err)
	}
	g.whole(3)
	g.noJobs(t)
	return fmt.Sprintf(", which is %s after it may be placed again", round(time.Since(back)))
}

// stoppedAndUpgraded: nobody answers where no members are to run, and an upgrade does not wait for them, nor does it
// fail since kubectl has set the number of pods. All data are there afterwards.
func (g *group) stoppedAndUpgraded(t *testing.T, _ *bank) string {
	g.kubectl("-n", namespace, "scale", "statefulset/"+name, "--replicas=0")
	g.asleep()
	began := time.Now()
	g.upgrade("--set=settings.max_connections=220")
	g.whole(3)
	g.noJobs(t)
	return fmt.Sprintf(", which is %s after the upgrade began", round(time.Since(began)))
}

// asleep waits until no pod is left. All claims have to be.
func (g *group) asleep() {
	g.t.Helper()
	g.eventually("all pods have ended", func() error {
		if pods := g.members(); len(pods) > 0 {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
	if c := g.claims(); len(c) != 3 {
		g.t.Fatalf("only the claims %v are left", c)
	}
}

// hibernated: a group sleeps by a value, and is woken by it.
func (g *group) hibernated(t *testing.T, _ *bank) string {
	g.upgrade("--set=hibernate=true")
	g.asleep()
	began := time.Now()
	g.upgrade("--set=hibernate=false")
	g.whole(3)
	g.noJobs(t)
	return fmt.Sprintf(", which is %s after it was woken", round(time.Since(began)))
}

// scaledByHand: an upgrade takes back what kubectl has scaled, and goes on with both the number and the rest.
func (g *group) scaledByHand(t *testing.T, _ *bank) string {
	g.kubectl("-n", namespace, "scale", "statefulset/"+name, "--replicas=5")
	g.whole(5)
	began := time.Now()
	g.upgrade("--set=settings.max_connections=230")
	g.consists(3)
	g.whole(3)
	g.noJobs(t)
	return fmt.Sprintf(", of which %s by the upgrade", round(time.Since(began)))
}

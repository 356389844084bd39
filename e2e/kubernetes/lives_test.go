//go:build kubernetes

package kubernetes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// lives are what happens to a group, each with what is measured of it.
func (g *group) lives(t *testing.T, b *bank, results *table) {
	for _, life := range []struct {
		name string
		run  func(t *testing.T, b *bank) string
	}{
		{"it is looked after by kubectl's plugin", g.lookedAfter},
		{"a setting is changed", g.settingChanged},
		{"a bad setting is refused; it rolls out without the check, and a member is killed", g.badSetting},
		{"another name is refused", g.nameRefused},
		{"an upgrade waits while a member is away", g.upgradeWaits},
		{"all members are stopped, and started by an upgrade", g.stoppedAndUpgraded},
		{"the group hibernates, and is woken", g.hibernated},
		{"kubectl scales to five, and an upgrade to three", g.scaledByHand},
		{"kubectl scales to one, and back before claims are gone", g.scaledAwayAndBack},
		{"volumes grow, and what cannot be is refused", g.volumesGrow},
		{"another image", g.imageChanged},
		{"back to the image before", g.rolledBack},
		{"root gets another password, and the release goes back", g.passwordChanged},
		{"the leader's pod is deleted", g.leaderDeleted},
		{"the leader's process is killed", g.leaderKilled},
		{"a follower is killed for want of memory", g.followerStarved},
		{"the leader is killed for want of memory", g.leaderStarved},
		{"the leader's node loses its power", g.powerLost},
		{"the leader's node is cut off", g.nodeCut},
		{"the others do not hear the leader", g.leaderUnheard},
		{"the leader's disk is full", g.diskFull},
		{"every node is drained", g.nodesDrained},
		{"all pods are deleted at once", g.allDeleted},
		{"a volume is lost", g.volumeLost},
		{"the only founder's volume is lost when there are three", g.founderLost},
		{"the first pod's volume is lost, and it alone is woken", g.wokenAlone},
		{"two of three volumes are lost", g.majorityLost},
		{"nothing but a read replica's volume is left of a release", g.replicaIsLeft},
		{"a release with too large requests is repaired", g.repaired},
		{"five members, and three again", g.scaled},
		{"two read replicas, and none", g.replicasComeAndGo},
		{"one member, and three again", g.scaledToOne},
		{"a setting is changed while a member is away", g.notRolledWhileAway},
		{"one member is wanted while that one is away", g.wantedAlone},
		{"five members, two stand still, and three", g.frozenScaledAway},
		{"certificates are renewed as by cert-manager", g.certificatesRenewed},
		{"certificates expire, and are replaced", g.certificatesExpired},
		{"a release of an older program is upgraded, and goes back", g.upgradedAndBack},
		{"a backup is made, and a new release begins with it", g.restored},
	} {
		if !regexp.MustCompile(*only).MatchString(life.name) {
			continue
		}
		passed := t.Run(life.name, func(t *testing.T) {
			outer := g.cluster.t
			g.cluster.t, b.t = t, t
			defer func() { g.cluster.t, b.t = outer, outer.(*testing.T) }()
			b.goesOn()
			b.mark()
			began := time.Now()
			said := life.run(t, b)
			took := time.Since(began)
			gap := b.goesOn()
			g.equal(b)
			results.add(t, life.name, round(gap), round(took)+said)
		})
		if !passed {
			t.FailNow() // what comes next begins with a group that is whole
		}
	}
}

func (g *group) settingChanged(_ *testing.T, _ *bank) string {
	g.upgrade("--set=settings.max_connections=200")
	g.whole(3)
	return ""
}

func (g *group) imageChanged(t *testing.T, _ *bank) string {
	loaded := g.k6(t)
	g.upgrade("--set=image.tag=" + nextTag)
	g.whole(3)
	for _, p := range g.members() {
		if image := p.Spec.Containers[0].Image; image != repository+":"+nextTag {
			t.Errorf("%s runs %s", p.Meta.Name, image)
		}
	}
	return loaded()
}

func (g *group) rolledBack(t *testing.T, _ *bank) string {
	g.helm("rollback", release, "--namespace="+namespace, "--wait", "--timeout=5m")
	g.whole(3)
	for _, p := range g.members() {
		if image := p.Spec.Containers[0].Image; image != repository+":"+version {
			t.Errorf("%s runs %s", p.Meta.Name, image)
		}
	}
	return ""
}

func (g *group) podPath(p string) string { return "/api/v1/namespaces/" + namespace + "/pods/" + p }

func (g *group) leaderDeleted(_ *testing.T, _ *bank) string {
	was := g.leader()
	g.must(g.api.remove(g.podPath(was.Meta.Name)))
	g.gone(was)
	g.whole(3)
	return ""
}

// gone waits until a pod is no more, another of its name or not.
func (g *group) gone(was *pod) {
	g.t.Helper()
	g.eventually(was.Meta.Name+" ends", func() error {
		for _, p := range g.members() {
			if p.Meta.UID == was.Meta.UID {
				return fmt.Errorf("it is %s", p.Status.Phase)
			}
		}
		return nil
	})
}

func (g *group) leaderKilled(_ *testing.T, _ *bank) string {
	was := g.leader()
	g.must(g.machineOf(was).kill(was, "/trireme"))
	g.startedAgain(was)
	g.whole(3)
	return ""
}

// startedAgain waits until a pod's container has been, and returns why that had ended.
func (g *group) startedAgain(was *pod) (reason string) {
	g.t.Helper()
	g.eventually("the kubelet sees it", func() error {
		for _, p := range g.members() {
			if c := p.Status.Containers; p.Meta.UID == was.Meta.UID && len(c) == 1 && c[0].Restarts > was.Status.Containers[0].Restarts {
				reason = c[0].Last.Terminated.Reason
				return nil
			}
		}
		return fmt.Errorf("no container has been started again")
	})
	return reason
}

// follower is a member that does not lead.
func (g *group) follower() (follower pod) {
	g.t.Helper()
	leader := g.leader()
	for _, p := range g.members() {
		if p.Meta.UID != leader.Meta.UID {
			follower = p
		}
	}
	return follower
}

func (g *group) followerStarved(t *testing.T, _ *bank) string {
	was := g.follower()
	return g.outOfMemory(t, &was)
}

func (g *group) leaderStarved(t *testing.T, _ *bank) string { return g.outOfMemory(t, g.leader()) }

func (g *group) outOfMemory(t *testing.T, was *pod) string {
	g.must(g.machineOf(was).starve(was, "/trireme"))
	if reason := g.startedAgain(was); reason != "OOMKilled" {
		t.Errorf("its container has ended as %q", reason)
	}
	g.whole(3)
	return ""
}

// leaderUnheard drops what the leader's pod sends to other members. It hears them, and programs
// reach it.
func (g *group) leaderUnheard(_ *testing.T, b *bank) string {
	was, all := g.leader(), g.members()
	m := g.machineOf(was)
	g.must(m.isolate(was, all, true))
	return g.without(b, "it was heard again", func() { g.must(m.isolate(was, all, false)) })
}

// diskFull fills the small disk, on which the leader is.
func (g *group) diskFull(_ *testing.T, b *bank) string {
	small := g.nodes[len(g.nodes)-1]
	var on pod
	for _, p := range g.members() {
		if p.Spec.Node == small.name() {
			on = p
		}
	}
	stands, err := g.status(&on)
	g.must(err)
	g.eventually(on.Meta.Name+" leads", func() error {
		l := g.leader()
		if l.Meta.UID == on.Meta.UID {
			return nil
		}
		return g.admin(l, "transfer", strconv.FormatUint(stands.Member, 10))
	})
	b.bear(1114) // the table is full: until another leads, as MySQL says it
	filler := filepath.Join(g.dir, "volumes", small.name(), "filler")
	out, _ := exec.Command("dd", "if=/dev/zero", "of="+filler, "bs=64k").CombinedOutput() // until there is no room
	if !strings.Contains(string(out), "No space left") {
		g.t.Fatalf("the disk is not full: %s", out)
	}
	b.goesOn()
	g.eventually(on.Meta.Name+" says that its disk is full", func() error {
		if r, err := g.status(&on); err != nil || r.Status.DiskFull {
			return err
		}
		return errors.New("it does not")
	})
	return g.without(b, "there was room again", func() {
		g.must(os.Remove(filler))
		g.eventually(on.Meta.Name+" has room", func() error {
			if r, err := g.status(&on); err != nil || !r.Status.DiskFull {
				return err
			}
			return errors.New("its disk is full")
		})
	})
}

// away is how long a node is gone, in which the others go on.
const away = 15 * time.Second

// without lets the others go on for a while and then ends what keeps a member away.
func (g *group) without(b *bank, end string, fn func()) string {
	g.t.Helper()
	b.goesOn()
	time.Sleep(away)
	back := time.Now()
	fn()
	g.whole(3)
	return fmt.Sprintf(", which is %s after %s", round(time.Since(back)), end)
}

func (g *group) powerLost(_ *testing.T, b *bank) string {
	m := g.machineOf(g.leader())
	m.powerOff()
	return g.without(b, "the node came back", func() {
		m.start()
		m.awaitReady(true)
	})
}

func (g *group) nodeCut(_ *testing.T, b *bank) string {
	m := g.machineOf(g.leader())
	m.pull()
	return g.without(b, "the cable was put in again", m.plug)
}

func (g *group) nodesDrained(_ *testing.T, _ *bank) string {
	for _, m := range g.nodes {
		g.kubectl("drain", m.name(), "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=3m")
		g.kubectl("uncordon", m.name())
		g.whole(3)
	}
	return ""
}

func (g *group) allDeleted(_ *testing.T, b *bank) string {
	old := map[string]bool{}
	for _, p := range g.members() {
		old[p.Meta.UID] = true
		g.must(g.api.remove(g.podPath(p.Meta.Name)))
	}
	var running time.Time
	g.eventually("a majority runs", func() error {
		n := 0
		for _, p := range g.members() {
			if !old[p.Meta.UID] && p.runs() {
				n++
			}
		}
		if n < 2 {
			return fmt.Errorf("%d containers run", n)
		}
		running = time.Now()
		return nil
	})
	b.goesOn()
	writable := time.Since(running)
	g.whole(3)
	return fmt.Sprintf("; writes %s after a majority ran", round(writable))
}

func (g *group) volumeLost(t *testing.T, _ *bank) string {
	g.lose(t, g.follower())
	return ""
}

// founderLost: a group of one is scaled by hand, so that the first pod, when it has lost its volume, is told to found a group alone. It
// joins the one that there is.
func (g *group) founderLost(t *testing.T, b *bank) string {
	g.upgrade("--set=replicaCount=1")
	g.whole(1)
	g.replicas(3)
	g.whole(3)
	for _, p := range g.members() {
		if strings.HasSuffix(p.Meta.Name, "-0") {
			g.lose(t, p)
		}
	}
	g.equal(b)
	g.upgrade("--set=replicaCount=3")
	g.whole(3)
	return ""
}

// scaledAwayAndBack takes the others away, and wants them again as soon as they have left: their claims are still there, or are
// being deleted. They come back as new members.
func (g *group) scaledAwayAndBack(t *testing.T, b *bank) string {
	r, err := g.status(g.leader())
	g.must(err)
	was := map[uint64]bool{}
	for _, m := range r.Members {
		was[m.ID] = true
	}
	g.replicas(1)
	g.eventually("the others have left", func() error {
		r, err := g.status(&g.members()[0])
		if err == nil && len(r.Members) != 1 {
			err = fmt.Errorf("there are %d members", len(r.Members))
		}
		return err
	})
	began := time.Now()
	g.replicas(3)
	g.whole(3)
	took := time.Since(began)
	r, err = g.status(g.leader())
	g.must(err)
	again := 0
	for _, m := range r.Members {
		if was[m.ID] {
			again++
		}
	}
	if again != 1 {
		t.Errorf("of the three members that there were, %d are there", again)
	}
	g.equal(b)
	g.upgrade("--set=replicaCount=3")
	return fmt.Sprintf(": %s back", round(took))
}

// wokenAlone: the pod that is to be the only founder has an empty volume, and the others, which have the data, do not run. It founds nothing.
func (g *group) wokenAlone(t *testing.T, b *bank) string {
	g.replicas(0)
	g.eventually("all pods have ended", func() error {
		if pods := g.members(); len(pods) > 0 {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
	g.must(g.api.remove("/api/v1/namespaces/" + namespace + "/persistentvolumeclaims/data-" + name + "-0"))
	g.refused(t, []string{"wake it with replicaCount=3"}, "--set=replicaCount=1")
	g.helm("upgrade", release, chartDir, "--namespace="+namespace, "--reuse-values", "--set=replicaCount=1,upgrade.check.group=false")
	g.eventually("the pod says what it waits for", func() error {
		out, err := g.tool("kube", "kubectl", "-n", namespace, "logs", name+"-0")
		if err == nil && !strings.Contains(out, "the claim data-"+name+"-1 is there") {
			err = fmt.Errorf("it says %.2000s", out)
		}
		return err
	})
	g.upgrade("--set=replicaCount=3,upgrade.check.group=false")
	g.whole(3)
	g.equal(b)
	g.upgrade("--set=upgrade.check.group=true")
	g.whole(3)
	return ""
}

// lose has a member lose its volume, and awaits it as another one.
func (g *group) lose(t *testing.T, lost pod) {
	was, err := g.status(&lost)
	g.must(err)
	g.must(g.api.remove("/api/v1/namespaces/" + namespace + "/persistentvolumeclaims/data-" + lost.Meta.Name))
	g.must(g.api.remove(g.podPath(lost.Meta.Name)))
	g.gone(&lost)
	g.whole(3)
	for _, p := range g.members() {
		if r, err := g.status(&p); p.Meta.Name == lost.Meta.Name && (err != nil || r.Member == was.Member) {
			t.Errorf("%s came back as member %d (%v)", p.Meta.Name, r.Member, err)
		}
	}
}

// scaled makes the group larger and smaller again: whoever is scaled away has left it.
func (g *group) scaled(_ *testing.T, b *bank) string { return g.scale(b, 5) }

func (g *group) scaledToOne(_ *testing.T, b *bank) string { return g.scale(b, 1) }

// scale lets the group have another number of members for a while.
func (g *group) scale(b *bank, members int) string {
	began := time.Now()
	g.upgrade(fmt.Sprintf("--set=replicaCount=%d", members))
	g.whole(members)
	there := time.Since(began)
	g.equal(b)
	began = time.Now()
	g.upgrade("--set=replicaCount=3")
	g.whole(3)
	return fmt.Sprintf(": %s there, %s back", round(there), round(time.Since(began)))
}

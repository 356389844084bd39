//go:build kubernetes

package kubernetes

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// life is what happens to a group a member of which may not be whole. It ends with as many members as
// combination.size says, which are whole once the fault is over.
type life struct {
	name string
	from int // how many members there are before
	kind kind
	do   func(c *combination)
}

type kind int

const (
	gentle kind = iota // no member is stopped while the group cannot do without it
	alone              // as well, but there is a time with one member
	abrupt             // members end, or cannot start, whatever the others do
)

// combined are the lives. Another number of them has to go through all faults as well (TestPlans).
var combined = []life{
	{"five members of three", 3, gentle, func(c *combination) { c.scaled(5) }},
	{"three members of five", 5, gentle, func(c *combination) { c.scaled(3) }},
	{"one member of three, and three", 3, alone, (*combination).aloneForAWhile},
	{"one member of five, and three", 5, alone, (*combination).aloneForAWhile},
	{"no member, and three", 3, abrupt, (*combination).noneForAWhile},
	{"a setting", 3, gentle, func(c *combination) {
		c.upgrade(fmt.Sprintf("--set=settings.max_connections=%d", 200+c.random.IntN(1000)))
	}},
	{"a bad setting, and back", 3, abrupt, func(c *combination) { c.badAndBack("--set=settings.bogus_setting=1") }},
	{"an image that is not there, and back", 3, abrupt, func(c *combination) { c.badAndBack("--set=image.tag=none") }},
	{"another image", 3, gentle, func(c *combination) { c.upgrade("--set=image.tag=" + c.otherTag()) }},
	{"another image, and back halfway", 3, gentle, (*combination).backHalfway},
	{"another password of root", 3, gentle, (*combination).passwordRotated},
	{"another authority of peers", 3, gentle, (*combination).authorityRotated},
	{"a node is drained", 3, gentle, (*combination).drained},
	{"a backup", 3, gentle, func(c *combination) { c.backUp(fmt.Sprintf("backup-%d", c.seed)) }},
	{"the leader's pod is deleted", 3, gentle, func(c *combination) { c.must(c.api.remove(c.podPath(c.leader().Meta.Name))) }},
	{"the leader's pod is deleted by force", 3, abrupt, func(c *combination) {
		c.kubectl("-n", namespace, "delete", "pod", c.leader().Meta.Name, "--force", "--grace-period=0")
	}},
	{"the leader's process is killed", 3, abrupt, func(c *combination) { l := c.leader(); c.note(c.machineOf(l).kill(l, "/trireme")) }},
	{"a follower is killed for want of memory", 3, abrupt, func(c *combination) { f := c.follower(); c.note(c.machineOf(&f).starve(&f, "/trireme")) }},
	{"a follower's claim is lost", 3, gentle, func(c *combination) { f := c.follower(); c.must(c.empty(&f)) }},
	{"the leader's claim is lost", 5, gentle, func(c *combination) { c.must(c.empty(c.leader())) }},
	{"all pods are deleted", 3, gentle, (*combination).deletedAll},
	{"the leader's node loses its power", 3, abrupt, (*combination).powerLostForAWhile},
	{"leadership goes round", 3, gentle, (*combination).leadershipGoesRound},
}

// upgrade changes values of the release. One that is refused since a member is not whole has changed nothing, and
// succeeds once it is.
func (c *combination) upgrade(args ...string) {
	c.t.Helper()
	all := append([]string{"upgrade", release, chartDir, "--namespace=" + namespace, "--reuse-values"}, args...)
	how := []string{"--wait", "--timeout=4m"}
	if !c.checked {
		how = []string{"--no-hooks"}
	}
	before := c.size
	out, err := c.tool("helm", slices.Concat(all, how)...)
	no := strings.Contains(out, "pre-upgrade hooks failed") || strings.Contains(out, "somebody has deleted data-")
	switch {
	case err == nil:
		return
	case !no || !c.disturbed():
		c.t.Fatalf("%v\n%s", err, out)
	}
	c.note(errors.New("refused at first"))
	<-c.over
	c.settled(before)
	c.helm(slices.Concat(all, how)...)
}

// scaled makes the group larger or smaller.
func (c *combination) scaled(members int) {
	c.t.Helper()
	c.upgrade(fmt.Sprintf("--set=replicaCount=%d", members))
	c.size = members
}

func (c *combination) aloneForAWhile() {
	c.scaled(1)
	c.consists(1)
	c.whole(1)
	c.scaled(3)
}

func (c *combination) noneForAWhile() {
	c.kubectl("-n", namespace, "scale", "statefulset/"+name, "--replicas=0")
	c.eventually("all pods have ended", func() error {
		if pods := c.group.members(); len(pods) > 0 {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
	if all := c.claims(); len(all) != 3 {
		c.t.Errorf("only the claims %v are left", all)
	}
	c.helm("upgrade", release, chartDir, "--namespace="+namespace, "--reuse-values", "--force-conflicts") // kubectl has set the number of pods
}

// badAndBack lets in what cannot run, if it is not refused, and goes back.
func (c *combination) badAndBack(value string) {
	good := c.revision(release)
	if c.checked {
		before := c.fingerprint()
		if out, err := c.tool("helm", "upgrade", release, chartDir, "--namespace="+namespace, "--reuse-values", "--wait", "--timeout=4m", value); err == nil {
			c.t.Fatalf("%s is not refused:\n%s", value, out)
		}
		if now := c.fingerprint(); !slices.Equal(before, now) && !c.disturbed() {
			c.t.Errorf("%s is refused, and pods are %q, not %q", value, now, before)
		}
		return
	}
	c.w.crash()
	c.helm("upgrade", release, chartDir, "--namespace="+namespace, "--reuse-values", "--no-hooks", value)
	c.eventually("a pod cannot start", func() error {
		for _, p := range c.group.members() {
			for _, s := range p.Status.Containers {
				if r := s.State.Waiting.Reason; r == "CrashLoopBackOff" || r == "ErrImagePull" || r == "ImagePullBackOff" || r == "ErrImageNeverPull" {
					return nil
				}
			}
		}
		return errors.New("all do")
	})
	c.helm("rollback", release, good, "--namespace="+namespace)
}

func (c *combination) otherTag() string {
	if strings.HasSuffix(c.group.members()[0].Spec.Containers[0].Image, nextTag) {
		return version
	}
	return nextTag
}

func (c *combination) backHalfway() {
	good := c.revision(release)
	c.helm("upgrade", release, chartDir, "--namespace="+namespace, "--reuse-values", "--no-hooks", "--set=image.tag="+c.otherTag())
	time.Sleep(time.Duration(c.random.IntN(15000)) * time.Millisecond)
	c.helm("rollback", release, good, "--namespace="+namespace)
}

// passwordRotated: what the Secret says is root's password.
func (c *combination) passwordRotated() {
	was := c.password
	password := fmt.Sprintf("root-Password-%d", time.Now().UnixNano())
	c.patchSecret(name+"-root", map[string][]byte{"root-password": []byte(password)})
	tries := 0
	c.eventually("root has the new password", func() error {
		if tries++; tries%100 == 1 {
			c.nudge(c.group.members()...)
		}
		return c.login(password)
	})
	c.group.password = password
	if err := c.login(was); err == nil {
		c.t.Errorf("root has the old password as well")
	}
}

// login tries a password of root's.
func (c *combination) login(password string) error {
	db, err := sql.Open("mysql", fmt.Sprintf("root:%s@tcp(%s.%s.svc.%s:3306)/?tls=skip-verify&timeout=2s&readTimeout=8s", password, name, namespace, domain))
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Ping()
}

// authorityRotated replaces the authority of the members' certificates, as it is done by hand: both are trusted,
// then the certificate is the new one's, then only that is trusted.
func (c *combination) authorityRotated() {
	was := c.secretData(peersSecret)["ca.crt"]
	k := c.authority()
	leaf := c.leaf(k)
	for _, step := range []map[string][]byte{
		{"ca.crt": bundle(was, leaf["ca.crt"])},
		{"tls.crt": leaf["tls.crt"], "tls.key": leaf["tls.key"]},
		{"ca.crt": leaf["ca.crt"]},
	} {
		c.patchSecret(peersSecret, step)
		c.arrived("peer-tls", step)
	}
	<-c.over // a member that stands still shows nothing
	c.eventually("members show the new certificate", func() error {
		for _, p := range c.group.members() { // what has waited for its node has an address only now
			if err := c.shows(&p, leaf["tls.crt"]); err != nil {
				return fmt.Errorf("%s: %w", p.Meta.Name, err)
			}
		}
		return nil
	})
}

// drained drains a node; the pod disruption budget may keep that from going on for a while.
func (c *combination) drained() {
	m := c.nodes[c.random.IntN(len(c.nodes))]
	_, err := c.tool("kube", "kubectl", "drain", m.name(), "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=200s")
	c.note(try(func() error { return c.cordon(m.name(), false) }))
	if err != nil {
		c.t.Error(err)
	}
}

// backUp runs the job for backups.
func (g *group) backUp(job string) {
	g.t.Helper()
	g.kubectl("-n", namespace, "create", "job", "--from=cronjob/"+name+"-backup", job)
	g.eventually("the backup is made", func() error {
		var j struct {
			Status struct {
				Conditions []condition `json:"conditions"`
			} `json:"status"`
		}
		if err := g.api.get("/apis/batch/v1/namespaces/"+namespace+"/jobs/"+job, &j); err != nil {
			return err
		}
		if holds(j.Status.Conditions, "Failed") {
			g.t.Fatalf("the backup has failed:\n%s", g.kubectl("-n", namespace, "logs", "job/"+job))
		}
		if !holds(j.Status.Conditions, "Complete") {
			return errors.New("it is not complete")
		}
		return nil
	})
	g.kubectl("-n", namespace, "delete", "job", job)
}

func (c *combination) deletedAll() {
	for _, p := range c.group.members() {
		c.must(c.api.remove(c.podPath(p.Meta.Name)))
	}
}

func (c *combination) powerLostForAWhile() {
	m := c.machineOf(c.leader())
	m.powerOff()
	time.Sleep(time.Duration(2000+c.random.IntN(10000)) * time.Millisecond)
	m.start()
	m.awaitReady(true)
}

// leadershipGoesRound hands leadership to each member; one that cannot take it does not get it.
func (c *combination) leadershipGoesRound() {
	for _, p := range c.group.members() {
		r, err := c.status(&p)
		if err != nil {
			continue
		}
		if err := c.admin(c.leader(), "transfer", strconv.FormatUint(r.Member, 10)); err != nil && !c.disturbed() {
			c.note(err)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

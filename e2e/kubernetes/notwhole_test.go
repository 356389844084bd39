//go:build kubernetes

package kubernetes

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// healMax is how long a group may take until it is whole once nothing keeps it from that: five members are
	// started anew one after the other in 60 s, and an operation that was refused is done only then.
	healMax = 2 * time.Minute
	// volumeSize is what each member's volume has: it is filled now and then.
	volumeSize = 768 << 20
	loadUser   = "load"
	loadSecret = "load-Secret-1"
)

// smallWaits are values by which a group waits for less time than by default, and for longer than a fault lasts.
var smallWaits = []string{
	"--set=upgrade.check.waitSeconds=3,upgrade.check.timeoutSeconds=40,shutdownSeconds=10,stopWaitSeconds=90",
	"--set=backup.enabled=true,backup.keep=1,backup.persistence.size=1Gi",
	"--set=resources.limits.memory=1Gi,resources.requests.memory=512Mi,resources.requests.cpu=50m,persistence.size=1Gi",
}

// plan is what a seed says: what happens to a group, and what keeps a member from being whole meanwhile.
type plan struct {
	seed   uint64
	life   *life
	fault  *fault
	victim string        // which member
	before bool          // the fault begins before
	moment time.Duration // of the fault's beginning, from that of the life
	lasts  time.Duration // the fault
	// checked says that Helm runs the check before upgrades, and waits for their end.
	checked bool
}

// draw makes a plan. Seeds that follow each other go through every life with every fault.
func draw(seed uint64) plan {
	l, f := uint64(len(combined)), uint64(len(faults))
	random := rand.New(rand.NewPCG(seed, 0))
	p := plan{seed: seed, life: &combined[seed%l], fault: &faults[(seed+seed/l)%f], checked: random.IntN(2) == 0}
	p.victim = []string{"leader", "follower", "first", "last"}[random.IntN(4)]
	p.before = random.IntN(5) < 2
	p.moment = time.Duration(random.IntN(1+[]int{300, 1500, 4000, 10000}[random.IntN(4)])) * time.Millisecond
	p.lasts = time.Duration([]int{5000, 5000, 8000, 8000, 15000, 15000, 40000}[random.IntN(7)]+random.IntN(2000)) * time.Millisecond
	if p.fault.name == "emptied" && p.life.kind == alone {
		p.before = true // who is the only one may not be emptied
	}
	return p
}

func (p *plan) String() string {
	when := fmt.Sprintf("after %v", p.moment)
	if p.before {
		when = "before"
	}
	checked := "checked"
	if !p.checked {
		checked = "not checked"
	}
	return fmt.Sprintf("seed %d: %s (%s); the %s member is %s %s, for %v", p.seed, p.life.name, checked, p.victim, p.fault.name, when, p.lasts)
}

// TestPlans: there is no life that is never led with some fault.
func TestPlans(t *testing.T) {
	all := map[string]bool{}
	for seed := range uint64(len(combined) * len(faults)) {
		p := draw(seed)
		all[p.life.name+" "+p.fault.name] = true
	}
	if want := len(combined) * len(faults); len(all) != want {
		t.Errorf("as many seeds make %d of %d combinations: change the number of lives or faults", len(all), want)
	}
}

// TestNotWhole leads lives of a group one member of which is not whole.
func TestNotWhole(t *testing.T) {
	if *combinations == 0 {
		return
	}
	g := startGroup(t, volumeSize)
	if *hold {
		defer g.holdUp()
	}
	b := g.begin(t)
	began, failed := time.Now(), []string{}
	for i := range *combinations {
		p := draw(*firstSeed + uint64(i))
		passed := t.Run(fmt.Sprintf("%d", p.seed), func(t *testing.T) {
			outer := g.cluster.t
			g.cluster.t, b.t = t, t
			defer func() { g.cluster.t, b.t = outer, outer.(*testing.T) }()
			c := &combination{group: g, t: t, b: b, plan: p, random: rand.New(rand.NewPCG(p.seed, 1)), begun: make(chan struct{}), over: make(chan struct{})}
			c.run(i + 1)
		})
		if !passed {
			failed = append(failed, fmt.Sprint(p.seed))
			b.halt()
			g.removeAll()
			b = g.begin(t)
		}
	}
	t.Logf("%d combinations from seed %d on in %v, %d of them failed: %s", *combinations, *firstSeed, since(began), len(failed), strings.Join(failed, " "))
	b.halt()
	g.helm("uninstall", release, "--namespace="+namespace, "--wait")
}

// loadAccount makes an account for programs, as which root may get another password.
func (g *group) loadAccount() {
	g.t.Helper()
	g.eventually("an account for the load", func() error {
		db, err := sql.Open("mysql", fmt.Sprintf("root:%s@tcp(%s.%s.svc.%s:3306)/?tls=skip-verify&timeout=2s", g.password, name, namespace, domain))
		if err != nil {
			return err
		}
		defer db.Close()
		for _, s := range []string{"CREATE USER IF NOT EXISTS '" + loadUser + "'@'%' IDENTIFIED BY '" + loadSecret + "'", "GRANT ALL ON *.* TO '" + loadUser + "'@'%' WITH GRANT OPTION"} {
			if _, err := db.Exec(s); err != nil {
				return err
			}
		}
		return nil
	})
}

// begin installs the chart, and lets programs begin.
func (g *group) begin(t *testing.T) *bank {
	t.Helper()
	g.password = ""
	g.install(t, &table{}, smallWaits...)
	g.whole(3)
	g.loadAccount()
	b := newBank(t, address, loadUser, loadSecret)
	b.goesOn()
	g.backUp("first-backup") // Helm waits until the volume for backups is bound, which its first user does
	return b
}

// removeAll removes the release and all that belongs to it, whatever its state is.
func (g *group) removeAll() {
	g.t.Helper()
	for _, m := range g.nodes {
		if m.off {
			m.start()
		}
		m.awaitReady(true)
		g.must(g.cordon(m.name(), false))
	}
	_, _ = g.tool("helm", "uninstall", release, "--namespace="+namespace, "--no-hooks")
	g.kubectl("-n", namespace, "delete", "pods,jobs,pvc", "--all", "--force", "--grace-period=0", "--wait=false")
	g.eventually("nothing is left", func() error {
		var volumes list[volume]
		if err := g.api.get("/api/v1/persistentvolumes", &volumes); err != nil {
			return err
		}
		if pods := g.members(); len(pods)+len(volumes.Items) > 0 {
			return fmt.Errorf("%d pods and %d volumes", len(pods), len(volumes.Items))
		}
		return nil
	})
}

// combination is a plan that is carried out.
type combination struct {
	*group
	plan
	t      *testing.T
	b      *bank
	w      *watch
	random *rand.Rand
	size   int // how many members there are to be

	begun, over chan struct{} // the fault has begun, and has ended
	at          time.Time     // when it began
	mu          sync.Mutex
	notes       []string
}

// note keeps what is worth telling.
func (c *combination) note(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, err.Error())
}

func (c *combination) run(number int) {
	c.t.Logf("%s", &c.plan)
	c.must(os.RemoveAll(c.saved()))
	var gap, heal time.Duration
	c.sized(c.life.from)
	c.b.mark()
	if c.fault.name == "full" {
		c.b.bear(1114) // the table is full: until another leads, as MySQL says it
	}
	c.b.goesOn()
	c.w = c.watch()
	stop := sync.OnceFunc(c.w.stop)
	defer func() { // however it ends
		stop()
		for _, wrong := range c.w.wrong {
			c.t.Error(wrong)
		}
		verdict := "well"
		if c.t.Failed() {
			verdict = "FAILED"
		}
		for _, text := range append(c.notes, c.w.again()...) {
			verdict = text + "; " + verdict
		}
		c.t.Logf("COMBINATION %d, %s; no write for %v; whole %v after all was over; %s", number, &c.plan, round(gap), round(heal), verdict)
		if c.t.Failed() {
			c.save()
		}
	}()
	started := make(chan struct{})
	go c.disturb(started)
	let := sync.OnceFunc(func() { close(started) })
	defer func() { let(); <-c.over }()
	if c.before {
		<-c.begun
		time.Sleep(time.Duration(c.random.IntN(3000)) * time.Millisecond)
	}
	let()
	c.life.do(c)
	<-c.over
	began := time.Now()
	c.settled(c.size)
	heal = time.Since(began)
	gap = c.b.goesOn()
	stop()
	if heal > healMax {
		c.t.Errorf("it took %v until the group was whole", heal)
	}
	c.stops()
	c.equal(c.b)
	if !c.t.Failed() {
		c.b.renew()
	}
}

// stops looks for times in which nothing was acknowledged.
func (c *combination) stops() {
	c.t.Helper()
	if d, s := c.w.stopped(c.b.paused(), (*sample).majority); d > stopMax {
		c.t.Errorf("nothing was acknowledged for %v while %d of %d voters were there", d, s.able, s.voters)
	}
	if c.life.kind == abrupt {
		return
	}
	if c.before {
		if d, s := c.w.stopped(c.b.paused(), (*sample).lost); d > lostMax {
			c.t.Errorf("nothing was acknowledged for %v while only %d of %d voters were there: others were stopped though one was not whole", d, s.able, s.voters)
		}
	} else if d, s := c.w.stopped(c.b.paused(), (*sample).spares); d > againMax {
		c.t.Errorf("nothing was acknowledged for %v, until %d of %d voters were there: others were stopped though one was not whole", d, s.able, s.voters)
	}
}

// save keeps what a failing combination leaves, and says how to repeat it.
func (c *combination) save() {
	dir := filepath.Join(*failures, fmt.Sprintf("seed-%d", c.seed))
	_ = os.RemoveAll(dir)
	c.note(os.MkdirAll(dir, 0o755))
	c.note(os.CopyFS(filepath.Join(dir, "pods"), os.DirFS(c.saved())))
	c.note(os.CopyFS(filepath.Join(dir, "cluster"), os.DirFS(filepath.Join(c.dir, "log"))))
	for file, args := range map[string][]string{"objects": {"get", "nodes,pods,pvc,pv,sts,jobs", "-A", "-o", "wide"}, "events": {"get", "events", "-A", "--sort-by=.lastTimestamp"},
		"describe": {"-n", namespace, "describe", "pods"}} {
		out, _ := c.tool("kube", append([]string{"kubectl"}, args...)...)
		c.note(os.WriteFile(filepath.Join(dir, file+".txt"), []byte(out), 0o644))
	}
	c.t.Logf("logs are in %s; to repeat it alone: make e2e-kubernetes-notwhole COMBINATIONS=1 FIRST_COMBINATION=%d", dir, c.seed)
}

// disturb begins the fault in its time and ends it.
func (c *combination) disturb(started chan struct{}) {
	defer close(c.over)
	if !c.before {
		<-started
		time.Sleep(c.moment)
	}
	var end func()
	var victim *pod
	err := try(func() (err error) {
		if victim, err = c.chosen(); err != nil {
			return err
		}
		if c.fault.disables {
			c.w.disable(victim.Meta.UID, 1)
		}
		if end, err = c.fault.begin(c, victim); err != nil {
			if end != nil {
				end()
			}
			c.w.disable(victim.Meta.UID, -1)
		}
		return err
	})
	c.at = time.Now()
	if err != nil {
		c.note(fmt.Errorf("there was no fault: %w", err))
		close(c.begun)
		return
	}
	if c.before && !c.fault.disables {
		c.note(try(func() error { return c.ended(victim) }))
	}
	close(c.begun)
	time.Sleep(time.Until(c.at.Add(c.lasts)))
	end()
	if c.fault.disables {
		c.w.disable(victim.Meta.UID, -1)
	}
}

// ended tells whether a pod is no more.
func (c *combination) ended(was *pod) error {
	all, err := c.pods(namespace, members)
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.Meta.UID == was.Meta.UID {
			return fmt.Errorf("%s has not ended yet", was.Meta.Name)
		}
	}
	return nil
}

// chosen is the member that a plan means.
func (c *combination) chosen() (*pod, error) {
	all, err := c.pods(namespace, members)
	if err != nil {
		return nil, err
	}
	var running []pod
	for _, p := range all {
		if p.runs() && p.Status.IP != "" {
			running = append(running, p)
		}
	}
	if len(running) == 0 {
		return nil, errors.New("no pod runs")
	}
	switch c.victim {
	case "first":
		return &running[0], nil
	case "last":
		return &running[len(running)-1], nil
	}
	var leader, follower *pod
	var term uint64
	for i := range running {
		p := &running[i]
		r, err := c.briefly(p)
		switch {
		case err == nil && r.Status.Writable && r.Status.Term > term:
			leader, term = p, r.Status.Term
		default:
			follower = p
		}
	}
	if c.victim == "leader" && leader == nil || follower == nil {
		return nil, errors.New("there is none such")
	}
	if c.victim == "leader" {
		return leader, nil
	}
	return follower, nil
}

// disturbed says whether the fault can have done something to what happened until now.
func (c *combination) disturbed() bool {
	select {
	case <-c.begun:
		return true
	default:
		return false
	}
}

// settled waits until as many members are whole, run what their set says, and no other claim is left.
func (c *combination) settled(members int) {
	c.t.Helper()
	c.eventually("all pods are as the set says", c.rolled)
	c.whole(members)
	c.eventually("all pods are as the set says", c.rolled)
	c.eventually("claims are those of the members", func() error {
		if all := c.claims(); len(all) != members {
			return fmt.Errorf("there are %v", all)
		}
		return nil
	})
}

// rolled tells whether the set has rolled out.
func (c *combination) rolled() error {
	var set struct {
		Meta struct {
			Generation int `json:"generation"`
		} `json:"metadata"`
		Spec struct {
			Replicas int `json:"replicas"`
		} `json:"spec"`
		Status struct {
			Observed int    `json:"observedGeneration"`
			Ready    int    `json:"readyReplicas"`
			Revision string `json:"updateRevision"`
		} `json:"status"`
	}
	if err := c.api.get("/apis/apps/v1/namespaces/"+namespace+"/statefulsets/"+name, &set); err != nil {
		return err
	}
	if set.Meta.Generation != set.Status.Observed || set.Spec.Replicas != c.size || set.Status.Ready != c.size {
		return fmt.Errorf("the set is to have %d pods, not %d, and %d are ready", set.Spec.Replicas, c.size, set.Status.Ready)
	}
	all, err := c.pods(namespace, members)
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.Meta.Labels["controller-revision-hash"] != set.Status.Revision {
			return fmt.Errorf("%s is of an older revision", p.Meta.Name)
		}
	}
	return nil
}

// sized lets a group that is whole have so many members.
func (c *combination) sized(members int) {
	c.t.Helper()
	c.size = members
	if len(c.members()) != members {
		c.group.upgrade(fmt.Sprintf("--set=replicaCount=%d", members))
	}
	c.settled(members)
}

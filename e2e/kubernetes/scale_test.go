//go:build kubernetes

package kubernetes

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// claims are the names of the members' claims.
func (g *group) claims() (names []string) {
	g.t.Helper()
	var all list[claim]
	g.must(g.api.get("/api/v1/namespaces/"+namespace+"/persistentvolumeclaims", &all))
	for _, c := range all.Items {
		if strings.HasPrefix(c.Meta.Name, "data-"+name+"-") && c.Meta.Deleted == nil {
			names = append(names, c.Meta.Name)
		}
	}
	return names
}

// change changes values of the release and does not wait for what follows.
func (g *group) change(args ...string) {
	g.t.Helper()
	g.helm(append([]string{"upgrade", release, chartDir, "--namespace=" + namespace, "--reuse-values", "--no-hooks"}, args...)...)
}

// keeps demands that writes go on for a while, that nobody leaves the group, and that all claims stay.
func (g *group) keeps(b *bank, voters int) {
	g.t.Helper()
	for until := time.Now().Add(away); time.Now().Before(until); time.Sleep(time.Second) {
		b.goesOn()
		r, err := g.status(g.leader())
		g.must(err)
		if len(r.Members) != voters {
			g.t.Fatalf("the group has %d members, not %d", len(r.Members), voters)
		}
		if c := g.claims(); len(c) < voters {
			g.t.Fatalf("only the claims %v are there", c)
		}
	}
}

// consists waits until a group has so many members, and as many claims are there.
func (g *group) consists(members int) {
	g.t.Helper()
	g.eventually(fmt.Sprintf("%d members", members), func() error {
		r, err := g.status(g.leader())
		if err != nil {
			return err
		}
		if c := g.claims(); len(r.Members) != members || len(c) != members {
			return fmt.Errorf("there are %d, and claims %v", len(r.Members), c)
		}
		return nil
	})
}

// withoutFirst keeps the first pod from running, until the function that it returns is called.
func (g *group) withoutFirst() (back func()) {
	g.t.Helper()
	pods := g.members()
	p := &pods[slices.IndexFunc(pods, func(p pod) bool { return p.Meta.Name == name+"-0" })]
	node := p.Spec.Node
	g.kubectl("cordon", node)
	g.must(g.api.remove(g.podPath(p.Meta.Name)))
	g.gone(p)
	g.eventually(p.Meta.Name+" waits for its node", func() error {
		for _, p := range g.members() {
			if p.Meta.Name == name+"-0" && p.Status.Phase == "Pending" {
				return nil
			}
		}
		return errors.New("it does not")
	})
	return func() { g.kubectl("uncordon", node) }
}

// wantedAlone lets the group have one member while that one is away: the others stay, and leave
// when it is back.
func (g *group) wantedAlone(_ *testing.T, b *bank) string {
	back := g.withoutFirst()
	g.change("--set=replicaCount=1")
	g.keeps(b, 3)
	if events := g.kubectl("-n", namespace, "get", "events"); !strings.Contains(events, "StopWaits") {
		g.t.Errorf("no event says why pods stay:\n%s", events)
	}
	began := time.Now()
	back()
	g.consists(1)
	g.whole(1)
	alone := time.Since(began)
	g.equal(b)
	g.upgrade("--set=replicaCount=3")
	g.whole(3)
	return fmt.Sprintf(", of which %s until it was alone", round(alone))
}

// frozenScaledAway lets two of five members go that stand still.
func (g *group) frozenScaledAway(_ *testing.T, b *bank) string {
	g.upgrade("--set=replicaCount=5")
	g.whole(5)
	for _, p := range g.members() {
		if p.Meta.Name == name+"-3" || p.Meta.Name == name+"-4" {
			g.must(g.machineOf(&p).signal(&p, "/trireme", syscall.SIGSTOP))
		}
	}
	began := time.Now()
	g.change("--set=replicaCount=3")
	g.consists(3)
	took := time.Since(began)
	b.goesOn()
	for _, p := range g.members() {
		if p.Meta.Name == name+"-3" || p.Meta.Name == name+"-4" {
			g.must(g.machineOf(&p).kill(&p, "/trireme"))
		}
	}
	g.whole(3)
	return fmt.Sprintf(", of which %s until they had left", round(took))
}

// notRolledWhileAway changes a setting while a member is away: the others go on until it is back.
func (g *group) notRolledWhileAway(t *testing.T, b *bank) string {
	back := g.withoutFirst()
	before := map[string]bool{}
	for _, p := range g.members() {
		before[p.Meta.UID] = true
	}
	g.change("--set=settings.max_connections=201")
	g.keeps(b, 3)
	for _, p := range g.members() {
		if !before[p.Meta.UID] && p.Meta.Name != name+"-0" {
			t.Errorf("%s was started anew while another was away", p.Meta.Name)
		}
	}
	began := time.Now()
	back()
	g.kubectl("-n", namespace, "rollout", "status", "statefulset/"+name, "--timeout=4m")
	g.whole(3)
	return fmt.Sprintf(", of which %s after it was back", round(time.Since(began)))
}

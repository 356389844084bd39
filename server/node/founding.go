package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/triremedb/trireme/replication/discovery"
	"github.com/triremedb/trireme/server/kubernetes"
)

// founding looks at claims before a node in a pod of Kubernetes founds a group: a claim that no pod uses may hold the group's data, be it of a
// member or of a read replica. An empty volume beside it is a lost one, and no reason to begin anew: once the others' pods were there
// again, two groups would take writes behind one Service (decision 0041).
type founding struct {
	discovery.Discovery
	n     *Node
	pod   *statefulSet
	sets  []string // all of the group, the pod's own first
	found place    // whose claim was in the way last
	waits obstacle
	// probe asks a node how far it has come.
	probe func(ctx context.Context, addr string) (discovery.Status, error)
}

// place is a pod of a set.
type place struct {
	set     string
	ordinal int
}

// guarded is a discovery that founds nothing beside others' claims, if this node is in a pod of Kubernetes and may found a group.
func (n *Node) guarded(d discovery.Discovery) (discovery.Discovery, error) {
	if n.cfg.String("discovery") == "static" || n.cfg.Bool("replica") { // the others have a number of founders
		return d, nil
	}
	f := &founding{Discovery: d, n: n, pod: n.set, waits: newObstacle(), probe: n.probe}
	sets := n.cfg.List("kubernetes_statefulsets")
	if f.pod == nil {
		if len(sets) == 0 {
			return d, nil
		}
		name, ordinal, ok := kubernetes.Place(host(n.cfg))
		if !ok || !slices.Contains(sets, name) {
			return nil, fmt.Errorf("kubernetes_statefulsets: report_host, %s, begins with no pod of %s", host(n.cfg), strings.Join(sets, ", "))
		}
		f.pod = &statefulSet{name: name, ordinal: ordinal}
	}
	for _, set := range append([]string{f.pod.name}, sets...) {
		if !slices.Contains(f.sets, set) {
			f.sets = append(f.sets, set)
		}
	}
	return f, nil
}

// Plan is asked for by a node that has no data.
func (f *founding) Plan(ctx context.Context) (*discovery.Plan, error) {
	if !f.n.isReady() { // later it is asked who else there is
		f.n.empty.Store(true)
	}
	return f.Discovery.Plan(ctx)
}

// Everybody tells of all nodes that there are, if the discovery can. It is asked before this node prepares to found a group.
func (f *founding) Everybody(ctx context.Context) (addrs []string, known bool, err error) {
	if c, ok := f.Discovery.(interface {
		Everybody(context.Context) ([]string, bool, error)
	}); ok {
		if addrs, known, err = c.Everybody(ctx); err != nil {
			return nil, false, err
		}
	}
	if f.pod.Client == nil { // it looks at claims alone, and only now
		if f.pod.Client, err = kubernetes.NewClient(f.n.cfg.String("kubernetes_credentials")); err != nil {
			return nil, false, fmt.Errorf("what claims there are cannot be asked: kubernetes_credentials: %w", err)
		}
	}
	if err = f.unrestored(ctx); err == nil {
		err = f.looseClaim(ctx, addrs, known)
	}
	f.waits.look(ctx, f.n, err)
	if err != nil {
		return nil, false, err
	}
	return addrs, known, nil
}

// probe asks a node how far it has come.
func (n *Node) probe(ctx context.Context, addr string) (discovery.Status, error) {
	return discovery.Probe(ctx, n.peers, addr, probeAsk)
}

// probeAsk is how long a pod's answer may take.
const probeAsk = time.Second

// isEmpty reports whether a pod is there and says that it has no data.
func (f *founding) isEmpty(ctx context.Context, p place) bool {
	_, rest, _ := strings.Cut(peerAddress(f.n.cfg), ".")
	s, err := f.probe(ctx, fmt.Sprintf("%s-%d.%s", p.set, p.ordinal, rest))
	return err == nil && s.State != discovery.Begun
}

// looseClaim is an error if a pod that is no founder has a claim that may have data, and is not there. That it is to be there says nothing, since it
// may have been wanted a moment ago. there are all nodes that names lead to, which are asked before a group is founded; where nobody knows, as with etcd, the
// pod of a claim is.
func (f *founding) looseClaim(ctx context.Context, there []string, known bool) error {
	// What was found last is looked at first: until it is gone that is all that is asked.
	if f.found.set != "" && !isThere(there, f.found) {
		if err := f.inTheWay(ctx, []place{f.found}, known); err != nil {
			return err
		}
	}
	var places []place
	for _, set := range f.sets {
		first := 0
		if set == f.pod.name {
			first = int(f.n.cfg.Int("discovery_expect"))
		}
		for ordinal := first; ordinal < kubernetes.PodsMax; ordinal++ {
			if p := (place{set, ordinal}); !isThere(there, p) {
				places = append(places, p)
			}
		}
	}
	for some := range slices.Chunk(places, claimsAtOnce) {
		if err := f.inTheWay(ctx, some, known); err != nil {
			return err
		}
	}
	f.found = place{}
	return nil
}

// unrestored is an error while a backup is to be in the claim of a founder, and this process has found nothing there: a group that is founded
// then is empty, and nothing is restored into it any more.
//
// Only the first founder's claim is asked whether a restore is done, since no other is restored into. Where that claim is gone, or was made anew, what was
// restored is gone with it: no founder that asks has data, so the restore has to be run again and the error is right. A pod whose restored volume is
// empty is told only by its own claim: that is enough, since a group is founded when each of its founders has asked.
func (f *founding) unrestored(ctx context.Context) error {
	wanted := f.n.cfg.String("kubernetes_restore")
	for ordinal := range max(1, int(f.n.cfg.Int("discovery_expect"))) {
		claim, found, err := f.pod.Claim(ctx, f.pod.name, ordinal)
		if err != nil {
			return fmt.Errorf("what claims there are is not known: %w", err)
		}
		name := kubernetes.ClaimName(f.pod.name, ordinal)
		switch {
		case found && claim.Restoring():
			return fmt.Errorf("a restore into the claim %s was begun and is not done (its annotation %s): a group that is "+
				"founded now would be empty. %s", name, kubernetes.RestoreKey, f.restore(name, " but that one"))
		case found && claim.Restored() && ordinal == f.pod.ordinal:
			return fmt.Errorf("a backup was restored into the claim %s (its annotation %s), and this process has found nothing "+
				"in its volume. Delete the pod, which looks again. If that does not help, what was restored is lost. %s",
				name, kubernetes.RestoreKey, f.restore(name, ""))
		case ordinal == 0 && wanted != "" && !(found && claim.Restored()):
			return fmt.Errorf("a backup is to be restored (restore.from is %s), and none was restored into the claim %s: a group "+
				"that is founded now would be empty. %s", wanted, name, f.restore(name, ""))
		}
	}
	return nil
}

// restore says how a backup is restored where there are pods without data already.
func (f *founding) restore(claim, but string) string {
	return fmt.Sprintf("To restore: helm uninstall, delete all claims data-%s-N%s, in which nothing is, and helm install with restore.from "+
		"and its hooks. To begin with an empty database: helm upgrade with --set restore.from=, kubectl annotate pvc %s %s-, and "+
		"delete the pods. docs/operations-kubernetes.md, Restoring", f.pod.name, but, claim, kubernetes.RestoreKey)
}

// isThere reports whether one of some addresses is a pod's.
func isThere(addrs []string, p place) bool {
	return slices.ContainsFunc(addrs, func(addr string) bool { return strings.HasPrefix(addr, fmt.Sprintf("%s-%d.", p.set, p.ordinal)) })
}

// claimsAtOnce is how many claims are asked for at a time.
const claimsAtOnce = 8

// inTheWay is an error if one of these pods has a claim that may have data.
func (f *founding) inTheWay(ctx context.Context, places []place, known bool) error {
	claims, errs := make([]kubernetes.Claim, len(places)), make([]error, len(places))
	var all sync.WaitGroup
	for i, p := range places {
		all.Go(func() {
			claim, found, err := f.pod.Claim(ctx, p.set, p.ordinal)
			if errs[i] = err; found && !claim.Goes && !claim.Unbound && (known || !f.isEmpty(ctx, p)) {
				claims[i] = claim
			}
		})
	}
	all.Wait()
	for i, p := range places {
		if errs[i] != nil {
			return fmt.Errorf("what claims there are is not known: %w", errs[i])
		}
		claim := claims[i].Name
		if claim == "" {
			continue
		}
		f.found = p
		if p.set == f.pod.name {
			return fmt.Errorf("the claim %s is there, and its pod is not: it may have the group's data. Start as many members as there were (replicaCount, kubectl scale); "+
				"if nothing in the claim is needed, as of a pod that has never become a member, delete it", claim)
		}
		return fmt.Errorf("the claim %s of a read replica is there, and its pod is not: it may have the group's data, which nobody else may have any more. "+
			"If claims of members are there, start as many members as there were (replicaCount, kubectl scale). If those are lost, start the read replica "+
			"(readReplicas.count, kubectl scale), back it up and restore that into a new release: docs/operations-kubernetes.md, A read replica's claim. "+
			"If nothing in the claim is needed, delete it", claim)
	}
	return nil
}

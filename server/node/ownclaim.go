package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/triremedb/trireme/server/kubernetes"
)

// ownClaim looks whether the claim of this node's pod is being deleted: Kubernetes keeps it as long as the pod runs, and nobody sees that the data
// go with it.
type ownClaim struct {
	situation
	n    *Node
	pod  *statefulSet
	said time.Time // in the log
}

// claimEvery is how often a pod looks at its claim.
const claimEvery = 30 * time.Second

// newOwnClaim returns what looks at the claim of this node's pod; nil: the node is in no pod of a StatefulSet.
func (n *Node) newOwnClaim() *ownClaim {
	o := &ownClaim{n: n, pod: n.set, situation: situation{begins: "ClaimDeleted"}}
	if o.pod != nil {
		return o
	}
	set, ordinal, ok := kubernetes.Place(host(n.cfg))
	if !ok || !slices.Contains(n.cfg.List("kubernetes_statefulsets"), set) {
		return nil
	}
	c, err := kubernetes.NewClient(n.cfg.String("kubernetes_credentials"))
	if err != nil { // said where a group is founded, for which it matters
		return nil
	}
	o.pod = &statefulSet{c, set, ordinal}
	return o
}

// look asks once.
func (o *ownClaim) look() {
	ctx, cancel := o.n.untilStopping(situationLimit)
	defer cancel()
	claim, found, err := o.pod.Claim(ctx, o.pod.name, o.pod.ordinal)
	if err != nil || !found || !claim.Goes {
		return
	}
	now := time.Now()
	if o.leaves(ctx) {
		if now.Sub(o.said) >= minorityAgain {
			o.said = now
			o.n.log.Info("the claim of this pod is deleted, as of all pods for which the StatefulSet has no place any more: it goes with the pod", "claim", claim.Name)
		}
		return
	}
	text := fmt.Sprintf("the claim %s of %s is being deleted: Kubernetes keeps it as long as the pod runs, and nothing takes that back. "+
		"When the pod ends its data are gone. Do not hibernate the group, nor scale it to fewer. Look that the other members have all data "+
		"(trireme admin status), then delete the pod, and no other: it comes back with a new volume and gets its data from them. "+
		"If it is the only member, have more first (replicaCount)", claim.Name, peerAddress(o.n.cfg))
	if now.Sub(o.said) >= minorityAgain {
		o.said = now
		o.n.log.Warn("the claim of this pod is being deleted", "reason", text)
	}
	o.lasts(ctx, o.n, now, text)
}

// leaves reports whether the set has no place for this pod any more: the leader deletes its claim then, also while the pod stands still.
func (o *ownClaim) leaves(ctx context.Context) bool {
	if o.n.set == nil {
		return false // it may not look at sets
	}
	set, err := o.n.askSet(ctx, o.pod.name)
	return err == nil && set.Lasts && !set.Has(o.pod.ordinal)
}

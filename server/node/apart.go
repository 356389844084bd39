package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/triremedb/trireme/replication/group"
)

// apart tells Kubernetes that the others do not take this node for a member, or may not. One task uses it.
type apart struct {
	situation
	since time.Time // zero: they do
}

// apartAfter is for how long that is no matter.
const apartAfter = 10 * time.Second

// look is told what is wrong with this member; empty: nothing is.
func (a *apart) look(n *Node, text string, now time.Time) {
	if text == "" {
		a.since = time.Time{}
		if !a.told {
			return
		}
	}
	ctx, cancel := n.untilStopping(situationLimit)
	defer cancel()
	switch {
	case text == "":
		a.over(ctx, n, now, fmt.Sprintf("member %d at %s is one of the group's again", n.group.ID(), peerAddress(n.cfg)))
	case a.since.IsZero():
		a.since = now
	case now.Sub(a.since) >= apartAfter:
		a.lasts(ctx, n, now, fmt.Sprintf("member %d at %s takes no part in the group: %s", n.group.ID(), peerAddress(n.cfg), text))
	}
}

// rejoinLimit is how long Kubernetes may take when a member that was removed stops.
const rejoinLimit = 5 * time.Second

// rejoin lets a member that was removed come back as a new one, if its pod is to be there: it was scaled away and back
// before its claim was deleted, or was taken out by hand. Only where claims of members that have left are deleted are its data as well
// (decision 0041).
func (n *Node) rejoin(ctx context.Context) {
	err := n.failure()
	if n.set == nil || !errors.Is(err, group.ErrRemoved) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rejoinLimit)
	defer cancel()
	switch set, asked := n.askSet(ctx, n.set.name); {
	case asked != nil:
		n.log.Warn("whether the pod of this member, which has left the group, is to be there is not known: its data stay", "error", asked)
	case !set.Lasts || !set.Has(n.set.ordinal):
	case !n.cfg.Bool("kubernetes_delete_claims"):
		n.tell(ctx, "MemberLeft", fmt.Sprintf("the data of pod %s-%d are those of member %d, which has left the group (%v). They stay, since claims of members that have left are kept "+
			"(persistence.whenScaled=Retain): delete the claim data-%[1]s-%[2]d and the pod, and it joins as a new member", n.set.name, n.set.ordinal, n.group.ID(), err))
	default:
		if err := n.group.Discard(); err != nil {
			n.log.Error("the data of this member, which has left the group, cannot be discarded", "error", err)
			return
		}
		n.log.Warn("this member has left the group, and its pod is to be there: the next process removes its data and joins as a new member", "member", n.group.ID())
		n.tell(ctx, "MemberRejoins", fmt.Sprintf("member %d, which pod %s-%d had the data of, has left the group: the pod removes them, and joins as a new member", n.group.ID(), n.set.name, n.set.ordinal))
	}
}

package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/triremedb/trireme/replication/discovery"
	"github.com/triremedb/trireme/replication/transport"
)

// otherGroup is whether nodes of another group answer where this node's group has its own: somebody has made two of one, as by
// regrouping the wrong directory. Clients of one Service would write into both.
type otherGroup struct {
	n         *Node
	told      string // in the log
	situation situation
}

const (
	// otherEvery is how often a leader looks, and otherAsk how long an answer may take.
	otherEvery = 20 * time.Second
	otherAsk   = time.Second
	otherLimit = 15 * time.Second
)

// look asks the nodes that should be members and do not answer as such, while this node leads.
func (o *otherGroup) look() {
	n := o.n
	if !n.serves() {
		n.others.Store(false)
		o.told, o.situation.told = "", false // the next leader looks
		return
	}
	ctx, cancel := n.untilStopping(otherLimit)
	defer cancel()
	found := o.ask(ctx)
	if ctx.Err() != nil {
		return
	}
	n.others.Store(len(found) > 0)
	text, now := strings.Join(found, ", "), time.Now()
	if text != "" && text != o.told {
		n.log.Error("another group answers where this one has its nodes: of two groups one was replaced (trireme regroup, trireme restore); stop what is left of that one and empty its directories",
			"at", text)
	}
	o.told = text
	if text == "" {
		o.situation.over(ctx, n, now, "no other group answers any more")
		return
	}
	o.situation.lasts(ctx, n, now, fmt.Sprintf("the group of member %d at %s takes writes, and another group answers at %s. Clients of the Service may write into both. "+
		"Decide which one counts, stop the other and remove its claims: docs/operations-kubernetes.md, When the majority is lost", n.group.ID(), peerAddress(n.cfg), text))
}

// ask returns the addresses at which nodes of other groups answer.
func (o *otherGroup) ask(ctx context.Context) (found []string) {
	n := o.n
	plan, err := n.discovery.Plan(ctx)
	if err != nil {
		return nil
	}
	ours := []string{peerAddress(n.cfg)}
	for _, h := range n.around.all() {
		if h.reachable {
			ours = append(ours, h.addr)
		}
	}
	for _, addr := range plan.Nodes {
		if slices.Contains(ours, addr) {
			continue
		}
		var r *transport.Rejection
		if _, err := discovery.Probe(ctx, n.peers, addr, otherAsk); errors.As(err, &r) && r.Reason == transport.ReasonOtherGroup {
			found = append(found, addr)
		}
	}
	return found
}

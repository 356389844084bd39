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
	// otherEvery is how often a member looks, and otherAsk how long an answer may take. A member without a majority has to have looked before it says
	// what is to be done about that (minorityAfter).
	otherEvery = 10 * time.Second
	otherAsk   = time.Second
	otherLimit = 15 * time.Second
)

// look asks the nodes that should be members and do not answer as such: while this node leads, and while it hears no majority of its voters, which may
// have become another group's.
func (o *otherGroup) look() {
	n := o.n
	leads, silent := n.serves(), n.readiness.silent()
	if !leads && len(silent) == 0 {
		n.others.Store(false)
		o.told, o.situation.told = "", false // the next leader looks
		return
	}
	ctx, cancel := n.untilStopping(otherLimit)
	defer cancel()
	if leads {
		silent = o.away(ctx)
	}
	found := o.ask(ctx, silent)
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
	if leads {
		o.situation.lasts(ctx, n, now, fmt.Sprintf("the group of member %d at %s takes writes, and another group answers at %s. Clients of the Service may write into both. "+
			"Decide which one counts, stop the other and remove its claims: docs/operations-kubernetes.md, When the majority is lost", n.group.ID(), peerAddress(n.cfg), text))
		return
	}
	o.situation.lasts(ctx, n, now, fmt.Sprintf("member %d at %s hears no majority of its group, and another group answers at %s, where members of its own were. What this member has that group "+
		"has not, and the other way round. Decide which one counts; regroup nothing before. Back this member up if it counts, or may (trireme backup); if it does not, "+
		"delete its claim and its pod, and it joins that group: docs/operations-kubernetes.md, When the majority is lost", n.group.ID(), peerAddress(n.cfg), text))
}

// away are the addresses of the plan at which no member of the group answers.
func (o *otherGroup) away(ctx context.Context) (addrs []string) {
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
	return slices.DeleteFunc(slices.Clone(plan.Nodes), func(addr string) bool { return slices.Contains(ours, addr) })
}

// ask returns those of the addresses at which nodes of other groups answer.
func (o *otherGroup) ask(ctx context.Context, addrs []string) (found []string) {
	for _, addr := range addrs {
		var r *transport.Rejection
		if _, err := discovery.Probe(ctx, o.n.peers, addr, otherAsk); errors.As(err, &r) && r.Reason == transport.ReasonOtherGroup {
			found = append(found, addr)
		}
	}
	return found
}

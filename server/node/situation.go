package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/server/kubernetes"
)

// situation is what lasts for a while: events of the node's StatefulSet tell when it has begun and when it is over. One
// task uses it.
type situation struct {
	begins, ends string // reasons of the events

	told  bool      // that it has begun, and not that it is over
	began time.Time // when that was told last
	again time.Time // when Kubernetes may be asked again, after an error
}

const (
	// situationPause is the time between two events of a beginning, and until Kubernetes is asked again after an error.
	situationPause = time.Minute
	// situationKept is when one that lasts is told again: Kubernetes forgets events after an hour.
	situationKept = 50 * time.Minute
)

// lasts tells that it is so.
func (s *situation) lasts(ctx context.Context, n *Node, now time.Time, text string) {
	pause := situationPause
	if s.told {
		pause = situationKept
	}
	if n.set == nil || now.Sub(s.began) < pause || now.Before(s.again) {
		return
	}
	if n.tell(ctx, s.begins, text) {
		s.told, s.began = true, now
	} else {
		s.again = now.Add(situationPause)
	}
}

// over tells that it is not so any more, if it was told that it was.
func (s *situation) over(ctx context.Context, n *Node, now time.Time, text string) {
	if !s.told || now.Before(s.again) {
		return
	}
	if n.tellKind(ctx, kubernetes.Normal, s.ends, text) {
		s.told = false
	} else {
		s.again = now.Add(situationPause)
	}
}

// untilStopping is a context that ends after a time, and when the node stops.
func (n *Node) untilStopping(limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	go func() {
		select {
		case <-n.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// situationLimit is how long Kubernetes may take.
const situationLimit = 10 * time.Second

// tellMajority tells, by each member that knows no leader, that there is no majority, and that there is one again.
func (n *Node) tellMajority(leader uint64) {
	now := time.Now()
	if leader == 0 {
		// A pod that is no member yet, or has got another volume, knows nothing of the others.
		isMember := slices.ContainsFunc(n.group.Members(), func(m group.Member) bool { return m.ID == n.group.ID() })
		// Where those that it lacks are of another group, what is said of that is (otherGroup): the advice of this event would lead astray.
		if text := n.readiness.lacking(now); text != "" && isMember && !n.others.Load() {
			ctx, cancel := n.untilStopping(situationLimit)
			defer cancel()
			reads := "reads of what is here go on"
			if !n.readiness.caughtUp.Load() {
				reads = "the Services send no reads here either, since it has heard no leader since it was started"
			}
			n.majority.lasts(ctx, n, now, fmt.Sprintf("member %d at %s hears too few others: %s. Writes wait; %s. "+
				"The group goes on by itself when they are back. If their pods were scaled away, scale up to as many as before. If an upgrade is to bring them back, it stands at the last pod: stop all members for the change, by helm upgrade with --set hibernate=true, then with hibernate=false and the change. If their disks are lost: docs/operations-kubernetes.md, When the majority is lost",
				n.group.ID(), peerAddress(n.cfg), text, reads))
		}
		return
	}
	ctx, cancel := n.untilStopping(situationLimit)
	defer cancel()
	n.majority.over(ctx, n, now, fmt.Sprintf("member %d at %s knows a leader again", n.group.ID(), peerAddress(n.cfg)))
}

// joinLook is how often a pod looks that is no member yet.
const joinLook = 5 * time.Second

// joinPatience is for how long it is no matter that a pod is no member yet; tests change it.
var joinPatience = 2 * time.Minute

// tellJoining tells of a pod that is no member with data yet, for long: whoever has lost its volume can be taken in by a leader alone.
func (n *Node) tellJoining(ctx context.Context) {
	waits := situation{begins: "JoinWaits", ends: "Joined"}
	tick := time.NewTicker(joinLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if !n.joining() {
				waits.over(ctx, n, now, fmt.Sprintf("%s is a member and has its data", peerAddress(n.cfg)))
				if !waits.told {
					return
				}
			} else if since := now.Sub(n.began); since >= joinPatience {
				waits.lasts(ctx, n, now, fmt.Sprintf("%s has been no member with data for %v: it waits for others to found the group or to take it in, which needs "+
					"a leader, or is being given its data; its log says which. An upgrade goes on to the next pod only when this one is ready: if it is to bring pods back that "+
					"do not run, stop all members for it: helm upgrade with --set hibernate=true, then with hibernate=false and the change", peerAddress(n.cfg), since.Round(time.Second)))
			}
		}
	}
}

// joining reports whether this node has no data of a group yet.
func (n *Node) joining() bool {
	if !n.isReady() {
		recovery := n.recovery()
		return recovery.Stage == ""
	}
	return n.group.Status().Provisioning
}

package node

import (
	"context"
	"fmt"
	"time"
)

// obstacle is why a node with an empty volume neither founds a group nor joins one until a person has done something: events tell it, since
// nobody would look at the log of a pod that merely waits. One task uses it.
type obstacle struct {
	situation
	said  string
	since time.Time // zero: there is none
}

// obstacleAfter is for how long it is no matter: the pod of a claim may start a little later.
const obstacleAfter = 10 * time.Second

func newObstacle() obstacle {
	return obstacle{situation: situation{begins: "FoundingWaits", ends: "FoundingGoesOn"}}
}

// look is told what is in the way; nil: nothing is.
func (o *obstacle) look(ctx context.Context, n *Node, why error) {
	now := time.Now()
	switch {
	case why == nil:
		o.since = time.Time{}
		o.over(ctx, n, now, fmt.Sprintf("nothing is in the way of %s any more", peerAddress(n.cfg)))
		return
	case o.since.IsZero():
		o.since = now
	}
	if why.Error() != o.said { // one is out of the way, and another one is not
		o.said, o.told = why.Error(), false
	}
	if now.Sub(o.since) >= obstacleAfter {
		o.lasts(ctx, n, now, fmt.Sprintf("%s has no data and waits: %v", peerAddress(n.cfg), why))
	}
}

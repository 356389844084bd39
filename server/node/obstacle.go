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
	said  string    // what was told last
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
	if now.Sub(o.since) < obstacleAfter {
		return
	}
	text, told := why.Error(), o.told
	o.told = told && text == o.said // another one is told anew
	o.lasts(ctx, n, now, fmt.Sprintf("%s has no data and waits: %s", peerAddress(n.cfg), text))
	if o.told {
		o.said = text
	}
	o.told = o.told || told
}

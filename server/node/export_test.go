package node

import (
	"context"
	"time"

	"github.com/triremedb/trireme/server/mysqlwire"
)

// SetJoinPatience changes how long a pod waits until it tells that it is no member yet, and returns what changes it back.
func SetJoinPatience(d time.Duration) (back func()) {
	was := joinPatience
	joinPatience = d
	return func() { joinPatience = was }
}

// Break stops the node as an error of its disk does.
func (n *Node) Break(err error) { n.group.Fail(err) }

// Forward asks the leader to take a session over, or takes it.
func (n *Node) Forward(ctx context.Context, h *mysqlwire.Handover) (*mysqlwire.Target, error) {
	return n.forward(ctx, h)
}

package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/triremedb/trireme/replication/discovery"
	"github.com/triremedb/trireme/server/config"
	"github.com/triremedb/trireme/server/mysqlwire"
)

// Guard is what a node with these settings, which has no data yet, asks in a discovery's place. probe answers for pods.
func Guard(cfg *config.Config, d discovery.Discovery, probe func(addr string) (discovery.Status, error)) (_ discovery.Discovery, err error) {
	n := &Node{cfg: cfg, log: slog.New(slog.DiscardHandler), ready: make(chan struct{}), stopping: make(chan struct{})}
	if n.set, err = n.newStatefulSet(); err != nil {
		return nil, err
	}
	d, err = n.guarded(n.confine(d))
	if f, ok := d.(*founding); ok {
		f.probe = func(_ context.Context, addr string) (discovery.Status, error) { return probe(addr) }
	}
	return d, err
}

// Founders is how many nodes found the group, as a node with these settings takes it.
func Founders(cfg *config.Config) int { return founders(cfg) }

// RootPassword is what root@% of a new group gets by these settings; drawn: they say nothing.
func RootPassword(cfg *config.Config) (password string, drawn bool, err error) {
	return (&Node{cfg: cfg}).rootPassword()
}

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

package group

import (
	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/replication/apply"
	"github.com/triremedb/trireme/replication/commit"
	"github.com/triremedb/trireme/replication/provision"
)

// Stats are a node's numbers: of the moment, and counters since it got its present
// data. The engine's own are Engine().Stats().
type Stats struct {
	Log     log.Stats
	Commit  commit.Counts
	Apply   apply.Stats
	Source  provision.SourceStats
	Dropped uint64 // messages that did not fit the inbox
}

// Stats returns the node's numbers. Errors: as of Engine.
func (n *Node) Stats() (Stats, error) {
	c, err := n.running()
	if err != nil {
		return Stats{}, err
	}
	c.inbox.mu.Lock()
	dropped := c.inbox.dropped
	c.inbox.mu.Unlock()
	return Stats{Log: c.binlog.Stats(), Commit: c.pipeline.Counts(), Apply: c.applier.Stats(), Source: c.source.Stats(), Dropped: dropped}, nil
}

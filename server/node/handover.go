package node

import (
	"time"

	"github.com/triremedb/trireme/engine/env"
)

const (
	// handOverEvery is how often a leader looks whether another had better lead.
	handOverEvery = 500 * time.Millisecond
	// drainEvery is how often a node that is drained and leads again tries to hand over.
	drainEvery = time.Second
)

// handOver lets another member lead where this one is being drained, its tables cannot grow, or it has much to apply
// before it can begin.
func (n *Node) handOver() {
	defer n.tasks.Done()
	tick := env.NewTicker(handOverEvery)
	defer tick.Stop()
	space, begin := spaceWatch{n: n}, beginWatch{n: n}
	var drained time.Time // when that was tried last
	for {
		var now time.Time
		select {
		case <-n.stopping:
			return
		case now = <-tick.C:
			tick.Next()
		}
		s := n.group.Status()
		late := begin.isLate(&s, now)
		switch {
		case space.cannotBegin(&s, now):
			space.handOver(now)
		case late:
			begin.handOver()
		case !s.Writable:
		case n.draining.Load():
			if now.Sub(drained) < drainEvery {
				continue
			}
			drained = now
			if err := n.group.Transfer(0); err != nil && n.group.Err() == nil {
				n.log.Warn("a node that is being drained cannot hand leadership over", "error", err)
			}
		case space.look(n.sessions.OutOfSpace(), now):
			space.handOver(now)
		}
	}
}

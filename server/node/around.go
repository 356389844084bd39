package node

import (
	"strconv"
	"sync"
	"time"

	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/server/metrics"
)

// around is what a leader has last heard of the other members. It is asked for apart from
// /metrics, which must not wait for a member that does not answer.
type around struct {
	mu      sync.Mutex
	members []heard
}

// heard is how a member stood.
type heard struct {
	id        uint64
	addr      string
	reachable bool
	entries   int64         // it is behind by; -1: unknown
	lag       time.Duration // it is behind by; -1: unknown
}

// aroundEvery is how often the leader asks.
const aroundEvery = 2 * time.Second

// lookAround brings n.around up to date while this node leads, and asks for a leader where it
// knows none.
func (n *Node) lookAround() {
	s := n.group.Status()
	if s.Leader == 0 && !s.Provisioning {
		n.lookElsewhere()
	}
	if !s.Provisioning {
		n.tellMajority(s.Leader)
		n.apart.look(n, s.Error, time.Now())
	}
	// Not Writable: one whose disk is full leads, too.
	if s.Leader != n.group.ID() || s.Provisioning {
		n.around.set(nil)
		return
	}
	n.around.hear(n.group.ID(), n.group.Members(), n.group.GroupStatus())
}

// hear takes answers in.
func (a *around) hear(self uint64, members []group.Member, states []group.Status) {
	var now []heard
	for _, m := range members {
		if m.ID == self {
			continue
		}
		h := heard{id: m.ID, addr: m.Addr, entries: -1, lag: -1}
		for i := range states {
			if s := &states[i]; s.ID == m.ID {
				h.reachable = s.Error == "" || s.Provisioning
				h.entries, h.lag = s.Lag.Entries, max(s.SeenLag, s.Lag.Time)
				if s.Provisioning { // it is told apart
					h.lag = -1
				}
			}
		}
		now = append(now, h)
	}
	a.set(now)
}

func (a *around) set(members []heard) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.members = members
}

func (a *around) all() []heard {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.members
}

// metrics tells of the members.
func (a *around) metrics(m *metrics.Writer) {
	for _, h := range a.all() {
		labels := []string{"member", strconv.FormatUint(h.id, 10), "address", h.addr}
		m.Set("trireme_group_member_reachable", metrics.On(h.reachable), labels...)
		if h.entries >= 0 {
			m.Set("trireme_group_member_lag_entries", float64(h.entries), labels...)
		}
		if h.lag >= 0 {
			m.Set("trireme_group_member_lag_seconds", h.lag.Seconds(), labels...)
		}
	}
}

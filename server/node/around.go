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
	applied   uint64 // index, when it last answered
	behind    uint64 // entries, by what the group has agreed on since
}

// aroundEvery is how often the leader asks.
const aroundEvery = 2 * time.Second

// lookAround brings n.around up to date while this node leads.
func (n *Node) lookAround() {
	// Not Writable: one whose disk is full leads, too.
	if s := n.group.Status(); s.Leader != n.group.ID() || s.Provisioning {
		n.around.set(nil)
		return
	}
	n.around.hear(n.group.ID(), n.group.Members(), n.group.GroupStatus())
}

// hear takes answers in. Of a member that does not answer, what it had applied before holds.
func (a *around) hear(self uint64, members []group.Member, states []group.Status) {
	committed := uint64(0)
	for i := range states {
		committed = max(committed, states[i].Committed)
	}
	var now []heard
	for _, m := range members {
		if m.ID == self {
			continue
		}
		h := heard{id: m.ID, addr: m.Addr}
		for _, before := range a.all() {
			if before.id == m.ID {
				h.applied = before.applied
			}
		}
		for i := range states {
			s := &states[i]
			if s.ID == m.ID && s.Error == "" {
				h.applied = s.Applied
			}
			h.reachable = h.reachable || s.ID == m.ID && (s.Error == "" || s.Provisioning)
		}
		h.behind = committed - min(committed, h.applied)
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

// metrics tells of the members. One that has not answered since this node leads may have
// applied anything.
func (a *around) metrics(m *metrics.Writer) {
	for _, h := range a.all() {
		labels := []string{"member", strconv.FormatUint(h.id, 10), "address", h.addr}
		m.Set("trireme_group_member_reachable", metrics.On(h.reachable), labels...)
		if h.applied > 0 {
			m.Set("trireme_group_member_lag_entries", float64(h.behind), labels...)
		}
	}
}

package node

import (
	"time"

	"github.com/triremedb/trireme/replication/group"
)

// beginWatch lets another member lead when this one was elected and has much to apply before it takes writes, while
// another has applied all. It hears its followers and is heard, so that they elect nobody.
type beginWatch struct {
	n     *Node
	since time.Time // since when this node leads and has not begun, or when it has offered to hand over; zero: neither
}

// beginGrace is how long a leader may take to begin: it is longer than an election takes.
const beginGrace = time.Second

// isLate is told how this node stands, often. It reports whether another is to be looked for that can begin.
func (w *beginWatch) isLate(s *group.Status, now time.Time) bool {
	switch {
	case s.Leader != s.ID || s.Writable:
		w.since = time.Time{}
	case w.since.IsZero():
		w.since = now
	case now.Sub(w.since) >= beginGrace:
		w.since = now
		return true
	}
	return false
}

// handOver asks the member to lead that has applied all, if there is one.
func (w *beginWatch) handOver() {
	to := current(w.n.group.ID(), w.n.group.Members(), w.n.group.GroupStatus())
	if to == 0 {
		return
	}
	w.n.log.Warn("this member leads and has much to apply before it takes writes: another that has applied everything is to lead", "member", to)
	if err := w.n.group.Transfer(to); err != nil {
		w.n.log.Warn("leadership was not handed over", "member", to, "error", err)
	}
}

// current is the voter that has applied all that it knows to be committed, and more than this node has; 0: there is none.
func current(self uint64, members []group.Member, states []group.Status) uint64 {
	to := roomier(self, members, states)
	var own, best group.Status
	for i := range states {
		switch states[i].ID {
		case self:
			own = states[i]
		case to:
			best = states[i]
		}
	}
	if to == 0 || best.Applied < best.Committed || best.Applied < own.Committed || best.Applied <= own.Applied {
		return 0
	}
	return to
}

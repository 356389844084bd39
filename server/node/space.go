package node

import (
	"slices"
	"time"

	"github.com/triremedb/trireme/replication/group"
)

// spaceWatch lets another member lead when tables cannot grow on this one. Statements that
// need space fail with error 1114 then, while the log may have some left and the group sees
// nothing wrong. The same goes for one that was elected and cannot begin, since it has no space to apply what
// the group has committed: it hears its followers and is heard, so that they elect nobody.
type spaceWatch struct {
	n     *Node
	seen  uint64    // statements that had failed for want of space
	since time.Time // when they began to; zero: they do not
	last  time.Time // when one was seen
	next  time.Time // until when leadership is not offered again
	stuck time.Time // since when this node leads and cannot begin; zero: it does not
}

const (
	// spaceGrace is how long statements have to fail.
	spaceGrace = 2 * time.Second
	// spaceQuiet is how long none may fail until there is space again.
	spaceQuiet = time.Second
	// spaceAgain is how long a leader waits before it offers leadership again: the others'
	// disks may be full as well.
	spaceAgain = 30 * time.Second
)

// look is told how many statements have failed so far, often, while this node leads. It
// reports whether another is to lead.
func (w *spaceWatch) look(failed uint64, now time.Time) bool {
	if failed == w.seen {
		if now.Sub(w.last) > spaceQuiet {
			w.since = time.Time{}
		}
		return false
	}
	w.seen, w.last = failed, now
	if w.since.IsZero() {
		w.since = now
	}
	if now.Sub(w.since) < spaceGrace || now.Before(w.next) {
		return false
	}
	w.next = now.Add(spaceAgain)
	return true
}

// cannotBegin is told how this node stands, often, while it takes no writes. It reports whether another is to
// lead; nobody writes until one does, so it does so again soon.
func (w *spaceWatch) cannotBegin(s *group.Status, now time.Time) bool {
	switch {
	case s.Leader != s.ID || s.Writable || !s.DiskFull:
		w.stuck = time.Time{}
	case w.stuck.IsZero():
		w.stuck = now
	case now.Sub(w.stuck) >= spaceGrace:
		w.stuck = now
		return true
	}
	return false
}

// handOver asks the best of the others to lead.
func (w *spaceWatch) handOver() {
	to := roomier(w.n.group.ID(), w.n.group.Members(), w.n.group.GroupStatus())
	if to == 0 {
		w.n.log.Warn("tables cannot grow here since there is no space, and no other member can lead")
		return
	}
	w.n.log.Warn("tables cannot grow here since there is no space: another member is to lead", "member", to)
	if err := w.n.group.Transfer(to); err != nil {
		w.n.log.Warn("leadership was not handed over", "member", to, "error", err)
	}
}

// roomier is the voter that has applied most of those that can be reached, have space, and a disk that answers and
// gives back what is read; 0: there is none.
func roomier(self uint64, members []group.Member, states []group.Status) (best uint64) {
	applied := uint64(0)
	for i := range states {
		s := &states[i]
		if s.ID == self || s.Error != "" || s.DiskFull || s.DiskStalled > 0 || s.ReadsFail || s.Provisioning || best != 0 && s.Applied <= applied {
			continue
		}
		for _, m := range members {
			if m.ID == s.ID && !m.Learner {
				best, applied = s.ID, s.Applied
			}
		}
	}
	return best
}

// heir is whom this node had better hand leadership to when it stops; 0: whoever knows most, as all disks are well.
func heir(self uint64, members []group.Member, states []group.Status) uint64 {
	if !slices.ContainsFunc(states, func(s group.Status) bool { return s.DiskFull || s.DiskStalled > 0 || s.ReadsFail }) {
		return 0
	}
	return roomier(self, members, states)
}

package node

import (
	"maps"
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
	seen  uint64               // statements that had failed for want of space
	since time.Time            // when they began to; zero: they do not
	last  time.Time            // when one was seen
	next  time.Time            // until when leadership is not offered again
	stuck time.Time            // since when this node leads and cannot begin; zero: it does not
	later map[uint64]time.Time // until when members are not asked to lead that were
	told  time.Time            // when it was said last that nobody can
}

const (
	// spaceGrace is how long statements have to fail, and until the others are looked at again: one of them may have got room.
	spaceGrace = 2 * time.Second
	// spaceQuiet is how long none may fail until there is space again.
	spaceQuiet = time.Second
	// spaceAgain is how long a member that was asked to lead is not asked again, since this node leads all the same: what it lacks may not show,
	// as a quota does not in what is free of its disk.
	spaceAgain = 30 * time.Second
)

// look is told how many statements have failed so far, often, while this node leads. It
// reports whether another is to lead.
func (w *spaceWatch) look(failed uint64, now time.Time) bool {
	if now.Sub(w.last) > spaceQuiet {
		w.since = time.Time{}
	}
	if failed == w.seen {
		return false
	}
	w.seen, w.last = failed, now
	if w.since.IsZero() {
		w.since = now
	}
	if now.Sub(w.since) < spaceGrace || now.Before(w.next) {
		return false
	}
	w.next = now.Add(spaceGrace)
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
func (w *spaceWatch) handOver(now time.Time) {
	to := w.choose(w.n.group.ID(), w.n.group.Members(), w.n.group.GroupStatus(), now)
	if to == 0 {
		if now.Sub(w.told) >= spaceAgain {
			w.told = now
			w.n.log.Warn("tables cannot grow here since there is no space, and no other member can lead")
		}
		return
	}
	w.n.log.Warn("tables cannot grow here since there is no space: another member is to lead", "member", to)
	if err := w.n.group.Transfer(to); err != nil {
		w.later[to] = now.Add(2 * spaceGrace) // another one first, if there is one
		w.n.log.Warn("leadership was not handed over", "member", to, "error", err)
	}
}

// choose is the best of those that were not asked of late, and notes that it is asked now; 0: there is none.
func (w *spaceWatch) choose(self uint64, members []group.Member, states []group.Status, now time.Time) uint64 {
	maps.DeleteFunc(w.later, func(_ uint64, until time.Time) bool { return !now.Before(until) })
	to := roomier(self, members, slices.DeleteFunc(slices.Clone(states), func(s group.Status) bool { return !w.later[s.ID].IsZero() }))
	if to == 0 {
		return 0
	}
	if w.later == nil {
		w.later = map[uint64]time.Time{}
	}
	w.later[to] = now.Add(spaceAgain)
	return to
}

// illDisk reports whether a member's disk has no room, does not answer or does not give back what is read.
func illDisk(s *group.Status) bool { return s.DiskFull || s.DiskStalled > 0 || s.ReadsFail }

// roomier is the voter that has applied most of those that can be reached and have a disk that is well, and of those that have applied as much
// the one with most room; 0: there is none.
func roomier(self uint64, members []group.Member, states []group.Status) uint64 {
	var best *group.Status
	for i := range states {
		s := &states[i]
		votes := slices.ContainsFunc(members, func(m group.Member) bool { return m.ID == s.ID && !m.Learner })
		if s.ID == self || !votes || s.Error != "" || s.Provisioning || illDisk(s) {
			continue
		}
		if best == nil || s.Applied > best.Applied || s.Applied == best.Applied && s.DiskFree > best.DiskFree {
			best = s
		}
	}
	if best == nil {
		return 0
	}
	return best.ID
}

// heir is whom this node had better hand leadership to when it stops; 0: whoever knows most, as all disks are well.
func heir(self uint64, members []group.Member, states []group.Status) uint64 {
	if !slices.ContainsFunc(states, func(s group.Status) bool { return illDisk(&s) }) {
		return 0
	}
	return roomier(self, members, states)
}

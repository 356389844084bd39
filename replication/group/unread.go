package group

import "time"

// unread is what a member does about a disk that fails to give back pages of the data: reads of them end with an error, or bring
// what was not written there (a wrong checksum, a page as it was before), and the statement that needs the page fails. Nothing that is agreed on is touched by that. The log is written, so
// that the group sees nothing wrong with a leader of whose statements most fail.
//
// So it hands over, once errors have come for unreadFor: of a single one that passes clients see less than of a change of the leader.
// The others' copies are on other disks. Where it is the only voter it leads on, with what it can read.
//
// A follower that needs such a page to apply the log stops by itself (apply). One that has not needed any yet lets the others stand for election
// first, as one does that has much to apply (stand.go); it stands where they do not.
type unread struct {
	count uint64        // errors so far
	since time.Duration // when the first of these times came; 0: all is well
	seen  time.Duration // when the last one was noticed
	said  time.Duration // when the log said so last
	handOvers
}

const (
	// unreadFor is for how long errors come before a leader hands over.
	unreadFor = time.Second
	// unreadOver is how long none must come until the disk is taken to be well.
	unreadOver = time.Minute
	// unreadSaid is how often the log tells of errors while they come.
	unreadSaid = time.Minute
	// unreadAdvice is what the log says to the operator.
	unreadAdvice = "see to the disk: dmesg, smartctl -a, the volume's state. Stop this node, replace the disk or the node, and let it get its data " +
		"from another member: docs/operations-storage.md, A failing disk"
)

// tick looks whether reads have failed, and hands over if that has to be.
func (u *unread) tick(t *raftTask, now time.Duration) {
	u.handOvers.tick(t)
	spaces := t.n.engine.Spaces
	count := spaces.ReadErrors()
	if count == u.count {
		if u.since != 0 && now-u.seen >= unreadOver {
			t.n.log.Info("reads of pages have not failed for a while", "for", unreadOver, "errors", count)
			u.since, u.said = 0, 0
			t.n.readsFail.Store(false)
			u.forget()
		}
		return
	}
	u.count, u.seen = count, now
	if u.since == 0 {
		u.since = now
		t.n.readsFail.Store(true)
	}
	if u.said == 0 || now-u.said >= unreadSaid {
		u.said = now
		name, offset, err := spaces.LastReadError()
		t.n.log.Error("the disk fails to give back a page of the data: what needs it fails",
			"file", name, "offset", offset, "error", err, "errors", count, "leads", t.role.leads, "advice", unreadAdvice)
	}
	if now-u.since >= unreadFor && u.due(t, now) && t.othersVote() {
		u.begin(t, now, "reads of this member's disk fail, and the others have disks of their own")
	}
}

// othersVote reports whether the group has another voter than this member.
func (t *raftTask) othersVote() bool {
	for _, m := range t.n.membership.current() {
		if m.ID != t.n.opt.ID && !m.Learner {
			return true
		}
	}
	return false
}

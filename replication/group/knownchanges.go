package group

import (
	"math"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// knownChanges keeps a change of membership from taking effect, and from being told, before this member's disk knows that it is committed.
//
// Raft puts a change in force as soon as it is committed. A leader that told so and then forgot it would come back with the membership
// before, in which it may need the vote of a member that has heard of its own removal and has stopped for good. So the leader's messages
// tell no commit index that covers a change which its own disk does not know (limit), and on every member a change, with
// what is committed behind it, waits until the disk does (hold): what a member says of another's removal it says for certain.
//
// Nothing but changes of membership waits: for one write of the state file.
type knownChanges struct {
	at     []uint64          // indexes of changes that this member has appended and does not know to be committed, ascending
	unread uint64            // up to here entries were in the log at the start: any may be a change
	passed uint64            // up to here entries were let through
	held   []*raftpb.Message // of the apply thread, in order
}

// appended notes the changes among entries that take the place of those from their first index on.
func (k *knownChanges) appended(entries []*raftpb.Entry) {
	if len(entries) == 0 {
		return
	}
	at, _ := slices.BinarySearch(k.at, entries[0].GetIndex())
	k.at = k.at[:at]
	for _, e := range entries {
		if e.GetType() != raftpb.EntryNormal {
			k.at = append(k.at, e.GetIndex())
		}
	}
}

// limit is the highest commit index that may be told, if the disk knows one.
func (k *knownChanges) limit(known uint64) uint64 {
	for len(k.at) > 0 && k.at[0] <= known {
		k.at = k.at[1:]
	}
	limit := uint64(math.MaxUint64)
	if so := max(known, k.passed); so < k.unread {
		limit = so
	}
	if len(k.at) > 0 {
		limit = min(limit, k.at[0]-1)
	}
	return limit
}

// cap keeps a message of the leader to the limit. Raft tells the index again with each heartbeat.
func (k *knownChanges) cap(m *raftpb.Message, known uint64) {
	if t := m.GetType(); (t == raftpb.MsgApp || t == raftpb.MsgHeartbeat) && m.Commit != nil {
		if limit := k.limit(known); m.GetCommit() > limit {
			m.Commit = &limit
		}
	}
}

// hold takes entries that Raft gives out as committed, and reports whether the disk has to learn that first.
func (k *knownChanges) hold(m *raftpb.Message, known uint64) (wait bool) {
	k.held = append(k.held, m)
	return lastChange(m) > known
}

// next is the next of those that may be let through; nil: there is none.
func (k *knownChanges) next(known uint64) *raftpb.Message {
	if len(k.held) == 0 || lastChange(k.held[0]) > known {
		return nil
	}
	m := k.held[0]
	k.held = slices.Delete(k.held, 0, 1)
	k.passed = m.GetEntries()[len(m.GetEntries())-1].GetIndex()
	return m
}

// lastChange is the index of the last change of membership among a message's entries; 0: there is none.
func lastChange(m *raftpb.Message) (index uint64) {
	for _, e := range m.GetEntries() {
		if e.GetType() != raftpb.EntryNormal {
			index = e.GetIndex()
		}
	}
	return index
}

// knownCommit is the commit index that the disk knows.
func (t *raftTask) knownCommit() uint64 {
	if t.n.opt.Sabotage == ForgetCommit || t.n.opt.Sabotage == TellUnknown {
		return math.MaxUint64
	}
	return t.n.raftlog.Known()
}

// apply lets committed entries through, or has the disk learn first that they are committed.
func (t *raftTask) apply(m *raftpb.Message) {
	if t.known.hold(m, t.knownCommit()) {
		t.n.writer.put(&raftpb.Message{Type: raftpb.MsgStorageAppend.Enum(), Commit: t.commit})
		if !t.guest {
			t.n.writer.parker.Unpark()
		}
	}
	t.applyKnown()
}

// applyKnown lets through what the disk knows to be committed.
func (t *raftTask) applyKnown() {
	for m := t.known.next(t.knownCommit()); m != nil; m = t.known.next(t.knownCommit()) {
		t.committed(m)
		t.n.raftlog.GaveOut(t.known.passed, *t.commit)
	}
}

package group

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
)

var (
	// ErrForgotten: the directory is older than what this member has acknowledged. The node has stopped.
	ErrForgotten = errors.New("group: these data are older than what this member had acknowledged")
	// ErrContradicts: this member has applied entries that the group's leader does not have. The node
	// has stopped.
	ErrContradicts = errors.New("group: the data of this member contradict the group's")
)

// disowned ends the node if what its leader says proves that the node's data cannot be those of this
// member of this group. Raft takes such messages for impossible: it panics upon some, and upon others
// the leader and the member misunderstand each other without end.
func (t *raftTask) disowned(m *raftpb.Message) bool {
	if !fromLeader(m) {
		return false
	}
	err := forgotten(m, t.n.binlog.LastIndex())
	if err == nil {
		err = t.n.contradiction(m)
	}
	var unlike error
	if err == nil {
		unlike = t.unlike(m)
	}
	switch {
	case err == nil && unlike == nil, m.GetTerm() < t.raft.BasicStatus().HardState.GetTerm(): // Raft ignores a former leader
		return false
	case err != nil:
		t.n.fail(err)
	default:
		t.stopUnlike(m.GetTerm(), unlike)
	}
	return true
}

// forgotten compares the end of the log with what the leader knows of it: a heartbeat never tells a
// member that more is committed than the member has acknowledged, and that was durable in its log.
func forgotten(m *raftpb.Message, last uint64) error {
	if m.GetType() != raftpb.MsgHeartbeat || m.GetCommit() <= last {
		return nil
	}
	return fmt.Errorf("%w: its leader, member %d, has its word for the log up to index %d, and the log in the directory ends at %d. "+
		"An older copy of the directory was put back, or files of the log are missing: stop this member, empty its directory and "+
		"start it again, so that it joins as a new member", ErrForgotten, m.GetFrom(), m.GetCommit(), last)
}

// contradiction compares the terms of the newest entry that this member knows to be committed and that
// the message tells of. A leader has all that is committed, so they are equal, and by Raft's log
// matching all entries before are. What is committed here is durable here, and does not change.
func (c *core) contradiction(m *raftpb.Message) error {
	committed := c.committed.Load()
	index, term := m.GetIndex(), m.GetLogTerm()
	if m.GetType() == raftpb.MsgSnap {
		index, term = m.GetSnapshot().GetMetadata().GetIndex(), m.GetSnapshot().GetMetadata().GetTerm()
	}
	for _, e := range m.GetEntries() {
		if e.GetIndex() > committed {
			break
		}
		index, term = e.GetIndex(), e.GetTerm()
	}
	if index == 0 || index > committed {
		return nil
	}
	own, err := c.binlog.Term(index)
	if err != nil || own == term { // the log does not go back as far, or its damage is told by who reads it
		return nil
	}
	return fmt.Errorf("%w: this member has applied entry %d of term %d, and its leader, member %d, has one of term %d there. %s",
		ErrContradicts, index, own, m.GetFrom(), term, contradictsAdvice)
}

const contradictsAdvice = "Either this directory is a copy that belongs to another past of the group: stop this member, empty its directory and start it " +
	"again, so that it joins as a new member. Or the others were put back from older copies, and the group has lost what this member has: then keep " +
	"this directory, and see docs/operations-group.md, When a member's data contradict the group's"

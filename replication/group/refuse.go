package group

import (
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// refuse says why a message of another member must not come to Raft; empty: it may. leader is whom
// this member follows in the message's term.
func refuse(m *raftpb.Message, leader uint64) string {
	switch m.GetType() {
	case raftpb.MsgTransferLeader:
		// Raft would hand over with the lease in force. The other one would be elected
		// against all promises.
		return "only this member hands its lead over"
	case raftpb.MsgTimeoutNow:
		if leader != m.GetFrom() {
			return "only the leader hands its lead over"
		}
	}
	return ""
}

// unfit reports whether a message of another member must not come to Raft.
func (t *raftTask) unfit(m *raftpb.Message) bool {
	var leader uint64
	if m.GetType() == raftpb.MsgTimeoutNow { // seldom; the role may be that of the turn before
		if s := t.raft.BasicStatus(); s.HardState.GetTerm() == m.GetTerm() && s.RaftState == raft.StateFollower {
			leader = s.Lead
		}
	}
	why := refuse(m, leader)
	if why != "" {
		t.n.log.Warn("a message was refused", "type", m.GetType().String(), "from", m.GetFrom(), "reason", why)
	}
	return why != ""
}

package transport

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
)

// Raft takes for granted that a message has what one of its type has, and panics where it has
// not. No message of another member is to end this process: those that Raft never sends are
// refused here. What contradicts what the receiver knows is the receiver's to refuse.

const (
	// maxNumber is the greatest term and index: one up can always be counted from there.
	maxNumber = 1 << 62
	// roundSize is what Raft reads of the context of a heartbeat and of its answer, if there is one.
	roundSize = 8
	// maxRound is the longest context of those two. Members tell each other more behind the round, in
	// numbers of the same size: three of them today.
	maxRound = 64
	// maxVote is the longest context of a vote that is asked for: that a leader has handed over. Raft
	// sends contexts with nothing else.
	maxVote = 16
	// maxQuestion is the longest context of a question for an index to read at. Raft keeps
	// such questions.
	maxQuestion = 1024
)

// carried reports whether a message of this type travels between nodes. Some never leave their
// node; proposals are not forwarded; and a leader hands over only when its own node says so, which
// gives up its lease before.
func carried(t raftpb.MessageType) bool {
	switch t {
	case raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgSnap, raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp,
		raftpb.MsgPreVote, raftpb.MsgPreVoteResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgTimeoutNow,
		raftpb.MsgReadIndex, raftpb.MsgReadIndexResp:
		return true
	}
	return false
}

// misshapen says why a message, of a type that is carried and whose entries follow each other, is
// none that Raft sends; nil if it may be one.
func misshapen(m *raftpb.Message) error {
	ents := m.GetEntries()
	switch t := m.GetType(); {
	case (m.GetTerm() == 0) != (t == raftpb.MsgReadIndex): // one without a term counts as the node's own
		return fmt.Errorf("a message of type %v with term %d", t, m.GetTerm())
	case m.GetSnapshot() != nil && t != raftpb.MsgSnap:
		return fmt.Errorf("a message of type %v with a snapshot", t)
	case !fits(m.GetContext(), t):
		return fmt.Errorf("a message of type %v with a context of %d bytes", t, len(m.GetContext()))
	}
	for _, n := range [...]uint64{m.GetTerm(), m.GetLogTerm(), m.GetIndex(), m.GetCommit(), m.GetRejectHint(),
		m.GetSnapshot().GetMetadata().GetIndex(), m.GetSnapshot().GetMetadata().GetTerm()} {
		if n > maxNumber {
			return fmt.Errorf("a message of type %v with the number %d, at most %d are possible", m.GetType(), n, uint64(maxNumber))
		}
	}
	switch t := m.GetType(); t {
	case raftpb.MsgApp:
		return misplaced(m, ents)
	case raftpb.MsgReadIndex, raftpb.MsgReadIndexResp:
		if len(ents) != 1 || len(ents[0].GetData()) > maxQuestion {
			return fmt.Errorf("a message of type %v with %d entries", t, len(ents))
		}
		return nil
	}
	if len(ents) > 0 {
		return fmt.Errorf("a message of type %v with %d entries", m.GetType(), len(ents))
	}
	return nil
}

// fits reports whether a message of a type may have such a context.
func fits(context []byte, t raftpb.MessageType) bool {
	n := len(context)
	switch t {
	case raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp:
		return n%roundSize == 0 && n <= maxRound
	case raftpb.MsgVote, raftpb.MsgPreVote:
		return n <= maxVote
	}
	return n == 0
}

// misplaced says why entries cannot be those that follow the one which a message of a leader names.
func misplaced(m *raftpb.Message, ents []*raftpb.Entry) error {
	if len(ents) == 0 {
		return nil
	}
	first, last := ents[0], ents[len(ents)-1]
	switch {
	case first.GetIndex() != m.GetIndex()+1 || last.GetIndex() > maxNumber:
		return fmt.Errorf("entries %d to %d behind entry %d", first.GetIndex(), last.GetIndex(), m.GetIndex())
	case first.GetTerm() == 0 || first.GetTerm() < m.GetLogTerm() || last.GetTerm() > m.GetTerm():
		return fmt.Errorf("entries of the terms %d to %d, behind one of term %d, from the leader of term %d",
			first.GetTerm(), last.GetTerm(), m.GetLogTerm(), m.GetTerm())
	}
	return nil
}

package group

import (
	"encoding/binary"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// bounds are what this member's Raft has said. Raft trusts that no message refers to more than
// that, and panics, or counts on what is not there, if one does. Messages that cannot be right
// whatever a member has said do not come through the transport.
type bounds struct {
	last        uint64 // index of the newest entry of the log, as it was given out to be written
	rounds, own sentRound
}

// sentRound is the newest round of heartbeats of a kind that was sent.
type sentRound struct{ term, number uint64 }

// of are the rounds to which a number belongs.
func (b *bounds) of(round uint64) *sentRound {
	if round&ownRound != 0 {
		return &b.own
	}
	return &b.rounds
}

// appended notes entries that are given out to be written.
func (b *bounds) appended(entries []*raftpb.Entry) {
	if n := len(entries); n > 0 {
		b.last = entries[n-1].GetIndex()
	}
}

// sent notes a message for another member.
func (b *bounds) sent(m *raftpb.Message) {
	if m.GetType() != raftpb.MsgHeartbeat || len(m.GetContext()) < roundSize {
		return
	}
	n := binary.LittleEndian.Uint64(m.GetContext())
	if s := b.of(n); m.GetTerm() > s.term || m.GetTerm() == s.term && n > s.number {
		*s = sentRound{m.GetTerm(), n}
	}
}

// refuse says why a message of another member must not come to Raft; empty: it may. leads says
// that this member leads in the term of the message, and leader is whom it follows in that term,
// as Raft has it.
func (b *bounds) refuse(m *raftpb.Message, leads bool, leader uint64) string {
	switch m.GetType() {
	case raftpb.MsgTransferLeader:
		// Raft would hand over with the lease in force. The other one would be elected
		// against all promises.
		return "only this member hands its lead over"
	case raftpb.MsgTimeoutNow:
		if leader != m.GetFrom() {
			return "only the leader hands its lead over"
		}
	case raftpb.MsgAppResp:
		if leads && m.GetIndex() > b.last {
			return fmt.Sprintf("it is about entry %d, and the log ends at %d", m.GetIndex(), b.last)
		}
	case raftpb.MsgHeartbeatResp:
		if !leads || len(m.GetContext()) < roundSize {
			break
		}
		n := binary.LittleEndian.Uint64(m.GetContext())
		if s := b.of(n); m.GetTerm() != s.term || n > s.number {
			return fmt.Sprintf("it answers round %d of heartbeats, which was not sent", n&^ownRound)
		}
	}
	return ""
}

// unfit reports whether a message of another member must not come to Raft.
func (t *raftTask) unfit(m *raftpb.Message) bool {
	if m.GetTerm() < t.role.term && m.GetTerm() != 0 {
		return false // Raft does not look into it
	}
	leads := t.role.leads && t.role.term == m.GetTerm()
	var leader uint64
	if m.GetType() == raftpb.MsgTimeoutNow { // seldom; the role may be that of the turn before
		if s := t.raft.BasicStatus(); s.HardState.GetTerm() == m.GetTerm() && s.RaftState == raft.StateFollower {
			leader = s.Lead
		}
	}
	if why := t.bounds.refuse(m, leads, leader); why != "" {
		t.n.log.Warn("a message was refused", "type", m.GetType().String(), "from", m.GetFrom(), "reason", why)
		if m.GetType() == raftpb.MsgAppResp {
			t.contradictedBy(m)
		}
		return true
	}
	return false
}

// outrunBy are the members that have said, in a term in which this member leads, that they have agreed on entries behind the end of its log.
type outrunBy struct {
	term    uint64
	members []uint64
}

// contradictedBy notes that a member says so. A leader has all that the group has agreed on. One that a majority contradicts was elected since its
// last entry is of a later term: it is of another past, and the others cannot go on before it stops.
func (t *raftTask) contradictedBy(m *raftpb.Message) {
	o := &t.outrunBy
	if o.term != t.role.term {
		*o = outrunBy{term: t.role.term}
	}
	if slices.Contains(o.members, m.GetFrom()) {
		return
	}
	o.members = append(o.members, m.GetFrom())
	voters, say := 0, 0
	for _, v := range t.n.membership.current() {
		if v.Learner {
			continue
		}
		if voters++; slices.Contains(o.members, v.ID) {
			say++
		}
	}
	if say > voters/2 {
		t.n.fail(fmt.Errorf("%w: this member was elected, and a majority of the others (%s) has agreed on entries up to %d, where its log ends at %d. %s",
			ErrContradicts, list(o.members), m.GetIndex(), t.bounds.last, contradictsAdvice))
	}
}

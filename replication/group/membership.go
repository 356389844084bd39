package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Member is a member of the group. Its id is never used again once it has left: a
// node that lost its data comes back as another member.
type Member struct {
	ID      uint64
	Addr    string // where others reach it
	Learner bool   // receives the log, does not vote
	Stays   bool   // a learner for good: it serves reads and is not promoted by itself
}

// membership is who is in the group, as of the log up to an index: Raft's own state
// and the addresses. It is durable together with the applied position.
type membership struct {
	mu      sync.Mutex
	members []Member // sorted by id
	state   *raftpb.ConfState
	pending []memberChange // in force in Raft, not applied yet; rising indexes
}

type memberChange struct {
	index   uint64
	members []Member
	state   *raftpb.ConfState
}

// changed notes a change that has taken effect in Raft.
func (m *membership) changed(index uint64, cc raftpb.ConfChangeI, state *raftpb.ConfState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	members := m.latest()
	if added, err := decodeMember(cc.AsV2().GetContext()); err == nil {
		members = withMember(members, added)
	}
	m.pending = append(m.pending, memberChange{index: index, members: settle(members, state), state: state})
}

// latest are the members after the newest change. They are not to be modified.
func (m *membership) latest() []Member {
	if n := len(m.pending); n > 0 {
		return m.pending[n-1].members
	}
	return m.members
}

// applied returns the encoding of the membership as of index, to be stored with the
// position, and makes it the current one.
func (m *membership) applied(index uint64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.pending) == 0 || m.pending[0].index != index {
		return nil, fmt.Errorf("group: no change of membership is known at index %d", index)
	}
	m.members, m.state = m.pending[0].members, m.pending[0].state
	m.pending = append(m.pending[:0], m.pending[1:]...)
	return encodeMembership(m.members, m.state), nil
}

// current returns the members after the newest change that Raft knows.
func (m *membership) current() []Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.latest())
}

// settle takes out who is not in the configuration any more and says who votes.
func settle(members []Member, s *raftpb.ConfState) []Member {
	var out []Member
	for _, mb := range members {
		votes := slices.Contains(s.GetVoters(), mb.ID) || slices.Contains(s.GetVotersOutgoing(), mb.ID)
		learns := slices.Contains(s.GetLearners(), mb.ID) || slices.Contains(s.GetLearnersNext(), mb.ID)
		if votes || learns {
			mb.Learner = !votes
			out = append(out, mb)
		}
	}
	return out
}

func withMember(members []Member, added Member) []Member {
	out := slices.Clone(members)
	at, found := slices.BinarySearchFunc(out, added.ID, func(m Member, id uint64) int {
		switch {
		case m.ID < id:
			return -1
		case m.ID > id:
			return 1
		}
		return 0
	})
	if found {
		out[at] = added
		return out
	}
	return slices.Insert(out, at, added)
}

// An encoded membership is a version byte, the count of members, and for each its
// id, address and flags (1: learner, 2: stays one); then Raft's state in its own encoding.
const membershipVersion = 1

var errMembership = errors.New("group: the stored membership is malformed")

func encodeMembership(members []Member, s *raftpb.ConfState) []byte {
	b := []byte{membershipVersion}
	b = binary.AppendUvarint(b, uint64(len(members)))
	for _, m := range members {
		b = appendMember(b, m)
	}
	state, err := proto.MarshalOptions{Deterministic: true}.Marshal(s)
	if err != nil {
		panic(err) // of a message with scalars only
	}
	return append(b, state...)
}

func appendMember(b []byte, m Member) []byte {
	b = binary.AppendUvarint(b, m.ID)
	b = binary.AppendUvarint(b, uint64(len(m.Addr)))
	b = append(b, m.Addr...)
	flags := byte(0)
	if m.Learner {
		flags |= 1
	}
	if m.Stays {
		flags |= 2
	}
	return append(b, flags)
}

// cutMember reads a member from the front of b.
func cutMember(b []byte) (m Member, rest []byte, err error) {
	id, n := binary.Uvarint(b)
	if n <= 0 {
		return m, nil, errMembership
	}
	b = b[n:]
	length, n := binary.Uvarint(b)
	if n <= 0 || length >= uint64(len(b)-n) {
		return m, nil, errMembership
	}
	b = b[n:]
	m = Member{ID: id, Addr: string(b[:length]), Learner: b[length]&1 != 0, Stays: b[length]&2 != 0}
	return m, b[length+1:], nil
}

func decodeMembership(b []byte) ([]Member, *raftpb.ConfState, error) {
	if len(b) < 2 {
		return nil, nil, errMembership
	}
	if b[0] != membershipVersion {
		return nil, nil, fmt.Errorf("group: the stored membership has format version %d; this program knows up to %d", b[0], membershipVersion)
	}
	count, n := binary.Uvarint(b[1:])
	if n <= 0 || count > uint64(len(b)) {
		return nil, nil, errMembership
	}
	b = b[1+n:]
	var members []Member
	for range count {
		m, rest, err := cutMember(b)
		if err != nil {
			return nil, nil, err
		}
		members, b = append(members, m), rest
	}
	s := &raftpb.ConfState{}
	if err := proto.Unmarshal(b, s); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errMembership, err)
	}
	return members, s, nil
}

func encodeMember(m Member) []byte { return appendMember(nil, m) }

func decodeMember(b []byte) (Member, error) {
	m, rest, err := cutMember(b)
	if err == nil && len(rest) != 0 {
		err = errMembership
	}
	return m, err
}

// decodeConfChange reads a change of membership from its entry.
func decodeConfChange(e *raftpb.Entry) (raftpb.ConfChangeI, error) {
	if e.GetType() == raftpb.EntryConfChange {
		cc := &raftpb.ConfChange{}
		err := proto.Unmarshal(e.GetData(), cc)
		return cc, err
	}
	cc := &raftpb.ConfChangeV2{}
	err := proto.Unmarshal(e.GetData(), cc)
	return cc, err
}

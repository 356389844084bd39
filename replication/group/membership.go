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

// roster is who is in the group at one index of the log, and who was: a member that was
// removed while it was down is told so whenever it comes back, whoever it asks. It is not
// modified.
type roster struct {
	members []Member // sorted by id
	state   *raftpb.ConfState
	removed []uint64 // the newest last, at most maxRemoved
}

// maxRemoved is how many members that have left are remembered.
const maxRemoved = 256

// membership is the roster as of the log up to an index. It is durable together with the
// applied position.
type membership struct {
	mu      sync.Mutex
	roster  roster
	since   uint64         // what others had heard of when the change that made it took effect; 0: before this start
	pending []memberChange // in force in Raft, not applied yet; rising indexes
}

type memberChange struct {
	index  uint64
	agreed uint64 // the commit index that others may have heard of by then
	roster roster
}

// changed notes a change that has taken effect in Raft.
func (m *membership) changed(index uint64, cc raftpb.ConfChangeI, state *raftpb.ConfState, agreed uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.latest()
	if added, err := decodeMember(cc.AsV2().GetContext()); err == nil {
		r.members = withMember(r.members, added)
	}
	m.pending = append(m.pending, memberChange{index: index, agreed: max(index, agreed), roster: r.settle(state)})
}

// latest is the roster after the newest change.
func (m *membership) latest() roster {
	if n := len(m.pending); n > 0 {
		return m.pending[n-1].roster
	}
	return m.roster
}

// applied returns the encoding of the membership as of index, to be stored with the
// position, and makes it the current one.
func (m *membership) applied(index uint64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.pending) == 0 || m.pending[0].index != index {
		return nil, fmt.Errorf("group: no change of membership is known at index %d", index)
	}
	m.roster, m.since = m.pending[0].roster, m.pending[0].agreed
	m.pending = append(m.pending[:0], m.pending[1:]...)
	return m.roster.encode(), nil
}

// alone reports whether there is no other member, and up to which index of the log others may have
// shown something before they left.
func (m *membership) alone() (since uint64, alone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.since, len(m.pending) == 0 && len(m.roster.members) == 1
}

// leaving reports whether a member is one only until the group leaves a joint configuration.
func (m *membership) leaving(id uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.latest().state
	return slices.Contains(s.GetVotersOutgoing(), id) && !slices.Contains(s.GetVoters(), id) && !slices.Contains(s.GetLearnersNext(), id)
}

// current returns the members after the newest change that Raft knows.
func (m *membership) current() []Member {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.latest().members)
}

// gone returns the ids of those that were removed.
func (m *membership) gone() []uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.latest().removed)
}

// left reports whether a member is among those that were removed.
func (m *membership) left(id uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.latest().removed, id)
}

// settle takes out who is not in the configuration any more and says who votes.
func (r roster) settle(s *raftpb.ConfState) roster {
	out := roster{state: s}
	for _, id := range r.removed {
		if !slices.ContainsFunc(r.members, func(m Member) bool { return m.ID == id }) {
			out.removed = append(out.removed, id)
		}
	}
	for _, mb := range r.members {
		votes := slices.Contains(s.GetVoters(), mb.ID) || slices.Contains(s.GetVotersOutgoing(), mb.ID)
		learns := slices.Contains(s.GetLearners(), mb.ID) || slices.Contains(s.GetLearnersNext(), mb.ID)
		if votes || learns {
			mb.Learner = !votes
			out.members = append(out.members, mb)
		} else {
			out.removed = append(out.removed, mb.ID)
		}
	}
	out.removed = out.removed[max(0, len(out.removed)-maxRemoved):]
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

// An encoded roster is a version byte, the count of members, and for each its id, address
// and flags (1: learner, 2: stays one); the count and the ids of the removed; then Raft's
// state in its own encoding.
const membershipVersion = 2

var errMembership = errors.New("group: the stored membership is malformed")

func (r roster) encode() []byte {
	b := []byte{membershipVersion}
	b = binary.AppendUvarint(b, uint64(len(r.members)))
	for _, m := range r.members {
		b = appendMember(b, m)
	}
	b = binary.AppendUvarint(b, uint64(len(r.removed)))
	for _, id := range r.removed {
		b = binary.AppendUvarint(b, id)
	}
	state, err := proto.MarshalOptions{Deterministic: true}.Marshal(r.state)
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

func decodeRoster(b []byte) (r roster, err error) {
	if len(b) < 2 {
		return r, errMembership
	}
	if b[0] != membershipVersion {
		return r, fmt.Errorf("group: the stored membership has format version %d; this program knows up to %d", b[0], membershipVersion)
	}
	count, n := binary.Uvarint(b[1:])
	if n <= 0 || count > uint64(len(b)) {
		return r, errMembership
	}
	b = b[1+n:]
	for range count {
		m, rest, err := cutMember(b)
		if err != nil {
			return r, err
		}
		r.members, b = append(r.members, m), rest
	}
	if count, n = binary.Uvarint(b); n <= 0 || count > maxRemoved {
		return r, errMembership
	}
	for b = b[n:]; count > 0; count-- {
		id, n := binary.Uvarint(b)
		if n <= 0 {
			return r, errMembership
		}
		r.removed, b = append(r.removed, id), b[n:]
	}
	r.state = &raftpb.ConfState{}
	if err := proto.Unmarshal(b, r.state); err != nil {
		return r, fmt.Errorf("%w: %w", errMembership, err)
	}
	return r, nil
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

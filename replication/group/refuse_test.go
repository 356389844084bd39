package group

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/transport"
)

// lies draws from the bytes of a fuzzer what a member does that was taken over, or whose memory
// is broken.
type lies struct{ left []byte }

func (l *lies) byte() byte {
	if len(l.left) == 0 {
		return 0
	}
	b := l.left[0]
	l.left = l.left[1:]
	return b
}

// number is one of those that are near to something, or any.
func (l *lies) number(near ...uint64) *uint64 {
	b := l.byte()
	if n := int(b >> 4); n < len(near) {
		return new(near[n] + uint64(b&3) - 1)
	}
	switch b & 3 {
	case 0:
		return new(uint64(0))
	case 1:
		return new(uint64(1 << 62))
	case 2:
		return new(uint64(math.MaxUint64))
	}
	var raw [8]byte
	copy(raw[:], l.left)
	l.left = l.left[min(8, len(l.left)):]
	return new(binary.LittleEndian.Uint64(raw[:]))
}

// message draws a message of another member.
func (l *lies) message(r *besieged) *raftpb.Message {
	s := r.raft.BasicStatus()
	last, _ := r.storage.LastIndex()
	term, commit := s.HardState.GetTerm(), s.HardState.GetCommit()
	m := &raftpb.Message{Type: raftpb.MessageType(l.byte() % 24).Enum(), To: new(uint64(1)), From: new(uint64(2 + l.byte()%4)),
		Term: l.number(term, term, term, term, term, term, term, term), LogTerm: l.number(term, 1, 2),
		Index: l.number(last, commit, last, commit), Commit: l.number(last, commit), RejectHint: l.number(last, commit), Reject: new(l.byte()&1 == 1)}
	if before, err := r.storage.Term(last); err == nil && l.byte()&1 == 1 { // what it has is right
		m.Index, m.LogTerm = new(last), new(before)
	}
	switch b := l.byte(); b & 3 {
	case 1:
		m.Context = binary.LittleEndian.AppendUint64(nil, *l.number(r.bounds.rounds.number, 1))
		for range b >> 2 % 8 { // freshness, the promise, and what is not known yet
			m.Context = binary.LittleEndian.AppendUint64(m.Context, *l.number())
		}
	case 2:
		m.Context = make([]byte, b>>1)
	case 3:
		m.Context = transferContext
	}
	index := *l.number(m.GetIndex()+1, m.GetIndex()+1, m.GetIndex()+1, last)
	for range l.byte() % 4 {
		m.Entries = append(m.Entries, &raftpb.Entry{Index: new(index), Term: l.number(term, term, 1, 2, 3),
			Type: raftpb.EntryType(l.byte() % 4).Enum(), Data: make([]byte, l.byte())})
		index++
	}
	if l.byte()&7 == 7 {
		m.Snapshot = &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: l.number(last, commit), Term: l.number(term)}}
	}
	return m
}

// besieged is a member as far as Raft's messages come.
type besieged struct {
	raft    *raft.RawNode
	storage *raft.MemoryStorage
	bounds  bounds
	failed  bool   // it has stopped
	wrong   string // what it has read and should not
	states  int    // questions of its own that were answered
	answers int    // those of others
}

func newBesieged(t *testing.T) *besieged {
	r := &besieged{storage: raft.NewMemoryStorage()}
	err := r.storage.ApplySnapshot(&raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(5)), Term: new(uint64(1)),
		ConfState: &raftpb.ConfState{Voters: []uint64{1, 2, 3}, Learners: []uint64{4}}}})
	if err == nil {
		for i := range uint64(4) {
			r.bounds.appended([]*raftpb.Entry{{Index: new(6 + i), Term: new(1 + i/2)}})
			err = r.storage.Append([]*raftpb.Entry{{Index: new(6 + i), Term: new(1 + i/2)}})
		}
	}
	if err == nil {
		err = r.storage.SetHardState(&raftpb.HardState{Term: new(uint64(3)), Commit: new(uint64(7))})
	}
	if err != nil {
		t.Fatal(err)
	}
	r.raft, err = raft.NewRawNode(&raft.Config{ID: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: r.storage, Applied: 5, AsyncStorageWrites: true,
		MaxSizePerMsg: 1 << 20, MaxInflightMsgs: 4, CheckQuorum: true, PreVote: true, DisableProposalForwarding: true, StepDownOnRemoval: true,
		Logger: raftLogger{slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// hear takes a message as it arrives, as the transport and the Raft task do.
func (r *besieged) hear(m *raftpb.Message) {
	msgs, _, err := transport.Copy([]*raftpb.Message{m})
	if err != nil {
		return
	}
	m = msgs[0]
	told(m)
	if p := counted(m); p < 0 || p > promiseMax {
		r.wrong = fmt.Sprintf("a promise of %v", p)
	}
	s := r.raft.BasicStatus()
	leads, leader := s.RaftState == raft.StateLeader && s.HardState.GetTerm() == m.GetTerm(), uint64(0)
	if s.HardState.GetTerm() == m.GetTerm() {
		leader = s.Lead
	}
	switch {
	case m.GetTerm() < s.HardState.GetTerm() && m.GetTerm() != 0:
	case forgotten(m, r.bounds.last) != nil && !leads:
		r.failed = true
		return
	case r.bounds.refuse(m, leads, leader) != "":
		return
	}
	if m.GetType() == raftpb.MsgSnap || m.GetType() == raftpb.MsgReadIndex && s.RaftState != raft.StateLeader {
		return
	}
	_ = r.raft.Step(m)
}

// drain does what Raft wants done.
func (r *besieged) drain(t *testing.T) {
	for r.raft.HasReady() && !r.failed {
		rd := r.raft.Ready()
		r.states += len(rd.ReadStates)
		for _, m := range rd.Messages {
			switch m.GetTo() {
			case raft.LocalAppendThread:
				r.bounds.appended(m.GetEntries())
				for i, e := range m.GetEntries() { // the log takes no others
					before, err := r.storage.Term(e.GetIndex() - 1)
					if i > 0 {
						before = m.GetEntries()[i-1].GetTerm()
					}
					if err == nil && e.GetTerm() < before || e.GetTerm() == 0 {
						t.Fatalf("entry %d of term %d follows one of term %d", e.GetIndex(), e.GetTerm(), before)
					}
				}
				if err := r.storage.Append(m.GetEntries()); err != nil {
					t.Fatal(err)
				}
			case raft.LocalApplyThread:
				// A change of membership that cannot be is a leader's, and a majority's, lie.
				r.failed = slices.ContainsFunc(m.GetEntries(), func(e *raftpb.Entry) bool { return e.GetType() != raftpb.EntryNormal })
			default:
				if m.GetType() == raftpb.MsgReadIndexResp {
					r.answers++
				}
				r.bounds.sent(m)
			}
			for _, own := range m.GetResponses() {
				if own.GetTo() == 1 && !r.failed {
					if err := r.raft.Step(own); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

// elect makes the member the leader, by the votes of an honest one.
func (r *besieged) elect(t *testing.T) {
	_ = r.raft.Campaign()
	r.drain(t)
	for _, typ := range []raftpb.MessageType{raftpb.MsgPreVoteResp, raftpb.MsgVoteResp} {
		term := r.raft.BasicStatus().HardState.GetTerm()
		if typ == raftpb.MsgPreVoteResp {
			term++
		}
		r.hear(&raftpb.Message{Type: typ.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(term)})
		r.drain(t)
	}
}

// play does to a member what is drawn.
func play(t *testing.T, r *besieged, l *lies) {
	for n := 0; len(l.left) > 0 && n < 200 && !r.failed; n++ {
		switch op := l.byte(); op & 15 {
		case 0:
			r.raft.Tick()
		case 1:
			r.elect(t)
		case 2:
			_ = r.raft.Propose(make([]byte, op))
		case 3:
			r.raft.ReadIndex(readContext(1, contextLease, uint64(op)))
		case 4:
			r.raft.ReportSnapshot(uint64(2+op>>6), raft.SnapshotFailure)
		case 5:
			r.raft.ReportUnreachable(uint64(2 + op>>6))
		case 6:
			if op>>6 == 0 {
				r.raft.TransferLeader(2)
			}
		default:
			r.hear(l.message(r))
		}
		if l.byte()&3 != 0 {
			r.drain(t)
		}
	}
	r.drain(t)
	if r.wrong != "" {
		t.Fatal(r.wrong)
	}
}

// FuzzMessages: whatever other members send, Raft does not panic, and what it keeps is bounded.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{1, 8, 9, 1, 1, 1, 1, 1, 1, 1})
	f.Add([]byte{1, 3, 7, 9, 0, 1, 1, 1, 1, 1, 1, 2 | 3<<3, 0, 0, 0})
	f.Fuzz(func(t *testing.T, input []byte) {
		play(t, newBesieged(t), &lies{input})
	})
}

// TestMessages is FuzzMessages with what chance draws.
func TestMessages(t *testing.T) {
	for seed := range race.Fewer(uint64(20_000), 2000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		input := make([]byte, 400)
		for i := range input {
			input[i] = byte(rng.Uint32())
		}
		if seed%2 == 0 { // as a leader
			input[0], input[1] = 1, 1
		}
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Fatalf("seed %d: %v\n%s", seed, p, debug.Stack())
				}
			}()
			play(t, newBesieged(t), &lies{input})
		}()
	}
}

// A leader hands over only by its own will, and takes no answers to what it has not said.
func TestRefuse(t *testing.T) {
	r := newBesieged(t)
	message := func(typ raftpb.MessageType, change func(m *raftpb.Message)) *raftpb.Message {
		m := &raftpb.Message{Type: typ.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(r.raft.BasicStatus().HardState.GetTerm())}
		change(m)
		return m
	}
	r.elect(t)
	if r.raft.BasicStatus().RaftState != raft.StateLeader {
		t.Fatalf("%+v", r.raft.BasicStatus())
	}
	last := r.bounds.last
	if stored, _ := r.storage.LastIndex(); last != stored || last != 10 {
		t.Fatalf("the log ends at %d, bounds say %d", stored, last)
	}
	index := func(n uint64) func(*raftpb.Message) { return func(m *raftpb.Message) { m.Index = &n } }
	round := func(n uint64) func(*raftpb.Message) {
		return func(m *raftpb.Message) { m.Context = binary.LittleEndian.AppendUint64(nil, n) }
	}
	check := func(m *raftpb.Message, refused bool) {
		t.Helper()
		if why := r.bounds.refuse(m, true, 1); (why != "") != refused {
			t.Errorf("%v: %q", m, why)
		}
	}
	check(message(raftpb.MsgTransferLeader, index(0)), true)
	check(message(raftpb.MsgTimeoutNow, index(0)), true)
	check(message(raftpb.MsgAppResp, index(last)), false)
	check(message(raftpb.MsgAppResp, index(last+1)), true)
	check(message(raftpb.MsgHeartbeatResp, index(0)), false)
	check(message(raftpb.MsgHeartbeatResp, round(1)), true)
	r.hear(message(raftpb.MsgAppResp, index(last)))
	r.raft.ReadIndex(readContext(1, contextLease, 1))
	r.drain(t)
	check(message(raftpb.MsgHeartbeatResp, round(1)), false)
	check(message(raftpb.MsgHeartbeatResp, round(2)), true)

	for commit, lost := range map[uint64]bool{last: false, last + 1: true} {
		m := message(raftpb.MsgHeartbeat, func(m *raftpb.Message) { m.Commit = &commit })
		if err := forgotten(m, last); (err != nil) != lost {
			t.Errorf("a leader that counts on %d of %d entries: %v", commit, last, err)
		}
	}
	m := message(raftpb.MsgTimeoutNow, index(0))
	if why := r.bounds.refuse(m, false, 2); why != "" {
		t.Errorf("the leader may not hand over: %s", why)
	}
	if why := r.bounds.refuse(m, false, 3); why == "" {
		t.Error("another member hands the lead over")
	}
}

// What a leader tells behind the number of a round is read whether or not it has a date; where a heartbeat has less, or the round
// alone, nothing is told.
func TestTold(t *testing.T) {
	l := lease{held: true, counts: 2 * time.Second, fresh: freshness{time: 7, index: 8}}
	m := &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), Term: new(uint64(3)), Context: binary.LittleEndian.AppendUint64(nil, 9)}
	l.tell(m, 0, log.Identity{})
	whole := m.GetContext()
	for n := range len(whole) + 1 {
		m.Context = whole[:n]
		f, ok := told(m)
		if want := n >= toldSize; ok != want || want && (f != l.fresh || counted(m) != l.counts) || !want && counted(m) != 0 {
			t.Errorf("of %d bytes: %v, %v, a promise of %v", n, f, ok, counted(m))
		}
		msgs, _, err := transport.Copy([]*raftpb.Message{m})
		if travels := n%8 == 0; travels != (err == nil) || travels && !bytes.Equal(msgs[0].GetContext(), m.GetContext()) {
			t.Errorf("a heartbeat with %d bytes: %v", n, err)
		}
	}
	m.Context = binary.LittleEndian.AppendUint64(slices.Clone(whole[:toldSize-8]), math.MaxUint64)
	if p := counted(m); p != 0 {
		t.Errorf("a promise of %v", p)
	}
	m.Context = binary.LittleEndian.AppendUint64(slices.Clone(whole[:toldSize-8]), math.MaxInt64)
	if p := counted(m); p != promiseMax {
		t.Errorf("a promise of %v", p)
	}
}

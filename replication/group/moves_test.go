package group

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/triremedb/trireme/engine/env"
)

// A request for a change is answered by the entry that it became, and by no other of the same member,
// which an earlier leader, or an earlier request, has left in the log.
func TestChangeOfOthers(t *testing.T) {
	state := &raftpb.ConfState{Voters: []uint64{1, 2, 3}, Learners: []uint64{4}}
	entry := func(index, term uint64) *raftpb.Entry {
		return &raftpb.Entry{Index: &index, Term: &term, Type: raftpb.EntryConfChangeV2.Enum(), Data: []byte{1}}
	}
	for _, c := range []struct {
		name    string
		stage   changeStage
		applied *raftpb.Entry
	}{
		{"Raft has put an empty entry in its place", changeWaits, entry(9, 3)},
		{"it is proposed, and not appended", changeProposed, entry(9, 3)},
		{"another comes before it", changeLogged, entry(9, 3)},
		{"a later leader has put another there", changeLogged, entry(10, 4)},
	} {
		v := moves{change: &changeRequest{cc: addVoter(Member{ID: 4}), node: 4, stage: c.stage, index: 10, term: 3}}
		v.applied(nil, c.applied, state) // what is taken for ours asks the task
		if v.change.stage != c.stage {
			t.Errorf("%s: its stage is %d, and was %d", c.name, v.change.stage, c.stage)
		}
	}
	v := moves{change: &changeRequest{cc: addVoter(Member{ID: 4}), node: 4, stage: changeProposed}}
	v.appended([]*raftpb.Entry{entry(10, 3)})
	v.applied(nil, entry(10, 3), &raftpb.ConfState{Voters: []uint64{1, 2, 4}, VotersOutgoing: []uint64{1, 2, 3}})
	if v.change.stage != changeJoint {
		t.Errorf("its own entry takes it to stage %d", v.change.stage)
	}
}

// Who joins replaces all that had its address when that is proposed.
func TestJoinChange(t *testing.T) {
	cc := joinChange(Member{ID: 9, Addr: "b:1"}, []Member{{ID: 1, Addr: "a:1"}, {ID: 2, Addr: "b:1"}, {ID: 5, Addr: "b:1", Learner: true}, {ID: 9, Addr: "b:1"}})
	var leave []uint64
	for _, c := range cc.GetChanges()[1:] {
		if c.GetType() != raftpb.ConfChangeRemoveNode {
			t.Errorf("%v", c)
		}
		leave = append(leave, c.GetNodeId())
	}
	if len(leave) != 2 || leave[0] != 2 || leave[1] != 5 {
		t.Errorf("%v leave", leave)
	}
}

// Leadership is handed to a voter that answers, and to nobody before: Raft takes no proposals, and the
// lease is gone for the term, once it has begun.
func TestTransferWaits(t *testing.T) {
	state := &raftpb.ConfState{Voters: []uint64{1, 2, 3}, Learners: []uint64{4}}
	task := leads(t, &core{opt: &Options{ID: 1, ElectionTicks: 10}}, state)
	hears := func(id uint64) {
		t.Helper()
		if err := task.raft.Step(&raftpb.Message{Type: raftpb.MsgHeartbeatResp.Enum(), From: &id, To: new(uint64(1)), Term: &task.role.term}); err != nil {
			t.Fatal(err)
		}
	}
	forgets := func() { // whom it has heard
		for range task.n.opt.ElectionTicks {
			task.raft.Tick()
		}
		task.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) {
			if id != 1 && pr.RecentActive {
				t.Fatalf("Raft has not forgotten member %d", id)
			}
		})
	}
	asks := func(to uint64) *transferRequest {
		task.lease.held = true
		r := &transferRequest{to: to, reply: reply{parker: task.env.NewParker()}}
		task.moves.startTransfer(task, r)
		return r
	}
	hands := func() uint64 { return task.raft.BasicStatus().LeadTransferee }
	for to, want := range map[uint64]string{1: "leads already", 4: "none that votes", 5: "none that votes"} {
		if err := asks(to).wait(); err == nil || !strings.Contains(err.Error(), want) || !task.lease.held {
			t.Errorf("to member %d: %v; it has its lease: %v", to, err, task.lease.held)
		}
	}
	for to, want := range map[uint64]string{0: "no other voter is in reach", 3: "member 3 cannot take over"} {
		hears(2)
		hears(3)
		forgets() // both
		if to != 0 {
			hears(2)
		}
		r := asks(to)
		task.moves.tick(task, 1)
		if hands() != 0 || !task.lease.held || r.done.Load() {
			t.Errorf("to member %d, which does not answer: to %d; the lease is held: %v", to, hands(), task.lease.held)
		}
		task.moves.tick(task, r.deadline)
		if !r.done.Load() {
			t.Fatalf("to member %d: no answer", to)
		}
		if err := r.wait(); err == nil || !strings.Contains(err.Error(), want) || !task.lease.held {
			t.Errorf("to member %d: %v", to, err)
		}
	}
	r := asks(3)
	if task.moves.tick(task, 1); hands() != 0 {
		t.Error("a member that was not heard is to lead")
	}
	hears(3)
	if to := task.moves.bestSuccessor(task, &transferRequest{least: 6}); to != 0 {
		t.Errorf("member %d is the best of those that have acknowledged the log up to index 6, which nobody has", to)
	}
	if task.moves.tick(task, 1); hands() != 3 || task.lease.held || r.done.Load() {
		t.Errorf("a member that was heard again: %d is to lead; the lease is held: %v", hands(), task.lease.held)
	}
}

// leads makes a task of member 1, which has just been elected by all voters of a group.
func leads(t *testing.T, c *core, state *raftpb.ConfState) *raftTask {
	t.Helper()
	storage := raft.NewMemoryStorage()
	if err := storage.ApplySnapshot(&raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(5)), Term: new(uint64(1)), ConfState: state}}); err != nil {
		t.Fatal(err)
	}
	node, err := raft.NewRawNode(&raft.Config{ID: 1, ElectionTick: c.opt.ElectionTicks, HeartbeatTick: 1, Storage: storage, Applied: 5, MaxInflightMsgs: 1, MaxSizePerMsg: 1 << 20, CheckQuorum: true})
	if err == nil {
		err = node.Campaign()
	}
	if err != nil {
		t.Fatal(err)
	}
	for node.BasicStatus().RaftState != raft.StateLeader {
		if node.HasReady() {
			node.Advance(node.Ready())
		}
		term := node.BasicStatus().HardState.Term
		for _, id := range state.GetVoters()[1:] {
			if err := node.Step(&raftpb.Message{Type: raftpb.MsgVoteResp.Enum(), From: &id, To: new(uint64(1)), Term: term}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return &raftTask{n: c, env: env.Real(), raft: node, tick: time.Millisecond, role: role{term: node.BasicStatus().HardState.GetTerm(), leader: 1, leads: true}}
}

// Raft answers the question of another member when this one knows what was committed before it
// led: not in the turn in which it is elected either. What came too early is kept until then.
func TestAnswersReads(t *testing.T) {
	storage := raft.NewMemoryStorage()
	if err := storage.ApplySnapshot(&raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(5)), Term: new(uint64(1)),
		ConfState: &raftpb.ConfState{Voters: []uint64{1}, Learners: []uint64{2}}}}); err != nil {
		t.Fatal(err)
	}
	node, err := raft.NewRawNode(&raft.Config{ID: 1, ElectionTick: 10, HeartbeatTick: 1, Storage: storage, Applied: 5, MaxInflightMsgs: 1, MaxSizePerMsg: 1 << 20, CheckQuorum: true})
	if err != nil {
		t.Fatal(err)
	}
	c := &core{}
	c.membership.roster.members = []Member{{ID: 1}, {ID: 2, Learner: true}}
	task := &raftTask{n: c, raft: node}
	question := &raftpb.Message{Type: raftpb.MsgReadIndex.Enum(), From: new(uint64(2)), Entries: []*raftpb.Entry{{Data: []byte("a")}}}
	if err := node.Campaign(); err != nil {
		t.Fatal(err)
	}
	for node.BasicStatus().RaftState != raft.StateLeader {
		if task.answersReads(question) {
			t.Fatal("it does not lead")
		}
		rd := node.Ready()
		if err := storage.Append(rd.Entries); err != nil {
			t.Fatal(err)
		}
		node.Advance(rd)
	}
	if task.answersReads(question) {
		t.Error("in the turn in which it is elected")
	}
	task.role = role{term: node.BasicStatus().HardState.GetTerm(), leader: 1, leads: true}
	if task.answersReads(question) {
		t.Error("before it knows where its term begins")
	}
	if task.first = 6; task.answersReads(question) || task.reads.early[2] != question || len(task.reads.early) != 1 {
		t.Error("before its first entry is committed, or the question is not kept")
	}
	if c.agreed.Store(6); !task.answersReads(question) {
		t.Error("not even then")
	}
	if task.role.term--; task.answersReads(question) {
		t.Error("with the role of an earlier term")
	}
}

// A voter that starts, a founder as well, may have heard a leader the moment before.
func TestPromiseOfStart(t *testing.T) {
	c := &core{opt: &Options{ElectionTicks: 10}, leaseClock: leaseClock(env.Real())}
	task := &raftTask{n: c, tick: time.Hour}
	if err := task.begin(); err != nil || !task.promised() {
		t.Error("it has promised nothing")
	}
}

// Who asks to join and has become a member meanwhile stays what it is.
func TestJoinsOnce(t *testing.T) {
	c := &core{opt: &Options{ID: 1}}
	c.membership.roster.members = []Member{{ID: 1, Addr: "a:1"}, {ID: 9, Addr: "b:1"}}
	m := Member{ID: 9, Addr: "b:1", Learner: true}
	r := &changeRequest{cc: joinChange(m, nil), node: 9, joining: &m, reply: reply{parker: env.Real().NewParker()}}
	v := moves{change: r}
	v.proposeChange(&raftTask{n: c}) // what is proposed asks Raft
	if v.change != nil || r.wait() != nil {
		t.Errorf("%+v", v.change)
	}
}

// What Raft keeps of questions is bounded: before the leader's first commit of its term, which asks nothing and
// keeps the last question of each member; and later, also where others answer appends and no heartbeats. Members
// that ask without end do not keep the leader from its lease. When they answer all goes on.
func TestKeptQuestions(t *testing.T) {
	r := newBesieged(t)
	r.elect(t)
	last := r.bounds.last
	answer := func(typ raftpb.MessageType, m *raftpb.Message) {
		m.Type, m.From, m.To, m.Term = typ.Enum(), new(uint64(2)), new(uint64(1)), new(r.raft.BasicStatus().HardState.GetTerm())
		r.hear(m)
		r.drain(t)
	}
	answered := func() (own, others int) {
		answer(raftpb.MsgHeartbeatResp, &raftpb.Message{Context: binary.LittleEndian.AppendUint64(nil, r.bounds.rounds.number)})
		own, others = r.states, r.answers
		r.states, r.answers = 0, 0
		return own, others
	}
	c := &core{opt: &Options{}, env: env.Real(), leaseClock: leaseClock(env.Real())}
	task := &raftTask{n: c, env: c.env, raft: r.raft, first: last}
	task.role = role{term: r.raft.BasicStatus().HardState.GetTerm(), leader: 1, leads: true}
	task.lease.start(task)
	asks := func(n int) {
		for range n {
			for _, from := range []uint64{2, 3} {
				task.stepOne(&raftpb.Message{Type: raftpb.MsgReadIndex.Enum(), From: &from, To: new(uint64(1)), Entries: []*raftpb.Entry{{Data: []byte("question")}}})
			}
		}
	}
	for range 5 * maxKept {
		asks(1)
		task.lease.renew(task)
	}
	answer(raftpb.MsgAppResp, &raftpb.Message{Index: &last})
	if own, others := answered(); own != 0 || others != 0 || task.reads.kept != 0 || len(task.lease.sent) != 0 {
		t.Fatalf("before it has committed in its term: %d questions of its own, %d of others, %d rounds", own, others, len(task.lease.sent))
	}
	c.agreed.Store(last)
	task.settle()
	r.drain(t)
	if own, others := answered(); own != 1 || others != 2 || task.reads.kept != 3 {
		t.Fatalf("once it has: %d rounds, %d of 2 questions of others, %d are counted", own, others, task.reads.kept)
	}
	task.reads.kept = 0

	asks(5 * maxKept)
	began := task.lease.seq
	for range 5 * maxKept {
		task.lease.renew(task)
		asks(1)
	}
	n := int(task.lease.seq - began)
	r.drain(t)
	own, others := answered()
	if others != maxKept/2 || n != maxKept/2 || len(task.lease.sent) != n+1 {
		t.Fatalf("%d rounds, %d of them kept, and %d questions of others", n, len(task.lease.sent), others)
	}
	if own != n {
		t.Fatalf("%d of %d rounds are answered", own, n)
	}
	for range own + others {
		task.reads.answered()
	}
	before := task.lease.seq
	if task.lease.renew(task); task.lease.seq != before+1 {
		t.Error("no round after the answers")
	}
}

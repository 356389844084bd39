package group

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/commit"
)

// raftTask is the one place that touches Raft. It takes what the inbox has collected,
// lets the clock tick, and hands what Raft wants done to the tasks that do it:
// messages to the transport, entries to the log writer, committed ones to the
// finisher. It never waits for any of them.
type raftTask struct {
	n    *core
	env  env.Env
	in   *inbox
	raft *raft.RawNode
	led  uint64 // the last term that this member has led; 0: none since the start
	// guest: it is a turn of somebody else, who sees to what comes of it.
	guest bool

	tick     time.Duration
	nextTick time.Duration // on the monotonic clock

	term, vote uint64  // handed to the writer last
	commit     *uint64 // told by Raft last; not modified

	work     work
	outbox   []*raftpb.Message
	proposed []*proposal       // taken by Raft in this turn, not yet given out
	claims   []*raftpb.Message // answers for leaders that would send snapshots

	bounds  bounds
	known   knownChanges
	lacking lacking

	role     role
	first    uint64 // index of the first entry of the term in which this member leads; 0: not known yet
	lease    lease
	rounds   heardRounds
	dates    leadership    // the last that has dated a word
	wordOf   leadership    // that was heard last
	wordAt   time.Duration // when a round of it was heard last, else it first, on the lease clock
	reads    reads
	moves    moves
	stall    stall
	pages    unread
	paths    undelivered
	compared comparison // the last one
	outrunBy outrunBy

	nextWatch  time.Duration
	nextBehind time.Duration
	follower
	calm
}

// role is what this node is in the group, as the Raft task sees it.
type role struct {
	term   uint64
	leader uint64
	leads  bool
}

func (t *raftTask) run() {
	defer t.end()
	defer t.recover()
	for pause := time.Duration(0); !t.in.take(&t.work, pause); pause = t.pause() {
		t.step()
		t.ticks()
		t.give()
	}
}

// turn is a turn of somebody else. The clock ticks for the task alone.
func (t *raftTask) turn() bool {
	if !t.in.turn(&t.work) {
		return false
	}
	defer t.in.leave()
	defer t.recover()
	t.guest = true
	t.step()
	t.give()
	t.disturb()
	t.guest = false
	return true
}

// give hands out what Raft wants done.
func (t *raftTask) give() {
	for t.raft.HasReady() {
		rd := t.raft.Ready()
		if err := t.n.raftlog.Err(); err != nil {
			// Raft takes an entry that cannot be read for one that was purged.
			t.n.fail(fmt.Errorf("group: the log cannot be read: %w", err))
			return
		}
		t.ready(rd)
	}
	if len(t.claims) > 0 { // all that Raft has is on its way to the disk now
		t.store(&raftpb.Message{Type: raftpb.MsgStorageAppend.Enum(), Responses: t.claims})
		t.claims = nil
	}
	if len(t.proposed) > 0 {
		t.n.fail(fmt.Errorf("group: Raft took a proposal in term %d and has not appended it", t.proposed[0].term))
	}
}

// recover makes a panic of Raft the node's failure: an invariant of the group does not
// hold any more.
func (t *raftTask) recover() {
	if r := recover(); r != nil {
		err, ok := r.(error)
		if !ok {
			err = fmt.Errorf("%v", r)
		}
		if cause := t.n.raftlog.Err(); cause != nil {
			err = fmt.Errorf("%w (%w)", cause, err)
		}
		t.in.close() // nobody is to go on with it
		t.n.fail(fmt.Errorf("group: the Raft task gave up: %w", err))
	}
}

// end answers whoever still waits for the task.
func (t *raftTask) end() {
	t.in.close()
	t.role.leads = false
	for {
		if t.work.empty() {
			t.in.rest(&t.work)
		}
		for _, p := range append(t.work.proposals, t.proposed...) {
			p.answer(ErrStopped)
		}
		t.proposed = nil
		if t.work.empty() {
			break
		}
		for _, fn := range t.work.calls {
			if fn != nil {
				t.endCall(fn)
			}
		}
		t.work.reset()
	}
	t.lease.drop()
	t.reads.failAll(ErrStopped)
	t.moves.failAll(ErrStopped)
	t.n.resign(t.role.term, role{term: t.role.term}, ErrStopped)
}

// endCall makes a call when the task has ended, perhaps by a panic of Raft's, which the call may meet as well.
func (t *raftTask) endCall(fn func()) {
	defer t.recover()
	fn()
}

// step does the work that was taken: first what the node's own disk has said.
func (t *raftTask) step() {
	t.clock = 0
	for _, m := range t.work.local {
		t.stepOne(m)
	}
	for _, m := range t.work.peers {
		if t.disowned(m) || t.unfit(m) {
			continue
		}
		if m = t.complete(m); m != nil {
			t.stepOne(m)
		}
	}
	t.hear()
	for _, p := range t.work.proposals {
		t.propose(p)
	}
	for i, fn := range t.work.calls {
		t.work.calls[i] = nil // end does not repeat what panics
		fn()
	}
	t.work.reset()
}

func (t *raftTask) stepOne(m *raftpb.Message) {
	if fromLeader(m) && !t.promiseTo(m) {
		return
	}
	if m.GetType() == raftpb.MsgSnap {
		t.offered(m)
		return
	}
	if m.GetType() == raftpb.MsgHeartbeatResp {
		if t.role.leads && m.GetTerm() == t.role.term {
			t.lease.answers(m, t.n.leaseClock())
		}
		hideOwn(m)
	}
	if t.silent(m) || m.GetType() == raftpb.MsgReadIndex && !t.answersReads(m) {
		return
	}
	var err error
	if m.GetType() == raftpb.MsgTimeoutNow {
		err = t.takeOver(m)
	} else {
		err = t.raft.Step(m)
	}
	if err != nil && !errors.Is(err, raft.ErrStepPeerNotFound) && !errors.Is(err, raft.ErrProposalDropped) {
		t.n.log.Warn("a message was refused", "type", m.GetType().String(), "from", m.GetFrom(), "error", err)
	}
}

// offered answers a leader that would send a snapshot: with what this member has, which
// the leader may have forgotten, and by asking for data, if that is not enough.
//
// What is committed here agrees with the leader's log, but need not be in the log on disk
// yet: that may even end with entries that others have replaced since, which wait to be
// written. So the answer goes the way of all acknowledgements, behind them.
func (t *raftTask) offered(m *raftpb.Message) {
	s := t.raft.BasicStatus()
	if m.GetTerm() != s.HardState.GetTerm() || t.role.leads {
		return // its next heartbeat tells the term; then it offers again
	}
	t.claims = append(t.claims, &raftpb.Message{Type: raftpb.MsgAppResp.Enum(), To: m.From, From: new(t.n.opt.ID),
		Term: m.Term, Index: new(s.HardState.GetCommit())})
	t.n.onSnap(m.GetFrom())
}

// ticks lets Raft's clock follow the node's. After a stop (a paused process, a
// starved machine) time that passed counts as one tick only: what came in meanwhile
// is looked at before an election is called for. Two ticks are never closer than a tick,
// which the promises of voters count on.
func (t *raftTask) ticks() {
	t.answerHeld()
	now := t.env.Monotonic()
	if now < t.nextTick {
		return
	}
	// Before Raft's tick: every so many of them it forgets which members were active, and the
	// looks, which are as many ticks apart, might always come just after that.
	t.watch(now)
	t.watchBehind(now)
	late := now-t.wake >= t.tick
	ticks := 1 + t.missed(now, late)
	t.tickRaft(ticks)
	t.tickRefusal(late)
	t.tickSilence(ticks)
	t.campaign()
	t.nextTick = now + t.tick
	t.lease.renew(t)
	t.reads.tick(t, now)
	t.moves.tick(t, now)
	t.stall.tick(t, now)
	t.pages.tick(t, now)
	t.paths.tick(t, now)
}

// watch looks at the others as their leader, once in a while.
func (t *raftTask) watch(now time.Duration) {
	if now < t.nextWatch || !t.role.leads {
		return
	}
	t.nextWatch = now + time.Second
	slowest := uint64(math.MaxUint64)
	var stuck, ready []uint64
	leaderHas := t.n.binlog.LastIndex()
	t.raft.WithProgress(func(id uint64, typ raft.ProgressType, pr tracker.Progress) {
		if typ == raft.ProgressTypeLearner && pr.State == tracker.StateReplicate && pr.RecentActive && pr.Match+caughtUp >= leaderHas {
			ready = append(ready, id)
		}
		slowest = min(slowest, max(pr.Match, 1))
		if pr.State == tracker.StateSnapshot && id != t.n.opt.ID {
			stuck = append(stuck, id)
		}
	})
	t.n.slowestMatch.Store(slowest)
	for _, id := range stuck { // it may have its data by now, or have missed the message
		t.raft.ReportSnapshot(id, raft.SnapshotFailure)
	}
	t.promote(ready)
}

// caughtUp is how many entries a learner may be behind when it is promoted: a few, as
// commits may have to wait for it from then on.
const caughtUp = 100

// promote lets one of the learners vote that have caught up, if one is meant to.
func (t *raftTask) promote(ready []uint64) {
	if len(ready) == 0 || t.moves.change != nil {
		return
	}
	for _, m := range t.n.membership.current() {
		if m.Learner && !m.Stays && slices.Contains(ready, m.ID) {
			was := m
			m.Learner = false
			t.n.log.Info("a member has caught up and is to vote", "member", m.ID)
			t.moves.startChange(t, &changeRequest{cc: addVoter(m), was: &was, node: m.ID,
				deadline: t.env.Monotonic() + t.n.opt.ChangeTimeout, reply: reply{parker: t.env.NewParker()}})
			return
		}
	}
}

// proposal is an entry to append, and its answer.
type proposal struct {
	reply
	term uint64 // the entry must land in this term; 0, of a change of membership: any
	p    *commit.Proposal
	conf raftpb.ConfChangeI // instead of p
}

// propose appends an entry to the log, or refuses it.
func (t *raftTask) propose(p *proposal) {
	if !t.role.leads || p.term != 0 && p.term != t.role.term {
		p.answer(ErrNotLeader)
		return
	}
	t.worked = t.env.Monotonic()
	if p.conf != nil {
		p.answer(t.raft.ProposeConfChange(p.conf))
		return
	}
	err := t.raft.Propose(p.p.Data)
	switch {
	case errors.Is(err, raft.ErrProposalDropped):
		p.answer(commit.ErrBusy)
	case err != nil:
		p.answer(err)
	default:
		t.proposed = append(t.proposed, p)
	}
}

// accept answers the proposals that Raft has appended, which it tells by giving them
// out to be written. Nothing can come between: proposals are the last thing before.
func (t *raftTask) accept(entries []*raftpb.Entry) {
	for _, e := range entries {
		if len(t.proposed) == 0 {
			return
		}
		p := t.proposed[0]
		if e.GetType() != raftpb.EntryNormal || len(e.GetData()) == 0 || e.GetTerm() != p.term {
			continue
		}
		p.p.Accept(e.GetIndex())
		p.answer(nil)
		t.proposed = append(t.proposed[:0], t.proposed[1:]...)
	}
}

// ready passes on what Raft wants done.
func (t *raftTask) ready(rd raft.Ready) {
	if rd.SoftState != nil || rd.HardState != nil {
		t.updateRole()
	}
	if rd.HardState != nil {
		t.n.agreed.Store(rd.HardState.GetCommit()) // before anybody else hears of it
	}
	for _, s := range rd.ReadStates {
		t.lease.confirmed(t, s) // first: heartbeats tell it
	}
	t.outbox = t.outbox[:0]
	t.known.appended(rd.Entries)
	var appends, applies *raftpb.Message
	for _, m := range rd.Messages {
		switch m.GetTo() {
		case raft.LocalAppendThread:
			appends = m
		case raft.LocalApplyThread:
			applies = m
		default:
			if m.GetType() == raftpb.MsgReadIndexResp {
				t.reads.answered()
			}
			if m.GetType() == raftpb.MsgHeartbeat {
				t.numberOwn(m)
			}
			t.known.cap(m, t.knownCommit())
			t.bounds.sent(m)
			if m.GetType() == raftpb.MsgHeartbeat {
				index, of := t.alike(m.GetTo())
				t.lease.tell(m, index, of)
			}
			t.outbox = append(t.outbox, m)
		}
	}
	if len(t.outbox) > 0 {
		t.n.transport.Send(t.outbox)
		clear(t.outbox)
	}
	if appends != nil {
		t.bounds.appended(appends.GetEntries())
		t.n.accepted.Store(t.bounds.last)
		t.firstOfTerm(appends.GetEntries())
		t.accept(appends.GetEntries())
		t.moves.appended(appends.GetEntries())
		t.store(appends)
	}
	if applies != nil {
		t.apply(applies)
	}
	for _, s := range rd.ReadStates {
		t.reads.answered()
		t.reads.confirmed(t, s)
	}
	t.settle()
}

// store hands what is to become durable to the writer. Raft tells the commit index only when
// it has changed; with entries it always goes along, for the changes of membership among them.
func (t *raftTask) store(m *raftpb.Message) {
	for _, r := range m.GetResponses() {
		t.answered(r)
	}
	answers := len(m.GetEntries()) == 0
	if m.Term != nil {
		t.commit = m.Commit
		t.n.raftlog.GaveOut(0, *m.Commit)
		if len(m.GetEntries())+len(m.GetResponses()) == 0 && m.GetTerm() == t.term && m.GetVote() == t.vote {
			return
		}
		answers = answers && m.GetTerm() == t.term && m.GetVote() == t.vote
		t.term, t.vote = m.GetTerm(), m.GetVote()
	}
	m.Commit = t.commit
	if !answers || !t.n.writer.merge(m) {
		t.n.writer.put(m)
	}
	if !t.guest {
		t.n.writer.parker.Unpark()
	}
}

// committed lets changes of membership take effect in Raft and hands the entries to
// the finisher.
func (t *raftTask) committed(m *raftpb.Message) {
	for _, e := range m.GetEntries() {
		if e.GetType() == raftpb.EntryNormal {
			continue
		}
		cc, err := decodeConfChange(e)
		if err != nil {
			t.n.fail(fmt.Errorf("group: the change of membership at index %d: %w", e.GetIndex(), err))
			return
		}
		state := t.raft.ApplyConfChange(cc)
		t.n.membership.changed(e.GetIndex(), cc, state, t.n.agreed.Load())
		t.n.updatePeers(cc)
		t.moves.applied(t, e, state)
	}
	t.passed(m.GetEntries()[len(m.GetEntries())-1].GetIndex())
	t.moves.committed(m.GetEntries()[len(m.GetEntries())-1].GetIndex())
	t.n.finisher.put(finishItem{committed: m})
	if !t.guest {
		t.n.finisher.parker.Unpark()
	}
}

// updateRole notices that this node leads, follows another, or has lost its term.
func (t *raftTask) updateRole() {
	s := t.raft.BasicStatus()
	now := role{term: s.HardState.GetTerm(), leader: s.Lead, leads: s.RaftState == raft.StateLeader}
	was := t.role
	if now == was {
		return
	}
	t.role, t.from, t.first = now, t.env.Monotonic(), 0
	t.reads.kept, t.reads.settled, t.reads.early = 0, false, nil
	t.n.setRole(now)
	t.moves.tick(t, 0)
	if was.leads && (!now.leads || now.term != was.term) {
		t.lease.drop()
		t.reads.again()
		t.n.slowestMatch.Store(0)
		t.n.raftlog.EndLead()
		t.n.log.Info("leadership lost", "term", was.term, "leader", now.leader)
		t.n.resign(was.term, now, ErrNotLeader)
	}
	if now.leads && !(was.leads && now.term == was.term) {
		t.worked, t.led = t.env.Monotonic(), now.term
		t.n.log.Info("elected leader", "term", now.term)
		t.lease.start(t)
	}
	if now.leader != was.leader && !now.leads && now.leader != raft.None {
		t.n.log.Info("following", "leader", now.leader, "term", now.term)
	}
	t.checkLeader()
}

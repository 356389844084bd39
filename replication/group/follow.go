package group

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/transport"
)

// leadership is one member's leading of the group in one term. A term has at most one leader,
// and that leads from one process: a process that starts again begins as a follower.
type leadership struct{ member, term uint64 }

// processes is what this member knows of the processes of leaders. It is safe for concurrent use.
type processes struct {
	leads atomic.Pointer[ledFrom] // of the highest term heard of
	twice atomic.Pointer[ledFrom] // a leadership that another process than before claims; nil: none does

	mu      sync.Mutex
	gone    [goneKept]uint64 // incarnations of which there is proof that they have ended; a ring
	reports int
}

// ledFrom is a leadership and the incarnation of the process that has it.
type ledFrom struct {
	leadership
	incarnation uint64
}

// goneKept is how many processes that have ended are remembered: what they sent before may
// arrive after the proof.
const goneKept = 16

// heard notes which process sends as the leader. The messages of a term's leader come from
// its own process, whenever they arrive.
func (p *processes) heard(from, incarnation uint64, msgs []*raftpb.Message) {
	for _, m := range msgs {
		if !fromLeader(m) {
			continue
		}
		now := &ledFrom{leadership{from, m.GetTerm()}, incarnation}
		for known := p.leads.Load(); known == nil || known.term < now.term; known = p.leads.Load() {
			if p.leads.CompareAndSwap(known, now) {
				break
			}
		}
		if known := p.leads.Load(); known.leadership == now.leadership && known.incarnation != incarnation {
			p.twice.Store(now)
		}
	}
}

// fromLeader reports whether only the leader of its term sends such a message.
func fromLeader(m *raftpb.Message) bool {
	switch m.GetType() {
	case raftpb.MsgHeartbeat, raftpb.MsgApp, raftpb.MsgSnap:
		return true
	}
	return false
}

// ended notes proof that a process has ended.
func (p *processes) ended(incarnation uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone[p.reports%goneKept] = incarnation
	p.reports++
}

// hasEnded reports whether there is proof that the process that has a leadership has ended.
func (p *processes) hasEnded(l leadership) bool {
	from := p.leads.Load()
	if from == nil || from.leadership != l {
		return false // another term's messages are in the inbox, or nothing was heard at all
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.gone[:min(p.reports, goneKept)], from.incarnation)
}

// follower is the part of the Raft task that decides when this member may stop following a
// leader before Raft's own election timeout has passed, and when it may vote.
type follower struct {
	clock   time.Duration // the lease clock in this turn; 0: not read yet
	length  time.Duration // of promises, as this member's election timeout asks for it
	promise promise
	longest longest
	yielded yields
	refused leadership      // its address refuses connections, which may mean that it is dead
	unheard int             // ticks since the leader was heard
	held    *raftpb.Message // of a candidate that asked while there was a promise; nil: nobody

	lost       uint64 // the term of the leader that was abandoned last
	rank       int    // of this member among those that stand for election out of turn
	campaignIn int    // ticks until it does; 0: it does not
	campaigns  int    // how often it will do so again if nobody is elected
}

// leaseNow is a time on the lease clock in this turn, after its messages have come.
func (t *raftTask) leaseNow() time.Duration {
	if t.clock == 0 {
		t.clock = t.n.leaseClock()
	}
	return t.clock
}

// over reports whether there is proof that nobody will use the lease of a leadership any more.
func (t *raftTask) over(l leadership) bool {
	return l.member != raft.None && (t.yielded.has(l) || t.n.processes.hasEnded(l))
}

// transferContext is in the votes that a leader has asked for by handing over. It has given up
// its lease before.
var transferContext = []byte("CampaignTransfer")

// silent reports whether the node must not answer a message: a member does not vote against its
// promise. A candidate that asks after the leader's lease is over is not ignored because this
// member has not come to its own tick yet. One that asks goes first: two candidates may
// leave each other without a majority.
func (t *raftTask) silent(m *raftpb.Message) bool {
	switch m.GetType() {
	case raftpb.MsgVote, raftpb.MsgPreVote:
		if t.promised() && !bytes.Equal(m.GetContext(), transferContext) {
			if t.held = nil; m.GetType() == raftpb.MsgPreVote {
				t.held = m
			}
			return true
		}
		if t.leaderRefuses() && t.leaseNow() >= t.promise.until {
			t.abandon(refusedTooLong)
		}
		if t.campaignIn > 0 {
			t.campaignIn = max(t.campaignIn, t.again())
		}
	}
	return false
}

// answered notes what this member answers a candidate. One that asks in the term of the leader that is
// no more, and is refused, has an older log than this member: that one does not wait for its turn.
// In a later term there are other reasons to refuse, and an election that is under way.
func (t *raftTask) answered(m *raftpb.Message) {
	if m.GetType() == raftpb.MsgPreVoteResp && m.GetReject() && m.GetTerm() == t.lost && t.campaignIn > 0 {
		t.campaignIn = 1
	}
}

// abandon lets Raft forget a leader of which there is proof that its lease is over, or whose
// lease is over by the clock.
func (t *raftTask) abandon(why string) {
	if t.raft.ForgetLeader() != nil {
		return
	}
	t.n.log.Info("the leader is given up", "leader", t.role.leader, "term", t.role.term, "reason", why)
	t.refused = leadership{}
	held := t.held
	t.held = nil
	t.lost = t.role.term
	t.rank, t.campaigns = t.rankAfter(t.role.leader), campaignsAgain
	t.campaignIn = t.rank
	t.updateRole()
	if held != nil {
		t.stepOne(held)
	}
}

// answerHeld asks Raft what a candidate has asked that was held, once the promise has ended by time: that of this member's start ends
// no other way. While a leader is followed, abandon sees to it.
func (t *raftTask) answerHeld() {
	if m := t.held; m != nil && t.role.leader == raft.None && !t.promised() {
		t.held = nil
		t.stepOne(m)
	}
}

// campaignsAgain is how often a member stands for election again that was not elected: the
// others may have learned only later that the leader is no more, or the vote was split.
const campaignsAgain = 3

// again is the ticks until then, in which the others' disks can keep their votes.
func (f *follower) again() int { return 2*f.rank + 1 }

// rankAfter is the ticks after which this member stands for election when a leader is no more:
// voters step forward one after the other, lest they split the vote. 0: it does not vote.
func (t *raftTask) rankAfter(leader uint64) int {
	rank := 1
	for _, m := range t.n.membership.current() {
		if m.ID == t.n.opt.ID {
			if m.Learner {
				return 0
			}
			return rank
		}
		if !m.Learner && m.ID != leader {
			rank++
		}
	}
	return 0
}

// checkLeader abandons the leader if it is over. Messages of its that arrive after the proof
// may have made Raft follow it again. The first voter in the row does not wait for a tick: those
// that do not have the proof yet hold its question until they have it.
func (t *raftTask) checkLeader() {
	if t.role.leads || t.role.leader == raft.None {
		return
	}
	switch l := (leadership{t.role.leader, t.role.term}); {
	case t.yielded.has(l):
		t.abandon("it has given up the lead")
	case t.n.processes.hasEnded(l):
		t.abandon("its process has ended")
	default:
		return
	}
	if t.campaignIn == 1 {
		t.campaign()
	}
}

// refuses notes that the address of a member refuses connections. That proves nothing, and if
// it is the leader's it is a reason not to wait longer than for its lease.
func (t *raftTask) refuses(id uint64) {
	if id != t.role.leader || t.role.leads || id == raft.None {
		return
	}
	t.refused = leadership{id, t.role.term}
	if t.n.opt.Sabotage == RefusalIsProof {
		t.yielded.note(t.refused)
		t.checkLeader()
	}
}

// accepts notes that a member's address does not refuse connections any more.
func (t *raftTask) accepts(id uint64) {
	if id == t.refused.member {
		t.refused = leadership{}
	}
	t.askAgain(id)
}

// askAgain asks the leader what it was asked before a connection with it was made, either way: the
// question may be lost, or the answer.
func (t *raftTask) askAgain(id uint64) {
	if id == t.role.leader {
		t.reads.again()
		t.reads.ask(t)
	}
}

// leaderRefuses reports whether the leader's address has refused connections since the leader
// was heard last.
func (t *raftTask) leaderRefuses() bool {
	return t.refused.member != raft.None && !t.role.leads && t.refused == leadership{t.role.leader, t.role.term}
}

const refusedTooLong = "its address refuses connections, and its lease is over"

// tickRefusal abandons a leader that refuses connections and was not heard for longer than its
// lease may last. A process that stood still, whose tick comes late, takes in what has come
// meanwhile until the next tick: any word of the leader ends the refusal.
func (t *raftTask) tickRefusal(late bool) {
	if !late && t.leaderRefuses() && t.leaseNow() >= t.promise.until {
		t.abandon(refusedTooLong)
	}
}

// silentTimeouts is after how many election timeouts a member that does not vote gives up a leader that
// it does not hear.
const silentTimeouts = 2

// tickSilence lets a member that does not vote give up a leader that it has not heard for longer than
// elections take. Raft lets those who vote do so, which then stand for election.
func (t *raftTask) tickSilence(ticks int) {
	t.unheard += ticks
	if t.role.leads || t.role.leader == raft.None || t.unheard < silentTimeouts*t.n.opt.ElectionTicks || t.rankAfter(t.role.leader) != 0 {
		return
	}
	t.abandon("it is silent")
}

// campaign stands for election if there is no leader any more.
func (t *raftTask) campaign() {
	if t.campaignIn == 0 || t.rank == 0 {
		return
	}
	if t.role.leader != raft.None {
		t.campaignIn = 0
		return
	}
	if t.campaignIn--; t.campaignIn > 0 {
		return
	}
	if t.promised() {
		return
	}
	if t.standsBack() {
		t.campaignIn = 1
		return
	}
	t.stand()
	if t.campaigns--; t.campaigns >= 0 {
		t.campaignIn = t.again()
	}
}

// yield gives up the lease for good and returns the term in which this member leads; 0: in none.
func (t *raftTask) yield() uint64 {
	t.lease.drop()
	if !t.role.leads {
		return 0
	}
	return t.role.term
}

// yields are the leaderships whose lease was given up for good, by their own word: of each member the one of the
// highest term. What one member says does not touch what another has said.
type yields map[uint64]uint64

func (y yields) has(l leadership) bool {
	term, said := y[l.member]
	return said && term == l.term
}

func (y *yields) note(l leadership) {
	if *y == nil {
		*y = yields{}
	}
	(*y)[l.member] = max((*y)[l.member], l.term)
}

// keep forgets those who are no members any more.
func (y yields) keep(members []Member) {
	maps.DeleteFunc(y, func(id, _ uint64) bool { return !isMember(members, id) })
}

func isMember(members []Member, id uint64) bool {
	return slices.ContainsFunc(members, func(m Member) bool { return m.ID == id })
}

// hasYielded notes the word of a leader that it has given up its lease. Nobody leads in a term far beyond the one that
// this member knows, without its vote: such a word would only be in the way of a true one.
func (t *raftTask) hasYielded(l leadership) {
	if l.term > t.raft.BasicStatus().HardState.GetTerm()+1 {
		t.n.log.Warn("a member says that it has led in a term that cannot have come", "member", l.member, "term", l.term)
		return
	}
	t.yielded.keep(t.n.membership.current())
	t.yielded.note(l)
	t.checkLeader()
}

// yieldTicks is how long a leader that ends waits until the others have heard that its lease
// is over. One that cannot answer will wait for the lease's length anyway.
const yieldTicks = 4

// sayYielded tells the others that this member, which leads in a term, has given up its lease.
// Members whose program is older do not understand, and wait.
func (c *core) sayYielded(term uint64) {
	asking := env.NewGroup(c.env)
	for _, m := range c.membership.current() {
		if m.ID == c.opt.ID {
			continue
		}
		asking.Go("yield", func() {
			_, _ = c.transport.Ask(context.Background(), transport.Call{To: m.ID, Kind: askYielded,
				Payload: binary.LittleEndian.AppendUint64(nil, term), Timeout: yieldTicks * c.opt.Tick})
		})
	}
	asking.Wait()
}

// hearYielded takes the word of a leader that has given up its lease.
func (c *core) hearYielded(from uint64, payload []byte) error {
	if len(payload) != 8 {
		return fmt.Errorf("group: %d bytes of a term", len(payload))
	}
	if !isMember(c.membership.current(), from) {
		return fmt.Errorf("group: %d is no member, and leads nobody", from)
	}
	l := leadership{from, binary.LittleEndian.Uint64(payload)}
	c.inbox.call(func() { c.raft.hasYielded(l) })
	return nil
}

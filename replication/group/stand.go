package group

import (
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// Who leads can serve once it has applied all that the group has agreed on. So a member that has much to
// apply lets the others stand for election first, for one election timeout longer than they need; nor does it
// stand while Raft would have to read the log for that.
//
// A member whose disk has failed to give back pages of late (unread), or whose entries got to nobody when it led (undelivered), lets them
// stand first as well, for as long.
//
// Raft's clock stands still meanwhile, just before it would call for an election. The member forgets the leader that
// it does not hear, so that it answers those who ask for its vote.

// standsBackUntil is after how many election timeouts without a leader's word a member stands for election
// that has much to apply, cannot read its pages or was not understood as a leader. Those that are well have done so by then.
const standsBackUntil = 2

// lags reports whether this member has yet to apply what the group had agreed on seconds ago.
func (t *raftTask) lags() bool {
	b := &t.n.behind
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lag(t.n.applied.Load(), t.env.Monotonic()) > 0
}

// surveyed reports whether Raft may look for changes of membership that are not applied, which it does before it
// stands for election.
func (t *raftTask) surveyed() bool {
	s := t.raft.BasicStatus()
	return t.n.raftlog.Surveyed(s.Applied, s.HardState.GetCommit())
}

// standsBack reports whether this member does not stand for election yet, though it may.
func (t *raftTask) standsBack() bool {
	return !t.role.leads && t.rankAfter(t.role.leader) != 0 &&
		(t.unheard < standsBackUntil*t.n.opt.ElectionTicks && (t.lags() || t.n.readsFail.Load() || t.paths.gaveUp()) || !t.surveyed())
}

// tickRaft lets Raft's clock tick so often.
func (t *raftTask) tickRaft(ticks int) {
	back := t.unheard+ticks >= t.n.opt.ElectionTicks && t.standsBack()
	for range ticks {
		if !back && !t.waits() {
			t.n.raftlog.Standing(t.raft.Tick)
		}
	}
	if back && t.role.leader != raft.None && t.unheard+ticks >= t.n.opt.ElectionTicks && !t.promised() {
		t.abandon("it is silent, and this member has much to apply, a disk whose pages it cannot read, or a network that lost its entries when it led")
	}
}

// stand makes Raft stand for election.
func (t *raftTask) stand() {
	t.n.raftlog.Standing(func() {
		if err := t.raft.Campaign(); err != nil {
			t.n.log.Debug("no election", "error", err)
		}
	})
}

// takeOver lets Raft stand for election since the leader hands over.
func (t *raftTask) takeOver(m *raftpb.Message) (err error) {
	if !t.surveyed() {
		return fmt.Errorf("this member does not know yet whether a change of membership is to be applied")
	}
	t.n.raftlog.Standing(func() { err = t.raft.Step(m) })
	return err
}

package group

import (
	"fmt"
	"math"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/triremedb/trireme/engine/txn"
)

// moves are the requests to change who is in the group and who leads it, one at a
// time each.
type moves struct {
	change   *changeRequest
	transfer *transferRequest
}

// changeRequest adds, promotes or removes a member. One without changes waits until those
// before it cannot be forgotten any more.
type changeRequest struct {
	reply
	cc       *raftpb.ConfChangeV2
	node     uint64
	was      *Member // what the change was made of: a member that must not have changed meanwhile; nil: nothing
	joining  *Member // a node that asked for it by itself; nil: another change
	stage    changeStage
	index    uint64 // of its entry in the log, and that entry's term: another leader may put another there
	term     uint64
	mark     uint64 // index of the entry that shows that the change has come round
	deadline time.Duration
}

// changeStage is how far a change of membership has come. Raft appends an empty entry
// in the place of a change that comes before the last one has been applied, or while it
// has yet to leave a joint configuration, and does not say so: what it appended shows.
//
// The leader's word is not enough: were a member that left stopped, and the leader lost before
// the others have heard that the change is committed, those would still need the one that left
// to elect a leader. So a change is done only when a majority of the new configuration has an
// entry that the leader has appended since: with it these members have stored the commit index
// (raftlog, changes), and remember the new configuration whatever happens to them.
type changeStage uint8

const (
	changeWaits    changeStage = iota // to be proposed at the next tick
	changeProposed                    // Raft has it; what it made of it is not known yet
	changeLogged                      // it is in the log
	changeJoint                       // the new configuration is in force beside the old one
	changeInForce                     // the new one alone; the entry after it is to be proposed at the next tick
	changeMarking                     // Raft has that entry
	changeMarked                      // it is in the log
)

// removes reports whether a member leaves by the change.
func (r *changeRequest) removes(id uint64) bool {
	return slices.ContainsFunc(r.cc.GetChanges(), func(c *raftpb.ConfChangeSingle) bool {
		return c.GetType() == raftpb.ConfChangeRemoveNode && c.GetNodeId() == id
	})
}

// joins reports whether the change makes a member of one of those.
func (r *changeRequest) joins(which func(id uint64) bool) bool {
	return slices.ContainsFunc(r.cc.GetChanges(), func(c *raftpb.ConfChangeSingle) bool {
		return c.GetType() != raftpb.ConfChangeRemoveNode && which(c.GetNodeId())
	})
}

// transferRequest hands leadership over.
type transferRequest struct {
	reply
	to       uint64        // 0: the best
	least    uint64        // the log up to where it has to have acknowledged
	avoid    uint64        // a member that is asked only if no other can take over
	unmet    bool          // it takes over without the entries that it lacks
	deadline time.Duration // until when a member that can take over is waited for
	begun    bool          // Raft hands over: it takes no proposals
}

// startChange proposes a change of membership.
func (v *moves) startChange(t *raftTask, r *changeRequest) {
	switch {
	case !t.role.leads:
		r.answer(ErrNotLeader)
	case v.change != nil:
		r.answer(fmt.Errorf("group: %w: another member is being added, promoted or removed", ErrBusy))
	default:
		v.change = r
		if len(r.cc.GetChanges()) == 0 {
			v.proposeMark(t)
			return
		}
		v.proposeChange(t)
	}
}

// proposeChange proposes the change, or refuses it by what those before it have made of the group.
func (v *moves) proposeChange(t *raftTask) {
	r := v.change
	if r.joining != nil { // it, or another with its address, may have become a member meanwhile
		members := t.n.membership.current()
		if slices.ContainsFunc(members, func(m Member) bool { return m.ID == r.joining.ID }) {
			v.end(nil)
			return
		}
		r.cc = joinChange(*r.joining, members)
	}
	switch {
	case r.was != nil && !slices.Contains(t.n.membership.current(), *r.was):
		v.end(fmt.Errorf("group: another request has changed member %d meanwhile: look at the members, and ask again", r.was.ID))
		return
	case r.removes(t.n.opt.ID):
		v.end(fmt.Errorf("group: member %d leads the group: hand leadership over before it is removed", t.n.opt.ID))
		return
	case r.joins(t.n.membership.left):
		v.end(fmt.Errorf("group: member %d has left the group, and its id is never used again, since it may have voted: "+
			"start the node with an empty directory, so that it joins with a new id", r.node))
		return
	}
	p := &proposal{conf: r.cc, reply: reply{parker: t.env.NewParker()}}
	t.propose(p)
	if p.err != nil {
		v.change = nil
		r.answer(p.err)
		return
	}
	r.stage = changeProposed
}

// appended looks for what was proposed among the entries that Raft has appended since.
func (v *moves) appended(entries []*raftpb.Entry) {
	switch r := v.change; {
	case r == nil || len(entries) == 0:
	case r.stage == changeProposed:
		r.stage = changeWaits
		for _, e := range entries {
			if e.GetType() != raftpb.EntryNormal && len(e.GetData()) > 0 {
				r.stage, r.index, r.term = changeLogged, e.GetIndex(), e.GetTerm()
			}
		}
	case r.stage == changeMarking:
		r.stage, r.mark = changeMarked, entries[len(entries)-1].GetIndex()
	}
}

// applied follows the configurations that take effect. While one is joint the next change is the one that
// leaves it. Others' changes, of the same member perhaps, which earlier leaders have left behind, are
// not what was asked for.
func (v *moves) applied(t *raftTask, e *raftpb.Entry, state *raftpb.ConfState) {
	r := v.change
	if r == nil {
		return
	}
	ours := r.stage == changeLogged && e.GetIndex() == r.index && e.GetTerm() == r.term
	switch {
	case !ours && r.stage != changeJoint:
	case len(state.GetVotersOutgoing()) > 0:
		r.stage = changeJoint
	default:
		v.proposeMark(t)
	}
}

// proposeMark appends an empty entry, which brings the others the news that the change is committed.
func (v *moves) proposeMark(t *raftTask) {
	v.change.stage = changeInForce
	if t.raft.Propose(nil) == nil {
		v.change.stage = changeMarking
	}
}

// committed ends a change that has come round.
func (v *moves) committed(index uint64) {
	if r := v.change; r != nil && r.stage == changeMarked && index >= r.mark {
		v.end(nil)
	}
}

// end answers the request for a change.
func (v *moves) end(err error) {
	v.change.answer(err)
	v.change = nil
}

// startTransfer asks another member to take over, once that is known to be there. Until then
// nothing changes: while Raft hands over it takes no proposals, for up to an election timeout, which
// a member that does not answer would cost every write. Raft forgets once in an election timeout whom it has
// heard; whoever is there is heard again within a few ticks.
func (v *moves) startTransfer(t *raftTask, r *transferRequest) {
	if err := v.checkTransfer(t, r); err != nil {
		r.answer(err)
		return
	}
	r.deadline = t.env.Monotonic() + time.Duration(t.n.opt.ElectionTicks)*t.tick
	v.transfer = r
	v.handOver(t)
}

func (v *moves) checkTransfer(t *raftTask, r *transferRequest) error {
	if !t.role.leads || t.raft.BasicStatus().RaftState != raft.StateLeader { // it may have heard of another just now
		return ErrNotLeader
	}
	if v.transfer != nil {
		return fmt.Errorf("group: %w: leadership is being handed to another member", ErrBusy)
	}
	voters := 0
	t.raft.WithProgress(func(id uint64, typ raft.ProgressType, _ tracker.Progress) {
		if id != t.n.opt.ID && typ == raft.ProgressTypePeer && (r.to == 0 || r.to == id) {
			voters++
		}
	})
	switch {
	case r.to == t.n.opt.ID:
		return fmt.Errorf("group: member %d leads already", r.to)
	case voters == 0 && r.to != 0:
		return fmt.Errorf("group: member %d is none that votes: only voters lead", r.to)
	case voters == 0:
		return fmt.Errorf("group: %w: there is no other voter", ErrNoQuorum)
	}
	return nil
}

// handOver begins to hand over if there is a member that can take over. The lease ends first, for the rest
// of the term: the other one is elected without waiting for it, however late it hears of this.
func (v *moves) handOver(t *raftTask) {
	r := v.transfer
	to := v.bestSuccessor(t, r)
	if to == 0 {
		return
	}
	r.to, r.begun = to, true
	t.lease.drop()
	t.raft.TransferLeader(to)
	if r.unmet { // Raft says so only to who has the whole log
		t.n.transport.Send([]*raftpb.Message{{Type: raftpb.MsgTimeoutNow.Enum(), To: new(to), From: new(t.n.opt.ID), Term: new(t.role.term)}})
	}
}

// longestOther is up to where the voter among the others that has the most of the log has acknowledged it.
func (t *raftTask) longestOther() (match uint64) {
	t.raft.WithProgress(func(id uint64, typ raft.ProgressType, pr tracker.Progress) {
		if id != t.n.opt.ID && typ == raft.ProgressTypePeer && pr.RecentActive {
			match = max(match, pr.Match)
		}
	})
	return match
}

// bestSuccessor is the voter in reach that can serve soonest: that has room on its disk, has the least to apply, and of those the one
// whose log is the longest; only one may be asked for. One that needs its data first could not take over in time.
func (v *moves) bestSuccessor(t *raftTask, r *transferRequest) uint64 {
	best, match, left := uint64(0), uint64(0), time.Duration(0)
	now := t.env.Monotonic()
	t.raft.WithProgress(func(id uint64, typ raft.ProgressType, pr tracker.Progress) {
		able := typ == raft.ProgressTypePeer && pr.RecentActive && pr.State != tracker.StateSnapshot && pr.Match >= r.least
		if id == t.n.opt.ID || r.to != 0 && id != r.to || !able {
			return
		}
		has := t.n.behind.toApply(id, now)
		if id == r.avoid {
			has = math.MaxInt64
		}
		if best == 0 || has < left || has == left && pr.Match > match {
			best, match, left = id, pr.Match, has
		}
	})
	return best
}

// nobodyTakesOver is why leadership was not handed over.
func (r *transferRequest) nobodyTakesOver() error {
	if r.to == 0 {
		return fmt.Errorf("group: %w: no other voter is in reach; this member leads on", ErrNoQuorum)
	}
	return fmt.Errorf("group: member %d cannot take over: it does not answer, or needs its data first; this member leads on: "+
		"choose another, or none, for the one that knows most", r.to)
}

// tick ends what takes too long.
func (v *moves) tick(t *raftTask, now time.Duration) {
	v.tickChange(t, now)
	r := v.transfer
	if r == nil {
		return
	}
	switch {
	case !t.role.leads:
		v.transfer = nil
		r.answer(nil)
	case !r.begun && now >= r.deadline:
		v.transfer = nil
		r.answer(r.nobodyTakesOver())
	case !r.begun:
		v.handOver(t)
	case t.raft.BasicStatus().LeadTransferee == raft.None:
		v.transfer = nil // without a lease: the word to take over may still arrive
		r.answer(fmt.Errorf("group: member %d did not take over; this member leads on", r.to))
	}
}

func (v *moves) tickChange(t *raftTask, now time.Duration) {
	switch r := v.change; {
	case r == nil:
	case r.stage >= changeJoint && (now >= r.deadline || !t.role.leads):
		v.end(fmt.Errorf("group: the change of membership has taken effect, but %w has confirmed it in time: a member that leaves is still needed until the same change is asked for again and succeeds", ErrNoQuorum))
	case !t.role.leads && r.stage != changeWaits:
		v.end(fmt.Errorf("group: the change of membership was proposed, and then this member has lost the lead: it may still happen, and to ask the new leader for "+
			"the same change makes sure: %w", txn.ErrOutcomeUnknown))
	case now >= r.deadline && r.stage == changeWaits:
		v.end(fmt.Errorf("group: %w: the change of membership before this one has not been applied in time; nothing was changed", ErrBusy))
	case now >= r.deadline:
		v.end(fmt.Errorf("group: the change of membership was proposed, but %w answered in time; it may still happen", ErrNoQuorum))
	case r.stage == changeWaits:
		v.proposeChange(t) // or refuse it, if this node leads no more
	case r.stage == changeInForce:
		v.proposeMark(t)
	}
}

func (v *moves) failAll(err error) {
	if v.change != nil {
		v.change.answer(err)
	}
	if v.transfer != nil {
		v.transfer.answer(err)
	}
	v.change, v.transfer = nil, nil
}

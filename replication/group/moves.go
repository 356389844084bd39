package group

import (
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/triremedb/trireme/engine/env"
)

// moves are the requests to change who is in the group and who leads it, one at a
// time each.
type moves struct {
	change   *changeRequest
	transfer *transferRequest
}

// changeRequest adds, promotes or removes a member.
type changeRequest struct {
	cc       *raftpb.ConfChangeV2
	node     uint64
	stage    changeStage
	deadline time.Duration
	err      error
	done     atomic.Bool
	parker   env.Parker
}

// changeStage is how far a change of membership has come. Raft appends an empty entry
// in the place of a change that comes before the last one has been applied, or while it
// has yet to leave a joint configuration, and does not say so: what it appended shows.
type changeStage uint8

const (
	changeWaits    changeStage = iota // to be proposed at the next tick
	changeProposed                    // Raft has it; what it made of it is not known yet
	changeLogged                      // it is in the log
)

func (r *changeRequest) answer(err error) {
	r.err = err
	r.done.Store(true)
	r.parker.Unpark()
}

// transferRequest hands leadership over.
type transferRequest struct {
	to     uint64
	err    error
	done   atomic.Bool
	parker env.Parker
}

func (r *transferRequest) answer(err error) {
	r.err = err
	r.done.Store(true)
	r.parker.Unpark()
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
		v.proposeChange(t)
	}
}

func (v *moves) proposeChange(t *raftTask) {
	r := v.change
	p := &proposal{conf: r.cc, parker: t.env.NewParker()}
	t.propose(p)
	if p.err != nil {
		v.change = nil
		r.answer(p.err)
		return
	}
	r.stage = changeProposed
}

// appended looks for the proposed change among the entries that Raft has appended since.
func (v *moves) appended(entries []*raftpb.Entry) {
	if v.change == nil || v.change.stage != changeProposed {
		return
	}
	v.change.stage = changeWaits
	for _, e := range entries {
		if e.GetType() != raftpb.EntryNormal && len(e.GetData()) > 0 {
			v.change.stage = changeLogged
		}
	}
}

// applied answers the request whose change has taken effect.
func (v *moves) applied(t *raftTask, _ uint64, cc raftpb.ConfChangeI) {
	if v.change == nil {
		return
	}
	for _, c := range cc.AsV2().GetChanges() {
		if c.GetNodeId() == v.change.node {
			v.change.answer(nil)
			v.change = nil
			return
		}
	}
}

// startTransfer asks another member to take over. The lease ends first: the other
// one is elected without waiting for it.
func (v *moves) startTransfer(t *raftTask, r *transferRequest) {
	if err := v.checkTransfer(t, r); err != nil {
		r.answer(err)
		return
	}
	t.lease.drop()
	v.transfer = r
	t.raft.TransferLeader(r.to)
}

func (v *moves) checkTransfer(t *raftTask, r *transferRequest) error {
	if !t.role.leads {
		return ErrNotLeader
	}
	if v.transfer != nil {
		return fmt.Errorf("group: %w: leadership is being handed to member %d", ErrBusy, v.transfer.to)
	}
	if r.to == 0 {
		r.to = v.bestSuccessor(t)
	}
	if r.to == t.n.opt.ID {
		return fmt.Errorf("group: member %d leads already", r.to)
	}
	if r.to == 0 {
		return fmt.Errorf("group: %w: no other voter is in reach", ErrNoQuorum)
	}
	return nil
}

// bestSuccessor is the voter whose log is the longest.
func (v *moves) bestSuccessor(t *raftTask) uint64 {
	best, match := uint64(0), uint64(0)
	t.raft.WithProgress(func(id uint64, typ raft.ProgressType, pr tracker.Progress) {
		if id != t.n.opt.ID && typ == raft.ProgressTypePeer && pr.RecentActive && (best == 0 || pr.Match > match) {
			best, match = id, pr.Match
		}
	})
	return best
}

// tick ends what takes too long.
func (v *moves) tick(t *raftTask, now time.Duration) {
	if r := v.change; r != nil && now >= r.deadline {
		v.change = nil
		if r.stage == changeWaits {
			r.answer(fmt.Errorf("group: %w: the change of membership before this one has not been applied in time; nothing was changed", ErrBusy))
		} else {
			r.answer(fmt.Errorf("group: the change of membership was proposed, but %w answered in time; it may still happen", ErrNoQuorum))
		}
	} else if r != nil && r.stage == changeWaits {
		v.proposeChange(t) // or refuse it, if this node leads no more
	}
	r := v.transfer
	if r == nil {
		return
	}
	switch {
	case !t.role.leads:
		v.transfer = nil
		r.answer(nil)
	case t.raft.BasicStatus().LeadTransferee == raft.None:
		v.transfer = nil
		t.lease.start(t)
		r.answer(fmt.Errorf("group: member %d did not take over; this member leads on", r.to))
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

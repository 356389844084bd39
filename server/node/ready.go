package node

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/replication/group"
)

// readiness is what /readyz needs to know beside how the group's node stands (decision 0033).
type readiness struct {
	caughtUp atomic.Bool // once, since the node was started

	mu         sync.Mutex
	leaderless time.Time // since when no leader is known; zero: one is
	// elsewhere counts looks in a row at which this member knew no leader and others that answered did.
	elsewhere int
}

const (
	// catchUpAgain is the pause after an error.
	catchUpAgain = 100 * time.Millisecond
	// elsewhereLooks is how many looks it takes to be sure: others know a new leader a moment earlier.
	elsewhereLooks = 2
)

func (n *Node) isReady() bool {
	select {
	case <-n.ready:
		return true
	default:
		return false
	}
}

func (n *Node) isStopping() bool {
	select {
	case <-n.stopping:
		return true
	default:
		return false
	}
}

// catchUp waits until the node has caught up with its leader for the first time.
func (n *Node) catchUp() {
	defer n.tasks.Done()
	for !n.isStopping() {
		if n.group.CatchUp(n.isStopping) == nil {
			n.readiness.caughtUp.Store(true)
			return
		}
		select { // it is being given its data, or stops
		case <-n.stopping:
		case <-time.After(catchUpAgain):
		}
	}
}

// look notes whether a leader is known.
func (r *readiness) look(known bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case known:
		r.leaderless, r.elsewhere = time.Time{}, 0
	case r.leaderless.IsZero():
		r.leaderless = now
	}
}

// lookElsewhere asks the others for a leader while this member knows none.
func (n *Node) lookElsewhere() {
	known := knowLeader(n.group.ID(), n.group.Members(), n.group.GroupStatus())
	r := &n.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.elsewhere++; !known {
		r.elsewhere = 0
	}
}

// knowLeader reports whether another voter has answered that knows a leader. Those who do not vote are
// not asked: older programs keep a leader that is gone.
func knowLeader(self uint64, members []group.Member, states []group.Status) bool {
	voters := map[uint64]bool{}
	for _, m := range members {
		voters[m.ID] = !m.Learner && m.ID != self
	}
	for i := range states {
		if s := &states[i]; voters[s.ID] && s.Error == "" && s.Leader != 0 {
			return true
		}
	}
	return false
}

// err is why a member without a leader is not ready; nil: it is, for those who read what it has.
func (r *readiness) err(now time.Time, most time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.elsewhere >= elsewhereLooks:
		return errors.New("the node does not hear the leader, which others know")
	case most == 0:
		return errors.New("no leader is known")
	case !r.leaderless.IsZero() && now.Sub(r.leaderless) > most:
		return fmt.Errorf("no leader has been known for %v, longer than ready_without_leader (%v)", now.Sub(r.leaderless).Round(time.Second), most)
	}
	return nil
}

// unready is why clients should not be sent here.
func (n *Node) unready() error {
	recovery := n.recovery()
	doing := recovery.Doing()
	switch {
	case doing != "" && !n.isReady():
		return errors.New(recovery.String())
	case !n.isReady():
		return errors.New("starting")
	}
	if err := n.group.Err(); err != nil {
		return err
	}
	s := n.group.Status()
	switch {
	case n.draining.Load():
		return errors.New("the node is being drained")
	case s.Provisioning:
		return errors.New("the node is being given its data")
	case s.Error != "":
		return errors.New(s.Error)
	case doing != "" && !s.Writable:
		return errors.New(recovery.String())
	case !n.readiness.caughtUp.Load() && s.Leader == 0:
		return errors.New("no leader is known")
	case !n.readiness.caughtUp.Load():
		return errors.New("the node is catching up with the group")
	case n.willVote():
		return errors.New("the node does not vote yet")
	case !n.hasAccounts(), s.Writable && !n.serves():
		return errors.New("the group is beginning")
	case s.Leader == 0:
		return n.readiness.err(time.Now(), n.cfg.Duration("ready_without_leader"))
	}
	return tooFar(&s, n.cfg.Duration("ready_max_lag"))
}

// willVote reports whether this member is to vote and does not yet: the group cannot spare another for it.
func (n *Node) willVote() bool {
	self := n.group.ID()
	return slices.ContainsFunc(n.group.Members(), func(m group.Member) bool { return m.ID == self && m.Learner && !m.Stays })
}

// tooFar says that a member that knows a leader is too far behind the group for clients; 0: nobody is.
func tooFar(s *group.Status, most time.Duration) error {
	switch {
	case most == 0 || s.Writable:
		return nil
	case s.Lag.Time < 0:
		return errors.New("the node does not know yet how far it is behind the group")
	case s.Lag.Time > most:
		return fmt.Errorf("the node is %v behind the group, more than ready_max_lag (%v)", s.Lag.Time.Round(time.Millisecond), most)
	}
	return nil
}

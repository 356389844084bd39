package group

import (
	"time"

	"go.etcd.io/raft/v3"
)

// calm lets the Raft task sleep for more than a tick where its clock is not needed. In an idle
// group the looks at each tick, and the heartbeats, are most of what there is to do.
//
// The clock of a member that follows a leader, and waits for nothing, has one purpose: to tell
// that the leader is silent. Each word of the leader puts the next tick off, so that Raft counts
// from there, and the task looks only every few ticks whether there was one. A leader to which
// nobody has brought anything for a while sends heartbeats at every third tick.
//
// The ticks that passed meanwhile are not lost: when it wakes, in time, the task counts those that
// have passed since it heard its leader, or its role changed, and one more. It never counts more:
// promises to leaders stand on n ticks taking n-1 times the length of one. A member that does not hear
// its leader looks at each tick from then on, so that an election comes no later.
type calm struct {
	sleeps bool          // it may
	worked time.Duration // when a leader was given something, on the monotonic clock
	heard  time.Duration // when a follower heard the leader; 0: it has not
	from   time.Duration // when the leader was heard, or the role changed: ticks count from there
	word   bool          // the leader's has come in this turn
	sleep  bool          // the task has gone to sleep for some ticks
	wake   time.Duration // when it is to wake
}

const (
	// followerSleeps and leaderSleeps are for how many ticks the task sleeps at once.
	followerSleeps = 4
	leaderSleeps   = 3
	// sleepsFrom is the least election timeout, in ticks, with which anybody sleeps: with a shorter
	// one, leases would end between the heartbeats of an idle leader.
	sleepsFrom = 8
	// idleAfter is when a leader is idle.
	idleAfter = time.Second
)

// isCalm reports whether there is nothing that is to be looked at with the next tick.
func (t *raftTask) isCalm() bool {
	if !t.sleeps || len(t.reads.waiting)+len(t.reads.asked) > 0 || t.moves.change != nil || t.moves.transfer != nil ||
		t.pages.since != 0 || t.pages.count != t.n.engine.Spaces.ReadErrors() {
		return false
	}
	if t.role.leads {
		return t.env.Monotonic()-t.worked >= idleAfter
	}
	return t.role.leader != raft.None && t.campaignIn == 0 && t.refused.member == raft.None && t.held == nil &&
		t.heard != 0 && t.env.Monotonic()-t.heard <= (leaderSleeps+1)*t.tick
}

// hear puts the next tick off if the leader was heard in this turn.
func (t *raftTask) hear() {
	if !t.word {
		return
	}
	t.heard = t.env.Monotonic()
	t.word, t.from, t.unheard = false, t.heard, 0
	if t.sleep && !t.role.leads && t.isCalm() {
		t.nextTick = t.heard + t.tick
	}
}

// disturb wakes the task if a turn of somebody else has left what its clock is needed for.
func (t *raftTask) disturb() {
	if t.sleep && !t.isCalm() {
		t.in.parker.Unpark()
	}
}

// pause is how long the task may sleep if nothing comes.
func (t *raftTask) pause() time.Duration {
	t.wake, t.sleep = t.nextTick, t.isCalm()
	switch {
	case t.sleep && t.role.leads:
		t.wake += (leaderSleeps - 1) * t.tick
	case t.sleep:
		t.wake += (followerSleeps - 1) * t.tick
	case t.held != nil && t.role.leader == raft.None: // until it may be answered
		t.wake = min(t.wake, t.env.Monotonic()+max(0, t.promiseEnds()-t.n.leaseClock()))
	}
	return t.wake - t.env.Monotonic()
}

// missed is how many ticks have passed before this one that the task has slept through; none if
// it stood still.
func (t *raftTask) missed(now time.Duration, late bool) int {
	if !t.sleep || late {
		return 0
	}
	return max(0, int((now-max(t.nextTick, t.from))/t.tick))
}

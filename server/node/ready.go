package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
	minority  minority
}

// minority is how many voters answered, itself counted, when a member that knows no leader asked them last.
type minority struct {
	voters, answered int
	silent           []string  // addresses of voters that did not
	distrust         string    // which certificate keeps one of them away; empty: none is known to
	told             time.Time // in the log
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
		r.leaderless, r.elsewhere, r.minority = time.Time{}, 0, minority{}
	case r.leaderless.IsZero():
		r.leaderless = now
	}
}

// lookElsewhere asks the others for a leader while this member knows none.
func (n *Node) lookElsewhere() {
	members, states := n.group.Members(), n.group.GroupStatus()
	known := knowLeader(n.group.ID(), members, states)
	r := &n.readiness
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.elsewhere++; !known {
		r.elsewhere = 0
	}
	r.minority.voters, r.minority.answered = countVoters(members, states)
	r.minority.silent = silentVoters(members, states)
	r.minority.distrust = Distrust(members, states)
	now := time.Now()
	if text := r.minority.text(); text != "" && now.Sub(r.leaderless) > minorityAfter && now.Sub(r.minority.told) > minorityAgain {
		r.minority.told = now
		n.log.Warn("this member can write nothing", "reason", text)
	}
}

// The log says that there is no majority when it has been so for a while, and again now and then.
const (
	minorityAfter = 20 * time.Second
	minorityAgain = 10 * time.Minute
)

// countVoters counts the voters, and those that have answered.
func countVoters(members []group.Member, states []group.Status) (voters, answered int) {
	for _, m := range members {
		if m.Learner {
			continue
		}
		voters++
		if slices.ContainsFunc(states, func(s group.Status) bool { return s.ID == m.ID && s.Error == "" }) {
			answered++
		}
	}
	return voters, answered
}

// silentVoters are the addresses of voters that have not answered.
func silentVoters(members []group.Member, states []group.Status) (addrs []string) {
	for _, m := range members {
		if !m.Learner && !slices.ContainsFunc(states, func(s group.Status) bool { return s.ID == m.ID && s.Error == "" }) {
			addrs = append(addrs, m.Addr)
		}
	}
	return addrs
}

// lacking says which voters a member lacks that has known no leader for a while and that hears no majority; empty: it is not so.
func (r *readiness) lacking(now time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.minority.text() == "" || r.leaderless.IsZero() || now.Sub(r.leaderless) < minorityAfter {
		return ""
	}
	text := fmt.Sprintf("%d of %d voters answer, not those at %s", r.minority.answered, r.minority.voters, strings.Join(r.minority.silent, ", "))
	if why := r.minority.distrust; why != "" {
		text += " (" + why + ")"
	}
	return text
}

// silent are the voters that do not answer a member which knows no leader and hears no majority.
func (r *readiness) silent() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leaderless.IsZero() || r.minority.text() == "" {
		return nil
	}
	return slices.Clone(r.minority.silent)
}

// Distrust says which certificate keeps a voter away, if there is a majority with those that only certificates keep away; else it is empty.
func Distrust(members []group.Member, states []group.Status) (why string) {
	voters, there := countVoters(members, states)
	for i := range states {
		s := &states[i]
		if s.Distrust != "" && slices.ContainsFunc(members, func(m group.Member) bool { return m.ID == s.ID && !m.Learner }) {
			why = s.Distrust
			there++
		}
	}
	if there <= voters/2 {
		return ""
	}
	return why
}

// NoMajority is what is said where so few voters answer that nothing can be agreed on; empty: enough do. distrust: see Distrust.
func NoMajority(voters, answered int, distrust string) string {
	switch {
	case answered > voters/2 || voters == 0:
		return ""
	case distrust != "":
		return fmt.Sprintf("no majority: %d of %d voters answer, and certificates between members are not accepted: %s. "+
			"Nothing is lost: renew the files of peer_tls_cert (or set the clock right), and they find each other again: docs/operations-group.md, When the majority is lost", answered, voters, distrust)
	}
	return fmt.Sprintf("no majority: %d of %d voters answer. If the disks of the others are lost: "+
		"docs/operations-group.md, When the majority is lost", answered, voters)
}

// text says that there is no majority; empty: there is, or nothing is known.
func (m *minority) text() string { return NoMajority(m.voters, m.answered, m.distrust) }

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
		return r.and("no leader is known")
	case !r.leaderless.IsZero() && now.Sub(r.leaderless) > most:
		return r.and(fmt.Sprintf("no leader has been known for %v, longer than ready_without_leader (%v)", now.Sub(r.leaderless).Round(time.Second), most))
	}
	return nil
}

// withMinority adds to why the node is not ready that so few voters answer, if that is so.
func (r *readiness) withMinority(text string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.and(text)
}

// and is withMinority.
//
// REQUIRES: r.mu.
func (r *readiness) and(text string) error {
	if why := r.minority.text(); why != "" {
		text += "; " + why
	}
	return errors.New(text)
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
	case n.goes.Load(): // before the ports are closed
		return errors.New("the node is stopping")
	case s.Provisioning:
		return errors.New("the node is being given its data")
	case s.Error != "":
		return errors.New(s.Error)
	case doing != "" && !s.Writable:
		return n.readiness.withMinority(recovery.String())
	case !n.readiness.caughtUp.Load() && s.Leader == 0:
		return n.readiness.withMinority("no leader is known")
	case !n.readiness.caughtUp.Load():
		return errors.New("the node is catching up with the group")
	case willVote(n.group.Members(), n.group.ID()):
		return errors.New("the node does not vote yet")
	case !n.hasAccounts(), s.Writable && !n.serves():
		return errors.New("the group is beginning")
	case s.Leader == 0:
		return n.readiness.err(time.Now(), n.cfg.Duration("ready_without_leader"))
	}
	return tooFar(&s, n.cfg.Duration("ready_max_lag"))
}

// willVote reports whether a member is to vote and does not yet: the group cannot spare another for it. One
// that does not know yet that the group took it in may be to vote.
func willVote(members []group.Member, self uint64) bool {
	at := slices.IndexFunc(members, func(m group.Member) bool { return m.ID == self })
	return at < 0 || members[at].Learner && !members[at].Stays
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

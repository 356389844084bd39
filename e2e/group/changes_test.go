package group_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/triremedb/trireme/replication/group"
)

// strikesEach is how many strikes a group lives through before the next one is founded: what is
// checked after each grows with all that was written.
const strikesEach = 12

// A group loses nothing that it has acknowledged, and reads are what they promise, whatever
// happens within milliseconds of the answer to a change of its membership, a transfer of
// leadership, a rotation of the log or a definition.
func TestChanges(t *testing.T) {
	t.Parallel()
	number := *seed
	if number == 0 {
		number = uint64(time.Now().UnixNano())
	}
	answered := map[string]int{}
	var elections []time.Duration
	for begin := time.Now(); !t.Failed(); number++ {
		t.Run(fmt.Sprintf("seed %d", number), func(t *testing.T) {
			r := storms(t, number, begin.Add(*duration))
			for k, v := range r.answered {
				answered[k] += v
			}
			elections = append(elections, r.elections...)
		})
		if time.Since(begin) >= *duration {
			break
		}
	}
	changes := answered["add"] + answered["promote"] + answered["replace"] + answered["remove"]
	t.Logf("%d changes of membership; answered: %v", changes, answered)
	if slices.Sort(elections); len(elections) > 0 {
		t.Logf("all killed, a majority started: a leader within %v, median %v, %d times", slices.Max(elections).Round(time.Millisecond),
			elections[len(elections)/2].Round(time.Millisecond), len(elections))
	}
}

// storms is the life of one group.
func storms(t *testing.T, number uint64, until time.Time) *storm {
	rng := rand.New(rand.NewPCG(number, 1))
	c := newNetworked(t, 3+rng.IntN(3))
	if c.large = number%2 == 0; c.large {
		for _, n := range c.nodes {
			n.Large = true
		}
	}
	c.found()
	r := &storm{run: &run{cluster: c, load: startLoad(c, number), rng: rng}, answered: map[string]int{}}
	for i := 0; c.failed() == "" && (i == 0 || i < strikesEach && time.Now().Before(until)); i++ {
		r.strike(t)
	}
	r.load.stop()
	if c.failed() == "" {
		r.checkAll(true)
	}
	for _, n := range c.members() {
		if c.failed() == "" { // they end without a complaint
			c.stop(n)
		}
	}
	r.report(t)
	t.Logf("answered: %v", r.answered)
	if problem := c.failed(); problem != "" {
		t.Errorf("%s\nrepeat with -run TestChanges -args -e2e.seed=%d (the same plan, not the same run)", problem, number)
	}
	return r
}

// scene founds a group behind a network, under load.
func scene(t *testing.T, voters int) (*strike, *load) {
	c := newNetworked(t, voters)
	c.found()
	number := *seed
	if number == 0 {
		number = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", number)
	l := startLoad(c, number)
	r := &storm{run: &run{cluster: c, load: l, rng: newRand(number)}, answered: map[string]int{}}
	s := &strike{storm: r, lead: c.leader()}
	t.Cleanup(func() {
		l.stop()
		if problem := c.failed(); problem != "" {
			t.Error(problem)
		}
	})
	return s, l
}

// A member that was removed may be stopped with all others: any majority of those that stay
// goes on without it, with all that was acknowledged.
func TestRemovedIsNotNeeded(t *testing.T) {
	t.Parallel()
	s, l := scene(t, 4)
	s.before = s.voters()
	old := s.follower(s.lead, s.rng.IntN(3))
	if !s.order(request{Do: "remove", Member: group.Member{ID: old.ID}}) {
		return
	}
	s.after = slices.DeleteFunc(slices.Clone(s.before), func(n *node) bool { return n == old })
	s.leave = []*node{old}
	s.restartFew()
	t.Logf("a leader after %v", s.elections)
	if lead := s.leader(); lead != nil && !l.readFrom(lead, request{Consistency: group.Strong, Limit: patience}) {
		s.failf("node %d does not answer a strong read", lead.ID)
	}
	s.mend()
	l.checkAll(true)
}

// A member that is killed after a replacement that it has acknowledged to know remembers it:
// else it and the one that has left would elect a second leader.
func TestReplacedDoesNotVote(t *testing.T) {
	t.Parallel()
	s, l := scene(t, 3)
	fresh := s.learner()
	if fresh == nil {
		return
	}
	s.before = s.voters()
	s.after = s.before
	follower := slices.DeleteFunc(slices.Clone(s.before), func(n *node) bool { return n == s.lead })
	kept, old := follower[0], follower[1]
	if !s.order(request{Do: "replace", Old: old.ID, Member: group.Member{ID: fresh.ID}}) {
		return
	}
	if s.lead == kept || s.lead == old {
		t.Logf("the lead moved meanwhile to node %d", s.lead.ID)
		kept = slices.DeleteFunc(slices.Clone(s.before), func(n *node) bool { return n == s.lead || n == old })[0]
	}
	s.leave = []*node{old}
	one, other := []*node{kept, old}, []*node{s.lead, fresh}
	s.kill(kept)
	s.net.set(silent, append(between(one, other), between(other, one)...)...)
	since := l.acks()
	s.start(kept)
	s.eventually(func() bool { return l.acks()[s.lead.ID]+l.acks()[fresh.ID] > since[s.lead.ID]+since[fresh.ID]+20 })
	time.Sleep(5 * time.Second)
	for _, n := range one {
		if now := l.acks()[n.ID]; now > since[n.ID] {
			s.failf("node %d, without a majority of %v, has acknowledged %d transfers", n.ID, ids(append(other, kept)), now-since[n.ID])
		}
	}
	s.mend()
	l.checkAll(true)
}

// acks is how many operations each node has acknowledged.
func (l *load) acks() map[uint64]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.by)
}

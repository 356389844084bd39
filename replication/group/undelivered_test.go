package group_test

import (
	"errors"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage/file/simfile"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/internal/race"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// swallow makes the ways from a member to others lose what is larger than any heartbeat; none ends that.
func (r *simRig) swallow(from *simNode, to ...*simNode) {
	for _, n := range to {
		r.net.SetFaults(from.addr, n.addr, simnettest.Faults{Largest: 150})
	}
}

func (r *simRig) carryAgain(from *simNode, to ...*simNode) {
	for _, n := range to {
		r.net.SetFaults(from.addr, n.addr, simnettest.Faults{})
	}
}

// A leader whose heartbeats get to the others, and whose entries do not, hands over to one of them: commits go on there within
// seconds, those of the old leader have an answer, and the lead stays where it came to.
func TestLeadersEntriesAreLost(t *testing.T) {
	for _, size := range []int{3, 5} {
		for seed := range race.Fewer(uint64(4), 1) {
			simulate(t, seed, size, simnettest.Options{}, nil, func(r *simRig) {
				l := r.leader(nil)
				createFruit(t, l.node)
				env.Sleep(r.sim, time.Second)
				r.swallow(l, r.others(l)...)
				ended := map[int]error{}
				began := r.sim.Monotonic()
				for id := range 5 {
					r.sim.Go("client", func() { _, ended[id] = insert(l.node, id) })
				}
				now := r.leader(l)
				if now == nil {
					return
				}
				_, err := insert(now.node, 100)
				if took := r.sim.Monotonic() - began; err != nil || took > 5*time.Second {
					t.Errorf("%d members, seed %d: a commit on another member ends after %v: %v", size, seed, took, err)
				}
				if !r.within(5*time.Second, func() bool { return len(ended) == 5 }) {
					t.Errorf("%d members, seed %d: of 5 sessions of the old leader %d have an answer", size, seed, len(ended))
				}
				for id, err := range ended {
					if !errors.Is(err, txn.ErrOutcomeUnknown) && !errors.Is(err, group.ErrNotLeader) {
						t.Errorf("%d members, seed %d: the commit of row %d on the old leader: %v", size, seed, id, err)
					}
				}
				term := now.node.Status().Term
				for id := range 60 {
					env.Sleep(r.sim, time.Second)
					if _, err := insert(now.node, 200+id); err != nil {
						t.Errorf("%d members, seed %d: %v", size, seed, err)
						return
					}
				}
				if s := l.node.Status(); s.Term != term || s.Leader != now.id || s.Undelivered != 0 {
					t.Errorf("%d members, seed %d: in term %d member %d led; a minute later %+v", size, seed, term, now.id, s)
				}
				r.carryAgain(l, r.others(l)...)
				last, err := insert(now.node, 300)
				if err != nil {
					t.Error(err)
				}
				r.alike(last)
			})
		}
	}
}

// Where nobody else could do better, or entries are only late, the leader keeps the lead and its lease.
func TestUndeliveredAndNeeded(t *testing.T) {
	stall := simfile.Fault{Ops: simfile.OpSync, Name: "binlog.*", Delay: 35 * time.Second}
	var stalls []*simfile.Injection
	for _, c := range []struct {
		name    string
		nodes   int
		down    int
		fault   func(r *simRig, l *simNode)
		lost    bool // the leader says that its entries get to no majority
		commits bool // some end meanwhile
	}{
		{name: "one of three ways", nodes: 3, commits: true, fault: func(r *simRig, l *simNode) { r.swallow(l, r.others(l)[0]) }},
		{name: "one of two members", nodes: 2, lost: true, fault: func(r *simRig, l *simNode) { r.swallow(l, r.others(l)...) }},
		{name: "one of the two that are left", nodes: 3, down: 1, lost: true, fault: func(r *simRig, l *simNode) { r.swallow(l, r.others(l)...) }},
		{name: "a slow network", nodes: 3, commits: true, fault: func(r *simRig, l *simNode) {
			r.net.SetDefaultFaults(simnettest.Faults{BytesPerSecond: 20_000, DelayMin: 20 * time.Millisecond, DelayMax: 120 * time.Millisecond})
		}},
		{name: "a network that loses much", nodes: 3, commits: true, fault: func(r *simRig, l *simNode) {
			r.net.SetDefaultFaults(simnettest.Faults{Loss: 100})
		}},
		{name: "disks of the others that stand still", nodes: 3, fault: func(r *simRig, l *simNode) {
			for _, n := range r.others(l) {
				stalls = append(stalls, n.fs.Inject(stall))
			}
		}},
		{name: "one of three ways, and the other's disk stands still", nodes: 3, fault: func(r *simRig, l *simNode) {
			others := r.others(l)
			r.swallow(l, others[0])
			stalls = append(stalls, others[1].fs.Inject(stall))
		}},
	} {
		for seed := range race.Fewer(uint64(3), 1) {
			simulate(t, seed, c.nodes, simnettest.Options{}, nil, func(r *simRig) {
				l := r.leader(nil)
				createFruit(t, l.node)
				for _, n := range r.others(l)[:c.down] {
					n.kill()
				}
				env.Sleep(r.sim, time.Second)
				stalls = nil
				c.fault(r, l)
				term, ended := l.node.Status().Term, 0
				for id := range 3 {
					r.sim.Go("client", func() {
						if _, err := insert(l.node, id); err != nil {
							t.Errorf("%s, seed %d: %v", c.name, seed, err)
						}
						ended++
					})
				}
				env.Sleep(r.sim, 30*time.Second)
				s := l.node.Status()
				if s.Term != term || !s.Writable || (s.Undelivered > 20*time.Second) != c.lost || (ended > 0) != c.commits {
					t.Errorf("%s, seed %d: in term %d: %+v; %d commits are answered", c.name, seed, term, s, ended)
				}
				if text := s.Trouble(); (text != "") != c.lost {
					t.Errorf("%s, seed %d: the member %s", c.name, seed, text)
				}
				if _, err := l.node.ReadPoint(group.ReadOptions{Consistency: group.Strong, Wait: time.Second}); err != nil {
					t.Errorf("%s, seed %d: a read: %v", c.name, seed, err)
				}
				r.net.SetDefaultFaults(simnettest.Faults{})
				for _, s := range stalls {
					s.Stop()
				}
				if !r.within(time.Minute, func() bool { return ended == 3 && l.node.Status().Undelivered == 0 }) {
					t.Errorf("%s, seed %d: the network is well, %d commits are answered: %+v", c.name, seed, ended, l.node.Status())
				}
				for _, n := range r.nodes {
					if n.node == nil {
						n.start()
					}
				}
				last, err := insert(r.leader(nil).node, 100)
				if err != nil {
					t.Error(err)
				}
				r.alike(last)
			})
		}
	}
}

// A member that has handed over since its entries were lost is elected at once when nobody else can be.
func TestElectedThoughEntriesWereLost(t *testing.T) {
	for seed := range race.Fewer(uint64(4), 1) {
		simulate(t, seed, 3, simnettest.Options{}, nil, func(r *simRig) {
			l := r.leader(nil)
			createFruit(t, l.node)
			r.swallow(l, r.others(l)...)
			r.sim.Go("client", func() { _, _ = insert(l.node, 1) })
			now := r.leader(l)
			if now == nil {
				return
			}
			var third *simNode
			for _, n := range r.others(l) {
				if n != now {
					third = n
				}
			}
			r.cut(third, l, now)
			if _, err := insert(now.node, 2); err != nil { // the third does not have it, and cannot be elected
				t.Error(err)
			}
			r.carryAgain(l, r.others(l)...)
			now.kill()
			r.net.HealAll()
			began := r.sim.Monotonic()
			next := r.leader(now)
			if took := r.sim.Monotonic() - began; next != l || took > 5*time.Second {
				t.Errorf("seed %d: member %v leads after %v", seed, next, took)
				return
			}
			if _, err := insert(l.node, 3); err != nil {
				t.Error(err)
			}
		})
	}
}

// Where no path carries entries the lead goes round ever more slowly, and commits go on when the network is mended.
func TestNoPathCarriesEntries(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, nil, func(r *simRig) {
		l := r.leader(nil)
		createFruit(t, l.node)
		env.Sleep(r.sim, time.Second)
		for _, n := range r.nodes {
			r.swallow(n, r.others(n)...)
		}
		over := false
		r.sim.Go("client", func() {
			for id := 0; !over; id++ {
				if n := r.leader(nil); n != nil {
					_, _ = insert(n.node, id)
				}
				env.Sleep(r.sim, time.Second)
			}
		})
		term := func() (most uint64) {
			for _, n := range r.nodes {
				most = max(most, n.node.Status().Term)
			}
			return most
		}
		env.Sleep(r.sim, 5*time.Minute)
		before := term()
		env.Sleep(r.sim, 5*time.Minute)
		t.Logf("%d and %d", before, term()-before)
		if changes := term() - before; changes > 20 {
			t.Errorf("the lead changes %d times in five minutes", changes)
		}
		r.net.SetDefaultFaults(simnettest.Faults{})
		over = true
		env.Sleep(r.sim, 20*time.Second)
		last, err := insert(r.leader(nil).node, 10_000)
		if err != nil {
			t.Error(err)
		}
		r.alike(last)
	})
}

package group_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/replication/group"
)

type round struct {
	name string
	do   func(*run)
}

// rounds are the harms, in their order. Each leaves all members running.
var rounds = []round{
	{"kill the leader", (*run).killLeader},
	{"pause the leader", (*run).pauseLeader},
	{"kill a follower", (*run).killFollower},
	{"replace a member", (*run).replaceMember},
	{"stop all", (*run).stopAll},
	{"kill the leader and the next", (*run).killTwo},
	{"hand over", (*run).handOver},
	{"pause a follower", (*run).pauseFollower},
	{"kill all", (*run).killAll},
}

// run is a test under load.
type run struct {
	*cluster
	*load
	rng       *rand.Rand
	failovers []time.Duration
}

// A group loses nothing that it has acknowledged, and reads are what they promise,
// whatever happens to its processes.
func TestFaults(t *testing.T) {
	list := slices.DeleteFunc(slices.Clone(rounds), func(r round) bool { return *only != "" && r.name != *only })
	if problem := faults(t, newCluster(t, 3, group.NoSabotage), list, *duration); problem != "" {
		t.Error(problem)
	}
}

// The checks notice an old leader that answers strong reads by itself. What else the
// simulation breaks on purpose does not need processes to be noticed.
func TestSabotage(t *testing.T) {
	t.Parallel()
	list := []round{{"pause the leader", (*run).pauseLeader}}
	problem := faults(t, newCluster(t, 3, group.StaleRead), list, patience)
	if t.Logf("noticed: %s", problem); problem == "" {
		t.Error("nothing is noticed")
	}
}

// faults runs rounds under load, each in its turn and then any, and returns what must
// never be.
func faults(t *testing.T, c *cluster, list []round, limit time.Duration) string {
	number := *seed
	if number == 0 {
		number = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", number)
	c.found()
	r := &run{cluster: c, load: startLoad(c, number), rng: rand.New(rand.NewPCG(number, 0))}
	begin := time.Now()
	for i := 0; c.failed() == "" && (i < len(list) || time.Since(begin) < limit); i++ {
		next := list[i%len(list)]
		if i >= len(list) {
			next = list[r.rng.IntN(len(list))]
		}
		at := time.Now()
		time.Sleep(upTo(r.rng, 400*time.Millisecond))
		next.do(r)
		done := time.Now()
		r.checkAll(false)
		t.Logf("%s: %v, and %v to check", next.name, done.Sub(at).Round(time.Millisecond), time.Since(done).Round(time.Millisecond))
	}
	r.load.stop()
	if c.failed() == "" {
		r.checkAll(true)
	}
	if c.failed() == "" { // they end without a complaint
		for _, n := range c.members() {
			c.stop(n)
		}
	}
	r.report(t)
	return c.failed()
}

func (r *run) report(t *testing.T) {
	slices.Sort(r.failovers)
	if n := len(r.failovers); n > 0 {
		t.Logf("kill -9 of the leader to the next commit, %d times: median %v, worst %v", n,
			r.failovers[n/2].Round(time.Millisecond), r.failovers[n-1].Round(time.Millisecond))
	}
	t.Logf("operations %v in %d attempts, %d reads checked, transaction %d", r.counts, r.attempts, r.reads, r.acked)
}

// downtime is how long a node is left down.
func (r *run) downtime() { time.Sleep(upTo(r.rng, 500*time.Millisecond)) }

// killLeader kills the leader and measures how long nothing is committed.
func (r *run) killLeader() {
	n := r.leader()
	if n == nil {
		return
	}
	at := time.Now()
	r.kill(n)
	if next, ok := r.nextBut(n); ok {
		r.failovers = append(r.failovers, next.Sub(at))
	}
	r.downtime()
	r.start(n)
}

func (r *run) killFollower() {
	n := r.follower(r.leader(), r.rng.IntN(2))
	r.kill(n)
	r.downtime()
	r.start(n)
}

// killTwo leaves no majority for a while.
func (r *run) killTwo() {
	first := r.leader()
	if first == nil {
		return
	}
	r.kill(first)
	second := r.leader(first)
	if second == nil {
		return
	}
	r.kill(second)
	r.downtime()
	r.start(second)
	r.start(first)
}

func (r *run) killAll() {
	for _, n := range r.members() {
		r.kill(n)
	}
	r.startAll()
}

// stopAll stops all nodes as an operator does, one after the other.
func (r *run) stopAll() {
	for _, i := range r.rng.Perm(len(r.members())) {
		r.cluster.stop(r.members()[i])
	}
	r.startAll()
}

// startAll starts all nodes at about the same time, in any order.
func (r *run) startAll() {
	var wg sync.WaitGroup
	for _, n := range r.members() {
		late := upTo(r.rng, 300*time.Millisecond)
		wg.Go(func() { time.Sleep(late); r.start(n) })
	}
	wg.Wait()
}

// pauseLeader stops the leader's process for so long that another is elected. When it
// goes on, reads that came to it meanwhile must not be answered with what it had: the
// other one has acknowledged more.
func (r *run) pauseLeader() {
	n := r.leader()
	if n == nil {
		return
	}
	p := r.process(n)
	p.pause()
	defer p.resume()
	if _, ok := r.nextBut(n); !ok {
		return
	}
	time.Sleep(300*time.Millisecond + upTo(r.rng, time.Second))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			q := request{Consistency: group.Strong, Limit: 5 * time.Second}
			if i == 7 {
				q.Consistency = group.AtLeast
			}
			r.readFrom(n, q)
		})
	}
	time.Sleep(200 * time.Millisecond)
	p.resume()
	wg.Wait()
}

// pauseFollower stops a follower's process for a while.
func (r *run) pauseFollower() {
	p := r.process(r.follower(r.leader(), r.rng.IntN(2)))
	p.pause()
	time.Sleep(upTo(r.rng, 1500*time.Millisecond))
	p.resume()
}

// handOver lets another member lead.
func (r *run) handOver() {
	n := r.leader()
	if n == nil {
		return
	}
	before := r.must(n, request{Do: "status"}).Status.Term
	if a, err := r.ask(n, request{Do: "handover"}, patience); err != nil || a.Error != "" {
		return // it may have lost leadership of itself
	}
	// That the other one commits anything is not certain: n may lead again before.
	if !r.eventually(func() bool {
		for _, m := range r.members() {
			a, err := r.ask(m, request{Do: "status"}, answerTime)
			if err == nil && a.Status.Writable && a.Status.Term > before {
				return true
			}
		}
		return false
	}) {
		r.failf("leadership was handed over, and nobody leads: %s", r.standing())
	}
}

// replaceMember puts a new member in the place of an old one.
func (r *run) replaceMember() {
	fresh := r.newNode()
	fresh.Join = true
	for _, n := range r.members() {
		if n != fresh {
			fresh.Contact = append(fresh.Contact, n.addr())
		}
	}
	member := group.Member{ID: fresh.ID, Addr: fresh.addr()}
	r.change(request{Do: "add", Member: member}, func(m *group.Member) bool { return m != nil })
	r.start(fresh)
	if !r.eventually(func() bool {
		a, err := r.ask(fresh, request{Do: "status"}, answerTime)
		return err == nil && a.Error == "" && !a.Status.Provisioning && a.Status.Number > 0
	}) {
		r.failf("node %d does not get its data: %s", fresh.ID, r.standing())
	}
	r.change(request{Do: "promote", Member: member}, func(m *group.Member) bool { return m != nil && !m.Learner })
	old := r.members()[r.rng.IntN(len(r.members())-1)]
	r.change(request{Do: "remove", Member: group.Member{ID: old.ID}}, func(m *group.Member) bool { return m == nil })
	r.removed(old)
}

// change changes the membership: the leader may fail to answer, or stop leading.
func (r *run) change(q request, done func(*group.Member) bool) {
	var last string
	if !r.eventually(func() bool {
		leader := r.leader()
		if leader == nil {
			return true
		}
		a, err := r.ask(leader, request{Do: "status"}, answerTime)
		if err != nil {
			return false
		}
		at := slices.IndexFunc(a.Members, func(m group.Member) bool { return m.ID == q.Member.ID })
		if at < 0 && done(nil) || at >= 0 && done(&a.Members[at]) {
			return true
		}
		if a, err = r.ask(leader, q, patience); err == nil {
			last = a.Error
		}
		return false
	}) {
		r.failf("%s of member %d: %s %s", q.Do, q.Member.ID, last, r.standing())
	}
}

// removed looks at a node that is no member any more: it stops and says why; until
// then its strong reads are not answered with old data.
func (r *run) removed(n *node) {
	r.mu().Lock()
	n.gone = true
	r.mu().Unlock()
	if _, ok := r.nextBut(n); ok {
		r.readFrom(n, request{Consistency: group.Strong, Limit: 500 * time.Millisecond})
	}
	if !r.eventually(func() bool {
		a, err := r.ask(n, request{Do: "status"}, answerTime)
		return err == nil && strings.Contains(a.Error, "this member was removed from the group")
	}) {
		r.failf("node %d was removed and does not say so", n.ID)
	}
	r.kill(n)
}

func (r *run) mu() *sync.Mutex { return &r.cluster.mu }

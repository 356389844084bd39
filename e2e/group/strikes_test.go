package group_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/replication/group"
)

// storm is a run whose faults strike within milliseconds of an answer.
type storm struct {
	*run
	answered  map[string]int // requests by what they do
	removed   []*node        // have left, and run on for a while
	elections []time.Duration
	marks     int
}

// strike is something that was answered, and the harm that follows.
type strike struct {
	*storm
	lead *node // answered
	// before voted before and after votes after it.
	before, after []*node
	leave         []*node // may be stopped from the answer on
	hits          sync.WaitGroup
}

// things are what is waited for. Each reports whether there was an answer.
var things = []struct {
	name   string
	weight int
	do     func(*strike) bool
}{
	{"replace", 5, (*strike).replace},
	{"promote", 3, (*strike).promote},
	{"remove", 4, (*strike).remove},
	{"add", 1, (*strike).add},
	{"publication", 1, (*strike).publication},
	{"transfer", 1, (*strike).transfer},
	{"rotation", 1, (*strike).rotation},
	{"definition", 2, (*strike).definition},
}

// harms are what follows at once. Each reports whether it was possible.
var harms = []struct {
	name   string
	weight int
	do     func(*strike) bool
}{
	{"split along the majorities", 5, (*strike).split},
	{"kill the leader", 2, (*strike).hitLeader},
	{"kill two", 2, (*strike).hitTwo},
	{"kill all", 2, (*strike).hitAll},
	{"kill all, start a majority", 3, (*strike).restartFew},
	{"pause", 2, (*strike).pauseSome},
	{"cut off the leader", 2, (*strike).cutLeader},
	{"cut in two", 2, (*strike).cutInTwo},
}

// drawn draws an index by weight.
func drawn(rng *rand.Rand, n int, weight func(int) int) int {
	sum := 0
	for i := range n {
		sum += weight(i)
	}
	at := rng.IntN(sum)
	for i := range n {
		if at -= weight(i); at < 0 {
			return i
		}
	}
	return n - 1
}

// strike waits for an answer, does harm, mends it, and looks at everything.
func (r *storm) strike(t *testing.T) {
	begin := time.Now()
	s := &strike{storm: r}
	if s.lead = r.leader(); s.lead == nil {
		return
	}
	s.before = r.voters()
	thing := things[drawn(r.rng, len(things), func(i int) int { return things[i].weight })]
	var disturbed sync.WaitGroup
	how := ""
	if r.rng.IntN(3) == 0 {
		how = s.disturb(&disturbed)
	}
	if !thing.do(s) || r.failed() != "" {
		disturbed.Wait()
		s.mend()
		t.Logf("%s%s: no answer", thing.name, how)
		return
	}
	if s.after == nil {
		s.after = slices.Clone(s.before)
	}
	disturbed.Wait()
	if r.rng.IntN(3) > 0 {
		time.Sleep(upTo(r.rng, 50*time.Millisecond))
	}
	harm := harms[drawn(r.rng, len(harms), func(i int) int { return harms[i].weight })]
	if !harm.do(s) {
		harm = harms[1]
		harm.do(s)
	}
	struck := time.Now()
	s.mend()
	mended := time.Now()
	r.checkAll(false)
	t.Logf("%s of %v, voters %v%s, then %s: %v to the strike, %v to mend, %v to check", thing.name, ids(s.before), ids(s.after), how, harm.name,
		struck.Sub(begin).Round(time.Millisecond), mended.Sub(struck).Round(time.Millisecond), time.Since(mended).Round(time.Millisecond))
}

func ids(nodes []*node) (list []uint64) {
	for _, n := range nodes {
		list = append(list, n.ID)
	}
	return list
}

// view is how the leader stands.
func (r *storm) view() (a *answer) {
	if !r.eventually(func() bool {
		if n := r.writable(nil); n != nil {
			a, _ = r.ask(n, request{Do: "status"}, answerTime)
		}
		return a != nil && a.Status.Writable
	}) || a == nil {
		r.failf("nobody leads: %s", r.standing())
		return &answer{}
	}
	return a
}

// voters are the nodes that vote, as the leader knows.
func (r *storm) voters() (nodes []*node) {
	for _, m := range r.view().Members {
		if !m.Learner {
			nodes = append(nodes, r.nodes[m.ID-1])
		}
	}
	return nodes
}

// order has the leader do something, and the next leader if that is not answered well.
func (s *strike) order(q request) bool {
	last := ""
	ok := s.eventually(func() bool {
		s.lead = s.leader()
		if s.lead == nil {
			return true
		}
		a, err := s.ask(s.lead, q, patience)
		if err != nil {
			last = err.Error()
			return false
		}
		last = a.Error
		return last == ""
	})
	if !ok {
		s.failf("%s of member %d: %s %s", q.Do, q.Member.ID, last, s.standing())
	}
	if ok = ok && s.failed() == ""; ok {
		s.answered[q.Do]++
	}
	return ok
}

// addLearner adds a member that does not vote until it is told to.
func (s *strike) addLearner() *node {
	n := s.newNode()
	s.mu().Lock()
	n.gone = true // until it is added
	s.mu().Unlock()
	n.Join = true
	for _, other := range s.members() {
		n.Contact = append(n.Contact, other.addr())
	}
	if !s.order(request{Do: "add", Member: group.Member{ID: n.ID, Addr: n.addr(), Stays: true}}) {
		return nil
	}
	s.mu().Lock()
	n.gone = false
	s.mu().Unlock()
	return n
}

// learner is a member that has caught up and does not vote: one that is there, or a new one.
func (s *strike) learner() *node {
	var n *node
	for _, m := range s.view().Members {
		if m.Learner && !slices.Contains(s.after, s.nodes[m.ID-1]) {
			n = s.nodes[m.ID-1]
		}
	}
	if n == nil {
		n = s.addLearner()
	}
	if n == nil {
		return nil
	}
	s.start(n)
	if !s.awaitData(n) {
		return nil
	}
	return n
}

// awaitData waits until a new member has the data and about all of the log.
func (s *strike) awaitData(n *node) bool {
	if !s.eventually(func() bool {
		mine, err := s.ask(n, request{Do: "status"}, answerTime)
		if err != nil || mine.Error != "" || mine.Status.Provisioning || mine.Status.Applied == 0 {
			return false
		}
		lead := s.writable(nil)
		if lead == nil {
			return false
		}
		its, err := s.ask(lead, request{Do: "status"}, answerTime)
		return err == nil && mine.Status.Applied+30 >= its.Status.Applied
	}) {
		s.failf("node %d does not get its data: %s", n.ID, s.standing())
	}
	return s.failed() == ""
}

// other draws a voter; the leader seldom.
func (s *strike) other() *node {
	voters := slices.DeleteFunc(slices.Clone(s.after), func(n *node) bool { return n == s.lead && s.rng.IntN(4) > 0 })
	return voters[s.rng.IntN(len(voters))]
}

func (s *strike) without(old *node) []*node {
	return slices.DeleteFunc(slices.Clone(s.after), func(n *node) bool { return n == old })
}

func (s *strike) replace() bool {
	s.after = s.before
	n, old := s.learner(), s.other()
	if n == nil || !s.order(request{Do: "replace", Old: old.ID, Member: group.Member{ID: n.ID}}) {
		return false
	}
	s.after = append(s.without(old), n)
	s.leave = append(s.leave, old)
	return true
}

// promote lets two members vote, or one: a majority of five need not share a member with one
// of the three before.
func (s *strike) promote() bool {
	if len(s.before) >= 5 {
		return s.remove()
	}
	s.after = s.before
	var fresh []*node
	for range 1 + s.rng.IntN(2) {
		n := s.learner()
		if n == nil {
			return false
		}
		fresh = append(fresh, n)
		s.after = append(slices.Clone(s.after), n) // so that it is not taken twice
	}
	for _, n := range fresh {
		if !s.order(request{Do: "promote", Member: group.Member{ID: n.ID}}) {
			return false
		}
	}
	return true
}

// remove removes two members, or one.
func (s *strike) remove() bool {
	if len(s.before) <= 3 {
		return s.promote()
	}
	s.after = s.before
	for range 1 + s.rng.IntN(2) {
		if len(s.after) <= 3 {
			break
		}
		old := s.other()
		if !s.order(request{Do: "remove", Member: group.Member{ID: old.ID}}) {
			return false
		}
		s.after = s.without(old)
		s.leave = append(s.leave, old)
	}
	return true
}

func (s *strike) add() bool { return s.addLearner() != nil }

// publication waits until a new member has put the data in place that it was given, and kills it.
func (s *strike) publication() bool {
	n := s.addLearner()
	if n == nil {
		return false
	}
	s.start(n)
	if !s.eventually(func() bool {
		a, err := s.ask(n, request{Do: "status"}, answerTime)
		return err == nil && !a.Status.Provisioning && a.Status.Applied > 0
	}) {
		s.failf("node %d does not get its data: %s", n.ID, s.standing())
	}
	if s.rng.IntN(2) == 0 {
		s.kill(n) // the end of the strike starts it
	}
	return s.failed() == ""
}

func (s *strike) transfer() bool {
	a, err := s.ask(s.lead, request{Do: "handover"}, patience)
	if err != nil || a.Error != "" {
		return false // it may have lost leadership of itself
	}
	s.answered["handover"]++
	return true
}

// rotation changes the size of the log's files and waits until the leader has a new one.
func (s *strike) rotation() bool {
	size := int64(16<<10 + s.rng.IntN(64<<10))
	was := s.view().Newest
	if !s.order(request{Do: "set", Setting: "max_binlog_size", Value: size}) {
		return false
	}
	for range 300 {
		if a, err := s.ask(s.lead, request{Do: "status"}, answerTime); err == nil && a.Newest > was {
			s.answered["rotation"]++
			return true
		}
		time.Sleep(2 * time.Millisecond)
	}
	return false
}

// definition makes or changes a table, or drops it.
func (s *strike) definition() bool {
	s.marks++
	slot, d := s.rng.IntN(slots), definition{mark: fmt.Sprint("mark ", s.marks)}
	if s.rng.IntN(4) == 0 {
		d.mark = ""
	}
	a, err := s.ask(s.lead, request{Do: "define", Slot: slot, Mark: d.mark, Limit: 5 * time.Second}, patience)
	if d.outcome = unknown; err == nil {
		d.outcome = a.Outcome
	}
	s.defined(slot, d)
	if d.outcome != committed {
		return false
	}
	s.answered["define"]++
	return true
}

// disturb does harm while something is being done, for a short while.
func (s *strike) disturb(done *sync.WaitGroup) string {
	n, kind, after, d := s.lead, s.rng.IntN(4), upTo(s.rng, 300*time.Millisecond), upTo(s.rng, 1200*time.Millisecond)
	if s.rng.IntN(2) == 0 {
		n = s.before[s.rng.IntN(len(s.before))]
	}
	done.Go(func() {
		time.Sleep(after)
		switch p := s.process(n); {
		case p == nil:
		case kind == 0:
			s.kill(n)
			s.start(n)
		case kind == 1:
			p.pause()
			time.Sleep(d)
			p.resume()
		default:
			links := append(between([]*node{n}, s.nodesNow()), between(s.nodesNow(), []*node{n})...)
			s.net.set([]cut{silent, rejected}[kind-2], links...)
			time.Sleep(d)
			s.net.heal()
		}
	})
	return fmt.Sprintf(", while node %d was %s", n.ID, [...]string{"killed", "paused", "cut off", "rejected"}[kind])
}

// nodesNow are all nodes that ever were.
func (r *storm) nodesNow() []*node {
	r.mu().Lock()
	defer r.mu().Unlock()
	return slices.Clone(r.nodes)
}

// hit kills nodes at one moment, and starts each again soon or later.
func (s *strike) hit(nodes ...*node) {
	s.killTogether(nodes, 0)
	for _, n := range nodes {
		pause := upTo(s.rng, 30*time.Millisecond)
		if s.rng.IntN(3) == 0 {
			pause = upTo(s.rng, 1500*time.Millisecond)
		}
		s.hits.Go(func() {
			time.Sleep(pause)
			s.restart(n)
		})
	}
}

// killTogether kills nodes, each within a time.
func (s *strike) killTogether(nodes []*node, within time.Duration) {
	var all sync.WaitGroup
	for _, n := range nodes {
		late := time.Duration(0)
		if within > 0 {
			late = upTo(s.rng, within)
		}
		all.Go(func() { time.Sleep(late); s.kill(n) })
	}
	all.Wait()
}

// restart starts a node; one that has left the group may refuse.
func (s *strike) restart(n *node) {
	if !slices.Contains(s.leave, n) {
		s.start(n)
		return
	}
	if p, err := startProcess(&n.setup, n.log); err == nil {
		s.mu().Lock()
		n.proc = p
		s.mu().Unlock()
	} else if !strings.Contains(err.Error(), "removed") {
		s.failf("node %d, which was removed, does not start: %v", n.ID, err)
	}
}

func (s *strike) hitLeader() bool {
	s.hit(s.lead)
	return true
}

func (s *strike) hitTwo() bool {
	voters := s.shuffled(s.before)
	s.hit(voters[:2]...)
	return true
}

func (s *strike) shuffled(nodes []*node) []*node {
	nodes = slices.Clone(nodes)
	s.rng.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes
}

// running are the nodes whose processes run.
func (s *strike) running() []*node {
	return slices.DeleteFunc(s.members(), func(n *node) bool { return s.process(n) == nil })
}

// hitAll kills all at one moment, or within a second.
func (s *strike) hitAll() bool {
	all := s.shuffled(s.running())
	if s.rng.IntN(2) == 0 {
		s.killTogether(all, time.Second)
	}
	s.hit(all...)
	return true
}

// restartFew kills all and starts only a majority of those that vote now: it must find a leader.
func (s *strike) restartFew() bool {
	few := s.shuffled(s.after)
	few = few[:len(few)/2+1]
	s.killTogether(s.running(), 0)
	var all sync.WaitGroup
	for _, n := range few {
		late := upTo(s.rng, 300*time.Millisecond)
		all.Go(func() { time.Sleep(late); s.start(n) })
	}
	all.Wait()
	began := time.Now()
	if !s.eventually(func() bool { return s.writable(nil) != nil }) {
		s.failf("of the voters %v, %v were started after all had been killed, and find no leader: %s", ids(s.after), ids(few), s.standing())
	}
	s.elections = append(s.elections, time.Since(began))
	return true
}

// pauseSome stops processes for a while, the leader's among them most of the time.
func (s *strike) pauseSome() bool {
	for _, n := range s.running() {
		if n == s.lead && s.rng.IntN(4) > 0 || s.rng.IntN(4) == 0 {
			p, d := s.process(n), 200*time.Millisecond+upTo(s.rng, 2500*time.Millisecond)
			p.pause()
			s.hits.Go(func() { time.Sleep(d); p.resume() })
		}
	}
	return true
}

// cut cuts two sides from each other, in one of the ways that there are.
func (s *strike) cut(one, other []*node) {
	there, back := between(one, other), between(other, one)
	switch s.rng.IntN(5) {
	case 0:
		s.net.set(silent, there...)
	case 1:
		s.net.set(silent, back...)
	case 2, 3:
		s.net.set(silent, append(there, back...)...)
	default:
		s.net.set(rejected, there...)
	}
}

func (s *strike) cutLeader() bool {
	s.cut([]*node{s.lead}, s.nodesNow())
	return true
}

func (s *strike) cutInTwo() bool {
	all := s.shuffled(s.members())
	at := 1 + s.rng.IntN(len(all)-1)
	s.cut(all[:at], all[at:])
	return true
}

// split kills members of a majority of those that voted before, whose memory is the oldest, and
// cuts them off from a majority of those that vote now, with the leader. false: any two of these
// majorities share a member.
func (s *strike) split() bool {
	old := slices.DeleteFunc(s.shuffled(s.before), func(n *node) bool { return n == s.lead })
	left := func(n *node) int {
		if slices.Contains(s.leave, n) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(old, func(a, b *node) int { return left(a) - left(b) })
	need := len(s.before)/2 + 1
	if len(old) < need {
		return false
	}
	old = old[:need]
	rest := slices.DeleteFunc(slices.Clone(s.after), func(n *node) bool { return slices.Contains(old, n) })
	if len(rest) < len(s.after)/2+1 {
		return false
	}
	others := slices.DeleteFunc(s.nodesNow(), func(n *node) bool { return slices.Contains(old, n) })
	how := []cut{silent, rejected}[s.rng.IntN(2)]
	s.net.set(how, append(between(old, others), between(others, old)...)...)
	s.hit(old...)
	return true
}

// mend lets the harm last for a while and ends it. A member that has left is stopped now, or
// runs on until the next strike is over.
func (s *strike) mend() {
	s.hits.Wait()
	time.Sleep(upTo(s.rng, 2*time.Second))
	s.net.heal()
	linger := s.rng.IntN(3) == 0
	for _, n := range s.storm.removed {
		s.kill(n)
	}
	s.storm.removed = nil
	for _, n := range s.leave {
		s.mu().Lock()
		n.gone = true
		s.mu().Unlock()
		if linger {
			s.storm.removed = append(s.storm.removed, n)
		} else {
			s.kill(n)
		}
	}
	var all sync.WaitGroup
	for _, n := range s.members() {
		all.Go(func() { s.start(n) })
	}
	all.Wait()
	// Who was promoted or added without an answer is a member all the same; nobody else is.
	members := s.members()
	for _, m := range s.view().Members {
		if !slices.Contains(members, s.nodes[m.ID-1]) {
			s.failf("node %d has left and is a member again: %s", m.ID, s.standing())
		}
	}
}

package simgroup

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/group"
)

// striker waits for the answer to something, and does harm at the worst moment: within
// milliseconds, and where the members that know of it are few.
func (w *world) striker(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	for !w.stop {
		env.Sleep(w.sim, time.Duration(rng.IntN(800))*time.Millisecond)
		s := &strike{w: w, rng: rng}
		if w.stop || !s.begin() {
			continue
		}
		if rng.IntN(3) > 0 {
			env.Sleep(w.sim, time.Duration(rng.IntN(50))*time.Millisecond)
		}
		s.hit()
		s.mend()
	}
}

// strike is one thing that was waited for, and the harm that follows.
type strike struct {
	w    *world
	rng  *rand.Rand
	lead *node // that answered
	// Who voted before and who votes after it, as the leader that answered knows.
	before, after []uint64
	leave         []uint64 // to be stopped when all is over
}

// begin lets something happen and returns when it is answered; false: it was not.
func (s *strike) begin() bool {
	if s.lead = s.w.leader(); s.lead == nil {
		return false
	}
	s.before = s.voters()
	things := []func() bool{s.transfer, s.rotation, s.definition, s.commit}
	if !s.w.opt.Fixed {
		things = append(things, s.publication)
		if s.w.plan == nil {
			things = append(things, s.replace, s.replace, s.promote, s.promote, s.remove, s.replace)
		} else {
			things = append(things, s.join, s.join, s.remove)
		}
	}
	ok := things[s.rng.IntN(len(things))]()
	if ok {
		s.after = s.voters()
	}
	return ok && len(s.after) > 0
}

// voters are who votes, as the leader knows.
func (s *strike) voters() (ids []uint64) {
	if s.lead.node == nil {
		return nil
	}
	for _, m := range s.lead.node.Members() {
		if !m.Learner {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// do runs fn in the leader's process and reports whether it went well there.
func (s *strike) do(fn func(g *group.Node) error) (ok bool) {
	n := s.lead
	n.env.Run(func() { ok = n.node != nil && fn(n.node) == nil })
	return ok
}

func (s *strike) transfer() bool {
	return s.do(func(g *group.Node) error { return g.Transfer(0) })
}

// until waits for a condition, looking often.
func (s *strike) until(limit time.Duration, cond func() bool) bool {
	for end := s.w.sim.Monotonic() + limit; s.w.sim.Monotonic() < end && !s.w.stop; {
		if cond() {
			return true
		}
		env.Sleep(s.w.sim, 2*time.Millisecond)
	}
	return false
}

func (s *strike) rotation() bool {
	file := func() (number uint64) {
		if s.lead.node != nil && s.lead.node.Log() != nil {
			number, _ = s.lead.node.Log().Newest()
		}
		return number
	}
	was := file()
	return s.until(2*time.Second, func() bool { return file() > was })
}

func (s *strike) definition() bool { return s.w.define(s.lead, s.rng) }

func (s *strike) commit() bool {
	was := s.w.history.acked
	return s.until(time.Second, func() bool { return s.w.history.acked > was })
}

// publication waits until a node puts the data in place that it was given: one that lags, or a
// new one.
func (s *strike) publication() bool {
	receives := func(n *node) bool {
		if n.node == nil {
			return false
		}
		_, receives := n.node.Progress()
		return receives
	}
	at := slices.IndexFunc(s.w.made, receives)
	if at < 0 {
		s.newcomer()
	}
	if !s.until(3*time.Second, func() bool {
		at = slices.IndexFunc(s.w.made, receives)
		return at >= 0
	}) {
		return false
	}
	n := s.w.made[at]
	if !s.until(5*time.Second, func() bool { return !receives(n) }) {
		return false
	}
	if s.rng.IntN(2) == 0 {
		s.hitNode(n, haltKind(1+s.rng.IntN(2)))
	}
	return true
}

// newcomer starts a machine that is to become a member.
func (s *strike) newcomer() {
	w := s.w
	if len(w.made) >= 3*w.opt.Nodes {
		return
	}
	n := w.newNode()
	if w.plan != nil {
		n.id = 0
		w.sim.Go("start", n.restart)
		return
	}
	n.join, n.gone = true, true
	if s.do(func(g *group.Node) error { return g.Add(group.Member{ID: n.id, Addr: n.addr}) }) {
		n.gone = false
		w.sim.Go("start", n.restart)
	}
}

// learner adds a member that has caught up and does not vote; nil: it did not work.
func (s *strike) learner() *node {
	w := s.w
	if len(w.made) >= 4*w.opt.Nodes {
		return nil
	}
	n := w.newNode()
	n.join, n.gone = true, true
	if !s.do(func(g *group.Node) error { return g.Add(group.Member{ID: n.id, Addr: n.addr, Stays: true}) }) {
		return nil
	}
	n.gone = false
	n.restart()
	if !s.until(6*time.Second, func() bool {
		if n.node == nil || s.lead.node == nil {
			return false
		}
		mine := n.node.Status()
		return mine.Applied > 0 && mine.Applied+20 >= s.lead.node.Status().Applied
	}) {
		return nil
	}
	return n
}

// other draws a voter that does not lead; 0: there is none.
func (s *strike) other() uint64 {
	others := slices.DeleteFunc(slices.Clone(s.before), func(id uint64) bool { return id == s.lead.id })
	if len(others) == 0 {
		return 0
	}
	return others[s.rng.IntN(len(others))]
}

func (s *strike) replace() bool {
	n, old := s.learner(), s.other()
	if n == nil || old == 0 || !s.do(func(g *group.Node) error { return g.Replace(old, n.id) }) {
		return false
	}
	s.leave = append(s.leave, old)
	return true
}

// promote lets two members vote: a majority of five then shares nobody with one of three before.
func (s *strike) promote() bool {
	if len(s.before) > 5 {
		return false
	}
	a, b := s.learner(), s.learner()
	if a == nil || b == nil {
		return false
	}
	return s.do(func(g *group.Node) error { return g.Promote(a.id) }) &&
		s.do(func(g *group.Node) error { return g.Promote(b.id) })
}

// remove removes two members, or one.
func (s *strike) remove() bool {
	before := s.before
	defer func() { s.before = before }()
	for range 1 + s.rng.IntN(2) {
		if len(s.before) <= 3 {
			break
		}
		old := s.other()
		if old == 0 || !s.do(func(g *group.Node) error { return g.Remove(old) }) {
			return false
		}
		s.leave = append(s.leave, old)
		s.before = slices.DeleteFunc(slices.Clone(s.before), func(id uint64) bool { return id == old })
	}
	return len(s.leave) > 0
}

// join starts a machine that looks for the group by itself, and waits until it votes.
func (s *strike) join() bool {
	w := s.w
	if len(w.made) >= 3*w.opt.Nodes {
		return false
	}
	n := w.newNode()
	n.id = 0
	n.restart()
	return s.until(8*time.Second, func() bool { return n.id != 0 && slices.Contains(s.voters(), n.id) })
}

// hit does the harm.
func (s *strike) hit() {
	w, rng := s.w, s.rng
	switch kind := rng.IntN(10); {
	case kind < 4 && s.split():
	case kind < 5:
		s.hitNode(s.lead, haltKind(1+rng.IntN(2)))
	case kind < 6:
		for _, n := range w.up() {
			s.hitNode(n, haltKind(1+rng.IntN(2)))
		}
	case kind < 7:
		s.restartFew()
	case kind < 8:
		w.pause(s.lead, w.drawPause(rng), time.Duration(200+rng.IntN(2500))*time.Millisecond)
		if rng.IntN(2) == 0 {
			w.harmPause(rng)
		}
	case kind < 9:
		w.harmSwizzle(rng)
	default:
		for _, n := range w.made {
			if n != s.lead {
				w.net.CutBoth(s.lead.addr, n.addr)
			}
		}
	}
}

// hitNode ends a node's process and starts it again, soon or later.
func (s *strike) hitNode(n *node, how haltKind) {
	pause := time.Duration(s.rng.IntN(30)) * time.Millisecond
	if s.rng.IntN(3) == 0 {
		pause = time.Duration(s.rng.IntN(1500)) * time.Millisecond
	}
	s.w.harm("hit", func() {
		n.halt(how)
		env.Sleep(s.w.sim, pause)
		n.restart()
	})
}

// split ends members of a majority of those that voted before, whose memory is the oldest, and
// cuts it off from a majority of those that vote now, with the leader. false: any two majorities share a member.
func (s *strike) split() bool {
	old := slices.DeleteFunc(slices.Clone(s.before), func(id uint64) bool { return id == s.lead.id })
	s.rng.Shuffle(len(old), func(i, j int) { old[i], old[j] = old[j], old[i] })
	slices.SortStableFunc(old, func(a, b uint64) int { // who has left comes first
		return b2i(slices.Contains(s.after, a)) - b2i(slices.Contains(s.after, b))
	})
	need := len(s.before)/2 + 1
	if len(old) < need {
		return false
	}
	old = old[:need]
	rest := slices.DeleteFunc(slices.Clone(s.after), func(id uint64) bool { return slices.Contains(old, id) })
	if len(rest) < len(s.after)/2+1 {
		return false
	}
	for _, n := range s.w.made {
		if !slices.Contains(old, n.id) {
			continue
		}
		s.w.harm("hit", func() {
			n.halt(haltKill)
			n.restart()
		})
		for _, other := range s.w.made {
			if !slices.Contains(old, other.id) {
				s.w.net.CutBoth(n.addr, other.addr)
			}
		}
	}
	return true
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// restartFew ends everybody and starts again only a majority of those that vote now: they must
// find a leader.
func (s *strike) restartFew() {
	few := slices.Clone(s.after)
	s.rng.Shuffle(len(few), func(i, j int) { few[i], few[j] = few[j], few[i] })
	few = few[:len(few)/2+1]
	tasks := env.NewGroup(s.w.sim)
	for _, n := range s.w.up() {
		how := haltKind(1 + s.rng.IntN(2))
		tasks.Go("hit", func() { n.halt(how) })
	}
	tasks.Wait()
	for _, n := range s.w.made {
		if slices.Contains(few, n.id) {
			tasks.Go("start", n.restart)
		}
	}
	tasks.Wait()
	// Who was down already, struck before, may come back by itself and lead.
	leads := func() bool { return s.w.leader() != nil }
	if s.w.calm && !s.w.within(15*time.Second, leads) && s.w.problem == "" {
		s.w.failf("of the voters %v, %v were started after all had been ended, and find no leader: %s", s.after, few,
			s.w.standing())
	}
}

// mend lets the harm last for a while and ends it. In a calm life nobody else does harm, and the
// group is to go on.
func (s *strike) mend() {
	w := s.w
	env.Sleep(w.sim, time.Duration(500+s.rng.IntN(2500))*time.Millisecond)
	w.net.HealAll()
	for _, n := range w.made {
		n.restart()
	}
	for _, id := range s.leave {
		w.bury(id)
	}
	if w.calm && !w.within(30*time.Second, func() bool { return w.leader() != nil || w.problem != "" }) {
		w.failf("nobody leads after a strike: %s", w.standing())
	}
}

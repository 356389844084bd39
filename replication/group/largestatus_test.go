package group_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/txn"
	"github.com/triremedb/trireme/engine/types"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// olderProgram is the transport of a member that asks one whose program does not know a question.
type olderProgram struct {
	transport.Transport
	older *uint64
}

func (t olderProgram) Ask(ctx context.Context, c transport.Call) ([]byte, error) {
	if c.To == *t.older && c.Kind == "group/large" {
		return nil, &transport.Failure{Text: `group: unknown question "group/large"`}
	}
	return t.Transport.Ask(ctx, c)
}

// largeIn describes what a node says of its only large transaction: states by member.
func largeIn(n *simNode) string {
	list := n.node.LargeTransactions()
	if len(list) != 1 {
		return fmt.Sprintf("%d transactions", len(list))
	}
	var states []string
	for _, m := range list[0].Members {
		states = append(states, fmt.Sprintf("%d %s", m.Member, m.State))
	}
	return strings.Join(states, ", ")
}

// states are those of a leader and of others, as largeIn has them.
func (r *simRig) states(of map[*simNode]group.LargeState) string {
	var states []string
	for _, n := range r.nodes {
		if s, ok := of[n]; ok {
			states = append(states, fmt.Sprintf("%d %s", n.id, s))
		}
	}
	return strings.Join(states, ", ")
}

// A running large transaction is seen from every member, with what each of them has of it, also
// while one is silent, has a program that does not know the question, or refuses the body.
func TestLargeTransactions(t *testing.T) {
	older, shut := uint64(0), uint64(0)
	options := func(o *group.Options) {
		o.LargeThreshold = 200
		open := o.Transport
		o.Transport = func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
			tr, err := open(id, h)
			return olderProgram{noBodies{tr, o.ID, &shut}, &older}, err
		}
	}
	simulate(t, 11, 3, simnettest.Options{}, options, func(r *simRig) {
		l := r.leader(nil)
		createFruit(t, l.node)
		first, second := r.others(l)[0], r.others(l)[1]
		if got := largeIn(first); got != "0 transactions" {
			t.Errorf("nothing runs: %s", got)
		}
		s, err := l.node.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		if err := s.Begin(txn.BeginOptions{Client: 77}); err != nil {
			t.Fatal(err)
		}
		insertFruits(t, s, 0, 5000)
		want := r.states(map[*simNode]group.LargeState{l: group.LargeGrowing, first: group.LargeGrowing, second: group.LargeGrowing})
		for _, n := range r.nodes {
			if !r.within(10*time.Second, func() bool { return largeIn(n) == want && aheadOf(n, first) > 1000 && aheadOf(n, second) > 1000 }) {
				t.Errorf("by member %d: %s; %+v", n.id, largeIn(n), n.node.LargeTransactions())
			}
		}
		env.Sleep(r.sim, 5*time.Second)
		one := second.node.LargeTransactions()[0]
		here, there := memberOf(&one, l), memberOf(&one, first)
		if one.ID.Member != l.id || one.Session != 77 || one.Age < 5*time.Second || one.Age > time.Minute || here.Events == 0 || here.Whole ||
			there.Events != here.Events || there.Plain != here.Plain || there.Stored != here.Stored || there.AheadBytes != here.Plain ||
			there.Waits != "more frames" || here.AheadRows != 0 || here.Waits != "" {
			t.Errorf("%+v", one)
		}
		older = first.id
		if got, want := largeIn(l), r.states(map[*simNode]group.LargeState{l: group.LargeGrowing, second: group.LargeGrowing}); got != want {
			t.Errorf("of an older program: %s, not %s", got, want)
		}
		older = 0

		// One that is silent keeps nobody waiting for longer than it is asked.
		r.cut(first, l, second)
		for _, n := range []*simNode{l, second} {
			before := r.sim.Monotonic()
			got, want := largeIn(n), r.states(map[*simNode]group.LargeState{l: group.LargeGrowing, first: group.LargeUnreachable, second: group.LargeGrowing})
			if took := r.sim.Monotonic() - before; got != want || took > 1100*time.Millisecond {
				t.Errorf("by member %d, after %v: %s, not %s", n.id, took, got, want)
			}
		}
		r.net.HealBoth(first.addr, l.addr)
		r.net.HealBoth(first.addr, second.addr)

		if _, err := s.Commit(context.Background()); err != nil {
			t.Error(err)
		}
		env.Sleep(r.sim, 15*time.Second) // streams end

		// One that gets no bodies: its log waits for what the others have committed.
		shut = second.id
		if err := s.Begin(txn.BeginOptions{}); err != nil {
			t.Fatal(err)
		}
		insertFruits(t, s, 5000, 2000)
		want = r.states(map[*simNode]group.LargeState{l: group.LargeGrowing, first: group.LargeGrowing, second: group.LargeAbsent})
		if !r.within(10*time.Second, func() bool { return largeIn(second) == want }) {
			t.Errorf("a member gets no bodies: %s, not %s", largeIn(second), want)
		}
		if _, err := s.Commit(context.Background()); err != nil {
			t.Error(err)
		}
		want = r.states(map[*simNode]group.LargeState{l: group.LargeLogged, first: group.LargeLogged, second: group.LargeFetching})
		if !r.within(10*time.Second, func() bool { return largeIn(l) == want }) {
			t.Errorf("a member lacks the body of an entry: %s, not %s", largeIn(l), want)
		}
		shut = 0
		for _, n := range r.nodes {
			if !r.within(time.Minute, func() bool { return largeIn(n) == "0 transactions" }) {
				t.Errorf("by member %d all is over: %s", n.id, largeIn(n))
			}
		}
	})
}

// A COMMIT that no majority has heard of yet is told of, and so is the oldest age.
func TestLargeTransactionWaits(t *testing.T) {
	options := func(o *group.Options) { o.LargeThreshold, o.ElectionTicks = 200, 600 }
	simulate(t, 12, 3, simnettest.Options{}, options, func(r *simRig) {
		l := r.leader(nil)
		createFruit(t, l.node)
		s, err := l.node.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		if err := s.Begin(txn.BeginOptions{}); err != nil {
			t.Fatal(err)
		}
		insertFruits(t, s, 0, 2000)
		env.Sleep(r.sim, 3*time.Second)
		if st, err := l.node.Stats(); err != nil || st.Bodies.Oldest < 3*time.Second || st.Bodies.Oldest > 10*time.Second {
			t.Errorf("the oldest is %v old (%v)", st.Bodies.Oldest, err)
		}
		if st, err := r.others(l)[0].node.Stats(); err != nil || st.Bodies.Oldest != 0 {
			t.Errorf("elsewhere the oldest is %v old (%v)", st.Bodies.Oldest, err)
		}
		for _, n := range r.others(l) {
			r.cut(n, l)
		}
		insertFruits(t, s, 2000, 2000)
		committing := env.NewGroup(r.sim)
		committing.Go("commit", func() { _, err = s.Commit(context.Background()) })
		if !r.within(5*time.Second, func() bool {
			list := l.node.LargeTransactions()
			return len(list) == 1 && memberOf(&list[0], l).State == group.LargeComplete && memberOf(&list[0], l).Whole
		}) {
			t.Errorf("a COMMIT waits: %+v", l.node.LargeTransactions())
		}
		for _, n := range r.others(l) {
			r.net.HealBoth(n.addr, l.addr)
		}
		committing.Wait()
		if err != nil {
			t.Error(err)
		}
	})
}

// insertFruits adds rows to a transaction, of some 200 bytes each.
func insertFruits(t *testing.T, s *txn.Session, from, n int) {
	t.Helper()
	o, err := s.Open("shop", "fruit")
	for i := from; i < from+n && err == nil; i++ {
		err = s.Insert(o, []types.Value{types.NewInt(int64(i)), types.NewString(strings.Repeat(fmt.Sprintf("%010d", i), 20))}, false)
	}
	if err != nil {
		t.Error(err)
	}
}

func memberOf(t *group.LargeTransaction, n *simNode) group.LargeMember {
	for _, m := range t.Members {
		if m.Member == n.id {
			return m
		}
	}
	return group.LargeMember{}
}

// aheadOf is how many rows of the only large transaction a member has applied ahead, as a node says.
func aheadOf(n, member *simNode) uint64 {
	list := n.node.LargeTransactions()
	if len(list) != 1 {
		return 0
	}
	return memberOf(&list[0], member).AheadRows
}

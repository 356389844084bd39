package group_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// of is how a member stands, as a node tells it.
func (n *simNode) of(member *simNode) group.Status {
	for _, s := range n.node.GroupStatus() {
		if s.ID == member.id {
			return s
		}
	}
	return group.Status{}
}

// How far a member is behind that does not answer is told by what its leader knows, whomever one
// asks; where no leader knows, nobody pretends.
func TestBehind(t *testing.T) {
	simulate(t, 5, 5, simnettest.Options{}, nil, func(r *simRig) {
		l := r.leader(nil)
		rest := r.others(l)
		silent, other := rest[0], rest[1]
		write := func(from *simNode, count int, name string) {
			for i := range count {
				from.write(from.node, fmt.Sprintf("%s%d", name, i))
			}
		}
		write(l, 10, "a")
		env.Sleep(r.sim, 3*time.Second)
		for _, n := range []*simNode{l, other} {
			for _, m := range r.nodes {
				if s := n.of(m); s.Error != "" || s.Lag != (group.Lag{}) || s.SeenLag != 0 || s.Behind != nil {
					t.Errorf("member %d of an idle group, by member %d: %+v", m.id, n.id, s)
				}
			}
		}
		r.cut(silent, r.others(silent)...)
		// While nothing is written it has everything, as far as anybody knows.
		env.Sleep(r.sim, 20*time.Second)
		if s := l.of(silent); s.Error == "" || s.Lag != (group.Lag{}) || s.SeenLag != 0 {
			t.Errorf("a silent member of an idle group: %+v", s)
		}
		if s := silent.of(l); s.Lag != (group.Lag{Time: -1, Entries: -1, Bytes: -1}) || s.SeenLag != -1 {
			t.Errorf("the others, by a member that is cut off: %+v", s)
		}
		write(l, 30, "b")
		env.Sleep(r.sim, 10*time.Second)
		for _, n := range []*simNode{l, other} {
			s := n.of(silent)
			if s.Error == "" || s.Lag.Entries < 30 || s.Lag.Bytes <= 0 || s.Lag.Time < 10*time.Second || s.Lag.Time > 13*time.Second || s.SeenLag != s.Lag.Time {
				t.Errorf("a silent member, 10 s after what it lacks, by member %d: %+v", n.id, s)
			}
			if s := n.of(other); s.SeenLag != 0 || s.Lag.Entries != 0 {
				t.Errorf("a member that is heard, by member %d: %+v", n.id, s)
			}
		}
		before := l.of(silent)
		env.Sleep(r.sim, 30*time.Second)
		if s := l.of(silent); s.Lag.Time < before.Lag.Time+29*time.Second || s.Lag.Entries < before.Lag.Entries {
			t.Errorf("30 s later it is %+v, after %+v", s, before)
		}
		// Another leader has not heard from it.
		l.kill()
		now := r.leader(l)
		env.Sleep(r.sim, 10*time.Second)
		if s := now.of(silent); s.Lag != (group.Lag{Time: -1, Entries: -1, Bytes: -1}) || s.SeenLag < 5*time.Second || s.SeenLag > 15*time.Second {
			t.Errorf("a silent member, by a leader that has not heard it: %+v", s)
		}
		for _, n := range r.others(silent) {
			r.net.HealBoth(silent.addr, n.addr)
		}
		if !r.within(30*time.Second, func() bool { s := now.of(silent); return s.Lag == group.Lag{} && s.SeenLag == 0 }) {
			t.Errorf("it is back: %+v", now.of(silent))
		}
	})
}

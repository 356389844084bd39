package group_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport/simnettest"
)

// TestMove: a member that comes back at another address is refused, says so and what to do, and is a
// member there once an operator has told the group. Of two processes with copies of its directory one is
// a member at any time, and the group is told so of the other.
func TestMove(t *testing.T) {
	r := closedRig(t, 5)
	r.bootstrap(false, 0, 1, 2)
	l := r.leader()
	createFruit(t, r.nodes[l])
	row := 0
	insert := func() {
		t.Helper()
		var last uint64
		for range 20 {
			last = insertFruit(t, r.nodes[r.leader()], row)
			row++
		}
		for until := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if s := r.nodes[3]; s == nil || s.Status().Number >= last || time.Now().After(until) {
				break
			}
		}
	}
	insert()
	f := (l + 1) % 3
	id := r.nodes[f].ID()
	move := func(to string) error { return r.nodes[r.leader()].Move(context.Background(), id, to) }
	refused := func(err error, why string) {
		t.Helper()
		if !errors.Is(err, group.ErrNotMoved) || !strings.Contains(err.Error(), why) {
			t.Errorf("a move that nothing is known of but %q: %v", why, err)
		}
	}
	says := func(i int, what string) {
		t.Helper()
		for until := time.Now().Add(30 * time.Second); !strings.Contains(r.nodes[i].Status().Error, what); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("the member that is refused does not say %q: %+v", what, r.nodes[i].Status())
			}
		}
	}

	r.stop(f)
	for _, to := range []int{3, 4} {
		if err := os.CopyFS(r.dirs[to], os.DirFS(r.dirs[f])); err != nil {
			t.Fatal(err)
		}
	}
	r.bootstrap(false, f)
	insert()
	r.bootstrap(false, 3)
	says(3, "empty the directory")
	refused(move(r.addrs[3]), "runs at "+r.addrs[f])
	r.stop(f)
	r.stop(3) // its copy is older than what the member has acknowledged since
	r.dirs[3] = r.dirs[f]
	r.bootstrap(false, 3)
	refused(move(r.addrs[4]), "nobody answers at "+r.addrs[4])
	refused(move(r.addrs[(l+2)%3]), "is not member")
	says(3, "trireme admin members add")
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := move(r.addrs[3])
		if err == nil {
			break
		}
		if refused(err, "was heard from "+r.addrs[f]+" a moment ago"); time.Now().After(until) {
			t.Fatal(err)
		}
	}
	insert()
	for _, i := range []int{r.leader(), 3} {
		s, at := r.nodes[i].Status(), ""
		for _, m := range r.nodes[i].Members() {
			if m.ID == id && !m.Learner {
				at = m.Addr
			}
		}
		if at != r.addrs[3] || s.Error != "" || s.Leader == 0 {
			t.Errorf("node %d knows the member at %q: %+v", i, at, s)
		}
	}

	r.dirs[f] = r.dirs[4]
	r.bootstrap(false, f)
	says(f, "member")
	refused(move(r.addrs[f]), "runs at "+r.addrs[3])
	insert()
	if s := r.nodes[3].Status(); s.Error != "" || s.Leader == 0 {
		t.Errorf("the member that has moved: %+v", s)
	}
}

// A change that was made of what a member was does not undo what another one has made of it meanwhile.
func TestMoveBesidePromotion(t *testing.T) {
	simulate(t, 1, 3, simnettest.Options{}, nil, func(r *simRig) {
		l := r.leader(nil)
		var was group.Member
		for _, m := range l.node.Members() {
			if m.ID != l.id {
				was = m
			}
		}
		stale := was
		stale.Learner = true // as it was looked up
		if err := l.node.MoveAs(stale, "elsewhere"); err == nil || !strings.Contains(err.Error(), "has changed member") {
			t.Errorf("a member of which another thing is known is moved: %v", err)
		}
		for _, m := range l.node.Members() {
			if m.ID == was.ID && m != was {
				t.Errorf("%+v was %+v", m, was)
			}
		}
	})
}

package group_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/engine/storage"
	"github.com/triremedb/trireme/engine/storage/file"
	"github.com/triremedb/trireme/replication/discovery"
	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
)

// options are those of a node that finds out by itself who it is.
func (r *rig) bootstrapped(i int, replica bool) group.Options {
	addr := r.addrs[i]
	static, err := discovery.NewStatic("fleet", r.addrs[:3])
	if err != nil {
		r.t.Fatal(err)
	}
	return group.Options{Env: env.Real(), FS: file.OS(r.dirs[i]),
		Bootstrap: &group.Bootstrap{Discovery: static, Name: "fleet", Addr: addr, Replica: replica},
		Storage:   storage.Options{BufferPoolSize: 32 << 20},
		Transport: func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
			return transport.New(transport.Options{Listen: addr, Identity: id, AllowPlaintext: true, LogFormat: group.LogFormat}, h)
		}}
}

func (r *rig) bootstrap(replica bool, which ...int) {
	r.t.Helper()
	errs := make([]error, len(r.nodes))
	var all sync.WaitGroup
	for _, i := range which {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			r.nodes[i], errs[i] = group.OpenContext(ctx, r.bootstrapped(i, replica))
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		r.t.Fatal(err)
	}
}

// wipe stops a node and empties its directory.
func (r *rig) wipe(i int) {
	r.stop(i)
	if err := os.RemoveAll(r.dirs[i]); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Mkdir(r.dirs[i], 0o755); err != nil {
		r.t.Fatal(err)
	}
}

// awaitMembers waits until the group has these voters and learners, by address.
func (r *rig) awaitMembers(voters, learners []string, without uint64) {
	r.t.Helper()
	slices.Sort(voters)
	var v, l []string
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		v, l = nil, nil
		gone := true
		for _, m := range r.nodes[r.leader()].Members() {
			gone = gone && m.ID != without
			if m.Learner {
				l = append(l, m.Addr)
			} else {
				v = append(v, m.Addr)
			}
		}
		slices.Sort(v)
		if gone && slices.Equal(v, voters) && slices.Equal(l, learners) {
			return
		}
	}
	r.t.Fatalf("voters %v, learners %v; wanted %v and %v, and not member %d", v, l, voters, learners, without)
}

// Nodes that are started alike found one group; whoever lost its directory comes back
// as another member in the place of the old one, be it the leader; all can stop and
// start; a replica joins and does not vote.
func TestBootstrap(t *testing.T) {
	r := closedRig(t, 4)
	r.bootstrap(false, 0, 1, 2)
	createFruit(t, r.nodes[r.leader()])
	id := r.nodes[0].Group()
	var last uint64
	row := 0
	insert := func() {
		t.Helper()
		for range 20 {
			last = insertFruit(t, r.nodes[r.leader()], row)
			row++
		}
		r.equal(last)
	}
	insert()

	for range 2 { // a follower, then the leader
		gone := r.leader()
		if row == 20 {
			gone = (gone + 1) % 3
		}
		was := r.nodes[gone].ID()
		r.wipe(gone)
		r.bootstrap(false, gone)
		if n := r.nodes[gone]; n.ID() == was || n.Group() != id {
			t.Fatalf("the node that lost its directory is member %d of %x again", n.ID(), n.Group())
		}
		r.awaitMembers(slices.Clone(r.addrs[:3]), nil, was)
		insert()
	}

	for i := range 3 {
		r.stop(i)
	}
	r.bootstrap(false, 2, 0, 1)
	insert()

	r.bootstrap(true, 3)
	r.awaitMembers(slices.Clone(r.addrs[:3]), r.addrs[3:], 0)
	for until := time.Now().Add(30 * time.Second); r.nodes[3].Status().Provisioning && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	insert()
}

// A founder that waits for others can be told to stop.
func TestBootstrapWaits(t *testing.T) {
	r := closedRig(t, 3)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := group.OpenContext(ctx, r.bootstrapped(0, false)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	o := r.bootstrapped(0, false)
	o.ID = 1
	if _, err := group.Open(o); err == nil || !strings.Contains(err.Error(), "finds out by itself") {
		t.Errorf("%v", err)
	}
}

// A node that was removed before it had its data ends: nobody else would tell it.
func TestRemovedWithoutData(t *testing.T) {
	r := closedRig(t, 4)
	r.bootstrap(false, 0, 1, 2)
	o := r.bootstrapped(3, false)
	listen, done := o.Transport, make(chan struct{}, 1)
	o.Transport = func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
		inner, err := listen(id, h)
		return &noBulk{inner, done}, err
	}
	n, err := group.OpenContext(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.nodes[3] = n
	<-done
	for err := group.ErrBusy; err != nil; { // the change that let it in ends when the others have heard of it
		if err = r.nodes[r.leader()].Remove(n.ID()); err != nil && !errors.Is(err, group.ErrBusy) {
			t.Fatal(err)
		}
	}
	for until := time.Now().Add(time.Minute); n.Err() == nil && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	if err := n.Err(); !errors.Is(err, group.ErrRemoved) {
		t.Errorf("a node that was removed before it had its data: %v; %+v", err, n.Status())
	}
}

// A node joins although others that do not lead answer first: they know no leader, or one that is gone. All nodes of a group
// that was restored and has just been started say so, while only one of them is a member.
func TestJoinsBesideOthers(t *testing.T) {
	r := closedRig(t, 3)
	r.bootstrap(false, 0, 1, 2)
	for until := time.Now().Add(time.Minute); r.leader() != 2; {
		if err := r.nodes[r.leader()].Transfer(r.nodes[2].ID()); err != nil && time.Now().After(until) {
			t.Fatal(err)
		}
	}
	for _, said := range []string{"", "127.0.0.1:1"} {
		was := r.nodes[0].ID()
		r.wipe(0)
		o := r.bootstrapped(0, false)
		listen := o.Transport
		o.Transport = func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
			inner, err := listen(id, h)
			return &elsewhere{inner, r.addrs[2], said}, err
		}
		var err error
		if r.nodes[0], err = group.OpenContext(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		r.awaitMembers(slices.Clone(r.addrs), nil, was)
	}
}

// A node joins a group whose members are so far away that an answer takes longer than a second.
func TestJoinsFromAfar(t *testing.T) {
	t.Parallel()
	r := closedRig(t, 3)
	r.bootstrap(false, 0, 1, 2)
	r.leader()
	was := r.nodes[0].ID()
	r.wipe(0)
	o := r.bootstrapped(0, false)
	listen := o.Transport
	o.Transport = func(id transport.Identity, h transport.Handler) (transport.Transport, error) {
		inner, err := listen(id, h)
		return &afar{inner}, err
	}
	var err error
	if r.nodes[0], err = group.OpenContext(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	r.awaitMembers(slices.Clone(r.addrs), nil, was)
}

// afar is a transport over which a node that asks to join has its answer after one and a half seconds.
type afar struct{ transport.Transport }

func (a *afar) Ask(ctx context.Context, c transport.Call) ([]byte, error) {
	if c.Kind == "group/join" {
		time.Sleep(min(c.Timeout, 1500*time.Millisecond))
		if c.Timeout <= 1500*time.Millisecond {
			return nil, context.DeadlineExceeded
		}
	}
	return a.Transport.Ask(ctx, c)
}

// elsewhere is a transport over which nobody but the leader takes a node in: what others say of the leader is said.
type elsewhere struct {
	transport.Transport
	leader, said string
}

func (e *elsewhere) Ask(ctx context.Context, c transport.Call) ([]byte, error) {
	if c.Kind == "group/join" && c.Addr != e.leader {
		return append([]byte{3}, e.said...), nil
	}
	return e.Transport.Ask(ctx, c)
}

// noBulk is a transport over which no data come. It says when the node has been told that it is a member.
type noBulk struct {
	transport.Transport
	done chan struct{}
}

func (n *noBulk) OpenBulk(context.Context, transport.Call) (transport.BulkReader, error) {
	return nil, errors.New("no data for you")
}

func (n *noBulk) Ask(ctx context.Context, c transport.Call) ([]byte, error) {
	b, err := n.Transport.Ask(ctx, c)
	if c.Kind == "group/join" && len(b) == 1 && b[0] == 1 {
		select {
		case n.done <- struct{}{}:
		default:
		}
	}
	return b, err
}

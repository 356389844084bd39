package transport

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/goleak"
)

// Whom a node does not let in hears why, as an error of its own and at its handler,
// and no message of it arrives.
func TestRejections(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Options) // of node 1, which dials node 2
		reason Reason
		want   string // A and B stand for the nodes' addresses
	}{
		{"other group", func(o *Options) { o.Identity.Group = GroupID{0xee} }, ReasonOtherGroup,
			"node A belongs to group ee000000-0000-0000-0000-000000000000, node B to group 01020300-0000-0000-0000-000000000000"},
		{"duplicate member", func(o *Options) { o.Identity.Member = 2 }, ReasonDuplicateMember,
			"node B is member 2; node A claims the same member id"},
		{"member of another address", func(o *Options) { o.Identity.Member = 3 }, ReasonDuplicateMember,
			"member 3 is at elsewhere:1; node A claims the same member id"},
		{"older protocol", func(o *Options) { o.protocol = Versions{1, 1} }, ReasonProtocolVersion,
			"node A (test-1) speaks version 1 of the protocol between nodes, node B (test-2) speaks versions 2 to 3: upgrade A"},
		{"newer protocol", func(o *Options) { o.protocol = Versions{4, 9} }, ReasonProtocolVersion,
			"node A (test-1) speaks versions 4 to 9 of the protocol between nodes, node B (test-2) speaks versions 2 to 3: upgrade B"},
		{"older log", func(o *Options) { o.LogFormat = Versions{1, 1} }, ReasonLogFormatVersion,
			"node A (test-1) knows version 1 of the log's format, node B (test-2) knows version 2: upgrade A"},
		{"removed", func(o *Options) { o.Identity.Member = 4 }, ReasonRemoved, "member 4 (A) was removed from the group"},
		{"no group", func(o *Options) { o.Identity = Identity{} }, 0, "this node belongs to no group yet"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := startNode(t, 1, func(o *Options) {
				o.protocol, o.LogFormat = Versions{2, 3}, Versions{2, 2}
				test.change(o)
			})
			b := startNode(t, 2, func(o *Options) { o.protocol, o.LogFormat = Versions{2, 3}, Versions{2, 2} })
			b.net.SetPeers([]Peer{{3, "elsewhere:1"}})
			b.net.RemovePeer(4)
			// Whom member 2 thinks to be, it dials member 7 there: the callee decides first.
			to := uint64(2)
			if a.net.door.Hello(0).Member == 2 {
				to = 7
			}
			a.net.AddPeer(to, b.net.Addr())
			want := strings.NewReplacer("node A", "node "+a.net.Addr(), "(A)", "("+a.net.Addr()+")", "upgrade A", "upgrade "+a.net.Addr(),
				"node B", "node "+b.net.Addr(), "upgrade B", "upgrade "+b.net.Addr()).Replace(test.want)
			if to == 7 {
				want = fmt.Sprintf("node %s is member 2, not member 7", b.net.Addr())
				_, err := a.net.Ask(context.Background(), Call{Addr: b.net.Addr()})
				var r *Rejection
				if dup := strings.NewReplacer("A", a.net.Addr(), "B", b.net.Addr()).Replace(test.want); !errors.As(err, &r) || r.Reason != test.reason || r.Text != dup {
					t.Errorf("question refused by %v, want %q", err, dup)
				}
				test.reason = ReasonOtherMember
			}
			a.waitFor("rejection", func() bool {
				r := a.rejected[to]
				return r != nil && r.Reason == test.reason && r.Text == want || test.reason == 0 && a.net.Status()[0].Err.Error() == want
			})
			a.net.Send([]*raftpb.Message{heartbeat(a.net.door.Hello(0).Member, to, 1)})
			a.waitFor("unreachable", func() bool { return a.unreachable[to] > 0 })
			b.mu.Lock()
			defer b.mu.Unlock()
			if n := a.times(a.connected, to); n > 0 || len(b.received) > 0 {
				t.Errorf("connected %d, received %v", n, b.received)
			}
		})
	}
}

// A peer that is removed is shown out, and its messages do not arrive any more.
func TestRemovedWhileConnected(t *testing.T) {
	a, b := startNode(t, 1, nil), startNode(t, 2, nil)
	acquaint(t, a, b)
	b.net.RemovePeer(1)
	want := fmt.Sprintf("member 1 (%s) was removed from the group", a.net.Addr())
	a.waitFor("rejection", func() bool { return a.rejected[2] != nil && a.rejected[2].Text == want })
	a.waitFor("unreachable", func() bool { return a.unreachable[2] > 0 })
}

// Two processes that claim one member id and one address do not throw each other
// out in turns: the newer one stays.
func TestTwoProcessesOfOneMember(t *testing.T) {
	same := func(o *Options) { o.Advertise = "member-1:7000" }
	old, fresh, b := startNode(t, 1, same), startNode(t, 1, same), startNode(t, 2, nil)
	old.net.AddPeer(2, b.net.Addr())
	old.waitFor("connection", func() bool { return old.connected[2] > 0 })
	fresh.net.AddPeer(2, b.net.Addr())
	fresh.waitFor("connection", func() bool { return fresh.connected[2] > 0 })
	want := "another process of member 1, at member-1:7000, took the place of this one"
	old.waitFor("rejection", func() bool { return old.rejected[2] != nil && old.rejected[2].Text == want })
	time.Sleep(50 * time.Millisecond)
	if n := fresh.times(fresh.unreachable, 2); n != 0 {
		t.Errorf("the newer process was thrown out %d times", n)
	}
}

// Nothing is left behind by a transport that closes in the middle of everything.
func TestCloseLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	defer func() {
		err := goleak.Find(before)
		for until := time.Now().Add(patience); err != nil && time.Now().Before(until); err = goleak.Find(before) {
		}
		if err != nil {
			t.Error(err)
		}
	}()
	var nets []*Peers
	nodes := []*node{newNode(t, 1), newNode(t, 2), newNode(t, 3)}
	for _, n := range nodes {
		n.answer = func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		n.bulk = func(_ context.Context, _ string, _ []byte, w BulkWriter) error {
			for {
				if err := w.Send(make([]byte, 1000)); err != nil {
					return err
				}
			}
		}
		var err error
		if n.net, err = New(testOptions(n.id), n); err != nil {
			t.Fatal(err)
		}
		nets = append(nets, n.net)
	}
	acquaint(t, nodes...)
	ended := make(chan error, 2)
	go func() {
		_, err := nodes[0].net.Ask(context.Background(), Call{To: 2})
		ended <- err
	}()
	go func() {
		r, err := nodes[0].net.OpenBulk(context.Background(), Call{To: 2})
		for err == nil {
			_, err = r.Next()
		}
		if r != nil {
			r.Close()
		}
		ended <- err
	}()
	nodes[2].net.AddPeer(9, "192.0.2.1:1") // a dial that hangs
	time.Sleep(20 * time.Millisecond)
	for _, p := range []*Peers{nets[1], nets[2], nets[0]} {
		closed := make(chan error, 1)
		go func() { closed <- p.Close() }()
		select {
		case err := <-closed:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience / 2): // less than any limit on what goes on
			t.Fatal("closing waits for something")
		}
	}
	for range 2 {
		if err := <-ended; !errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrClosed) {
			t.Errorf("a call ended by %v", err)
		}
	}
	if _, err := nets[0].Ask(context.Background(), Call{Addr: nets[1].Addr()}); err == nil {
		t.Error("a closed transport asks")
	}
}

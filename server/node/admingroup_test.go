package node_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
)

// TestAdminThree: the calls that change a group, asked of the leader and of another member.
func TestAdminThree(t *testing.T) {
	members := group(t, 3)
	clients := make([]triremev1.AdminClient, 3)
	for i, m := range members {
		clients[i] = adminOf(t, m)
	}
	ctx := signedIn("root", "secret")
	// status asks a member that the group is as a test wants it.
	status := func(i int, what string, want func(g *triremev1.AdminGroup) bool) (g *triremev1.AdminGroup) {
		t.Helper()
		eventually(t, what, func() error {
			r, err := clients[i].Status(ctx, &triremev1.AdminStatusRequest{})
			if g = r.GetGroup(); err == nil && !want(g) {
				err = fmt.Errorf("%v", g)
			}
			return err
		})
		return g
	}
	ready := func(g *triremev1.AdminGroup) bool {
		return g.GetWritable() && g.GetVotersOnline() == 3 && g.GetLeader() != 0 && at(g, g.GetLeader()).GetGrpcAddress() != ""
	}
	g := status(0, "three members", ready)
	// index is which of the members has an id.
	index := func(id uint64) int {
		for i, m := range members {
			if at(g, id).GetGrpcAddress() == m.GRPCAddr() {
				return i
			}
		}
		t.Fatalf("nobody is member %d", id)
		return 0
	}
	leader := index(g.GetLeader())
	other := (leader + 1) % 3
	third := (leader + 2) % 3
	idOf := func(i int) uint64 {
		for _, m := range g.GetMembers() {
			if m.GetGrpcAddress() == members[i].GRPCAddr() {
				return m.GetId()
			}
		}
		return 0
	}
	for i, c := range clients { // a member that does not lead says who knows of the main port's locks
		want := ""
		if i != leader {
			want = members[leader].GRPCAddr()
		}
		if r := must(c.ListLockWaits(ctx, &triremev1.AdminListLockWaitsRequest{})); r.GetLeaderAddress() != want {
			t.Errorf("the leader is at %q, not %q", want, r.GetLeaderAddress())
		}
	}
	for _, m := range g.GetMembers() {
		if m.GetMysqlAddress() == "" || m.GetHttpAddress() == "" || m.GetVersion() == "" || m.GetDiskTotalBytes() == 0 || m.GetPeerAddress() == "" {
			t.Errorf("incomplete: %v", m)
		}
	}
	t.Run("refused", func(t *testing.T) {
		_, err := clients[other].Transfer(ctx, &triremev1.AdminTransferRequest{})
		wants(t, "transfer, asked of a follower", err, codes.FailedPrecondition, 1290, "ask the leader")
		if addr := refusal(err).GetLeaderAddress(); addr != members[leader].GRPCAddr() {
			t.Errorf("the leader's address: %q", addr)
		}
		_, err = clients[other].SetSetting(ctx, &triremev1.AdminSetSettingRequest{Name: "binlog_keep_size", Value: "10000000"})
		wants(t, "a setting of the group, asked of a follower", err, codes.FailedPrecondition, 1290, "ask the leader")
		if _, err = clients[other].SetSetting(ctx, &triremev1.AdminSetSettingRequest{Name: "wait_timeout", Value: "99"}); err != nil {
			t.Errorf("a variable of a follower: %v", err)
		}
		c := clients[leader]
		_, err = c.RemoveMember(ctx, &triremev1.AdminRemoveMemberRequest{Id: idOf(leader)})
		wants(t, "remove the leader", err, codes.FailedPrecondition, 1105, "transfer leadership first")
		_, err = c.RemoveMember(ctx, &triremev1.AdminRemoveMemberRequest{Id: 12345})
		wants(t, "remove nobody", err, codes.NotFound, 1210, "there is no member 12345")
		_, err = c.Transfer(ctx, &triremev1.AdminTransferRequest{To: 12345})
		wants(t, "transfer to nobody", err, codes.NotFound, 1210, "there is no member 12345")
		if _, err = c.PromoteMember(ctx, &triremev1.AdminPromoteMemberRequest{Id: idOf(other)}); err != nil {
			t.Errorf("promote who votes, as one does whose answer got lost: %v", err)
		}
		_, err = c.ReplaceMember(ctx, &triremev1.AdminReplaceMemberRequest{Id: idOf(other), With: idOf(third)})
		wants(t, "replace by who votes", err, codes.FailedPrecondition, 1105, "votes already")
		_, err = c.ReplaceMember(ctx, &triremev1.AdminReplaceMemberRequest{Id: idOf(leader), With: idOf(third)})
		wants(t, "replace the leader", err, codes.FailedPrecondition, 1105, "transfer leadership first")
		_, err = c.AddMember(ctx, &triremev1.AdminAddMemberRequest{})
		wants(t, "add without an id", err, codes.InvalidArgument, 1210, "joins by itself")
		for _, addr := range []string{"", "nowhere", ":1", "h:0", "h:70000", "h:x"} {
			_, err = c.AddMember(ctx, &triremev1.AdminAddMemberRequest{Id: 9, PeerAddress: addr})
			wants(t, "add at "+addr, err, codes.InvalidArgument, 1210, "host:port")
		}
		_, err = c.AddMember(ctx, &triremev1.AdminAddMemberRequest{Id: idOf(other), PeerAddress: "127.0.0.1:1"})
		wants(t, "move who votes", err, codes.FailedPrecondition, 1105, "peer_address")
		_, err = c.AddMember(ctx, &triremev1.AdminAddMemberRequest{Id: 99, PeerAddress: at(g, idOf(other)).GetPeerAddress()})
		wants(t, "add where somebody is", err, codes.FailedPrecondition, 1105, "choose another address")
	})
	t.Run("learner", func(t *testing.T) {
		c := clients[leader]
		if _, err := c.AddMember(ctx, &triremev1.AdminAddMemberRequest{Id: 99, PeerAddress: "127.0.0.1:1", Replica: true}); err != nil {
			t.Fatal(err)
		}
		g := status(leader, "the learner is listed", func(g *triremev1.AdminGroup) bool { return at(g, 99) != nil })
		if m := at(g, 99); m.GetRole() != triremev1.AdminRole_ADMIN_ROLE_REPLICA || m.GetState() != triremev1.AdminMemberState_ADMIN_MEMBER_STATE_UNREACHABLE || g.GetVoters() != 3 {
			t.Errorf("%v", g)
		}
		_, err := c.PromoteMember(ctx, &triremev1.AdminPromoteMemberRequest{Id: 99})
		wants(t, "promote who does not answer", err, codes.FailedPrecondition, 1105, "does not answer")
		_, err = c.Transfer(ctx, &triremev1.AdminTransferRequest{To: 99})
		wants(t, "transfer to a learner", err, codes.FailedPrecondition, 1105, "promote it first")
		if _, err := c.RemoveMember(ctx, &triremev1.AdminRemoveMemberRequest{Id: 99}); err != nil {
			t.Fatal(err)
		}
		status(leader, "the learner is gone", func(g *triremev1.AdminGroup) bool { return at(g, 99) == nil })
		for id := uint64(100); id < 110; id++ { // whoever asks after the answer sees the change, though another has asked just before it
			asks, end := context.WithCancel(ctx)
			var asking sync.WaitGroup
			asking.Go(func() {
				for asks.Err() == nil {
					_, _ = c.Status(asks, &triremev1.AdminStatusRequest{})
				}
			})
			_, err := c.AddMember(ctx, &triremev1.AdminAddMemberRequest{Id: id, PeerAddress: "127.0.0.1:1", Replica: true})
			g, asked := c.Status(ctx, &triremev1.AdminStatusRequest{})
			if err != nil || asked != nil || at(g.GetGroup(), id) == nil {
				t.Errorf("added: member %d: %v, %v", id, err, asked)
			}
			_, err = c.RemoveMember(ctx, &triremev1.AdminRemoveMemberRequest{Id: id})
			g, asked = c.Status(ctx, &triremev1.AdminStatusRequest{})
			if err != nil || asked != nil || at(g.GetGroup(), id) != nil {
				t.Errorf("removed: member %d: %v, %v", id, err, asked)
			}
			end()
			asking.Wait()
		}
	})
	t.Run("transfer", func(t *testing.T) {
		r, err := clients[leader].Transfer(ctx, &triremev1.AdminTransferRequest{To: idOf(other)})
		if err != nil || r.GetLeader() != idOf(other) {
			t.Errorf("leadership goes to member %d: %v, %v", idOf(other), r, err)
		}
		eventually(t, "leadership moves", func() error { return leads(members[other], nil) })
		leader, other = other, leader
	})
	t.Run("drain", func(t *testing.T) {
		// Several at once: one hands over, and the others find that this is being done.
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if r, err := clients[leader].Drain(ctx, &triremev1.AdminDrainRequest{}); err != nil || !r.GetHandedOver() {
					t.Errorf("drained with others: %v, %v", r, err)
				}
			})
		}
		all.Wait()
		if code, text := members[leader].get("readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "drained") {
			t.Errorf("/readyz of a node that is drained: %d %s", code, text)
		}
		drained := idOf(leader)
		status(other, "the others know it", func(g *triremev1.AdminGroup) bool {
			return at(g, drained).GetDraining() && g.GetLeader() != drained && g.GetWritable()
		})
		if _, err := clients[leader].Drain(ctx, &triremev1.AdminDrainRequest{Undo: true}); err != nil {
			t.Error(err)
		}
		eventually(t, "the node is ready again", func() error {
			if code, text := members[leader].get("readyz"); code != http.StatusOK {
				return errors.New(text)
			}
			return nil
		})
	})
	g = status(0, "three members again", ready)
	leader = index(g.GetLeader())
	other, third = (leader+1)%3, (leader+2)%3
	t.Run("remove", func(t *testing.T) {
		gone := idOf(third)
		members[third].stop()
		status(leader, "one is missing", func(g *triremev1.AdminGroup) bool {
			return g.GetLeader() == idOf(leader) && g.GetVotersOnline() == 2 && at(g, gone).GetState() == triremev1.AdminMemberState_ADMIN_MEMBER_STATE_UNREACHABLE
		})
		_, err := clients[leader].RemoveMember(ctx, &triremev1.AdminRemoveMemberRequest{Id: idOf(other)})
		wants(t, "remove one of two that are left", err, codes.FailedPrecondition, 1105, "would take no writes")
		if _, err := clients[leader].RemoveMember(ctx, &triremev1.AdminRemoveMemberRequest{Id: gone}); err != nil {
			t.Fatal(err)
		}
		status(other, "it is gone", func(g *triremev1.AdminGroup) bool { return at(g, gone) == nil && g.GetVoters() == 2 })
	})
}

// leads says whether a member takes writes by now, unless there was an error before.
func leads(m *member, err error) error {
	if m.Leads() || err != nil && strings.Contains(err.Error(), "1290") {
		return nil
	}
	return errors.Join(err, errors.New("it does not lead"))
}

// at finds a member.
func at(g *triremev1.AdminGroup, id uint64) *triremev1.AdminMember {
	for _, m := range g.GetMembers() {
		if m.GetId() == id {
			return m
		}
	}
	return nil
}

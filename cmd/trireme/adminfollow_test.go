package main

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
)

// follower refuses every call, and names the leader.
type follower struct{ triremev1.AdminClient }

func refused() error {
	s, err := status.New(codes.FailedPrecondition, "this node does not lead the group").WithDetails(&triremev1.AdminError{Number: 1290, LeaderAddress: "leader:1"})
	if err != nil {
		return err
	}
	return s.Err()
}

func (follower) Drain(context.Context, *triremev1.AdminDrainRequest, ...grpc.CallOption) (*triremev1.AdminDrainResponse, error) {
	return nil, refused()
}

func (follower) KillSession(context.Context, *triremev1.AdminKillSessionRequest, ...grpc.CallOption) (*triremev1.AdminKillSessionResponse, error) {
	return nil, refused()
}

func (follower) PurgeBinlogs(context.Context, *triremev1.AdminPurgeBinlogsRequest, ...grpc.CallOption) (*triremev1.AdminPurgeBinlogsResponse, error) {
	return nil, refused()
}

func (follower) Transfer(context.Context, *triremev1.AdminTransferRequest, ...grpc.CallOption) (*triremev1.AdminTransferResponse, error) {
	return nil, refused()
}

// TestFollowsToTheLeader: what is about the node that was named is never done to the leader instead.
func TestFollowsToTheLeader(t *testing.T) {
	for name, follows := range map[string]bool{"drain": false, "kill": false, "binlog purge": false, "transfer": true} {
		asked := ""
		a := &admin{client: follower{}, ctx: context.Background(), timeout: time.Minute, out: io.Discard,
			dial: func(addr string) (*grpc.ClientConn, error) { asked = addr; return nil, errors.New("not there") }}
		for _, c := range adminCommands() {
			if c.words != name {
				continue
			}
			if err := c.run(a, []string{"1"}[:min(1, len(c.args))]); err == nil {
				t.Errorf("%s: done", name)
			}
		}
		if (asked != "") != follows {
			t.Errorf("%s asks %q", name, asked)
		}
	}
}

// electing is a node that knows no leader for some calls, and then leads.
type electing struct {
	triremev1.UnimplementedAdminServer
	left atomic.Int32
}

func (e *electing) answer() error {
	if e.left.Add(-1) < 0 {
		return nil
	}
	s, err := status.New(codes.FailedPrecondition, "this node does not lead the group").WithDetails(&triremev1.AdminError{Number: 1290})
	if err != nil {
		return err
	}
	return s.Err()
}

func (e *electing) Transfer(context.Context, *triremev1.AdminTransferRequest) (*triremev1.AdminTransferResponse, error) {
	return &triremev1.AdminTransferResponse{Leader: 2}, e.answer()
}

func (e *electing) PromoteMember(context.Context, *triremev1.AdminPromoteMemberRequest) (*triremev1.AdminPromoteMemberResponse, error) {
	return &triremev1.AdminPromoteMemberResponse{}, e.answer()
}

// TestWaitsForALeader: while a group elects one, and where the first of the nodes that were named is gone, what needs the leader is
// asked for again.
func TestWaitsForALeader(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	node := &electing{}
	server := grpc.NewServer()
	triremev1.RegisterAdminServer(server, node)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	there := listener.Addr().String()
	for _, c := range []struct {
		command string
		args    []string
		all     []string
		done    bool
	}{
		{"transfer", nil, []string{there}, true},
		{"transfer", nil, []string{gone.Addr().String(), there}, true}, // nobody was reached who could have made it
		{"members promote", []string{"2"}, []string{there}, true},
		{"members promote", []string{"2"}, []string{gone.Addr().String(), there}, true},
	} {
		node.left.Store(2)
		a := &admin{ctx: context.Background(), timeout: time.Minute, out: io.Discard, all: c.all,
			dial: func(addr string) (*grpc.ClientConn, error) {
				return grpc.NewClient("passthrough:"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
			}}
		if err := a.use(c.all[0]); err != nil {
			t.Fatal(err)
		}
		command, _ := findAdmin(strings.Fields(c.command))
		if err := command.run(a, c.args); (err == nil) != c.done {
			t.Errorf("%s at %v: %v", c.command, c.all, err)
		}
		_ = a.conn.Close()
	}
}

// naming is a node that says that another one leads.
type naming struct {
	triremev1.UnimplementedAdminServer
	other string
	calls atomic.Int32
}

func (n *naming) Transfer(context.Context, *triremev1.AdminTransferRequest) (*triremev1.AdminTransferResponse, error) {
	n.calls.Add(1)
	s, err := status.New(codes.FailedPrecondition, "this node does not lead the group").WithDetails(&triremev1.AdminError{Number: 1290, LeaderAddress: n.other})
	if err != nil {
		return nil, err
	}
	return nil, s.Err()
}

// TestNodesNameEachOther: nodes of which each says that the other leads are not asked without a pause.
func TestNodesNameEachOther(t *testing.T) {
	var nodes [2]*naming
	var addrs [2]string
	for i := range nodes {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		nodes[i], addrs[i] = &naming{}, listener.Addr().String()
		server := grpc.NewServer()
		triremev1.RegisterAdminServer(server, nodes[i])
		go func() { _ = server.Serve(listener) }()
		defer server.Stop()
	}
	nodes[0].other, nodes[1].other = addrs[1], addrs[0]
	a := &admin{ctx: context.Background(), timeout: time.Second, out: io.Discard, all: addrs[:1],
		dial: func(addr string) (*grpc.ClientConn, error) {
			return grpc.NewClient("passthrough:"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		}}
	if err := a.use(addrs[0]); err != nil {
		t.Fatal(err)
	}
	command, _ := findAdmin([]string{"transfer"})
	if err := command.run(a, nil); err == nil {
		t.Error("done")
	}
	if n := nodes[0].calls.Load() + nodes[1].calls.Load(); n < 2 || n > 2+int32(time.Second/leaderPause)+1 {
		t.Errorf("%d calls", n)
	}
	_ = a.conn.Close()
}

package main

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
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

package adminapi

import (
	"context"
	"encoding/hex"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/replication/group"
)

// Status implements the contract.
func (s *Server) Status(ctx context.Context, req *triremev1.AdminStatusRequest) (*triremev1.AdminStatusResponse, error) {
	return serve(ctx, s, rightStatus, req, func(*Caller) (*triremev1.AdminStatusResponse, error) {
		g, err := s.gather(ctx)
		return &triremev1.AdminStatusResponse{Group: g}, err
	})
}

const (
	watchUsual = time.Second
	watchLeast = 100 * time.Millisecond
	watchMost  = time.Hour
	// gatheredFor is how long what the members have said is told to others who ask.
	gatheredFor = 90 * time.Millisecond
	// rechecked is how often a watcher's privileges are looked at again.
	rechecked = 10 * time.Second
)

// Watch implements the contract.
func (s *Server) Watch(req *triremev1.AdminWatchRequest, out grpc.ServerStreamingServer[triremev1.AdminWatchResponse]) error {
	ctx := out.Context()
	_, err := serve(ctx, s, rightWatch, req, func(c *Caller) (struct{}, error) { return struct{}{}, s.watch(c, req, out) })
	return err
}

func (s *Server) watch(c *Caller, req *triremev1.AdminWatchRequest, out grpc.ServerStreamingServer[triremev1.AdminWatchResponse]) error {
	every := time.Duration(req.GetIntervalMs()) * time.Millisecond
	switch {
	case every == 0:
		every = watchUsual
	case every < watchLeast, every > watchMost:
		return badArgument("interval_ms is %d: it is 100 to 3600000", req.GetIntervalMs())
	}
	select {
	case s.watchers <- struct{}{}:
		defer func() { <-s.watchers }()
	default:
		return &Error{Code: codes.ResourceExhausted, Message: "too many calls watch this node", Advice: "end some, or watch another member"}
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	checked := time.Now()
	for {
		g, err := s.gather(out.Context())
		if err != nil {
			return err
		}
		if err := out.Send(&triremev1.AdminWatchResponse{Group: g}); err != nil {
			return err
		}
		select {
		case <-out.Context().Done():
			return out.Context().Err()
		case <-tick.C:
		}
		if now := time.Now(); now.Sub(checked) >= rechecked {
			checked = now
			if err := s.opt.Sessions.Needs(c.id(), rightWatch.any); err != nil {
				return err
			}
		}
	}
}

// gather asks all members. What it returns is not to be changed: several callers have it.
func (s *Server) gather(ctx context.Context) (*triremev1.AdminGroup, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.opt.Group
	members := n.Members()
	if s.group != nil && time.Since(s.gathered) < gatheredFor && slices.Equal(members, s.members) { // a change that was answered is seen
		return s.group, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	id := n.Group()
	own := n.Status()
	g := &triremev1.AdminGroup{Id: uuid(id), Cluster: s.opt.Config.String("cluster_name"), TimeUs: time.Now().UnixMicro(), AnsweredBy: n.ID(),
		Leader: own.Leader, Term: own.Term}
	s.members = slices.Clone(members)
	slices.SortFunc(members, func(a, b group.Member) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	g.Members = make([]*triremev1.AdminMember, len(members))
	// The others are asked by nobody's context: what they say is for whoever asks next, too.
	ctx = context.WithoutCancel(ctx)
	about := make([]Member, len(members))
	var asking sync.WaitGroup
	for i, m := range members {
		asking.Add(1)
		go func() {
			defer asking.Done()
			about[i], _ = s.opt.Member(ctx, m.ID) // what it said before, or nothing
		}()
	}
	states := n.GroupStatus()
	asking.Wait()
	for i, m := range members {
		st := group.Status{Lag: group.UnknownLag, Error: "it is not a member any more"}
		for _, one := range states {
			if one.ID == m.ID {
				st = one
			}
		}
		g.Members[i] = describe(&m, &st, &about[i], own.Leader)
		if !m.Learner {
			g.Voters++
			if st.Error == "" {
				g.VotersOnline++
			}
		}
		g.Writable = g.Writable || st.Writable
	}
	s.group, s.gathered = g, time.Now()
	return g, nil
}

// describe puts together what is known of a member.
func describe(m *group.Member, st *group.Status, about *Member, leader uint64) *triremev1.AdminMember {
	out := &triremev1.AdminMember{Id: m.ID, Role: triremev1.AdminRole_ADMIN_ROLE_FOLLOWER, State: triremev1.AdminMemberState_ADMIN_MEMBER_STATE_ONLINE,
		Error: st.Error, PeerAddress: m.Addr, MysqlAddress: about.MySQL, ReadOnlyAddress: about.ReadOnly, HttpAddress: about.HTTP, GrpcAddress: about.GRPC,
		Version: about.Version, Term: st.Term, LastIndex: st.Index, CommittedIndex: st.Committed, AppliedIndex: st.Applied, AppliedNumber: st.Number,
		LagMs: -1, LagEntries: uint64(max(0, st.Entries)), LagBytes: st.Bytes, DiskTotalBytes: about.DiskTotal, DiskFreeBytes: about.DiskFree, DiskFull: st.DiskFull,
		Draining: about.Draining, Connections: uint32(about.Connections), UptimeSeconds: uint64(about.Uptime / time.Second)}
	if text := st.Trouble(); st.Error == "" && text != "" {
		out.Error = "it " + text
	}
	if st.Lag.Time >= 0 {
		out.LagMs = st.Lag.Time.Milliseconds()
	}
	switch {
	case m.ID == leader:
		out.Role = triremev1.AdminRole_ADMIN_ROLE_LEADER
	case m.Learner && m.Stays:
		out.Role = triremev1.AdminRole_ADMIN_ROLE_REPLICA
	case m.Learner:
		out.Role = triremev1.AdminRole_ADMIN_ROLE_LEARNER
	}
	switch {
	case st.Provisioning:
		out.State = triremev1.AdminMemberState_ADMIN_MEMBER_STATE_RECOVERING
	case st.Error != "":
		out.State = triremev1.AdminMemberState_ADMIN_MEMBER_STATE_UNREACHABLE
	}
	return out
}

func uuid(b [16]byte) string {
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

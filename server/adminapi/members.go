package adminapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/replication/group"
)

// behindMax is how many entries a learner may be behind that is to vote.
const behindMax = 1000

// lead makes sure that this node leads.
func (s *Server) lead() error {
	if leader, ok := s.opt.Group.Leader(); !ok || leader.ID != s.opt.Group.ID() {
		return group.ErrNotLeader
	}
	return nil
}

// member finds a member of the group.
func (s *Server) member(id uint64) (group.Member, error) {
	for _, m := range s.opt.Group.Members() {
		if m.ID == id {
			return m, nil
		}
	}
	return group.Member{}, noMember(id)
}

// learner finds a learner that is to vote, and looks whether it is ready for that.
func (s *Server) learner(ctx context.Context, id uint64, force bool) error {
	m, err := s.member(id)
	if err != nil {
		return err
	}
	if !m.Learner {
		return refused("", "member %d votes already", id)
	}
	if force {
		return nil
	}
	g, err := s.gather(ctx)
	if err != nil {
		return err
	}
	for _, m := range g.GetMembers() {
		if m.GetId() == id {
			return canVote(m)
		}
	}
	return nil
}

// canVote says why the group had better not count on a member that does not vote yet; nil: it can.
func canVote(m *triremev1.AdminMember) error {
	switch id := m.GetId(); {
	case m.GetState() == triremev1.AdminMemberState_ADMIN_MEMBER_STATE_RECOVERING:
		return refused("wait until it has its data, or force it: commits may then have to wait for it", "member %d is being given its data", id)
	case m.GetState() != triremev1.AdminMemberState_ADMIN_MEMBER_STATE_ONLINE:
		return refused("start it, or force it: commits may then have to wait for it", "member %d does not answer: %s", id, m.GetError())
	case m.GetDiskFull() || m.GetError() != "":
		return refused("see to that first, or force it: commits may then have to wait for it", "member %d is not well: %s", id, cmp.Or(m.GetError(), "it has a full disk"))
	case m.GetLagEntries() > behindMax:
		return refused("wait until it has caught up, or force it: commits may then have to wait for it",
			"member %d is %d entries behind", id, m.GetLagEntries())
	}
	return nil
}

// AddMember implements the contract.
func (s *Server) AddMember(ctx context.Context, req *triremev1.AdminAddMemberRequest) (*triremev1.AdminAddMemberResponse, error) {
	return serve(ctx, s, rightAdd, req, func(*Caller) (*triremev1.AdminAddMemberResponse, error) {
		m := group.Member{ID: req.GetId(), Addr: req.GetPeerAddress(), Learner: true, Stays: req.GetReplica()}
		if m.ID == 0 {
			return nil, &Error{Code: codes.InvalidArgument, Number: sqlerr.WrongArguments,
				Message: "the member's id is missing",
				Advice:  "a node that is started with a way to find the group joins by itself; to give a member another address, say its id"}
		}
		if err := checkAddress(m.Addr); err != nil {
			return nil, err
		}
		if err := s.lead(); err != nil {
			return nil, err
		}
		for _, other := range s.opt.Group.Members() {
			if other.ID != m.ID && other.Addr == m.Addr {
				return nil, refused("remove that one first, or choose another address", "member %d is at %s", other.ID, m.Addr)
			}
			if other.ID == m.ID && !other.Learner {
				return &triremev1.AdminAddMemberResponse{}, notMoved(s.opt.Group.Move(ctx, m.ID, m.Addr), &m)
			}
		}
		return &triremev1.AdminAddMemberResponse{}, s.opt.Group.Add(m)
	})
}

// notMoved says what to do where a member that votes cannot be given another address.
func notMoved(err error, m *group.Member) error {
	if !errors.Is(err, group.ErrNotMoved) {
		return err
	}
	return refused(fmt.Sprintf("end its former process, start it with its directory and peer_address=%s, and ask again; "+
		"of one that leads, transfer leadership first", m.Addr), "member %d cannot be given the address %s: %v", m.ID, m.Addr, err)
}

// checkAddress checks host:port.
func checkAddress(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err == nil && host == "" {
		err = errors.New("the host is missing")
	}
	if err == nil {
		if n, e := strconv.ParseUint(port, 10, 16); e != nil || n == 0 {
			err = errors.New("the port is no number from 1 to 65535")
		}
	}
	if err != nil {
		return badArgument("peer_address is %q and not host:port: %v", types.CutUTF8(addr, 300), err)
	}
	return nil
}

// PromoteMember implements the contract.
func (s *Server) PromoteMember(ctx context.Context, req *triremev1.AdminPromoteMemberRequest) (*triremev1.AdminPromoteMemberResponse, error) {
	return serve(ctx, s, rightPromote, req, func(*Caller) (*triremev1.AdminPromoteMemberResponse, error) {
		if err := s.lead(); err != nil {
			return nil, err
		}
		if m, err := s.member(req.GetId()); err == nil && !m.Learner {
			// An earlier request may not have heard whether it is done.
			return &triremev1.AdminPromoteMemberResponse{}, s.opt.Group.Promote(m.ID)
		}
		if err := s.learner(ctx, req.GetId(), req.GetForce()); err != nil {
			return nil, err
		}
		return &triremev1.AdminPromoteMemberResponse{}, s.opt.Group.Promote(req.GetId())
	})
}

// RemoveMember implements the contract.
func (s *Server) RemoveMember(ctx context.Context, req *triremev1.AdminRemoveMemberRequest) (*triremev1.AdminRemoveMemberResponse, error) {
	return serve(ctx, s, rightRemove, req, func(*Caller) (*triremev1.AdminRemoveMemberResponse, error) {
		if err := s.removable(ctx, req.GetId(), req.GetForce()); err != nil {
			return nil, err
		}
		return &triremev1.AdminRemoveMemberResponse{}, s.opt.Group.Remove(req.GetId())
	})
}

// Leave takes a member out of the group that has asked for it itself.
func (s *Server) Leave(ctx context.Context, id uint64) error {
	if err := s.removable(ctx, id, false); err != nil {
		return err
	}
	s.opt.Log.Info("a member leaves the group", "member", id)
	return s.opt.Group.Remove(id)
}

// removable checks whether a member may go.
func (s *Server) removable(ctx context.Context, id uint64, force bool) error {
	if err := s.lead(); err != nil {
		return err
	}
	if s.opt.Group.Left(id) {
		return nil // an earlier request may not have heard whether it is done
	}
	m, err := s.member(id)
	if err != nil {
		return err
	}
	if id == s.opt.Group.ID() {
		return s.leads(id)
	}
	if m.Learner || force {
		return nil
	}
	g, err := s.gather(ctx)
	if err != nil {
		return err
	}
	return canSpare(id, g.GetMembers())
}

// canSpare says why a group needs a voter; nil: a majority of the others is well.
func canSpare(id uint64, members []*triremev1.AdminMember) error {
	rest, online, full := 0, 0, 0
	for _, m := range members {
		role := m.GetRole()
		if m.GetId() == id || role != triremev1.AdminRole_ADMIN_ROLE_LEADER && role != triremev1.AdminRole_ADMIN_ROLE_FOLLOWER {
			continue
		}
		rest++
		switch {
		case m.GetState() != triremev1.AdminMemberState_ADMIN_MEMBER_STATE_ONLINE:
		case m.GetDiskFull():
			full++
		default:
			online++
		}
	}
	switch {
	case 2*(online+full) <= rest:
		return refused("bring others back first; force it if they are lost for good", "without member %d only %d of %d voters answer: the group would take no writes", id, online, rest)
	case 2*online <= rest:
		return refused("make room on their disks first, or force it", "without member %d only %d of %d voters have room on their disks: the group would soon take no writes", id, online, rest)
	}
	return nil
}

// leads refuses what the leader cannot do to itself.
func (s *Server) leads(id uint64) error {
	if s.voters() == 1 {
		return refused("add another member first", "member %d is the only one that votes", id)
	}
	return refused("transfer leadership first, then ask the new leader", "member %d leads the group", id)
}

func (s *Server) voters() (count int) {
	for _, m := range s.opt.Group.Members() {
		if !m.Learner {
			count++
		}
	}
	return count
}

// ReplaceMember implements the contract.
func (s *Server) ReplaceMember(ctx context.Context, req *triremev1.AdminReplaceMemberRequest) (*triremev1.AdminReplaceMemberResponse, error) {
	return serve(ctx, s, rightReplace, req, func(*Caller) (*triremev1.AdminReplaceMemberResponse, error) {
		if err := s.lead(); err != nil {
			return nil, err
		}
		old, err := s.member(req.GetId())
		if with, e := s.member(req.GetWith()); e == nil && !with.Learner && s.opt.Group.Left(req.GetId()) {
			// An earlier request may not have heard whether it is done.
			return &triremev1.AdminReplaceMemberResponse{}, s.opt.Group.Replace(req.GetId(), req.GetWith())
		}
		switch {
		case err != nil:
			return nil, err
		case old.Learner:
			return nil, refused("remove it, and promote the other", "member %d does not vote", old.ID)
		case old.ID == s.opt.Group.ID():
			return nil, refused("transfer leadership first, then ask the new leader", "member %d leads the group", old.ID)
		}
		if err := s.learner(ctx, req.GetWith(), req.GetForce()); err != nil {
			return nil, err
		}
		return &triremev1.AdminReplaceMemberResponse{}, s.opt.Group.Replace(req.GetId(), req.GetWith())
	})
}

// Transfer implements the contract.
func (s *Server) Transfer(ctx context.Context, req *triremev1.AdminTransferRequest) (*triremev1.AdminTransferResponse, error) {
	return serve(ctx, s, rightTransfer, req, func(*Caller) (*triremev1.AdminTransferResponse, error) {
		if err := s.lead(); err != nil {
			return nil, err
		}
		to := req.GetTo()
		if to != 0 {
			m, err := s.member(to)
			switch {
			case err != nil:
				return nil, err
			case m.Learner:
				return nil, refused("promote it first", "member %d does not vote", to)
			}
		} else if s.voters() == 1 {
			return nil, refused("add another member first", "nobody else votes in this group")
		}
		if to != s.opt.Group.ID() {
			if err := unfit(to, s.opt.Group.GroupStatus()); err != nil {
				return nil, err
			}
			if err := s.opt.Group.Transfer(to); err != nil {
				return nil, err
			}
		}
		return &triremev1.AdminTransferResponse{Leader: s.nextLeader(ctx)}, nil
	})
}

// unfit refuses a member that has said what is wrong with it: it would lead until that is noticed, and writes wait.
func unfit(to uint64, states []group.Status) error {
	for i := range states {
		if s := &states[i]; s.ID == to && s.Error == "" && s.Trouble() != "" {
			return refused("see to it first, or choose another, or none, for the one that can serve soonest", "member %d %s", to, s.Trouble())
		}
	}
	return nil
}

// nextLeader waits until this node knows who leads after it has given leadership up: longer than a busy group needs to
// elect somebody. 0: it does not know.
func (s *Server) nextLeader(ctx context.Context) uint64 {
	const pause = 10 * time.Millisecond
	for range 15 * time.Second / pause {
		if leader, ok := s.opt.Group.Leader(); ok {
			return leader.ID
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return 0
		}
	}
	return 0
}

// Drain implements the contract.
func (s *Server) Drain(ctx context.Context, req *triremev1.AdminDrainRequest) (*triremev1.AdminDrainResponse, error) {
	return serve(ctx, s, rightDrain, req, func(*Caller) (*triremev1.AdminDrainResponse, error) {
		if !req.GetUndo() && s.voters() == 1 {
			if m, err := s.member(s.opt.Group.ID()); err == nil && !m.Learner {
				return nil, refused("stop it: it is the whole group", "nobody else votes in this group, so that nobody can lead instead of this node")
			}
		}
		handed, connections, err := s.opt.Drain(req.GetUndo())
		return &triremev1.AdminDrainResponse{HandedOver: handed, Connections: uint32(connections)}, err
	})
}

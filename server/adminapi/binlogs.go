package adminapi

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"

	"github.com/triremedb/trireme/engine/binlog/log"
	"github.com/triremedb/trireme/engine/sqlerr"
	"github.com/triremedb/trireme/engine/types"
	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/replication/group"
)

// need is up to where the log may go.
type need struct {
	from uint64 // index of the first entry that has to stay
	by   string // who needs it
}

// needed finds out what of the log this node and the members need. With sync what has been
// applied is durable when it returns, so that a crash needs nothing before it.
func (s *Server) needed(sync bool) (need, error) {
	n := s.opt.Group
	eng, err := n.Engine()
	if err != nil {
		return need{}, err
	}
	_, applied := eng.Applied()
	if sync {
		if err := eng.Sync(); err != nil {
			return need{}, err
		}
	}
	least := need{applied.Index, "this node, to recover after a crash"}
	lower := func(index uint64, id uint64) {
		if index < least.from {
			least = need{index, fmt.Sprintf("member %d, which has not got it yet", id)}
		}
	}
	if s.lead() == nil {
		for _, f := range n.Followers() {
			lower(f.Match, f.ID)
		}
	} else {
		for _, st := range n.GroupStatus() {
			if st.Error != "" {
				st.Index = 0 // it may need anything
			}
			lower(st.Index, st.ID)
		}
	}
	stats, err := n.Stats()
	if err == nil && stats.Source.Snapshots > 0 {
		least = need{0, "a member that is being given its data from here"}
	}
	return least, err
}

// binlogs is the node's log.
func (s *Server) binlogs() (*log.Log, error) {
	if l := s.opt.Group.Log(); l != nil {
		return l, nil
	}
	return nil, group.ErrProvisioning
}

// ListBinlogs implements the contract.
func (s *Server) ListBinlogs(ctx context.Context, req *triremev1.AdminListBinlogsRequest) (*triremev1.AdminListBinlogsResponse, error) {
	return serve(ctx, s, rightBinlogs, req, func(*Caller) (*triremev1.AdminListBinlogsResponse, error) {
		l, err := s.binlogs()
		if err != nil {
			return nil, err
		}
		keep, err := s.needed(false)
		if err != nil {
			return nil, err
		}
		out := &triremev1.AdminListBinlogsResponse{}
		for _, f := range l.Files() {
			out.Files = append(out.Files, &triremev1.AdminBinlog{Name: f.Name, Bytes: uint64(f.Size), FirstIndex: f.FirstIndex, LastIndex: f.LastIndex,
				FirstNumber: f.FirstNumber, LastNumber: f.LastNumber, Closed: f.Closed, Needed: !f.Closed || f.LastIndex >= keep.from})
		}
		return out, nil
	})
}

// PurgeBinlogs implements the contract.
func (s *Server) PurgeBinlogs(ctx context.Context, req *triremev1.AdminPurgeBinlogsRequest) (*triremev1.AdminPurgeBinlogsResponse, error) {
	return serve(ctx, s, rightPurge, req, func(*Caller) (*triremev1.AdminPurgeBinlogsResponse, error) {
		s.purging.Lock()
		defer s.purging.Unlock()
		l, err := s.binlogs()
		if err != nil {
			return nil, err
		}
		files := l.Files()
		to := slices.IndexFunc(files, func(f log.FileInfo) bool { return f.Name == req.GetTo() })
		if to < 0 {
			return nil, &Error{Code: codes.NotFound, Number: sqlerr.UnknownTargetBinlog,
				Message: fmt.Sprintf("there is no file %q in this node's log", types.CutUTF8(req.GetTo(), 64)),
				Advice:  "the list of binlogs has the names"}
		}
		if to == 0 {
			return &triremev1.AdminPurgeBinlogsResponse{}, nil
		}
		keep, err := s.needed(true)
		if err != nil {
			return nil, err
		}
		for _, f := range files[:to] {
			if !f.Closed || f.LastIndex >= keep.from {
				return nil, &Error{Code: codes.FailedPrecondition, Number: sqlerr.LogInUse,
					Message: fmt.Sprintf("%s is needed by %s", f.Name, keep.by),
					Advice:  "purge to " + f.Name + " at most, or try again when the status shows that nobody is behind"}
			}
		}
		// All before the file are closed, so that the age by which they go is any.
		removed, err := l.Purge(log.Retention{Keep: files[to].FirstIndex, MaxAge: 1})
		return &triremev1.AdminPurgeBinlogsResponse{Removed: removed}, err
	})
}

package group

import (
	"context"
	"encoding/json"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"

	"github.com/triremedb/trireme/engine/env"
	"github.com/triremedb/trireme/replication/transport"
)

// Status is how a member stands.
type Status struct {
	ID           uint64        `json:"id"`
	Term         uint64        `json:"term"`
	Leader       uint64        `json:"leader"` // 0: none known
	Writable     bool          `json:"writable"`
	Provisioning bool          `json:"provisioning"`
	DiskFull     bool          `json:"disk_full"`
	Index        uint64        `json:"index"`     // of the last entry in the log
	Committed    uint64        `json:"committed"` // index
	Applied      uint64        `json:"applied"`   // index
	Number       uint64        `json:"number"`    // of the last transaction applied
	Lag          time.Duration `json:"lag"`       // by the clocks of the leader and of this member; -1: unknown
	Error        string        `json:"error,omitempty"`
}

// Follower is a member as its leader sees it.
type Follower struct {
	Member
	Match  uint64 // index up to which it has the log
	State  string // probe, replicate, snapshot
	Active bool   // heard of within the election timeout
}

// Status returns how this node stands.
func (n *Node) Status() Status { return n.status() }

func (n *Node) status() Status {
	s := Status{ID: n.id.id, Lag: -1}
	c, err := n.running()
	if err != nil {
		s.Provisioning = err == ErrProvisioning
		s.Error = err.Error()
		return s
	}
	r := c.currentRole()
	csn, pos := c.engine.Applied()
	s.Term, s.Leader, s.Writable, s.DiskFull = r.term, r.leader, c.serving.Load() != 0, c.diskFull.Load()
	s.Provisioning = n.provisioning.active()
	s.Index, s.Applied, s.Number = c.binlog.LastIndex(), pos.Index, csn
	s.Committed = c.committed.Load()
	if lag := c.lag(); lag < 1<<62 {
		s.Lag = lag
	}
	return s
}

func encodeStatus(s Status) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		return nil // a struct of plain fields
	}
	return b
}

// Followers returns what the leader knows of the others; nil elsewhere.
func (n *Node) Followers() []Follower {
	c, err := n.running()
	if err != nil {
		return nil
	}
	var out []Follower
	done := c.env.NewParker()
	if !c.inbox.call(func() { out = c.raft.followers(); done.Unpark() }) {
		return nil
	}
	done.Park()
	return out
}

func (t *raftTask) followers() []Follower {
	if !t.role.leads {
		return nil
	}
	var out []Follower
	members := t.n.membership.current()
	t.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) {
		for _, m := range members {
			if m.ID == id && id != t.n.opt.ID {
				out = append(out, Follower{Member: m, Match: pr.Match, State: pr.State.String(), Active: pr.RecentActive})
			}
		}
	})
	return out
}

// GroupStatus asks all members how they stand. Who does not answer in time has an
// Error.
func (n *Node) GroupStatus() []Status {
	members := n.Members()
	out := make([]Status, len(members))
	asking := env.NewGroup(n.opt.Env)
	for i, m := range members {
		if m.ID == n.id.id {
			out[i] = n.status()
			continue
		}
		asking.Go("status", func() {
			out[i] = Status{ID: m.ID, Lag: -1}
			b, err := n.transport.Ask(context.Background(), transport.Call{To: m.ID, Kind: askStatus, Timeout: n.opt.StatusTimeout})
			if err == nil {
				err = json.Unmarshal(b, &out[i])
			}
			if err != nil {
				out[i].Error = err.Error()
			}
		})
	}
	asking.Wait()
	return out
}

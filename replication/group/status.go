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
	ID           uint64 `json:"id"`
	Term         uint64 `json:"term"`
	Leader       uint64 `json:"leader"` // 0: none known
	Writable     bool   `json:"writable"`
	Provisioning bool   `json:"provisioning"`
	DiskFull     bool   `json:"disk_full"`
	Index        uint64 `json:"index"`     // of the last entry in the log
	Committed    uint64 `json:"committed"` // index
	Applied      uint64 `json:"applied"`   // index
	Number       uint64 `json:"number"`    // of the last transaction applied
	Lag
	Error string `json:"error,omitempty"`
}

// Lag is what a member has not applied yet of what the group has agreed on, as far as the
// node that tells it knows.
type Lag struct {
	// Time is the age of the last entry applied, by the clocks of the leader and of the
	// member; 0 if there is nothing to apply and the leader is heard; -1: unknown.
	Time    time.Duration `json:"lag"`
	Entries uint64        `json:"lag_entries"`
	Bytes   int64         `json:"lag_bytes"` // of the log; -1: the teller's log does not reach that far
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
	s := Status{ID: n.id.id, Lag: unknownLag}
	c, err := n.running()
	if err != nil {
		s.Provisioning = err == ErrProvisioning
		s.Error = err.Error()
		return s
	}
	r := c.currentRole()
	csn, pos := c.engine.Applied()
	s.Term, s.Leader, s.Writable, s.DiskFull = r.term, r.leader, c.writable(), c.diskFull.Load() || c.applier.Full()
	s.Provisioning = n.provisioning.active()
	s.Index, s.Applied, s.Number = c.binlog.LastIndex(), pos.Index, csn
	s.Committed = c.committed.Load()
	s.Lag = c.lag(s.Applied, s.Committed)
	if err := c.removal.err(); err != nil {
		s.Error = err.Error()
	}
	return s
}

// millis is the time in milliseconds; -1: unknown.
func (l *Lag) millis() int64 {
	if l.Time < 0 {
		return -1
	}
	return l.Time.Milliseconds()
}

var unknownLag = Lag{Time: -1, Bytes: -1}

// lag tells how far this member is behind. Between two words of the leader nobody tells the time.
func (c *core) lag(applied, committed uint64) Lag {
	l := Lag{Time: c.age()}
	switch {
	case l.Time > 1<<62:
		l.Time = -1
	case applied >= committed && l.Time <= 2*c.opt.MarkInterval:
		l.Time = 0
	}
	l.Entries, l.Bytes = c.between(applied, committed)
	return l
}

// between measures the log behind one entry up to another.
func (c *core) between(applied, committed uint64) (entries uint64, bytes int64) {
	if applied >= committed {
		return 0, 0
	}
	entries = committed - applied
	from, err := c.binlog.Position(applied + 1)
	if err != nil {
		return entries, -1
	}
	to, err := c.binlog.Position(min(committed, c.binlog.LastIndex()) + 1)
	if err != nil {
		return entries, -1
	}
	bytes = to.Offset - from.Offset
	for _, f := range c.binlog.Files() {
		if f.Number >= from.File && f.Number < to.File {
			bytes += f.Size
		}
	}
	return entries, bytes
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
			out[i] = Status{ID: m.ID, Lag: unknownLag}
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
	n.measure(out)
	return out
}

// measure holds the members against what the one that knows most has heard of.
func (n *Node) measure(members []Status) {
	c, err := n.running()
	if err != nil {
		return
	}
	committed := uint64(0)
	for i := range members {
		committed = max(committed, members[i].Committed)
	}
	for i := range members {
		if s := &members[i]; s.Error == "" {
			s.Lag.Entries, s.Lag.Bytes = c.between(s.Applied, committed)
		}
	}
}

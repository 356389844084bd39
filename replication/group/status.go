package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	DiskFull     bool   `json:"disk_full"` // it waits for space, or has no room to speak of (NoRoom)
	Index        uint64 `json:"index"`     // of the last entry in the log
	Committed    uint64 `json:"committed"` // index
	Applied      uint64 `json:"applied"`   // index
	Number       uint64 `json:"number"`    // of the last transaction applied
	Lag
	// DiskTotal is the size of the disk, and DiskFree what is free of it, in bytes; 0: nobody knows, or an older program does not say.
	DiskTotal uint64 `json:"disk_total,omitempty"`
	DiskFree  uint64 `json:"disk_free,omitempty"`
	// DiskStalled is for how long the disk of the log has not answered a call; 0: not for seconds.
	DiskStalled time.Duration `json:"disk_stalled,omitempty"`
	// ReadsFail is whether reads of the data's pages have failed within the last minute.
	ReadsFail bool `json:"reads_fail,omitempty"`
	// Undelivered is for how long what this member, which leads, has to send for the log has got to no majority, though a majority
	// answers its heartbeats; 0: it does, or this member does not lead.
	Undelivered time.Duration `json:"undelivered,omitempty"`
	// SeenLag is how far the member is behind as its leader sees it, see Behind; 0: less than two
	// seconds; -1: nobody says. GroupStatus tells it.
	SeenLag time.Duration `json:"seen_lag"`
	// Behind is what a leader that is asked by another member says of the others.
	Behind []Behind `json:"behind,omitempty"`
	Error  string   `json:"error,omitempty"`
	// Distrust says which certificate keeps the member that was asked from this one, of one that does not answer for that; empty: another reason.
	Distrust string `json:"distrust,omitempty"`
}

// Trouble says what is wrong with the disk or the network of a member that answers, as "has a full disk"; empty: nothing.
func (s *Status) Trouble() string {
	switch {
	case s.DiskFull:
		return "has a full disk"
	case s.DiskStalled > 0:
		return fmt.Sprintf("has a disk that has not answered for %v", s.DiskStalled.Round(time.Second))
	case s.ReadsFail:
		return "has a disk that fails to give back its data"
	case s.Undelivered > 0:
		return fmt.Sprintf("has a network that has carried its entries to no majority for %v", s.Undelivered.Round(time.Second))
	}
	return ""
}

// Lag is what a member has not applied yet of what the group has agreed on, as far as the
// node that tells it knows.
type Lag struct {
	// Time is how long ago what the member has was all that the group had; 0 if there is nothing to apply and the leader is heard; -1: unknown.
	Time    time.Duration `json:"lag"`
	Entries int64         `json:"lag_entries"` // -1: unknown
	Bytes   int64         `json:"lag_bytes"`   // of the log; -1: unknown, or the teller's log does not reach that far
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
	s := Status{ID: n.id.id, Lag: UnknownLag, SeenLag: -1}
	c, err := n.running()
	if err != nil {
		s.Provisioning = err == ErrProvisioning
		s.Error = err.Error()
		return s
	}
	r := c.currentRole()
	csn, pos := c.engine.Applied()
	s.Term, s.Leader, s.Writable = r.term, r.leader, c.writable()
	has := c.roomNow()
	s.DiskTotal, s.DiskFree, s.DiskFull = has.total, has.free, c.isFull() || NoRoom(has.total, has.free)
	s.DiskStalled, s.ReadsFail, s.Undelivered = c.stalled(), c.readsFail.Load(), c.undeliveredNow()
	s.Provisioning = n.provisioning.active()
	s.Index, s.Applied, s.Number = c.binlog.LastIndex(), pos.Index, csn
	s.Committed = c.committed.Load()
	s.Lag = c.lag(s.Applied, s.Committed)
	if err := c.removal.err(); err != nil {
		s.Error = err.Error()
	} else if s.Leader == raft.None {
		s.Error = n.elsewhere.text()
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

// UnknownLag is that of a member of which nothing is known.
var UnknownLag = Lag{Time: -1, Entries: -1, Bytes: -1}

// lag tells how far this member is behind. Between two words of the leader nobody tells the time; where
// there is no leader any more, nobody will.
func (c *core) lag(applied, committed uint64) Lag {
	l := Lag{Time: c.age()}
	switch {
	case l.Time > 1<<62:
		l.Time = -1
	case applied >= committed && l.Time <= 2*c.opt.MarkInterval && c.currentRole().leader != raft.None:
		l.Time = 0
	}
	l.Entries, l.Bytes = c.between(applied, committed)
	return l
}

// between measures the log behind one entry up to another.
func (c *core) between(applied, committed uint64) (entries, bytes int64) {
	if applied >= committed {
		return 0, 0
	}
	entries = int64(committed - applied)
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

// encodeStatus is for another member. Older programs cannot read that entries are unknown; the asker
// counts them itself.
func encodeStatus(s Status) []byte {
	s.Entries = max(0, s.Entries)
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
// Error, and the lag that the leader knows, if that answers.
func (n *Node) GroupStatus() []Status {
	out := n.askStatus(n.Members(), n.opt.StatusTimeout)
	if c, err := n.running(); err == nil {
		c.measure(out)
	}
	return out
}

// askStatus asks members how they stand.
func (n *Node) askStatus(members []Member, limit time.Duration) []Status {
	out := make([]Status, len(members))
	asking := env.NewGroup(n.opt.Env)
	for i, m := range members {
		if m.ID == n.id.id {
			out[i] = n.status()
			continue
		}
		asking.Go("status", func() {
			out[i] = n.statusOf(context.Background(), transport.Call{To: m.ID, Timeout: limit})
		})
	}
	asking.Wait()
	return out
}

// statusOf asks one node how it stands. If it does not answer the status has an Error.
func (n *Node) statusOf(ctx context.Context, call transport.Call) Status {
	s := Status{ID: call.To, Lag: UnknownLag}
	call.Kind = askStatus
	b, err := n.transport.Ask(ctx, call)
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		s.Error = err.Error()
		if e := (*transport.CertificateError)(nil); errors.As(err, &e) {
			s.Distrust = e.Error()
		}
	}
	return s
}

// measure holds the members against what the one that knows most has heard of, and adds what
// their leader knows of them.
func (c *core) measure(members []Status) {
	c.behind.told(members)
	known, term := c.behindNow(), c.currentRole().term
	committed := uint64(0)
	for i := range members {
		s := &members[i]
		if s.Behind != nil && (known == nil || s.Term > term) {
			known, term = s.Behind, s.Term
		}
		s.Behind, s.SeenLag = nil, -1
		committed = max(committed, s.Committed)
		if s.Leader == s.ID && s.Error == "" {
			s.SeenLag = 0
		}
	}
	for i := range members {
		s := &members[i]
		at := slices.IndexFunc(known, func(b Behind) bool { return b.ID == s.ID })
		if at >= 0 && !s.Provisioning {
			s.SeenLag = known[at].Lag
		}
		switch {
		case s.Error == "", s.Applied > 0: // it has answered
			s.Entries, s.Lag.Bytes = c.between(s.Applied, committed)
		case at >= 0 && known[at].Index > 0 && !s.Provisioning:
			s.Lag.Time = known[at].Lag
			s.Entries, s.Lag.Bytes = c.between(known[at].Index, committed)
		default:
			s.Lag = UnknownLag
		}
	}
}

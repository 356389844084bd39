package group

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/triremedb/trireme/replication/transport"
)

// The node is the transport's handler.
var _ transport.Handler = (*Node)(nil)

// Receive implements transport.Handler.
func (n *Node) Receive(from, incarnation uint64, msgs []*raftpb.Message) {
	c, err := n.running()
	if err != nil {
		return
	}
	if len(msgs) == 0 {
		return
	}
	for _, m := range msgs {
		if m.GetFrom() != from || m.GetTo() != n.id.id {
			return // the transport has checked; a message for somebody else is not for Raft
		}
	}
	c.processes.heard(from, incarnation, msgs)
	if c.inbox.fromPeers(msgs) > inlineMax {
		c.inbox.kick()
		return
	}
	if msgs[0].GetType() == raftpb.MsgAppResp && c.raft.turn() {
		c.finisher.turn() // what the answers have decided; heartbeats do not come this way
	}
	c.stepRaft(true)
}

// ReportUnreachable implements transport.Handler.
func (n *Node) ReportUnreachable(id uint64) {
	if c, err := n.running(); err == nil {
		c.inbox.call(func() { c.raft.raft.ReportUnreachable(id) })
	}
}

// ReportGone implements transport.Handler.
func (n *Node) ReportGone(_, incarnation uint64) {
	if c, err := n.running(); err == nil {
		c.processes.ended(incarnation)
		c.inbox.call(c.raft.checkLeader)
	}
}

// ReportRefused implements transport.Handler.
func (n *Node) ReportRefused(id uint64) {
	if c, err := n.running(); err == nil {
		c.inbox.call(func() { c.raft.refuses(id) })
	}
}

// ReportConnected implements transport.Handler.
func (n *Node) ReportConnected(id uint64) {
	n.elsewhere.over(id)
	if c, err := n.running(); err == nil {
		c.inbox.call(func() { c.raft.accepts(id) })
	}
}

// ReportReached implements [transport.Handler].
func (n *Node) ReportReached(id uint64) {
	if c, err := n.running(); err == nil {
		c.inbox.call(func() { c.raft.askAgain(id) })
	}
}

// ReportRejected implements transport.Handler.
func (n *Node) ReportRejected(id uint64, r *transport.Rejection) {
	if r.Reason == transport.ReasonRemoved {
		if c, err := n.running(); err == nil {
			c.removal.heard(c, id)
		}
		return
	}
	now := n.opt.Env.Monotonic()
	n.mu.Lock()
	last, told := n.rejected[id]
	again := told && last.text == r.Text && now-last.at < rejectedAgain
	if !again {
		n.rejected[id] = rejection{r.Text, now}
	}
	n.mu.Unlock()
	if again {
		return
	}
	args := []any{"member", id, "reason", r}
	switch r.Reason {
	case transport.ReasonDuplicateMember:
		args = append(args, "advice", n.elsewhere.heard(id, r.Text, n.transport.Addr(), n.id.id))
	case transport.ReasonOtherGroup:
		args = append(args, "advice", "of two groups one was replaced (trireme regroup, trireme restore): stop what is left of that one and empty its directories")
	}
	n.opt.Log.Warn("a member and this one do not talk to each other", args...)
}

// rejection is what was told of a member, and when.
type rejection struct {
	text string
	at   time.Duration
}

// rejectedAgain is how often the same rejection is told.
const rejectedAgain = time.Minute

// Kinds of questions between nodes.
const (
	askStatus      = "group/status"
	askLogFile     = "group/log/file"
	bulkLogFile    = "group/log/bytes"
	askFirst       = "group/first"
	askIdentity    = "group/identity"
	askProvisioned = "group/provisioned"
	askJoin        = "group/join"
	askYielded     = "group/yielded"
	askLarge       = "group/large"
	bulkSnapshot   = "group/snapshot"
)

// Answer implements transport.Handler.
func (n *Node) Answer(ctx context.Context, kind string, payload []byte) ([]byte, error) {
	switch kind {
	case askStatus:
		s := n.status()
		if c, err := n.running(); err == nil {
			s.Behind = c.behindNow()
		}
		return encodeStatus(s), nil
	case askLarge:
		c, err := n.running()
		if err != nil {
			return nil, err
		}
		return encodeLarge(c.largeHere()), nil
	case askProvisioned:
		from := transport.CallerFrom(ctx).Member
		c, err := n.running()
		if err == nil {
			c.inbox.call(func() { c.raft.raft.ReportSnapshot(from, raft.SnapshotFinish) })
		}
		return nil, err
	case askJoin:
		return n.letIn(ctx, payload)
	case askYielded:
		c, err := n.running()
		if err == nil {
			err = c.hearYielded(transport.CallerFrom(ctx).Member, payload)
		}
		return nil, err
	case askLogFile:
		c, err := n.running()
		if err != nil {
			return nil, err
		}
		return c.logFileOf(payload)
	case askIdentity:
		c, err := n.running()
		if err != nil {
			return nil, err
		}
		return c.identityOf(payload)
	case askFirst:
		c, err := n.running()
		if err != nil {
			return nil, err
		}
		return binary.LittleEndian.AppendUint64(nil, c.binlog.FirstIndex()), nil
	}
	if c, err := n.running(); err == nil {
		if answer, handled, err := c.bodies.HandleAsk(transport.CallerFrom(ctx).Member, kind, payload); handled {
			return answer, err
		}
	}
	return nil, fmt.Errorf("group: unknown question %q", kind)
}

// Bulk implements transport.Handler.
func (n *Node) Bulk(ctx context.Context, kind string, payload []byte, w transport.BulkWriter) error {
	c, err := n.running()
	if err != nil {
		return err
	}
	switch kind {
	case bulkLogFile:
		return c.sendLogFile(payload, w)
	case bulkSnapshot:
		return c.source.Answer(ctx, payload, w)
	}
	if handled, err := c.bodies.HandleBulk(ctx, transport.CallerFrom(ctx).Member, kind, payload, w); handled {
		return err
	}
	return fmt.Errorf("group: unknown kind of bulk data %q", kind)
}

package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/replication/transport"
	"github.com/triremedb/trireme/server/kubernetes"
)

// statefulSet is what a node in a pod of Kubernetes knows of the set that it belongs to. When a
// set is made smaller nobody tells its pods why they are stopped: whoever is stopped asks, and
// leaves the group if there will be no place for him.
type statefulSet struct {
	*kubernetes.Client
	name    string
	ordinal int // the pod's
}

const (
	// leaveTime is how long a node tries to leave; trireme server gives it 10 s.
	leaveTime  = 8 * time.Second
	leaveRetry = 100 * time.Millisecond
)

// newStatefulSet returns the set of this pod; nil, if it is of none.
func (n *Node) newStatefulSet() (*statefulSet, error) {
	name := n.cfg.String("kubernetes_statefulset")
	if name == "" {
		return nil, nil
	}
	set, ordinal, ok := kubernetes.Place(host(n.cfg))
	if !ok || set != name {
		return nil, fmt.Errorf("kubernetes_statefulset: report_host, %s, begins with no pod of %s", host(n.cfg), name)
	}
	c, err := kubernetes.NewClient(n.cfg.String("kubernetes_credentials"))
	if err != nil {
		return nil, fmt.Errorf("kubernetes_credentials: %w", err)
	}
	return &statefulSet{c, name, ordinal}, nil
}

// leaver is a node that is stopped for good.
type leaver struct {
	n   *Node
	set kubernetes.Set
}

// leaving says whether this node has to leave the group, and how; nil: it stays a member.
func (n *Node) leaving(ctx context.Context) *leaver {
	if n.set == nil || n.group == nil || n.group.Err() != nil {
		return nil
	}
	set, err := n.set.Set(ctx, n.set.name)
	if err != nil {
		n.log.Warn("whether this member is wanted any more is not known: it stays one", "error", err)
	}
	if err != nil || !set.Lasts || set.Has(n.set.ordinal) {
		return nil
	}
	n.log.Info("the StatefulSet has no place for this member any more: it leaves the group", "set", set.Name, "pods", set.End)
	return &leaver{n, set}
}

// successor is a voter that stays; 0: any.
func (l *leaver) successor() uint64 {
	if l == nil {
		return 0
	}
	return l.n.staying(l.set)
}

// staying is another voter whose pod a set is to have; 0: there is none.
func (n *Node) staying(set kubernetes.Set) uint64 {
	for _, m := range n.group.Members() {
		name, ordinal, ok := kubernetes.Place(m.Addr)
		if ok && name == set.Name && set.Has(ordinal) && !m.Learner && m.ID != n.group.ID() {
			return m.ID
		}
	}
	return 0
}

// leave has the leader take this member out of the group.
func (l *leaver) leave() {
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	for {
		err := l.try(ctx)
		if l.left() {
			l.n.log.Info("this member has left the group")
			return
		}
		select {
		case <-ctx.Done():
			l.n.log.Warn("this member could not leave the group: it stays in it, and its leader takes it out once the others can do without it", "member",
				l.n.group.ID(), "error", err)
			return
		case <-time.After(leaveRetry):
		}
	}
}

func (l *leaver) left() bool {
	if errors.Is(l.n.group.Err(), group.ErrRemoved) {
		return true
	}
	all := l.n.group.Members()
	for _, m := range all {
		if m.ID == l.n.group.ID() {
			return false
		}
	}
	return len(all) > 0
}

func (l *leaver) try(ctx context.Context) error {
	leader, ok := l.n.group.Leader()
	switch {
	case !ok:
		return errors.New("nobody leads the group")
	case leader.ID == l.n.group.ID():
		return l.n.group.Transfer(l.successor())
	}
	// The answer may not come: whoever has left is not talked to.
	_, err := l.n.peers.Ask(ctx, transport.Call{To: leader.ID, Kind: askLeave, Timeout: time.Second})
	return err
}

// letGo takes a member out of the group that has asked for it.
func (n *Node) letGo(ctx context.Context) ([]byte, error) {
	caller := transport.CallerFrom(ctx)
	if !n.isReady() || caller.Member == 0 || caller.Group != transport.GroupID(n.group.Group()) {
		return nil, &transport.Failure{Text: "only members leave the group"}
	}
	if err := n.admin.Leave(ctx, caller.Member); err != nil {
		return nil, &transport.Failure{Text: err.Error()}
	}
	return nil, nil
}

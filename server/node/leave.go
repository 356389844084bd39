package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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

// sets are the names of the StatefulSets that the group runs in.
func (n *Node) sets() []string { return append(n.cfg.List("kubernetes_statefulsets"), n.set.name) }

// askSet asks Kubernetes what one of them is to have.
func (n *Node) askSet(ctx context.Context, name string) (kubernetes.Set, error) {
	return n.set.SetAmong(ctx, name, n.sets())
}

// leaving is the set that has no place for this node any more, because of which it has to leave the group; nil: it
// stays a member.
func (n *Node) leaving(ctx context.Context) *kubernetes.Set {
	if n.set == nil || n.group == nil || n.group.Err() != nil {
		return nil
	}
	set, err := n.askSet(ctx, n.set.name)
	switch known := n.noPlace.Load(); {
	case err == nil:
	case known != nil: // and the leader may have let it go for that
		set = *known
	default:
		n.log.Warn("whether this member is wanted any more is not known: it stays one", "error", err)
		return nil
	}
	if !set.Lasts || set.Has(n.set.ordinal) {
		return nil
	}
	n.log.Info("the StatefulSet has no place for this member any more: it leaves the group", "set", set.Name, "pods", set.End)
	return &set
}

// handOn hands leadership to the voter that knows most, of those that have space if some have none; where this node
// leaves because of a set, to one that stays, if there is one that can take over.
func (n *Node) handOn(leaves *kubernetes.Set) error {
	if leaves != nil && (n.handTo(leaves) == nil || !n.group.Writable()) {
		return nil
	}
	if to := heir(n.group.ID(), n.group.Members(), n.group.GroupStatus()); to != 0 && n.group.Transfer(to) == nil || !n.group.Writable() {
		return nil
	}
	return n.group.Transfer(0)
}

// handTo hands leadership to a voter whose pod a set is to have.
func (n *Node) handTo(set *kubernetes.Set) error {
	err := errors.New("no other voter has a place in the StatefulSet")
	for _, id := range n.staying(set) {
		if err = n.group.Transfer(id); err == nil || !n.group.Writable() {
			return nil
		}
	}
	return err
}

// staying are the other voters whose pods a set is to have, the best first.
func (n *Node) staying(set *kubernetes.Set) (ids []uint64) {
	for _, m := range successors(n.group.Followers(), n.group.GroupStatus()) {
		name, ordinal, ok := kubernetes.Place(m.Addr)
		if ok && name == set.Name && set.Has(ordinal) && !m.Learner {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// successors sorts members: those that their leader hears before others, then those whose disks are well, then whoever has more of the log.
func successors(all []group.Follower, states []group.Status) []group.Follower {
	unfit := func(f group.Follower) int {
		switch {
		case !f.Active:
			return 2
		case slices.ContainsFunc(states, func(s group.Status) bool { return s.ID == f.ID && illDisk(&s) }):
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b group.Follower) int {
		return cmp.Or(cmp.Compare(unfit(a), unfit(b)), cmp.Compare(b.Match, a.Match))
	})
	return all
}

// leave has the leader take this member out of the group: why it is still in it; nil: it has left.
func (n *Node) leave(ctx context.Context, set *kubernetes.Set) error {
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	for {
		err := n.tryLeave(ctx, set)
		if err == nil || n.left() {
			n.log.Info("this member has left the group")
			if err := n.group.HasLeft(); err != nil {
				n.log.Warn("the next process will not know that this member has left", "error", err)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the member cannot leave the group: %w", err)
		case <-time.After(leaveRetry):
		}
	}
}

func (n *Node) left() bool {
	if errors.Is(n.group.Err(), group.ErrRemoved) {
		return true
	}
	all := n.group.Members()
	for _, m := range all {
		if m.ID == n.group.ID() {
			return false
		}
	}
	return len(all) > 0
}

// tryLeave asks once; nil: this member has left.
func (n *Node) tryLeave(ctx context.Context, set *kubernetes.Set) error {
	leader, ok := n.group.Leader()
	switch {
	case !ok:
		return errNobodyLeads
	case leader.ID == n.group.ID():
		return cmp.Or(n.handOn(set), errors.New("this member leads the group"))
	}
	// The answer may not come: whoever has left is not talked to.
	_, err := n.peers.Ask(ctx, transport.Call{To: leader.ID, Kind: askLeave, Timeout: time.Second})
	return err
}

// letGo takes a member out of the group that has asked for it.
func (n *Node) letGo(ctx context.Context) ([]byte, error) {
	caller := transport.CallerFrom(ctx)
	if !n.isReady() || !n.fromMember(ctx) {
		return nil, &transport.Failure{Text: "only members leave the group"}
	}
	if err := n.admin.Leave(ctx, caller.Member); err != nil {
		return nil, &transport.Failure{Text: err.Error()}
	}
	return nil, nil
}

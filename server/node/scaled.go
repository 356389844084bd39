package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/server/kubernetes"
)

// scaled keeps the group to the StatefulSets that it runs in while this node leads: members whose pods are
// not to be there any more are taken out if they do not leave by themselves, and the claims of
// those that have left are deleted (decision 0034).
//
// A claim goes only if its pod has no place in the set, the set is to have pods at all, and the group has no
// member of that pod's name. What the group has is asked after a read that the lease or a majority
// has confirmed: this node still leads.
type scaled struct {
	n      *Node
	beyond map[uint64]time.Time // members without a place: since when that is known
	said   map[uint64]string    // why one of them cannot be taken out
	clean  map[string]int       // sets: beyond that number no claim is left
}

const (
	// scaledEvery is how often the leader looks.
	scaledEvery = 5 * time.Second
	// scaledLimit is how long a look may take: members that stand still do not answer.
	scaledLimit = 30 * time.Second
	// scaledPatience is for how long a member that does not answer is left to leave by itself. One that does
	// has the time besides that its statements may take.
	scaledPatience = 20 * time.Second
	// claimsMax is how many claims of a set are looked for: those that the chart lets pods delete.
	claimsMax = 32
)

func newScaled(n *Node) *scaled {
	s := &scaled{n: n}
	s.forget()
	return s
}

// look is called once in a while.
func (s *scaled) look() {
	n := s.n
	if !n.serves() {
		s.forget()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scaledLimit)
	defer cancel()
	go func() {
		select {
		case <-n.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	sets := map[string]kubernetes.Set{}
	for _, name := range append(n.cfg.List("kubernetes_statefulsets"), n.set.name) {
		set, err := n.set.Set(ctx, name)
		if err != nil {
			n.log.Warn("Kubernetes does not say how many members there are to be", "error", err)
			return
		}
		sets[name] = set
	}
	if _, err := n.group.ReadPoint(group.ReadOptions{Consistency: group.Strong}); err != nil {
		return
	}
	members := n.group.Members()
	s.takeOut(ctx, sets, members)
	if n.cfg.Bool("kubernetes_delete_claims") {
		s.deleteClaims(ctx, sets, members)
	}
}

// forget begins anew: another leader has looked after the sets meanwhile.
func (s *scaled) forget() {
	s.beyond, s.said, s.clean = map[uint64]time.Time{}, map[uint64]string{}, map[string]int{}
}

// takeOut takes members out of the group that have no place, if they do not leave by themselves:
// they may be frozen, or gone.
func (s *scaled) takeOut(ctx context.Context, sets map[string]kubernetes.Set, members []group.Member) {
	n, now := s.n, time.Now()
	beyond := map[uint64]time.Time{}
	var states []group.Status
	for _, m := range members {
		name, ordinal, ok := kubernetes.Place(m.Addr)
		set := sets[name]
		if !ok || !set.Lasts || set.Has(ordinal) {
			continue
		}
		since, known := s.beyond[m.ID]
		if !known {
			since = now
		}
		beyond[m.ID] = since
		if now.Sub(since) < scaledPatience {
			continue
		}
		if states == nil {
			states = n.group.GroupStatus()
		}
		answers := slices.ContainsFunc(states, func(st group.Status) bool { return st.ID == m.ID && st.Error == "" })
		if answers && now.Sub(since) < scaledPatience+n.cfg.Duration("shutdown_timeout") {
			continue
		}
		var err error
		if m.ID == n.group.ID() {
			if to := n.staying(set); to != 0 {
				err = n.group.Transfer(to) // which takes this one out
			}
		} else if err = n.admin.Leave(ctx, m.ID); err == nil {
			n.log.Warn("a member that the StatefulSet has no place for was taken out of the group: it did not leave by itself", "member", m.ID, "address", m.Addr)
			n.tellOf(ctx, &set, "MemberRemoved", fmt.Sprintf("member %d at %s, which the set has no place for, did not leave by itself and was taken out of the group", m.ID, m.Addr))
		}
		if err != nil && err.Error() != s.said[m.ID] {
			s.said[m.ID] = err.Error()
			n.log.Warn("a member that the StatefulSet has no place for cannot leave yet; it stays, and its data as well", "member", m.ID, "address", m.Addr, "error", err)
			n.tellOf(ctx, &set, "MemberStays", fmt.Sprintf("member %d at %s has no place in the set and cannot leave the group yet: %v", m.ID, m.Addr, err))
		}
	}
	s.beyond = beyond
}

// deleteClaims deletes the claims of members that have left.
func (s *scaled) deleteClaims(ctx context.Context, sets map[string]kubernetes.Set, members []group.Member) {
	used := map[string]bool{}
	for _, m := range members {
		name, ordinal, ok := kubernetes.Place(m.Addr)
		if _, known := sets[name]; !ok || !known {
			s.n.log.Warn("no claims are deleted: a member is of no known StatefulSet", "member", m.ID, "address", m.Addr)
			return
		}
		used[fmt.Sprintf("%s-%d", name, ordinal)] = true
	}
	for name, set := range sets {
		end, swept := s.clean[name]
		switch {
		case !set.Lasts:
			delete(s.clean, name)
		case swept && end <= set.End, s.sweep(ctx, &set, used):
			s.clean[name] = set.End
		default:
			delete(s.clean, name)
		}
	}
}

// sweep deletes the claims behind a set's last pod; true: none is left.
func (s *scaled) sweep(ctx context.Context, set *kubernetes.Set, used map[string]bool) (clean bool) {
	n := s.n
	clean = true
	for ordinal := set.End; ordinal < claimsMax; ordinal++ {
		if used[fmt.Sprintf("%s-%d", set.Name, ordinal)] {
			clean = false
			continue
		}
		deleted, err := n.set.DeleteClaim(ctx, set.Name, ordinal)
		switch {
		case err != nil:
			n.log.Warn("the claim of a member that has left cannot be deleted", "set", set.Name, "pod", ordinal, "error", err)
			return false
		case deleted:
			clean = false // until it is gone
			n.log.Info("the claim of a member that has left the group is deleted", "set", set.Name, "pod", ordinal)
		}
	}
	return clean
}

// tellOf makes an event of a set.
func (n *Node) tellOf(ctx context.Context, set *kubernetes.Set, reason, message string) {
	if err := n.set.Tell(ctx, set, reason, message); err != nil {
		n.log.Warn("an event cannot be told to Kubernetes", "reason", reason, "error", err)
	}
}

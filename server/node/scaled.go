package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/triremedb/trireme/replication/group"
	"github.com/triremedb/trireme/server/kubernetes"
)

// scaled keeps the group to the StatefulSets that it runs in while this node leads: members whose pods are
// not to be there any more are taken out if they do not leave by themselves, and the claims of
// those that have left are deleted (decision 0034).
//
// A claim goes only if this node, or a process of it before, has seen its pod's name among the group's members, and that member has left
// in a way that a majority cannot forget any more; if no other member has the name; and if the set is to
// have pods, and not that one, or is gone for good. A claim of which none of that is known stays: it may hold what another
// group needs, or what this one had before it was lost.
type scaled struct {
	n      *Node
	seen   map[uint64]seenMember // pods, whether this node leads or not
	unkept bool                  // seenName could not be written
	beyond map[uint64]time.Time  // members without a place: since when that is known
	said   map[uint64]string     // why one of them cannot be taken out
	next   time.Time             // when Kubernetes is to be asked

	handAgain time.Time // when another may be asked to lead again
}

// seenMember is one that was a member of the group while this node looked.
type seenMember struct {
	addr string
	left bool      // for good, as a majority knows
	gone time.Time // since when it is no member; zero: it is one
}

// seenKept is for how long the claim of one that is gone may be deleted. Whoever leads does that soon: a claim of
// that name that is there much later may be another one, made for a pod that is to come.
const seenKept = 24 * time.Hour

const (
	// noticeEvery is how often each member looks who is in the group, and scaledEvery how often the leader
	// asks Kubernetes who is to be.
	noticeEvery = time.Second
	scaledEvery = 5 * time.Second
	// scaledLimit is how long a look may take: members that stand still do not answer.
	scaledLimit = 30 * time.Second
	// scaledPatience is for how long a member that does not answer is left to leave by itself. One that does
	// has the time besides that its statements may take.
	scaledPatience = 20 * time.Second
)

// newScaled is called when the node's group is open: who is in it then may have left a moment later.
func newScaled(n *Node) *scaled {
	s := &scaled{n: n, seen: map[uint64]seenMember{}}
	s.forget()
	if err := s.readSeen(); err != nil {
		n.log.Warn("whose claims are to go is not known from before", "file", seenName, "error", err)
	}
	s.notice()
	return s
}

// notice notes which pods are in the group, and forgets whose names others have now.
func (s *scaled) notice() {
	members := s.n.group.Members()
	changed := forgetGone(s.seen, members, time.Now()) || s.unkept
	for _, m := range members {
		if _, _, ok := s.pod(m.Addr); ok && s.seen[m.ID] != (seenMember{addr: m.Addr}) {
			s.seen[m.ID] = seenMember{addr: m.Addr}
			changed = true
		}
	}
	for id, m := range s.seen {
		if used := s.used(m.addr); used != 0 && used != id {
			delete(s.seen, id)
			changed = true
		}
	}
	if changed {
		s.keepSeen()
	}
}

// forgetGone notes since when some are gone, and forgets those for which that is long ago.
func forgetGone(seen map[uint64]seenMember, members []group.Member, now time.Time) (changed bool) {
	for id, m := range seen {
		is := slices.ContainsFunc(members, func(o group.Member) bool { return o.ID == id })
		switch {
		case is == m.gone.IsZero() && (is || now.Sub(m.gone) <= seenKept):
			continue
		case is:
			m.gone = time.Time{}
			seen[id] = m
		case m.gone.IsZero():
			m.gone = now
			seen[id] = m
		default:
			delete(seen, id)
		}
		changed = true
	}
	return changed
}

// look is called once in a while.
func (s *scaled) look() {
	n := s.n
	s.notice()
	if !n.serves() {
		s.forget()
		return
	}
	now := time.Now()
	if now.Before(s.next) {
		return
	}
	s.next = now.Add(scaledEvery)
	ctx, cancel := n.untilStopping(scaledLimit)
	defer cancel()
	sets := map[string]kubernetes.Set{}
	for _, name := range n.sets() {
		if _, asked := sets[name]; asked {
			continue
		}
		set, err := n.askSet(ctx, name)
		if err != nil {
			n.log.Warn("Kubernetes does not say how many members there are to be", "error", err)
			return
		}
		sets[name] = set
	}
	s.takeOut(ctx, sets)
	if n.cfg.Bool("kubernetes_delete_claims") {
		s.deleteClaims(ctx, sets)
	}
}

// pod is the pod that an address is of, if it is one of the sets in this node's own domain.
func (s *scaled) pod(addr string) (set string, ordinal int, ok bool) {
	at, _ := splitAddr(addr)
	_, domain, _ := strings.Cut(at, ".")
	_, own, _ := strings.Cut(host(s.n.cfg), ".")
	set, ordinal, ok = kubernetes.Place(addr)
	return set, ordinal, ok && domain == own && slices.Contains(s.n.sets(), set)
}

// place is pod, with what Kubernetes says of its set.
func (s *scaled) place(addr string, sets map[string]kubernetes.Set) (set kubernetes.Set, ordinal int, ok bool) {
	name, ordinal, ok := s.pod(addr)
	return sets[name], ordinal, ok
}

// forget begins anew: another leader has looked after the sets meanwhile.
func (s *scaled) forget() {
	s.beyond, s.said = map[uint64]time.Time{}, map[uint64]string{}
}

// takeOut takes members out of the group that have no place, if they do not leave by themselves:
// they may be frozen, or gone.
func (s *scaled) takeOut(ctx context.Context, sets map[string]kubernetes.Set) {
	n, now := s.n, time.Now()
	beyond := map[uint64]time.Time{}
	var states []group.Status
	for _, m := range n.group.Members() {
		set, ordinal, ok := s.place(m.Addr, sets)
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
			err = s.handOver(now, set)
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

// handOver lets another lead, which takes this member out. Writes wait while one that answers is to take over
// and does not: so that is not tried at each look.
func (s *scaled) handOver(now time.Time, set kubernetes.Set) error {
	if now.Before(s.handAgain) {
		return nil
	}
	s.handAgain = now.Add(scaledPatience)
	return s.n.handTo(&set)
}

// deleteClaims deletes the claims of members that have left.
func (s *scaled) deleteClaims(ctx context.Context, sets map[string]kubernetes.Set) {
	n := s.n
	for id, m := range s.seen {
		set, ordinal, ok := s.place(m.addr, sets)
		if !ok || s.used(m.addr) != 0 || !set.Lasts || set.Has(ordinal) || !n.group.Left(id) {
			continue
		}
		if !m.left {
			if err := n.group.Remove(id); err != nil { // which says that the group cannot forget it any more
				n.log.Debug("whether a member has left for good is not known yet", "member", id, "error", err)
				continue
			}
			m.left = true
			s.seen[id] = m
		}
		claim, found, err := n.set.Claim(ctx, set.Name, ordinal)
		if err == nil && (!found || claim.Goes) {
			delete(s.seen, id)
			s.keepSeen()
			continue
		}
		if err == nil {
			// All that took its time; so may the call, and the pod come back with another claim of the name.
			now, asked := n.askSet(ctx, set.Name)
			if asked != nil || !now.Lasts || now.Has(ordinal) || s.used(m.addr) != 0 || !n.serves() {
				return
			}
			err = n.set.DeleteClaim(ctx, &claim)
		}
		if err != nil {
			n.log.Warn("the claim of a member that has left cannot be deleted", "set", set.Name, "pod", ordinal, "error", err)
			continue
		}
		n.log.Info("the claim of a member that has left the group is deleted", "set", set.Name, "pod", ordinal)
	}
}

// used is the member at an address; 0: there is none.
func (s *scaled) used(addr string) uint64 {
	for _, m := range s.n.group.Members() {
		if m.Addr == addr {
			return m.ID
		}
	}
	return 0
}

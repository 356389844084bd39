package node

import "time"

// relays ends sessions whose client is at one member and whose transactions are at
// another, when the two have lost each other. Members that stop tell their sessions
// themselves; a network that is cut ends no connection for minutes, while the client
// waits at one end and locks are held at the other.
type relays struct {
	n       *Node
	leader  uint64 // 0: none is known
	changed time.Time
	dropped bool // what goes to others than the leader has been, since
	looked  time.Time
	silent  map[uint64]time.Time // followers that this leader has not heard, since when
}

const (
	// relayGrace is how long a leader has, after another is known, to end its sessions: it
	// does so at once if it can be reached.
	relayGrace = 250 * time.Millisecond
	// orphanGrace is how long a member may know no leader, or a leader not hear a member,
	// until their sessions end: longer than an election takes.
	orphanGrace = 3 * time.Second
	relayEvery  = 500 * time.Millisecond
)

// look is called often, by one task. It reports whether it has something to do soon.
func (r *relays) look(now time.Time) (waits bool) {
	leader, _ := r.n.group.Leader()
	if leader.ID != r.leader {
		r.leader, r.changed, r.dropped = leader.ID, now, false
	}
	due := now.Sub(r.looked) >= relayEvery
	grace := relayGrace
	if r.leader == 0 {
		grace = orphanGrace
	}
	if now.Sub(r.changed) >= grace && (due || !r.dropped) {
		r.n.door.DropRelays(r.leader)
		r.dropped = true
	}
	if !due {
		return !r.dropped
	}
	r.looked = now
	for _, member := range r.lost(now) {
		r.n.door.DropFrom(member)
	}
	return !r.dropped
}

// lost are the members that this node leads, and has not heard for too long.
func (r *relays) lost(now time.Time) (lost []uint64) {
	silent := map[uint64]time.Time{}
	for _, f := range r.n.group.Followers() {
		if f.Active {
			continue
		}
		since, known := r.silent[f.ID]
		if !known {
			since = now
		}
		silent[f.ID] = since
		if now.Sub(since) >= orphanGrace {
			lost = append(lost, f.ID)
		}
	}
	r.silent = silent
	return lost
}

package group

import (
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/quorum"
	"go.etcd.io/raft/v3/tracker"
)

// undelivered is what a leader does about a network that carries its heartbeats and loses its entries: larger packets are
// lost on the way (a tunnel or an interface with a smaller MTU, whose messages about that are filtered), or the connections for entries cannot be
// made. Its heartbeats are answered, so that nobody stands for election, and no COMMIT ends.
//
// That an entry waits for long proves nothing: disks and networks are slow, and members receive snapshots. What
// proves it is the transport's word (PeerStatus.Undelivered): connections for entries were made and given up, and nothing that was
// sent on them has arrived, while the member at the other end answers heartbeats. If those members are what a majority
// lacks, this member leads in vain.
//
// So it hands over, if the others are a majority without it: their log is shorter than this member's, so that they are
// elected by their own votes or not at all. Raft tells a member to take over once that has the whole log, which does not get
// there; so the word to take over, which is small, is sent without it (transferRequest.unmet). What this member had proposed is in doubt, as after any loss
// of the lead. Where this member is needed it leads on, with its lease: the others could agree on nothing without it.
//
// Who has handed over for this lets the others stand for election first for a while (stand.go): as a follower it sends nothing
// large, and does not learn whether that would arrive.
type undelivered struct {
	agreed uint64                   // up to where the group had agreed at the last look
	since  time.Duration            // when it had agreed on that, with entries behind it; 0: nothing waits
	last   time.Duration            // when was looked
	heard  map[uint64]time.Duration // when the others answered last, while something waits
	seen   time.Duration            // when entries were seen not to arrive, last
	said   bool                     // the log has
	gave   time.Duration            // when this member handed over last; 0: not of late
	handOvers
}

const (
	// undeliveredFor is for how long entries get to no majority until a leader hands over. A connection is given up after
	// two seconds; the one that takes its place has the rest.
	undeliveredFor = 3 * time.Second
	// undeliveredOver is after what time in which that was not seen the pauses between attempts begin anew. Where no path carries
	// entries the others lead meanwhile, one after the other, and each keeps the lead for up to handOverPauseMax.
	undeliveredOver = 4 * handOverPauseMax
	// undeliveredAdvice is what the log says to the operator.
	undeliveredAdvice = "the network from this node to these members loses larger packets, or connections between them: compare " +
		"ping -M do -s 1400 and ping -s 64, and see to the MTU of each interface and tunnel on the way, and to what filters ICMP: docs/operations-group.md"
)

// undeliveredLimit is undeliveredFor, or longer where elections take longer.
func (o *Options) undeliveredLimit() time.Duration {
	return max(undeliveredFor, 4*time.Duration(o.ElectionTicks)*o.Tick)
}

// undeliveredNow is for how long this member's entries have got to no majority, as far as is known; 0: they do, or it does not lead.
func (c *core) undeliveredNow() time.Duration {
	if since := c.undelivered.Load(); since != 0 {
		return c.env.Monotonic() - time.Duration(since)
	}
	return 0
}

// tick looks whether entries arrive, and hands over if that has to be.
func (u *undelivered) tick(t *raftTask, now time.Duration) {
	u.handOvers.tick(t)
	limit, agreed := t.n.opt.undeliveredLimit(), t.n.agreed.Load()
	stood := u.last != 0 && now-u.last >= limit/2 // stopped, frozen with its container or machine
	waits := t.role.leads && t.bounds.last > agreed
	switch {
	case !waits:
		u.since, u.heard = 0, nil
	case u.since == 0 || stood || agreed != u.agreed:
		u.since = now
	}
	u.last, u.agreed = now, agreed
	if u.gave != 0 && now-u.gave >= handOverPauseMax {
		u.gave = 0
	}
	if now-u.seen >= undeliveredOver {
		u.forget()
	}
	if waits {
		u.hear(t, now)
	}
	if !waits || now-u.since < limit {
		u.isWell(t)
		return
	}
	lost, without := u.count(t, now, limit)
	if len(lost) == 0 {
		u.isWell(t)
		return
	}
	u.seen = now
	if t.n.undelivered.Store(int64(u.since)); !u.said {
		u.said = true
		t.n.log.Error("the entries of this leader get to no majority, though its heartbeats are answered: nothing can be committed",
			"for", (now - u.since).Round(time.Millisecond), "members", lost, "others_can_lead", without, "advice", undeliveredAdvice)
	}
	if without && u.due(t, now) {
		u.gave = now
		u.beginUnmet(t, now, "nothing of what this member sends for the log arrives at a majority, which answers its heartbeats")
	}
}

// isWell ends what was said.
func (u *undelivered) isWell(t *raftTask) {
	t.n.undelivered.Store(0)
	if u.said && t.role.leads {
		t.n.log.Info("the entries of this leader get to a majority again")
	}
	u.said = false
}

// hear notes who has answered of late. Raft forgets that once in an election timeout.
func (u *undelivered) hear(t *raftTask, now time.Duration) {
	if u.heard == nil {
		u.heard = map[uint64]time.Duration{}
	}
	t.raft.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) {
		if pr.RecentActive {
			u.heard[id] = now
		}
	})
}

// count returns the voters that answer and that entries do not get to, if a majority lacks just those, and whether the
// others are a majority without this member.
func (u *undelivered) count(t *raftTask, now, limit time.Duration) (lost []uint64, without bool) {
	silent := map[uint64]time.Duration{}
	for _, p := range t.n.transport.Status() {
		silent[p.ID] = p.Undelivered
	}
	s := t.raft.Status()
	reached, answer, others := map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}
	for id := range s.Config.Voters.IDs() {
		pr := s.Progress[id]
		self := id == t.n.opt.ID
		at, heard := u.heard[id]
		answers := self || heard && now-at <= time.Duration(t.n.opt.ElectionTicks)*t.tick
		// One that receives a snapshot is sent no entries, and one that has acknowledged what waits got it.
		away := answers && !self && pr.State != tracker.StateSnapshot && pr.Match <= u.agreed && silent[id] >= limit
		if away {
			lost = append(lost, id)
		}
		reached[id], answer[id], others[id] = answers && !away, answers, answers && !self
	}
	voters := s.Config.Voters
	if voters.VoteResult(reached) == quorum.VoteWon || voters.VoteResult(answer) != quorum.VoteWon {
		return nil, false
	}
	slices.Sort(lost)
	return lost, voters.VoteResult(others) == quorum.VoteWon
}

// gaveUp reports whether this member has handed over of late since its entries got to no majority.
func (u *undelivered) gaveUp() bool { return u.gave != 0 }

package group

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/triremedb/trireme/engine/binlog/log"
)

// lease is the leader's right to answer reads without asking: for as long as no
// other member can have been elected.
//
// Each tick, or each third one while it is idle, the leader sends heartbeats that carry a number (Raft's ReadIndex does
// just that). When a majority has answered number n the lease runs from the sending of
// n. That nobody else is elected before it ends follows from these:
//
//   - A voter that takes in a heartbeat promises the leader to vote for nobody else, itself
//     included, for as long as the heartbeat says, which is (ElectionTicks-1) ticks of the leader
//     (see promise). Each of that majority took n in after it was sent, so each promise ends that
//     long after that or later, by the voter's clock. The lease is four fifths of it by the
//     leader's clock: the clocks may differ in speed by as much.
//   - Another leader needs the votes of a majority, which shares a voter with the one that
//     answered. If the configuration has changed in between, so that the two share none, then
//     the candidate has heard that the change is committed from the leader itself, after n was
//     sent, and has promised as well.
//   - A voter that starts again does not know what it promised and acts as if it had heard a
//     leader just then.
//   - A promise ends early only when nobody will use the lease any more: the leader says
//     that it has given up the lease, the process that leads has ended, or the leader hands
//     over. That is said of a leadership, one member's in one term, and a lease that has
//     been given up does not come back in its term. A connection that is closed, silent or
//     refused says nothing of that.
//
// Both times are counted on a clock that does not stand still while the machine sleeps. A
// guest's clocks do stand still while its hypervisor has paused it, and no clock that a guest
// can read is promised to go on: a leader that is paused within its lease and resumed would
// answer from it. Options.NoLease is for machines to which that happens.
//
// A lease is of one term. What a node serves may still be that of an earlier term, which it
// has lost and not put an end to yet: to that the lease gives no right.
type lease struct {
	counts   time.Duration // the promise on which it counts
	length   time.Duration
	seq      uint64
	fresh    freshness
	freshAt  time.Duration          // when the round of fresh was sent, on the lease clock
	answered map[uint64]roundAnswer // by member: the last
	proven   time.Duration          // when fresh was, on the monotonic clock
	told     atomic.Int64           // proven of what the others were told last
	sent     []leaseRound           // oldest first
	held     bool                   // by a leader that is not handing over

	term  atomic.Uint64 // of the newest lease; it is set before until is
	until atomic.Int64  // on the lease clock; 0: no lease
	asked time.Duration // when the last round was sent, on the monotonic clock
	own   uint64        // rounds that Raft knows nothing of (ownRound)
}

type leaseRound struct {
	seq  uint64
	at   time.Duration
	wall int64 // by the leader's clock, microseconds since 1970
}

// freshness says that everything that the group had acknowledged by a time, on the leader's clock
// in microseconds since 1970, lies at most at an index. A leader tells it with each round: of the
// last one that a majority has answered, for that proves that it led when it was sent, and what had
// been committed by then. So followers know how old their data are where nothing is written.
type freshness struct {
	time  int64
	index uint64 // 0: nothing is known
}

// leaseLength is the lease that counts on a promise.
func leaseLength(counts time.Duration) time.Duration { return counts * 8 / 10 }

func (l *lease) start(t *raftTask) {
	l.until.Store(0)
	l.term.Store(t.role.term)
	l.sent, l.held, l.fresh = l.sent[:0], !t.n.opt.NoLease, freshness{}
	l.answered = map[uint64]roundAnswer{}
}

// drop ends the lease: leadership is lost, or about to be handed over.
func (l *lease) drop() {
	l.held = false
	l.sent = l.sent[:0]
	l.until.Store(0)
}

// compareEvery is how often a leader without a lease sends a round: followers compare what it carries with their logs, and know by it
// how old their data are.
const compareEvery = time.Second

// renew sends the next round. A leader without a lease sends one while it doubts whether it is a member, and now and then.
// One that has not committed an entry in its term yet sends none: Raft would keep the rounds until it
// has, which may be long where the others' disks are full.
func (l *lease) renew(t *raftTask) {
	now := t.env.Monotonic()
	if !l.held && (!t.role.leads || t.n.removal.err() == nil && now-l.asked < compareEvery) || !t.settled() {
		return
	}
	l.asked = now
	round := leaseRound{l.seq + 1, t.n.leaseClock(), t.env.Now().UnixMicro()}
	if t.n.opt.Sabotage == FreshUnproven && l.fresh.index != 0 {
		l.fresh, l.freshAt = freshness{t.env.Now().UnixMicro(), t.n.agreed.Load()}, t.n.leaseClock()
	}
	if !t.askRaft(readContext(t.n.incarnation, contextLease, round.seq)) {
		return
	}
	l.seq = round.seq
	l.sent = append(l.sent, round)
}

// confirmed notes that a majority has answered a round.
func (l *lease) confirmed(t *raftTask, s raft.ReadState) {
	kind, seq, ok := parseContext(t.n.incarnation, s.RequestCtx)
	if !ok || kind != contextLease {
		return
	}
	if s.Index < t.first || t.first == 0 {
		return // of an earlier leadership
	}
	t.n.removal.over() // a majority takes this member for its leader
	for len(l.sent) > 0 && l.sent[0].seq <= seq {
		if l.sent[0].seq == seq {
			if l.held {
				l.until.Store(int64(l.sent[0].at + l.length))
			}
			l.fresh, l.freshAt, l.proven = freshness{l.sent[0].wall, s.Index}, l.sent[0].at, t.env.Monotonic()
			t.n.words.add(s.Index, l.freshAt)
			t.n.hearFresh(l.fresh)
		}
		l.sent = append(l.sent[:0], l.sent[1:]...)
	}
}

// valid reports whether the lease of a term holds now.
//
// To use it, take the snapshot first and then ask.
func (l *lease) valid(now time.Duration, term uint64) bool {
	return int64(now) < l.until.Load() && l.term.Load() == term
}

// What a ReadIndex request is for.
const (
	contextLease = 'L'
	contextRead  = 'R'
)

// readContext makes the context of a request, which nobody else ever uses: an answer
// meant for an earlier process of this member must not be taken for one of ours.
func readContext(incarnation uint64, kind byte, seq uint64) []byte {
	b := make([]byte, 17)
	b[0] = kind
	binary.LittleEndian.PutUint64(b[1:], incarnation)
	binary.LittleEndian.PutUint64(b[9:], seq)
	return b
}

func parseContext(incarnation uint64, b []byte) (kind byte, seq uint64, ok bool) {
	if len(b) != 17 || binary.LittleEndian.Uint64(b[1:]) != incarnation {
		return 0, 0, false
	}
	return b[0], binary.LittleEndian.Uint64(b[9:]), true
}

// A heartbeat of a round carries freshness, the promise that the lease counts on, an entry's index, term and checksum (see
// alike), and its date (see words.go) behind Raft's context, which its receiver sends back: Raft reads a number of eight bytes there,
// and no further. Nothing more fits: longer ones do not travel.
const (
	roundSize = 8
	toldSize  = roundSize + 16 + 8
	alikeSize = toldSize + 24
	datedSize = alikeSize + 8
)

// tell puts what followers are told into a heartbeat, if it is of a round.
func (l *lease) tell(m *raftpb.Message, index uint64, of log.Identity) {
	if len(m.GetContext()) != roundSize {
		return
	}
	answer, counts := l.answered[m.GetTo()], time.Duration(0)
	if l.held {
		if counts = l.counts; l.fresh.index != 0 {
			l.told.Store(int64(l.proven))
		}
	}
	b := append(make([]byte, 0, datedSize), m.GetContext()...)
	for _, n := range [...]uint64{uint64(l.fresh.time), l.fresh.index, uint64(counts), index, of.Term, uint64(of.Checksum),
		date(answer.round, answer.at-l.freshAt)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	m.Context = b
}

// ownRound marks rounds that Raft knows nothing of. It sends none for a leader that is the only voter, nor before the leader has committed an
// entry; those who do not vote are to know all the same how old their data are, and everybody that this leader dates its words. Raft does not see
// the answers (hideOwn): it would take them for answers to rounds of its own.
const ownRound = 1 << 63

// numberOwn makes a heartbeat one of a round where Raft sends none.
func (t *raftTask) numberOwn(m *raftpb.Message) {
	if len(m.GetContext()) != 0 || !t.role.leads || m.GetTerm() != t.role.term {
		return
	}
	voters := 0
	t.raft.WithProgress(func(_ uint64, typ raft.ProgressType, _ tracker.Progress) {
		if typ == raft.ProgressTypePeer {
			voters++
		}
	})
	if voters == 1 || !t.settled() {
		t.lease.own++
		m.Context = binary.LittleEndian.AppendUint64(make([]byte, 0, roundSize), ownRound|t.lease.own)
	}
}

// hideOwn takes the number of such a round out of an answer.
func hideOwn(m *raftpb.Message) {
	if b := m.GetContext(); len(b) >= roundSize && binary.LittleEndian.Uint64(b)&ownRound != 0 {
		m.Context = nil
	}
}

// counted is the promise that the leader's lease counts on; 0: it does not say.
func counted(m *raftpb.Message) time.Duration {
	b := m.GetContext()
	if m.GetType() != raftpb.MsgHeartbeat || len(b) < toldSize {
		return 0
	}
	return min(max(time.Duration(binary.LittleEndian.Uint64(b[toldSize-8:toldSize])), 0), promiseMax)
}

// roundAnswer is that a member has answered a round, as the leader has heard at a time on its lease clock.
type roundAnswer struct {
	round uint64
	at    time.Duration
}

// answers notes that a member has answered a round of this leader.
func (l *lease) answers(m *raftpb.Message, now time.Duration) {
	b := m.GetContext()
	if len(b) < roundSize || l.answered == nil {
		return
	}
	// Of two kinds of rounds nobody knows which was sent first. An older answer that takes the place of a newer one tells less, and nothing wrong.
	round, last := binary.LittleEndian.Uint64(b), l.answered[m.GetFrom()].round
	if round > last || (round^last)&ownRound != 0 {
		l.answered[m.GetFrom()] = roundAnswer{round, now}
	}
}

// entryTime is the leader's clock in the last entry applied, and the entry's index. The applier
// writes it, and publishes it when the entry is to be seen by readers.
type entryTime struct {
	next  freshness
	time  atomic.Int64
	index atomic.Uint64
}

func (e *entryTime) publish() {
	e.index.Store(e.next.index) // first: a new time is never read with an older index
	e.time.Store(e.next.time)
}

func (e *entryTime) load() (time int64, index uint64) {
	time = e.time.Load()
	return time, e.index.Load()
}

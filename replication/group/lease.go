package group

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"go.etcd.io/raft/v3"
)

// lease is the leader's right to answer reads without asking: for as long as no
// other member can have been elected.
//
// Each tick the leader sends heartbeats that carry a number (Raft's ReadIndex does
// just that). When a majority has answered number n, none of that majority votes for
// another before its election timeout has passed since it got the heartbeat, which
// was after n was sent. So the lease runs from the sending of n, and is shorter than
// the election timeout by a tick, for the phase of the voter's clock, and a margin
// for clocks that run at different speeds. It is counted on a clock that does not
// stand still while the machine sleeps.
//
// Proof that the leader's process is gone is the one thing that lets others vote
// earlier; then there is nobody left to use the lease.
//
// A lease is of one term. What a node serves may still be that of an earlier term, which it
// has lost and not put an end to yet: to that the lease gives no right.
type lease struct {
	length time.Duration
	seq    uint64
	sent   []leaseRound // oldest first
	held   bool         // by a leader that is not handing over

	term  atomic.Uint64 // of the newest lease; it is set before until is
	until atomic.Int64  // on the lease clock; 0: no lease
}

type leaseRound struct {
	seq uint64
	at  time.Duration
}

// leaseLength is the lease for an election timeout of the given number of ticks.
func leaseLength(tick time.Duration, electionTicks int) time.Duration {
	return time.Duration(electionTicks-1) * tick * 8 / 10
}

func (l *lease) start(t *raftTask) {
	l.until.Store(0)
	l.term.Store(t.role.term)
	l.sent, l.held = l.sent[:0], true
	l.renew(t, 0)
}

// drop ends the lease: leadership is lost, or about to be handed over.
func (l *lease) drop() {
	l.held = false
	l.sent = l.sent[:0]
	l.until.Store(0)
}

// renew sends the next round.
func (l *lease) renew(t *raftTask, _ time.Duration) {
	if !l.held {
		return
	}
	l.seq++
	l.sent = append(l.sent, leaseRound{l.seq, t.n.leaseClock()})
	t.raft.ReadIndex(readContext(t.n.incarnation, contextLease, l.seq))
}

// confirmed notes that a majority has answered a round.
func (l *lease) confirmed(t *raftTask, s raft.ReadState) {
	kind, seq, ok := parseContext(t.n.incarnation, s.RequestCtx)
	if !ok || kind != contextLease || !l.held {
		return
	}
	for len(l.sent) > 0 && l.sent[0].seq <= seq {
		if l.sent[0].seq == seq {
			l.until.Store(int64(l.sent[0].at + l.length))
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

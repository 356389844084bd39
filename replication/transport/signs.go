package transport

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/triremedb/trireme/engine/env"
	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// errSilent says that a connection gave no sign of life, errDeaf that the peer lives and that
// nothing of what was sent to it arrives.
var (
	errSilent = errors.New("no sign of life from the peer")
	errDeaf   = errors.New("the peer receives nothing of what is sent to it on this connection")
)

// signs watches a connection by the signs of life that come on it: that they come, and what they
// say has arrived. It looks four times in the time allowed, so that a process that was itself
// stopped for that long has a chance to hear what came meanwhile.
//
// The connection is deaf if requests were sent, the peer does not know of them all, and from look
// to look no further byte has come to it. A slow network brings bytes of a long request, and a
// peer that reads no more since it has enough to do says so. Requests are counted and not
// bytes, to tell whether anything is on its way: a proxy between the nodes may frame them
// in another way.
type signs struct {
	sent  atomic.Uint64 // requests given to the stream, the hello not among them
	every time.Duration
	dead  context.CancelCauseFunc

	mu       sync.Mutex
	timer    *time.Timer
	seen     bool // a sign has come since the last look
	moved    bool // the peer has received something since then
	tells    bool // the peer says what it has received; programs from before do not
	received *pb.PeerReceived
	before   uint64 // sent at the last look
	missed   int    // looks without a sign
	stuck    int    // looks at which the connection was deaf
}

const signsMissed = 4

// watchSigns calls dead when no sign was seen for so long, or nothing has arrived.
func watchSigns(silence time.Duration, dead context.CancelCauseFunc) *signs {
	s := &signs{every: silence / signsMissed, dead: dead}
	s.mu.Lock()
	s.timer = time.AfterFunc(s.every, s.look)
	s.mu.Unlock()
	return s
}

// hear takes a sign of life; r is nil if nothing has changed since the one before.
func (s *signs) hear(r *pb.PeerReceived) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = true
	if r == nil {
		return
	}
	s.moved = s.moved || r.GetRequests() != s.received.GetRequests() || r.GetBytes() != s.received.GetBytes()
	s.tells, s.received = true, r
}

// look looks at what has come since it looked last.
func (s *signs) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.missed++
	if s.seen {
		s.missed = 0
	}
	s.stuck++
	if !s.tells || s.moved || s.received.GetBusy() || s.before <= s.received.GetRequests() {
		s.stuck = 0
	}
	s.seen, s.moved, s.before = false, false, s.sent.Load()
	switch {
	case s.missed >= signsMissed:
		s.dead(errSilent)
	case s.stuck >= signsMissed:
		s.dead(errDeaf)
	default:
		s.timer.Reset(env.UntilBeat(s.every))
	}
}

func (s *signs) stop() { s.timer.Stop() }

// receipts count what comes on a stream, for the signs of life that go the other way.
type receipts struct {
	conn     *serverConn
	requests atomic.Uint64
	busy     atomic.Bool
	told     state // by the last sign; only its sender's task uses it
}

// state is what a sign of life tells.
type state struct {
	requests, bytes uint64
	busy            bool
}

// news is what has changed since the last sign, nil if nothing has: the signs of an idle
// connection stay empty.
func (r *receipts) news() *pb.PeerReceived {
	now := state{r.requests.Load(), r.conn.bytes.Load(), r.busy.Load()}
	if now == r.told {
		return nil
	}
	r.told = now
	return &pb.PeerReceived{Requests: now.requests, Bytes: now.bytes, Busy: now.busy}
}

package transport

import (
	"context"
	"errors"
	"slices"
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
// to look nothing of them has come to it. A slow network brings bytes of a long request, and a
// peer that reads no more since it has enough to do says so. Requests are counted and not
// bytes, to tell whether anything is on its way: a proxy between the nodes may frame them
// in another way.
//
// Bytes count only as long as they can be the next request's. The length in front of a message has no
// checksum: one with a bit flipped makes the peer wait for bytes that take minutes to come on a connection
// with little to send, and take all requests for parts of one. So bytes that are more than twice the
// request's, with those of questions, are no progress; nor are any if a question that was asked
// behind a short request has been answered.
type signs struct {
	sent  atomic.Uint64 // requests given to the stream, the hello not among them
	every time.Duration
	dead  context.CancelCauseFunc
	link  *delivery // what this connection adds to what is known of its link

	mu       sync.Mutex
	timer    *time.Timer
	seen     bool // a sign has come since the last look
	moved    bool // the peer has received something since then
	tells    bool // the peer says what it has received; programs from before do not
	received *pb.PeerReceived
	counted  uint64 // bytes received, up to where they were taken for a sign that something arrives
	before   uint64 // sent at the last look
	missed   int    // looks without a sign
	stuck    int    // looks at which the connection was deaf

	long      []longRequest // on their way
	asked     uint64        // bytes of the questions that were asked on the connection
	answered  uint64        // of those of them that are over
	questions uint64        // that were asked
	// since is when the next request was sent, or before: nothing was on its way then, or the one before it had just arrived.
	since  struct{ bytes, answered, questions uint64 }
	passed bool // a question that was asked after it is answered
}

const signsMissed = 4

// longRequest is the number of a request, counted from 1, that has more bytes than a short one.
type longRequest struct {
	number uint64
	bytes  int
}

const (
	shortRequest = 256     // bytes; most that Raft says beside entries has fewer
	askOverhead  = 1 << 10 // more bytes than a question has besides its payload
	besides      = 1 << 10 // more bytes than pings and windows of a connection take
)

// sending notes that a request is given to the stream.
func (s *signs) sending(bytes int) {
	if bytes <= shortRequest {
		s.sent.Add(1)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	number := s.sent.Add(1)
	if s.tells { // whoever does not would never have it forgotten
		s.long = append(s.long, longRequest{number, bytes})
	}
}

// ask notes that a question is asked on the connection; the returned function says that it is over.
func (s *signs) ask(bytes int) (over func(answered bool)) {
	n := uint64(bytes + askOverhead)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked += n
	s.questions++
	number := s.questions
	return func(answered bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answered += n
		s.passed = s.passed || answered && number > s.since.questions
	}
}

// watchSigns calls dead when no sign was seen for so long, or nothing has arrived.
func watchSigns(silence time.Duration, link *delivery, dead context.CancelCauseFunc) *signs {
	s := &signs{every: silence / signsMissed, link: link, dead: dead}
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
	if !s.tells {
		s.counted = r.GetBytes()
	}
	if !s.tells || r.GetRequests() != s.received.GetRequests() {
		s.moved = true
		if s.tells {
			s.arrives(r)
		}
		s.begin(r)
		done := 0
		for done < len(s.long) && s.long[done].number <= r.GetRequests() {
			done++
		}
		s.long = slices.Delete(s.long, 0, done)
	} else if r.GetBytes() != s.received.GetBytes() && s.plausible(r) {
		s.moved = true
		if r.GetBytes()-s.counted > besides {
			s.arrives(r)
		}
	}
	if r.GetBusy() {
		s.arrives(r)
	}
	s.tells, s.received = true, r
}

// arrives notes that what is sent gets to the peer, as r says.
func (s *signs) arrives(r *pb.PeerReceived) {
	s.counted = r.GetBytes()
	s.link.arrived()
}

// begin begins to count for the next request.
func (s *signs) begin(r *pb.PeerReceived) {
	s.since.bytes, s.since.answered, s.since.questions, s.passed = r.GetBytes(), s.answered, s.questions, false
}

// plausible reports whether what has come since a request was received last can be part of the next one, and
// of questions.
func (s *signs) plausible(r *pb.PeerReceived) bool {
	next := shortRequest
	if len(s.long) > 0 && s.long[0].number == r.GetRequests()+1 {
		next = s.long[0].bytes
	} else if s.passed {
		return false
	}
	return r.GetBytes()-s.since.bytes <= 2*(uint64(next)+s.asked-s.since.answered)+besides
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
	if s.before <= s.received.GetRequests() {
		s.begin(s.received)
	}
	switch sent := s.sent.Load(); {
	case !s.tells, s.received.GetBusy():
		s.link.arrived() // of who does not tell no more is known than that the connection stands
	case sent == s.received.GetRequests():
		s.link.idle()
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

package transport

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// lengths finds gRPC's messages in what a dialer sends, by HTTP/2's frames, and flips a bit in the length of one.
type lengths struct {
	flip atomic.Bool // of the next short message
	skip int         // bytes until the next frame's header
	head []byte      // of a frame, as far as it has come
}

func newLengths() *lengths { return &lengths{skip: len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")} }

func (l *lengths) pass(b []byte) {
	for len(b) > 0 {
		n := min(l.skip, len(b))
		b, l.skip = b[n:], l.skip-n
		n = min(9-len(l.head), len(b))
		if l.head, b = append(l.head, b[:n]...), b[n:]; len(l.head) < 9 {
			return
		}
		length, kind := int(l.head[0])<<16|int(l.head[1])<<8|int(l.head[2]), l.head[3]
		l.head, l.skip = l.head[:0], length
		if kind == 0 && length > 5 && length < 1<<10 && len(b) >= 5 && int(b[3])<<8|int(b[4]) == length-5 && l.flip.CompareAndSwap(true, false) {
			b[2] ^= 4 // a quarter of a MiB more
		}
	}
}

// TestFlippedLength: a bit that is flipped in the length of a message makes the peer wait for bytes that do not come for minutes,
// and take what does come for parts of that message. The connection is made anew.
func TestFlippedLength(t *testing.T) {
	const limit = 600 * time.Millisecond
	for _, asks := range []bool{false, true} {
		a, b, m, deaf := through(t, limit)
		index := uint64(1000)
		send := func() {
			index++
			a.net.Send([]*raftpb.Message{heartbeat(1, 2, index)})
			if asks {
				_, _ = a.net.Ask(t.Context(), Call{To: 2, Kind: "echo", Payload: make([]byte, 2<<10)})
			}
			time.Sleep(10 * time.Millisecond)
		}
		arrives := func() bool {
			before := index
			for began := time.Now(); time.Since(began) < patience; send() {
				if b.kindsAfter(before) > 0 {
					return true
				}
			}
			return false
		}
		if !arrives() {
			t.Fatal("nothing arrives")
		}
		for _, c := range m.living() {
			c.lengths.flip.Store(true)
		}
		if began := time.Now(); !arrives() || deaf.count.Load() != 1 {
			t.Errorf("questions %v: after %v %d connections were given up", asks, time.Since(began), deaf.count.Load())
		}
	}
}

// Bytes are no progress if they are more than the next request and questions have, or if a question has overtaken
// a short request; what may be a long one's, or a question's, is.
func TestSignsOfLostRequests(t *testing.T) {
	const limit = 2 * time.Second
	for _, c := range []struct {
		what     string
		size     int    // of the request
		each     uint64 // bytes that come with each sign
		question int    // if not 0, that is asked for as long as the request is on its way
		answered bool
		want     error
	}{
		{"a short request, few bytes", 100, 20, 0, false, nil},
		{"a short request, many bytes", 100, 1000, 0, false, errDeaf},
		{"a long request", 60_000, 1000, 0, false, nil},
		{"more than a long request has", 1500, 1000, 0, false, errDeaf},
		{"a question", 100, 1000, 60_000, false, nil},
		{"an answered question", 100, 20, 1000, true, errDeaf},
		{"an answered question and a long request", 60_000, 1000, 1000, true, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			var why error
			s := watchSigns(limit, new(delivery), func(err error) { why = err })
			told := &pb.PeerReceived{Requests: 3, Bytes: 100}
			s.sent.Store(3)
			s.hear(told)
			for n := range 80 {
				if n == 20 { // all that came before is not this request's
					s.sending(c.size)
				}
				if n >= 20 && c.question != 0 {
					if over := s.ask(c.question); c.answered {
						over(true)
					} else if n > 20 {
						over(false)
					}
				}
				told = &pb.PeerReceived{Requests: 3, Bytes: told.GetBytes() + c.each}
				s.hear(told)
				time.Sleep(limit / signsMissed)
			}
			synctest.Wait()
			s.stop()
			if !errors.Is(why, c.want) {
				t.Errorf("%s: given up for %v, want %v", c.what, why, c.want)
			}
		})
	}
}

// What is on its way is forgotten when it has arrived, and not remembered for a peer that never tells.
func TestLongRequestsAreForgotten(t *testing.T) {
	for _, tells := range []bool{true, false} {
		s := watchSigns(time.Minute, new(delivery), func(error) {})
		if tells {
			s.hear(&pb.PeerReceived{})
		}
		for n := range uint64(1000) {
			s.sending(1 << 20)
			if tells {
				s.hear(&pb.PeerReceived{Requests: n, Bytes: n << 20}) // all but the newest
			}
		}
		s.stop()
		if want := map[bool]int{true: 1}[tells]; len(s.long) != want || cap(s.long) > 16 {
			t.Errorf("tells %v: %d requests are remembered, with room for %d", tells, len(s.long), cap(s.long))
		}
	}
}

package transport

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/triremedb/trireme/proto/trireme/v1"
)

// A link is given up when no sign of life was seen for its limit, and not before.
func TestSigns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 2 * time.Second
		began := time.Now()
		var died time.Duration
		s := watchSigns(limit, new(delivery), func(error) { died = time.Since(began) })
		defer s.stop()
		for range 50 {
			time.Sleep(limit / 2)
			s.hear(nil)
		}
		time.Sleep(10 * limit)
		synctest.Wait()
		if last := 25 * limit; died <= last+limit/2 || died > last+2*limit {
			t.Errorf("given up after %v, the last sign of life was after %v", died, last)
		}
	})
}

// A link is given up when signs of life come, requests were sent, and nothing arrives for its
// limit: not if bytes of a long one do, if the peer is busy, if nothing is on its way, or if the
// peer does not say what it receives.
func TestSignsOfDeafness(t *testing.T) {
	const limit = 2 * time.Second
	for _, c := range []struct {
		what string
		tell func(n uint64) *pb.PeerReceived // what the nth sign says
		want error
	}{
		{"nothing arrives", func(uint64) *pb.PeerReceived { return nil }, errDeaf},
		{"it says so each time", func(uint64) *pb.PeerReceived { return &pb.PeerReceived{Requests: 3, Bytes: 100} }, errDeaf},
		{"bytes arrive", func(n uint64) *pb.PeerReceived { return &pb.PeerReceived{Requests: 3, Bytes: 100 + n/3} }, nil},
		{"all arrives", func(uint64) *pb.PeerReceived { return &pb.PeerReceived{Requests: 4, Bytes: 100} }, nil},
		{"the peer is busy", func(n uint64) *pb.PeerReceived {
			if n > 1 {
				return nil
			}
			return &pb.PeerReceived{Requests: 3, Bytes: 200, Busy: true}
		}, nil},
	} {
		for _, old := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var sent, died time.Time
				var why error
				s := watchSigns(limit, new(delivery), func(err error) { died, why = time.Now(), err })
				s.sent.Store(3)
				if !old {
					s.hear(&pb.PeerReceived{Requests: 3, Bytes: 100})
				}
				for n := range uint64(100) {
					if n == 50 { // until then nothing is on its way
						sent = time.Now()
						s.sent.Add(1)
					}
					switch {
					case old:
						s.hear(nil)
					case n > 50:
						s.hear(c.tell(n - 50))
					default:
						s.hear(nil)
					}
					time.Sleep(limit / signsMissed)
				}
				synctest.Wait()
				s.stop()
				want := c.want
				if old {
					want = nil
				}
				if !errors.Is(why, want) {
					t.Errorf("%s, old=%v: given up for %v, want %v", c.what, old, why, want)
				}
				if took := died.Sub(sent); want != nil && (took < limit/2 || took > limit+limit/2) {
					t.Errorf("%s: given up after %v, the limit is %v", c.what, took, limit)
				}
			})
		}
	}
}

// What is known of a link outlives its connections: nothing has arrived for as long as no request, or more bytes than a connection
// needs for itself, have come to the peer. A connection that was not lost is only slow, and an idle one proves nothing after a lost one.
func TestUndelivered(t *testing.T) {
	const limit, look = 2 * time.Second, 2 * time.Second / signsMissed
	synctest.Test(t, func(t *testing.T) {
		d := &delivery{well: time.Now()}
		holds := func(what string, least, most time.Duration) {
			t.Helper()
			if got := d.undelivered(); got < least || got > most {
				t.Errorf("%s: %v, want %v to %v", what, got, least, most)
			}
		}
		connect := func() *signs {
			s := watchSigns(limit, d, func(error) { d.broken() })
			s.hear(&pb.PeerReceived{Requests: 0, Bytes: 100})
			return s
		}
		s := connect()
		time.Sleep(time.Minute / 2)
		s.hear(nil)
		holds("silence without an end", 0, time.Minute)
		s.stop()

		s = connect()
		for i := range uint64(20) { // requests arrive
			s.sending(100)
			time.Sleep(look)
			s.hear(&pb.PeerReceived{Requests: i + 1, Bytes: 100 * (i + 1)})
		}
		d.broken()
		holds("a connection that is lost", 0, 0)
		s.stop()
		began := time.Now()
		for range 3 {
			s = connect()
			s.sending(100_000)
			for i := range uint64(signsMissed + 1) { // what a connection needs for itself arrives, and nothing else
				time.Sleep(look)
				s.hear(&pb.PeerReceived{Requests: 0, Bytes: 100 + 9*min(i, 1)})
			}
			s.stop()
		}
		holds("nothing arrives", time.Since(began), time.Since(began))
		s = connect() // idle
		for range 10 {
			time.Sleep(look)
			s.hear(nil)
		}
		holds("an idle connection after lost ones", time.Since(began), time.Since(began))
		s.sending(100_000)
		time.Sleep(look)
		s.hear(&pb.PeerReceived{Requests: 0, Bytes: 2_000})
		holds("a part of a long request arrives", 0, 0)
		s.stop()
		d.broken()
		time.Sleep(time.Minute)
		holds("no connection is made", time.Minute, time.Minute)
		s = connect()
		s.sending(100)
		s.hear(&pb.PeerReceived{Busy: true})
		holds("the peer is busy", 0, 0)
		s.stop()

		d.broken()
		s = watchSigns(limit, d, func(error) {})
		time.Sleep(look)
		s.hear(nil)
		synctest.Wait()
		holds("an older program", 0, 0)
		s.stop()
	})
}

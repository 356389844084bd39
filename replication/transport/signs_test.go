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
		s := watchSigns(limit, func(error) { died = time.Since(began) })
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
				s := watchSigns(limit, func(err error) { died, why = time.Now(), err })
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

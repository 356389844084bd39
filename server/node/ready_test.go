package node

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/replication/group"
)

// Clients are not sent to who is far behind, or may be.
func TestTooFar(t *testing.T) {
	for _, c := range []struct {
		what     string
		writable bool
		lag      time.Duration
		most     time.Duration
		ready    bool
	}{
		{"a leader", true, 0, time.Second, true},
		{"a leader whose clock was set", true, time.Hour, time.Second, true},
		{"a follower", false, 10 * time.Millisecond, time.Second, true},
		{"who lags", false, 2 * time.Second, time.Second, false},
		{"who lags where nobody minds", false, 2 * time.Hour, 0, true},
		{"who has heard of no time yet", false, -1, time.Second, false},
		{"the same where nobody minds", false, -1, 0, true},
	} {
		s := group.Status{Writable: c.writable, Lag: group.Lag{Time: c.lag}}
		if err := tooFar(&s, c.most); (err == nil) != c.ready {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

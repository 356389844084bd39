package main

import (
	"testing"
	"time"

	triremev1 "github.com/triremedb/trireme/proto/trireme/v1"
	"github.com/triremedb/trireme/replication/group"
)

// What is known of a member's lag is shown, also of one that does not answer; what is not known is not 0.
func TestLagShown(t *testing.T) {
	for _, c := range []struct {
		lag        group.Lag
		want, wire [3]string // by status, and by admin status
	}{
		{group.Lag{}, [3]string{"0s", "0", "0"}, [3]string{span(0), "0", "0"}},
		{group.Lag{Time: 90 * time.Second, Entries: 30, Bytes: 4000}, [3]string{"1m30s", "30", "4000"}, [3]string{span(90_000), "30", "4000"}},
		{group.Lag{Time: time.Second, Entries: 30, Bytes: -1}, [3]string{"1s", "30", "-"}, [3]string{span(1000), "30", ""}},
		{group.UnknownLag, [3]string{"-", "-", "-"}, [3]string{}},
	} {
		a, b, d := lagOf(&c.lag)
		if got := [3]string{a, b, d}; got != c.want {
			t.Errorf("%+v: %q, not %q", c.lag, got, c.want)
		}
		m := &triremev1.AdminMember{LagMs: -1, LagEntries: uint64(max(0, c.lag.Entries)), LagBytes: c.lag.Bytes}
		if c.lag.Time >= 0 {
			m.LagMs = c.lag.Time.Milliseconds()
		}
		a, b, d = lagColumns(m)
		if got := [3]string{a, b, d}; got != c.wire {
			t.Errorf("%+v: %q, not %q", c.lag, got, c.wire)
		}
	}
}

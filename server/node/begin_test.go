package node

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/replication/group"
)

// A leader that has not begun after a while looks for another, and again.
func TestIsLate(t *testing.T) {
	var w beginWatch
	now := time.Unix(1000, 0)
	begins := group.Status{ID: 1, Leader: 1}
	serves, follows := begins, begins
	serves.Writable, follows.Leader = true, 2
	for i, step := range []struct {
		after time.Duration
		is    group.Status
		want  bool
	}{
		{0, begins, false},
		{beginGrace / 2, begins, false},
		{beginGrace / 2, begins, true},
		{beginGrace / 2, begins, false},
		{beginGrace / 2, begins, true},
		{beginGrace, serves, false},
		{beginGrace, begins, false}, // it begins anew
		{beginGrace, follows, false},
		{beginGrace, begins, false},
	} {
		now = now.Add(step.after)
		if got := w.isLate(&step.is, now); got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
}

// A leader that cannot begin yet hands over to a voter that has applied everything, and to nobody else.
func TestCurrent(t *testing.T) {
	members := []group.Member{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, Learner: true}}
	own := group.Status{ID: 1, Applied: 10, Committed: 50}
	for want, others := range map[uint64][]group.Status{
		2: {{ID: 2, Applied: 90, Committed: 90}, {ID: 3, Applied: 20, Committed: 90}, {ID: 4, Applied: 91, Committed: 91}},
		0: {{ID: 2, Applied: 80, Committed: 90}, {ID: 3, Applied: 20, Committed: 90}}, // it has something to apply as well
	} {
		if got := current(1, members, append(others, own)); got != want {
			t.Errorf("member %d, not %d", got, want)
		}
	}
	for _, s := range []group.Status{{ID: 2, Applied: 10, Committed: 10}, {ID: 2, Applied: 40, Committed: 40}, {ID: 2, Applied: 90, Committed: 90, DiskFull: true},
		{ID: 2, Applied: 90, Committed: 90, Error: "it does not answer"}} {
		if got := current(1, members, []group.Status{own, s}); got != 0 {
			t.Errorf("to %+v", s)
		}
	}
}

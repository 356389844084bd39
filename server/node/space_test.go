package node

import (
	"testing"
	"time"

	"github.com/triremedb/trireme/replication/group"
)

// A leader is relieved when statements have failed for want of space for a while, not for a
// single one, and not again at once.
func TestSpaceWatch(t *testing.T) {
	var w spaceWatch
	now := time.Unix(1000, 0)
	failed := uint64(0)
	for i, step := range []struct {
		after  time.Duration
		failed uint64 // since
		want   bool
	}{
		{time.Second, 0, false},
		{time.Second, 5, false}, // it begins
		{spaceQuiet + 1, 0, false},
		{spaceGrace, 1, false}, // it begins anew
		{spaceGrace / 2, 1, false},
		{spaceGrace / 2, 1, true},
		{time.Second, 9, false},
		{time.Second / 2, 9, false},
		{spaceAgain, 0, false}, // quiet
		{time.Second, 1, false},
		{spaceGrace / 2, 1, false},
		{spaceGrace / 2, 1, true},
	} {
		now, failed = now.Add(step.after), failed+step.failed
		if got := w.look(failed, now); got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
}

// A leader that cannot begin since there is no space is relieved after a while, and again: nobody writes meanwhile.
func TestCannotBegin(t *testing.T) {
	var w spaceWatch
	now := time.Unix(1000, 0)
	full := group.Status{ID: 1, Leader: 1, DiskFull: true}
	begun, follows, room := full, full, full
	begun.Writable, follows.Leader, room.DiskFull = true, 2, false
	for i, step := range []struct {
		after time.Duration
		is    group.Status
		want  bool
	}{
		{0, full, false},
		{spaceGrace / 2, full, false},
		{spaceGrace / 2, full, true},
		{spaceGrace / 2, full, false},
		{spaceGrace / 2, full, true},
		{spaceGrace, begun, false},
		{spaceGrace, full, false}, // it begins anew
		{spaceGrace, follows, false},
		{spaceGrace, full, false},
		{spaceGrace, room, false},
		{spaceGrace, full, false},
		{spaceGrace, full, true},
	} {
		now = now.Add(step.after)
		if got := w.cannotBegin(&step.is, now); got != step.want {
			t.Errorf("step %d: %v", i, got)
		}
	}
}

// TestRoomier: leadership goes to a voter that can be reached, has space, and has applied most.
func TestRoomier(t *testing.T) {
	members := []group.Member{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4, Learner: true}, {ID: 5}}
	states := []group.Status{{ID: 1, Applied: 99}, {ID: 2, Applied: 80}, {ID: 3, Applied: 90}, {ID: 4, Applied: 95}, {ID: 5, Applied: 98, DiskFull: true}, {ID: 6, Applied: 97}}
	if got := roomier(1, members, states); got != 3 {
		t.Errorf("member %d", got)
	}
	states[2].Error = "out of reach"
	if got := roomier(1, members, states); got != 2 {
		t.Errorf("member %d", got)
	}
	states[1].DiskStalled = time.Minute
	if got := roomier(1, members, states); got != 0 {
		t.Errorf("member %d", got)
	}
	if got := roomier(1, members, states[:1]); got != 0 {
		t.Errorf("member %d", got)
	}
}

// TestHeir: who stops hands over to one that has space, and chooses only if somebody has none.
func TestHeir(t *testing.T) {
	members := []group.Member{{ID: 1}, {ID: 2}, {ID: 3}}
	states := []group.Status{{ID: 1, Applied: 99}, {ID: 2, Applied: 80, DiskFull: true}, {ID: 3, Applied: 70}}
	if got := heir(1, members, states); got != 3 {
		t.Errorf("member %d", got)
	}
	states[1].DiskFull, states[1].DiskStalled = false, time.Second
	if got := heir(1, members, states); got != 3 {
		t.Errorf("member %d", got)
	}
	states[1].DiskStalled, states[1].ReadsFail = 0, true
	if got := heir(1, members, states); got != 3 {
		t.Errorf("member %d", got)
	}
	states[1].ReadsFail = false
	if got := heir(1, members, states); got != 0 {
		t.Errorf("member %d", got)
	}
}

// TestLacks: who says that it is whole is one that the group can rely on while another one is stopped.
func TestLacks(t *testing.T) {
	whole := group.Status{ID: 2}
	if why := lacks(&whole); why != "" {
		t.Errorf("one that is whole %s", why)
	}
	for want, change := range map[string]func(s *group.Status){
		"is being given its data":                     func(s *group.Status) { s.Provisioning = true },
		"does not answer":                             func(s *group.Status) { s.Error = "out of reach" },
		"has a full disk":                             func(s *group.Status) { s.DiskFull = true },
		"has a disk that has not answered for 1s":     func(s *group.Status) { s.DiskStalled = time.Second },
		"has a disk that fails to give back its data": func(s *group.Status) { s.ReadsFail = true },
		"is 7 entries behind":                         func(s *group.Status) { s.Lag = group.Lag{Time: spareLag + 1, Entries: 7} },
		"is -1 entries behind":                        func(s *group.Status) { s.Lag = group.UnknownLag },
	} {
		s := whole
		change(&s)
		if got := lacks(&s); got != want {
			t.Errorf("one that %s %q", want, got)
		}
	}
}

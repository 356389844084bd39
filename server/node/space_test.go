package node

import (
	"slices"
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
		{time.Second / 2, 9, true}, // another may have got room meanwhile
		{spaceGrace / 2, 9, false},
		{spaceGrace / 2, 9, true},
		{spaceQuiet + 1, 0, false}, // quiet
		{time.Second, 1, false},
		{spaceGrace / 2, 1, false},
		{spaceGrace / 2, 1, true},
		{spaceAgain, 1, false}, // others have led meanwhile, and nobody looked
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

// TestRoomiest: full members do not hand leadership to each other while one that has room is there, whoever has the lower id.
func TestRoomiest(t *testing.T) {
	members := []group.Member{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4}}
	states := []group.Status{{ID: 1, Applied: 90, DiskTotal: 1000, DiskFree: 10}, {ID: 2, Applied: 90, DiskTotal: 1000, DiskFree: 20}, {ID: 3, Applied: 90, DiskTotal: 1000, DiskFree: 600},
		{ID: 4, Applied: 90}} // an older program, which does not say
	if got := roomier(2, members, states); got != 3 {
		t.Errorf("member %d", got)
	}
	states[0].Applied = 91
	if got := roomier(2, members, states); got != 1 {
		t.Errorf("of those that have room, member %d", got)
	}
	states[0].DiskFull = true
	if got := roomier(2, members, states); got != 3 {
		t.Errorf("where the one that knows most is full, member %d", got)
	}
}

// TestAskedBefore: who was asked to lead and has given it back is not asked again while others may be, and where none may whoever gets room is asked at once.
func TestAskedBefore(t *testing.T) {
	members := []group.Member{{ID: 1}, {ID: 2}, {ID: 3}, {ID: 4}}
	states := []group.Status{{ID: 1, DiskFree: 90}, {ID: 2, DiskFree: 80}, {ID: 3, DiskFree: 70}, {ID: 4, DiskFull: true}}
	w, now := spaceWatch{}, time.Unix(1000, 0)
	choose := func(after time.Duration, want uint64) {
		t.Helper()
		now = now.Add(after)
		if got := w.choose(1, members, states, now); got != want {
			t.Errorf("member %d, not %d", got, want)
		}
	}
	choose(0, 2)
	choose(3*spaceGrace, 3)
	choose(spaceGrace, 0)
	states[3].DiskFull = false
	choose(spaceGrace, 4)
	choose(spaceGrace, 0)
	choose(spaceAgain-6*spaceGrace, 2)
	choose(0, 0)
	choose(spaceAgain, 2)
}

// TestSuccessors: who leaves hands over to one that is heard, of those to one that has room, and of those to who knows most.
func TestSuccessors(t *testing.T) {
	var all []group.Follower
	for id := range uint64(5) {
		all = append(all, group.Follower{Member: group.Member{ID: id}, Match: 10 - id, Active: id != 1})
	}
	states := []group.Status{{ID: 0, DiskFull: true}, {ID: 1}, {ID: 2, ReadsFail: true}, {ID: 4, DiskFree: 7}}
	var got []uint64
	for _, f := range successors(all, states) {
		got = append(got, f.ID)
	}
	if want := []uint64{3, 4, 0, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
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
